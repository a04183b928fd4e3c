"""Rows that widen a tensor at its edges: by a constant, its mirror image, its edge, or coming round."""

from tenfold import flat
from tenfold.base.errors import ArgumentError, ShapeError, UnsupportedError
from tenfold.ops.numbers import number_in
from tenfold.ops.samples import S, T
from tenfold.ops.table import op


def edges(x, pad):
    """PyTorch's list, last dimension first, as (low, high) for each dimension."""
    if len(pad) % 2 or len(pad) > 2 * x.rank:
        raise ShapeError(f"pad: {len(pad)} numbers do not pair with the dimensions of {x.type}")
    pairs = [(0, 0)] * x.rank
    for i in range(len(pad) // 2):
        pairs[x.rank - 1 - i] = (pad[2 * i], pad[2 * i + 1])
    return pairs


def _constants():
    return [
        S(T(3, 4), (1, 2)),
        S(T(3, 4), (1, 0, 2, 1), 2),
        S(T(3, 4), (-1, 1), 1.5),
        S(T(3, 4), ()),
        S(T(0, 3), (1, 1, 1, 0), 1),
        S(T(2, 3, 4), (0, -1, -1, 0, 1, 1)),
    ]


@op("constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor", method=False, samples=_constants)
def constant_pad_nd(x, pad, value):
    """x with `value` at its edges; pad lists low and high of the last dimension, then of the one before."""
    pairs = edges(x, pad)
    low, high = [p[0] for p in pairs], [p[1] for p in pairs]
    return flat.pad(x, low, high, number_in(value, x.dtype))


def cropped(x, dim, low, high):
    first, last = max(-low, 0), x.shape[dim] - max(-high, 0)
    if first > last:
        raise ShapeError(f"padding {low}, {high} would make dimension {dim} of {x.type} negative")
    return flat.slice_dim(x, dim, first, last)


def reflected(x, dim, low, high):
    """abcd -> cb abcd cb: the edge itself is not repeated."""
    n = x.shape[dim]
    if low >= n or high >= n:
        raise ShapeError(
            f"reflect: padding {low}, {high} must be less than {n}, the extent of dimension {dim} of {x.type}"
        )
    parts = [x]
    if low > 0:
        parts.insert(0, flat.reverse(flat.slice_dim(x, dim, 1, low + 1), (dim,)))
    if high > 0:
        parts.append(flat.reverse(flat.slice_dim(x, dim, n - 1 - high, n - 1), (dim,)))
    return cropped(flat.concatenate(parts, dim), dim, min(low, 0), min(high, 0))


def replicated(x, dim, low, high):
    """abcd -> aa abcd dd."""
    n = x.shape[dim]
    if n == 0 and (low > 0 or high > 0):
        raise ShapeError(f"replicate: dimension {dim} of {x.type} has no edge to repeat")
    parts = [x]
    for count, first, at in ((low, 0, 0), (high, n - 1, len(parts) + 1)):
        if count > 0:
            shape = [count if d == dim else extent for d, extent in enumerate(x.shape)]
            parts.insert(at, flat.broadcast_to(flat.slice_dim(x, dim, first, first + 1), shape))
    return cropped(flat.concatenate(parts, dim), dim, min(low, 0), min(high, 0))


def wrapped(x, dim, low, high):
    """abcd -> cd abcd ab."""
    if max(low, high) > x.shape[dim]:
        raise ShapeError(
            f"circular: padding {low}, {high} would go round dimension {dim} of {x.type} more than once"
        )
    x = cropped(x, dim, low, high)
    n = x.shape[dim]
    parts = [x]
    if low > 0:
        parts.insert(0, flat.slice_dim(x, dim, n - low, n))
    if high > 0:
        parts.append(flat.slice_dim(x, dim, 0, high))
    return flat.concatenate(parts, dim)


def along(x, pad, rule, name, batch=2):
    """Apply a rule to the last dimensions; the first one or two are batch and channels."""
    count = len(pad) // 2
    if len(pad) % 2 or not count <= 3 or x.rank not in range(count + batch - 1, count + 3):
        raise ShapeError(
            f"{name}: {len(pad)} numbers pad the last of {count + 1} or {count + 2} dimensions, not {x.type}"
        )
    if any(extent == 0 for extent in x.shape[1:]):
        raise ShapeError(f"{name}: only the batch of {x.type} may be empty")
    for dim, (low, high) in enumerate(edges(x, pad)):
        if low or high:
            x = rule(x, dim, low, high)
    if any(extent <= 0 for extent in x.shape[1:]):
        raise ShapeError(f"{name}: padding {list(pad)} leaves nothing")
    return x


def _declare(dims):
    """The rows reflection_pad{dims}d and replication_pad{dims}d."""
    count = 2 * dims

    def samples():
        shape, pad = (5, 4, 3)[-dims:], (1, 2, 0, 1, 2, 0)[:count]
        return [S(T(2, *shape), pad), S(T(1, 2, *shape), pad), S(T(2, *shape), (-1, 1) + (0,) * (count - 2))]

    @op(
        f"reflection_pad{dims}d(Tensor self, SymInt[{count}] padding) -> Tensor",
        module="nn",
        function=False,
        method=False,
        samples=samples,
        autocast="" if dims == 3 else "cpu: float32",
    )
    def reflection_pad(x, padding):
        """Widened by its mirror image."""
        return along(x, padding, reflected, f"reflection_pad{dims}d")

    @op(
        f"replication_pad{dims}d(Tensor self, SymInt[{count}] padding) -> Tensor",
        module="nn",
        function=False,
        method=False,
        samples=samples,
        autocast="cpu: float32",
    )
    def replication_pad(x, padding):
        """Widened by its edges."""
        return along(x, padding, replicated, f"replication_pad{dims}d")


for _dims in (1, 2, 3):
    _declare(_dims)


@op(
    "_pad_circular(Tensor self, SymInt[] pad) -> Tensor",
    module="nn",
    function=False,
    method=False,
    samples=lambda: [S(T(2, 4), (1, 2)), S(T(1, 2, 3, 4), (2, 4, 3, 0)), S(T(2, 4), (-1, 2))],
)
def _pad_circular(x, pad):
    """Widened by coming round."""
    return along(x, pad, wrapped, "circular")


MODES = {"reflect": reflected, "replicate": replicated, "circular": wrapped}


@op(
    'pad(Tensor self, SymInt[] pad, str mode="constant", float? value=None) -> Tensor',
    module="nn",
    method=False,
    samples=lambda: [
        S(T(3, 4), (1, 2)),
        S(T(3, 4), (1, 0, 2, 1), "constant", 2.0),
        S(T(2, 3, 4), (1, 2), "reflect"),
        S(T(2, 3, 4), (1, 2, 1, 1), "replicate"),
        S(T(2, 3, 4), (2, 1), "circular"),
        S(T(2, 3, 4, 3), (1, 1, 0, 2), "reflect"),
    ],
)
def pad(x, pad, mode, value):
    """x widened at its edges: by a constant, "reflect", "replicate" or "circular"."""
    if mode == "constant":
        return constant_pad_nd(x, pad, 0 if value is None else value)
    if mode not in MODES:
        raise ArgumentError(f"pad: no mode {mode!r}", help=f"use constant, {', '.join(MODES)}")
    if value:
        raise ArgumentError(f"pad: mode {mode!r} takes no value")
    if len(pad) not in (2, 4, 6) or x.rank not in (len(pad) // 2 + 1, len(pad) // 2 + 2):
        raise UnsupportedError(
            f"pad: mode {mode!r} pads the last 1 to 3 of 2 to 5 dimensions, not {x.type} by {list(pad)}"
        )
    return along(x, pad, MODES[mode], f"pad ({mode})")
