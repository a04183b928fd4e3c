"""Expansions of ops into other ops, for dialects that lack them, that are too long to stand on a row.

Rows name these functions in `torch_dialect`, `torch_lowering` and `open_stablehlo`, which `expansions.py`
reads. No function here has the name of an op.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tenfold.base.dtypes import DType, bool_, int8, int32, int64, uint8
from tenfold.exporting.expansion_parts import reduced, widened
from tenfold.func.control_flow import while_loop
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten

# Recurrent layers, step by step


def _lstm(gates: Tensor, inner: Tensor, states: Sequence[Tensor]) -> list[Tensor]:
    enter, keep, new, leave = (gates + inner).chunk(4, 1)
    memory = keep.sigmoid() * states[1] + enter.sigmoid() * new.tanh()
    return [leave.sigmoid() * memory.tanh(), memory]


def _gru(gates: Tensor, inner: Tensor, states: Sequence[Tensor]) -> list[Tensor]:
    reset, keep, new = gates.chunk(3, 1)
    inner_reset, inner_keep, inner_new = inner.chunk(3, 1)
    fresh = (new + (reset + inner_reset).sigmoid() * inner_new).tanh()
    return [fresh + (keep + inner_keep).sigmoid() * (states[0] - fresh)]


Step = Callable[[Tensor, Tensor, Sequence[Tensor]], list[Tensor]]


def _steps(step: Step) -> Callable[..., list[Tensor]]:
    """A layer that does `step` at each time: outputs, and the last states of all layers and directions."""

    def unrolled(
        input: Tensor, hx: Any, params: list[Tensor], has_biases: bool, num_layers: int, dropout: float,
        train: bool, bidirectional: bool, batch_first: bool,
    ) -> list[Tensor]:  # fmt: skip
        linear, stack = aten("linear"), aten("stack")
        starts = hx if isinstance(hx, list) else [hx]
        x = input.transpose(0, 1) if batch_first else input
        width = 4 if has_biases else 2
        ends: list[list[Tensor]] = []
        for _ in range(num_layers):
            outputs = []
            for backward in (False, True) if bidirectional else (False,):
                place = len(ends)
                of_input, of_state, *biases = params[place * width : (place + 1) * width]
                bias, inner_bias = biases or (None, None)
                asked = linear(x, of_input, bias)
                states = [start.select(0, place) for start in starts]
                times = range(x.shape[0])
                by_time = {}
                for time in reversed(times) if backward else times:
                    states = step(asked.select(0, time), linear(states[0], of_state, inner_bias), states)
                    by_time[time] = states[0]
                outputs.append(stack([by_time[time] for time in times]))
                ends.append(states)
            x = outputs[0] if len(outputs) == 1 else aten("cat")(outputs, 2)
        last = [stack([states[i] for states in ends]) for i in range(len(starts))]
        return [x.transpose(0, 1) if batch_first else x, *last]

    return unrolled


lstm_by_steps = _steps(_lstm)
gru_by_steps = _steps(_gru)
rnn_relu_by_steps = _steps(lambda gates, inner, states: [(gates + inner).relu()])
rnn_tanh_by_steps = _steps(lambda gates, inner, states: [(gates + inner).tanh()])


# Attention, which torch-mlir lowers to an op of its own and no further


def attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, dropout_p: float, is_causal: bool,
    scale: float | None, enable_gqa: bool,
) -> list[Tensor]:  # fmt: skip
    """Attention by two products and a softmax. A query that may attend to nothing gets zeros."""
    if enable_gqa:
        groups = query.shape[-3] // key.shape[-3]
        key, value = (tensor.repeat_interleave(groups, -3) for tensor in (key, value))
    scores = query @ key.transpose(-2, -1) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        seen = aten("ones")(query.shape[-2], key.shape[-2], dtype=bool_, device=query.device).tril()
        scores = scores.masked_fill(~seen, -math.inf)
    if attn_mask is not None:
        masks = attn_mask.dtype is bool_
        scores = scores.masked_fill(~attn_mask, -math.inf) if masks else scores + attn_mask
    chances = scores.softmax(-1)  # of a row that is masked throughout, NaN: it attends to nothing
    if is_causal or attn_mask is not None:
        masked = (scores == -math.inf).all(-1, keepdim=True)
        chances = chances.masked_fill(masked, 0)
    return [chances @ value]


# Running sums and their like, along a dimension whose size is open: how many rounds they take follows from it


Combine = Callable[[Tensor, Tensor], Tensor]


def _running(x: Tensor, dim: int, combine: Combine) -> Tensor:
    """The running fold of x by an associative function. In round k each element takes in the one 2^k before
    it, which stands for as many."""
    if not x.ndim:
        return x
    count = x.shape[dim]
    places = aten("arange")(count, device=x.device)
    along = [1] * x.ndim
    along[dim] = count

    def taken_in(reach: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        before = places - reach
        earlier = x.index_select(dim, before.clamp(min=0))
        there = (before >= 0).view(along)
        return reach * 2, aten("where")(there, combine(earlier, x), x)

    return while_loop(lambda reach, x: reach < count, taken_in, (1, x))[1]


def running(self: Tensor, dim: int, combine: Combine, dtype: DType | None = None) -> Tensor:
    """The running fold in `dtype`; without one, of integers and bools in int64."""
    counts = self.dtype.kind in ("int", "bool")
    x = self.to(dtype or (int64 if counts else self.dtype))
    return _running(widened(x), dim, combine).to(x.dtype)


def running_extreme(self: Tensor, dim: int, better: Combine) -> list[Tensor]:
    """The running extreme, and the last place where it was reached."""
    if not self.ndim:
        return [self, self.new_zeros((), dtype=int64)]
    along = [1] * self.ndim
    along[dim] = self.shape[dim]
    places = aten("arange")(self.shape[dim], device=self.device).view(along).expand_as(self)
    reached = self == _running(self, dim, better)
    if self.dtype.is_floating_point:
        reached = reached | self.isnan()
    last = _running(places * reached, dim, aten("maximum"))
    return [self.gather(dim, last), last]


# Convolutions padded by a word: torch-mlir pads both sides alike, also where the kernel's extent is even


def padded_convolution(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sequence[int], padding: str,
    dilation: Sequence[int], groups: int,
) -> list[Tensor]:  # fmt: skip
    reach = [d * (k - 1) if padding == "same" else 0 for d, k in zip(dilation, weight.shape[2:])]
    more = [extent % 2 for extent in reach]
    if any(more):
        input = aten("constant_pad_nd")(input, [side for extent in reversed(more) for side in (0, extent)])
    both = [extent // 2 for extent in reach]
    return [aten(f"conv{weight.ndim - 2}d")(input, weight, bias, stride, both, dilation, groups)]


# Other words


def squeeze_each(self: Tensor, dim: Sequence[int]) -> list[Tensor]:
    for place in sorted((axis % max(self.ndim, 1) for axis in dim), reverse=True):
        self = self.squeeze(place)
    return [self]


def huber(self: Tensor, target: Tensor, reduction: int, delta: float) -> list[Tensor]:
    off = (widened(self) - widened(target)).abs()
    loss = aten("where")(off < delta, 0.5 * off * off, delta * (off - 0.5 * delta))
    return [reduced(loss, reduction).to(self.dtype)]


def smooth_l1(self: Tensor, target: Tensor, reduction: int, beta: float) -> list[Tensor]:
    off = (self - target).abs()
    if beta == 0:
        return [reduced(off, reduction)]
    return [reduced(aten("where")(off < beta, 0.5 * off * off / beta, off - 0.5 * beta), reduction)]


def permuted(self: Tensor, source: Sequence[int], destination: Sequence[int]) -> list[Tensor]:
    if not self.ndim:
        return [self.view(())]
    places = {to % self.ndim: of % self.ndim for of, to in zip(source, destination)}
    others = iter([axis for axis in range(self.ndim) if axis not in places.values()])
    return [self.permute([places[i] if i in places else next(others) for i in range(self.ndim)])]


def deviation_and_mean(
    self: Tensor,
    dim: Sequence[int] | None = None,
    correction: float | None = None,
    unbiased: bool = True,
    keepdim: bool = False,
) -> list[Tensor]:
    dims = dim or list(range(self.ndim))
    less = unbiased if correction is None else correction
    return [self.std(dims, correction=less, keepdim=keepdim), self.mean(dims, keepdim=keepdim)]


def batch_norm_by_parts(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor, running_var: Tensor,
    training: bool, momentum: float, eps: float,
) -> list[Tensor]:  # fmt: skip
    """The layer, what it normalised by, and the next statistics."""
    operands = (input, weight, bias, running_mean, running_var)
    if not training:
        found = batch_norm_with_statistics(*operands, False, momentum, eps)
        return [*found, running_mean, running_var]
    dims = [dim for dim in range(input.ndim) if dim != 1]
    along = [1, -1] + [1] * (input.ndim - 2)
    x = widened(input)
    mean, spread = x.mean(dims), x.var(dims, correction=0)
    scale = (spread + eps).rsqrt()
    normalized = (x - mean.view(along)) * scale.view(along)
    normalized = normalized if weight is None else normalized * weight.view(along)
    normalized = normalized if bias is None else normalized + bias.view(along)
    before = (widened(running_mean), widened(running_var))
    averages = [old.lerp(new, momentum) for old, new in zip(before, (mean, x.var(dims, correction=1)))]
    return [
        normalized.to(input.dtype),
        *[statistic.to(running_mean.dtype) for statistic in (mean, scale, *averages)],
    ]


def batch_norm_with_statistics(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
    running_var: Tensor | None, training: bool, momentum: float, eps: float,
) -> list[Tensor]:  # fmt: skip
    """The layer, and what it normalised by: nothing where it takes what is given, of which torch-mlir says
    that it is as long as the statistics."""
    operands = (input, weight, bias, running_mean, running_var)
    if training:
        return list(aten("native_batch_norm")(*operands, True, momentum, eps))
    assert running_mean is not None
    normalized = aten("batch_norm")(*operands, False, momentum, eps, False)
    return [normalized, *[running_mean.new_zeros((0,)) for _ in range(2)]]


def _product_with(
    logarithm: Callable[[Tensor], Tensor], self: Tensor | float, other: Tensor | float
) -> list[Tensor]:
    dtype = (self + other).log().dtype  # type: ignore[union-attr]
    x, y = (
        operand.to(dtype) if isinstance(operand, Tensor) else aten("full")((), operand, dtype=dtype)
        for operand in (self, other)
    )
    product = aten("where")(x == 0, 0, x * logarithm(y))
    return [aten("where")(y.isnan(), math.nan, product)]


def times_log(self: Tensor | float, other: Tensor | float) -> list[Tensor]:
    return _product_with(aten("log"), self, other)


def times_log1p(self: Tensor | float, other: Tensor | float) -> list[Tensor]:
    return _product_with(aten("log1p"), self, other)


def product_of_bytes(product: Callable[..., Tensor], one: Tensor, other: Tensor) -> list[Tensor]:
    """A product of matrices; of bytes, which torch-mlir does not lower, modulo 256."""
    if one.dtype in (int8, uint8):
        return [product(one.to(int32), other.to(int32)).to(one.dtype)]
    return [product(one, other)]


def full_tensor(number: Any, like: Tensor) -> Tensor:
    """A number as a tensor, in the dtype in which it is computed with another."""
    return aten("full")((), number, dtype=(like + number).dtype, device=like.device)


def hypot_of_parts(self: Tensor, other: Tensor) -> list[Tensor]:
    """In parts of the larger one, whose square may be too large or too small for a float."""
    dtype = (self + other).dtype
    x, y = widened(self.to(dtype)).abs(), widened(other.to(dtype)).abs()
    larger, smaller = aten("maximum")(x, y), aten("minimum")(x, y)
    part = aten("where")(larger == 0, larger, smaller / larger)
    length = larger * (1 + part * part).sqrt()
    return [aten("where")((x == math.inf) | (y == math.inf), math.inf, length).to(dtype)]


def erfc_by_erf(self: Tensor) -> list[Tensor]:
    dtype = self.erf().dtype
    x = widened(self.to(dtype))
    tail = _erfc_tail(x.abs().clamp(1, 30))
    far = aten("where")(x < 0, 2 - tail, tail)
    return [aten("where")(x.abs() > 1, far, 1 - x.erf()).to(dtype)]


def _erfc_tail(x: Tensor) -> Tensor:
    """erfc from 1 on, by the trapezoidal rule for (x exp(-x²) / π) ∫ exp(-s²) / (x² + s²) ds. What it errs by
    is the residue of the poles at ±ix, 2 / (exp(2πx / step) - 1), and exp(-(π / step)²) of the whole."""
    step, square = 0.5, x * x
    total = 1 / square
    for j in range(1, 13):
        s = (j * step) ** 2
        total = total + 2 * math.exp(-s) / (square + s)
    near = (x * 8).round() / 8  # whose square is exact, so that exp(-x²) loses no digit
    power = (-near * near).exp() * ((near - x) * (near + x)).exp()
    residue = aten("where")(x < 6, 2 / (x.clamp(max=6) * (2 * math.pi / step)).expm1(), 0)
    return x * (step / math.pi) * power * total - residue


# What torch-mlir takes for something else than it is


def put_from_start(
    self: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool
) -> list[Tensor]:
    """Indices below zero count from the end, which it does not know."""
    if all(index is None or index.dtype is not bool_ for index in indices):
        indices = [
            None if index is None else aten("where")(index < 0, index + self.shape[dim], index)
            for dim, index in enumerate(indices)
        ]
    return [aten("index_put")(self, indices, values, accumulate)]


def shrunk(self: Tensor, lambd: float) -> list[Tensor]:
    inner = aten("where")(self < -lambd, self + lambd, self * 0)
    return [aten("where")(self > lambd, self - lambd, inner)]


def leaky(self: Tensor, weight: Tensor) -> list[Tensor]:
    """One slope for each channel, which it takes for one for each place in the last dimension."""
    slopes = weight.view([1, -1] + [1] * (self.ndim - 2)) if self.ndim > 1 else weight
    return [aten("where")(self > 0, self, slopes * self)]


def narrow_from_start(self: Tensor, dim: int, start: int, length: int) -> list[Tensor]:
    """Places below zero count from the end, which it does not know."""
    return [self.narrow(dim, start + self.shape[dim] if start < 0 else start, length)]
