"""Builders of FlatIR values: what lowerings call. Broadcasting and Python numbers are handled here, once.

In every builder an operand may be a Python number: it takes the dtype of the values beside it. Dimensions may
be negative. The classes are in the files beside this one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold import dtypes
from tenfold.dtypes import DType
from tenfold.errors import IndexOutOfRange, ShapeError
from tenfold.flat import elementwise as e
from tenfold.flat import movement as m
from tenfold.flat import structured as s
from tenfold.flat.graph import Function, LateNumber, TensorType, Value
from tenfold.flat.indexed import Gather, GatherDimensions, Scatter, ScatterDimensions
from tenfold.flat.windows import ConvDimensions, Convolution, ReduceWindow

Number = bool | int | float | complex
Operand = Value | Number
Ints = tuple[int, ...]


# Constants and dimensions


def constant(value: Any, dtype: DType) -> Value:
    """A literal scalar or small array; a late number in this dtype."""
    if type(value) is LateNumber:
        return convert(plain(value), dtype)
    return m.Constant(m.array(value, dtype), dtype).result


def full(shape: Sequence[int], value: Number, dtype: DType) -> Value:
    return broadcast_to(constant(value, dtype), shape)


def full_like(x: Value, value: Number) -> Value:
    return full(x.shape, value, x.dtype)


def iota(shape: Sequence[int], dim: int, dtype: DType = dtypes.int64) -> Value:
    """Each element is its own place along `dim`. bool is not a dtype that counts."""
    return m.Iota(dtype, tuple(shape), dim).result


def arange(count: int, dtype: DType = dtypes.int64) -> Value:
    return iota((count,), 0, dtype)


def lowest(dtype: DType) -> Number:
    """The identity of maximum: -inf for floats that have it."""
    if dtype.kind == "bool":
        return False
    if dtype is dtypes.float8_e4m3fn:
        return dtypes.finfo(dtype).min
    return int(np.iinfo(dtype.numpy).min) if dtype.kind == "int" else float("-inf")


def highest(dtype: DType) -> Number:
    """The identity of minimum: inf for floats that have it."""
    if dtype.kind == "bool":
        return True
    if dtype is dtypes.float8_e4m3fn:
        return dtypes.finfo(dtype).max
    return int(np.iinfo(dtype.numpy).max) if dtype.kind == "int" else float("inf")


def axis(dim: int, rank: int) -> int:
    """`dim` counted from the front; zero-dimensional tensors accept 0 and -1, as in PyTorch."""
    extent = max(rank, 1)
    if not -extent <= dim < extent:
        raise IndexOutOfRange(
            f"dimension {dim} is out of range for a tensor of {rank} dimensions",
            help=f"use {-extent} to {extent - 1}",
        )
    return dim % extent


def axes(dims: int | Sequence[int] | None, rank: int) -> Ints:
    """Distinct dimensions counted from the front; None and () mean all, as in PyTorch's reductions."""
    if dims is None or (not isinstance(dims, int) and len(dims) == 0):
        return tuple(range(rank))
    found = tuple([axis(d, rank) for d in ((dims,) if isinstance(dims, int) else dims)])
    if len(set(found)) != len(found):
        raise ShapeError(
            f"dimension {next(d for d in found if found.count(d) > 1)} appears twice in {list(found)}"
        )
    return found if rank else ()


# Broadcasting


def broadcast_shapes(*shapes: Ints) -> Ints:
    """The shape to which all of these stretch, by NumPy's rule."""
    result: list[int] = []
    for shape in shapes:
        if len(shape) > len(result):
            result = [1] * (len(shape) - len(result)) + result
        for back in range(1, len(shape) + 1):
            extent = shape[-back]
            if extent != 1:
                if result[-back] not in (1, extent):
                    raise _mismatch(shapes, back, result[-back], extent)
                result[-back] = extent
    return tuple(result)


