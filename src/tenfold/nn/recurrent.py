"""Recurrent layers: RNN, LSTM, GRU over whole sequences, and their cells for one step."""

from __future__ import annotations

import math
from typing import Any

from tenfold.base.errors import ArgumentError, ShapeError
from tenfold.base.warning import warn
from tenfold.nn import init
from tenfold.nn.module import Module, in_layer
from tenfold.nn.packed import run_packed, run_unpacked
from tenfold.nn.parameter import Parameter, filled, new_parameter
from tenfold.nn.utils.rnn import PackedSequence
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten

# How many blocks of hidden_size rows the weights of each mode have.
GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


class RNNBase(Module):
    """The base of RNN, LSTM and GRU: layers in one direction or both. Weights start uniform in
    ±1/sqrt(hidden_size).

    The parameters are weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0 (and with proj_size weight_hr_l0),
    then the same with _reverse, then those of the next layer.
    """

    @in_layer
    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._check_options(dropout)
        given_on = proj_size or hidden_size
        rows = GATES[mode] * hidden_size
        directions = 2 if bidirectional else 1
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            width = input_size if layer == 0 else given_on * directions
            for suffix in ("", "_reverse")[:directions]:
                sizes: dict[str, tuple[int, ...]] = {
                    "weight_ih": (rows, width),
                    "weight_hh": (rows, given_on),
                }
                if bias:
                    sizes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
                if proj_size:
                    sizes["weight_hr"] = (proj_size, hidden_size)
                names = {f"{name}_l{layer}{suffix}": size for name, size in sizes.items()}
                for name, size in names.items():
                    setattr(self, name, new_parameter(size, 0, dtype, device))
                self._all_weights.append(list(names))
        self.reset_parameters()

    def _check_options(self, dropout: Any) -> None:
        if isinstance(dropout, bool) or not isinstance(dropout, (int, float)) or not 0 <= dropout <= 1:
            raise ArgumentError(f"dropout is a probability, not {dropout!r}")
        if dropout > 0 and self.num_layers == 1:
            warn(f"{type(self).__name__}: dropout is between layers, and there is only one")
        for name in ("bias", "batch_first"):
            value = getattr(self, name)
            if not isinstance(value, bool):
                raise ArgumentError(f"{name} is True or False, not {value!r}")
        for name in ("input_size", "hidden_size", "num_layers"):
            value = getattr(self, name)
            if not isinstance(value, int):
                raise ArgumentError(f"{name} is an int, not a {type(value).__name__}")
            if value <= 0:
                raise ArgumentError(f"{name} is positive, not {value}")
        if self.proj_size and self.mode != "LSTM":
            raise ArgumentError("proj_size is for LSTM only")
        if not 0 <= self.proj_size < self.hidden_size:
            raise ArgumentError(f"proj_size {self.proj_size} is not from 0 to hidden_size - 1")
        if self.mode not in GATES:
            raise ArgumentError(f"no mode {self.mode!r}", help=f"one of {', '.join(GATES)}")

    def reset_parameters(self) -> None:
        bound = 1 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights(self) -> list[Parameter]:
        return [weight for weights in self.all_weights for weight in weights]

    def flatten_parameters(self) -> None:
        """Does nothing: parameters need not be contiguous in memory."""

    @in_layer
    def forward(self, input: Any, hx: Any = None) -> Any:
        if isinstance(input, PackedSequence):
            return run_packed(self, input, hx)
        if input.ndim not in (2, 3):
            raise ShapeError(f"takes a sequence of 2 or 3 dimensions, not {input.ndim}")
        if input.shape[-1] != self.input_size:
            raise ShapeError(f"takes input_size = {self.input_size} features, not {input.shape[-1]}")
        batch = 0 if self.batch_first else 1
        unbatched = input.ndim == 2
        if unbatched:
            input = input.unsqueeze(batch)
        states = self._states(input.shape[batch], input, hx, unbatched)
        arguments = (
            self.bias, self.num_layers, self.dropout, self.training, self.bidirectional, self.batch_first
        )  # fmt: skip
        if self.proj_size:
            output, states = run_unpacked(self, input, states)
        elif self.mode == "LSTM":
            output, *states = aten("lstm")(input, states, self._flat_weights, *arguments)
        else:
            output, *states = aten(self.mode.lower())(input, states[0], self._flat_weights, *arguments)
        if unbatched:
            output, states = output.squeeze(batch), [state.squeeze(1) for state in states]
        return output, tuple(states) if self.mode == "LSTM" else states[0]

    def _states(self, batch: int, like: Tensor, hx: Any, unbatched: bool) -> list[Tensor]:
        """The hidden state to start from, and an LSTM's cell state: those given, or zeros."""
        count = self.num_layers * (2 if self.bidirectional else 1)
        wanted = [(count, batch, self.proj_size or self.hidden_size)]
        if self.mode == "LSTM":
            wanted.append((count, batch, self.hidden_size))
        if hx is None:
            return [filled(size, 0, like.dtype, like.device) for size in wanted]
        given = list(hx) if isinstance(hx, (tuple, list)) else [hx]
        if len(given) != len(wanted) or (self.mode != "LSTM" and isinstance(hx, (tuple, list))):
            raise ArgumentError("hx is (h_0, c_0)" if self.mode == "LSTM" else "hx is one tensor, h_0")
        if unbatched and any(each.ndim != 2 for each in given):
            raise ShapeError(f"of a sequence without a batch hx has 2 dimensions, not {given[0].ndim}")
        states = [each.unsqueeze(1) for each in given] if unbatched else given
        for name, state, size in zip(("h_0", "c_0"), states, wanted, strict=False):
            if tuple(state.shape) != size:
                raise ShapeError(f"{name} is {tuple(state.shape)}, not {size}")
        return states

    def extra_repr(self) -> str:
        parts = [f"{self.input_size}, {self.hidden_size}"]
        if self.proj_size:
            parts.append(f"proj_size={self.proj_size}")
        if self.num_layers != 1:
            parts.append(f"num_layers={self.num_layers}")
        if self.bias is not True:
            parts.append(f"bias={self.bias}")
        if self.batch_first is not False:
            parts.append(f"batch_first={self.batch_first}")
        if self.dropout:
            parts.append(f"dropout={self.dropout}")
        if self.bidirectional is not False:
            parts.append(f"bidirectional={self.bidirectional}")
        return ", ".join(parts)


