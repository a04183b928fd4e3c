"""How gradients flow: `backward` and `grad`, and hooks on the way.

`backward` and `grad` record one gradient node for all that lies between a result and what it was computed
from. Where Python has a say in between, a hook or a `Function`, the flow is cut there: one node for each
piece, and Python's own code between them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from tenfold.autograd import anomaly
from tenfold.autograd.custom import CustomNode
from tenfold.autograd.handles import CHANGES, GradientEdge, Noticed, RemovableHandle
from tenfold.autograd.watched import is_watched, passed
from tenfold.errors import ArgumentError, DTypeError, GradientError, ShapeError, located
from tenfold.functional import aten
from tenfold.grad_mode import no_grad, set_grad_mode
from tenfold.source import capture
from tenfold.tensor import Tensor
from tenfold.trace import graph
from tenfold.trace.gradient import find_path, gradient, raise_spent, spend
from tenfold.trace.graph import Origin, Value


def is_grad_enabled() -> bool:
    return graph.mode.enabled


@located
def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add the gradients of `tensors` to the `grad` of every leaf that they were computed from.

    `inputs` names the tensors to do so for instead; `retain_graph` allows a second time; `create_graph` lets
    the gradients be differentiated in turn.
    """
    roots = _several(tensors)
    given = [None] * len(roots) if grad_tensors is None else _several(grad_tensors)
    cotangents = _cotangents(roots, given)
    if inputs is None:
        wanted: list[Value] | None = None
    else:
        wanted = [each.current() for each in _several(inputs)]
        if not wanted:
            raise ArgumentError("inputs= is empty", help="leave it out to reach all leaves")
    retain = create_graph if retain_graph is None else retain_graph
    found = _Sweep(roots, cotangents, wanted, retain, create_graph).run()
    for value, given_gradient in found:
        assert value.origin is not None
        _accumulate(value.origin.of, given_gradient, create_graph)


def _accumulate(leaf: Origin, found: Tensor, create_graph: bool) -> None:
    owner = None if leaf.leaf is None else leaf.leaf()
    if owner is not None and owner._leaf is not leaf:
        return  # it requires no gradients any more
    if leaf.grad is None:
        leaf.grad = found
    elif create_graph:
        leaf.grad = leaf.grad + found
    else:
        with no_grad():
            leaf.grad.add_(found)
    for hook in list((leaf.after or {}).values()):
        hook()


@located
def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """The gradients of `outputs` for each of `inputs`, as a tuple; nothing is added to `grad`.

    With `is_grads_batched`, `grad_outputs` hold several gradients to start from, counted by a dimension in
    front, and so do the results.
    """
    roots, wanted = _several(outputs), _several(inputs)
    if allow_unused is False and materialize_grads:
        raise ArgumentError("materialize_grads=True allows unused inputs", help="leave allow_unused out")
    for each in wanted:
        if not isinstance(each, Tensor):
            raise ArgumentError(f"gradients are for a Tensor, not for a {type(each).__name__}")
        if not each.requires_grad:
            raise GradientError(
                f"an input of {each.current().type} does not require gradients", help="call requires_grad_()"
            )
    given = [None] * len(roots) if grad_outputs is None else _several(grad_outputs)
    values = [each.current() for each in wanted]
    retain = create_graph if retain_graph is None else retain_graph
    if is_grads_batched:
        swept = _batched_sweep(roots, given, values, retain, create_graph)
    else:
        swept = _Sweep(roots, _cotangents(roots, given), values, retain, create_graph).run()
    found = {id(value.origin.of): each for value, each in swept if value.origin is not None}
    results: list[Tensor | None] = []
    for each, value in zip(wanted, values, strict=True):
        assert value.origin is not None
        result = found.get(id(value.origin.of))
        if result is None and materialize_grads:
            result = aten("zeros_like")(each)
            if is_grads_batched:
                result = aten("expand")(result, (len(_several(grad_outputs)[0]), *each.shape))
        if result is None and not allow_unused:
            raise GradientError(
                f"an input of {value.type} was not used to compute the outputs",
                help="pass allow_unused=True to get None for it",
            )
        results.append(result)
    return tuple(results)


def _several(tensors: Any) -> list[Any]:
    """One or several tensors, or edges of the graph, as a list of tensors."""
    if isinstance(tensors, (Tensor, GradientEdge)) or tensors is None:
        tensors = [tensors]
    return [each.node.output(each.output_nr) if isinstance(each, GradientEdge) else each for each in tensors]


