"""Rows that sample images at computed places: grid_sampler, and the grids that affine maps give."""

import functools
import itertools
import math

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, DTypeError, ShapeError
from tenfold.flat.grad import gradients
from tenfold.flat.ir import in_order
from tenfold.ops.convolution import all_wanted
from tenfold.ops.placing import pick
from tenfold.ops.samples import S, T
from tenfold.ops.table import op
from tenfold.ops.undifferentiable import chosen_by

BILINEAR, NEAREST, BICUBIC = range(3)
ZEROS, BORDER, REFLECTION = range(3)


def _unscaled(grid, extent, align_corners):
    """Coordinates from -1 to 1 as places among `extent` elements."""
    if align_corners:
        return (grid + 1) / 2 * (extent - 1)
    return ((grid + 1) * extent - 1) / 2


def _kept_inside(at, extent, padding, align_corners):
    """Places outside moved inside, to the border or by reflection."""
    if padding == REFLECTION:
        low, high = (0, 2 * (extent - 1)) if align_corners else (-1, 2 * extent - 1)
        at = _reflected(at, low / 2, (high - low) / 2)
    return flat.clamp(at, 0, extent - 1) if padding else at


def _reflected(at, low, span):
    if not span:
        return at * 0
    distance = flat.abs(at - low)
    beyond = distance % span
    turns = flat.floor(distance / span)
    even = flat.eq(turns - flat.floor(turns / 2) * 2, 0)
    return flat.where(even, beyond + low, span - beyond + low)


def element(x, at, weight):
    """The elements of x at whole places, one for each spatial dimension, weighted; zero outside of x."""
    shape = x.shape[2:]
    within = [(where >= 0) & (where <= n - 1) for n, where in zip(shape, at, strict=True)]
    steps = [
        flat.convert(flat.where(here, where, 0), dtypes.int64) * math.prod(shape[d + 1 :])
        for d, (here, where) in enumerate(zip(within, at, strict=True))
    ]
    inside, place = functools.reduce(flat.logical_and, within), functools.reduce(flat.add, steps)
    wide = (*x.shape[:2], *place.shape[1:])
    spread = lambda value: flat.broadcast_to(flat.unsqueeze(value, 1), wide)
    found = pick(x, spread(place), len(shape))
    return flat.where(spread(inside), found if weight is None else found * spread(weight), 0)


def _sampled(x, grid, mode, padding, align_corners):
    dims = x.rank - 2
    # The grid's last dimension names x first, the image's dimensions end with it.
    raw = [
        _unscaled(flat.squeeze(flat.slice_dim(grid, -1, d, d + 1), -1), x.shape[-1 - d], align_corners)
        for d in reversed(range(dims))
    ]
    inner = lambda at, d: _kept_inside(at, x.shape[2 + d], padding, align_corners)
    if mode == BICUBIC:
        return _cubic(x, raw, inner)
    at = [inner(each, d) for d, each in enumerate(raw)]
    if mode == NEAREST:
        return chosen_by(element(x, [flat.round_half_even(each) for each in at], None), grid)
    low = [flat.floor(each) for each in at]
    parts = []
    for corner in itertools.product((0, 1), repeat=dims):
        shares = [
            where - start if side else start + 1 - where
            for side, where, start in zip(corner, at, low, strict=True)
        ]
        places = [start + side for side, start in zip(corner, low, strict=True)]
        parts.append(element(x, places, functools.reduce(flat.mul, shares)))
    return functools.reduce(flat.add, parts)


def _cubic(x, raw, inner):
    low = [flat.floor(each) for each in raw]
    weights = [_cubic_weights(at - start) for at, start in zip(raw, low, strict=True)]
    parts = []
    for i, j in itertools.product(range(4), repeat=2):
        at = [inner(start + (tap - 1), d) for d, (start, tap) in enumerate(zip(low, (i, j), strict=True))]
        parts.append(element(x, at, weights[0][i] * weights[1][j]))
    return functools.reduce(flat.add, parts)


def _cubic_weights(share):
    a = -0.75
    inner = lambda x: ((a + 2) * x - (a + 3)) * x * x + 1
    outer = lambda x: ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return [outer(share + 1), inner(share), inner(1 - share), outer(2 - share)]


def _checked(x, grid, mode, padding, dims):
    if x.rank not in dims or grid.rank != x.rank or grid.shape[-1] != x.rank - 2:
        raise ShapeError(f"{grid.type} is no grid of places in {x.type}")
    if x.dtype is not grid.dtype or not x.dtype.is_floating_point:
        raise DTypeError(f"{x.type} and {grid.type} must be of one float dtype")
    if x.shape[0] != grid.shape[0] or 0 in x.shape[2:]:
        raise ShapeError(f"{x.type} and {grid.type} must have one batch, and images must not be empty")
    if mode not in (BILINEAR, NEAREST, BICUBIC) or padding not in (ZEROS, BORDER, REFLECTION):
        raise ArgumentError(f"interpolation_mode {mode} and padding_mode {padding} are from 0 to 2")
    if mode == BICUBIC and x.rank == 5:
        raise ArgumentError("bicubic sampling takes images of two dimensions")


def sample(x, grid, mode, padding, align_corners):
    if not x.numel or not grid.numel:
        return flat.full((*x.shape[:2], *grid.shape[1:-1]), 0, x.dtype)
    narrow = x.dtype
    if narrow.itemsize < 4:
        x, grid = flat.convert(x, dtypes.float32), flat.convert(grid, dtypes.float32)
    return flat.convert(_sampled(x, grid, mode, padding, align_corners), narrow)


