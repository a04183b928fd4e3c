"""`tenfold.autograd.functional`: derivatives of a function of tensors at a point, as PyTorch names them. Its
successors, which nest, are in `tenfold.func`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tenfold.autograd.flow import grad
from tenfold.autograd.grad_mode import enable_grad
from tenfold.base.errors import ArgumentError, GradientError, ShapeError, located
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Function = Callable[..., Any]
Tensors = Tensor | Sequence[Tensor]


@located
def vjp(
    func: Function,
    inputs: Tensors,
    v: Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The outputs of `func`, and `v` times its Jacobian; `v` defaults to 1 if the output is a number."""
    with enable_grad():
        at = _Point(func, inputs, create_graph, strict)
        gradients = at.pulled(at.cotangents(v), create_graph)
    return at.given_out(at.outputs, at.single_output), at.given_out(gradients, at.single_input)


@located
def jvp(
    func: Function,
    inputs: Tensors,
    v: Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The outputs of `func`, and its Jacobian times `v`; `v` defaults to 1 if the input is a number."""
    with enable_grad():
        at = _Point(func, inputs, create_graph, strict)
        tangents = at.pushed(_fitting(v, at.inputs, "v", "input"), create_graph)
    return at.given_out(at.outputs, at.single_output), at.given_out(tangents, at.single_output)


@located
def jacobian(
    func: Function,
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian of each output with respect to each input; its shape is the output's, then the input's.

    All gradients of an output are computed by one program, so `vectorize` and `strategy` have no effect.
    """
    if strategy not in ("reverse-mode", "forward-mode"):
        raise ArgumentError(f"strategy={strategy!r}", help='use "reverse-mode" or "forward-mode"')
    with enable_grad():
        at = _Point(func, inputs, create_graph, strict)
        rows = [at.row(i, create_graph) for i in range(len(at.outputs))]
    parts = [at.given_out(row, at.single_input) for row in rows]
    return parts[0] if at.single_output else tuple(parts)


@located
def hessian(
    func: Function,
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The second derivatives of a function whose output is a number, for each pair of inputs."""
    several = not isinstance(inputs, Tensor)

    def slopes(*points: Tensor) -> Any:
        at = _Point(func, points, True, strict)
        at.require_number()
        gradients = at.pulled(at.cotangents(None), True)
        return tuple(gradients) if several else gradients[0]

    return jacobian(slopes, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)


@located
def vhp(
    func: Function,
    inputs: Tensors,
    v: Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The output of `func`, which is a number, and `v` times its Hessian."""
    with enable_grad():
        at = _Point(func, inputs, create_graph, strict)
        at.require_number()
        slopes = at.pulled(at.cotangents(None), True)
        moved = _fitting(v, at.inputs, "v", "input")
        gradients = _filled(_gradients(slopes, at.inputs, moved, create_graph), at.inputs, strict)
    return at.given_out(at.outputs, at.single_output), at.given_out(gradients, at.single_input)


@located
def hvp(
    func: Function,
    inputs: Tensors,
    v: Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The output of `func`, which is a number, and its Hessian times `v`."""
    return vhp(func, inputs, v, create_graph, strict)  # the matrix is symmetric


class _Point:
    """A function's inputs, as leaves of their own, and what it gives there."""

    def __init__(self, func: Function, inputs: Tensors, create_graph: bool, strict: bool):
        self.create_graph = create_graph
        self.strict = strict
        self.single_input, tensors = _listed(inputs, "inputs")
        self.inputs = [
            tensor.view_as(tensor)
            if create_graph and tensor.requires_grad
            else tensor.detach().requires_grad_()
            for tensor in tensors
        ]
        self.single_output, self.outputs = _listed(func(*self.inputs), "the results of the function")
        for i, output in enumerate(self.outputs):
            if strict and not output.requires_grad:
                raise GradientError(
                    f"output {i} does not depend on the inputs, or only through ops without a gradient",
                    help="leave strict out to get zeros for it",
                )

    def cotangents(self, v: Tensors | None) -> list[Tensor]:
        return _fitting(v, self.outputs, "v", "output")

    def require_number(self) -> None:
        if not self.single_output or self.outputs[0].numel() != 1:
            raise GradientError("second derivatives are of a function that gives one number")

    def pulled(self, cotangents: Sequence[Tensor], create_graph: bool) -> list[Tensor]:
        gradients = _gradients(self.outputs, self.inputs, cotangents, create_graph)
        return _filled(gradients, self.inputs, self.strict)

    def pushed(self, tangents: Sequence[Tensor], create_graph: bool) -> list[Tensor]:
        """What a gradient gives is linear in the cotangents: its own gradient by these is the tangent."""
        cotangents = [aten("zeros_like")(output).requires_grad_() for output in self.outputs]
        slopes = self.pulled(cotangents, True)
        pushed = _gradients(slopes, cotangents, tangents, create_graph)
        return _filled(pushed, self.outputs, self.strict)

    def row(self, place: int, create_graph: bool) -> list[Tensor]:
        """The derivatives of one output."""
        output = self.outputs[place]
        size = output.numel()
        shapes = [(*output.shape, *tensor.shape) for tensor in self.inputs]
        if not size or not output.requires_grad:
            return [
                aten("zeros")(shape, dtype=tensor.dtype, device=tensor.device)
                for shape, tensor in zip(shapes, self.inputs, strict=True)
            ]
        basis = aten("eye")(size, dtype=output.dtype, device=output.device).reshape((size, *output.shape))
        gradients = grad(
            output, self.inputs, basis, True, create_graph, allow_unused=True, is_grads_batched=True
        )
        unused = [i for i, gradient in enumerate(gradients) if gradient is None]
        if unused and self.strict:
            raise GradientError(f"output {place} does not depend on input {unused[0]}")
        return [
            aten("zeros")(shape, dtype=tensor.dtype, device=tensor.device)
            if one is None
            else one.reshape(shape)
            for one, shape, tensor in zip(gradients, shapes, self.inputs, strict=True)
        ]

    def given_out(self, tensors: Sequence[Tensor], single: bool) -> Any:
        parts = [tensor if self.create_graph else tensor.detach() for tensor in tensors]
        return parts[0] if single else tuple(parts)


def _listed(tensors: Any, what: str) -> tuple[bool, list[Tensor]]:
    single = not isinstance(tensors, (tuple, list))
    listed = [tensors] if single else list(tensors)
    for tensor in listed:
        if not isinstance(tensor, Tensor):
            raise ArgumentError(f"{what} are Tensors, not a {type(tensor).__name__}")
    return single, listed


def _fitting(v: Tensors | None, others: Sequence[Tensor], what: str, kind: str) -> list[Tensor]:
    """The vector to multiply by: one tensor for each of the others, of its shape."""
    if v is None:
        if len(others) != 1 or others[0].numel() != 1:
            raise GradientError(f"{what} is needed unless there is one {kind} of one element")
        return [aten("ones_like")(others[0]).detach()]
    vectors = _listed(v, what)[1]
    if len(vectors) != len(others):
        raise ArgumentError(f"{what} has {len(vectors)} tensors for {len(others)} {kind}s")
    for one, other in zip(vectors, others, strict=True):
        if one.shape != other.shape:
            raise ShapeError(f"{what} of {list(one.shape)} for an {kind} of {list(other.shape)}")
    return vectors


def _gradients(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], cotangents: Sequence[Tensor], create_graph: bool
) -> list[Tensor | None]:
    pairs = [(output, ct) for output, ct in zip(outputs, cotangents, strict=True) if output.requires_grad]
    if not pairs:
        return [None] * len(inputs)
    starts, seeds = zip(*pairs, strict=True)
    return list(grad(starts, inputs, seeds, True, create_graph, allow_unused=True))


def _filled(gradients: Sequence[Tensor | None], like: Sequence[Tensor], strict: bool) -> list[Tensor]:
    if strict and any(gradient is None for gradient in gradients):
        raise GradientError(
            "an output does not depend on one of the inputs", help="leave strict out for zeros"
        )
    return [
        aten("zeros_like")(other) if gradient is None else gradient
        for gradient, other in zip(gradients, like, strict=True)
    ]
