"""Rows that are the gradients of views and of widening: what is put back where it was taken from."""

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ShapeError
from tenfold.ops.activation_gradients import cotangent_of
from tenfold.ops.indexing import At, index_select
from tenfold.ops.padding import along, reflected, replicated
from tenfold.ops.parts import select, slice
from tenfold.ops.samples import S, T
from tenfold.ops.scatter import index_add
from tenfold.ops.strided import diagonal, unfold
from tenfold.ops.table import op

_HIDDEN = {"function": False, "method": False}


def _put_back(view, gradient, sizes, *arguments):
    """Zeros of these sizes, with the gradient added where the view takes from."""
    whole = flat.full(sizes, 0, gradient.dtype)
    shown = view(whole, *arguments)
    if shown.shape != gradient.shape:
        raise ShapeError(
            f"the gradient {gradient.type} is not of the shape {list(shown.shape)} that is shown"
        )
    if gradient.dtype.kind not in ("float", "complex"):
        # Numbers without gradients: the places are found by those of a float.
        counted = cotangent_of(
            view, flat.convert(gradient, dtypes.float64), flat.full(sizes, 0, dtypes.float64), *arguments
        )
        return flat.convert(counted, gradient.dtype)
    return cotangent_of(view, gradient, whole, *arguments)


@op(
    "select_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt index) -> Tensor",
    samples=lambda: [S(T(4), (3, 4), 0, 1), S(T(2, 3), (2, 3, 4), -1, -2)],
    **_HIDDEN,
)
def select_backward(gradient, sizes, dim, index):
    """Zeros of input_sizes with grad_output at `index` along dim."""
    return _put_back(select, gradient, sizes, dim, index)


@op(
    "slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt start, SymInt end, "
    "SymInt step) -> Tensor",
    samples=lambda: [S(T(2, 4), (5, 4), 0, 1, 4, 2), S(T(3, 2), (3, 4), 1, 2, 9, 1)],
    **_HIDDEN,
)
def slice_backward(gradient, sizes, dim, start, end, step):
    """Zeros of input_sizes with grad_output at start:end:step along dim."""
    return _put_back(slice, gradient, sizes, dim, start, end, step)


@op(
    "diagonal_backward(Tensor grad_output, SymInt[] input_sizes, int offset, int dim1, int dim2) -> Tensor",
    samples=lambda: [S(T(3), (3, 4), 0, 0, 1), S(T(3, 2), (2, 3, 4), 1, 0, 2)],
    **_HIDDEN,
)
def diagonal_backward(gradient, sizes, offset, dim1, dim2):
    """Zeros of input_sizes with grad_output on the diagonal of dim1 and dim2 that starts at offset."""
    return _put_back(diagonal, gradient, sizes, offset, dim1, dim2)


@op(
    "unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step) -> Tensor",
    samples=lambda: [S(T(3, 4, 3), (7, 4), 0, 3, 2), S(T(3, 4, 2), (3, 5), 1, 2, 1)],
    **_HIDDEN,
    needs="unfolded",
)
def unfold_backward(gradient, sizes, dim, size, step):
    """Zeros of input_sizes with each window of grad_in added where it was taken from along dim."""
    return _put_back(unfold, gradient, sizes, dim, size, step)


@op(
    "trace_backward(Tensor grad, SymInt[] sizes) -> Tensor",
    samples=lambda: [S(T(), (3, 3)), S(T(), (2, 4))],
    **_HIDDEN,
)
def trace_backward(gradient, sizes):
    """A matrix with the gradient on its diagonal."""
    if len(sizes) != 2:
        raise ShapeError(f"trace_backward: a matrix has two dimensions, not {list(sizes)}")
    on = flat.eq(flat.iota(sizes, 0), flat.iota(sizes, 1))
    return flat.where(on, gradient, 0)


@op(
    "index_select_backward(Tensor grad, SymInt[] self_sizes, int dim, Tensor index) -> Tensor",
    samples=lambda: [S(T(4, 3), (5, 3), 0, At(4, size=5)), S(T(3, 2), (3, 4), 1, At(2, size=4))],
    **_HIDDEN,
)
def index_select_backward(gradient, sizes, dim, index):
    """Zeros with each slice of the gradient added where it was taken from."""
    whole = flat.full(sizes, 0, gradient.dtype)
    index_select(whole, dim, index)
    return index_add(whole, dim, index, gradient, 1)


def _declare(dims):
    name, rule = f"{dims}d", {"reflection": reflected, "replication": replicated}
    shape, padding = (2, 3, 4, 5)[: dims + 1], (1, 2, 0, 1, 1, 0)[: 2 * dims]
    wide = [shape[0]] + [
        extent + padding[2 * (dims - 1 - i)] + padding[2 * (dims - 1 - i) + 1]
        for i, extent in enumerate(shape[1:])
    ]
    for kind, widen in rule.items():

        @op(
            f"{kind}_pad{name}_backward(Tensor grad_output, Tensor self, SymInt[{2 * dims}] padding) "
            "-> Tensor",
            samples=lambda: [S(T(*wide), T(*shape), padding), S(T(2, *wide), T(2, *shape), padding)],
            **_HIDDEN,
            needs=f"same_channels<{dims}>",
        )
        def backward(gradient, x, padding, widen=widen, kind=kind):
            """The sum of the cotangents over the places that each element was copied to."""
            build = lambda each: along(each, padding, widen, f"{kind}_pad{name}_backward")
            if build(x).type is not gradient.type:
                raise ShapeError(f"the gradient {gradient.type} is not of the widened tensor's type")
            return cotangent_of(build, gradient, x)


for _dims in (1, 2, 3):
    _declare(_dims)
