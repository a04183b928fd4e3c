"""The rows of PyTorch's namespace `prims`, as far as the torch dialect defines them: ops without broadcasting
and type promotion, each of which does one thing."""

from tenfold import flat
from tenfold.base.errors import ArgumentError, DTypeError, ShapeError
from tenfold.ops.recoding import unchanged, written_back
from tenfold.ops.reductions import counted, fold, sum_dims
from tenfold.ops.statistics import var_correction
from tenfold.ops.table import op
from tenfold.ops.views import as_reshape, squeezed, view_strides


@op("prims::sqrt(Tensor self) -> Tensor")
def sqrt(x):
    """The square root of floats and complex numbers"""
    if x.dtype.kind not in ("float", "complex"):
        raise DTypeError(f"sqrt takes float, complex tensors, not {x.dtype.name}")
    return flat.sqrt(x)


@op("prims::convert_element_type(Tensor a, ScalarType dtype) -> Tensor")
def convert_element_type(x, dtype):
    """a in another dtype"""
    return flat.convert(x, dtype)


@op(
    "prims::iota(SymInt length, *, SymInt start, SymInt step, ScalarType dtype, Device device, "
    "bool requires_grad) -> Tensor"
)
def iota(length, start, step, dtype, requires_grad):
    """start, start + step, … as integers"""
    if dtype.kind != "int":
        raise DTypeError(f"iota makes integers, not {dtype.name}")
    if requires_grad:
        raise ArgumentError("integers have no gradient", help="pass requires_grad=False")
    if length < 0 or step == 0:
        raise ArgumentError(f"iota takes a length from 0 on and a step, not {length} and {step}")
    return flat.iota((length,), 0, dtype) * step + start


@op("prims::sum(Tensor inp, int[]? dims, *, ScalarType? output_dtype=None) -> Tensor")
def sum(x, dims, dtype):
    """The sum over dims, or of all elements; of integers and bools as int64"""
    return sum_dims(x, dims, False, dtype)


@op("prims::prod(Tensor inp, int[]? dims, *, ScalarType? output_dtype=None) -> Tensor")
def prod(x, dims, dtype):
    """The product over dims, or of all elements; of integers and bools as int64"""
    return fold(counted(x, dtype), "mul", dims)


@op("prims::var(Tensor inp, int[]? dims, float? correction=1, *, ScalarType? output_dtype=None) -> Tensor")
def var(x, dims, correction, dtype):
    """sum(|x - mean|**2) / max(0, n - correction)"""
    found = var_correction(x, dims, correction, False)
    return found if dtype is None else flat.convert(found, dtype)


@op("prims::collapse(Tensor a, int start, int end) -> Tensor")
def collapse(x, start, end):
    """Dimensions start to end, that one too, as one."""
    if x.rank and not 0 <= start <= end < x.rank:
        raise ShapeError(f"{start} to {end} are no dimensions of {x.type}")
    if not x.rank:
        return flat.reshape(x, (1,))
    joined = 1
    for extent in x.shape[start : end + 1]:
        joined *= extent
    return flat.reshape(x, (*x.shape[:start], joined, *x.shape[end + 1 :]))


@op(
    "prims::split_dim(Tensor(a) a, int dim, SymInt outer_length) -> Tensor(a)",
    strides=view_strides,
    steps=as_reshape,
)
def split_dim(x, dim, outer):
    """A dimension as two, of which the first has outer_length."""
    if not 0 <= dim < x.rank or outer <= 0 or x.shape[dim] % outer:
        raise ShapeError(f"dimension {dim} of {x.type} cannot be split into {outer} parts")
    return flat.reshape(x, (*x.shape[:dim], outer, x.shape[dim] // outer, *x.shape[dim + 1 :]))


@op("prims::squeeze(Tensor(a) a, int[] dimensions) -> Tensor(a)", strides=squeezed, steps=as_reshape)
def squeeze(x, dims):
    """x without these dimensions, each of one element."""
    for dim in dims:
        if not 0 <= dim < x.rank or x.shape[dim] != 1:
            raise ShapeError(f"dimension {dim} of {x.type} is not one of one element")
    return flat.reshape(x, [extent for d, extent in enumerate(x.shape) if d not in dims])


@op("prims::view_of(Tensor(a) a) -> Tensor(a)", strides=unchanged, write=written_back)
def view_of(x):
    """a itself, as a view"""
    return x
