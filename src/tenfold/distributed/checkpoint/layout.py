"""What a checkpoint's folder has: files of parts, as safetensors, and `index.json`, which says in which file
each part of each tensor is. The index is written last, and in one step: until then the one before it holds,
and the files that it names are there."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tenfold.base import dtypes, files
from tenfold.base.errors import ArgumentError, FormatError, MissingFile, UnsupportedError
from tenfold.tensor import Tensor

INDEX = "index.json"
PLAIN = (bool, int, float, str, type(None))


@dataclass(frozen=True)
class Part:
    """A part of a tensor: the file and the name under which it is there, and where it begins and how large it
    is."""

    file: str
    name: str
    start: tuple[int, ...]
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Entry:
    """A tensor of a checkpoint."""

    dtype: str
    shape: tuple[int, ...]
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Index:
    """Tensors by their names, and numbers, strings and the like by theirs."""

    tensors: dict[str, Entry]
    values: dict[str, Any]

    @property
    def files(self) -> set[str]:
        return {part.file for entry in self.tensors.values() for part in entry.parts}


def folder_of(checkpoint_id: Any) -> Path:
    if checkpoint_id is None:
        raise ArgumentError("where the checkpoint is is not known", help="give checkpoint_id, a folder")
    return Path(os.fspath(checkpoint_id))


def leaves(nested: Any) -> Iterator[tuple[str, Any, Any, Any]]:
    """Every tensor and plain value in nested containers: its name, which joins the keys on the way by dots,
    the container it is in, its key, and itself."""
    names = set()
    for found in _walk(nested, ""):
        if found[0] in names:
            raise ArgumentError(
                f"two parts of the state have the name {found[0]!r} in a checkpoint",
                help="rename one: keys are joined by dots",
            )
        names.add(found[0])
        yield found


def _walk(nested: Any, name: str) -> Iterator[tuple[str, Any, Any, Any]]:
    items = nested.items() if isinstance(nested, dict) else enumerate(nested)
    for key, each in items:
        path = f"{name}.{key}" if name else str(key)
        if isinstance(each, (dict, list)):
            yield from _walk(each, path)
        elif isinstance(each, tuple) or type(each) in PLAIN or isinstance(each, Tensor):
            yield path, nested, key, each
        else:
            raise UnsupportedError(
                f"a checkpoint holds tensors, numbers and strings, and {path!r} is a {type(each).__name__}",
                help="save it apart, with tenfold.save",
            )


def expanded(state: Any) -> Any:
    """Objects with a state dict as their state dicts."""
    if hasattr(state, "state_dict") and not isinstance(state, dict):
        state = state.state_dict()
    if isinstance(state, dict):
        return {key: expanded(each) for key, each in state.items()}
    return state


def to_json(index: Index) -> str:
    tensors = {
        name: {
            "dtype": entry.dtype,
            "shape": entry.shape,
            "parts": [
                {"file": part.file, "name": part.name, "start": part.start, "shape": part.shape}
                for part in entry.parts
            ],
        }
        for name, entry in index.tensors.items()
    }
    return json.dumps({"format": 1, "tensors": tensors, "values": index.values}, indent=1)


def read_index(folder: Path) -> Index:
    path = folder / INDEX
    try:
        with files.opened(path) as file:
            contents = file.read()
    except FileNotFoundError:
        raise MissingFile(
            f"there is no whole checkpoint in {folder}", help="see that a save has ended"
        ) from None
    except OSError as error:
        raise FormatError(f"{path} cannot be read: {error.strerror}") from None
    try:
        found = json.loads(contents.decode())
        tensors = {name: _entry(entry) for name, entry in found["tensors"].items()}
        return Index(tensors, dict(found["values"]))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise FormatError(f"{path} is no index of a checkpoint: {error}") from None


def _entry(told: Any) -> Entry:
    """A tensor as the index tells of it, whose parts lie in files of the folder and inside of the tensor."""
    shape = _numbers(told["shape"])
    parts = [
        Part(_file(part["file"]), str(part["name"]), _numbers(part["start"]), _numbers(part["shape"]))
        for part in told["parts"]
    ]
    for part in parts:
        if not len(shape) == len(part.start) == len(part.shape):
            raise ValueError(f"a part of rank {len(part.shape)} is in a tensor of rank {len(shape)}")
        if any(start + size > extent for start, size, extent in zip(part.start, part.shape, shape)):
            raise ValueError("a part lies outside of its tensor")
    if told["dtype"] not in dtypes.BY_NAME:
        raise ValueError(f"{str(told['dtype'])[:40]!r} is no dtype")
    return Entry(told["dtype"], shape, tuple(parts))


def _numbers(told: Any) -> tuple[int, ...]:
    if type(told) is not list or not all(type(number) is int and number >= 0 for number in told):
        raise ValueError("sizes are not numbers from 0 up")
    return tuple(told)


def _file(told: Any) -> str:
    if type(told) is not str or told != os.path.basename(told) or "\0" in told:
        raise ValueError("a part is in a file of another folder")
    return told