def _batched_sweep(
    roots: Sequence[Tensor], given: Sequence[Any], wanted: Sequence[Value], retain: bool, create_graph: bool
) -> list[tuple[Value, Tensor]]:
    """Gradients from several starts, as one node; one start after the other where Python has a say."""
    sizes = {each.shape[0] if isinstance(each, Tensor) and each.ndim else None for each in given}
    if len(sizes) != 1 or None in sizes:
        raise ArgumentError(
            "is_grads_batched needs grad_outputs that count their gradients in dimension 0, all alike",
            help="stack the gradients to start from",
        )
    (size,) = sizes
    if not size:
        raise ArgumentError("is_grads_batched needs one gradient at least to start from")
    first = _cotangents(roots, [each[0] for each in given])
    values = [each.current() for each in roots]
    order, _, cuts = survey(values)
    if cuts:
        rest = [_cotangents(roots, [each[i] for each in given]) for i in range(1, size)]
        sweeps = [
            _Sweep(roots, each, wanted, retain or i < size - 1, create_graph).run()
            for i, each in enumerate([first, *rest])
        ]
        return [
            (found[0][0], aten("stack")([each for _, each in found])) for found in zip(*sweeps, strict=True)
        ]
    for node in order:
        if node.spent:
            raise_spent(node)
    with set_grad_mode(create_graph):
        starts = [each.to(root.dtype).current() for each, root in zip(given, roots, strict=True)]
        results = gradient(values, starts, wanted, capture(), batch=size)
    if not retain:
        spend(order)
    pairs = zip(wanted, results, strict=True)
    return [(value, Tensor(each)) for value, each in pairs if each is not None]


def _cotangents(roots: Sequence[Tensor], given: Sequence[Any]) -> list[Tensor]:
    """The gradients to start from: those given, or 1 for results that are single numbers."""
    if len(given) != len(roots):
        raise ArgumentError(f"{len(given)} gradients are given for {len(roots)} tensors")
    cotangents = []
    for root, start in zip(roots, given, strict=True):
        if not isinstance(root, Tensor):
            raise ArgumentError(f"gradients are those of a Tensor, not of a {type(root).__name__}")
        if not root.requires_grad:
            raise GradientError(
                "this tensor does not require gradients: nothing it was computed from does",
                help="call requires_grad_() on what gradients are wanted for, before computing",
            )
        if start is None:
            if root.numel() != 1:
                raise GradientError(
                    f"a gradient is implied only for a single number, this is {root.current().type}",
                    help="reduce it first, as with .sum(), or pass the gradient to start from",
                )
            if root.dtype.is_complex:
                raise GradientError(
                    "a gradient is implied only for a real number, this one is complex",
                    help="take .abs() or .real first, or pass the gradient to start from",
                )
            with no_grad():
                start = aten("ones_like")(root)
        elif not isinstance(start, Tensor):
            raise ArgumentError(f"the gradient to start from is a Tensor, not a {type(start).__name__}")
        elif start.shape != root.shape:
            raise ShapeError(
                f"the gradient of {root.current().type} cannot start from {start.current().type}",
                help="give a gradient of the result's own shape",
            )
        elif start.dtype.is_complex != root.dtype.is_complex:
            raise DTypeError(
                f"the gradient of {root.current().type} cannot start from {start.current().type}: one is "
                "complex, the other is not",
                help=f"give a gradient of {root.dtype.name}",
            )
        elif start.dtype is not root.dtype:
            start = start.to(root.dtype)
        cotangents.append(start)
    return cotangents


class _Endings(threading.local):
    """What to do at the end of each sweep that is under way in this thread, innermost last: what for, by
    which key."""

    def __init__(self) -> None:
        self.stack: list[dict[Any, Callable[[], None]]] = []


_endings = _Endings()


def at_end(key: Any, action: Callable[[], Any]) -> Any:
    """From a hook: call this when all gradients of the sweep have come; the first time for its key. Gives
    what is kept under the key."""
    return _endings.stack[-1].setdefault(key, action)


