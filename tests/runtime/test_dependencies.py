"""Compiled functions on state that changes between their calls: which parameters require gradients, what a
gradient holds, which modules and hooks there are. Each is what PyTorch, and the same function recorded
lazily, makes of it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

import tenfold as tn
from tenfold.runtime import evaluate
from tenfold.runtime.specialization import Specialization

WAYS = [pytest.param(tn.compile, id="compiled"), pytest.param(lambda function: function, id="lazy")]


def same(program: Callable[[Any, Any], Any], wrap: Any) -> None:
    assert program(tn, wrap) == program(torch, lambda function: function)


@pytest.mark.parametrize("wrap", WAYS)
def test_a_gradient_is_what_was_written_to_it_in_place(wrap):
    def program(library, wrap):
        w, seen = library.nn.Parameter(library.ones(2)), []

        @wrap
        def scaled(x):
            w.grad = None
            (w * x).sum().backward()
            w.grad.mul_(10)
            return x.sum()

        @wrap
        def twice(x):
            (w * x).sum().backward()
            (w * w * x).sum().backward()
            return x.sum()

        for function in (scaled, twice):
            for i in range(4):
                function(library.full((2,), float(i + 1)))
                seen.append(w.grad.tolist())
        return seen

    same(program, wrap)


@pytest.mark.parametrize("wrap", WAYS)
def test_parameters_freeze_and_thaw(wrap):
    def program(library, wrap):
        model = library.nn.Sequential(library.nn.Linear(2, 2), library.nn.Linear(2, 1))
        with library.no_grad():
            for each in model.parameters():
                each.fill_(0.5)
        optimizer = library.optim.SGD(model.parameters(), lr=0.125)
        first, seen = model[0].weight, []

        @wrap
        def step(x):
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
            return x.sum()

        for i in range(9):
            model[0].requires_grad_(i % 4 in (0, 3))
            step(library.ones(1, 2))
            seen.append((first.tolist(), None if first.grad is None else first.grad.tolist()))
        return seen

    same(program, wrap)


@pytest.mark.parametrize("wrap", WAYS)
def test_what_a_function_returns_requires_gradients_if_its_parameter_does_now(wrap):
    def program(library, wrap):
        w, seen = library.nn.Parameter(library.ones(2), requires_grad=False), []
        scaled = wrap(lambda x: w * x)
        for i in range(5):
            w.requires_grad_(i % 2 == 1)
            seen.append(scaled(library.ones(2)).requires_grad)
        return seen

    same(program, wrap)


@pytest.mark.parametrize("count", [1, 4, 8])
@pytest.mark.parametrize("wrap", WAYS)
def test_a_copy_of_the_state_stays_as_it_was(wrap, count):
    def program(library, wrap):
        state = [library.zeros(3) for _ in range(count)]

        @wrap
        def step(x):
            for each in state:
                each.add_(x)
            return x * 1

        step(library.tensor(1.0))
        state[0].mul_(2)
        copies = [each.clone() for each in state]
        step(library.tensor(100.0))
        step(library.tensor(100.0))
        return [each.tolist() for each in (*copies, *state)]

    same(program, wrap)


@pytest.mark.parametrize("wrap", WAYS)
def test_modules_come_and_go(wrap):
    def program(library, wrap):
        nn, x = library.nn, library.ones(2)
        model, layers = nn.Sequential(nn.ReLU(), nn.ReLU()), nn.ModuleList([nn.ReLU()])
        named = nn.ModuleDict({"relu": nn.ReLU()})
        functions = [
            wrap(model),
            wrap(lambda x: [each(x) for each in layers][-1] * 1),
            wrap(lambda x: sum(each(x) for each in named.values())),
        ]
        seen = []

        def look():
            seen.append([function(x).tolist() for function in functions])

        look()
        model.append(nn.Threshold(5.0, 2.0))
        layers.append(nn.Threshold(5.0, 2.0))
        named["threshold"] = nn.Threshold(5.0, 2.0)
        look()
        model.insert(1, nn.Threshold(5.0, 3.0))
        layers[1] = nn.Threshold(5.0, 4.0)
        named["threshold"] = nn.Threshold(5.0, 4.0)
        look()
        del model[2:], layers[1], named["threshold"]
        look()
        return seen

    same(program, wrap)


@pytest.mark.parametrize("wrap", WAYS)
def test_hooks_of_tensors_come_and_go(wrap):
    def program(library, wrap):
        w, seen = library.nn.Parameter(library.ones(2)), []

        @wrap
        def gradient(x):
            w.grad = None
            (w * x).sum().backward()
            return x * 1

        def look():
            gradient(library.ones(2))
            seen.append(w.grad.tolist())

        look()
        handle = w.register_hook(lambda found: found * 10)
        look()
        handle.remove()
        look()
        return seen

    same(program, wrap)


@pytest.mark.parametrize("wrap", WAYS)
def test_a_batch_that_fails_changes_nothing(wrap):
    def program(library, wrap):
        model = library.nn.Sequential(library.nn.Embedding(4, 2), library.nn.Linear(2, 2))
        with library.no_grad():
            for each in model.parameters():
                each.copy_(library.arange(float(each.numel())).reshape(each.shape))
        optimizer = library.optim.SGD(model.parameters(), lr=0.5, momentum=0.5)

        @wrap
        def step(x):
            optimizer.zero_grad()
            loss = model(x).sum()
            loss.backward()
            optimizer.step()
            return loss

        seen = []
        for place in (1, 2, 9, 3, 1, -9, 0):
            try:
                seen.append(step(library.tensor([0, place])).item())
            except IndexError:
                seen.append(model.state_dict()["1.weight"].tolist())
        return seen

    same(program, wrap)


@pytest.mark.parametrize("wrap", WAYS)
def test_attributes_that_were_none_and_hooks_that_are_cleared_are_noticed(wrap):
    def program(library, wrap):
        class Masked(library.nn.Module):
            def __init__(self):
                super().__init__()
                self.mask, self.inner = None, library.nn.Identity()

            def forward(self, x):
                return self.inner(x) if self.mask is None else self.inner(x) * self.mask

        module, seen = Masked(), []
        masked = wrap(module)

        def look():
            seen.append(masked(library.ones(2)).tolist())

        look()
        module.mask = library.zeros(2)
        look()
        module.mask = None
        module.inner.register_forward_hook(lambda module, given, result: result * 10)
        look()
        module.inner._forward_hooks.clear()
        look()
        return seen

    same(program, wrap)


def test_a_leaf_that_is_frozen_after_the_forward_pass_gets_no_gradient():
    def program(library, wrap):
        w = library.ones(2, requires_grad=True)
        y = (w * 3).sum()
        w.requires_grad_(False)
        y.backward()
        seen = [w.grad]
        w.requires_grad_(True)
        (w * 2).sum().backward()
        return [*seen, w.grad.tolist()]

    same(program, None)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, TimeoutError])
@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "lazy"])
def test_an_interrupt_after_a_program_has_run_loses_nothing(compiled, kind, monkeypatch):
    owner, name = (Specialization, "_place") if compiled else (evaluate, "_keep")
    place: Any = getattr(owner, name)

    def trained(interrupted: bool) -> list[Any]:
        w, total = tn.ones(64, 256, requires_grad=True), tn.zeros(3)

        def step(x):
            w.grad = None
            (w * w * x).sum().backward()
            with tn.no_grad():
                w.sub_(w.grad * 0.25)
                total.add_(x)
            return w.detach()[0, 0] * 1

        run, x = tn.compile(step) if compiled else step, tn.tensor(0.5)
        run(x).item()
        held = w.detach().clone()
        if interrupted:

            def once(*arguments):
                monkeypatch.setattr(owner, name, place)
                raise kind

            monkeypatch.setattr(owner, name, once)
            with pytest.raises(kind):
                run(x).item()
        else:
            run(x).item()
        run(x).item()
        return [each.detach().sum().item() for each in (w, w.grad, total, held)]

    assert trained(True) == trained(False)


def of_a_parameter(library, wrap):
    w = library.nn.Parameter(library.ones(2))

    def scaled(x):
        with library.no_grad():
            w.mul_(3)
        return (w * x).sum()

    wrap(scaled)(library.ones(2)).backward()
    return w.tolist(), w.grad.tolist()


def of_an_argument(library, wrap):
    w = library.nn.Parameter(library.ones(2))

    def scaled(w, x):
        w.data.mul_(3)
        return (w * w * x).sum()

    wrap(scaled)(w, library.ones(2)).backward()
    return w.tolist(), w.grad.tolist()


def of_a_computed_argument(library, wrap):
    w = library.ones(2, requires_grad=True)
    y = w * 2

    def tripled(y):
        with library.no_grad():
            y.mul_(3)
        return y.sum()

    wrap(tripled)(y).backward()
    return y.tolist(), w.grad.tolist()


def of_a_result_inside(library, wrap):
    def tripled(w):
        y = w * w
        y.detach().mul_(3)
        return y, (y * y).sum()

    w = library.ones(2, requires_grad=True)
    y, total = wrap(tripled)(w)
    (y.sum() + total).backward()
    return y.tolist(), w.grad.tolist()


def of_a_table_with_a_largest_norm(library, wrap):
    layer = library.nn.Embedding(3, 2, max_norm=1.0)
    with library.no_grad():
        layer.weight.copy_(library.tensor([[3.0, 4.0], [3.0, 4.0], [0.0, 0.5]]))
    wrap(layer)(library.tensor([0, 2])).pow(2).sum().backward()
    return layer.weight.round(decimals=4).tolist(), layer.weight.grad.round(decimals=4).tolist()


WRITTEN = [
    of_a_parameter, of_an_argument, of_a_computed_argument, of_a_result_inside, of_a_table_with_a_largest_norm
]  # fmt: skip


@pytest.mark.parametrize("program", WRITTEN)
@pytest.mark.parametrize("wrap", WAYS)
def test_gradients_pass_by_a_write_without_them(wrap, program):
    same(program, wrap)


@pytest.mark.parametrize("wrap", WAYS)
def test_gradients_flow_to_what_is_written(wrap):
    def program(library, wrap):
        held, w = library.ones(2), library.ones(2, requires_grad=True)

        def write(x, w):
            x.mul_(w)
            held.add_(w * 2)

        x, y = library.ones(2), w * 3
        write = wrap(write)
        write(x, w)
        write(y, w)
        (x.sum() + y.sum() + held.sum()).backward()
        return [each.requires_grad for each in (x, y, held)], held.tolist(), w.grad.tolist()

    same(program, wrap)


def test_gradients_to_what_was_replaced_unread_are_refused():
    w = tn.ones(2, requires_grad=True)

    @tn.compile
    def replaced(w, x):
        y = w * 2
        y.data = x * 1
        return y.sum()

    with pytest.raises(tn.TraceError, match="gradients pass by a write"):
        replaced(w, tn.ones(2))


@pytest.mark.parametrize("order", ["plain leaf computed", "computed plain leaf", "leaf computed plain"])
@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("wrap", WAYS)
def test_leaves_computed_and_plain_arguments_are_told_apart(wrap, enabled, order):
    def program(library, wrap):
        told = wrap(lambda x: x * (1 + 2 * x.requires_grad + 4 * x.is_leaf))
        leaf = library.ones(2, requires_grad=True)
        arguments = {"plain": library.ones(2), "leaf": leaf, "computed": leaf * 1}
        with library.set_grad_enabled(enabled):
            return [told(arguments[name]).tolist() for name in order.split() * 2]

    same(program, wrap)


@pytest.mark.parametrize("wrap", WAYS)
def test_gradients_of_arguments_that_require_none_are_each_ones_own(wrap):
    def program(library, wrap):
        read = wrap(lambda x: x * 2 if x.grad is None else x + x.grad)

        def write(x):
            x.grad = x * 3
            return x * 1

        def clear(x):
            x.grad = None
            return x * 1

        write, clear = wrap(write), wrap(clear)
        arguments = [library.ones(2) * i for i in range(3)]
        found = []
        for gradient in (None, 5.0, 7.0):
            x = library.ones(2)
            x.grad = None if gradient is None else library.ones(2) * gradient
            found.append(read(x).tolist())
        for x in arguments:
            write(x)
        found += [read(x).tolist() for x in arguments]
        clear(arguments[1])
        return found, [x.grad is None for x in arguments]

    same(program, wrap)


@pytest.mark.parametrize("wrap", WAYS)
def test_the_gradient_that_a_computed_argument_retains_is_read(wrap):
    def program(library, wrap):
        read = wrap(lambda x: x * 0 if x.grad is None else x.grad * 2)
        w = library.ones(2, requires_grad=True)
        y = w * 2
        y.retain_grad()
        (y * y).sum().backward()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch's, of gradients that are not retained
            return [read(x).tolist() for x in (y, w * 2, w, y)]

    same(program, wrap)


def test_backward_inside_to_a_computed_argument_is_refused():
    w = tn.ones(2, requires_grad=True)
    square = tn.compile(lambda x: (x * x).sum().backward())
    with pytest.raises(tn.TraceError, match="an argument that was computed"):
        square(w * 2)


def test_a_hook_on_an_argument_whose_gradient_is_taken_outside_is_refused():
    def hooked(x):
        x.register_hook(lambda gradient: gradient * 10)
        return (x * 2).sum()

    with pytest.raises(tn.TraceError, match="a hook"):
        tn.compile(hooked)(tn.ones(2, requires_grad=True))


@pytest.mark.parametrize("kind", ["leaf", "computed"])
@pytest.mark.parametrize("of_a_part", [False, True])
@pytest.mark.parametrize("way", ["no_grad", "detach", "data"])
@pytest.mark.parametrize("wrap", WAYS)
def test_gradients_of_arguments_pass_by_writes_without_them(wrap, way, of_a_part, kind):
    def program(library, wrap):
        def square(x):
            with library.set_grad_enabled(way != "no_grad"):
                seen = {"no_grad": lambda: x, "detach": x.detach, "data": lambda: x.data}[way]()
                (seen[:1] if of_a_part else seen).mul_(2)
            return x * x

        w = library.tensor([1.0, 2.0], requires_grad=True)
        x = w if kind == "leaf" else w * 2
        result = wrap(square)(x)
        (gradient,) = library.autograd.grad(result.sum(), w)
        return result.tolist(), gradient.tolist(), x.tolist(), w.tolist()

    same(program, wrap)


@pytest.mark.parametrize("wrap", WAYS)
def test_views_of_computed_arguments_are_written_with_gradients(wrap):
    def program(library, wrap):
        def function(x):
            v = x.view(2)
            v.mul_(2)
            v[1:].add_(x[0])
            return x * v

        w = library.tensor([1.0, 2.0], requires_grad=True)
        x = w * 2
        result = wrap(function)(x)
        result.sum().backward()
        return result.tolist(), w.grad.tolist(), x.tolist()

    same(program, wrap)


@pytest.mark.parametrize("wrap", WAYS)
def test_computed_arguments_have_a_grad_fn(wrap):
    def program(library, wrap):
        told = wrap(lambda x: x * (2 if x.grad_fn is None else 3))
        w = library.ones(2, requires_grad=True)
        return [told(x).tolist() for x in (w, w * 2, w.detach(), w * 3)]

    same(program, wrap)