class RNN(RNNBase):
    """h_t = tanh(W_ih x_t + b_ih + W_hh h_(t-1) + b_hh), or relu of it, in num_layers layers

    input (L, N, input_size), or with batch_first (N, L, input_size), or without N; h_0 (layers·directions, N,
    hidden_size). Returns the last layer's hidden states (L, N, directions·hidden_size), and the last of each
    layer.

        output, h = nn.RNN(10, 20, num_layers=2)(tn.ones(5, 3, 10))  # [5, 3, 20], [2, 3, 20]
    """

    @in_layer
    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ):
        if nonlinearity not in ("tanh", "relu"):
            raise ArgumentError(f"no nonlinearity {nonlinearity!r}", help="tanh or relu")
        super().__init__(
            f"RNN_{nonlinearity.upper()}", input_size, hidden_size, num_layers, bias, batch_first, dropout,
            bidirectional, 0, device, dtype,
        )  # fmt: skip
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """Long short-term memory, in num_layers layers

    i, f, g, o = σ, σ, tanh, σ of the four blocks of W_ih x_t + b_ih + W_hh h_(t-1) + b_hh
    c_t = f·c_(t-1) + i·g,  h_t = o·tanh(c_t), projected by W_hr to proj_size if that is not 0

    input (L, N, input_size), or with batch_first (N, L, input_size), or without N; hx is (h_0, c_0), each
    (layers·directions, N, hidden_size). Returns the last layer's h (L, N, directions·hidden_size), and (h, c)
    at the end of each layer.

        lstm = nn.LSTM(4, 8, num_layers=2, batch_first=True)
        output, (h, c) = lstm(tn.ones(3, 5, 4))  # [3, 5, 8], [2, 3, 8], [2, 3, 8]
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__(
            "LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size,
            device, dtype,
        )  # fmt: skip


class GRU(RNNBase):
    """Gated recurrent units, in num_layers layers

    r, z = σ of the first two blocks of W_ih x_t + b_ih + W_hh h_(t-1) + b_hh
    n = tanh(W_in x_t + b_in + r·(W_hn h_(t-1) + b_hn)),  h_t = (1 - z)·n + z·h_(t-1)

    Shapes are those of RNN.

        output, h = nn.GRU(10, 20, num_layers=2)(tn.ones(5, 3, 10))  # [5, 3, 20], [2, 3, 20]
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__(
            "GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0, device,
            dtype,
        )  # fmt: skip