class _Sweep:
    """One pass from results back to what is wanted of them."""

    def __init__(
        self,
        roots: Sequence[Tensor],
        cotangents: Sequence[Tensor],
        wanted: Sequence[Value] | None,
        retain: bool,
        create_graph: bool,
    ):
        self.where = capture()
        self.create_graph = create_graph
        self.retain = retain
        # What gradients have come to and shall flow on from, by the value's origin.
        self.pending: dict[int, tuple[Value, Tensor]] = {}
        for root, cotangent in zip(roots, cotangents, strict=True):
            self.add(self.pending, root.current(), cotangent)
        self.order, leaves, cuts = survey([value for value, _ in self.pending.values()])
        if wanted is not None:
            leading = set(find_path([value for value, _ in self.pending.values()], wanted, ()))
            goals = {id(each.origin.of) for each in wanted if each.origin is not None}
            self.order = [node for node in self.order if node in leading]
            cuts = [
                each
                for each in cuts
                if each.origin is not None and (each.origin.node in leading or id(each.origin.of) in goals)
            ]
        self.cuts = cuts
        self.wanted = leaves if wanted is None else list(wanted)
        self.all_leaves = wanted is None
        self.found: dict[int, tuple[Value, Tensor]] = {}

    def add(self, into: dict[int, tuple[Value, Tensor]], value: Value, cotangent: Tensor) -> None:
        assert value.origin is not None
        key = id(value.origin.of)
        if key in into:
            with set_grad_mode(self.create_graph):
                cotangent = into[key][1] + cotangent
        into[key] = (value, cotangent)

    def run(self) -> list[tuple[Value, Tensor]]:
        recorder = graph.active()
        if recorder is not None:
            recorder.guard(CHANGES, "count")
        _endings.stack.append({})
        try:
            found = self.swept()
            for each in _endings.stack[-1].values():
                each()
            return found
        finally:
            _endings.stack.pop()

    def swept(self) -> list[tuple[Value, Tensor]]:
        for node in self.order:
            if node.spent:
                raise_spent(node)
        place = {node: i for i, node in enumerate(self.order)}
        if not self.cuts:
            starts = list(self.pending.values())
            if anomaly.looking():
                anomaly.look(starts, self.order)
            self.flow(starts)
        else:
            cut = {id(each.origin): each for each in self.cuts if each.origin is not None}
            free = [each for each in self.pending.values() if id(each[0].origin) not in cut]
            self.pending = {key: each for key, each in self.pending.items() if key in cut}
            if free:
                self.flow(free)
            while self.pending:
                # The last computed first: nothing that is still to flow can add to its gradient.
                key = max(self.pending, key=lambda k: _place(self.pending[k][0], place))
                value, cotangent = self.pending.pop(key)
                self.pass_cut(value, cotangent)
        if self.cuts and anomaly.looking():
            anomaly.refuse_nan([each for _, each in self.found.values()])
        if not self.retain:
            spend(self.order)
        return [self.finish(value, each) for value, each in self.found.values()]

    def flow(self, starts: Sequence[tuple[Value, Tensor]]) -> None:
        """Let gradients flow from these values as far as the next cuts."""
        wants = [*self.wanted, *self.cuts]
        results = gradient(
            [value for value, _ in starts],
            [each.current() for _, each in starts],
            wants,
            self.where,
            stops=self.cuts,
            closed=self.create_graph,
        )
        wanted = {id(each.origin.of) for each in self.wanted if each.origin is not None}
        seen: set[int] = set()
        begun = {id(value.origin) for value, _ in starts}
        for value, result in zip(wants, results, strict=True):
            if result is None or id(value) in seen:
                continue
            seen.add(id(value))
            assert value.origin is not None
            if id(value.origin) in begun and value in self.cuts:
                continue
            self.arrive(value, Tensor(result), id(value.origin.of) in wanted)

    def arrive(self, value: Value, cotangent: Tensor, wanted: bool) -> None:
        if value in self.cuts:
            self.add(self.pending, value, cotangent)
        elif wanted:
            self.add(self.found, value, cotangent)

    def pass_cut(self, value: Value, cotangent: Tensor) -> None:
        """Python's part: hooks of the value and of the node that made it, or the backward of a Function."""
        origin = value.origin
        assert origin is not None
        cotangent = self.arrived(value, cotangent)
        maker = origin.node
        custom = isinstance(maker, CustomNode)
        if maker is None or not (custom or is_watched(maker)):
            if maker is not None:
                self.flow([(value, cotangent)])
            return
        gradients: list[Any] = [None] * len(maker.outputs if custom else maker.signature.result_types)
        gradients[origin.index] = cotangent
        for key, (other, given) in list(self.pending.items()):
            if other.origin is not None and other.origin.node is maker:
                del self.pending[key]
                gradients[other.origin.index] = self.arrived(other, given)
        for source, result in passed(maker, gradients, self.create_graph):
            if source.origin is None or result is None:
                continue
            if source.origin.node is None:
                of = source.origin.of
                if any(each.origin is not None and each.origin.of is of for each in self.wanted):
                    self.add(self.found, source, result)
            else:
                self.add(self.pending, source, result)

    def arrived(self, value: Value, cotangent: Tensor) -> Tensor:
        """The whole gradient of a value inside has come: its hooks, and whoever wants or retains it."""
        origin = value.origin
        assert origin is not None
        cotangent = _hooked(origin, cotangent, self.create_graph)
        if origin.retains:
            _accumulate(origin, self.own(cotangent), self.create_graph)
        if any(each.origin is not None and each.origin.of is origin for each in self.wanted):
            self.add(self.found, value, cotangent)
        return cotangent

    def own(self, found: Tensor) -> Tensor:
        """A gradient to be kept, apart from tensors that Python code may hold or give to others, too."""
        return found if self.create_graph else Tensor(graph.fresh(found.current(), self.where))

    def finish(self, value: Value, found: Tensor) -> tuple[Value, Tensor]:
        """What a leaf gets in the end, its hooks passed."""
        assert value.origin is not None
        origin = value.origin.of
        if origin.node is None and origin.hooks:
            return value, self.own(_hooked(origin, found, self.create_graph))
        return value, self.own(found) if self.cuts else found


