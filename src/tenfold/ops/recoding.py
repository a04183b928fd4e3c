"""Rows whose results are their argument itself, or its memory as other elements: complex numbers as pairs,
conjugates, other dtypes. The facts of views are explained in `tenfold/tensor/views.py`.
"""

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import DTypeError, ShapeError
from tenfold.flat.strides import is_contiguous
from tenfold.ops.samples import S, T
from tenfold.ops.table import op


def unchanged(place, strides, offset, *arguments):
    return strides, offset


def written_back(call, base, new, *arguments):
    return new


# The same tensor


def as_it_is(place, *arguments):
    return ()


@op("alias(Tensor(a) self) -> Tensor(a)", function=False, method=False, strides=unchanged, write=written_back)
@op(
    "detach(Tensor(a) self) -> Tensor(a)",
    differentiable=False,
    strides=unchanged,
    write=written_back,
    meaning="self itself, through which no gradient flows",
    linear=True,
)
@op("lift_fresh(Tensor(a) self) -> Tensor(a)", function=False, method=False, steps=as_it_is)
@op(
    "resolve_conj(Tensor(a) self) -> Tensor(a)",
    "resolve_neg(Tensor(a) self) -> Tensor(a)",
    steps=as_it_is,
    meaning="self itself: conjugates and signs are computed at once",
    linear=True,
    torch_dialect="own name",
)
@op(
    "lift(Tensor self) -> Tensor",
    "lift_fresh_copy(Tensor self) -> Tensor",
    function=False,
    method=False,
    torch_dialect="own name",
)
@op(
    "contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)",
    function=False,
    steps=as_it_is,
    strides=lambda place, strides, offset, memory_format: (
        (strides, offset) if is_contiguous(place.shape, strides) else None
    ),
    grad_fn="CloneBackward0",
    meaning="self with its elements in row-major order in memory: itself where they are, else copied",
)
def alias(x):
    """self itself."""
    return x


@op("positive(Tensor(a) self) -> Tensor(a)", steps=as_it_is, linear=True)
def positive(x):
    """x itself."""
    if x.dtype.kind == "bool":
        raise DTypeError("positive does not take bool tensors")
    return x


# Other dtypes


def as_real_strides(place, strides, offset):
    return (*[2 * s for s in strides], 1), 2 * offset


@op(
    "view_as_real(Tensor(a) self) -> Tensor(a)",
    method=False,
    recodes=True,
    strides=as_real_strides,
    write=lambda call, base, new: call("view_as_complex", new),
)
def view_as_real(x):
    """The real and imaginary parts of a complex tensor, as a last dimension of two."""
    if not x.dtype.is_complex:
        raise DTypeError(f"view_as_real takes complex tensors, not {x.dtype.name}")
    return flat.concatenate([flat.unsqueeze(flat.real(x), -1), flat.unsqueeze(flat.imag(x), -1)], x.rank)


