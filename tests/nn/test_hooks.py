"""Hooks of modules: when they are called, with what, and what they may replace; as PyTorch's."""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest
import torch

import tenfold as tn


def plain(each: Any) -> Any:
    if isinstance(each, (tn.Tensor, torch.Tensor)):
        return each.detach().tolist()
    if isinstance(each, (tuple, list)):
        return [plain(part) for part in each]
    return {name: plain(part) for name, part in each.items()} if isinstance(each, dict) else each


class Scale:
    """A module that has a keyword argument, in either library."""

    def __new__(cls, xp: Any) -> Any:
        class Scaled(xp.nn.Module):
            def forward(self, x, *, by=2.0):
                if by == 0:
                    raise ValueError("by zero")
                return x * by

        return Scaled()


def logs(scenario: Callable[[Any, Callable[..., None]], Any]) -> list[Any]:
    found = []
    for xp in (tn, torch):
        seen: list[Any] = []
        result = scenario(xp, lambda *each, seen=seen: seen.append(plain(each)))
        found.append((seen, plain(result)))
    return found


def same(scenario: Callable[[Any, Callable[..., None]], Any]) -> list[Any]:
    ours, theirs = logs(scenario)
    assert ours == theirs
    return ours[0]


def test_forward_hooks_run_in_order_and_replace():
    def scenario(xp, note):
        module = Scale(xp)
        module.register_forward_pre_hook(lambda m, args: note("pre", args))
        module.register_forward_pre_hook(lambda m, args: args[0] + 1)
        module.register_forward_pre_hook(
            lambda m, args, kwargs: (args, kwargs | {"by": 5.0}), with_kwargs=True
        )
        module.register_forward_pre_hook(lambda m, args: note("first", args), prepend=True)
        module.register_forward_hook(lambda m, args, out: note("out", args, out))
        module.register_forward_hook(lambda m, args, out: out * 10)
        module.register_forward_hook(lambda m, args, kwargs, out: note(kwargs, out), with_kwargs=True)
        module.register_forward_hook(lambda m, args, out: note("before", out), prepend=True)
        return module(xp.ones(1), by=3.0)

    seen = same(scenario)
    assert [each[0] for each in seen][:2] == ["first", "pre"]


def test_handles_remove_hooks():
    def scenario(xp, note):
        module = Scale(xp)
        handle = module.register_forward_hook(lambda m, args, out: note("called"))
        module(xp.ones(1))
        handle.remove()
        handle.remove()
        with module.register_forward_hook(lambda m, args, out: note("inside")):
            module(xp.ones(1))
        return module(xp.ones(1))

    assert same(scenario) == [["called"], ["inside"]]


def test_hooks_that_are_always_called_see_failures():
    def scenario(xp, note):
        module = Scale(xp)
        module.register_forward_hook(lambda m, args, out: note("always", out), always_call=True)
        module.register_forward_hook(lambda m, args, out: note("never"))
        with pytest.raises(ValueError, match="by zero"):
            module(xp.ones(1), by=0)

    assert same(scenario) == [["always", None]]


def test_global_hooks_see_every_module():
    def scenario(xp, note):
        where = tn.nn.hooks if xp is tn else torch.nn.modules.module
        model = xp.nn.Sequential(xp.nn.ReLU(), xp.nn.Tanh())
        name = lambda m: type(m).__name__
        with (
            where.register_module_forward_pre_hook(lambda m, args: note("pre", name(m))),
            where.register_module_forward_hook(lambda m, args, out: note("post", name(m))),
        ):
            model(xp.ones(1))
        return model(xp.zeros(1))

    assert len(same(scenario)) == 6


def test_backward_hooks_see_and_replace_gradients():
    def scenario(xp, note):
        x = xp.tensor([1.0, 2.0], requires_grad=True)
        first, second = Scale(xp), Scale(xp)
        first.register_full_backward_hook(lambda m, gin, gout: note("first", gin, gout))
        second.register_full_backward_pre_hook(lambda m, gout: note("pre", gout))
        second.register_full_backward_pre_hook(lambda m, gout: (gout[0] * 10,))
        second.register_full_backward_hook(lambda m, gin, gout: note("second", gin, gout))
        second.register_full_backward_hook(lambda m, gin, gout: (gin[0] + 1,))
        second(first(x), by=3.0).sum().backward()
        return x.grad

    assert [each[0] for each in same(scenario)] == ["pre", "second", "first"]


