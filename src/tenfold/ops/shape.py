"""Rows that rearrange the elements of one tensor in new memory: repeating, turning, channels, pixels."""

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, DTypeError, IndexOutOfRange, ShapeError
from tenfold.ops.parts import late_part
from tenfold.ops.samples import S, T
from tenfold.ops.table import op

# Repeating


def _repeats():
    return [
        S(T(3, 4), (2, 3)),
        S(T(3, 4), (2, 1, 2)),
        S(T(), (3,)),
        S(T(), ()),
        S(T(3), (0,)),
        S(T(0, 3), (2, 2)),
        S(T(1, 3), (4, 1)),
    ]


@op("repeat(Tensor self, SymInt[] repeats) -> Tensor", function=False, samples=_repeats)
def repeat(x, repeats):
    """x laid side by side repeats[i] times along dimension i; missing dimensions come before."""
    if len(repeats) < x.rank:
        raise ShapeError(f"repeat: {list(repeats)} has fewer numbers than {x.type} has dimensions")
    if any(count < 0 for count in repeats):
        raise ArgumentError(f"repeat: {list(repeats)} has a negative number")
    shape = (1,) * (len(repeats) - x.rank) + x.shape
    between = [part for extent in shape for part in (1, extent)]
    spread = [part for count, extent in zip(repeats, shape, strict=True) for part in (count, extent)]
    x = flat.broadcast_to(flat.reshape(x, between), spread)
    return flat.reshape(x, [count * extent for count, extent in zip(repeats, shape, strict=True)])


@op(
    "tile(Tensor self, SymInt[] dims) -> Tensor",
    samples=lambda: _repeats() + [S(T(2, 3, 4), (2,))],
    positions="not dims",
)
def tile(x, dims):
    """As repeat, but missing numbers are ones."""
    return repeat(x, (1,) * (x.rank - len(dims)) + tuple(dims))


@op(
    "repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? output_size=None)"
    " -> Tensor",
    samples=lambda: [
        S(T(3, 4), 2),
        S(T(3, 4), 3, 0),
        S(T(3, 4), 2, -1),
        S(T(3), 0),
        S(T(), 2),
        S(T(0, 3), 2, 1),
    ],
)
def repeat_interleave(x, repeats, dim, output_size):
    """Each element along dim `repeats` times in a row; without dim, of x as one row."""
    if repeats < 0:
        raise ArgumentError(f"repeat_interleave: {repeats} repeats")
    if dim is None:
        x, dim = flat.reshape(x, (x.numel,)), 0
    elif not x.rank:
        x = flat.reshape(x, (1,))
    dim = flat.axis(dim, x.rank)
    _check_output(output_size, x.shape[dim] * repeats)
    shape = (*x.shape[: dim + 1], repeats, *x.shape[dim + 1 :])
    spread = flat.broadcast_to(flat.unsqueeze(x, dim + 1), shape)
    return flat.reshape(spread, (*x.shape[:dim], x.shape[dim] * repeats, *x.shape[dim + 1 :]))


def _check_output(given, found):
    if given is not None and given != found:
        raise ShapeError(f"repeat_interleave: output_size is {given}, but the repeats add up to {found}")


def total(repeats):
    """The number of elements that a tensor of repeats asks for: it must be known, so it is computed now;
    inside a compiled function it stays open."""
    if repeats.dtype.kind != "int":
        raise DTypeError(f"repeat_interleave: the repeats must be integers, not {repeats.dtype.name}")
    return repeats.sum()._as_size()


def with_total(repeats, output_size):
    return repeats, total(repeats) if output_size is None else output_size


def with_total_of_self(x, repeats, dim, output_size):
    if output_size is None:
        extent = x.numel() if dim is None else x.shape[flat.axis(dim, x.ndim)] if x.ndim else 1
        output_size = total(repeats) * (extent if repeats.numel() == 1 else 1)
    return x, repeats, dim, output_size


@op(
    "repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor",
    prepare=with_total,
    samples=lambda: [
        S(T(4, dtype="int64", low=0, high=3)),
        S(T(3, dtype="int32", low=0, high=3)),
        S(T(0, dtype="int64")),
    ],
)
def repeated_places(repeats, output_size):
    """Each place i of a vector of counts, repeats[i] times in a row."""
    if repeats.rank != 1:
        raise ShapeError(f"repeat_interleave: the repeats must be a vector, not {repeats.type}")
    if repeats.dtype not in (dtypes.int32, dtypes.int64):
        raise DTypeError(f"repeat_interleave: repeats are int32 or int64, not {repeats.dtype.name}")
    ends = _running_sum(repeats)
    marks = flat.full((output_size,), 0, repeats.dtype)
    if repeats.numel and output_size:
        # A mark where each run but the first begins; the marks up to a place tell how many runs have ended.
        numbers = flat.ScatterDimensions((), (0,), (0,), 1)
        marks = flat.scatter(marks, flat.unsqueeze(ends, 1), flat.full_like(ends, 1), numbers, "add")
    places = _running_sum(marks)
    places = flat.check(
        places, repeats >= 0, ArgumentError, "repeat_interleave: a number of repeats is negative"
    )
    fits = flat.eq(flat.sum(flat.convert(repeats, dtypes.int64)), output_size)
    return flat.check(
        places, fits, ShapeError, f"repeat_interleave: the repeats do not add up to {output_size}"
    )