def _mismatch(shapes: Sequence[Ints], back: int, left: int, right: int) -> ShapeError:
    where = "the last dimension" if back == 1 else f"dimension -{back}"
    texts = " with ".join(str(list(shape)) for shape in shapes)
    return ShapeError(
        f"cannot broadcast {texts}: {left} and {right} differ in {where}",
        help="unsqueeze or slice one operand so that the trailing dimensions agree",
    )


def broadcast_to(x: Value, shape: Sequence[int]) -> Value:
    """x stretched to `shape`, aligned at the last dimension."""
    shape = tuple(shape)
    if x.type.shape == shape:
        return x
    if x.rank > len(shape):
        raise ShapeError(f"cannot broadcast {x.type} to {list(shape)}: it has more dimensions")
    return m.BroadcastInDim(x, shape, tuple(range(len(shape) - x.rank, len(shape)))).result


def broadcast(*operands: Operand, dtype: DType | None = None) -> list[Value]:
    """The operands as values of one shape; numbers become constants of the dtype of values beside them."""
    values = [each for each in operands if isinstance(each, Value) and type(each) is not LateNumber]
    if not values:
        raise TypeError("an op needs a value beside its numbers")
    if dtype is None:
        dtype = values[0].dtype
    first = values[0].type.shape
    if all(each.type.shape == first for each in values):
        shape = first
    else:
        try:
            shape = broadcast_shapes(*[each.type.shape for each in values])
        except ShapeError as error:
            texts = " with ".join(str(each.type) for each in values)
            raise ShapeError(
                f"cannot broadcast {texts}:{error.message.rpartition(':')[2]}", help=error.help
            ) from None
    result = []
    for each in operands:
        if type(each) is LateNumber:
            each = convert(each, dtype)
        result.append(broadcast_to(each, shape) if isinstance(each, Value) else full(shape, each, dtype))
    return result


# Elementwise


def _unary(op: type[e.Unary]) -> Callable[[Value], Value]:
    def build(x: Value) -> Value:
        return op(x).result

    build.__name__ = op.__name__
    return build


def _binary(op: type[e.Binary]) -> Callable[[Operand, Operand], Value]:
    def build(x: Operand, y: Operand) -> Value:
        x, y = broadcast(x, y)
        return op(x, y).result

    build.__name__ = op.__name__
    return build


abs = _unary(e.Abs)
acos = _unary(e.Acos)
acosh = _unary(e.Acosh)
asin = _unary(e.Asin)
asinh = _unary(e.Asinh)
atan = _unary(e.Atan)
atanh = _unary(e.Atanh)
bessel_i1e = _unary(e.BesselI1e)
cbrt = _unary(e.Cbrt)
ceil = _unary(e.Ceil)
cos = _unary(e.Cosine)
cosh = _unary(e.Cosh)
count_leading_zeros = _unary(e.CountLeadingZeros)
digamma = _unary(e.Digamma)
erf = _unary(e.Erf)
erfc = _unary(e.Erfc)
erfinv = _unary(e.ErfInv)
exp = _unary(e.Exponential)
expm1 = _unary(e.ExponentialMinusOne)
floor = _unary(e.Floor)
imag = _unary(e.Imag)
is_finite = _unary(e.IsFinite)
lgamma = _unary(e.Lgamma)
log = _unary(e.Log)
log1p = _unary(e.LogPlusOne)
logistic = _unary(e.Logistic)
neg = _unary(e.Negate)
invert = _unary(e.Not)
popcount = _unary(e.Popcnt)
real = _unary(e.Real)
round_half_away = _unary(e.RoundNearestAfz)
round_half_even = _unary(e.RoundNearestEven)
rsqrt = _unary(e.Rsqrt)
sign = _unary(e.Sign)
sin = _unary(e.Sine)
sinh = _unary(e.Sinh)
sqrt = _unary(e.Sqrt)
tan = _unary(e.Tan)
tanh = _unary(e.Tanh)

