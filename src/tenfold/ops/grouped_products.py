"""Products of matrices that are scaled, as those of float8, or stand in groups; and a product of three."""

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, DTypeError, ShapeError, UnsupportedError
from tenfold.ops.contraction import check_ranks, matmul
from tenfold.ops.samples import S, T
from tenfold.ops.table import op


def _f8(*shape):
    return T(*shape, dtype="float8_e4m3fn")


def _scale(*shape):
    return T(*shape, dtype="float32", low=0.5, high=2)


def _dot(x, y):
    """The product of two matrices, summed in float32."""
    return matmul(flat.convert(x, dtypes.float32), flat.convert(y, dtypes.float32))


@op(
    "_scaled_mm(Tensor self, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? bias=None, "
    "Tensor? scale_result=None, ScalarType? out_dtype=None, bool use_fast_accum=False) -> Tensor",
    method=False,
    samples=lambda: [
        S(_f8(16, 32), _f8(32, 16), _scale(), _scale(), out_dtype="float32"),
        S(_f8(16, 32), _f8(32, 16), _scale(), _scale(), T(16, dtype="float16"), None, "float16"),
    ],
    flops="_scaled_mm",
)
def scaled_mm(x, y, scale_x, scale_y, bias, scale_result, dtype, fast):
    """(self · scale_a) @ (mat2 · scale_b) + bias; a scale is one number, or one for each row or column"""
    check_ranks("_scaled_mm", (x, 2), (y, 2))
    for each in (x, y):
        if not (each.dtype.is_floating_point and each.dtype.itemsize == 1):
            raise DTypeError(f"_scaled_mm takes float8 matrices, not {each.type}")
    found = _dot(x, y)
    for scale, alone in ((scale_x, (x.shape[0], 1)), (scale_y, (1, y.shape[1]))):
        if scale.dtype is not dtypes.float32:
            raise DTypeError(f"_scaled_mm: scales are float32, not {scale.dtype.name}")
        if scale.numel == 1:
            found = found * flat.reshape(scale, ())
        elif scale.shape == alone:
            found = found * scale
        else:
            raise ShapeError(f"_scaled_mm: a scale is one number or of shape {list(alone)}, not {scale.type}")
    if bias is not None:
        found = found + flat.convert(bias, dtypes.float32)
    made = dtype or x.dtype
    if scale_result is not None and made.itemsize == 1:
        found = found * flat.reshape(scale_result, ())
    return flat.convert(found, made)


@op(
    "_scaled_mm_v2(Tensor self, Tensor mat2, Tensor[] scale_a, int[] recipe_a, int[] swizzle_a, "
    "Tensor[] scale_b, int[] recipe_b, int[] swizzle_b, Tensor? bias, ScalarType? out_dtype, "
    "int[] contraction_dim=[], bool use_fast_accum=False) -> Tensor",
    method=False,
    samples=lambda: [
        S(_f8(16, 32), _f8(32, 16), (_scale(),), (0,), (0,), (_scale(),), (0,), (0,), None, "float32"),
    ],
)
def scaled_mm_by_recipe(
    x, y, scales_x, recipe_x, swizzle_x, scales_y, recipe_y, swizzle_y, bias, dtype, contraction, fast
):
    """`_scaled_mm`, with the kind of scales: 0 for one of a whole matrix, 1 for one of each row or column"""
    plain = all(each in ((0,), (1,)) for each in (tuple(recipe_x), tuple(recipe_y)))
    swizzled = any((*swizzle_x, *swizzle_y)) or contraction
    if not plain or swizzled or len(scales_x) != 1 or len(scales_y) != 1:
        raise UnsupportedError(
            "scales by blocks are laid out for one vendor's GPUs",
            help="scale whole matrices, rows or columns",
        )
    return scaled_mm(x, y, scales_x[0], scales_y[0], bias, None, dtype, fast)


def _ends(offsets, count, extent):
    """For each group, which places along a dimension of this extent are its own: bools [group, place]."""
    if offsets is None or offsets.shape != (count,) or offsets.dtype is not dtypes.int32:
        found = "none" if offsets is None else str(offsets.type)
        raise ShapeError(f"_grouped_mm: the ends of {count} groups are i32[{count}], not {found}")
    place = flat.iota((count, extent), 1, dtypes.int32)
    ends = flat.broadcast_to(flat.unsqueeze(offsets, 1), (count, extent))
    zero = flat.full((1,), 0, dtypes.int32)
    before = flat.concatenate([zero, flat.slice_dim(offsets, 0, 0, max(count - 1, 0))], 0)
    starts = flat.broadcast_to(flat.unsqueeze(flat.slice_dim(before, 0, 0, count), 1), (count, extent))
    return flat.ge(place, starts) & flat.lt(place, ends)


