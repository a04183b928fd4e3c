"""The dtypes of quantized tensors: integers that mean numbers by a scale and a zero point beside them."""

from __future__ import annotations

from tenfold.base import dtypes, package
from tenfold.base.dtypes import DType, NamedDType


class QuantizedDType(NamedDType):
    """`qint8` and the like: the name, and the dtype of the integers."""

    __slots__ = ("storage",)
    __module__ = __name__

    def __init__(self, name: str, storage: DType):
        super().__init__(name, name, name, storage.numpy, "int")
        self.storage = storage

    @property
    def bounds(self) -> tuple[int, int]:
        info = dtypes.iinfo(self.storage)
        return int(info.min), int(info.max)


qint8 = QuantizedDType("qint8", dtypes.int8)
quint8 = QuantizedDType("quint8", dtypes.uint8)
qint32 = QuantizedDType("qint32", dtypes.int32)
BY_STORAGE = {each.storage: each for each in (qint8, quint8, qint32)}


class qscheme(str):
    """How scales are meant: `per_tensor_affine` is one for all, `per_channel_affine` one for each channel."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{package.shown}.{self!s}"


per_tensor_affine, per_channel_affine = qscheme("per_tensor_affine"), qscheme("per_channel_affine")
# How an observer chooses zero points; the tensors that result are affine.
per_tensor_symmetric, per_channel_symmetric = (
    qscheme("per_tensor_symmetric"),
    qscheme("per_channel_symmetric"),
)
