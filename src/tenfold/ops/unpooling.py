"""Rows that undo a max-pool, and max-pools whose windows lie at random places."""

import functools
import itertools
import math

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, DTypeError, IndexOutOfRange, ShapeError
from tenfold.ops.max_pooling import check_ordered, is_better, nothing, put_back
from tenfold.ops.placing import pick, place, put
from tenfold.ops.samples import S, T
from tenfold.ops.spatial import each, image, spatial
from tenfold.ops.table import op


def _of_unpool(cotangent, result, x, indices, shape):
    return pick(cotangent, indices, len(shape)), None


@flat.differentiated(_of_unpool)
def unpool(x, indices, shape):
    """Zeros of this spatial shape, with the elements of x at their places."""
    dims = len(shape)
    if indices.dtype is not dtypes.int64:
        raise DTypeError(f"the places must be int64, not {indices.dtype.name}")
    if x.shape != indices.shape:
        raise ShapeError(f"{x.type} has not one place for each element in {indices.type}")
    image(x, dims)
    inside = (indices >= 0) & (indices < math.prod(shape))
    message = f"max_unpool{dims}d: a place lies outside of the result of spatial shape {list(shape)}"
    x = flat.check(x, inside, IndexOutOfRange, message)
    return place(x, indices, x.shape[: x.rank - dims], shape, "set")


def _places(*shape, high):
    # One channel each, so that no two elements go to one place: which stays would be a race in PyTorch.
    return T(*shape, dtype="int64", low=0, high=high)


@op(
    "max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor",
    method=False,
    module="nn",
    samples=lambda: [
        S(T(2, 3, 1, 1), _places(2, 3, 1, 1, high=20), (4, 5)),
        S(T(3, 1, 1), _places(3, 1, 1, high=20), (4, 5)),
        S(T(0, 3, 2, 2), _places(0, 3, 2, 2, high=20), (4, 5)),
    ],
    autocast="cpu: float32",
    positions="not indices",
)
def max_unpool2d(x, indices, output_size):
    """The inverse of a max-pool: its results back at their places, zeros elsewhere."""
    return unpool(x, indices, each(output_size, 2, "output_size", 1))


@op(
    "max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, int[3] padding)"
    " -> Tensor",
    method=False,
    module="nn",
    samples=lambda: [
        S(T(2, 3, 1, 1, 1), _places(2, 3, 1, 1, 1, high=20), (2, 2, 5), (2, 2, 5), (0, 0, 0)),
        S(T(3, 1, 1, 1), _places(3, 1, 1, 1, high=20), (2, 2, 5), (2, 2, 5), (0, 0, 0)),
    ],
    autocast="cpu: float32",
    positions="not indices",
)
def max_unpool3d(x, indices, output_size, stride, padding):
    """The inverse of a max-pool: its results back at their places, zeros elsewhere."""
    each(stride, 3, "stride", 1)
    each(padding, 3, "padding", 0)
    return unpool(x, indices, each(output_size, 3, "output_size", 1))


# Fractional max-pools: windows of one size, whose distances vary by a random number for each channel


def _of_fractional(cotangents, results, x, samples, dims, kernel, counts):
    cotangent = cotangents[0]
    return None if cotangent is None else put(cotangent, results[1], spatial(x, dims)), None


@flat.differentiated(_of_fractional)
def fractional(x, samples, dims, kernel, counts):
    """The largest element of each window, and its place."""
    check_ordered(x)
    lead, shape = x.shape[: x.rank - dims], spatial(x, dims)
    if not x.numel:
        return nothing((*lead, *counts), x.dtype)
    corners = []
    for d in range(dims):
        # The numbers for two dimensions come in the order x, y; those for three in the order of dimensions.
        number = dims - 1 - d if dims == 2 else d
        drawn = flat.reshape(flat.slice_dim(samples, 2, number, number + 1), (*lead, 1))
        starts = _starts(drawn, shape[d], kernel[d], counts[d]) * math.prod(shape[d + 1 :])
        corners.append(flat.reshape(starts, (*lead, *[counts[d] if i == d else 1 for i in range(dims)])))
    at = corner = functools.reduce(flat.add, corners)
    best = pick(x, corner, dims)
    for tap in itertools.islice(itertools.product(*map(range, kernel)), 1, None):
        places = corner + sum(i * math.prod(shape[d + 1 :]) for d, i in enumerate(tap))
        part = pick(x, places, dims)
        better = is_better(part, best)
        best, at = flat.where(better, part, best), flat.where(better, places, at)
    return best, at


