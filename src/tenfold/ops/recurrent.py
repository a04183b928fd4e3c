"""Recurrent cells and layers: a step of a cell, and whole sequences through layers in one or both directions.

What a step takes from its input is one product for all times; what it takes from the state before is a loop.
A loop differentiates as one, by `_scan_rule`: a loop backwards that only keeps what reaches each step's
gates, from which products for all times give the weights' gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, DTypeError, ShapeError, UnsupportedError
from tenfold.flat import Value
from tenfold.flat.grad import gradients
from tenfold.flat.ir import in_order
from tenfold.ops.contraction import linear
from tenfold.ops.dropout import dropout as dropped
from tenfold.ops.precision import widened
from tenfold.ops.samples import S, T
from tenfold.ops.table import op, written

States = tuple[Value, ...]

# A step, element by element: from the gates that input and state ask for, and the states before.


def _tanh(from_input: Value, from_state: Value, hidden: Value) -> States:
    return (flat.tanh(from_input + from_state),)


def _relu(from_input: Value, from_state: Value, hidden: Value) -> States:
    return (flat.maximum(from_input + from_state, 0),)


def _lstm(from_input: Value, from_state: Value, hidden: Value, memory: Value) -> States:
    enter, keep, new, leave = _gates(from_input + from_state, 4)
    memory = flat.logistic(keep) * memory + flat.logistic(enter) * flat.tanh(new)
    return flat.logistic(leave) * flat.tanh(memory), memory


def _gru(from_input: Value, from_state: Value, hidden: Value) -> States:
    reset, keep, new = _gates(from_input, 3)
    state_reset, state_keep, state_new = _gates(from_state, 3)
    new = flat.tanh(new + flat.logistic(reset + state_reset) * state_new)
    return (new + flat.logistic(keep + state_keep) * (hidden - new),)


def _gates(x: Value, count: int) -> list[Value]:
    size = x.shape[-1] // count
    return [flat.slice_dim(x, -1, i * size, (i + 1) * size) for i in range(count)]


Step = Callable[..., States]
# How many gates a step has.
GATES: dict[Step, int] = {_tanh: 1, _relu: 1, _lstm: 4, _gru: 3}


# Loops over time


def _from_state(hidden: Value, weight: Value, bias: Value | None) -> Value:
    product = flat.dot_general(hidden, weight, ((hidden.rank - 1,), (0,)))
    return product if bias is None else product + bias


def _scan_rule(cotangents, stacks, gates, hidden, memory, weight, bias, step):
    times = gates.shape[0]
    first = (hidden,) if memory is None else (hidden, memory)
    before = [
        flat.concatenate([flat.unsqueeze(start, 0), flat.slice_dim(stack, 0, 0, times - 1)], 0)
        for start, stack in zip(first, stacks, strict=True)
    ]
    asked = _from_state(before[0], weight, bias)
    outer = [flat.full_like(s, 0) if ct is None else ct for ct, s in zip(cotangents, stacks, strict=True)]
    count = len(first)

    def pull_back(from_input: Value, from_state: Value, *values: Value) -> list[Value]:
        states, wanted = values[:count], values[count:]
        results = step(from_input, from_state, *states)
        wrt = [from_input, from_state, *states]
        found = gradients(in_order(results), results, wanted, wrt)
        return [flat.full_like(x, 0) if ct is None else ct for x, ct in zip(wrt, found, strict=True)]

    at_once = flat.TensorType(gates.dtype, gates.shape[1:])
    one_step = flat.function(pull_back, [at_once, at_once, *[each.type for each in (*first, *first)]])

    def back(time, *values):
        wanted, values = values[:count], values[count:]
        (to_input, to_state), (gates, asked, weight), stacks = values[:2], values[2:5], values[5:]
        before, outer = stacks[:count], stacks[count:]
        wanted = tuple([ct + flat.read_at(each, time) for ct, each in zip(wanted, outer, strict=True)])
        given = [
            flat.read_at(gates, time),
            flat.read_at(asked, time),
            *[flat.read_at(each, time) for each in before],
        ]
        from_input, from_state, *found = one_step.inline([*given, *wanted])
        found[0] = found[0] + flat.dot_general(from_state, weight, ((1,), (1,)))
        written = flat.written_at(to_input, from_input, time), flat.written_at(to_state, from_state, time)
        return (time - 1, *found, *written, gates, asked, weight, *before, *outer)

    nothing = [flat.full_like(each, 0) for each in first]
    last, unwritten = flat.constant(times - 1, dtypes.int64), flat.full_like(gates, 0)
    carry = [last, *nothing, unwritten, unwritten, gates, asked, weight, *before, *outer]
    found = flat.while_loop(lambda time, *_: time >= 0, back, carry)
    to_states, (to_gates, to_asked) = found[1 : 1 + count], found[1 + count : 3 + count]
    to_weight = flat.dot_general(before[0], to_asked, ((0, 1), (0, 1)))
    to_bias = () if bias is None else (flat.sum(to_asked, (0, 1)),)
    return (to_gates, *to_states, to_weight, *to_bias)


@flat.differentiated(_scan_rule)
def _scan(gates, hidden, memory, weight, bias, step):
    """The states at all times, (T, N, H) each, from the gates that inputs ask for, (T, N, G)."""
    times = gates.shape[0]
    first = (hidden,) if memory is None else (hidden, memory)
    fixed = (gates, weight) if bias is None else (gates, weight, bias)
    count = len(first)

    def ahead(time, *values):
        states, stacks, fixed = values[:count], values[count : 2 * count], values[2 * count :]
        gates, weight, *bias = fixed
        asked = _from_state(states[0], weight, bias[0] if bias else None)
        states = step(flat.read_at(gates, time), asked, *states)
        stacks = tuple(
            [flat.written_at(stack, state, time) for stack, state in zip(stacks, states, strict=True)]
        )
        return (time + 1, *states, *stacks, *fixed)

    stacks = [flat.full((times, *each.shape), 0, each.dtype) for each in first]
    carry = (flat.constant(0, dtypes.int64), *first, *stacks, *fixed)
    found = flat.while_loop(lambda time, *_: time < times, ahead, carry)
    return tuple(found[1 + count : 1 + 2 * count])


def _direction(step: Step, x: Value, states: States, weights: Sequence[Value], backward: bool) -> States:
    """The states at all times of one layer in one direction."""
    w_input, w_state, *biases = weights
    gates = GATES[step]
    size = states[0].shape[1]
    if w_input.shape != (gates * size, x.shape[2]) or w_state.shape != (gates * size, size):
        raise ShapeError(
            f"weights {w_input.type} and {w_state.type} do not fit {gates} gates of {size} units and "
            f"{x.shape[2]} features of input"
        )
    if any(bias.shape != (gates * size,) for bias in biases):
        raise ShapeError(f"a bias is not of shape {[gates * size]}")
    asked = linear(x, w_input, biases[0] if biases else None)
    inner = biases[1] if biases else None
    if inner is not None and step is not _gru:
        asked, inner = asked + inner, None
    if backward:
        asked = flat.reverse(asked, (0,))
    memory = states[1] if len(states) > 1 else None
    found = _scan(asked, states[0], memory, flat.transpose(w_state, (1, 0)), inner, step)
    return tuple([flat.reverse(each, (0,)) for each in found]) if backward else found


def _layers(
    state, step, x, starts, params, has_biases, num_layers, dropout, train, bidirectional, batch_first
):
    """The outputs, and the last states of all layers and directions, stacked; and the next random state."""
    directions = 2 if bidirectional else 1
    _check_layers(step, x, starts, params, has_biases, num_layers, directions, batch_first)
    dtype = x.dtype
    wide = dtypes.float32 if dtype in (dtypes.float16, dtypes.bfloat16) else dtype
    x, starts, params = (
        flat.convert(x, wide), [flat.convert(start, wide) for start in starts],
        [flat.convert(param, wide) for param in params],
    )  # fmt: skip
    x = flat.swap(x, 0, 1) if batch_first else x
    each = 4 if has_biases else 2
    last: list[list[Value]] = [[] for _ in starts]
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            place = layer * directions + direction
            states = tuple([flat.squeeze(flat.slice_dim(s, 0, place, place + 1), 0) for s in starts])
            found = _direction(step, x, states, params[place * each : (place + 1) * each], direction == 1)
            outputs.append(found[0])
            end = 0 if direction else x.shape[0] - 1
            for kept, stack in zip(last, found, strict=True):
                kept.append(flat.slice_dim(stack, 0, end, end + 1))
        x = flat.concatenate(outputs, 2)
        if dropout and train and layer + 1 < num_layers:
            x, state = dropped(state, x, dropout, True)
    x = flat.swap(x, 0, 1) if batch_first else x
    results = [x, *[flat.concatenate(kept, 0) for kept in last]]
    return *[flat.convert(result, dtype) for result in results], state


def _check_layers(step, x, starts, params, has_biases, num_layers, directions, batch_first):
    if x.rank != 3:
        raise ShapeError(f"a recurrent layer takes (time, batch, features), not {x.type}")
    if not x.dtype.is_floating_point or any(each.dtype is not x.dtype for each in (*starts, *params)):
        raise DTypeError("a recurrent layer takes input, states and weights of one float dtype")
    if not x.shape[1 if batch_first else 0]:
        raise ShapeError("a recurrent layer takes at least one time")
    if step is _lstm and starts[0].shape[2:] != starts[1].shape[2:]:
        raise UnsupportedError("an LSTM with projections is not there yet", help="use proj_size=0")
    expected = num_layers * directions
    batch = x.shape[0 if batch_first else 1]
    for start in starts:
        if start.rank != 3 or start.shape[:2] != (expected, batch):
            raise ShapeError(f"a state of shape [{expected}, {batch}, units] is needed, not {start.type}")
    if len(params) != expected * (4 if has_biases else 2):
        raise ArgumentError(
            f"{len(params)} weights and biases for {num_layers} layers of {directions} directions"
        )


_LAYER = (
    "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, "
    "bool batch_first"
)


ONE_LAYER = (False, 1, 0.0, False, False, False)


def _sequences(gates, states):
    """Samples: one layer; two layers in both directions with biases, the batch first. Numbers are small, so
    that memories stay between the bounds of outputs, which the test takes for theirs."""
    small = lambda *shape, dtype="float32": T(*shape, dtype=dtype, low=-0.3, high=0.3)
    double = lambda *shape: small(*shape, dtype="float64")
    several = lambda each: each if states == 1 else [each] * states
    weights = lambda features: [small(gates * 4, features), small(gates * 4, 4)]
    biases = lambda: [small(gates * 4), small(gates * 4)]
    deep = [w for features in (3, 3, 8, 8) for w in (*weights(features), *biases())]
    return lambda: [
        S(
            double(5, 2, 3),
            several(double(1, 2, 4)),
            [double(gates * 4, 3), double(gates * 4, 4)],
            *ONE_LAYER,
        ),
        S(small(2, 5, 3), several(small(4, 2, 4)), deep, True, 2, 0.0, True, True, True),
        S(small(2, 5, 3), several(small(4, 2, 4)), deep, True, 2, 0.5, True, True, True),
    ]


@op(f"lstm.input(Tensor input, Tensor[] hx, {_LAYER}) -> (Tensor, Tensor, Tensor)", random=True,
    samples=_sequences(4, 2), needs="recurrent<4, false>", torch_dialect="lstm_by_steps",
    late=written, flops="addmm")  # fmt: skip
def lstm(state, x, hx, *layer):
    """Long short-term memory over a sequence: the outputs, the last hidden state and the last memory."""
    if len(hx) != 2:
        raise ArgumentError(f"lstm takes two initial states, not {len(hx)}")
    return _layers(state, _lstm, x, hx, *layer)


@op(
    f"gru.input(Tensor input, Tensor hx, {_LAYER}) -> (Tensor, Tensor)",
    random=True,
    samples=_sequences(3, 1),
    needs="recurrent<3, false>",
    torch_dialect="gru_by_steps",
    late=written,
    flops="addmm",
)
def gru(state, x, hx, *layer):
    """Gated recurrent units over a sequence: the outputs, and the last hidden state."""
    return _layers(state, _gru, x, (hx,), *layer)


@op(f"rnn_tanh.input(Tensor input, Tensor hx, {_LAYER}) -> (Tensor, Tensor)", random=True,
    samples=_sequences(1, 1), needs="recurrent<1, false>", torch_dialect="rnn_tanh_by_steps",
    late=written, flops="addmm")  # fmt: skip
def rnn_tanh(state, x, hx, *layer):
    """hidden = tanh(input · W + hidden · U) over a sequence: the outputs, and the last hidden state."""
    return _layers(state, _tanh, x, (hx,), *layer)


@op(f"rnn_relu.input(Tensor input, Tensor hx, {_LAYER}) -> (Tensor, Tensor)", random=True,
    samples=_sequences(1, 1), needs="recurrent<1, false>", torch_dialect="rnn_relu_by_steps",
    late=written, flops="addmm")  # fmt: skip
def rnn_relu(state, x, hx, *layer):
    """hidden = max(input · W + hidden · U, 0) over a sequence: the outputs, and the last hidden state."""
    return _layers(state, _relu, x, (hx,), *layer)


# One step


def _cell(step: Step, x: Value, states: States, w_ih: Value, w_hh: Value, b_ih, b_hh) -> States:
    for operand in (x, *states):
        if operand.rank != 2 or operand.shape[0] != x.shape[0]:
            raise ShapeError(
                f"a cell takes an input and states (batch, features), not {x.type} and {operand.type}"
            )
    if len({state.shape[1] for state in states}) > 1:
        raise ShapeError(f"states are of one size, not {' and '.join([str(state.type) for state in states])}")
    rows = GATES[step] * states[0].shape[1]
    if w_ih.rank != 2 or w_hh.rank != 2 or w_ih.shape[0] != rows or w_hh.shape[0] != rows:
        raise ShapeError(f"weights of {rows} rows are needed, not {w_ih.type} and {w_hh.type}")
    return step(linear(x, w_ih, b_ih), linear(states[0], w_hh, b_hh), *states)


def _cells(gates, states):
    """Samples, of floats: half types PyTorch rounds at each step of the formula."""
    of = lambda d: [T(2, 3, dtype=d), T(2, 4, dtype=d), T(gates * 4, 3, dtype=d), T(gates * 4, 4, dtype=d)]
    biases = lambda d: [T(gates * 4, dtype=d), T(gates * 4, dtype=d)]
    several = lambda args: args if states == 1 else [args[0], [args[1]] * states, *args[2:]]
    return lambda: [
        S(*several(of("float32"))), S(*several(of("float32")), *biases("float32")),
        S(*several(of("float64")), *biases("float64")),
        S(*several([T(2, 3), T(3, 4), T(gates * 4, 3), T(gates * 4, 4)])),
        S(*several([T(2, 3), T(2, 4), T(gates * 4 + 1, 3), T(gates * 4, 4)])),
    ]  # fmt: skip


_CELL = "Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None"


@op(
    f"rnn_tanh_cell(Tensor input, Tensor hx, {_CELL}) -> Tensor",
    samples=_cells(1, 1),
    autocast="cuda: lower",
    flops="addmm",
)
@widened
def rnn_tanh_cell(x, hx, w_ih, w_hh, b_ih, b_hh):
    """tanh(input · w_ihᵀ + hx · w_hhᵀ)"""
    return _cell(_tanh, x, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


@op(
    f"rnn_relu_cell(Tensor input, Tensor hx, {_CELL}) -> Tensor",
    samples=_cells(1, 1),
    autocast="cuda: lower",
    flops="addmm",
)
@widened
def rnn_relu_cell(x, hx, w_ih, w_hh, b_ih, b_hh):
    """max(input · w_ihᵀ + hx · w_hhᵀ, 0)"""
    return _cell(_relu, x, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


@op(
    f"gru_cell(Tensor input, Tensor hx, {_CELL}) -> Tensor",
    samples=_cells(3, 1),
    autocast="cuda: lower",
    flops="addmm",
)
@widened
def gru_cell(x, hx, w_ih, w_hh, b_ih, b_hh):
    """One step of gated recurrent units."""
    return _cell(_gru, x, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


@op(
    f"lstm_cell(Tensor input, Tensor[] hx, {_CELL}) -> (Tensor, Tensor)",
    samples=_cells(4, 2),
    autocast="cuda: lower",
    flops="addmm",
)
def lstm_cell(x, hx, w_ih, w_hh, b_ih, b_hh):
    """One step of long short-term memory: the hidden state and the memory."""
    if len(hx) != 2:
        raise ArgumentError(f"lstm_cell takes two states, not {len(hx)}")
    return _lstm_cell(x, *hx, w_ih, w_hh, b_ih, b_hh)


@widened
def _lstm_cell(x, hidden, memory, w_ih, w_hh, b_ih, b_hh):
    return _cell(_lstm, x, (hidden, memory), w_ih, w_hh, b_ih, b_hh)
