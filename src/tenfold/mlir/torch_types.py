"""How the torch dialect writes types and enumerations: text and numbers alone, no MLIR is needed here."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tenfold.base.dtypes import ALL, DType
from tenfold.base.errors import ArgumentError, UnsupportedError
from tenfold.flat.ir import TensorType

# PyTorch's ScalarType, by our dtypes' names: an argument of that type is an int in the dialect.
SCALAR_TYPES = {
    "uint8": 0,
    "int8": 1,
    "int16": 2,
    "int32": 3,
    "int64": 4,
    "float16": 5,
    "float32": 6,
    "float64": 7,
    "complex64": 9,
    "complex128": 10,
    "bool": 11,
    "bfloat16": 15,
    "float8_e5m2": 23,
    "float8_e4m3fn": 24,
    "uint16": 27,
    "uint32": 28,
    "uint64": 29,
}
# What ATen passes as words and the dialect, as PyTorch itself does, as numbers.
ENUMERATIONS = {
    "MemoryFormat": {
        "contiguous_format": 0,
        "preserve_format": 1,
        "channels_last": 2,
        "channels_last_3d": 3,
    },
    "Layout": {"strided": 0},
}
ANY_SIZE = (1 << 63) - 1
# The type of a list's elements, by the schema's kind; tensors aside.
ELEMENTS = {"int": "int", "float": "float", "bool": "bool", "str": "str", "ScalarType": "int"}


def element_text(dtype: DType) -> str:
    """A dtype as the dialect writes it: integers with their sign, `si64`, where StableHLO has `i64`."""
    return f"s{dtype.mlir}" if dtype.kind == "int" and dtype.is_signed else dtype.mlir


def tensor_text(type: TensorType, values: bool) -> str:
    """`!torch.vtensor<[2,3],f32>`, or `!torch.tensor<…>` for one that may be written to."""
    extents = ",".join(map(str, type.shape))
    return f"!torch.{'vtensor' if values else 'tensor'}<[{extents}],{element_text(type.dtype)}>"


def read_tensor(text: str, values: bool) -> TensorType | None:
    """The type that `tensor_text` writes so; None for one whose shape or dtype is not known, or that is no
    such tensor."""
    match = re.fullmatch(rf"!torch\.{'vtensor' if values else 'tensor'}<\[([\d,]*)\],([^,<>]+)>", text)
    dtype = next((each for each in ALL if match and element_text(each) == match[2]), None)
    if match is None or dtype is None:
        return None
    return TensorType(dtype, tuple([int(extent) for extent in match[1].split(",") if extent]))


def builtin_text(type: TensorType) -> str:
    """The type of a literal's elements, `tensor<2x3xsi64>`."""
    extents = "".join(f"{extent}x" for extent in type.shape)
    return f"tensor<{extents}{element_text(type.dtype)}>"


def list_text(kind: str, optional: bool, values: bool) -> str:
    """The type of a list of what a schema calls `kind`."""
    element = ("vtensor" if values else "tensor") if kind == "Tensor" else ELEMENTS.get(kind)
    if element is None:
        raise UnsupportedError(f"the torch dialect has no list of {kind}s")
    return f"!torch.list<{f'optional<{element}>' if optional else element}>"


def dense_text(array: np.ndarray, type: TensorType) -> str:
    """The elements of a small literal, by their bytes: exact for every dtype."""
    if not array.size:
        return f"dense<> : {builtin_text(type)}"
    if type.dtype.kind == "bool":
        return f"dense<{str(array.tolist()).lower()}> : {builtin_text(type)}"
    return f'dense<"0x{np.ascontiguousarray(array).tobytes().hex()}"> : {builtin_text(type)}'


def symbol_text(dim: Any) -> tuple[str, dict[str, int]]:
    """The name and bounds of an open size. Of a multiple of 8 the symbol is an eighth."""
    step = dim.multiple
    most = ANY_SIZE if dim.max is None else dim.max // step
    name = dim.name if step == 1 else f"{dim.name}_by_{step}"
    return name, {"min_val": dim.min // step, "max_val": most}


def shape_text(shape: Sequence[Any], places: Mapping[Any, int], dims: Sequence[Any]) -> str:
    """A shape by its symbols, `affine_map<()[s0] -> (s0, 3)>`."""
    symbols = ", ".join(f"s{i}" for i in range(len(dims)))
    extents = []
    for extent in shape:
        step = dims[places[extent]].multiple if extent in places else 1
        extents.append(
            f"s{places[extent]}" + (f" * {step}" if step > 1 else "") if extent in places else str(extent)
        )
    return f"affine_map<()[{symbols}] -> ({', '.join(extents)})>"


def constant_text(value: Any) -> tuple[str, str, str | None]:
    """A Python value as a constant op: the op, its type, and its attribute's text."""
    if value is None:
        return "torch.constant.none", "!torch.none", None
    if isinstance(value, bool):
        return "torch.constant.bool", "!torch.bool", "true" if value else "false"
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise ArgumentError(f"!torch.int has 64 bits, too few for {value}")
        return "torch.constant.int", "!torch.int", f"{value} : i64"
    if isinstance(value, float):
        return "torch.constant.float", "!torch.float", _float_text(value)
    raise UnsupportedError(f"the torch dialect has no constant for {value!r}")


def _float_text(value: float) -> str:
    # By its bits: exact, and the same way for infinities, NaN and -0.0.
    return f"0x{np.float64(value).view(np.uint64):016X} : f64"
