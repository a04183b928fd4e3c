"""Collation: many samples become one batch, with PyTorch's dtypes and containers."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

from tenfold.base import dtypes
from tenfold.base.devices import Device
from tenfold.base.errors import DTypeError, ShapeError, TenfoldError, located
from tenfold.base.source import capture
from tenfold.ops.table import find
from tenfold.tensor import Tensor, dispatch, leaf
from tenfold.tensor.interchange import as_tensor, tensor
from tenfold.trace.context import context


def collate_tensor_fn(batch: Sequence[Tensor], *, collate_fn_map: Any = None) -> Tensor:
    """Tensors of one shape, stacked."""
    return _stacked(batch)


# Functions `f(batch, collate_fn_map=...)` for the classes of samples that a program adds here. They are asked
# before the rules below.
default_collate_fn_map: dict[Any, Callable[..., Any]] = {Tensor: collate_tensor_fn}
# The dtypes of arrays that hold text or objects, which cannot become tensors.
np_str_obj_array_pattern = re.compile(r"[SaUO]")


@located
def default_collate(batch: Sequence[Any]) -> Any:
    """Collate samples into a batch: tensors, arrays and numbers are stacked, within containers too; strings
    and bytes stay a list."""
    if not len(batch):
        raise ShapeError("a batch of no samples cannot be put together")
    return _collated(batch)


def _collated(batch: Sequence[Any]) -> Any:
    first = batch[0]
    for kind, combine in default_collate_fn_map.items():
        if isinstance(first, kind):
            return combine(batch, collate_fn_map=default_collate_fn_map)
    if isinstance(first, np.ndarray):
        _check_shapes([each.shape for each in batch])
        return leaf(_numeric(np.stack(batch)), Device("cpu"))
    if isinstance(first, np.generic) and not isinstance(first, (np.str_, np.bytes_)):
        return leaf(_numeric(np.array(batch)), Device("cpu"))
    if isinstance(first, float):
        return tensor(batch, dtype=dtypes.float64)
    if isinstance(first, (int, complex)):
        return tensor(batch)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        return _like(first, {name: _field([each[name] for each in batch], name) for name in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*map(_field, zip(*batch), first._fields))
    if isinstance(first, Sequence):
        lengths = {len(each) for each in batch}
        if len(lengths) > 1:
            raise ShapeError(f"the samples of a batch have different numbers of fields: {sorted(lengths)}")
        fields = list(map(_field, zip(*batch), range(len(first))))
        return fields if isinstance(first, tuple) else _like(first, fields)
    raise DTypeError(
        f"samples of type {type(first).__name__} cannot be put together",
        help="samples are tensors, NumPy arrays, numbers, strings, dicts, tuples and lists; "
        "for others give the loader a collate_fn",
    )


def _field(values: Sequence[Any], name: Any) -> Any:
    """The same field of every sample, put together; an error says which."""
    try:
        return _collated(values)
    except TenfoldError as error:
        error.add_note(f"in field {name!r} of the samples")
        raise


def _stacked(batch: Sequence[Tensor]) -> Tensor:
    _check_shapes([tuple(each.shape) for each in batch])
    plain = context.recorder is None and all(
        each.is_cpu and each.dtype is batch[0].dtype and not each.requires_grad for each in batch
    )
    # Samples that are already computed are copied by the host; the others become one program.
    if plain and all(each.current().buffer is not None for each in batch):
        return leaf(np.stack([each._host() for each in batch]), Device("cpu"), batch[0].dtype)
    return dispatch.invoke(find("stack"), [tuple(batch), 0], capture())


def _check_shapes(shapes: Sequence[tuple[int, ...]]) -> None:
    for i, shape in enumerate(shapes):
        if shape != shapes[0]:
            raise ShapeError(
                f"samples of different shapes cannot be stacked: {list(shapes[0])} first, "
                f"and {list(shape)} at place {i} of the batch",
                help="pad or crop the samples, or give the loader a collate_fn",
            )


def _numeric(array: np.ndarray) -> np.ndarray:
    dtypes.from_numpy(array.dtype)
    return array


@located
def default_convert(data: Any) -> Any:
    """Convert the NumPy arrays in a sample to tensors, within containers too; leave everything else."""
    if isinstance(data, Tensor):
        return data
    if isinstance(data, (np.ndarray, np.generic)):
        return data if data.dtype.kind in "SUO" else as_tensor(data)
    if isinstance(data, Mapping):
        return _like(data, {name: default_convert(each) for name, each in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(default_convert, data))
    if isinstance(data, tuple):
        return [default_convert(each) for each in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _like(data, [default_convert(each) for each in data])
    return data


def map_tensors(function: Callable[[Tensor], Tensor], batch: Any) -> Any:
    """A batch with a function applied to each tensor in its containers."""
    if isinstance(batch, Tensor):
        return function(batch)
    if isinstance(batch, Mapping):
        return _like(batch, {name: map_tensors(function, each) for name, each in batch.items()})
    if isinstance(batch, tuple):
        fields = [map_tensors(function, each) for each in batch]
        return type(batch)(*fields) if hasattr(batch, "_fields") else tuple(fields)
    if isinstance(batch, Sequence) and not isinstance(batch, (str, bytes)):
        return _like(batch, [map_tensors(function, each) for each in batch])
    return batch


def _like(model: Any, fields: Any) -> Any:
    """A container of the model's class with these fields, where the class lets one be made."""
    if type(model) in (dict, list):
        return fields
    try:
        if isinstance(model, (MutableMapping, MutableSequence)):
            made: Any = copy.copy(model)
            if isinstance(model, MutableMapping):
                made.update(fields)
            else:
                made[:] = fields
            return made
        return type(model)(fields)
    except TypeError:
        return (
            fields  # a range, say, or a mapping without such a constructor: PyTorch gives the plain one too
        )
