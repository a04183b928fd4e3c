"""`tenfold.autograd.graph`: what made a tensor, as `Tensor.grad_fn` and `next_functions` show it."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from tenfold.autograd.custom import CustomNode
from tenfold.autograd.flow import at_end
from tenfold.autograd.handles import RemovableHandle
from tenfold.errors import ArgumentError, GradientError, located
from tenfold.tensor import Tensor
from tenfold.trace.graph import Origin

__all__ = ["GradientEdge", "Node", "get_gradient_edge", "register_multi_grad_hook", "save_on_cpu"]


class Node:
    """A step that gradients pass on their way back; there is one object for each as long as it is held."""

    _known: weakref.WeakValueDictionary[int, Node] = weakref.WeakValueDictionary()
    _kinds: dict[str, type[Node]] = {}

    def __init__(self, maker: Any):
        self._maker = maker
        self.metadata: dict[Any, Any] = {}

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
        origins = [each.origin for each in self._maker.inputs]
        return tuple([(None, 0) if each is None else (Node.of(each), each.index) for each in origins])

    def __repr__(self) -> str:
        return f"<{self.name()}>"


class Accumulation(Node):
    """Where gradients end: in the `grad` of a leaf."""

    @property
    def variable(self) -> Tensor | None:
        """The leaf, if it is still there."""
        return None if self._maker.leaf is None else self._maker.leaf()

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        return ()


def _name(maker: Any) -> str:
    if isinstance(maker, Origin):
        return "AccumulateGrad"
    if isinstance(maker, CustomNode):
        return f"{maker.function.__name__}Backward"
    words = maker.signature.row.name.strip("_").split("_")
    return "".join(each[:1].upper() + each[1:] for each in words) + "Backward0"


class GradientEdge(NamedTuple):
    """Which result of which node a tensor is."""

    node: Node
    output_nr: int


@located
def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Where a tensor's gradient comes from."""
    if not tensor.requires_grad:
        raise GradientError("a tensor that does not require gradients has no edge")
    origin = tensor._leaf or tensor.current().origin
    assert origin is not None
    return GradientEdge(Node.of(origin), origin.index)


@located
def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., None], *, mode: str = "all"
) -> HandleOfSeveral:
    """Call `fn(gradients)` once in each backward pass, when the gradients of all of these tensors are known
    that it comes to, None standing for others; or with mode="any" `fn(gradient)`, for the first that is."""
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

    return HandleOfSeveral([each.register_hook(watch(i)) for i, each in enumerate(tensors)])


class Arrived:
    """The gradients of one sweep for a hook of several tensors, which is called with them at its end."""

    def __init__(self, count: int, hook: Callable[..., None] | None):
        self.gradients: list[Tensor | None] = [None] * count
        self._hook = hook

    def __call__(self) -> None:
        if self._hook is not None:
            self._hook(self.gradients)


class HandleOfSeveral:
    """What removes a hook of several tensors, from all of them."""

    def __init__(self, handles: Sequence[RemovableHandle]):
        self._handles = handles

    def remove(self) -> None:
        for each in self._handles:
            each.remove()

    def __enter__(self) -> HandleOfSeveral:
        return self

    def __exit__(self, *raised: object) -> None:
        self.remove()


@contextlib.contextmanager
def save_on_cpu(pin_memory: bool = False, device_type: str = "cuda") -> Iterator[None]:
    """Changes nothing: what is kept for gradients, and where, is the compiled program's business."""
    yield


def _grad_fn(self: Tensor) -> Node | None:
    """What made this tensor, or None for a leaf."""
    origin = None if self._leaf is not None else self.current().origin
    return None if origin is None or origin.node is None else Node.of(origin)


Tensor.grad_fn = property(_grad_fn)  # type: ignore[attr-defined]
Tensor.output_nr = property(  # type: ignore[attr-defined]
    lambda self: 0 if self.grad_fn is None else self.current().origin.index
)