@op(
    "_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None) "
    "-> Tensor",
    method=False,
    samples=lambda: [
        S(T(16, 32), T(32, 16), T(1, dtype="int32", low=32, high=33)),
    ],
)
def grouped_mm(x, y, offsets, bias, dtype):
    """Products of the groups of matrices: one for each group, where `offs` says where along the dimension
    that a matrix shares with others its groups end"""
    if x.rank not in (2, 3) or y.rank not in (2, 3):
        raise ShapeError(f"_grouped_mm takes matrices or stacks of them, not {x.type} and {y.type}")
    if bias is not None:
        raise UnsupportedError("_grouped_mm: a bias is not supported", help="add it to the result")
    if x.dtype is not y.dtype or x.dtype not in (dtypes.float32, dtypes.bfloat16, dtypes.float16):
        raise DTypeError(f"_grouped_mm takes float32 or half matrices, not {x.type} and {y.type}")
    made = dtype or x.dtype
    a, b = flat.convert(x, dtypes.float32), flat.convert(y, dtypes.float32)
    if x.rank == 3 and y.rank == 3:
        if offsets is not None:
            raise ArgumentError("_grouped_mm: stacks of matrices have no offs")
        return flat.convert(matmul(a, b), made)
    if x.rank == 2 and y.rank == 3:  # groups of rows
        own = _ends(offsets, y.shape[0], x.shape[0])
        return flat.convert(_summed(own, a, b, rows=True), made)
    if x.rank == 3:  # groups of columns
        own = _ends(offsets, x.shape[0], y.shape[1])
        return flat.convert(_summed(own, a, b, rows=False), made)
    if offsets is None or offsets.rank != 1:
        raise ShapeError("_grouped_mm: offs says where the groups end")
    own = _ends(offsets, offsets.shape[0], x.shape[1])
    groups = [flat.where(flat.unsqueeze(_row(own, g), 0), a, 0.0) for g in range(offsets.shape[0])]
    return flat.convert(flat.concatenate([flat.unsqueeze(matmul(group, b), 0) for group in groups], 0), made)


def _row(values, g):
    return flat.reshape(flat.slice_dim(values, 0, g, g + 1), values.shape[1:])


def _summed(own, a, b, rows):
    """The sum over groups of the products, each with what is not the group's own taken as zero."""
    total = None
    stack = b if rows else a
    for g in range(stack.shape[0]):
        mask = flat.unsqueeze(_row(own, g), 1 if rows else 0)
        part = (
            matmul(flat.where(mask, a, 0.0), _row(b, g))
            if rows
            else matmul(_row(a, g), flat.where(mask, b, 0.0))
        )
        total = part if total is None else total + part
    if total is None:
        raise ShapeError("_grouped_mm: there are no groups")
    return total


@op(
    "_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] expand3, int[] sumdim, "
    "int unroll_dim=1) -> Tensor",
    method=False,
    samples=lambda: [
        S(T(2, 3), T(4, 3, 5), T(2, 5), (1, 3), (0,), (1, 2), (2, 3)),
        S(T(2, 3), T(2, 3), T(2, 3), (), (), (), (1,), 0),
        S(T(3, 4), T(4), T(3), (), (0,), (1,), ()),
        S(T(2, 3), T(2, 3), T(2, 3), (0,), (0,), (0,), (2,), 0),
    ],
)
def trilinear(x, y, z, expand_x, expand_y, expand_z, summed, unrolled):
    """sum(i1 · i2 · i3) over `sumdim`, each with dimensions of one element put in to be expanded"""
    rank = x.rank + len(expand_x)
    if not 0 <= unrolled < max(rank, 1):
        raise ArgumentError(f"_trilinear: unroll_dim={unrolled} is no dimension of {rank}")
    spread = []
    for value, dims in ((x, expand_x), (y, expand_y), (z, expand_z)):
        for dim in sorted(dims):
            value = flat.unsqueeze(value, dim)
        spread.append(value)
    product = spread[0] * spread[1] * spread[2]
    # As in ATen, a dimension that is put into all three has no size of its own: the result is empty there.
    for dim in {*expand_x} & {*expand_y} & {*expand_z}:
        product = flat.slice_dim(product, dim, 0, 0)
    return flat.reduce(product, "add", list(summed)) if summed else product
