"""The properties of a tensor that need no computation: sizes, dtype, device and memory layout."""

from __future__ import annotations

import operator
from typing import Any

from tenfold.base.devices import Device
from tenfold.base.dtypes import DType
from tenfold.base.errors import ArgumentError, IndexOutOfRange
from tenfold.base.late import on_first_use
from tenfold.base.layouts import strided
from tenfold.base.size import Size, of_ints
from tenfold.base.source import capture
from tenfold.flat.strides import FORMATS, contiguous, follows, is_contiguous
from tenfold.tensor import views
from tenfold.trace.context import context
from tenfold.trace.graph import Holder, Value

with on_first_use(__name__):
    from tenfold.base import watched_sizes


class Described(Holder):
    """The base class of Tensor with the properties that follow from its type and its alias."""

    __slots__ = ()
    _value: Value
    _alias: views.Alias | None

    @property
    def shape(self) -> Size:
        shape = self._value.type.shape
        return of_ints(shape if context.asked is None else watched_sizes.watched(shape, context.asked, 2))

    @property
    def dtype(self) -> DType:
        return self._value.type.dtype

    @property
    def device(self) -> Device:
        return self._value.device

    @property
    def ndim(self) -> int:
        return self._value.type.rank

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.dtype.itemsize * self._value.type.numel

    @property
    def is_cuda(self) -> bool:
        return self.device.type == "cuda"

    @property
    def is_cpu(self) -> bool:
        return self.device.type == "cpu"

    @property
    def is_meta(self) -> bool:
        return self.device.type == "meta"

    @property
    def layout(self) -> str:
        return strided

    # A plain tensor is dense, and stores its elements as they are, on a device that XLA reaches.
    is_sparse = is_sparse_csr = is_quantized = is_nested = False
    is_ipu = is_maia = is_mkldnn = is_mps = is_mtia = is_vulkan = is_xla = is_xpu = False

    def dim(self) -> int:
        return self._value.type.rank

    def ndimension(self) -> int:
        return self._value.type.rank

    def numel(self) -> int:
        count = self._value.type.numel
        return count if context.asked is None else watched_sizes.watched((count,), context.asked, 2)[0]

    nelement = numel

    def element_size(self) -> int:
        return self.dtype.itemsize

    def size(self, dim: int | None = None) -> Any:
        sizes = self._value.type.shape
        shape = of_ints(sizes if context.asked is None else watched_sizes.watched(sizes, context.asked, 2))
        return shape if dim is None else shape[_axis(self, dim, "size")]

    def stride(self, dim: int | None = None) -> Any:
        strides = contiguous(self.shape) if self._alias is None else self._alias.strides
        return strides if dim is None else strides[_axis(self, dim, "stride")]

    def storage_offset(self) -> int:
        return 0 if self._alias is None else self._alias.offset

    def is_contiguous(self, memory_format: str = "contiguous_format") -> bool:
        """Whether the elements lie in memory in this order, without gaps."""
        if memory_format in FORMATS:
            return follows(self.shape, self.stride(), memory_format)
        if memory_format != "contiguous_format":
            raise ArgumentError(
                f"a tensor is not stored in {memory_format!r}",
                help=f"ask for contiguous_format, {' or '.join(FORMATS)}",
            ).located("is_contiguous", capture())
        return self._alias is None or is_contiguous(self.shape, self._alias.strides)

    def is_floating_point(self) -> bool:
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        return self.dtype.is_complex

    def is_signed(self) -> bool:
        return self.dtype.is_signed

    def is_conj(self) -> bool:
        """False: conjugation is computed, not marked by a bit."""
        return False

    def is_neg(self) -> bool:
        """False: negation is computed, not marked by a bit."""
        return False

    def get_device(self) -> int:
        return -1 if self.device.type == "cpu" else self.device.resolved.index or 0


def _axis(tensor: Described, dim: int, asked: str) -> int:
    try:
        place = operator.index(dim)
    except TypeError:
        raise ArgumentError(f"a dimension is an int, not {type(dim).__name__}").located(
            asked, capture()
        ) from None
    if not -tensor.ndim <= place < tensor.ndim:
        raise IndexOutOfRange(
            f"dimension {place} is out of range for a tensor of {tensor.ndim} dimensions"
        ).located(asked, capture())
    return place
