"""Rows on bits and on truth values: bitwise_and to logical_xor, and the shifts."""

from tenfold import flat
from tenfold.ops.promote import common
from tenfold.ops.table import op


def _bitwise(name, build):
    """Rows for a bitwise op on two tensors, and on a tensor and a number either way."""

    @op(
        f"bitwise_{name}.Tensor(Tensor self, Tensor other) -> Tensor",
        promote=common,
        inplace=True,
    )
    @op(
        f"bitwise_{name}.Scalar(Tensor self, Scalar other) -> Tensor",
        promote=common,
        inplace=True,
        torch_dialect=f"bitwise_{name}(self, full_tensor(other, self))",
    )
    @op(
        f"bitwise_{name}.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
        promote=common,
        method=False,
        torch_dialect=f"bitwise_{name}(full_tensor(self, other), other)",
    )
    def bitwise(x, y):
        return build(x, y)


_bitwise("and", flat.logical_and)
_bitwise("or", flat.logical_or)
_bitwise("xor", flat.logical_xor)


@op("bitwise_not(Tensor self) -> Tensor", inplace=True)
def bitwise_not(x):
    return flat.invert(x)


@op(
    "bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor",
    "bitwise_left_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor",
    promote=common,
    inplace=True,
)
@op("bitwise_left_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", promote=common, method=False)
def left_shift(x, y):
    """self << other; bits shifted out are lost."""
    return flat.shift_left(x, y)


@op(
    "bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor",
    "bitwise_right_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor",
    promote=common,
    inplace=True,
)
@op("bitwise_right_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", promote=common, method=False)
def right_shift(x, y):
    """self >> other; the sign of a signed integer is kept."""
    x, y = flat.broadcast(x, y)
    return flat.shift_right(x, y) if x.dtype.is_signed else flat.shift_right_logical(x, y)


def truth(x):
    """Each element as bool: whether it is not zero."""
    return x if x.dtype.kind == "bool" else flat.ne(x, 0)


@op("logical_not(Tensor self) -> Tensor", inplace=True)
def logical_not(x):
    return flat.invert(truth(x))


@op("logical_and(Tensor self, Tensor other) -> Tensor", inplace=True)
def logical_and(x, y):
    return flat.logical_and(truth(x), truth(y))


@op("logical_or(Tensor self, Tensor other) -> Tensor", inplace=True)
def logical_or(x, y):
    return flat.logical_or(truth(x), truth(y))


@op("logical_xor(Tensor self, Tensor other) -> Tensor", inplace=True)
def logical_xor(x, y):
    return flat.logical_xor(truth(x), truth(y))
