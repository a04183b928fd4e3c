"""Reading a checkpoint, whatever mesh it was written from: each process reads what its devices need."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from tenfold.autograd.grad_mode import no_grad
from tenfold.base import dtypes
from tenfold.base.errors import FormatError, ShapeError, located
from tenfold.distributed.checkpoint.layout import Entry, Index, folder_of, leaves, read_index
from tenfold.distributed.checkpoint.state_dict import begin_state
from tenfold.serialize import safe
from tenfold.tensor import Tensor, leaf, sharding


@located
def load(state_dict: dict[str, Any], *, checkpoint_id: Any = None, **options: Any) -> None:
    """Load a checkpoint's folder into a nested dict: fill its tensors in place, and replace its numbers and
    strings. Objects that have a state dict, such as modules and optimizers, load theirs. A tensor may be
    sharded in another way than when it was saved, or not at all."""
    folder = folder_of(checkpoint_id)
    index = read_index(folder)
    files: dict[str, dict[str, np.ndarray]] = {}
    for key, each in list(state_dict.items()):
        if hasattr(each, "load_state_dict"):
            begin_state(each)
            own = {key: each.state_dict()}
            _fill(own, index, folder, files)
            each.load_state_dict(own[key])
    _fill(
        {key: each for key, each in state_dict.items() if not hasattr(each, "load_state_dict")},
        index,
        folder,
        files,
        state_dict,
    )


def _fill(
    state: dict[str, Any],
    index: Index,
    folder: Path,
    files: dict[str, dict[str, np.ndarray]],
    outer: dict[str, Any] | None = None,
) -> None:
    for name, container, key, each in list(leaves(state)):
        known = index.tensors if isinstance(each, Tensor) else index.values
        if name not in known:
            raise FormatError(
                f"the checkpoint in {folder} has no {name!r}", help="load into what was saved, by its names"
            )
        if isinstance(each, Tensor):
            _fill_tensor(each, name, index.tensors[name], folder, files)
        else:
            value = index.values[name]
            target = outer if outer is not None and container is state else container
            target[key] = tuple(value) if isinstance(each, tuple) else value


def _fill_tensor(
    tensor: Tensor, name: str, entry: Entry, folder: Path, files: dict[str, dict[str, np.ndarray]]
) -> None:
    if tuple(tensor.shape) != entry.shape:
        raise ShapeError(f"{name!r} is {list(tensor.shape)}, and was saved as {list(entry.shape)}")
    if tensor.dtype.name != entry.dtype:
        raise FormatError(f"{name!r} is {tensor.dtype.name}, and was saved as {entry.dtype}")
    placed = sharding.placed_as(tensor)
    if placed is None and tensor.device.mesh is not None:
        placed = sharding.sharding_of(tensor._computed())
    if placed is None:
        whole = tuple([slice(0, extent) for extent in entry.shape])
        read = leaf(_read(whole, entry, folder, files), tensor.device, tensor.dtype)
    else:
        from tenfold.engines import sharded

        parts = [
            _read(placed.index(entry.shape, position), entry, folder, files)
            for position in sharded.local_positions(placed.mesh)
        ]
        buffer = sharded.assembled(parts, entry.shape, placed)
        read = sharding.leaf_of(buffer, tensor.current().type, placed)
    with no_grad():
        tensor.copy_(read)


def _read(
    wanted: tuple[slice, ...], entry: Entry, folder: Path, files: dict[str, dict[str, np.ndarray]]
) -> np.ndarray:
    """A part of a tensor, put together from the parts that were saved."""
    shape = [each.stop - each.start for each in wanted]
    # Parts of a hostile index may overlap, and leave elements out.
    found = np.zeros(shape, dtypes.BY_NAME[entry.dtype].numpy)
    filled = 0
    for part in entry.parts:
        ends = [start + extent for start, extent in zip(part.start, part.shape, strict=True)]
        low = [max(a.start, b) for a, b in zip(wanted, part.start, strict=True)]
        high = [min(a.stop, b) for a, b in zip(wanted, ends, strict=True)]
        if any(a >= b for a, b in zip(low, high, strict=True)):
            continue
        if part.file not in files:
            files[part.file] = safe.mapped(folder / part.file)
        array = files[part.file].get(part.name)
        if array is None or array.shape != part.shape:
            raise FormatError(f"{folder / part.file} does not have {part.name!r} as the index says")
        theirs = tuple([slice(a - s, b - s) for a, b, s in zip(low, high, part.start, strict=True)])
        ours = tuple([slice(a - w.start, b - w.start) for a, b, w in zip(low, high, wanted, strict=True)])
        found[ours] = array[theirs]
        filled += math.prod([b - a for a, b in zip(low, high, strict=True)])
    if filled != math.prod(shape):
        raise FormatError(f"the checkpoint in {folder} does not have all of a tensor")
    return found
