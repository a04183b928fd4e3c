"""All partial derivatives at once: `jacrev`, `jacfwd` and `hessian`, by `vmap` over a basis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tenfold.func.batching import vmap
from tenfold.func.derivatives import chosen, jvp, pulling, refilled, regrouped
from tenfold.func.recorded import is_tensor, like
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten
from tenfold.trace import tree


def _basis(tensor: Tensor) -> Tensor:
    """For each element of a tensor, one that is 1 there and else 0."""
    size = tensor.numel()
    identity = aten("eye")(size, dtype=tensor.dtype, device=tensor.device)
    return identity.reshape((size, *tensor.shape))


def jacrev(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Return a function that computes the Jacobian of `func` with respect to the arguments `argnums`.

    It runs in reverse mode, with one gradient for each element of the output. The Jacobian's shape is the
    output's, then the argument's."""

    @like(func, "jacrev")
    def jacobian(*args: Any) -> Any:
        places, tensors, structure = chosen(args, argnums)
        on_tensors = lambda *point: func(*refilled(args, places, structure, point))
        level, output, pull, aux = pulling(on_tensors, tuple(tensors), has_aux)
        outputs: list[Any] = []
        output_structure = tree.flatten(output, is_tensor, outputs)
        rows = []
        for i, one_output in enumerate(outputs):

            def pulled(cotangent: Tensor, i: int = i) -> Any:
                cotangents = [aten("zeros_like")(other) for other in outputs]
                cotangents[i] = cotangent
                return pull(tree.unflatten(output_structure, iter(cotangents)))

            jacobian_rows = vmap(pulled, chunk_size=chunk_size)(_basis(one_output))
            shaped = [
                part.reshape((*one_output.shape, *tensor.shape))
                for part, tensor in zip(jacobian_rows, tensors, strict=True)
            ]
            rows.append(regrouped(level.released(shaped), structure, argnums))
        result = tree.unflatten(output_structure, iter(rows))
        return (result, aux) if has_aux else result

    return jacobian


def jacfwd(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Callable[..., Any]:
    """Return a function that computes the Jacobian of `func` with respect to the arguments `argnums`.

    It runs in forward mode, with one tangent for each element of the arguments. The Jacobian's shape is the
    output's, then the argument's."""

    @like(func, "jacfwd")
    def jacobian(*args: Any) -> Any:
        places, tensors, structure = chosen(args, argnums)
        on_tensors = lambda *point: func(*refilled(args, places, structure, point))
        columns: list[Sequence[Tensor]] = []
        output_structure: Any = None
        aux: Any = None
        for i, tensor in enumerate(tensors):

            def pushed(tangent: Tensor, i: int = i) -> Any:
                moved = [aten("zeros_like")(other) for other in tensors]
                moved[i] = tangent
                return jvp(on_tensors, tuple(tensors), tuple(moved), has_aux=has_aux)[1:]

            jacobian_columns = vmap(pushed, randomness=randomness)(_basis(tensor))
            if has_aux:
                first: list[Any] = []
                aux_structure = tree.flatten(jacobian_columns[1], is_tensor, first)
                aux = tree.unflatten(aux_structure, iter([column[0] for column in first]))
            parts: list[Any] = []
            output_structure = tree.flatten(jacobian_columns[0], is_tensor, parts)
            columns.append([part.movedim(0, -1).reshape((*part.shape[1:], *tensor.shape)) for part in parts])
        rows = [regrouped(row, structure, argnums) for row in zip(*columns, strict=True)]
        result = tree.unflatten(output_structure, iter(rows))
        return (result, aux) if has_aux else result

    return jacobian


def hessian(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """Return a function that computes the second derivatives of `func` with respect to `argnums`."""
    return jacfwd(jacrev(func, argnums), argnums)