add = _binary(e.Add)
atan2 = _binary(e.Atan2)
div = _binary(e.Divide)
maximum = _binary(e.Maximum)
minimum = _binary(e.Minimum)
mul = _binary(e.Multiply)
nextafter = _binary(e.NextAfter)
polygamma = _binary(e.Polygamma)
rem = _binary(e.Remainder)
shift_left = _binary(e.ShiftLeft)
shift_right = _binary(e.ShiftRightArithmetic)
shift_right_logical = _binary(e.ShiftRightLogical)
sub = _binary(e.Subtract)
logical_and = _binary(e.And)
logical_or = _binary(e.Or)
logical_xor = _binary(e.Xor)
zeta = _binary(e.Zeta)


def power(x: Operand, y: Operand) -> Value:
    """x to the y. XLA reads six bits of an integer exponent: what is above is worked off by squaring."""
    small = isinstance(y, int) and y < 64
    x, y = broadcast(x, y)
    if x.dtype.kind != "int" or small:
        return e.Power(x, y).result
    large = ge(y, 64)
    result = e.Power(x, where(large, logical_and(y, 63), y)).result
    rest = where(large, shift_right_logical(y, 6), 0)
    base = x
    for _ in range(6):
        base = mul(base, base)

    def step(result: Value, base: Value, rest: Value) -> tuple[Value, ...]:
        odd = ne(logical_and(rest, 1), 0)
        return where(odd, mul(result, base), result), mul(base, base), shift_right_logical(rest, 1)

    unfinished = lambda result, base, rest: reduce(ne(rest, 0), "or")
    return while_loop(unfinished, step, (result, base, rest))[0]


def conj(x: Value) -> Value:
    return e.Conj(x).result if x.dtype.is_complex else x


def compare(x: Operand, y: Operand, direction: str, total_order: bool = False) -> Value:
    x, y = broadcast(x, y)
    return e.Compare(x, y, direction, total_order).result


def eq(x: Operand, y: Operand) -> Value:
    return compare(x, y, "EQ")


def ne(x: Operand, y: Operand) -> Value:
    return compare(x, y, "NE")


def lt(x: Operand, y: Operand) -> Value:
    return compare(x, y, "LT")


def le(x: Operand, y: Operand) -> Value:
    return compare(x, y, "LE")


def gt(x: Operand, y: Operand) -> Value:
    return compare(x, y, "GT")


def ge(x: Operand, y: Operand) -> Value:
    return compare(x, y, "GE")


def isnan(x: Value) -> Value:
    return ne(x, x)


def isinf(x: Value) -> Value:
    return eq(abs(x), float("inf"))


def where(predicate: Value, on_true: Operand, on_false: Operand) -> Value:
    """Elementwise choice, all three broadcast together; at least one side is a value."""
    side = next(
        each for each in (on_true, on_false) if isinstance(each, Value) and type(each) is not LateNumber
    )
    predicate, on_true, on_false = broadcast(predicate, on_true, on_false, dtype=side.dtype)
    return e.Select(predicate, on_true, on_false).result


def clamp(x: Value, low: Operand, high: Operand) -> Value:
    x, low, high = broadcast(x, low, high)
    return e.Clamp(low, x, high).result


def complex(re: Operand, im: Operand) -> Value:
    re, im = broadcast(re, im)
    return e.Complex(re, im).result