def _running_sum(x):
    size = max(x.numel, 1)
    return flat.reduce_window(x, "add", (size,), padding=((size - 1, 0),))


@op(
    "repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, SymInt? output_size=None)"
    " -> Tensor",
    prepare=with_total_of_self,
    samples=lambda: [
        S(T(3, 4), T(4, dtype="int64", low=0, high=3), 1),
        S(T(3, 2), T(6, dtype="int64", low=0, high=3)),
        S(T(3, 2), T(1, dtype="int32", low=2, high=3), 0),
        S(T(3), T(dtype="int64", low=2, high=3), -1),
        S(T(), T(dtype="int64", low=2, high=3)),
    ],
)
def repeat_interleave_each(x, repeats, dim, output_size):
    """Element i along dim repeats[i] times in a row."""
    if dim is None:
        x, dim = flat.reshape(x, (x.numel,)), 0
    elif not x.rank:
        x = flat.reshape(x, (1,))
    dim = flat.axis(dim, x.rank)
    if repeats.rank > 1 or (repeats.numel != 1 and repeats.numel != x.shape[dim]):
        raise ShapeError(
            f"repeat_interleave: {repeats.type} has not one number for each of the {x.shape[dim]} elements"
        )
    repeats = flat.broadcast_to(flat.reshape(repeats, (repeats.numel,)), (x.shape[dim],))
    places = repeated_places(repeats, output_size)
    return flat.take(x, places, dim) if x.shape[dim] else x


# Turning


@op(
    "flip(Tensor self, int[] dims) -> Tensor",
    samples=lambda: [S(T(3, 4), (0,)), S(T(3, 4), (0, -1)), S(T(3, 4), ()), S(T(), (0,)), S(T(0, 3), (1,))],
)
def flip(x, dims):
    """x with the order along each of dims reversed."""
    return flat.reverse(x, flat.axes(dims, x.rank) if dims else ())


@op("fliplr(Tensor self) -> Tensor", samples=lambda: [S(T(3, 4)), S(T(2, 3, 4)), S(T(2, 0))])
def fliplr(x):
    """Columns in reverse order."""
    if x.rank < 2:
        raise ShapeError(f"fliplr needs at least two dimensions, not {x.type}")
    return flat.reverse(x, (1,))


@op("flipud(Tensor self) -> Tensor", samples=lambda: [S(T(3, 4)), S(T(3)), S(T(0, 3))])
def flipud(x):
    """Rows in reverse order."""
    if x.rank < 1:
        raise ShapeError("flipud needs at least one dimension")
    return flat.reverse(x, (0,))


def _late_shifts(types, arguments):
    """Shifts change no shape: all of them may come late."""
    x, shifts, dims = arguments
    return (x, (int,) * len(shifts), dims), shifts


def _rolled_late(x, shift, dim):
    extent = x.shape[dim]
    if not extent:
        return x
    start = flat.rem(-shift, extent)
    start = flat.where(start < 0, start + extent, start)
    return late_part(flat.concatenate((x, x), dim), dim, start, extent)


@op(
    "roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor",
    samples=lambda: [
        S(T(3, 4), (2,)),
        S(T(3, 4), (1,), (0,)),
        S(T(3, 4), (-5, 2), (0, 1)),
        S(T(5), (7,), (-1,)),
        S(T(3, 4), (1, 1), (0, 0)),
        S(T(0, 3), (2,), (0,)),
        S(T(), (1,)),
    ],
    late=_late_shifts,
)
def roll(x, shifts, dims):
    """Elements moved on by `shifts` along dims, the last to the front; without dims, of x as one row."""
    if not shifts:
        raise ArgumentError("roll: shifts is empty")
    if not dims and len(shifts) == 1:
        return flat.reshape(roll(flat.reshape(x, (x.numel,)), shifts, (0,)), x.shape)
    if len(shifts) != len(dims):
        raise ArgumentError(f"roll: shifts {list(shifts)} and dims {list(dims)} differ in length")
    for shift, dim in zip(shifts, dims, strict=True):
        dim = flat.axis(dim, x.rank)
        if not x.rank:
            raise IndexOutOfRange("roll: a zero-dimensional tensor has no dimension to roll")
        if not flat.known(shift):
            x = _rolled_late(x, flat.plain(shift), dim)
            continue
        cut = -shift % max(x.shape[dim], 1)
        if cut:
            parts = flat.slice_dim(x, dim, cut, x.shape[dim]), flat.slice_dim(x, dim, 0, cut)
            x = flat.concatenate(parts, dim)
    return x