def _starts(drawn, extent, kernel, count):
    """Where the windows along a dimension start: the last at the end, those before it at even distances."""
    last = flat.full((*drawn.shape[:-1], 1), extent - kernel, dtypes.int64)
    if count == 1:
        return last
    distance = flat.div(flat.full((1,), extent - kernel, drawn.dtype), count - 1)
    steps = flat.arange(count - 1, dtypes.int64)
    ahead = flat.convert((flat.convert(steps, drawn.dtype) + drawn) * distance, dtypes.int64)
    return flat.concatenate([ahead - flat.convert(drawn * distance, dtypes.int64), last], drawn.rank - 1)


def _declare(dims):
    """The rows fractional_max_pool{dims}d and their gradients."""
    size = (7, 8, 9)[-dims:]
    sizes = f"int[{dims}] kernel_size, int[{dims}] output_size"

    @op(
        f"fractional_max_pool{dims}d(Tensor self, {sizes}, Tensor random_samples) -> (Tensor, Tensor)",
        method=False,
        function=False,
        module="nn",
        samples=lambda: [
            S(T(2, 3, *size), (2, 3, 2)[:dims], (4, 3, 2)[:dims], T(2, 3, dims, low=0, high=1)),
            S(T(3, *size), (2,) * dims, (1,) * dims, T(1, 3, dims, low=0, high=1)),
            S(T(3, *size), (2,) * dims, (1,) * dims, T(2, 3, dims, low=0, high=1)),
        ],
        autocast="cpu: float32",
    )
    def fractional_max_pool(x, kernel, output_size, samples):
        """The maximum of each of output_size windows, placed at random."""
        image(x, dims)
        kernel, counts = each(kernel, dims, "kernel_size", 1), each(output_size, dims, "output_size", 1)
        batch = (x.shape[0] if x.rank == dims + 2 else 1, x.shape[x.rank - dims - 1])
        if samples.rank != 3 or samples.shape[0] < batch[0] or samples.shape[1:] != (batch[1], dims):
            raise ShapeError(f"the random numbers {samples.type} must be of shape {[*batch, dims]}")
        samples = flat.slice_dim(samples, 0, 0, batch[0])  # PyTorch, too, takes more
        if samples.dtype is not x.dtype:
            raise DTypeError(f"the random numbers {samples.type} must be of the input's {x.dtype.name}")
        for n, k, count in zip(spatial(x, dims), kernel, counts, strict=True):
            if count + k - 1 > n:
                raise ArgumentError(f"{count} windows of {k} do not fit a dimension of {n}")
        return fractional(x, samples, dims, kernel, counts)

    @op(
        f"fractional_max_pool{dims}d_backward(Tensor grad_output, Tensor self, {sizes}, Tensor indices)"
        " -> Tensor",
        method=False,
        function=False,
        module="nn",
        # PyTorch reads indices in the order of memory: these have but one.
        samples=lambda: [
            S(
                T(*(1,) * (dims + 1), 4),
                T(*(1,) * dims, 5, 5),
                (1,) * dims,
                (*(1,) * (dims - 1), 4),
                T(*(1,) * (dims + 1), 4, dtype="int64", low=0, high=25),
            )
        ],
        positions="not indices",
        needs=f"indices_of_pooling<{dims}, 4>",
    )
    def fractional_max_pool_backward(cotangent, x, kernel, output_size, indices):
        """Each window's cotangent added at the place of its maximum."""
        return put_back(cotangent, x, dims, each(output_size, dims, "output_size", 1), indices)


for _dims in (2, 3):
    _declare(_dims)
