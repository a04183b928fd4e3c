"""Recurrent layers over packed sequences: each step takes the sequences that are at least that long."""

from __future__ import annotations

from typing import Any

from tenfold.base.errors import ShapeError
from tenfold.nn import functional as F
from tenfold.nn.utils.rnn import PackedSequence
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten


def run_packed(layer: Any, input: PackedSequence, hx: Any) -> tuple[PackedSequence, Any]:
    """The results of a recurrent layer for packed sequences: its packed output, and its last states."""
    sizes = input.batch_sizes.tolist()
    if input.data.shape[-1] != layer.input_size:
        raise ShapeError(f"takes input_size = {layer.input_size} features, not {input.data.shape[-1]}")
    states = layer._states(sizes[0], input.data, hx, False)
    if hx is not None and input.sorted_indices is not None:
        states = [state.index_select(1, input.sorted_indices) for state in states]
    data, last = _layers(layer, input.data, sizes, states)
    if input.unsorted_indices is not None:
        last = [each.index_select(1, input.unsorted_indices) for each in last]
    packed = PackedSequence(data, input.batch_sizes, input.sorted_indices, input.unsorted_indices)
    return packed, tuple(last) if layer.mode == "LSTM" else last[0]


def run_unpacked(layer: Any, input: Tensor, states: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
    """What a layer gives that the operators for whole sequences do not know: an LSTM with projections."""
    steps = input.transpose(0, 1) if layer.batch_first else input
    length, batch = steps.shape[:2]
    data, last = _layers(layer, steps.flatten(0, 1), [batch] * length, states)
    output = data.unflatten(0, (length, batch))
    return (output.transpose(0, 1) if layer.batch_first else output), last


def _layers(layer: Any, data: Tensor, sizes: list[int], states: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
    """All layers, one on the output of the other, in each direction: the output, and the last states."""
    directions = 2 if layer.bidirectional else 1
    ends: list[list[Tensor]] = []
    for level in range(layer.num_layers):
        outputs = []
        for direction in range(directions):
            place = level * directions + direction
            start = [state[place] for state in states]
            output, end = _sweep(layer, place, data, sizes, start, backwards=direction == 1)
            outputs.append(output)
            ends.append(end)
        data = outputs[0] if directions == 1 else aten("cat")(outputs, -1)
        if level + 1 < layer.num_layers:
            data = F.dropout(data, layer.dropout, layer.training)
    return data, [aten("stack")([end[i] for end in ends]) for i in range(len(states))]


def _sweep(
    layer: Any, place: int, data: Tensor, sizes: list[int], start: list[Tensor], backwards: bool
) -> tuple[Tensor, list[Tensor]]:
    """One direction of one layer. Sequences are sorted by length, so those that go on are the first ones."""
    begins = [sum(sizes[:step]) for step in range(len(sizes))]
    steps = list(range(len(sizes)))
    outputs: list[Any] = [None] * len(sizes)
    state = [each[: sizes[-1]] for each in start] if backwards else start
    finished: list[list[Tensor]] = []  # the states of sequences that have ended, longest last
    for step in reversed(steps) if backwards else steps:
        count, had = sizes[step], state[0].shape[0]
        if backwards and count > had:
            joined = [(each, first[had:count]) for each, first in zip(state, start, strict=True)]
            state = [aten("cat")(pair, 0) for pair in joined]
        elif count < had:
            finished.append([each[count:] for each in state])
            state = [each[:count] for each in state]
        state = _step(layer, place, data[begins[step] : begins[step] + count], state)
        outputs[step] = state[0]
    ended = [*reversed(finished)]
    end = [aten("cat")([each, *[part[i] for part in ended]], 0) for i, each in enumerate(state)]
    return aten("cat")(outputs, 0), end


def _step(layer: Any, place: int, x: Tensor, state: list[Tensor]) -> list[Tensor]:
    weights = layer.all_weights[place]
    ih, hh, *rest = weights
    biases = rest[:2] if layer.bias else [None, None]
    if layer.mode != "LSTM":
        name = "gru_cell" if layer.mode == "GRU" else f"{layer.mode.lower()}_cell"
        return [aten(name)(x, state[0], ih, hh, *biases)]
    if not layer.proj_size:
        return list(aten("lstm_cell")(x, state, ih, hh, *biases))
    # The cell has no projection: its gates, by hand.
    gates = F.linear(x, ih, biases[0]) + F.linear(state[0], hh, biases[1])
    i, f, g, o = gates.chunk(4, 1)
    cell = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
    return [F.linear(o.sigmoid() * cell.tanh(), weights[-1]), cell]