@op(
    "rot90(Tensor self, int k=1, int[] dims=[0,1]) -> Tensor",
    samples=lambda: (
        [S(T(3, 4), k) for k in (1, 2, 3, 4, -1)] + [S(T(2, 3, 4), 1, (2, 0)), S(T(2, 3, 4), 3, (-1, 1))]
    ),
)
def rot90(x, k, dims):
    """x turned k times by 90 degrees in the plane of dims, from the first towards the second."""
    if len(dims) != 2 or x.rank < 2:
        raise ShapeError(f"rot90 turns in a plane of two dimensions, not in {list(dims)} of {x.type}")
    first, second = flat.axes(dims, x.rank)
    k %= 4
    if k == 2:
        return flat.reverse(x, (first, second))
    if k == 1:
        return flat.swap(flat.reverse(x, (second,)), first, second)
    return flat.reverse(flat.swap(x, first, second), (second,)) if k else x


# Channels and pixels


def _factor(x, factor, divides, name):
    if x.rank < 3:
        raise ShapeError(f"{name} needs at least 3 dimensions, not {x.type}")
    if factor < 1 or not divides:
        raise ShapeError(f"{name}: {x.type} does not divide by a factor of {factor}")


@op(
    "pixel_shuffle(Tensor self, int upscale_factor) -> Tensor",
    method=False,
    samples=lambda: [S(T(8, 2, 3), 2), S(T(2, 9, 1, 2), 3), S(T(3, 2, 2), 1), S(T(0, 4, 2, 2), 2)],
)
def pixel_shuffle(x, factor):
    """[*, C r^2, H, W] to [*, C, H r, W r]."""
    _factor(x, factor, x.rank >= 3 and factor > 0 and x.shape[-3] % factor**2 == 0, "pixel_shuffle")
    *batch, channels, height, width = x.shape
    n = len(batch)
    x = flat.reshape(x, (*batch, channels // factor**2, factor, factor, height, width))
    x = flat.transpose(x, (*range(n), n, n + 3, n + 1, n + 4, n + 2))
    return flat.reshape(x, (*batch, channels // factor**2, height * factor, width * factor))


@op(
    "pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor",
    method=False,
    samples=lambda: [S(T(2, 4, 6), 2), S(T(2, 1, 3, 6), 3), S(T(3, 2, 2), 1), S(T(0, 1, 2, 2), 2)],
)
def pixel_unshuffle(x, factor):
    """[*, C, H r, W r] to [*, C r^2, H, W]."""
    fits = x.rank >= 3 and factor > 0 and x.shape[-1] % factor == 0 and x.shape[-2] % factor == 0
    _factor(x, factor, fits, "pixel_unshuffle")
    if not x.numel:
        return x  # PyTorch leaves an empty tensor in its shape
    *batch, channels, height, width = x.shape
    n = len(batch)
    x = flat.reshape(x, (*batch, channels, height // factor, factor, width // factor, factor))
    x = flat.transpose(x, (*range(n), n, n + 2, n + 4, n + 1, n + 3))
    return flat.reshape(x, (*batch, channels * factor**2, height // factor, width // factor))


@op(
    "channel_shuffle(Tensor self, SymInt groups) -> Tensor",
    "native_channel_shuffle(Tensor self, SymInt groups) -> Tensor",
    method=False,
    samples=lambda: [S(T(2, 6, 3), 2), S(T(1, 6, 2, 2), 3), S(T(2, 4, 1), 1)],
    needs="groups > 0",
    torch_dialect="own name",
)
def channel_shuffle(x, groups):
    """The channels of `groups` groups, dealt out in turn."""
    if x.rank < 3:
        raise ShapeError(f"channel_shuffle needs at least 3 dimensions, not {x.type}")
    if groups < 1 or x.shape[1] % groups:
        raise ShapeError(f"channel_shuffle: {x.shape[1]} channels do not divide into {groups} groups")
    batch, channels, *rest = x.shape
    grouped = flat.reshape(x, (batch, groups, channels // groups, *rest))
    return flat.reshape(flat.swap(grouped, 1, 2), x.shape)
