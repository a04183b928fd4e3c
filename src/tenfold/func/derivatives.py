"""Derivatives of functions: `grad`, `value_and_grad`, `vjp`, `jvp`, `linearize`. They nest, in each other and
in `vmap`: a level of differentiation has its own leaves, which a surrounding one sees through."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tenfold import autograd, flat
from tenfold.autograd.grad_mode import enable_grad
from tenfold.base.errors import ArgumentError, DTypeError, GradientError, ShapeError, located
from tenfold.base.source import capture
from tenfold.flat.jvp import tangents as pushed_forward
from tenfold.func.recorded import (
    RecordedFunction,
    is_of_ended_level,
    is_tensor,
    like,
    require_tensors_returned,
)
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten
from tenfold.trace import graph, tree
from tenfold.trace.context import context
from tenfold.trace.graph import Origin, Value


class Level:
    """One level of differentiation: its leaves, and whether its results may be differentiated further."""

    def __init__(self, tensors: Sequence[Tensor]):
        self.followed = context.grad_enabled
        self.leaves = [_leaf(tensor) for tensor in tensors]

    def gradients(self, outputs: Sequence[Tensor], cotangents: Sequence[Tensor | None]) -> list[Tensor]:
        """The gradients for the leaves; 0 for those that the outputs do not depend on."""
        pairs = [(out, ct) for out, ct in zip(outputs, cotangents, strict=True) if out.requires_grad]
        if not pairs:
            return [aten("zeros_like")(leaf.detach()) for leaf in self.leaves]
        follows = self.followed and self.sees_beyond(outputs)
        if context.grad_enabled:  # cotangents may be what an outer level differentiates by
            follows = follows or any(ct is not None and ct.requires_grad for _, ct in pairs)
        leaf_gradients = autograd.grad(
            [out for out, _ in pairs],
            self.leaves,
            [ct for _, ct in pairs],
            retain_graph=True,
            create_graph=context.recorder is not None or follows,
            allow_unused=True,
        )
        return [
            aten("zeros_like")(leaf.detach()) if gradient is None else gradient
            for leaf, gradient in zip(self.leaves, leaf_gradients, strict=True)
        ]

    def sees_beyond(self, outputs: Sequence[Tensor]) -> bool:
        """Whether the outputs depend on something outside that requires gradients."""
        starts = [output.current() for output in outputs if output.requires_grad]
        own = {
            id(origin.of) for origin in [leaf.current().origin for leaf in self.leaves] if origin is not None
        }
        return any(
            value.origin is not None and id(value.origin.of) not in own and not is_of_ended_level(value)
            for value in autograd.survey(starts)[1]
        )

    def end(self) -> None:
        """The function is over: what pulls cotangents back still needs the leaves, and nobody else does."""
        for leaf in self.leaves:
            leaf._ended_level = True  # type: ignore[attr-defined]

    def released(self, outputs: Sequence[Tensor]) -> list[Tensor]:
        """The outputs as those outside see them: without this level's leaves, where nothing else follows."""
        follows = self.followed and self.sees_beyond(outputs)
        return [output if follows else Tensor(graph.fresh(output.current(), capture())) for output in outputs]


def _leaf(tensor: Tensor) -> Tensor:
    """A tensor's value as a leaf of a level. Gradients flow on through it if an outer level follows."""
    if tensor.dtype.kind not in ("float", "complex"):
        raise DTypeError(
            f"derivatives are by floats and complex numbers, not by {tensor.dtype.name}",
            help="convert the argument, or choose others by argnums",
        )
    if tensor.requires_grad and context.grad_enabled:
        return aten("clone")(tensor)
    fresh = Tensor(graph.fresh(tensor.current(), capture())).requires_grad_()
    recorder = context.recorder
    if recorder is not None:
        recorder.own.append(fresh._value)
    return fresh


