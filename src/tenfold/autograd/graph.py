"""`tenfold.autograd.graph`: the backward graph as `Tensor.grad_fn` and `next_functions` show it."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tenfold.autograd.backward_hooks import Around, Packing, operands, passed, watch
from tenfold.autograd.custom import CustomNode
from tenfold.autograd.flow import is_grad_enabled
from tenfold.autograd.sweep import at_end
from tenfold.base.errors import ArgumentError, GradientError, located
from tenfold.base.hooks import GradientEdge, HandleOfSeveral, RemovableHandle
from tenfold.base.late import on_first_use
from tenfold.base.source import capture
from tenfold.tensor import Tensor
from tenfold.trace.context import context
from tenfold.trace.graph import Origin, Value

with on_first_use(__name__):
    from tenfold.autograd.node_names import step_name


__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


class Node:
    """A node of the backward graph. As long as something holds it, there is one Python object for it."""

    _known: weakref.WeakValueDictionary[int, Node] = weakref.WeakValueDictionary()
    _kinds: dict[str, type[Node]] = {}

    def __init__(self, maker: Any):
        self._maker = maker
        self._results: dict[int, Value] = {}  # those that edges lead to
        self._seen: dict[int, weakref.ref[Value]] = {}  # those of tensors that were asked for their grad_fn

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for the user's own data, which lives as long as the graph."""
        return _metadata.setdefault(self._maker, {})

    @classmethod
    def of(cls, origin: Origin) -> Node:
        """The node that a gradient comes to next from a value of this origin."""
        maker = origin.of if origin.node is None else origin.node
        known = cls._known.get(id(maker))
        if known is None:
            name = _name(maker)
            kind = cls._kinds.get(name)
            if kind is None:
                kind = cls._kinds[name] = type(name, (Accumulation if origin.node is None else cls,), {})
            known = cls._known[id(maker)] = kind(maker)
        return known

    def __getattr__(self, name: str) -> Any:
        """The node of a Function is to its user the context that forward and backward share."""
        maker = self.__dict__.get("_maker")
        if isinstance(maker, CustomNode) and not name.startswith("__"):
            return getattr(maker.context, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def name(self) -> str:
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """For each operand the node that gradients flow to and its result, or None and 0."""
        edges: list[tuple[Node | None, int]] = []
        for place in operands(self._maker):
            operand = None if place is None else self._maker.inputs[place]
            if operand is None or operand.origin is None:
                edges.append((None, 0))
            else:
                node = Node.of(operand.origin)
                node._results[operand.origin.index] = operand
                edges.append((node, operand.origin.index))
        return tuple(edges)

    def output(self, place: int) -> Tensor:
        """The result at the end of an edge to this node, as a tensor of its own."""
        value = self._results.get(place) or self._seen.get(place, lambda: None)()
        if value is None:
            raise ArgumentError(f"{self!r} has no edge from result {place}", help="use get_gradient_edge")
        return Tensor(value)

    def register_prehook(self, fn: Callable[[tuple[Any, ...]], Any]) -> RemovableHandle | HandleOfSeveral:
        """Call `fn(gradients)` before the node runs, with the gradients of its results (None where there is
        none). What it returns replaces them."""
        return RemovableHandle(watch(self._maker).before, fn)

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle | HandleOfSeveral:
        """Call `fn(grad_inputs, grad_outputs)` after the node has run, with the gradients of its inputs and
        of its results. What it returns replaces the former."""
        return RemovableHandle(watch(self._maker).after, fn)

    def __call__(self, *gradients: Any) -> Any:
        """The gradients of what the step took, given those of its results."""
        custom = isinstance(self._maker, CustomNode)
        count = len(self._maker.outputs if custom else self._maker.callee.result_types)
        if len(gradients) != count:
            raise ArgumentError(f"{self.name()} takes {count} gradients, not {len(gradients)}").located(
                self.name(), capture()
            )
        pairs = passed(self._maker, list(gradients), {}, is_grad_enabled())
        results = tuple([None if place is None else pairs[place][1] for place in operands(self._maker)])
        return results[0] if len(results) == 1 else results

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and self._maker is other._maker

    def __hash__(self) -> int:
        return hash(id(self._maker))

    def __repr__(self) -> str:
        return f"<{self.name()}>"


# By the maker, since nodes are made anew when they are asked for. Leaves keep theirs themselves.
_metadata: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = weakref.WeakKeyDictionary()


class Accumulation(Node):
    """The node that accumulates gradients into the `grad` of a leaf."""

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    @property
    def variable(self) -> Tensor | None:
        """The leaf, if it still exists."""
        return None if self._maker.leaf is None else self._maker.leaf()

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        return ()

    @property
    def metadata(self) -> dict[Any, Any]:
        return vars(self).setdefault("_metadata", {})

    def register_prehook(self, fn: Callable[[tuple[Any, ...]], Any]) -> RemovableHandle | HandleOfSeveral:
        """Call `fn((gradient,))` before a gradient is accumulated; what it returns replaces it."""
        return RemovableHandle(self._around().before, fn)

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle | HandleOfSeveral:
        """Call `fn((), (gradient,))` after a gradient was accumulated."""
        return RemovableHandle(self._around().after, fn)

    def _around(self) -> Around:
        if self.variable is None:
            raise GradientError("the tensor whose gradient is collected here is gone")
        if self._maker.around is None:
            self._maker.around = Around()
        return self._maker.around

    def __call__(self, *gradients: Any) -> Any:
        raise GradientError("a gradient is collected by backward()", help="add to the tensor's grad instead")


def _name(maker: Any) -> str:
    if isinstance(maker, Origin):
        return "AccumulateGrad"
    if isinstance(maker, CustomNode):
        return f"{maker.function.__name__}Backward"
    return step_name(maker.callee)


@located
def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge of the backward graph that a tensor's gradient comes from."""
    if not tensor.requires_grad:
        raise GradientError("a tensor that does not require gradients has no edge")
    origin = tensor._leaf or tensor.current().origin
    assert origin is not None
    node = Node.of(origin)
    node._results[origin.index] = tensor.current()
    return GradientEdge(node, origin.index)


@located
def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., None], *, mode: str = "all"
) -> HandleOfSeveral:
    """Call `fn(gradients)` once in each backward pass, when the gradients of all of these tensors that the
    pass reaches are known; the others are None. With mode="any", call `fn(gradient)` for the first that is
    known."""
    if mode not in ("all", "any"):
        raise ArgumentError(f"mode is 'all' or 'any', not {mode!r}")
    key = object()

    def watch(place: int) -> Callable[[Tensor], None]:
        def hook(gradient: Tensor) -> None:
            arrived = Arrived(len(tensors), fn if mode == "all" else None)
            known = at_end(key, arrived)
            if known is arrived and mode == "any":
                fn(gradient)
            known.gradients[place] = gradient

        return hook

    return HandleOfSeveral([tensor.register_hook(watch(i)) for i, tensor in enumerate(tensors)])