def as_complex_strides(place, strides, offset):
    odd = any(s % 2 and extent != 1 for s, extent in zip(strides[:-1], place.shape, strict=False))
    if strides[-1] != 1 or offset % 2 or odd:
        raise ShapeError(
            f"a tensor with strides {list(strides)} and offset {offset} has no complex view: "
            "real and imaginary parts must be neighbours",
            help="use contiguous() first",
        )
    return tuple([s // 2 for s in strides[:-1]]), offset // 2


@op(
    "view_as_complex(Tensor(a) self) -> Tensor(a)",
    method=False,
    recodes=True,
    strides=as_complex_strides,
    write=lambda call, base, new: call("view_as_real", new),
    samples=lambda: [S(T(3, 2, dtype="float32")), S(T(3, 2, dtype="float64")), S(T(2, dtype="float32"))],
    autocast="cpu: float32",
)
def view_as_complex(x):
    """A last dimension of two as the real and imaginary parts of complex numbers."""
    if x.dtype not in (dtypes.float32, dtypes.float64):
        raise DTypeError(f"view_as_complex takes float32 or float64 tensors, not {x.dtype.name}")
    if not x.rank or x.shape[-1] != 2:
        raise ShapeError(f"view_as_complex: the last dimension of {x.type} is not 2")
    parts = [flat.squeeze(flat.slice_dim(x, -1, i, i + 1), -1) for i in (0, 1)]
    return flat.complex(*parts)


def part_strides(which):
    def strides_of(place, strides, offset):
        if not place.base.dtype.is_complex:
            return strides, offset
        return tuple([2 * s for s in strides]), 2 * offset + which

    return strides_of


def as_part(which):
    def steps(place):
        return (("view_as_real",), ("select.int", -1, which)) if place.base.dtype.is_complex else ()

    return steps


@op("real(Tensor(a) self) -> Tensor(a)", method=False, strides=part_strides(0), steps=as_part(0), linear=True)
def real(x):
    """The real part of self, as a view; real tensors stay as they are."""
    return flat.real(x) if x.dtype.is_complex else x


@op("imag(Tensor(a) self) -> Tensor(a)", method=False, strides=part_strides(1), steps=as_part(1))
def imag(x):
    """The imaginary part of a complex tensor, as a view."""
    if not x.dtype.is_complex:
        raise DTypeError(f"imag takes complex tensors, not {x.dtype.name}")
    return flat.imag(x)


@op(
    "_conj(Tensor(a) self) -> Tensor(a)",
    recodes=True,
    strides=unchanged,
    write=lambda call, base, new: call("_conj", new),
)
def _conj(x):
    """The complex conjugate; a write through it conjugates back."""
    if not x.dtype.is_complex:
        raise DTypeError(f"_conj takes complex tensors, not {x.dtype.name}", help="use conj")
    return flat.conj(x)


@op(
    "conj(Tensor(a) self) -> Tensor(a)",
    strides=unchanged,
    steps=lambda place: (("_conj",),) if place.base.dtype.is_complex else (),
    linear=True,
)
def conj(x):
    """The complex conjugate; real tensors stay as they are. A write through it conjugates back."""
    return flat.conj(x)


def recoded(place, strides, offset, dtype):
    old, new = place.base.dtype.itemsize, dtype.itemsize
    if old == new:
        return strides, offset
    if old > new:
        if strides[-1] != 1:
            _refuse_bits(place)
        ratio = old // new
        return (*[s * ratio for s in strides[:-1]], 1), offset * ratio
    ratio = new // old
    if strides[-1] != 1 or offset % ratio or any(s % ratio for s in strides[:-1]):
        _refuse_bits(place)
    return (*[s // ratio for s in strides[:-1]], 1), offset // ratio


def _refuse_bits(place):
    raise ShapeError(
        f"cannot view {place.base} as {place.view.dtype.name}: its elements are not neighbours in memory",
        help="use contiguous() first",
    )


def _recoded():
    # Not to floats of another size: arithmetic on them leaves denormals behind, which XLA rounds to zero.
    names = ("uint8", "int16", "int32", "int64", "float32", "complex64")
    return [S(T(2, 16), dtypes.BY_NAME[name]) for name in names] + [S(T(), dtypes.int64)]


@op(
    "view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)",
    function=False,
    differentiable=False,
    recodes=True,
    strides=recoded,
    steps=lambda place, dtype: (("alias",) if place.base.dtype is dtype else ("view.dtype", dtype),),
    write=lambda call, base, new, dtype: call("view.dtype", new, base.type.dtype),
    samples=_recoded,
)
@op(
    "view_copy.dtype(Tensor self, ScalarType dtype) -> Tensor",
    method=False,
    differentiable=False,
    samples=_recoded,
)
def view_dtype(x, dtype):
    """The bytes of x as another dtype; the last dimension grows or shrinks with the size of an element."""
    old, new = x.dtype, dtype
    if old is new:
        return x
    if old.itemsize != new.itemsize:
        ratio = max(old.itemsize, new.itemsize) // min(old.itemsize, new.itemsize)
        if not x.rank:
            raise ShapeError(
                f"a zero-dimensional tensor cannot be viewed as {new.name}, whose elements differ in size"
            )
        if old.itemsize < new.itemsize and x.shape[-1] % ratio:
            raise ShapeError(
                f"cannot view {x.type} as {new.name}: its last dimension does not divide by {ratio}"
            )
    if not x.rank:
        return flat.reshape(view_dtype(flat.reshape(x, (1,)), dtype), ())
    # XLA reinterprets the bits of integers and real floats: complex and bool go through them.
    if old.is_complex:
        x = view_as_real(x)
        x = flat.reshape(x, (*x.shape[:-2], 2 * x.shape[-2]))
    elif old.kind == "bool":
        x = flat.convert(x, dtypes.uint8)
    bits = new.to_real() if new.is_complex else dtypes.uint8 if new.kind == "bool" else new
    x = _bitcast(x, bits)
    if new.is_complex:
        x = view_as_complex(flat.reshape(x, (*x.shape[:-1], x.shape[-1] // 2, 2)))
    return flat.ne(x, 0) if new.kind == "bool" else x


def _bitcast(x, dtype):
    old, new = x.dtype.itemsize, dtype.itemsize
    if old < new:
        x = flat.reshape(x, (*x.shape[:-1], x.shape[-1] // (new // old), new // old))
    x = flat.bitcast(x, dtype)
    return flat.reshape(x, (*x.shape[:-2], x.shape[-2] * x.shape[-1])) if old > new else x
