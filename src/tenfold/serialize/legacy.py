"""The format that PyTorch wrote before its zip archive: pickles one after the other, then the storages."""

from __future__ import annotations

from typing import IO, Any

import numpy as np

from tenfold.base.errors import FormatError
from tenfold.serialize.storages import Places, Storage, tensors_of
from tenfold.serialize.unpickle import Unpickler, finished, tensors_in

_MAGIC = 0x1950A86A20F9469CFC6C
_PROTOCOL = 1001


def read(file: IO[bytes], places: Places) -> Any:
    contents = file.read()
    unpickler = Unpickler(contents)
    if unpickler.load() != _MAGIC or unpickler.load() != _PROTOCOL:
        raise FormatError(
            "the file is a pickle, but none of PyTorch's",
            help="save it again with tenfold.save or torch.save",
        )
    system = unpickler.load()
    if not isinstance(system, dict) or system.get("little_endian") is not True:
        raise FormatError("the file was written by a machine of the other byte order, or is damaged")
    described = unpickler.load()
    placed = tensors_in(described)
    keys = unpickler.load()
    if not isinstance(keys, list) or not all(type(each) is str for each in keys):
        raise FormatError("the file is damaged: it has no list of its storages")
    starts: dict[str, int] = {}
    position = unpickler.position
    for key in keys:
        storage = unpickler.storages.get(key)
        head = contents[position : position + 8]
        if storage is None or int.from_bytes(head, "little", signed=True) != storage.size or len(head) < 8:
            raise FormatError(f"the file is damaged: storage {key[:40]!r} is not what is said of it")
        starts[key] = position + 8
        position += 8 + storage.nbytes

    def storage_bytes(storage: Storage) -> np.ndarray:
        if storage.key not in starts:
            raise FormatError(f"the file has no storage {storage.key[:40]!r}: it is damaged")
        start = starts[storage.key]
        return np.frombuffer(contents[start : start + storage.nbytes], np.uint8).copy()

    return finished(described, tensors_of(placed, storage_bytes, places))