@pytest.mark.filterwarnings("ignore:Full backward hook is firing")
def test_a_backward_hook_without_gradients_of_inputs_is_given_none():
    def scenario(xp, note):
        linear = xp.nn.Linear(1, 1, bias=False)
        linear.register_full_backward_hook(lambda m, gin, gout: note(gin, gout))
        linear(xp.ones(2, 1)).sum().backward()
        return linear.weight.grad

    assert same(scenario) == [[[None], [[[1.0], [1.0]]]]]


def test_backward_hooks_of_several_inputs_and_outputs():
    def scenario(xp, note):
        class Both(xp.nn.Module):
            def forward(self, x, y, name):
                return x * y, x + y, name

        x, y = xp.tensor([2.0], requires_grad=True), xp.tensor([3.0])
        module = Both()
        module.register_full_backward_hook(lambda m, gin, gout: note(gin[0], gout))
        product, total, _ = module(x, y, "name")
        (product * 2 + total).sum().backward()
        return x.grad

    same(scenario)


def test_what_requires_no_gradients_has_none_to_pass_a_module():
    def scenario(xp, note):
        class Mixed(xp.nn.Module):
            def forward(self, x, y, number, name):
                return x * y + number, x.detach(), number

        x, y = xp.tensor([2.0], requires_grad=True), xp.tensor([3.0])
        module = Mixed()
        module.register_full_backward_hook(lambda m, gin, gout: note(gin, gout))
        outputs = module(x, y, xp.tensor([4]), "name")
        outputs[0].sum().backward()
        return [x.grad, [each.requires_grad for each in outputs]]

    same(scenario)


def test_global_backward_hooks_see_every_module():
    def scenario(xp, note):
        where = tn.nn.hooks if xp is tn else torch.nn.modules.module
        model = xp.nn.Sequential(xp.nn.ReLU(), xp.nn.Tanh())
        with (
            where.register_module_full_backward_hook(lambda m, gin, gout: note(type(m).__name__, gin)),
            where.register_module_full_backward_pre_hook(lambda m, gout: note("pre", type(m).__name__)),
        ):
            x = xp.zeros(1, requires_grad=True)
            model(x).sum().backward()
        return x.grad

    same(scenario)


@pytest.mark.parametrize("library", [tn, torch], ids=["tenfold", "torch"])
def test_backward_hooks_of_both_forms_on_one_module_are_refused(library):
    older, full = "register_backward_hook", "register_full_backward_hook"
    for first, second in ((older, full), (full, older)):
        module = library.nn.Linear(1, 1)
        handle = getattr(module, first)(lambda *gradients: None)
        getattr(module, first)(lambda *gradients: None)
        for each in (module, copy.deepcopy(module)):
            with pytest.raises(RuntimeError, match="annot use both regular backward hooks and full"):
                getattr(each, second)(lambda *gradients: None)
        handle.remove()
        with pytest.raises(RuntimeError, match="annot use both"):
            getattr(module, second)(lambda *gradients: None)
    where = library.nn.modules.module
    where.register_module_full_backward_hook(lambda *gradients: None).remove()
    with pytest.raises(RuntimeError, match="annot use both"):
        where.register_module_backward_hook(lambda *gradients: None)


def test_hooks_that_are_wrong_are_refused():
    module = Scale(tn)
    with pytest.raises(tn.ArgumentError, match="a hook is a function"):
        module.register_forward_hook(3)
    module.register_forward_pre_hook(lambda m, args, kwargs: 3, with_kwargs=True)
    with pytest.raises(tn.ArgumentError, match="None or \\(args, kwargs\\)"):
        module(tn.ones(1))
    module = Scale(tn)
    module.register_full_backward_hook(lambda m, gin, gout: (gin[0], gin[0]))
    with pytest.raises(tn.ArgumentError, match="2 gradients for a grad_input of 1"):
        module(tn.ones(1, requires_grad=True)).sum().backward()


