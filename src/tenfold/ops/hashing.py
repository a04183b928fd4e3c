"""A number that tells tensors apart by all of their bits."""

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, DTypeError
from tenfold.ops.samples import S, T
from tenfold.ops.table import op


@op(
    "hash_tensor(Tensor self, int[1] dim=[], *, bool keepdim=False, int mode=0) -> Tensor",
    samples=lambda: [S(T(3, 4)), S(T(3, 4), (0,)), S(T(2, 3, 4), (1,), keepdim=True), S(T())],
    differentiable=False,
)
def hash_tensor(x, dims, keepdim, mode):
    """The exclusive or of all elements' bits: of floats as float64, of integers as int64"""
    if mode != 0:
        raise ArgumentError(f"mode {mode} is not known", help="use mode=0, the exclusive or")
    if x.dtype.is_complex:
        raise DTypeError(f"hash_tensor is not defined for {x.dtype.name}")
    wide = flat.convert(x, dtypes.float64 if x.dtype.is_floating_point else dtypes.int64)
    return flat.reduce(flat.bitcast(wide, dtypes.uint64), "xor", dims, keepdim)
