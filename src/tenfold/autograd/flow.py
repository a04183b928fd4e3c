"""The entry points of autograd: `backward`, `grad`, and the Tensor's attributes and hooks. How gradients
flow is in `sweep.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

from tenfold.autograd.grad_mode import no_grad, set_grad_mode
from tenfold.autograd.sweep import Sweep, accumulate, finish_accumulation, survey
from tenfold.base.errors import ArgumentError, DTypeError, GradientError, ShapeError, located
from tenfold.base.hooks import GradientEdge, Noticed, RemovableHandle
from tenfold.base.layouts import strided
from tenfold.base.source import capture
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten
from tenfold.trace import graph
from tenfold.trace.context import context
from tenfold.trace.gradient import gradient, raise_spent, spend
from tenfold.trace.graph import Value


def is_grad_enabled() -> bool:
    """Whether gradients are recorded now."""
    return context.grad_enabled


@located
def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Add the gradients of `tensors` to the `grad` of every leaf that they were computed from.

    If `inputs` is given, only these tensors (or the values of a dictionary) get gradients. `retain_graph`
    allows another backward pass; `create_graph` makes the gradients differentiable. `grad_variables` is an
    older name of `grad_tensors`.
    """
    roots = _several(tensors)
    grad_tensors = grad_variables if grad_tensors is None else grad_tensors
    seeds = [None] * len(roots) if grad_tensors is None else _several(grad_tensors)
    cotangents = _cotangents(roots, seeds)
    if inputs is None:
        wanted: list[Value] | None = None
    else:
        wanted = [tensor.current() for tensor in _several(_named(inputs))]
        if not wanted:
            raise ArgumentError("inputs= is empty", help="leave it out to reach all leaves")
    retain = create_graph if retain_graph is None else retain_graph
    gradients = Sweep(roots, cotangents, wanted, retain, create_graph).run()
    for value, given_gradient in gradients:
        assert value.origin is not None
        accumulate(value.origin.of, given_gradient, create_graph)
    finish_accumulation()


@overload
def grad(
    outputs: Any,
    inputs: dict[str, Tensor],
    grad_outputs: Any = ...,
    retain_graph: bool | None = ...,
    create_graph: bool = ...,
    only_inputs: bool = ...,
    allow_unused: bool | None = ...,
    is_grads_batched: bool = ...,
    materialize_grads: bool = ...,
) -> dict[str, Tensor | None]: ...


@overload
def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = ...,
    retain_graph: bool | None = ...,
    create_graph: bool = ...,
    only_inputs: bool = ...,
    allow_unused: bool | None = ...,
    is_grads_batched: bool = ...,
    materialize_grads: bool = ...,
) -> tuple[Tensor | None, ...]: ...


@located
def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...] | dict[str, Tensor | None]:
    """Return the gradients of `outputs` with respect to `inputs` as a tuple; nothing is added to `grad`. If
    `inputs` is a dictionary, such as `dict(model.named_parameters())`, the result has the same keys.

    With `is_grads_batched`, the first dimension of each of `grad_outputs` is a batch of gradients to start
    from, and the results have the same first dimension. `only_inputs` is an older argument without effect.
    """
    roots, wanted = _several(outputs), _several(_named(inputs))
    if allow_unused is False and materialize_grads:
        raise ArgumentError("materialize_grads=True allows unused inputs", help="leave allow_unused out")
    if not wanted:
        raise GradientError("inputs is empty", help="name the tensors whose gradients are wanted")
    for tensor in wanted:
        if not isinstance(tensor, Tensor):
            raise ArgumentError(f"gradients are for a Tensor, not for a {type(tensor).__name__}")
        if not tensor.requires_grad:
            raise GradientError(
                f"an input of {tensor.current().type} does not require gradients",
                help="call requires_grad_()",
            )
    seeds = [None] * len(roots) if grad_outputs is None else _several(grad_outputs)
    values = [_differentiated(tensor).current() for tensor in wanted]
    retain = create_graph if retain_graph is None else retain_graph
    if is_grads_batched:
        swept = _batched_sweep(roots, seeds, values, retain, create_graph)
    else:
        swept = Sweep(roots, _cotangents(roots, seeds), values, retain, create_graph).run()
    gradients = {id(value.origin.of): gradient for value, gradient in swept if value.origin is not None}
    results: list[Tensor | None] = []
    for target, value in zip(wanted, values, strict=True):
        assert value.origin is not None
        result = gradients.get(id(value.origin.of))
        if result is None and materialize_grads:
            result = aten("zeros_like")(target)  # also where gradients are batched, as in PyTorch
            result = result.requires_grad_(create_graph)
        if result is None and not allow_unused:
            raise GradientError(
                f"an input of {value.type} was not used to compute the outputs",
                help="pass allow_unused=True to get None for it",
            )
        sparse = result is not None and target.layout != strided
        results.append(target.gradient_of(result) if sparse else result)
    return dict(zip(inputs, results, strict=True)) if isinstance(inputs, dict) else tuple(results)


