"""Rows that copy: what views show, in memory of their own, and conversions by the names of old types."""

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import DTypeError
from tenfold.ops.parts import select, slice, unbind
from tenfold.ops.recoding import view_as_complex, view_as_real
from tenfold.ops.samples import S, T
from tenfold.ops.splitting import split, split_with_sizes
from tenfold.ops.strided import as_strided
from tenfold.ops.table import op
from tenfold.ops.views import permute, squeeze, t, transpose, unsqueeze


@op("alias_copy(Tensor self) -> Tensor", method=False)
@op("detach_copy(Tensor self) -> Tensor", method=False)
def alias_copy(x):
    """self, copied."""
    return flat.reshape(x, x.shape)


@op("_conj_copy(Tensor self) -> Tensor", method=False)
def conj_copy(x):
    """The complex conjugate, copied."""
    if not x.dtype.is_complex:
        raise DTypeError(f"_conj_copy takes complex tensors, not {x.dtype.name}")
    return flat.conj(x)


@op(
    "permute_copy(Tensor self, int[] dims) -> Tensor",
    method=False,
    samples=lambda: [S(T(3, 4), (1, 0)), S(T(2, 3, 4), (2, -3, 1)), S(T(), ())],
)
def permute_copy(x, dims):
    """Dimension i of the result is dimension dims[i] of self, copied."""
    return permute(x, dims)


@op("squeeze_copy(Tensor self) -> Tensor", method=False, samples=lambda: [S(T(1, 3, 1)), S(T()), S(T(2, 0))])
@op(
    "squeeze_copy.dim(Tensor self, int dim) -> Tensor",
    method=False,
    samples=lambda: [S(T(1, 3), 0), S(T(1, 3), -1), S(T(), 0)],
)
@op(
    "squeeze_copy.dims(Tensor self, int[] dim) -> Tensor",
    method=False,
    samples=lambda: [S(T(1, 3, 1), (0, 2)), S(T(1, 3, 1), ())],
)
def squeeze_copy(x, dims=None):
    """self without its dimensions of one element, or without those named that have one, copied."""
    return squeeze(x, dims)


@op("unsqueeze_copy(Tensor self, int dim) -> Tensor", method=False)
def unsqueeze_copy(x, dim):
    """self with a dimension of one element before `dim`, copied."""
    return unsqueeze(x, dim)


@op("t_copy(Tensor self) -> Tensor", method=False, samples=lambda: [S(T(3, 4)), S(T(3)), S(T())])
def t_copy(x):
    """The transpose of a matrix, copied; vectors and scalars stay as they are."""
    return t(x)


@op(
    "transpose_copy.int(Tensor self, int dim0, int dim1) -> Tensor",
    method=False,
    samples=lambda: [S(T(3, 4), 0, 1), S(T(2, 3, 4), 0, -1), S(T(), 0, -1)],
)
def transpose_copy(x, dim0, dim1):
    """self with dimensions dim0 and dim1 exchanged, copied."""
    return transpose(x, dim0, dim1)


@op(
    "select_copy.int(Tensor self, int dim, SymInt index) -> Tensor",
    method=False,
    samples=lambda: [S(T(3, 4), 0, 1), S(T(2, 3, 4), -1, -2)],
)
def select_copy(x, dim, index):
    """self[..., index, ...] along dim, copied."""
    return select(x, dim, index)


@op(
    "slice_copy.Tensor(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) "
    "-> Tensor",
    method=False,
    samples=lambda: [S(T(5, 4)), S(T(5, 4), 0, 1, 4, 2), S(T(5, 4), -1, -3), S(T(5, 4), 0, 4, 2)],
)
def slice_copy(x, dim, start, end, step):
    """self[..., start:end:step, ...] along dim, copied."""
    return slice(x, dim, start, end, step)


@op(
    "split_copy.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]",
    method=False,
    samples=lambda: [S(T(7, 2), 3), S(T(2, 7), 4, -1)],
    casts_out=True,
)
def split_copy(x, size, dim):
    """Parts of split_size elements along dim, the last perhaps smaller, copied."""
    return split(x, size, dim)


@op(
    "split_with_sizes_copy(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]",
    method=False,
    samples=lambda: [S(T(7, 2), (3, 4)), S(T(2, 7), (1, 0, 6), -1)],
)
def split_with_sizes_copy(x, sizes, dim):
    """Parts of split_sizes elements along dim, copied."""
    return split_with_sizes(x, sizes, dim)


@op(
    "unbind_copy.int(Tensor self, int dim=0) -> Tensor[]",
    method=False,
    samples=lambda: [S(T(3, 4)), S(T(2, 3, 4), -1)],
)
def unbind_copy(x, dim):
    """All self[..., i, ...] along dim, copied."""
    return unbind(x, dim)


@op("view_as_real_copy(Tensor self) -> Tensor", method=False, samples=lambda: [S(T(3, 4)), S(T())])
def view_as_real_copy(x):
    """The real and imaginary parts of a complex tensor, as a last dimension of two, copied."""
    return view_as_real(x)


_PARTS = lambda: [S(T(*shape, dtype=each)) for shape in ((3, 2), (2,)) for each in ("float32", "float64")]


@op("view_as_complex_copy(Tensor self) -> Tensor", method=False, samples=_PARTS)
def view_as_complex_copy(x):
    """A last dimension of two as the real and imaginary parts of complex numbers, copied."""
    return view_as_complex(x)


@op(
    "_reshape_alias_copy(Tensor self, SymInt[] size, SymInt[] stride) -> Tensor",
    method=False,
    samples=lambda: [S(T(3, 4), (4, 3), (3, 1)), S(T(6), (2, 3), (3, 1))],
    needs="within_storage_copied",
    torch_dialect="gathered_by_strides",
)
def reshape_alias_copy(x, size, stride):
    """x's memory, seen with another shape and other strides, copied."""
    return as_strided(x, size, stride, 0)


# Conversions


def _declare(name, dtype):
    @op(
        f"_cast_{name}(Tensor self, bool non_blocking=False) -> Tensor",
        method=False,
        samples=lambda: [S(T(3, 4))],
        meaning=f"self as {dtype.name}.",
    )
    def cast(x):
        return flat.convert(x, dtype)


for _name, _dtype in {
    "Byte": dtypes.uint8, "Char": dtypes.int8, "Short": dtypes.int16, "Int": dtypes.int32,
    "Long": dtypes.int64, "Half": dtypes.float16, "Float": dtypes.float32, "Double": dtypes.float64,
}.items():  # fmt: skip
    _declare(_name, _dtype)


@op("_shape_as_tensor(Tensor self) -> Tensor", method=False)
def shape_as_tensor(x):
    """The shape, as a vector of int64."""
    return flat.constant(list(x.shape), dtypes.int64)
