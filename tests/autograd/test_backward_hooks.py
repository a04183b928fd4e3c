"""Python code on the way back: hooks of nodes, and saved values that are packed."""

from __future__ import annotations

import pytest
import torch

import tenfold as tn
from tests.autograd.cases import DATA, agree, leaf, refused


def test_hooks_of_a_step_see_and_replace_what_passes_it():
    def case(m):
        x, y = leaf(m), m.tensor(DATA, requires_grad=True)
        product = x * y
        both = product.exp() + product * product
        seen = []
        square = both.grad_fn.next_functions[1][0]
        square.register_hook(lambda gone, come: seen.append([each.clone() for each in (*gone, *come)]))
        product.grad_fn.register_prehook(lambda come: (come[0] * 2,))
        halves = product.grad_fn.register_hook(lambda gone, come: (gone[0] / 2, gone[1]))
        both.sum().backward(retain_graph=True)
        halves.remove()
        (again,) = m.autograd.grad(both.sum(), x, create_graph=True)
        (second,) = m.autograd.grad(again.sum(), y)
        return [x.grad, y.grad, *seen[0], again, second]

    agree(case)


NUMBERS = {
    "add": lambda x: x + 2,
    "radd": lambda x: 2 + x,
    "sub": lambda x: x - 2,
    "rsub": lambda x: 2 - x,
    "mul": lambda x: x.mul(2),
    "rmul": lambda x: 2.0 * x,
    "mul_": lambda x: (x + x).mul_(2),
    "div": lambda x: x / 2,
    "pow": lambda x: x**2,
    "rpow": lambda x: 2**x,
    "remainder": lambda x: x % 2,
    "alpha": lambda x: x.add(x, alpha=2),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_that_becomes_a_tensor_is_an_operand_of_its_step(name):
    def case(m):
        x = leaf(m)
        y = NUMBERS[name](x)
        seen = []
        y.grad_fn.register_hook(lambda gone, come: seen.append([each is None for each in gone]))
        y.grad_fn.register_hook(lambda gone, come: tuple(None if g is None else g * 3 for g in gone))
        y.sum().backward()
        edges = [step is None for step, _ in y.grad_fn.next_functions]
        return seen, edges, x.grad.tolist()

    assert case(tn) == case(torch)


def test_hooks_of_steps_with_several_results_and_of_leaves():
    def case(m):
        x = leaf(m)
        rows = x.unbind(0)
        seen = []
        rows[0].grad_fn.register_prehook(lambda come: seen.append([each is None for each in come]))
        collects = rows[0].grad_fn.next_functions[0][0]
        assert collects.variable is x
        collects.register_prehook(lambda come: (come[0] * 3,))
        collects.register_hook(lambda gone, come: seen.append([len(gone), come[0].clone()]))
        (rows[0] * rows[1]).sum().backward()
        assert seen[0] == [False, False] and seen[1][0] == 0
        return [x.grad, seen[1][1]]

    agree(case)


def packed_as_halves(m, case):
    """The case with all that gradients need kept as its half, and given back as its double; and how much."""
    kept = []

    def pack(tensor):
        kept.append(tensor)
        return tensor / 2

    with m.autograd.graph.saved_tensors_hooks(pack, lambda half: half * 4):
        return case(), kept


def test_what_gradients_need_is_packed_and_unpacked():
    def case(m):
        x, y = leaf(m), m.tensor(DATA, requires_grad=True)

        class Square(m.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, gradient):
                (x,) = ctx.saved_tensors
                return 2 * x * gradient

        z, kept = packed_as_halves(m, lambda: (x * y).exp() + Square.apply(x) + (x + y))
        assert len(kept) == 4
        (first,) = m.autograd.grad(z.sum(), x, create_graph=True)
        (second,) = m.autograd.grad(first.sum(), y)
        return [z, first, second]

    agree(case)

    def refusing(m):
        with m.autograd.graph.disable_saved_tensors_hooks("not here"):
            packed_as_halves(m, lambda: None)

    refused(refusing)


def test_hooks_of_a_step_see_no_results_without_gradients():
    def case(m):
        values, places = leaf(m).sort(dim=1)
        seen = []
        values.grad_fn.register_prehook(lambda come: seen.extend(come))
        (values * places).sum().backward()
        return seen

    agree(case)


def test_a_value_that_is_needed_is_not_overwritten_before_a_step_with_hooks():
    def case(m):
        y = leaf(m).exp()
        y.add_(1)
        y.grad_fn.register_prehook(lambda come: None)
        y.sum().backward()

    refused(case)

    def before(m):
        x = leaf(m)
        y = x * 2
        z = y * y
        z.grad_fn.register_prehook(lambda come: None)
        y.add_(1)
        z.sum().backward()

    refused(before)
