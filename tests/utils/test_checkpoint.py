"""A checkpoint gives the same values and gradients in less memory."""

from __future__ import annotations

import contextlib
import functools
from typing import Any

import numpy as np
import pytest
import torch
import torch.utils.checkpoint

import tenfold as tn
from tenfold.runtime import executables
from tenfold.trace.collect import collect
from tenfold.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    checkpoint_sequential,
    create_selective_checkpoint_contexts,
)

WIDTH, DEPTH = 64, 16


def peak(results: list[Any]) -> int:
    """How many bytes the program of these results needs, beside its inputs and results."""
    program, _ = collect([each.current() for each in results])
    loaded = executables.build(program, program.device)
    return loaded.executable.loaded.get_compiled_memory_stats().temp_size_in_bytes


def deep(weights: list[Any], x: Any, checkpoints: int) -> Any:
    """A chain of layers, in segments of which each is a checkpoint."""
    size = len(weights) // max(checkpoints, 1)
    for start in range(0, len(weights), size):

        def segment(h: Any, part: Any = weights[start : start + size]) -> Any:
            for weight in part:
                h = (h @ weight).sin().exp().tanh()
            return h

        x = checkpoint(segment, x) if checkpoints else segment(x)
    return x


def gradients(checkpoints: int) -> list[Any]:
    draws = np.random.default_rng(0)
    arrays = [draws.normal(size=(WIDTH, WIDTH)).astype(np.float32) / 8 for _ in range(DEPTH)]
    weights = [tn.tensor(each).requires_grad_() for each in arrays]
    x = tn.tensor(draws.normal(size=(512, WIDTH)).astype(np.float32)).requires_grad_()
    deep(weights, x, checkpoints).sum().backward()
    return [each.grad for each in (x, *weights)]


def test_gradients_are_the_same_in_less_memory():
    plain, saving = gradients(0), gradients(4)
    tn.eval(*plain, *saving)
    for each, other in zip(plain, saving, strict=True):
        np.testing.assert_allclose(each.numpy(), other.numpy(), rtol=1e-4, atol=1e-6)
    assert peak(gradients(4)) < 0.6 * peak(gradients(0))


def test_random_numbers_are_drawn_again_the_same():
    x = tn.ones(1000).requires_grad_()
    tn.manual_seed(0)
    y = checkpoint(lambda a: tn.nn.functional.dropout(a * 2, 0.5).relu(), x)
    y.sum().backward()
    following = tn.rand(3)
    tn.eval(y, x.grad, following)
    np.testing.assert_array_equal(x.grad.numpy(), y.detach().numpy())
    tn.manual_seed(0)
    tn.nn.functional.dropout(tn.ones(1000), 0.5)
    np.testing.assert_array_equal(following.numpy(), tn.rand(3).numpy())


def test_gradients_flow_to_what_the_function_reads():
    weight = tn.tensor(3.0).requires_grad_()
    checkpoint(lambda a: (a * weight).sin(), tn.tensor(0.5)).backward()
    assert weight.grad.item() == pytest.approx(0.5 * np.cos(1.5))


def test_derivatives_of_derivatives():
    square = lambda a: checkpoint(lambda b: b**3 * b.sin(), a)
    plain = lambda a: a**3 * a.sin()
    x = tn.tensor(1.5)
    for order in (tn.func.grad, lambda f: tn.func.grad(tn.func.grad(f)), tn.func.hessian):
        assert order(square)(x).item() == pytest.approx(order(plain)(x).item(), rel=1e-5)
    batch = tn.tensor([0.5, 1.0])
    np.testing.assert_allclose(
        tn.func.vmap(tn.func.grad(square))(batch).numpy(),
        tn.func.vmap(tn.func.grad(plain))(batch).numpy(),
        1e-5,
    )


def test_nested_results_and_arguments():
    def function(pair, scale):
        return {"sum": pair[0] + pair[1], "product": [pair[0] * scale], "name": "both"}

    found = checkpoint(function, (tn.ones(2), tn.ones(2)), scale=3.0)
    assert found["sum"].tolist() == [2.0, 2.0] and found["product"][0].tolist() == [3.0, 3.0]
    assert found["name"] == "both"


