"""Tensors on a mesh: how one is sharded, and one laid out as another."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold import flat
from tenfold.base.dtypes import DType
from tenfold.base.meshes import MeshDevice, Sharding
from tenfold.base.source import capture
from tenfold.flat.ir import TensorType, Value
from tenfold.flat.sharding import constrained, gathered
from tenfold.ops.callee import Program, programs
from tenfold.tensor.tensor import Tensor
from tenfold.trace import graph


def sharding_of(value: graph.Value) -> Sharding | None:
    """How a value is sharded, where that is known: it has data, on a mesh."""
    if value.device.mesh is None or value.buffer is None:
        return None
    from tenfold.engines import sharded

    if type(value.buffer) is np.ndarray:
        return Sharding.replicated(value.device.mesh, value.type.rank)
    return sharded.sharding_if_any(value.buffer)


def placed_as(tensor: Tensor) -> Sharding | None:
    """How a tensor that was moved to a mesh is sharded, whatever was written to it since; for others, where
    that is known."""
    if tensor._value.device.mesh is None and tensor._value.device.type != "meta":
        return None
    return vars(tensor).get("_placed") or sharding_of(tensor._value)


def leaf_of(buffer: Any, type: TensorType, sharding: Sharding) -> Tensor:
    """A tensor that holds a buffer on a mesh."""
    value = graph.Value(type, MeshDevice(sharding.mesh), buffer=buffer)
    value.source = capture()
    return Tensor(value)


def put(array: np.ndarray, type: TensorType, sharding: Sharding) -> Tensor:
    """A tensor of a host array, laid out over a mesh."""
    from tenfold.engines import sharded

    return leaf_of(sharded.put(array, sharding), type, sharding)


def leaf_like(array: np.ndarray, like: Tensor, dtype: DType | None = None) -> Tensor:
    """A tensor of a host array, sharded as another is."""
    value = like._value
    sharding = placed_as(like) or Sharding.replicated(value.device.mesh, array.ndim)
    return put(array, TensorType(dtype or value.type.dtype, tuple(array.shape)), sharding)


def constrain(tensor: Tensor, sharding: Sharding, backward: Sharding | None = None) -> Tensor:
    """The same tensor, sharded so; its gradient as `backward`, where that is said."""
    value = tensor.current()
    key = ("redistribute", value.type, sharding, backward)
    program = programs.get(key, lambda: _constraint(value.type, sharding, backward))
    return Tensor(graph.call_program(program, (value,), capture(), MeshDevice(sharding.mesh))[0])


def gather(tensor: Tensor, whole: Sharding, kept: Sharding, dtype: DType, reduce_dtype: DType) -> Tensor:
    """A parameter of sharding `kept` in another dtype and sharding; its gradient is added up over the devices
    in `reduce_dtype`, and sharded as the parameter."""
    value = tensor.current()
    key = ("gather", value.type, whole, kept, dtype, reduce_dtype)

    def build() -> Program:
        param = Value(value.type)
        result = gathered(param, whole, kept, dtype, reduce_dtype)
        return Program(flat.Function([param], [result], "gather"))

    program = programs.get(key, build)
    return Tensor(graph.call_program(program, (value,), capture(), MeshDevice(whole.mesh))[0])


def as_sharded(tensor: Tensor, like: Tensor) -> Tensor:
    """A tensor sharded as another of its shape is, where that is known."""
    sharding = placed_as(like)
    if sharding is None or sharding is sharding_of(tensor._value):
        return tensor
    return constrain(tensor, sharding)


def _constraint(type: TensorType, sharding: Sharding, backward: Sharding | None) -> Program:
    param = Value(type)
    return Program(flat.Function([param], [constrained(param, sharding, backward)], "redistribute"))