def chosen(args: tuple[Any, ...], argnums: int | tuple[int, ...]) -> tuple[list[int], list[Tensor], Any]:
    """Which arguments derivatives are by, the tensors in them, and how they are nested."""
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    if not numbers or any(not isinstance(number, int) for number in numbers):
        raise ArgumentError(f"argnums is an int or a tuple of ints, not {argnums!r}")
    if any(not -len(args) <= number < len(args) for number in numbers):
        raise ArgumentError(f"argnums is {argnums!r} for a function of {len(args)} arguments")
    places = [number % len(args) for number in numbers]
    if len(set(places)) < len(places):
        raise ArgumentError(f"argnums names an argument twice: {argnums!r}")
    tensors: list[Any] = []
    structure = tree.flatten([args[i] for i in places], is_tensor, tensors)
    _require_tensors(structure)
    return places, tensors, structure


def _require_tensors(structure: Any) -> None:
    other = tree.other_type(structure)
    if other is not None:
        raise ArgumentError(f"derivatives are by Tensors, not by a {other.__name__}")


def refilled(
    args: tuple[Any, ...], places: Sequence[int], structure: Any, tensors: Sequence[Tensor]
) -> list[Any]:
    filled = list(args)
    for place, argument in zip(places, tree.unflatten(structure, iter(tensors)), strict=True):
        filled[place] = argument
    return filled


def regrouped(gradients: Sequence[Tensor], structure: Any, argnums: Any) -> Any:
    parts = tree.unflatten(structure, iter(gradients))
    return parts[0] if isinstance(argnums, int) else tuple(parts)


def _released(level: Level, tree_: Any) -> Any:
    leaves: list[Any] = []
    structure = tree.flatten(tree_, is_tensor, leaves)
    return tree.unflatten(structure, iter(level.released(leaves)))


def _split(result: Any, has_aux: bool) -> tuple[Any, Any]:
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise ArgumentError("with has_aux=True the function returns a tuple (output, aux)")
    return result


