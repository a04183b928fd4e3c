"""`gradcheck`: gradients and tangents compared with finite differences of the function itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tenfold.autograd.flow import grad
from tenfold.autograd.forward_ad import dual_level, make_dual, unpack_dual
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, GradientError, UnsupportedError, located
from tenfold.base.source import capture
from tenfold.base.warning import warn
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten
from tenfold.tensor.interchange import from_numpy

Tensors = Tensor | Sequence[Any]
# How the Jacobians of all outputs are computed, for each of the inputs that are asked about.
Way = Callable[[Callable[..., Any], tuple[Any, ...], Sequence[int], bool], list[list[np.ndarray]]]


GradcheckError = GradientError


@located
def gradcheck(
    func: Callable[..., Any],
    inputs: Tensors,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Check the gradients of `func` at these inputs against finite differences.

    x = tenfold.randn(3, dtype=tenfold.float64, requires_grad=True)
    tenfold.autograd.gradcheck(lambda x: x.sin() * x, x)
    """
    tensors = _as_tuple(inputs)
    if check_batched_forward_grad:
        raise UnsupportedError(
            "gradcheck does not check batched tangents",
            help="compare tenfold.func.vmap of tenfold.func.jvp with what you expect of it",
        )
    try:
        if check_backward_ad or check_forward_ad:
            ways = [_analytical] * check_backward_ad + [_pushed] * check_forward_ad
            _check(func, tensors, eps, atol, rtol, nondet_tol, check_grad_dtypes, ways)
        if check_undefined_grad and check_backward_ad:
            _check_silence(func, tensors)
        if check_batched_grad:
            _check_batched(func, tensors, atol, rtol)
    except GradientError:
        if raise_exception:
            raise
        return False
    return True


