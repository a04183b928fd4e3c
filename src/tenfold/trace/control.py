"""Control flow in the Trace: one node for a choice between programs, or for one that is repeated.

Its lowering is a Case or While of the programs' FlatIR. The node keeps the programs, so that other
projections of the Trace, such as the torch dialect, can read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tenfold import flat
from tenfold.ops.callee import Callee, Program
from tenfold.trace.collect import Trace
from tenfold.trace.graph import Node, Value
from tenfold.trace.lower import lower

COND, WHILE = "cond", "while_loop"  # the names of the programs that such nodes call


class Part:
    """A program inside a control-flow node. `places` maps each of its leaves to one of the node's values.
    `results` maps each of the node's results to an output of the program or, from -1 downwards, to one of
    those values."""

    __slots__ = ("places", "results", "trace")

    def __init__(self, trace: Trace, places: tuple[int, ...], results: tuple[int, ...]):
        self.trace = trace
        self.places = places
        self.results = results

    @property
    def key(self) -> tuple[Any, ...]:
        return self.trace.key, self.places, self.results


class ControlNode(Node):
    """A choice or a loop. The inputs of a choice are the predicate and the operands; its parts are what runs
    if the predicate is false, then if it is true. The inputs of a loop are carried; its parts are the
    condition and the body. `starts` are numbers that a loop carries besides its inputs, by their places among
    all that it carries."""

    __slots__ = ("parts", "starts")

    def __init__(
        self,
        callee: Callee,
        inputs: tuple[Value, ...],
        source: Any,
        parts: tuple[Part, Part],
        starts: dict[int, Any] | None = None,
    ):
        super().__init__(callee, inputs, source)
        self.parts = parts
        self.starts = starts or {}


def program(
    name: str,
    types: Sequence[flat.TensorType],
    parts: tuple[Part, Part],
    starts: Mapping[int, Any],
    random: bool,
) -> Program:
    """The program of a node with these parts. `types` are those of its inputs; of a loop, of all that it
    carries, numbers that it starts with included. `random`: a state is among what it takes and gives."""
    params = [flat.Value(type) for i, type in enumerate(types) if i not in starts]
    bodies = [_body(part) for part in parts]
    if name == COND:
        on_false, on_true = (_on_operands(body, params[0]) for body in bodies)
        results = flat.cond(params[0], on_true, on_false, params[1:])
    else:
        remaining = iter(params)
        carry = [
            flat.constant(starts[i], type.dtype) if i in starts else next(remaining)
            for i, type in enumerate(types)
        ]
        condition, step = bodies
        holds = lambda *carried: flat.reshape(condition(*carried)[0], ())
        results = flat.while_loop(holds, step, carry)
    return Program(flat.Function(params, results, name), random=random)


Body = Callable[..., list[flat.Value]]


def _body(part: Part) -> Body:
    """A program inside, as a function of the node's values."""
    inside = lower(part.trace, whole=True)

    def build(*values: flat.Value) -> list[flat.Value]:
        results = inside.inline([values[place] for place in part.places], whole=True)
        return [results[i] if i >= 0 else values[-1 - i] for i in part.results]

    return build


def _on_operands(body: Body, predicate: flat.Value) -> Body:
    return lambda *operands: body(predicate, *operands)
