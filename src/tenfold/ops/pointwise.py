"""Pointwise rows: arithmetic."""

from tenfold import flat
from tenfold.ops.promote import common, to_float
from tenfold.ops.table import op


@op("tanh(Tensor self) -> Tensor", promote=to_float, inplace=True)
def tanh(x):
    return flat.tanh(x)


@op(
    "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    "add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    promote=common,
    inplace=True,
)
def add(x, y, alpha):
    return x + y if alpha == 1 else x + y * alpha


@op("mul.Tensor(Tensor self, Tensor other) -> Tensor", "mul.Scalar(Tensor self, Scalar other) -> Tensor", promote=common, inplace=True)
def mul(x, y):
    return x * y