def grad_and_value(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return a function that computes (gradient, value) of `func`, whose value is a single number. With
    `has_aux`, func returns (value, aux), and the result is (gradient, (value, aux))."""

    @like(func, "grad")
    def both(*args: Any, **kwargs: Any) -> Any:
        places, tensors, structure = chosen(args, argnums)
        level = Level(tensors)
        with enable_grad():
            output, aux = _split(func(*refilled(args, places, structure, level.leaves), **kwargs), has_aux)
            if not isinstance(output, Tensor):
                raise ArgumentError(f"the function returns a {type(output).__name__}, not a Tensor")
            if output.ndim:
                raise ShapeError(
                    f"the gradient is of a single number, the function returns {output.current().type}",
                    help="reduce the result, as with .sum(), or use jacrev",
                )
            gradients = level.gradients([output], [None])
        gradient = regrouped(gradients, structure, argnums)
        (value,) = level.released([output])
        return gradient, (value, _released(level, aux)) if has_aux else value

    return both


def value_and_grad(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Like `grad_and_value`, with the value first."""
    both = grad_and_value(func, argnums, has_aux)

    @like(func, "value_and_grad")
    def swapped(*args: Any, **kwargs: Any) -> Any:
        gradient, value = both(*args, **kwargs)
        return value, gradient

    return swapped


def grad(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return a function that computes the gradient of `func`, whose value is a single number, with respect to
    the arguments `argnums`. With `has_aux`, func returns (value, aux), and the result is (gradient, aux).

        slope = tenfold.func.grad(lambda x: x**3)
        slope(tenfold.tensor(2.0))  # 12
    """
    both = grad_and_value(func, argnums, has_aux)

    @like(func, "grad")
    def gradient(*args: Any, **kwargs: Any) -> Any:
        slopes, value = both(*args, **kwargs)
        return (slopes, value[1]) if has_aux else slopes

    return gradient


@located
def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Return the function's output, and a function that maps a cotangent of the output to cotangents of the
    arguments; with `has_aux`, aux comes third."""
    _, output, pull, aux = pulling(func, primals, has_aux)
    return (output, pull, aux) if has_aux else (output, pull)


def pulling(
    func: Callable[..., Any], primals: tuple[Any, ...], has_aux: bool
) -> tuple[Level, Any, Callable[..., Any], Any]:
    """The level that a function was differentiated at, its output, what pulls cotangents back, and aux."""
    places, tensors, structure = chosen(primals, tuple(range(len(primals))))
    level = Level(tensors)
    with enable_grad():
        output, aux = _split(func(*refilled(primals, places, structure, level.leaves)), has_aux)
    outputs: list[Any] = []
    output_structure = tree.flatten(output, is_tensor, outputs)
    require_tensors_returned(output_structure)

    @like(func, "vjp")
    def vjp_fn(*cotangents: Any) -> Any:
        seeds: list[Any] = []
        cotangent = cotangents[0] if len(cotangents) == 1 else cotangents
        if tree.flatten(cotangent, is_tensor, seeds) != output_structure:
            raise ArgumentError("the cotangent is not nested as the output of the function is")
        for seed, out in zip(seeds, outputs, strict=True):
            if seed.shape != out.shape:
                raise ShapeError(f"the cotangent of {out.current().type} cannot be {seed.current().type}")
        gradients = level.gradients(outputs, seeds)
        return tuple(tree.unflatten(structure, iter(gradients)))

    released = tree.unflatten(output_structure, iter(level.released(outputs)))
    level.end()
    return level, released, vjp_fn, _released(level, aux)


@located
def jvp(
    func: Callable[..., Any],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> Any:
    """Return the function's output, and its directional derivative along `tangents`; with `has_aux`, aux
    comes third. `strict` refuses an output that does not depend on the arguments."""
    if not isinstance(primals, tuple) or not isinstance(tangents, tuple):
        raise ArgumentError("primals and tangents are tuples, with an entry for each argument")
    leaves: list[Any] = []
    moved: list[Any] = []
    structure = tree.flatten(primals, is_tensor, leaves)
    _require_tensors(structure)
    if not leaves:
        raise ArgumentError("primals has no tensor to differentiate by", help="give one at least")
    if tree.flatten(tangents, is_tensor, moved) != structure:
        raise ArgumentError("tangents are not nested as primals are")
    for primal, tangent in zip(leaves, moved, strict=True):
        if primal.current().type is not tangent.current().type:
            raise ShapeError(
                f"the tangent of {primal.current().type} cannot be {tangent.current().type}",
                help="a tangent has its primal's shape and dtype",
            )
    call = lambda stand_ins: func(*tree.unflatten(structure, iter(stand_ins)))
    # One that is given twice stands for two: they may move differently.
    recorded = RecordedFunction("jvp", call, [_followed(leaf) for leaf in leaves])
    moving = tuple([place for place in recorded.places if place is not None])

    def make() -> flat.Function:
        fragment = recorded.fragment()
        extra = {i: flat.Value(leaves[i].current().type) for i in moving}
        along = [None if place is None else extra[place] for place in recorded.places]
        outputs = fragment.results[: recorded.count]
        pushed = pushed_forward(fragment.ops, fragment.params, along, outputs)
        if strict and None in pushed:
            raise GradientError(
                f"strict=True: output {pushed.index(None)} does not depend on the arguments",
                help="leave strict out to get zeros",
            )
        complete = [
            flat.full_like(out, 0) if t is None else t for out, t in zip(outputs, pushed, strict=True)
        ]
        results = [*outputs, *complete, *fragment.results[recorded.count :]]
        return flat.Function([*fragment.params, *[extra[i] for i in moving]], results, "jvp")

    key = ("jvp", moving, strict)
    results = recorded.call(key, leaves, make, *[moved[i] for i in moving])
    outputs = tree.unflatten(recorded.structure, iter(results[: recorded.count]))
    pushed = tree.unflatten(recorded.structure, iter(results[recorded.count :]))
    if not has_aux:
        return outputs, pushed
    output, aux = _split(outputs, has_aux)
    return output, _split(pushed, has_aux)[0], aux


def _followed(leaf: Tensor) -> Value:
    """A value like a tensor's, to which derivatives are followed."""
    value = Value(leaf.current().type, leaf.device)
    if value.type.dtype.kind in ("float", "complex"):
        value.origin = Origin()
    return value


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """Return the function itself, since every recording is already functional."""
    if remove not in ("mutations", "mutations_and_views"):
        raise ArgumentError(f"remove is 'mutations' or 'mutations_and_views', not {remove!r}")
    return like(func, "functionalize")(func)


@located
def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """Return the function's output, and its derivative at the arguments as a linear function of tangents."""
    output = func(*primals)

    def jvp_fn(*tangents: Any) -> Any:
        return jvp(func, primals, tangents)[1]

    return output, jvp_fn
