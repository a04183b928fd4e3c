"""`tenfold.save` and `tenfold.load`: tensors and plain Python data in files that PyTorch reads and writes.

A path that ends in ".safetensors" means that format; all others are PyTorch's zip archive. No code in a file
runs, unless the user has declared that the file is trusted: files are read by an interpreter that knows only
data and tensors.
"""

from __future__ import annotations

import io
import os
from typing import IO, Any

from tenfold.base import files
from tenfold.base.errors import (
    ArgumentError,
    FileError,
    FolderGiven,
    ForbiddenFile,
    FormatError,
    MissingFile,
    UnsupportedError,
    located,
)
from tenfold.serialize import archive, legacy, safe, trust
from tenfold.serialize.atomic import replacing
from tenfold.serialize.storages import Places
from tenfold.serialize.trust import (
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    safe_globals,
    trusting_files,
)

__all__ = [
    "add_safe_globals", "clear_safe_globals", "get_safe_globals", "load", "safe_globals", "save",
    "trusting_files",
]  # fmt: skip

Path = str | os.PathLike[str]
# PyTorch's names for the type of map_location, and for pickle's protocol in its files.
MAP_LOCATION = Any
DEFAULT_PROTOCOL = 2


@located
def save(
    obj: Any,
    f: Path | IO[bytes],
    pickle_module: Any = None,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Save tensors, and dicts, lists and tuples of tensors, to a file that `torch.load` can read. Modules,
    arrays and other objects are pickled under PyTorch's names; they can be loaded with `weights_only=False`.

    Tensors that share memory still do so after loading. A file that is given by its path is replaced
    atomically: the old file stays until the new one is complete.
    """
    if not isinstance(f, (str, os.PathLike)) and hasattr(f, "write"):
        archive.Contents(obj).write(f)
        return
    path = _path(f)
    contents = safe.Contents(obj) if safe.is_path(path) else archive.Contents(obj)
    try:
        with replacing(path) as file:
            contents.write(file)
    except OSError as error:
        raise _file_error(error, path, "written") from None


@located
def load(
    f: Path | IO[bytes],
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = True,
    mmap: bool | None = None,
) -> Any:
    """Load a file that `save`, `torch.save` or safetensors wrote.

    `map_location` chooses the device of tensors: a device, a dict from saved devices to others, or a function
    `(storage, location)` that returns the storage, `storage.cpu()` or `storage.cuda()`. By default, tensors
    are loaded to the device that they were saved from.

    Code in the file does not run. Classes other than tensors and plain data are an error that names them,
    unless `add_safe_globals` declared them safe. With `weights_only=False`, a file may contain any object and
    run any code; it is refused unless you declare that you trust it, by `trusting_files` or by
    TENFOLD_TRUST_FILES=1. `mmap` is accepted and has no visible effect.
    """
    trusted = weights_only is False
    if trusted and not trust.trusted():
        raise UnsupportedError(
            "weights_only=False lets the file run any code, and nobody has said that it is trusted",
            help="save model.state_dict(), and load it without weights_only=False; or, if you trust whoever "
            "wrote the file, load it inside `with tenfold.serialize.trusting_files():`, or set "
            "TENFOLD_TRUST_FILES=1",
        )
    if pickle_module is not None and not trusted:
        raise UnsupportedError("files are read by Tenfold alone", help="leave pickle_module out")
    places = Places(map_location)
    if not isinstance(f, (str, os.PathLike)) and hasattr(f, "read"):
        seekable = hasattr(f, "seekable") and f.seekable()
        return _read(f if seekable else io.BytesIO(f.read()), places, "", trusted)
    path = _path(f)
    try:
        with files.opened(path) as file:
            return _read(file, places, path, trusted)
    except OSError as error:
        raise _file_error(error, path, "read") from None


def beginning(f: Any, count: int) -> tuple[bytes, str]:
    """The first bytes of a file, and its path."""
    path = _path(f)
    try:
        with files.opened(path) as file:
            return file.read(count), path
    except OSError as error:
        raise _file_error(error, path, "read") from None


def _read(file: IO[bytes], places: Places, path: str, trusted: bool) -> Any:
    """By what stands at the beginning: a zip archive, safetensors' header, or a bare pickle."""
    start = file.tell()
    head = file.read(9)
    file.seek(start)
    if safe.is_path(path) or head[8:] == b"{":
        return safe.read(file, places)
    if head[:2] == b"PK":
        return archive.read(file, places, trusted, trust.allowed())
    if head[:1] == b"\x80":
        return legacy.read(file, places)
    raise FormatError(
        f"this is no saved file: it begins with {head[:4]!r}" if head else "the file is empty",
        help="Tenfold reads what tenfold.save, torch.save and safetensors write",
    )


def _file_error(error: OSError, path: str, done: str) -> FileError:
    """What to tell of a file by its path, which is the user's: the one being written has another name."""
    told = _told(error, path, done)
    told.errno, told.strerror, told.filename = error.errno, error.strerror, path
    return told


def _told(error: OSError, path: str, done: str) -> FileError:
    folder = os.path.dirname(path)
    if isinstance(error, FileNotFoundError):
        if folder and not os.path.exists(folder):
            return MissingFile(
                f"{path} cannot be {done}: Parent directory {folder} does not exist",
                help=f"make it first: os.makedirs({folder!r})" if done == "written" else None,
            )
        return MissingFile(f"{path} cannot be {done}: there is no such file")
    if isinstance(error, IsADirectoryError):
        return FolderGiven(f"{path} is a folder", help="give the path of a file in it")
    kind = ForbiddenFile if isinstance(error, PermissionError) else FileError
    return kind(f"{path} cannot be {done}: {error.strerror or error}")


def _path(f: Any) -> str:
    try:
        path = os.fspath(f)
    except TypeError:
        raise ArgumentError(f"takes a path or a binary file, not {type(f).__name__}") from None
    if isinstance(path, bytes):
        path = os.fsdecode(path)
    if not path or "\0" in path:
        raise ArgumentError(f"{path!r} is no path")
    return path
