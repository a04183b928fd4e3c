"""Nodes where Python code runs during backward: hooks that see a node's incoming and outgoing gradients, and
saved values that `saved_tensors_hooks` packed."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from tenfold.autograd.custom import CustomNode
from tenfold.autograd.grad_mode import no_grad, set_grad_mode
from tenfold.base.errors import ArgumentError, GradientError, ShapeError
from tenfold.base.hooks import Noticed
from tenfold.base.late import on_first_use
from tenfold.base.source import capture
from tenfold.ops.callee import OpCall
from tenfold.ops.table import SLOT, TABLE
from tenfold.tensor import Tensor, data_attribute
from tenfold.trace import graph
from tenfold.trace.context import context
from tenfold.trace.gradient import raise_overwritten, wrote
from tenfold.trace.graph import Node, Value, enter

with on_first_use(__name__):
    from tenfold.trace.node_gradient import derived_of, pull, saved_of


Pairs = list[tuple[Value, Tensor | None]]


class Watch:
    """What runs at one node: the hooks before and after it, and the unpacking of its saved values."""

    def __init__(self) -> None:
        self.before: dict[int, Callable[[tuple[Any, ...]], Any]] = {}
        self.after: dict[int, Callable[[tuple[Any, ...], tuple[Any, ...]], Any]] = {}
        self.packed: Packed | None = None


class Around:
    """The hooks of a node that accumulates the gradients of a leaf."""

    def __init__(self) -> None:
        self.before: dict[int, Callable[[tuple[Any, ...]], Any]] = Noticed()
        self.after: dict[int, Callable[[tuple[Any, ...], tuple[Any, ...]], Any]] = Noticed()

    def come(self, gradient: Tensor, create_graph: bool) -> Tensor:
        """The gradient that is accumulated, of the one that comes."""
        gradients: list[Any] = [gradient]
        for before in list(self.before.values()):
            with set_grad_mode(create_graph):
                gradients = _replaced(before(tuple(gradients)), gradients)
        return gradients[0]

    def gone(self, gradient: Tensor, create_graph: bool) -> None:
        for after in list(self.after.values()):
            with set_grad_mode(create_graph):
                after((), (gradient,))


_watched: weakref.WeakKeyDictionary[Any, Watch] = weakref.WeakKeyDictionary()


def is_any_watched() -> bool:
    """Whether there is a node whose gradient is computed by itself."""
    return bool(_watched) or data_attribute.is_anything_touched()


def is_watched(node: Any) -> bool:
    """Whether a node's gradient is computed separately: Python code runs there, or `.data` replaced what it
    saved."""
    return (bool(_watched) and node in _watched) or data_attribute.is_touched(node)


def watch(node: Any) -> Watch:
    return _watched.setdefault(node, Watch())


def passed(node: Any, gradients: list[Any], results: dict[int, Value], create_graph: bool) -> Pairs:
    """The gradients of a node's inputs, given those of its results. `results` are some of these, by place."""
    asked = _watched.get(node) or Watch()
    if isinstance(node, CustomNode):
        come = [None] * node.count
        for returned, gradient in zip(node.places, gradients, strict=True):
            come[returned] = gradient
    else:
        shown = [i for i, reached in enumerate(node.callee.reached) if reached]
        come = [gradients[i] for i in shown]
    for before in list(asked.before.values()):
        with set_grad_mode(create_graph):
            come = _replaced(before(tuple(come)), come)
    if isinstance(node, CustomNode):
        pairs = node.run_backward([come[place] for place in node.places], create_graph)
    else:
        for i, answer in zip(shown, come, strict=True):
            gradients[i] = answer
        inputs, kept = list(node.inputs), dict[int, Value]()
        if asked.packed is not None:
            asked.packed.unpack(inputs, kept)
        else:
            _check_unwritten(node)
            if data_attribute.is_touched(node):
                with no_grad():
                    _take_present(node, inputs, results, kept)
        cotangents = [None if gradient is None else gradient.current() for gradient in gradients]
        with set_grad_mode(create_graph):
            pulled = pull(node, cotangents, capture(), inputs, kept)
        shares = [None if cotangent is None else Tensor(cotangent) for cotangent in pulled]
        pairs = list(zip(node.inputs, shares, strict=True))
    places = operands(node)
    for after in list(asked.after.values()):
        gone = [None if place is None else pairs[place][1] for place in places]
        with set_grad_mode(create_graph):
            gone = _replaced(after(tuple(gone), tuple(come)), gone)
        for place, gradient in zip(places, gone, strict=True):
            if place is not None:
                pairs[place] = pairs[place][0], gradient
    return pairs