def test_hooks_are_found_and_forgotten_through_the_attributes_that_hold_them():
    def scenario(xp, note):
        module = Scale(xp)
        first = module.register_forward_hook(lambda m, args, out: note("first"), always_call=True)
        second = module.register_forward_hook(lambda m, args, kwargs, out: note("second"), with_kwargs=True)
        module.register_forward_pre_hook(print, with_kwargs=True)
        note(
            [each is not None and callable(each) for each in module._forward_hooks.values()],
            [key == second.id for key in module._forward_hooks_with_kwargs],
            [key == first.id for key in module._forward_hooks_always_called],
            len(module._forward_pre_hooks_with_kwargs),
        )
        first.remove()
        note(len(module._forward_hooks_always_called), len(second.hooks_dict_ref()))
        module._forward_hooks = OrderedDict()
        module._forward_pre_hooks.clear()
        module.register_forward_hook(lambda m, args, out: note("last"))
        return module(xp.ones(1))

    assert same(scenario)[2:] == [["last"]]


def test_hooks_see_what_modules_register():
    def scenario(xp, note):
        where = xp.nn.modules.module
        told = lambda kind: lambda m, name, member: note(kind, type(m).__name__, name)
        with (
            where.register_module_parameter_registration_hook(told("parameter")),
            where.register_module_buffer_registration_hook(told("buffer")),
            where.register_module_module_registration_hook(told("module")),
            where.register_module_parameter_registration_hook(lambda m, name, p: xp.nn.Parameter(p.data * 0)),
        ):
            model = xp.nn.Sequential(xp.nn.Linear(1, 1), xp.nn.BatchNorm1d(1))
            model.extra = xp.nn.ReLU()
            model.register_parameter("weight", xp.nn.Parameter(xp.ones(2)))
        return model.weight

    assert len(same(scenario)) == 11


def test_an_error_of_a_hook_that_is_always_called_does_not_hide_the_modules():
    def scenario(xp, note):
        module = Scale(xp)

        def fail(m, args, out):
            raise RuntimeError("in the hook")

        module.register_forward_hook(fail, always_call=True)
        with pytest.warns(UserWarning, match="in the hook"), pytest.raises(ValueError, match="by zero"):
            module(xp.ones(1), by=0)

    assert same(scenario) == []


def test_backward_hooks_warn_of_outputs_that_they_do_not_see():
    def scenario(xp, note):
        class Named(xp.nn.Module):
            def forward(self, x):
                return {"x": x * 2}

        module = Named()
        module.register_full_backward_hook(lambda m, gi, go: note("called"))
        with pytest.warns(UserWarning, match="should be a Tensor or a tuple of Tensors"):
            module(xp.ones(1, requires_grad=True))["x"].sum().backward()

    same(scenario)


def test_gradients_of_gradients_call_no_backward_hooks():
    def program(library):
        x, seen = library.tensor([3.0], requires_grad=True), []
        loss = library.nn.MSELoss()
        loss.register_full_backward_hook(
            lambda module, come, gone: seen.append([each.tolist() for each in (come[0], gone[0])])
        )
        value = loss(x, library.zeros(1))
        (first,) = library.autograd.grad(value, x, create_graph=True)
        (second,) = library.autograd.grad(first, x)
        value.backward()
        return seen, second.tolist(), x.grad.tolist()

    assert program(tn) == program(torch)


def test_the_nodes_at_a_hooked_modules_ends_are_named_as_pytorchs():
    def names(library):
        linear = library.nn.Linear(2, 2)
        linear.register_full_backward_hook(lambda *seen: None)
        result = linear(library.ones(1, 2, requires_grad=True))
        entry = [node for node, _ in result.grad_fn.next_functions[0][0].next_functions if node is not None]
        return result.grad_fn.name(), "BackwardHookFunctionBackward" in [node.name() for node in entry]

    assert names(tn) == names(torch)