class RNNCellBase(Module):
    """One step: num_chunks blocks of weights, evenly spread over ±1/sqrt(hidden_size) at the start."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        make = lambda *size: new_parameter(size, 0, dtype, device)
        self.weight_ih = make(rows, input_size)
        self.weight_hh = make(rows, hidden_size)
        self.register_parameter("bias_ih", make(rows) if bias else None)
        self.register_parameter("bias_hh", make(rows) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _step(self, name: str, input: Tensor, states: list[Tensor | None]) -> list[Tensor]:
        """The states after a step of the cell of this name, from those given or from zeros."""
        if input.ndim not in (1, 2):
            raise ShapeError(f"takes 1 or 2 dimensions, not {input.ndim}")
        unbatched = input.ndim == 1
        batch = input.unsqueeze(0) if unbatched else input
        started = []
        for state in states:
            if state is None:
                state = filled((batch.shape[0], self.hidden_size), 0, input.dtype, input.device)
            elif state.ndim not in (1, 2):
                raise ShapeError(f"takes a state of 1 or 2 dimensions, not {state.ndim}")
            elif unbatched:
                state = state.unsqueeze(0)
            started.append(state)
        weights = (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        given: Any = started if name == "lstm_cell" else started[0]
        after = aten(name)(batch, given, *weights)
        results = list(after) if name == "lstm_cell" else [after]
        return [result.squeeze(0) for result in results] if unbatched else results

    def extra_repr(self) -> str:
        parts = [f"{self.input_size}, {self.hidden_size}"]
        if self.bias is not True:
            parts.append(f"bias={self.bias}")
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            parts.append(f"nonlinearity={self.nonlinearity}")
        return ", ".join(parts)


class RNNCell(RNNCellBase):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu of it: one step of an RNN

    Input (N, input_size) and h (N, hidden_size), output h' (N, hidden_size); each also without N.

        nn.RNNCell(10, 20)(tn.ones(3, 10)).shape  # [3, 20]
    """

    @in_layer
    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        if nonlinearity not in ("tanh", "relu"):
            raise ArgumentError(f"no nonlinearity {nonlinearity!r}", help="tanh or relu")
        self.nonlinearity = nonlinearity

    @in_layer
    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step(f"rnn_{self.nonlinearity}_cell", input, [hx])[0]


class LSTMCell(RNNCellBase):
    """One step of an LSTM, from x and (h, c) to (h', c')

    Input (N, input_size), h and c (N, hidden_size), output (h', c'); each also without N.

        h, c = nn.LSTMCell(10, 20)(tn.ones(3, 10))  # [3, 20], [3, 20]
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ):
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    @in_layer
    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        h, c = self._step("lstm_cell", input, [None, None] if hx is None else list(hx))
        return h, c


class GRUCell(RNNCellBase):
    """One step of a GRU, from x and h to h'

    Input (N, input_size) and h (N, hidden_size), output h' (N, hidden_size); each also without N.

        nn.GRUCell(10, 20)(tn.ones(3, 10)).shape  # [3, 20]
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ):
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    @in_layer
    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step("gru_cell", input, [hx])[0]