def _named(inputs: Any) -> Any:
    """The tensors of a dictionary of inputs, or what else was given."""
    if isinstance(inputs, Mapping):
        if type(inputs) is not dict:
            raise ArgumentError(f"a dictionary of inputs is a dict, not a {type(inputs).__name__}")
        return list(inputs.values())
    return inputs


def _differentiated(tensor: Any) -> Tensor:
    """The tensor through which gradients flow: of a sparse one, its values."""
    return tensor if tensor.layout == strided else tensor._held


def _several(tensors: Any) -> list[Any]:
    """One or several tensors, or edges of the graph, as a list of tensors."""
    if isinstance(tensors, (Tensor, GradientEdge)) or tensors is None:
        tensors = [tensors]
    return [
        tensor.node.output(tensor.output_nr) if isinstance(tensor, GradientEdge) else tensor
        for tensor in tensors
    ]


def _batched_sweep(
    roots: Sequence[Tensor], seeds: Sequence[Any], wanted: Sequence[Value], retain: bool, create_graph: bool
) -> list[tuple[Value, Tensor]]:
    """Gradients from several starts, as one node; one start after another where Python code runs on the
    way."""
    sizes = {seed.shape[0] if isinstance(seed, Tensor) and seed.ndim else None for seed in seeds}
    if len(sizes) != 1 or None in sizes:
        raise ArgumentError(
            "is_grads_batched needs grad_outputs whose first dimensions, the batch, all have one size",
            help="stack the gradients to start from",
        )
    (size,) = sizes
    if not size:
        raise ArgumentError("is_grads_batched needs one gradient at least to start from")
    first = _cotangents(roots, [seed[0] for seed in seeds])
    values = [root.current() for root in roots]
    order, _, cuts = survey(values)
    if cuts:
        rest = [_cotangents(roots, [seed[i] for seed in seeds]) for i in range(1, size)]
        sweeps = [
            Sweep(roots, seeds, wanted, retain or i < size - 1, create_graph).run()
            for i, seeds in enumerate([first, *rest])
        ]
        return [
            (column[0][0], aten("stack")([gradient for _, gradient in column]))
            for column in zip(*sweeps, strict=True)
        ]
    for node in order:
        if node.spent:
            raise_spent(node)
    with set_grad_mode(create_graph):
        starts = [seed.to(root.dtype).current() for seed, root in zip(seeds, roots, strict=True)]
        results = gradient(values, starts, wanted, capture(), batch=size)
    if not retain:
        spend(order)
    pairs = zip(wanted, results, strict=True)
    return [(value, Tensor(gradient)) for value, gradient in pairs if gradient is not None]


def _cotangents(roots: Sequence[Tensor], seeds: Sequence[Any]) -> list[Tensor]:
    """The gradients to start from: those given, or 1 for results that are single numbers."""
    if len(seeds) != len(roots):
        raise ArgumentError(f"{len(seeds)} gradients are given for {len(roots)} tensors")
    cotangents = []
    for root, start in zip(roots, seeds, strict=True):
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


# What a Tensor has of this


def _backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add this tensor's gradients to the `grad` of every leaf that it was computed from."""
    backward(self, None if gradient is None else [gradient], retain_graph, create_graph, inputs=inputs)


@located
def _register_hook(self: Tensor, hook: Callable[[Tensor], Any]) -> RemovableHandle:
    """Call `hook(gradient)` when this tensor's gradient is known; what it returns replaces the gradient."""
    if not self.requires_grad:
        raise GradientError(
            "a tensor that does not require gradients cannot have a gradient hook",
            help="call requires_grad_() first",
        )
    origin = self._leaf or self.current().origin
    assert origin is not None
    origin = origin.of
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
        origin.of.retains = True


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


# A rule of a subclass is looked up by these names.
for _method in (_backward, _register_hook, _retain_grad, _detach_):
    _method.__name__ = _method.__name__.removeprefix("_")
Tensor.backward = _backward  # type: ignore[attr-defined]
Tensor.register_hook = _register_hook  # type: ignore[attr-defined]
Tensor.retain_grad = _retain_grad  # type: ignore[attr-defined]
Tensor.detach_ = _detach_  # type: ignore[attr-defined]
Tensor.retains_grad = property(  # type: ignore[attr-defined]
    lambda self: self._leaf is None and self._value.origin is not None and self._value.origin.of.retains
)