class Arrived:
    """Collects the gradients of one sweep for a hook on several tensors, which is called at the end of the
    sweep."""

    def __init__(self, count: int, hook: Callable[..., None] | None):
        self.gradients: list[Tensor | None] = [None] * count
        self._hook = hook

    def __call__(self) -> None:
        if self._hook is not None:
            self._hook(self.gradients)


@contextlib.contextmanager
def save_on_cpu(pin_memory: bool = False, device_type: str = "cuda") -> Iterator[None]:
    """Has no effect: the compiled program decides what is saved for backward, and where."""
    yield


class saved_tensors_hooks:
    """A `with` block in which tensors saved for backward are passed to `pack_hook`. `unpack_hook` gets what
    that returned, and returns the tensor, when a gradient needs it."""

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]):
        self._packing = Packing(pack_hook, unpack_hook)

    def __enter__(self) -> None:
        if _refusal:
            raise GradientError(_refusal[-1]).located("saved_tensors_hooks", capture())
        self._before, context.saving = context.saving, self._packing

    def __exit__(self, *raised: object) -> None:
        context.saving = self._before


_refusal: list[str] = []


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """A `with` block in which `saved_tensors_hooks` raises an error with this message."""
    before, context.saving = context.saving, None
    _refusal.append(error_message)
    try:
        yield
    finally:
        _refusal.pop()
        context.saving = before


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[None]:
    """A `with` block in which tensors saved for backward may be written in place. Gradients use the saved
    values."""
    before, context.keeps_overwritten = context.keeps_overwritten, True
    try:
        yield
    finally:
        context.keeps_overwritten = before


def _grad_fn(self: Tensor) -> Node | None:
    """What made this tensor, or None for a leaf."""
    origin = None if self._leaf is not None else self.current().origin
    if origin is None or origin.node is None:
        return None
    node = Node.of(origin)
    node._seen[origin.index] = weakref.ref(self.current())
    return node


Tensor.grad_fn = property(_grad_fn)  # type: ignore[attr-defined]
Tensor.output_nr = property(  # type: ignore[attr-defined]
    lambda self: 0 if self.grad_fn is None else self.current().origin.index
)
