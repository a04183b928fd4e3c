"""Quantized tensors: integers together with their scale and zero point.

They are made, taken apart and turned into floats again; to compute with them, `dequantize` them. What they
hold are ordinary tensors, so a program with them is recorded like any other."""

from __future__ import annotations

from typing import Any

from tenfold.base.errors import ArgumentError, DTypeError, UnknownName, located
from tenfold.base.quantized_dtypes import (
    BY_STORAGE,
    QuantizedDType,
    per_channel_affine,
    per_tensor_affine,
    qscheme,
)
from tenfold.base.size import Size
from tenfold.base.source import capture
from tenfold.ops.plain import plain
from tenfold.ops.table import OTHERS
from tenfold.tensor import Tensor, dispatch


def _call(name: str, *arguments: Any) -> Tensor:
    return dispatch.function(name, OTHERS["quantized_decomposed"][name])(*arguments)


class QuantizedTensor:
    """Integers that stand for (integer - zero_point) · scale, with one scale, or one for each index along
    `axis`."""

    is_quantized = True
    requires_grad = False

    def __init__(self, integers: Tensor, scale: Any, zero_point: Any, axis: int | None = None):
        if integers.dtype not in BY_STORAGE:
            raise DTypeError(
                f"integers of a quantized tensor are int8, uint8 or int32, not {integers.dtype.name}"
            )
        self._integers, self._scale, self._zero_point, self._axis = integers, scale, zero_point, axis
        self.dtype: QuantizedDType = BY_STORAGE[integers.dtype]

    @property
    def shape(self) -> Size:
        return self._integers.shape

    @property
    def device(self) -> Any:
        return self._integers.device

    @property
    def ndim(self) -> int:
        return self._integers.ndim

    def size(self, dim: int | None = None) -> Any:
        return self._integers.size(dim)

    def numel(self) -> int:
        return self._integers.numel()

    def int_repr(self) -> Tensor:
        """The integers."""
        return self._integers.clone()

    def dequantize(self) -> Tensor:
        """The numbers that the integers stand for, as float32."""
        low, high = self.dtype.bounds
        stored, operands = self.dtype.storage, (self._integers, self._scale, self._zero_point)
        if self._axis is None:
            return _call("dequantize_per_tensor", *operands, low, high, stored)
        return _call("dequantize_per_channel", *operands, self._axis, low, high, stored)

    def qscheme(self) -> qscheme:
        return per_tensor_affine if self._axis is None else per_channel_affine

    def q_scale(self) -> float:
        self._require(per_tensor=True)
        return float(self._scale)

    def q_zero_point(self) -> int:
        self._require(per_tensor=True)
        return int(self._zero_point)

    def q_per_channel_scales(self) -> Tensor:
        self._require(per_tensor=False)
        return self._scale.double()

    def q_per_channel_zero_points(self) -> Tensor:
        self._require(per_tensor=False)
        return self._zero_point.long()

    def q_per_channel_axis(self) -> int:
        self._require(per_tensor=False)
        assert self._axis is not None
        return self._axis

    def _require(self, per_tensor: bool) -> None:
        if (self._axis is None) != per_tensor:
            raise ArgumentError(f"not a question about a tensor quantized {self.qscheme()}").located(
                "quantized", capture()
            )

    def item(self) -> Any:
        return self.dequantize().item()

    def tolist(self) -> Any:
        return self.dequantize().tolist()

    def __repr__(self) -> str:
        return f"{self.dequantize()!r} as {self.dtype!r}, {self.qscheme()!r}"

    def __getattr__(self, name: str) -> Any:
        raise UnknownName(
            f"a quantized tensor has no {name!r}: nothing is computed with one",
            help="call dequantize() first",
        ).located("quantized", capture())


def _bounds(dtype: Any) -> tuple[int, int]:
    if not isinstance(dtype, QuantizedDType):
        raise DTypeError(f"takes qint8, quint8 or qint32, not {dtype!r}")
    return dtype.bounds


@located
def quantize_per_tensor(input: Tensor, scale: Any, zero_point: Any, dtype: Any) -> QuantizedTensor:
    """round(input / scale) + zero_point, together with the scale and the zero point."""
    low, high = _bounds(dtype)
    name = "quantize_per_tensor"
    scale = scale.item() if isinstance(scale, Tensor) else float(scale)
    zero_point = zero_point.item() if isinstance(zero_point, Tensor) else int(zero_point)
    quantized = _call(name, input, scale, zero_point, low, high, dtype.storage)
    return QuantizedTensor(quantized, scale, zero_point)


@located
def quantize_per_channel(
    input: Tensor, scales: Tensor, zero_points: Tensor, axis: int, dtype: Any
) -> QuantizedTensor:
    """Like `quantize_per_tensor`, with a scale and a zero point for each index along an axis."""
    low, high = _bounds(dtype)
    quantized = _call("quantize_per_channel", input, scales, zero_points, axis, low, high, dtype.storage)
    return QuantizedTensor(quantized, scales.clone(), zero_points.clone(), axis)


def _put_together(integers: Tensor, scale: Any, zero_point: Any, axis: int | None = None) -> QuantizedTensor:
    """A quantized tensor of copies: what is written to its parts later does not reach it."""
    own = lambda part: part.clone() if isinstance(part, Tensor) else part
    return QuantizedTensor(integers.clone(), own(scale), own(zero_point), axis)


@located
def dequantize(tensors: Any) -> Any:
    """Convert one or several quantized tensors to float32."""
    if isinstance(tensors, (list, tuple)):
        return tuple([dequantize(tensor) for tensor in tensors])
    if isinstance(tensors, Tensor):
        return tensors.float()
    return _quantized(tensors).dequantize()


def _quantized(value: Any) -> QuantizedTensor:
    if not isinstance(value, QuantizedTensor):
        raise ArgumentError(f"takes a quantized tensor, not {type(value).__name__}")
    return value


def _asking(name: str) -> Any:
    def call(input: Any) -> Any:
        return getattr(_quantized(input), name)()

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"`{name}` of a quantized tensor."
    return located(call)


int_repr, q_scale, q_zero_point = _asking("int_repr"), _asking("q_scale"), _asking("q_zero_point")
q_per_channel_scales = _asking("q_per_channel_scales")
q_per_channel_zero_points = _asking("q_per_channel_zero_points")
q_per_channel_axis = _asking("q_per_channel_axis")

_make_per_tensor_quantized_tensor = _make_per_channel_quantized_tensor = located(_put_together)

# The same by ATen's names


plain("quantize_per_tensor(Tensor self, float scale, int zero_point, ScalarType dtype) -> Tensor")(
    quantize_per_tensor
)
plain(
    "quantize_per_channel(Tensor self, Tensor scales, Tensor zero_points, int axis, ScalarType dtype) "
    "-> Tensor"
)(quantize_per_channel)
plain("dequantize.self(Tensor self) -> Tensor", "dequantize.tensor(Tensor qtensor) -> Tensor")(dequantize)
plain("int_repr(Tensor self) -> Tensor")(int_repr)
plain(
    "_make_per_tensor_quantized_tensor(Tensor self, float scale, int zero_point) -> Tensor",
    "_make_per_channel_quantized_tensor(Tensor self, Tensor scale, Tensor zero_point, int axis) -> Tensor",
)(_put_together)