def _place(value: Value, places: dict[Any, int]) -> tuple[int, int]:
    assert value.origin is not None
    return places.get(value.origin.node, -1), value.origin.index


def _hooked(origin: Origin, gradient: Tensor, create_graph: bool) -> Tensor:
    for hook in list((origin.hooks or {}).values()):
        with set_grad_mode(create_graph):
            replaced = hook(gradient)
        if replaced is not None:
            if (
                not isinstance(replaced, Tensor)
                or replaced.current().type is not gradient.current().type
                or replaced.device is not gradient.device
            ):
                raise ArgumentError(
                    f"a hook returns None or a gradient of {gradient.current().type}, not "
                    f"{replaced.current().type if isinstance(replaced, Tensor) else type(replaced).__name__}"
                )
            gradient = replaced
    return gradient


def survey(starts: Sequence[Value]) -> tuple[list[Any], list[Value], list[Value]]:
    """All nodes behind these values, each after those it depends on; the leaves; the values where Python has
    a say: with hooks or a gradient to retain, made by a Function or a node with hooks, or taken by one."""
    order: dict[Any, None] = {}
    leaves: dict[int, Value] = {}
    cuts: dict[int, Value] = {}

    def visit(value: Value, taken: bool) -> None:
        origin = value.origin
        assert origin is not None
        if origin.node is None:
            leaves.setdefault(id(origin.of), value)
        elif taken or origin.hooks or origin.retains or has_say(origin.node):
            cuts.setdefault(id(origin), value)

    def has_say(node: Any) -> bool:
        return isinstance(node, CustomNode) or is_watched(node)

    for each in starts:
        visit(each, False)
    stack = [each.origin.node for each in starts if each.origin is not None and each.origin.node is not None]
    stack.reverse()
    while stack:
        node = stack[-1]
        if node in order:
            stack.pop()
            continue
        taken = has_say(node)
        waiting = []
        for each in node.inputs:
            if each.origin is not None:
                visit(each, taken)
                if each.origin.node is not None and each.origin.node not in order:
                    waiting.append(each.origin.node)
        if waiting:
            waiting.reverse()
            stack += waiting
            continue
        stack.pop()
        order[node] = None
    return list(order), list(leaves.values()), list(cuts.values())


# What a Tensor has of this


def _backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add this tensor's gradients to the `grad` of every leaf that it was computed from."""
    backward(self, None if gradient is None else [gradient], retain_graph, create_graph, inputs)


@located
def _register_hook(self: Tensor, hook: Callable[[Tensor], Any]) -> RemovableHandle:
    """Call `hook(gradient)` when this tensor's gradient is known; what it returns replaces the gradient."""
    if not self.requires_grad:
        raise GradientError(
            "a tensor that does not require gradients has none to call a hook with",
            help="call requires_grad_() first",
        )
    origin = self._leaf or self.current().origin
    assert origin is not None
    if origin.hooks is None:
        origin.hooks = Noticed() if origin.node is None else {}
    return RemovableHandle(origin.hooks, hook)


@located
def _retain_grad(self: Tensor) -> None:
    """Keep this tensor's gradient in `grad` though it is no leaf."""
    if not self.requires_grad:
        raise GradientError("a tensor that does not require gradients has none to retain")
    origin = self.current().origin
    if self._leaf is None and origin is not None:
        origin.retains = True


@located
def _detach_(self: Tensor) -> Tensor:
    """Forget what this tensor was computed from."""
    if self._alias is not None and self._alias.is_view:
        raise GradientError("a view cannot be detached in place", help="use .detach() for another tensor")
    if self._leaf is not None:
        self.requires_grad_(False)
    alias, self._value = self.share(), graph.fresh(self.detach().current(), capture())
    alias.base.value = None
    if not alias.steps:
        alias.storage.value = self._value
    return self


Tensor.backward = _backward  # type: ignore[attr-defined]
Tensor.register_hook = _register_hook  # type: ignore[attr-defined]
Tensor.retain_grad = _retain_grad  # type: ignore[attr-defined]
Tensor.detach_ = _detach_  # type: ignore[attr-defined]
Tensor.retains_grad = property(  # type: ignore[attr-defined]
    lambda self: self._leaf is None and self._value.origin is not None and self._value.origin.retains
)
