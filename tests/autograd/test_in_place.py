"""Gradients through writes in place: the op that writes had the old value, others after it have not."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.base.errors import ArgumentError, DTypeError
from tests.autograd.cases import agree, refused

WRITES = {
    **{
        name: lambda y, name=name: getattr(y, name)()
        for name in (
            *(
                "abs_",
                "acos_",
                "asin_",
                "atan_",
                "cos_",
                "cosh_",
                "digamma_",
                "erf_",
                "erfc_",
                "exp2_",
                "exp_",
            ),
            *("lgamma_", "log_", "log1p_", "log2_", "log10_", "logit_", "neg_", "reciprocal_", "round_"),
            *("sigmoid_", "sign_", "sin_", "sinh_", "sqrt_", "square_", "tanh_", "zero_"),
        )
    },
    **{
        name: lambda y, name=name: getattr(y, name)(0.5)
        for name in (
            "clamp_",
            "clamp_max_",
            "pow_",
            "eq_",
            "ge_",
            "lt_",
            "fill_",
            "mul_",
            "copysign_",
            "xlogy_",
        )
    },
    "copy_": lambda y: y.copy_(y.detach() + 1),
    "a view": lambda y: y[1:].clamp_(0.2, 0.4),
    "a row of a view": lambda y: y.view(2, 2)[1].sin_(),
    "two in a row": lambda y: y.sin_().cos_(),
}


def gradient(module, write):
    x = module.tensor([0.1, 0.3, 0.5, 0.7], requires_grad=True)
    y = x * 1.25
    write(y)
    assert y.requires_grad
    (y * y).sum().backward()
    return x.grad.numpy()


@pytest.mark.parametrize("name", WRITES)
def test_the_gradient_of_a_write_is_pytorch_s(name):
    np.testing.assert_allclose(
        gradient(tn, WRITES[name]), gradient(torch, WRITES[name]), rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize(
    "write",
    [
        lambda y: y.mul_(y),
        lambda y: (y.sin(), y.add_(1))[0],
        lambda y: y.exp().sin_(),
    ],
    ids=["by itself", "after it was used", "over a saved result"],
)
def test_a_value_that_the_gradient_needs_is_not_written(write):
    for module in (torch, tn):
        y = module.tensor([0.1, 0.3], requires_grad=True) * 2
        with pytest.raises(RuntimeError, match="inplace|in place"):
            write(y).sum().backward()


@pytest.mark.parametrize("view", [lambda x: x[0], lambda x: x.view(4), lambda x: x[1].view(2)[:1]])
def test_a_view_of_a_leaf_is_not_written_whatever_memory_the_leaf_is_a_part_of(view):
    for module in (torch, tn):
        for x in (module.ones(2, 2), module.ones(4).reshape(2, 2), module.ones(3, 2)[1:]):
            x.requires_grad_()
            with pytest.raises(RuntimeError, match="a view of"):
                view(x).add_(1)
            with module.no_grad():
                view(x).add_(1)
            written = view(x.detach())
            written.mul_(module.tensor(2.0, requires_grad=True))
            written.add_(1)
            assert written.requires_grad


def through_detached(m, make):
    """What requires gradients, and what comes to them, of a tensor and another that shares its memory."""
    x = m.tensor([1.0, 2.0], requires_grad=True)
    base = make(x)
    other = base.detach()
    other.add_(1)
    found = [other.requires_grad, base.requires_grad, other.tolist(), base.tolist()]
    other.requires_grad_()
    for _ in range(2):
        (other * other).sum().backward()
        with m.no_grad():
            other.mul_(2)
    (base * base).sum().backward()
    return [*found, other.grad.tolist(), x.grad.tolist()]


@pytest.mark.parametrize("make", [lambda x: x, lambda x: x * 3], ids=["a leaf", "a result"])
def test_a_write_to_a_detached_tensor_ties_it_to_no_gradients(make):
    assert through_detached(tn, make) == through_detached(torch, make)


def before(m):
    """A view of a tensor that collects gradients only since it was made."""
    x = m.zeros(4)
    view = x[:3][:2]
    x.requires_grad_()
    return view


def seen_without_gradients(m, make=lambda x: x):
    with m.no_grad():
        view = make(m.zeros(4, requires_grad=True))[:3]
    return view[:2]


UNTOLD = {
    "made before the leaf was one": before,
    "made inside no_grad": seen_without_gradients,
    "made inside no_grad of a result": lambda m: seen_without_gradients(m, m.enable_grad()(lambda x: x * 2)),
    "of the memory of a leaf": lambda m: m.zeros(4, requires_grad=True).as_strided((2,), (1,)),
}


@pytest.mark.parametrize("view", UNTOLD.values(), ids=UNTOLD.keys())
def test_a_view_that_gradients_were_not_told_of_is_not_written_where_they_are_followed(view):
    writes = [
        lambda m, v: v.add_(1),
        lambda m, v: v.mul_(m.ones(2, requires_grad=True)),
        lambda m, v: v.__setitem__(0, 1.0),
    ]
    for write in writes:
        refused(lambda m, write=write: write(m, view(m)))
    for m in (torch, tn):
        with m.no_grad():
            written = view(m).add_(1)
            assert written.tolist() == [1, 1]


def test_a_view_made_inside_no_grad_is_written_if_no_gradients_come_of_it():
    def case(m):
        x = m.zeros(4)
        with m.no_grad():
            view = x[:2]
        return [view.add_(1), x]

    agree(case)

    def with_gradients(m):
        with m.no_grad():
            view = m.zeros(4)[:2]
        view.mul_(m.ones(2, requires_grad=True))

    refused(with_gradients)


def test_a_leaf_is_not_turned_in_place():
    refused(lambda m: m.zeros(2, 3, requires_grad=True).t_())
    refused(lambda m: m.zeros(2, 3, requires_grad=True)[:1].t_())

    def case(m):
        x = m.zeros(2, 3, requires_grad=True)
        with m.no_grad():
            x.t_()
            x.add_(1)
        (x * x).sum().backward()
        return [x, x.grad]

    agree(case)


def test_a_view_follows_a_write_that_is_seen_first_inside_no_grad():
    def case(m):
        x = m.zeros(4, requires_grad=True)
        view = x[:2]
        with m.no_grad():
            x.add_(1)
            seen = view * 2
        (view * 3).sum().backward()
        return [x.grad, seen, view]

    agree(case)


def sharing(m):
    """Which of several tensors over one memory require gradients, and what it holds."""
    x = m.zeros(2)
    early = x.data
    x.requires_grad_()
    early.add_(1)
    yield from (early.requires_grad, x.requires_grad, x.tolist())
    memory, p = m.zeros(3), m.nn.Parameter(m.zeros(2))
    part = memory[1:]
    p.data = part
    with m.no_grad():
        p.add_(1)
    yield from (memory.requires_grad, part.requires_grad, p.requires_grad, memory.tolist())
    with m.no_grad():
        memory.mul_(2)
    yield from (memory.requires_grad, part.requires_grad, p.requires_grad, p.is_leaf, p.tolist())
    x = m.zeros(3, requires_grad=True)
    other = x.detach()
    x.detach_().add_(1)
    yield from (x.requires_grad, other.tolist())
    y = m.ones(3, requires_grad=True) * 2
    view = y[:1]
    y.detach_().add_(1)
    yield from (y.requires_grad, view.tolist())


def test_tensors_that_share_memory_alone_share_no_gradients():
    assert list(sharing(tn)) == list(sharing(torch))


def test_a_view_is_not_detached_in_place():
    refused(lambda m: m.zeros(2, 3)[:1].detach_())


def written_apart(m, of, write):
    """Gradients of a tensor that shares its memory with another, of both, and of what was written to it."""
    x, w = m.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True), m.tensor([5.0, 6.0], requires_grad=True)
    memory = of(m, x)
    apart = memory.detach()
    write(m, apart, w)
    found = [apart.requires_grad, apart.is_leaf, memory.requires_grad, apart.tolist(), memory.tolist()]
    total = (apart * apart).sum()
    if memory.requires_grad:
        total = total + (memory * 3).sum()
    total.backward()
    return [*found, w.grad.tolist(), None if x.grad is None else x.grad.tolist()]


def twice(m, apart, w):
    apart[0] = w
    apart.t()[1].mul_(w)


def partly_without_gradients(m, apart, w):
    apart[0] = w
    with m.no_grad():
        apart[0, 0] = 7


def then_its_memory(m, apart, w):
    other = apart.detach()
    apart[0] = w
    other.mul_(2)


def turned(m, apart, w):
    apart[0] = w
    apart.t_()
    apart[0, 1] = 7


@pytest.mark.parametrize(
    "write",
    [
        lambda m, apart, w: apart.mul_(w),
        lambda m, apart, w: apart[0].mul_(w),
        lambda m, apart, w: apart.view(4)[1:3].copy_(w * 2),
        twice,
        partly_without_gradients,
        then_its_memory,
        turned,
    ],
    ids=["all", "a row", "a stretch", "twice", "partly without", "and its memory", "and turned"],
)
@pytest.mark.parametrize(
    "of",
    [lambda m, x: x, lambda m, x: x * 2, lambda m, x: x.data.clone()],
    ids=["leaf", "result", "constant"],
)
def test_what_is_written_to_a_detached_tensor_has_its_gradient(of, write):
    assert written_apart(tn, of, write) == written_apart(torch, of, write)


def test_what_is_written_to_a_detached_tensor_has_its_gradient_in_a_transformed_function():
    def case(m):
        def function(w):
            x = w * 2
            apart = x.detach()
            apart[0] = w[1]
            return (apart * 3).sum() + x.prod()

        return [m.func.grad(function)(m.tensor([1.0, 2.0]))]

    agree(case)


def test_one_of_several_views_is_written_as_if_it_were_made_alone():
    def case(m):
        x, w = m.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True), m.tensor([5.0, 6.0], requires_grad=True)
        y = x * 2
        part = y[2:] if m is torch else y.split(2)[1]  # PyTorch refuses to write to what split gave
        part.mul_(w)
        (y * y).sum().backward()
        return [y, part, x.grad, w.grad]

    agree(case)


@pytest.mark.parametrize("told", [False, True], ids=["a constant", "a gradient"])
def test_gradients_pass_by_what_is_written_to_a_detached_part(told):
    def case(m):
        x, w = m.tensor([1.0, 2.0, 3.0], requires_grad=True), m.tensor(5.0, requires_grad=True)
        y = x * 2
        apart = y[1:].detach()
        apart[:1].mul_(w if told else 5.0)
        ((y * y).sum() + (apart * apart).sum()).backward()
        return [y, apart, x.grad, w.grad]

    agree(case)


@pytest.mark.parametrize("compute", [lambda x: x * 2, lambda x: x.exp(), lambda x: x.view(2, 1)[:, 0]])
def test_a_computed_tensor_keeps_its_history_when_other_data_is_assigned(compute):
    results = []
    for t in (tn, torch):
        x, seen = t.tensor([1.0, 2.0], requires_grad=True), []
        y = compute(x)
        y.data = t.tensor([5.0, 7.0])
        assert y.requires_grad and not y.is_leaf
        y.register_hook(lambda gradient, seen=seen: seen.append(gradient.tolist()))
        (y * y).sum().backward()
        results.append((y.tolist(), seen, x.grad.numpy()))
    assert results[0][:2] == results[1][:2]
    np.testing.assert_allclose(results[0][2], results[1][2], rtol=1e-6)


def test_data_that_is_assigned_brings_no_history():
    a, b = tn.ones(2), tn.ones(2, requires_grad=True)
    a.data = b * 3
    assert not a.requires_grad
    (a.sum() + b.sum()).backward()
    assert b.grad.tolist() == [1, 1]


def test_only_tensors_of_fitting_dtypes_are_assigned_as_data():
    x = tn.ones(2, requires_grad=True)
    for other in (3.0, [1.0, 2.0]):
        with pytest.raises(ArgumentError, match="another tensor"):
            x.data = other
    with pytest.raises(DTypeError, match="cannot hold int64"):
        x.data = tn.ones(2, dtype=tn.int64)


TENSORS = ["base", "view", "part"]
# A tensor that retains, tensors that are written one after another, and the one that the loss reads. Where a
# part of the view is written, PyTorch's gradients pass by the view, unless the loss reads that.
RETAINED = [
    (retaining, steps, used)
    for retaining in TENSORS
    for steps in ("", *TENSORS, *[f"{a} {b}" for a in TENSORS for b in TENSORS])
    for used in TENSORS
    if used == "view" or retaining != "view" or "part" not in steps
]


@pytest.mark.parametrize(("retaining", "steps", "used"), RETAINED)
def test_the_gradient_retained_is_that_of_what_a_tensor_holds_at_the_end(retaining, steps, used):
    def program(library):
        w = library.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
        base = w * 1
        view = base[:2]
        tensors = {"base": base, "view": view, "part": view[:1]}
        tensors[retaining].retain_grad()
        for name in steps.split():
            tensors[name].mul_(3)
        (tensors[used] * tensors[used]).sum().backward()
        gradient = tensors[retaining].grad
        return (
            None if gradient is None else gradient.tolist(),
            tensors[retaining].retains_grad,
            w.grad.tolist(),
        )

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert program(tn) == program(torch)


@pytest.mark.parametrize("silent", [False, True])
def test_hooks_and_retained_gradients_stay_where_a_tensor_is_written_without_gradients(silent):
    def program(library):
        w = library.tensor([1.0, 2.0], requires_grad=True)
        y, seen = w * 1, []
        y.register_hook(lambda gradient: (seen.append(gradient.tolist()), gradient * 10)[1])
        y.retain_grad()
        before = y * 5
        with library.set_grad_enabled(not silent):
            y.mul_(2)
        retains = y.retains_grad
        ((y * y).sum() + before.sum()).backward()
        return retains, seen, y.grad.tolist(), w.grad.tolist()

    assert program(tn) == program(torch)


def gradients_after_a_view_is_written(m):
    """Gradients for the view and for what it was made of, of both, and those that hooks see."""
    kinds = {
        "both": lambda y, v: v.sum() * 5 + y.sum(),
        "view": lambda y, v: v.sum(),
        "base": lambda y, v: y.sum(),
        "chain": lambda y, v: v.mul_(2).sum() + (y * y).sum(),
    }
    found, seen = [], []
    for name, loss in kinds.items():
        for wants in ("view", "base", "hooks"):
            x = m.ones(4, requires_grad=True)
            y = x * 2
            view = y[:3][1:]
            view.mul_(3)
            if wants == "hooks" and name != "chain":
                view.register_hook(lambda gradient: seen.append(gradient * 1))
                y.register_hook(lambda gradient: seen.append(gradient * 1))
                view.retain_grad()
                loss(y, view).backward()
                found += [x.grad, view.grad]
            else:
                wanted = view if wants == "view" else y
                found += m.autograd.grad(loss(y, view), wanted, allow_unused=True)
    return [*found, *seen]


def test_gradients_for_a_view_that_was_written_are_those_of_its_own_uses():
    agree(gradients_after_a_view_is_written)