def convert(x: Value, dtype: DType) -> Value:
    """x in another dtype, as in PyTorch: complex loses its imaginary part, floats wrap into narrow ints."""
    if x.type.dtype is dtype:
        return x
    if x.dtype.is_complex and not dtype.is_complex:
        if dtype.kind == "bool":
            return ne(x, 0)
        return convert(real(x), dtype)
    if x.dtype.kind == "bool" and dtype.kind in ("float", "complex"):
        # XLA folds convert(p) * y into select(p, y, 0), which loses the NaN of 0 * inf.
        return where(x, full(x.shape, 1, dtype), 0)
    if x.dtype.is_floating_point and dtype.kind == "int" and dtype.itemsize < 4:
        x = e.Convert(x, dtypes.int32).result
    elif x.dtype.is_floating_point and dtype.kind == "int" and not dtype.is_signed:
        wrapped = e.Convert(x, dtypes.int64).result
        if dtype is dtypes.uint64:
            return where(lt(x, 0), e.Convert(wrapped, dtype).result, e.Convert(x, dtype).result)
        x = wrapped
    if dtype is dtypes.float8_e4m3fn:
        # It has no infinity: PyTorch stops at its largest number, where XLA would give NaN.
        x = clamp(x, -448.0, 448.0) if x.dtype.is_floating_point else x
    return e.Convert(x, dtype).result


def plain(number: LateNumber) -> Value:
    """A late number as an ordinary zero-dimensional value."""
    return e.Convert(number, number.dtype).result


def bitcast(x: Value, dtype: DType) -> Value:
    return e.BitcastConvert(x, dtype).result


def barrier(*values: Value) -> tuple[Value, ...]:
    return e.OptimizationBarrier(values).results


# Moving data


def reshape(x: Value, shape: Sequence[int]) -> Value:
    """x with another shape; one extent may be -1."""
    shape = tuple(shape)
    if -1 in shape:
        shape = _inferred(x, shape)
    return x if x.type.shape == shape else m.Reshape(x, shape).result