def operands(node: Any) -> list[int | None]:
    """For each operand that a node's user sees, its place among the inputs. Where PyTorch makes a tensor of a
    number, as in `x * 2`, the number is an operand too: None. None of those of what was computed outside of a
    function that is recorded."""
    if not node.inputs:
        return []
    callee = None if isinstance(node, CustomNode) else node.callee
    on_tensors: list[Any] = []
    if isinstance(callee, OpCall):
        on_tensors = [row.schema.arguments for row in TABLE[callee.row.name] if row.numbers]
    if not isinstance(callee, OpCall) or not on_tensors:
        return list(range(len(node.inputs)))
    places: list[int | None] = []
    count = 0
    for i, (argument, given) in enumerate(zip(callee.row.schema.arguments, callee.arguments, strict=True)):
        if given is SLOT:
            places.append(count)
            count += 1
        elif argument.type.kind == "Scalar" and any(each[i].type.kind == "Tensor" for each in on_tensors):
            places.append(None)
    return places


def _take_present(node: Node, inputs: list[Value], results: dict[int, Value], kept: dict[int, Value]) -> None:
    """Replace what a node's gradient saved by its present data, in its inputs and in the results that are
    kept. Results that were not replaced are those of the forward pass."""
    saved, saved_results = saved_of(node)
    data_attribute.present_inputs(node, saved, derived_of(node), inputs)
    if any(present is not before for present, before in zip(inputs, node.inputs, strict=True)):
        kept.update({i: results[i] for i in saved_results if i in results})
        if len(kept) < len(saved_results):
            again = enter(Node(node.callee, node.inputs, node.source), node.inputs[0].device)
            kept.update({i: again[i] for i in saved_results if i not in kept})
    data_attribute.present_results(node, saved_results, kept)


def _check_unwritten(node: Any) -> None:
    """Raise if an input that the gradient needs has been written in place since."""
    for i in saved_of(node)[0]:
        origin = node.inputs[i].origin
        told = origin is not None and origin.overwritten and not wrote(node, i)
        if told or data_attribute.is_told(node.inputs[i], node):
            raise_overwritten(node.inputs[i], node)


def _replaced(returned: Any, gradients: list[Any]) -> list[Any]:
    """The gradients that a hook puts in the place of these."""
    if returned is None:
        return gradients
    replacements = list(returned) if isinstance(returned, (tuple, list)) else [returned]
    if len(replacements) != len(gradients):
        raise GradientError(f"a hook returned {len(replacements)} gradients in the place of {len(gradients)}")
    for replacement, gradient in zip(replacements, gradients, strict=True):
        if replacement is None or gradient is None:
            continue
        if not isinstance(replacement, Tensor) or replacement.current().type is not gradient.current().type:
            what = (
                replacement.current().type if isinstance(replacement, Tensor) else type(replacement).__name__
            )
            raise ArgumentError(f"a hook returns None or a gradient of {gradient.current().type}, not {what}")
    return replacements


class Packing:
    """The two hooks of `saved_tensors_hooks`, at work while gradients are followed."""

    def __init__(self, pack: Callable[[Tensor], Any], unpack: Callable[[Any], Tensor]):
        self._pack = pack
        self._unpack = unpack

    def __call__(self, node: Any, results: Sequence[Value]) -> None:
        """Pack what the gradient of a new node needs."""
        inputs, kept = saved_of(node)
        if inputs or kept:
            watch(node).packed = Packed(
                {i: self.packed(node.inputs[i]) for i in inputs}, {i: self.packed(results[i]) for i in kept}
            )

    def packed(self, value: Value) -> Callable[[], Value]:
        """A value as one that is unpacked when it is asked for: gradients flow to it as they did."""
        before, context.saving = context.saving, None
        try:
            with no_grad():
                held = self._pack(Tensor(graph.fresh(value, capture())))
        finally:
            context.saving = before
        type, origin, unpack = value.type, value.origin, self._unpack

        def unpacked() -> Value:
            tensor = unpack(held)
            if not isinstance(tensor, Tensor):
                raise ArgumentError(
                    f"the hook that unpacks returns a Tensor, not a {tensor.__class__.__name__}"
                )
            if tensor.current().type is not type:
                raise ShapeError(f"the hook that unpacks gave {tensor.current().type} for {type}")
            again = graph.fresh(tensor.current(), capture())
            again.origin = origin
            return again

        return unpacked


class Packed:
    """What the gradient of a node needs, packed: inputs and results, by place."""

    def __init__(self, inputs: dict[int, Callable[[], Value]], results: dict[int, Callable[[], Value]]):
        self._inputs = inputs
        self._results = results

    def unpack(self, inputs: list[Value], kept: dict[int, Value]) -> None:
        with no_grad():
            for i, value in self._inputs.items():
                inputs[i] = value()
            kept.update({i: result() for i, result in self._results.items()})