def test_what_is_written_inside_is_written_once():
    count = tn.zeros(())
    weight = tn.tensor(2.0).requires_grad_()

    def function(a):
        with tn.no_grad():
            count.add_(1)
        return a * weight

    checkpoint(function, tn.tensor(3.0)).backward()
    assert count.item() == 1.0 and weight.grad.item() == 3.0


def test_arguments_of_pytorchs_own_recomputation_are_not_the_functions():
    x = tn.ones(3, requires_grad=True)
    checkpoint(lambda x: x.sin(), x, use_reentrant=False, early_stop=False, debug=True).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.cos(np.ones(3)), 1e-6)


def test_a_sequence_in_segments():
    functions = [lambda a, k=k: (a * k).sin() for k in range(1, 6)]
    x = tn.tensor([0.5, 1.0]).requires_grad_()
    checkpoint_sequential(functions, 2, x).sum().backward()
    other = tn.tensor([0.5, 1.0]).requires_grad_()
    y = other
    for each in functions:
        y = each(y)
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), other.grad.numpy(), rtol=1e-5)
    with pytest.raises(tn.ArgumentError, match="5 functions cannot be in 6 segments"):
        checkpoint_sequential(functions, 6, x)


def test_values_cannot_be_asked_for_inside():
    with pytest.raises(tn.TraceError, match="tenfold.checkpoint records f once"):
        checkpoint(lambda a: a * a.item(), tn.tensor(1.0))


def test_a_context_is_entered_while_the_function_is_recorded():
    entered = []

    @contextlib.contextmanager
    def context():
        entered.append(True)
        yield

    x = tn.tensor([2.0], requires_grad=True)
    contexts = lambda: (context(), contextlib.nullcontext())
    checkpoint(lambda x: x * x, x, use_reentrant=False, context_fn=contexts).sum().backward()
    assert x.grad.tolist() == [4] and entered == [True]
    selective = functools.partial(create_selective_checkpoint_contexts, lambda *_: CheckpointPolicy.MUST_SAVE)
    assert checkpoint(lambda x: x * x, x, use_reentrant=False, context_fn=selective).tolist() == [4]


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_function_takes_gradients_of_its_own(reentrant: bool) -> None:
    def run(library: Any, remembered: Any) -> list[Any]:
        x = library.tensor([1.0, 2.0], requires_grad=True)
        weight = library.tensor([2.0, 3.0], requires_grad=True)

        def step(x: Any) -> Any:
            with library.enable_grad():
                (slope,) = library.autograd.grad((x**3 * weight).sum(), x, create_graph=True)
            return (slope * x).sum()

        remembered(step, x * 2, use_reentrant=reentrant).backward()
        return [x.grad.tolist(), weight.grad.tolist()]

    assert run(tn, checkpoint) == run(torch, torch.utils.checkpoint.checkpoint)


def test_backward_inside_that_reaches_the_arguments_is_refused() -> None:
    def step(x: Any) -> Any:
        (x**2).sum().backward()
        return x.sum()

    with pytest.raises(tn.TraceError, match="would reach tensors outside"):
        checkpoint(step, tn.ones(2, requires_grad=True) * 1)


def test_an_argument_is_written_inside_a_compiled_function() -> None:
    def step(h: Any) -> Any:
        return (h.mul_(2) ** 2).sum()

    @tn.compile
    def slope(x: Any) -> Any:
        return tn.autograd.grad(checkpoint(step, x * 1), x)[0]

    x = tn.tensor([1.0, 2.0], requires_grad=True)
    assert slope(x).tolist() == slope(x).tolist() == [8, 16]


def test_a_checkpointed_result_requires_gradients_only_if_it_would_without():
    w = tn.ones(3, requires_grad=True)
    cut, kept = checkpoint(lambda a: (a.detach() * 2, a * 2), w, use_reentrant=False)
    assert not cut.requires_grad
    assert kept.requires_grad