def _samples(dims, dtype="float32"):
    image = (3, 4, 5)[-dims:]
    modes = range(3 if dims == 2 else 2)
    return [
        S(
            T(2, 2, *image, dtype=dtype),
            T(2, *(1,) * (dims - 1), 9, dims, low=-1.6, high=1.6, dtype=dtype),
            mode,
            padding,
            (mode + padding) % 2 == 1,
        )
        for mode, padding in itertools.product(modes, range(3))
    ]


def _all_samples(dims):
    empty = S(T(0, 3, *(4,) * dims, dtype="float32"), T(0, *(4,) * dims, dims, dtype="float32"), 0, 0, False)
    return [*_samples(dims), empty]


_GRID = "(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor"
_BACK = (
    "(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, int padding_mode, "
    "bool align_corners, bool[2] output_mask) -> (Tensor, Tensor)"
)


def _back_samples(dims):
    # In float32 the digits that bicubic gradients lose to cancellation would show.
    for call in _samples(dims, "float64"):
        x, grid, *rest = call.args
        yield S(T(*x.shape[:2], *grid.shape[1:-1], dtype="float64"), x, grid, *rest, (True, True))


@op(
    f"grid_sampler{_GRID}",
    method=False,
    samples=lambda: _samples(2)[::4] + _samples(3)[::4],
    autocast="cpu: float32, cuda: widest",
    needs="grid_with_gradient",
)
@op(f"grid_sampler_2d{_GRID}", method=False, samples=lambda: _all_samples(2), needs="grid_with_gradient")
@op(f"grid_sampler_3d{_GRID}", method=False, samples=lambda: _all_samples(3))
def grid_sampler(x, grid, mode, padding, align_corners):
    """Images read at the places of a grid, whose coordinates go from -1 to 1."""
    _checked(x, grid, mode, padding, (4, 5))
    return sample(x, grid, mode, padding, align_corners)


@op(
    f"grid_sampler_2d_backward{_BACK}",
    method=False,
    function=False,
    samples=lambda: list(_back_samples(2)),
    needs="grid_backward",
)
@op(
    f"grid_sampler_3d_backward{_BACK}",
    method=False,
    function=False,
    samples=lambda: list(_back_samples(3)),
    needs="grid_backward",
)
def grid_sampler_backward(cotangent, x, grid, mode, padding, align_corners, wanted):
    """The gradients of `grid_sampler` in its input and its grid."""
    all_wanted(wanted)
    _checked(x, grid, mode, padding, (4, 5))
    result = sample(x, grid, mode, padding, align_corners)
    found = gradients(in_order([result]), [result], [cotangent], [x, grid])
    return tuple(
        [flat.full_like(of, 0) if ct is None else ct for of, ct in zip((x, grid), found, strict=True)]
    )


@op(
    "affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor",
    method=False,
    samples=lambda: [
        S(T(2, 2, 3, dtype="float32"), (2, 3, 4, 5), True),
        S(T(2, 2, 3, dtype="float32"), (2, 3, 4, 5), False),
        S(T(2, 3, 4, dtype="float64"), (2, 3, 2, 4, 5), False),
        S(T(1, 2, 3, dtype="float32"), (1, 1, 1, 2), True),
    ],
)
def affine_grid_generator(theta, size, align_corners):
    """The places to which affine maps take the elements of images of this size."""
    if theta.rank != 3 or theta.shape != (size[0], len(size) - 2, len(size) - 1):
        raise ShapeError(f"{theta.type} are no affine maps of images of size {list(size)}")
    base = _base_grid(theta, size, align_corners)
    shape = (theta.shape[0], *size[2:], len(size) - 2)
    return flat.reshape(flat.dot_general(base, theta, ((2,), (2,)), ((0,), (0,))), shape)


@op(
    "affine_grid_generator_backward(Tensor grad, SymInt[] size, bool align_corners) -> Tensor",
    method=False,
    function=False,
    samples=lambda: [
        S(T(2, 4, 5, 2, dtype="float32"), (2, 3, 4, 5), True),
        S(T(2, 2, 4, 5, 3, dtype="float32"), (2, 3, 2, 4, 5), False),
    ],
)
def affine_grid_generator_backward(cotangent, size, align_corners):
    """The gradient of `affine_grid_generator` in its maps."""
    if cotangent.shape != (size[0], *size[2:], len(size) - 2):
        raise ShapeError(f"{cotangent.type} is no grid of places in images of size {list(size)}")
    base = _base_grid(cotangent, size, align_corners)
    rows = flat.reshape(cotangent, (size[0], -1, len(size) - 2))
    return flat.dot_general(rows, base, ((1,), (1,)), ((0,), (0,)))


def _base_grid(like, size, align_corners):
    """The coordinates of all elements, with a one after each: (N, places, dims + 1)."""
    if len(size) not in (4, 5) or min(size) < 1:
        raise ArgumentError(f"size {list(size)} must be four or five positive numbers")
    if not like.dtype.is_floating_point:
        raise DTypeError(f"affine maps are floats, not {like.dtype.name}")
    shape, columns = size[2:], []
    for d in reversed(range(len(shape))):
        extent = shape[d]
        count = flat.arange(extent, like.dtype)
        if extent == 1:
            row = count * 0
        elif align_corners:
            row = count * (2 / (extent - 1)) - 1
        else:
            row = (count * 2 + 1) / extent - 1
        row = flat.reshape(row, [extent if i == d else 1 for i in range(len(shape))])
        columns.append(flat.reshape(flat.broadcast_to(row, shape), (-1, 1)))
    columns.append(flat.full((math.prod(shape), 1), 1, like.dtype))
    return flat.broadcast_to(flat.concatenate(columns, 1), (size[0], math.prod(shape), len(shape) + 1))
