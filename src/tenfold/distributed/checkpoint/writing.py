"""Writing a checkpoint: each process writes its own parts, and then the first process writes the index."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np

from tenfold.base.devices import Device
from tenfold.base.errors import located
from tenfold.distributed.checkpoint.layout import (
    INDEX,
    Entry,
    Index,
    Part,
    expanded,
    folder_of,
    leaves,
    read_index,
    to_json,
)
from tenfold.runtime import evaluate
from tenfold.serialize.atomic import replacing
from tenfold.serialize.safe import Contents
from tenfold.tensor import Tensor, leaf, sharding

_saves: dict[str, int] = {}


@located
def save(state_dict: dict[str, Any], *, checkpoint_id: Any = None, **options: Any) -> None:
    """Save a nested dict of tensors, numbers and strings in a folder. All processes call this together. Until
    all of them are done, the previous checkpoint in the folder stays intact."""
    _Save(state_dict, folder_of(checkpoint_id)).write()


@located
def async_save(state_dict: dict[str, Any], *, checkpoint_id: Any = None, **options: Any) -> Future[None]:
    """Like `save`, in another thread. It saves the state at the time of the call. Returns a future."""
    work: Future[None] = Future()
    saved = _Save(state_dict, folder_of(checkpoint_id))

    def write() -> None:
        try:
            saved.write()
            work.set_result(None)
        except BaseException as error:
            work.set_exception(error)

    threading.Thread(target=write, name="tenfold-checkpoint").start()
    return work


class _Save:
    """A state, copied to host memory: what this process writes of it."""

    def __init__(self, state: dict[str, Any], folder: Path):
        from tenfold.engines import processes

        self.folder = folder
        self.connection = processes.current
        self.rank = 0 if self.connection is None else self.connection.rank
        number = _saves[str(folder)] = _saves.get(str(folder), 0) + 1
        self.key = f"checkpoint/{folder}/{number}"
        token = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        self.file = f"parts-{self._common(token, number)}-{self.rank:05d}.safetensors"
        found = list(leaves(expanded(state)))
        tensors = [each for _, _, _, each in found if isinstance(each, Tensor)]
        evaluate.evaluate([tensor.current() for tensor in tensors])
        self.values = {name: each for name, _, _, each in found if not isinstance(each, Tensor)}
        self.arrays: dict[str, np.ndarray] = {}
        self.entries: dict[str, Entry] = {}
        for name, _, _, each in found:
            if isinstance(each, Tensor):
                self._take(name, each)

    def _common(self, token: str, number: int) -> str:
        """A name for this save that all processes have, and no save before it had."""
        own = f"{os.urandom(4).hex()}-{token}-{number}"
        if self.connection is None or self.connection.runtime is None:
            return own
        if self.rank == 0:
            self.connection.set(f"{self.key}/name", own)
        return self.connection.get(f"{self.key}/name", 0)

    def _take(self, name: str, tensor: Tensor) -> None:
        """Copy what this process writes of a tensor: parts that several devices have are the first one's;
        a plain tensor is the first process's."""
        parts = []
        for start, part in self._parts(tensor):
            key = f"{name}@{'-'.join(map(str, start))}"
            self.arrays[key] = np.array(part)
            parts.append(Part(self.file, key, start, tuple(part.shape)))
        self.entries[name] = Entry(tensor.dtype.name, tuple(tensor.shape), tuple(parts))

    def _parts(self, tensor: Tensor) -> list[tuple[tuple[int, ...], np.ndarray]]:
        placed = sharding.sharding_of(tensor.current())
        if placed is None:
            return [((0,) * tensor.ndim, tensor.detach()._host())] if self.rank == 0 else []
        from tenfold.engines import sharded

        first: dict[tuple[int, ...], int] = {}
        for position in range(placed.mesh.size):
            index = placed.index(tensor.shape, position)
            if all(bounds.start < bounds.stop for bounds in index):
                first.setdefault(tuple([bounds.start for bounds in index]), position)
        own = dict(zip(sharded.local_positions(placed.mesh), sharded.parts_of(tensor._buffer()), strict=True))
        return [(start, own[position]) for start, position in first.items() if position in own]

    def write(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        contents = Contents({name: leaf(array, Device("cpu")) for name, array in self.arrays.items()})
        with replacing(str(self.folder / self.file)) as file:
            contents.write(file)
        told = json.dumps(
            {name: [vars(part) for part in entry.parts] for name, entry in self.entries.items()}
        )
        others = self._exchange(told)
        if self.rank == 0:
            self._finish(others)
        self._exchange("done", "done")
        if self.connection is not None and self.connection.runtime is not None:
            self.connection.forget(f"{self.key}/parts/{self.rank}")  # all have read it

    def _exchange(self, own: str, what: str = "parts") -> list[str]:
        """What all processes say; each waits for the others."""
        connection = self.connection
        if connection is None or connection.runtime is None:
            return [own]
        connection.set(f"{self.key}/{what}/{self.rank}", own)
        return [connection.get(f"{self.key}/{what}/{rank}", rank) for rank in range(connection.world)]

    def _finish(self, told: list[str]) -> None:
        """Write the index of all parts, and remove files of parts that it does not name."""
        entries = dict(self.entries)
        for text in told[1:]:
            for name, parts in json.loads(text).items():
                more = [
                    Part(part["file"], part["name"], tuple(part["start"]), tuple(part["shape"]))
                    for part in parts
                ]
                entry = entries[name]
                entries[name] = Entry(entry.dtype, entry.shape, (*entry.parts, *more))
        index = Index(entries, self.values)
        with replacing(str(self.folder / INDEX)) as file:
            file.write(to_json(index).encode())
        kept = read_index(self.folder).files
        for path in self.folder.glob("parts-*.safetensors"):
            if path.name not in kept:
                with contextlib.suppress(OSError):
                    path.unlink()