def _inferred(x: Value, shape: Ints) -> Ints:
    known = 1
    for extent in shape:
        known *= extent if extent != -1 else 1
    if shape.count(-1) > 1:
        raise ShapeError(f"cannot reshape {x.type} to {list(shape)}: only one dimension can be inferred")
    if known == 0 or x.numel % known:
        raise ShapeError(
            f"cannot reshape {x.type} to {list(shape)}: {x.numel} elements do not divide by {known}"
        )
    return tuple([x.numel // known if extent == -1 else extent for extent in shape])


def transpose(x: Value, permutation: Sequence[int]) -> Value:
    permutation = tuple(permutation)
    return x if permutation == tuple(range(x.rank)) else m.Transpose(x, permutation).result


def swap(x: Value, dim0: int, dim1: int) -> Value:
    """x with two dimensions exchanged."""
    order = list(range(x.rank))
    if x.rank:
        i, j = axis(dim0, x.rank), axis(dim1, x.rank)
        order[i], order[j] = j, i
    return transpose(x, order)


def move(x: Value, source: int, destination: int) -> Value:
    """x with one dimension moved elsewhere."""
    source, destination = axis(source, x.rank), axis(destination, x.rank)
    order = [d for d in range(x.rank) if d != source]
    order.insert(destination, source)
    return transpose(x, order)


def unsqueeze(x: Value, dim: int) -> Value:
    dim = axis(dim, x.rank + 1)
    return reshape(x, (*x.shape[:dim], 1, *x.shape[dim:]))


def squeeze(x: Value, dim: int) -> Value:
    dim = axis(dim, x.rank)
    return reshape(x, (*x.shape[:dim], *x.shape[dim + 1 :]))


def slice(
    x: Value, starts: Sequence[int], limits: Sequence[int], strides: Sequence[int] | None = None
) -> Value:
    return m.Slice(x, tuple(starts), tuple(limits), tuple(strides) if strides else (1,) * x.rank).result


def slice_dim(x: Value, dim: int, start: int, limit: int, stride: int = 1) -> Value:
    """x[..., start:limit:stride, ...] along one dimension, bounds already inside."""
    dim = axis(dim, x.rank)
    starts, limits, strides = [0] * x.rank, list(x.shape), [1] * x.rank
    starts[dim], limits[dim], strides[dim] = start, limit, stride
    return slice(x, starts, limits, strides)


def dynamic_slice(x: Value, starts: Sequence[Operand], sizes: Sequence[int]) -> Value:
    return m.DynamicSlice(x, _places(starts), tuple(sizes)).result


def dynamic_update_slice(x: Value, update: Value, starts: Sequence[Operand]) -> Value:
    return m.DynamicUpdateSlice(x, update, _places(starts)).result


def _places(starts: Sequence[Operand]) -> tuple[Value, ...]:
    values = [each for each in starts if isinstance(each, Value)]
    dtype = values[0].dtype if values else dtypes.int64
    return tuple([each if isinstance(each, Value) else constant(each, dtype) for each in starts])


def concatenate(values: Sequence[Value], dim: int) -> Value:
    values = tuple(values)
    return values[0] if len(values) == 1 else m.Concatenate(values, dim).result


def pad(
    x: Value,
    low: Sequence[int],
    high: Sequence[int],
    value: Operand = 0,
    interior: Sequence[int] | None = None,
) -> Value:
    filler = value if isinstance(value, Value) else constant(value, x.dtype)
    return m.Pad(x, filler, tuple(low), tuple(high), tuple(interior) if interior else (0,) * x.rank).result


def reverse(x: Value, dims: Sequence[int]) -> Value:
    return m.Reverse(x, tuple(dims)).result if dims else x


def gather(x: Value, indices: Value, numbers: GatherDimensions, sizes: Sequence[int]) -> Value:
    return Gather(x, indices, numbers, tuple(sizes), False).result


def scatter(
    x: Value, indices: Value, updates: Value, numbers: ScatterDimensions, combine: str = "set"
) -> Value:
    """x with updates put in (`set`) or folded in by a monoid: add, mul, max, min."""
    body = monoid(combine, x.dtype)
    return Scatter((x,), indices, (updates,), numbers, False, False, body).result


def take(x: Value, indices: Value, dim: int) -> Value:
    """x[..., indices, ...]: the dimensions of `indices` stand where `dim` stood. Indices are not negative."""
    dim = axis(dim, x.rank)
    rank = indices.rank
    numbers = GatherDimensions(
        offset_dims=(*range(dim), *range(dim + rank, x.rank - 1 + rank)),
        collapsed_slice_dims=(dim,),
        start_index_map=(dim,),
        index_vector_dim=rank,
    )
    return gather(x, indices, numbers, [1 if d == dim else extent for d, extent in enumerate(x.shape)])


def take_along(x: Value, indices: Value, dim: int) -> Value:
    """torch.gather: result[i][j] = x[i][indices[i][j]], each other dimension of indices at most x's."""
    dim = axis(dim, x.rank)
    starts = concatenate([unsqueeze(each, indices.rank) for each in grid(indices, dim)], indices.rank)
    numbers = GatherDimensions((), tuple(range(x.rank)), tuple(range(x.rank)), indices.rank)
    return gather(x, starts, numbers, (1,) * x.rank)


def grid(indices: Value, dim: int) -> list[Value]:
    """For each dimension the index that `indices`, standing for `dim`, reads there."""
    return [indices if d == dim else iota(indices.shape, d, indices.dtype) for d in range(indices.rank)]


def check(x: Value, holds: Value, error: type[Exception], message: str) -> Value:
    """x, but reading results of a program in which `holds` is not true everywhere raises."""
    if holds.rank:
        holds = reduce(holds, "and")
    return s.Check(x, holds, error, message).result


# Functions: bodies of reductions, sorts and loops


def function(build: Callable[..., Any], types: Sequence[TensorType], name: str = "") -> Function:
    """What `build` computes on parameters of these types."""
    params = [Value(each) for each in types]
    results = build(*params)
    return Function(params, results if isinstance(results, (tuple, list)) else (results,), name)


MONOIDS: dict[str, Callable[[Value, Value], Value]] = {
    "add": add,
    "mul": mul,
    "max": maximum,
    "min": minimum,
    "and": logical_and,
    "or": logical_or,
    "set": lambda old, new: new,
}


@functools.cache
def monoid(kind: str, dtype: DType) -> Function:
    """The body of a reduction or scatter, one object for each kind and dtype: `name` tells which."""
    scalar = TensorType(dtype, ())
    return function(MONOIDS[kind], (scalar, scalar), kind)


def identity(kind: str, dtype: DType) -> Number:
    if kind == "max":
        return lowest(dtype)
    if kind == "min":
        return highest(dtype)
    return {"add": 0, "mul": 1, "and": True if dtype.kind == "bool" else -1, "or": 0}[kind]


def reduce(x: Value, kind: str, dims: int | Sequence[int] | None = None, keepdim: bool = False) -> Value:
    """Fold by a monoid: add, mul, max, min, and, or. None, or (), means all dimensions."""
    dims = axes(dims, x.rank)
    if dims:
        init = constant(identity(kind, x.dtype), x.dtype)
        result = s.Reduce((x,), (init,), dims, monoid(kind, x.dtype)).result
    else:
        result = x
    return reshape(result, [1 if d in dims else n for d, n in enumerate(x.shape)]) if keepdim else result


def sum(x: Value, dims: int | Sequence[int] | None = None, keepdim: bool = False) -> Value:
    return reduce(x, "add", dims, keepdim)


def reduce_with(
    inputs: Sequence[Value], inits: Sequence[Number], dims: Sequence[int], body: Callable[..., Any]
) -> tuple[Value, ...]:
    """Fold several inputs together: `body(*accumulators, *elements)` gives the new accumulators."""
    starts = tuple([constant(init, x.dtype) for x, init in zip(inputs, inits, strict=True)])
    scalars = [TensorType(x.dtype, ()) for x in inputs]
    return s.Reduce(tuple(inputs), starts, tuple(dims), function(body, scalars * 2)).results


def reduce_window(
    x: Value,
    kind: str,
    window: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Sequence[tuple[int, int]] | None = None,
    dilation: Sequence[int] | None = None,
    base_dilation: Sequence[int] | None = None,
) -> Value:
    ones = (1,) * x.rank
    return ReduceWindow(
        (x,),
        (constant(identity(kind, x.dtype), x.dtype),),
        tuple(window),
        tuple(strides or ones),
        tuple(base_dilation or ones),
        tuple(dilation or ones),
        tuple(padding or ((0, 0),) * x.rank),
        monoid(kind, x.dtype),
    ).result


def sort(
    inputs: Sequence[Value], dim: int, comparator: Callable[..., Value], stable: bool = True
) -> tuple[Value, ...]:
    """Sort together; `comparator(left0, right0, left1, right1, ...)` says whether left goes before right."""
    pairs = [TensorType(x.dtype, ()) for x in inputs for _ in range(2)]
    return s.Sort(tuple(inputs), dim, stable, function(comparator, pairs)).results


def top_k(x: Value, k: int) -> tuple[Value, Value]:
    values, places = s.TopK(x, k).results
    return values, places


def while_loop(
    condition: Callable[..., Value], body: Callable[..., Any], carry: Sequence[Value]
) -> tuple[Value, ...]:
    types = [each.type for each in carry]
    return s.While(tuple(carry), function(condition, types), function(body, types)).results


def case(
    index: Value, branches: Sequence[Callable[..., Any]], arguments: Sequence[Value]
) -> tuple[Value, ...]:
    types = [each.type for each in arguments]
    functions = tuple([function(each, types) for each in branches])
    return s.Case(index, tuple(arguments), functions).results


def cond(
    predicate: Value, on_true: Callable[..., Any], on_false: Callable[..., Any], arguments: Sequence[Value]
) -> tuple[Value, ...]:
    return case(convert(predicate, dtypes.int32), (on_false, on_true), arguments)


# Contractions and library calls


def dot_general(
    x: Value,
    y: Value,
    contract: tuple[Sequence[int], Sequence[int]],
    batch: tuple[Sequence[int], Sequence[int]] = ((), ()),
    dtype: DType | None = None,
) -> Value:
    """Sums of products; `dtype` is the result's, by default the operands'."""
    numbers = s.DotDimensions(tuple(batch[0]), tuple(batch[1]), tuple(contract[0]), tuple(contract[1]))
    return s.DotGeneral(x, y, numbers, dtype or x.dtype).result


def convolution(
    x: Value,
    kernel: Value,
    numbers: ConvDimensions,
    *,
    strides: Sequence[int] | None = None,
    padding: Sequence[tuple[int, int]] | None = None,
    x_dilation: Sequence[int] | None = None,
    kernel_dilation: Sequence[int] | None = None,
    groups: int = 1,
    batch_groups: int = 1,
) -> Value:
    """Sums of products of a kernel with the windows of x; negative padding cuts x."""
    ones = (1,) * (x.rank - 2)
    padding = tuple(padding) if padding is not None else ((0, 0),) * (x.rank - 2)
    spread = tuple(x_dilation or ones)
    if any(low < 0 or high < 0 for low, high in padding):
        lows, highs, interior = [0] * x.rank, [0] * x.rank, [0] * x.rank
        for dim, (low, high), dilation in zip(numbers.input_spatial_dimensions, padding, spread, strict=True):
            lows[dim], highs[dim], interior[dim] = min(low, 0), min(high, 0), dilation - 1
        x, spread = pad(x, lows, highs, 0, interior), ones
        padding = tuple([(max(low, 0), max(high, 0)) for low, high in padding])
    settings = (tuple(strides or ones), padding, spread, tuple(kernel_dilation or ones), (False,) * len(ones))
    return Convolution(x, kernel, *settings, numbers, groups, batch_groups).result


def random_bits(state: Value, shape: Sequence[int], dtype: DType) -> tuple[Value, Value]:
    """A new state, and uniform random bits as unsigned integers."""
    new_state, bits = s.RngBitGenerator(state, dtype, tuple(shape)).results
    return new_state, bits


def fft(x: Value, kind: str, lengths: Sequence[int]) -> Value:
    return s.Fft(x, kind, tuple(lengths)).result


def cholesky(x: Value, lower: bool = True) -> Value:
    return s.Cholesky(x, lower).result


def triangular_solve(
    a: Value,
    b: Value,
    *,
    left: bool = True,
    lower: bool = True,
    unit: bool = False,
    transpose_a: str = "NO_TRANSPOSE",
) -> Value:
    return s.TriangularSolve(a, b, left, lower, unit, transpose_a).result


def custom_call(
    target: str,
    inputs: Sequence[Value],
    results: Sequence[TensorType],
    config: Sequence[tuple[str, object]] = (),
    aliases: Sequence[tuple[int, int]] = (),
) -> tuple[Value, ...]:
    return s.CustomCall(tuple(inputs), target, tuple(results), tuple(config), tuple(aliases)).results


# Operators on values


def _pow(x: Value, y: Operand) -> Value:
    if isinstance(y, int) and not isinstance(y, bool) and 1 <= y <= 4:
        square = mul(x, x) if y > 1 else x
        return {1: x, 2: square, 3: mul(square, x) if y == 3 else x, 4: mul(square, square) if y == 4 else x}[
            y
        ]
    return power(x, y)


_OPERATORS: dict[str, Callable[..., Value]] = {
    "__add__": add,
    "__radd__": lambda x, y: add(y, x),
    "__sub__": sub,
    "__rsub__": lambda x, y: sub(y, x),
    "__mul__": mul,
    "__rmul__": lambda x, y: mul(y, x),
    "__truediv__": div,
    "__rtruediv__": lambda x, y: div(y, x),
    "__mod__": rem,
    "__pow__": _pow,
    "__neg__": neg,
    "__invert__": invert,
    "__and__": logical_and,
    "__or__": logical_or,
    "__xor__": logical_xor,
    "__lt__": lt,
    "__le__": le,
    "__gt__": gt,
    "__ge__": ge,
}
for _name, _build in _OPERATORS.items():
    setattr(Value, _name, _build)
