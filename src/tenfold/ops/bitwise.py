"""Rows on bits and on truth values: bitwise_and to logical_xor, and the shifts."""

from tenfold import flat
from tenfold.ops.promote import common
from tenfold.ops.table import op


def _bitwise(name, sign, build):
    """Rows for a bitwise op on two tensors, and on a tensor and a number either way."""
    meaning = f"self {sign} other, bit by bit; of bools the logical {name}"

    @op(
        f"bitwise_{name}.Tensor(Tensor self, Tensor other) -> Tensor",
        promote=common,
        meaning=meaning,
        inplace=True,
    )
    @op(
        f"bitwise_{name}.Scalar(Tensor self, Scalar other) -> Tensor",
        promote=common,
        meaning=meaning,
        inplace=True,
        torch_dialect=f"bitwise_{name}(self, full_tensor(other, self))",
    )
    @op(
        f"bitwise_{name}.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
        promote=common,
        meaning=meaning,
        method=False,
        torch_dialect=f"bitwise_{name}(full_tensor(self, other), other)",
    )
    def bitwise(x, y):
        return build(x, y)


_bitwise("and", "&", flat.logical_and)
_bitwise("or", "|", flat.logical_or)
_bitwise("xor", "^", flat.logical_xor)


@op("bitwise_not(Tensor self) -> Tensor", inplace=True)
def bitwise_not(x):
    """~self: each bit inverted; of a bool, its negation"""
    return flat.invert(x)


@op("bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor", promote=common, inplace=True)
@op(
    "bitwise_left_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor",
    promote=common,
    inplace=True,
    torch_dialect="bitwise_left_shift(self, full_tensor(other, self))",
)
@op(
    "bitwise_left_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
    promote=common,
    method=False,
    torch_dialect="bitwise_left_shift(full_tensor(self, other), other)",
)
def left_shift(x, y):
    """self << other; bits shifted out are lost."""
    return flat.shift_left(x, y)


@op("bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor", promote=common, inplace=True)
@op(
    "bitwise_right_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor",
    promote=common,
    inplace=True,
    torch_dialect="bitwise_right_shift(self, full_tensor(other, self))",
)
@op(
    "bitwise_right_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
    promote=common,
    method=False,
    torch_dialect="bitwise_right_shift(full_tensor(self, other), other)",
)
def right_shift(x, y):
    """self >> other; the sign of a signed integer is kept."""
    x, y = flat.broadcast(x, y)
    return flat.shift_right(x, y) if x.dtype.is_signed else flat.shift_right_logical(x, y)


def truth(x):
    """Each element as bool: whether it is not zero."""
    return x if x.dtype.kind == "bool" else flat.ne(x, 0)


@op("logical_not(Tensor self) -> Tensor", inplace=True, casts_out=True)
def logical_not(x):
    """Whether self is zero"""
    return flat.invert(truth(x))


@op("logical_and(Tensor self, Tensor other) -> Tensor", inplace=True, casts_out=True)
def logical_and(x, y):
    """Whether neither self nor other is zero"""
    return flat.logical_and(truth(x), truth(y))


@op("logical_or(Tensor self, Tensor other) -> Tensor", inplace=True, casts_out=True)
def logical_or(x, y):
    """Whether self or other, or both, is not zero"""
    return flat.logical_or(truth(x), truth(y))


@op("logical_xor(Tensor self, Tensor other) -> Tensor", inplace=True, casts_out=True)
def logical_xor(x, y):
    """Whether just one of self and other is not zero"""
    return flat.logical_xor(truth(x), truth(y))
