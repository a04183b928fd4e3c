"""PyTorch's zip archive: a pickle that describes the data, and beside it one record for each storage."""

from __future__ import annotations

import sys
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from tenfold.base.errors import FormatError, TenfoldError, UnsupportedError
from tenfold.serialize.objects import Reader, Writer
from tenfold.serialize.pickles import NotPlain, Pickler, survey
from tenfold.serialize.storages import Places, Storage, stored, tensors_of
from tenfold.serialize.unpickle import Unpickler, finished, tensors_in

if TYPE_CHECKING:
    import zipfile

_ROOT = "archive"
_ALIGNMENT = 64
_CHUNK = 1 << 22


class Contents:
    """Data, checked and computed, ready to be written."""

    def __init__(self, obj: Any):
        try:
            tensors = survey(obj)
        except NotPlain:  # an object of some class, which pickle may know how to write
            self.pickle, found = Writer().written(obj)
            self.storages = [np.ascontiguousarray(each).reshape(-1).view(np.uint8) for each in found]
            return
        hosts, places = stored(tensors)
        self.storages = [np.ascontiguousarray(host).reshape(-1).view(np.uint8) for host in hosts]
        by_identity = {id(tensor): place for tensor, place in zip(tensors, places)}
        self.pickle = Pickler(by_identity, [storage.nbytes for storage in self.storages]).dump(obj)

    def write(self, file: IO[bytes]) -> None:
        import zipfile  # brings compressors that nothing else needs

        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as zipped:
            add_record(zipped, "data.pkl", self.pickle)
            add_record(zipped, ".format_version", b"1")
            add_record(zipped, ".storage_alignment", str(_ALIGNMENT).encode())
            add_record(zipped, "byteorder", sys.byteorder.encode())
            for i, storage in enumerate(self.storages):
                add_record(zipped, f"data/{i}", storage.data)
            add_record(zipped, "version", b"3\n")


def add_record(zipped: zipfile.ZipFile, name: str, record: bytes | memoryview) -> None:
    """A record whose bytes begin at a multiple of 64, so that they can be mapped into memory as they are."""
    from zipfile import ZIP64_LIMIT, ZipInfo

    info = ZipInfo(f"{_ROOT}/{name}")  # of the year 1980: the same data makes the same file
    info.file_size = len(record)
    long = info.file_size * 1.05 > ZIP64_LIMIT
    assert zipped.fp is not None
    start = zipped.fp.tell() + 30 + len(info.filename) + 4 + (20 if long else 0)
    padding = -start % _ALIGNMENT
    info.extra = b"FB" + padding.to_bytes(2, "little") + bytes(padding)
    with zipped.open(info, "w", force_zip64=long) as into:
        for begin in range(0, len(record), _CHUNK):
            into.write(record[begin : begin + _CHUNK])


def read(
    file: IO[bytes], places: Places, trusted: bool = False, allowed: dict[str, Any] | None = None
) -> Any:
    """What an archive holds: plain data and tensors; objects too of a file that is `trusted`, or of the
    classes that are `allowed`."""
    archive = Archive(file)
    if trusted or allowed:
        contents = bytes(archive.record("data.pkl"))
        return Reader(contents, archive.storage, places, None if trusted else allowed).load()
    unpickler = Unpickler(bytes(archive.record("data.pkl")))
    described = unpickler.load()
    tensors = tensors_of(tensors_in(described), archive.storage, places)
    return finished(described, tensors)


class Archive:
    """A zip file that somebody may have tampered with. Its records are stored as they are, never compressed,
    and together no longer than the file: so what they unfold to is bounded by it."""

    def __init__(self, file: IO[bytes]):
        import zipfile

        start = file.tell()
        length = file.seek(0, 2) - start
        file.seek(start)
        try:
            self.zipped = zipfile.ZipFile(file)
        except (OSError, MemoryError):
            raise
        except Exception as error:  # of a damaged file its reader raises whatever it stumbles over
            raise FormatError(
                f"the file is no whole zip archive: {error}",
                help="it was cut short or changed after it was saved: save or copy it again",
            ) from None
        records = self.zipped.infolist()
        if sum(record.file_size for record in records) > length:
            raise FormatError(
                "the file's records claim to be longer than the file: it is damaged, or hostile"
            )
        self.records = {record.filename: record for record in records}
        roots = [name[: -len("/data.pkl")] for name in self.records if name.endswith("/data.pkl")]
        if len(roots) != 1 or "/" in roots[0]:
            raise FormatError("the zip archive is no saved file: it does not have one record data.pkl")
        self.root = roots[0]
        if f"{self.root}/constants.pkl" in self.records:
            raise UnsupportedError(
                "the file is a TorchScript program, which Tenfold does not run",
                help="save the module's state_dict with torch.save",
            )
        order = f"{self.root}/byteorder"
        self.swapped = order in self.records and bytes(self.record("byteorder")) != sys.byteorder.encode()

    def record(self, name: str) -> np.ndarray:
        info = self.records.get(f"{self.root}/{name}")
        if info is None:
            raise FormatError(f"the file has no record {name[:60]!r}: it is damaged")
        if info.compress_type or info.flag_bits & 1 or info.compress_size != info.file_size:
            raise FormatError(f"record {name[:60]!r} is compressed or encrypted, which no saved file is")
        found = np.empty(info.file_size, np.uint8)
        filled = 0
        try:
            with self.zipped.open(info) as source:
                while filled < len(found):
                    count = source.readinto(found.data[filled : filled + _CHUNK])  # type: ignore[attr-defined]
                    if not count:
                        raise FormatError(f"record {name[:60]!r} is cut short")
                    filled += count
        except (OSError, MemoryError, TenfoldError):
            raise
        except Exception as error:
            raise FormatError(f"record {name[:60]!r} is damaged: {error}") from None
        return found

    def storage(self, storage: Storage) -> np.ndarray:
        found = self.record(f"data/{storage.key}")
        if self.swapped:
            raise UnsupportedError("the file was written by a machine of the other byte order")
        return found