@located
def gradgradcheck(
    func: Callable[..., Any],
    inputs: Tensors,
    grad_outputs: Tensors | None = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Check the second derivatives of `func` against finite differences. `grad_outputs` are the cotangents of
    its outputs, random ones by default."""
    tensors = _as_tuple(inputs)
    outputs = _differentiable(func(*tensors))
    if grad_outputs is None:
        rng = np.random.default_rng(0)
        cotangents = [_drawn(rng, output) for output in outputs]
    else:
        cotangents = [cotangent for cotangent in _as_tuple(grad_outputs) if cotangent is not None]
    asked = [i for i, tensor in enumerate(tensors) if _asks(tensor)]

    def gradients(*arguments: Any) -> tuple[Tensor, ...]:
        own, given_cotangents = arguments[: len(tensors)], arguments[len(tensors) :]
        gradients = grad(
            _differentiable(func(*own)),
            [own[i] for i in asked],
            list(given_cotangents),
            create_graph=True,
            allow_unused=True,
        )
        return tuple([gradient for gradient in gradients if gradient is not None and gradient.requires_grad])

    return gradcheck(
        gradients,
        (*tensors, *cotangents),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
    )


def _check(
    func: Callable[..., Any],
    inputs: tuple[Any, ...],
    eps: float,
    atol: float,
    rtol: float,
    nondet_tol: float,
    check_dtypes: bool,
    ways: Sequence[Way],
) -> None:
    asked = [i for i, tensor in enumerate(inputs) if _asks(tensor)]
    if not asked:
        raise ArgumentError(
            "gradcheck needs an input that requires a gradient", help="make one with requires_grad=True"
        )
    for i in asked:
        if inputs[i].dtype not in (dtypes.float64, dtypes.complex128):
            warn(
                f"input {i} is {inputs[i].dtype.name}, whose differences are too coarse to compare with: "
                "gradcheck wants float64 or complex128"
            )
    numerical = _numerical(func, inputs, asked, eps)
    for way in ways:
        _compare(way, func, inputs, asked, numerical, atol, rtol, nondet_tol, check_dtypes)


def _compare(
    way: Way,
    func: Callable[..., Any],
    inputs: tuple[Any, ...],
    asked: Sequence[int],
    numerical: list[list[np.ndarray]],
    atol: float,
    rtol: float,
    nondet_tol: float,
    check_dtypes: bool,
) -> None:
    analytical = way(func, inputs, asked, check_dtypes)
    if nondet_tol < np.inf:
        again = way(func, inputs, asked, False)
        both = [
            pair for columns in zip(analytical, again, strict=True) for pair in zip(*columns, strict=True)
        ]
        for first, second in both:
            # The same program may run on another engine: what it rounds differently is no difference.
            rounding = 16 * np.finfo(first.dtype).eps
            if not np.allclose(first, second, rtol=rounding, atol=nondet_tol + rounding, equal_nan=True):
                raise GradientError(
                    "the gradient is not the same when it is computed again",
                    help="leave random numbers out of the function, or give nondet_tol",
                )
    for i, expected, actual in zip(asked, numerical, analytical, strict=True):
        for output, (theirs, ours) in enumerate(zip(expected, actual, strict=False)):
            if theirs.size and not np.allclose(ours, theirs, rtol=rtol, atol=atol, equal_nan=True):
                raise GradientError(
                    f"Jacobian mismatch for output {output} with respect to input {i}:\n"
                    f"numerical:\n{theirs}\nanalytical:\n{ours}"
                )


def _numerical(
    func: Callable[..., Any], inputs: tuple[Any, ...], asked: Sequence[int], eps: float
) -> list[list[np.ndarray]]:
    """For each input, the Jacobians of all outputs by central differences: a row for each of its elements."""
    columns = []
    for i in asked:
        base = np.array(inputs[i].detach().numpy())
        rows: list[list[np.ndarray]] = []
        for place in range(base.size):
            slope: list[np.ndarray] = []
            for direction in (1, 1j) if np.iscomplexobj(base) else (1,):
                either = []
                for sign in (1, -1):
                    moved = base.copy().reshape(-1)
                    moved[place] += sign * direction * eps
                    with _holding(inputs, i, moved.reshape(base.shape), base) as arguments:
                        either.append(_outputs(func, arguments))
                parts = [(up - down) / (2 * eps) * direction for up, down in zip(*either, strict=True)]
                slope = parts if not slope else [x + y for x, y in zip(slope, parts, strict=True)]
            rows.append(slope)
        count = len(rows[0]) if rows else len(_outputs(func, inputs))
        columns.append([np.array([row[k] for row in rows]) for k in range(count)])
    return columns


@contextmanager
def _holding(
    inputs: tuple[Any, ...], i: int, values: np.ndarray, base: np.ndarray
) -> Iterator[tuple[Any, ...]]:
    """The inputs, while one of them holds other values. It is written in place, because the function may
    reach it in another way than through its argument, as it does a module's parameter."""
    if any(
        extent > 1 and not stride for extent, stride in zip(inputs[i].shape, inputs[i].stride(), strict=True)
    ):
        argument = from_numpy(values).requires_grad_()
        yield (*inputs[:i], argument, *inputs[i + 1 :])
        return
    memory = inputs[i].data  # whose writes no gradient hears of
    memory.copy_(from_numpy(values))
    try:
        yield inputs
    finally:
        memory.copy_(from_numpy(base))


def _outputs(func: Callable[..., Any], inputs: tuple[Any, ...]) -> list[np.ndarray]:
    """The outputs as vectors of real numbers; for complex outputs the real parts, then the imaginary
    parts."""
    return [_real(np.array(output.detach().numpy())) for output in _differentiable(func(*inputs))]


def _real(array: np.ndarray) -> np.ndarray:
    flat = array.reshape(-1)
    return np.concatenate([flat.real, flat.imag]) if np.iscomplexobj(flat) else flat


def _analytical(
    func: Callable[..., Any], inputs: tuple[Any, ...], asked: Sequence[int], check_dtypes: bool
) -> list[list[np.ndarray]]:
    """The same Jacobians by `grad`, an element of an output at a time."""
    outputs = _differentiable(func(*inputs))
    wanted = [inputs[i] for i in asked]
    jacobians: list[list[np.ndarray]] = [[] for _ in asked]
    for output in outputs:
        columns: list[list[np.ndarray]] = [[] for _ in asked]
        for direction in (1, 1j) if output.dtype.is_complex else (1,):
            for place in range(output.numel()):
                one = np.zeros(output.numel(), output.dtype.numpy)
                one[place] = direction
                cotangent = from_numpy(one.reshape(tuple(output.shape)))
                gradients = grad([output], wanted, [cotangent], retain_graph=True, allow_unused=True)
                for column, gradient, input in zip(columns, gradients, wanted, strict=True):
                    if check_dtypes and gradient is not None and gradient.dtype is not input.dtype:
                        raise GradientError(
                            f"the gradient of a {input.dtype.name} input is {gradient.dtype.name}"
                        )
                    zero = np.zeros(input.numel(), input.dtype.numpy)
                    column.append(zero if gradient is None else np.array(gradient.numpy()).reshape(-1))
        for own, column, input in zip(jacobians, columns, wanted, strict=True):
            own.append(np.stack(column, 1) if column else np.zeros((input.numel(), 0)))
    return jacobians


def _pushed(
    func: Callable[..., Any], inputs: tuple[Any, ...], asked: Sequence[int], check_dtypes: bool
) -> list[list[np.ndarray]]:
    """The same Jacobians in forward mode, an element of an input at a time."""
    columns = []
    for i in asked:
        primal = inputs[i]
        rows = []
        for place in range(primal.numel()):
            slope: list[np.ndarray] = []
            for direction in (1, 1j) if primal.dtype.is_complex else (1,):
                one = np.zeros(primal.numel(), primal.dtype.numpy)
                one[place] = direction
                with dual_level():
                    moving = make_dual(primal, from_numpy(one.reshape(tuple(primal.shape))))
                    outputs = _differentiable(func(*inputs[:i], moving, *inputs[i + 1 :]))
                    pairs = [unpack_dual(output) for output in outputs]
                moved = [aten("zeros_like")(tensor) if t is None else t for tensor, t in pairs]
                parts = [_real(np.array(tangent.detach().numpy())) * direction for tangent in moved]
                slope = parts if not slope else [x + y for x, y in zip(slope, parts, strict=True)]
            rows.append(slope)
        columns.append([np.array(row) for row in zip(*rows, strict=True)])
    return columns


def _check_batched(func: Callable[..., Any], inputs: tuple[Any, ...], atol: float, rtol: float) -> None:
    """Gradients from several cotangents at once must be those from each."""
    outputs = _differentiable(func(*inputs))
    wanted = [tensor for tensor in inputs if _asks(tensor)]
    rng = np.random.default_rng(0)
    starts = [aten("stack")([_drawn(rng, output).detach() for _ in range(2)]) for output in outputs]
    together = grad(outputs, wanted, starts, True, allow_unused=True, is_grads_batched=True)
    for k in range(2):
        alone = grad(outputs, wanted, [start[k] for start in starts], True, allow_unused=True)
        for ours, theirs in zip(together, alone, strict=True):
            if (ours is None) != (theirs is None) or (
                ours is not None
                and theirs is not None
                and not np.allclose(ours[k].numpy(), theirs.numpy(), rtol=rtol, atol=atol, equal_nan=True)
            ):
                raise GradientError("gradients from several cotangents at once are not those from each")


def _check_silence(func: Callable[..., Any], inputs: tuple[Any, ...]) -> None:
    """A cotangent of zeros, which is what PyTorch makes of none, must give gradients of zeros."""
    outputs = _differentiable(func(*inputs))
    wanted = [tensor for tensor in inputs if _asks(tensor)]
    zeros = [aten("zeros_like")(output.detach()) for output in outputs]
    for gradient in grad(outputs, wanted, zeros, allow_unused=True):
        if gradient is not None and np.any(gradient.numpy() != 0):
            raise GradientError("the gradient for a cotangent of zeros is not zero")


def _as_tuple(tensors: Any) -> tuple[Any, ...]:
    return tuple(tensors) if isinstance(tensors, (tuple, list)) else (tensors,)


def _asks(argument: Any) -> bool:
    return isinstance(argument, Tensor) and argument.requires_grad


def _differentiable(result: Any) -> list[Tensor]:
    outputs = [output for output in _as_tuple(result) if _asks(output)]
    if not outputs:
        raise ArgumentError(
            "the function returns no tensor that requires a gradient",
            help="return what depends on the inputs",
        ).located("gradcheck", capture())
    return outputs


def _drawn(rng: np.random.Generator, like: Tensor) -> Tensor:
    drawn = rng.normal(size=tuple(like.shape)).astype(like.dtype.numpy)
    if like.dtype.is_complex:
        drawn = drawn + 1j * rng.normal(size=tuple(like.shape)).astype(like.dtype.numpy)
    return from_numpy(drawn.astype(like.dtype.numpy)).requires_grad_()
