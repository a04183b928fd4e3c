"""Tensors that carry tangents give those that PyTorch's do, and ask for gradients only where others do."""

from __future__ import annotations

import pytest
import torch
import torch.autograd.forward_ad

import tenfold as tn
from tests.autograd.cases import agree

X, V = [0.5, -1.0, 2.0], [1.0, 0.25, -3.0]


def pair(m):
    return m.tensor(X), m.tensor(V)


def of_a_function(m, fw):
    x, v = pair(m)
    dual = fw.make_dual(x, v)
    found = fw.unpack_dual((dual.sin() * dual).cumsum(0))
    assert not found.primal.requires_grad and not found.tangent.requires_grad
    return [found.primal, found.tangent, fw.unpack_dual(dual).tangent]


def of_two_tensors(m, fw):
    x, v = pair(m)
    return [fw.unpack_dual(fw.make_dual(x, v) * fw.make_dual(v, x)).tangent]


def of_complex_numbers(m, fw):
    z = m.complex(*pair(m))
    dual = fw.make_dual(z, z * 1j)
    return [m.view_as_real(fw.unpack_dual(dual * dual * dual.conj()).tangent)]


def with_gradients_to_follow(m, fw):
    x, v = pair(m)
    weight = m.tensor(X, requires_grad=True)
    found = fw.unpack_dual((fw.make_dual(x, v) * weight).sin())
    assert found.primal.requires_grad
    found.tangent.sum().backward()
    return [found.tangent.detach(), weight.grad]


def of_what_does_not_move(m, fw):
    x, v = pair(m)
    dual = fw.make_dual(x, v)
    assert fw.unpack_dual(x).tangent is None and fw.unpack_dual(dual.detach() * 2).tangent is None
    return []


CASES = [of_a_function, of_two_tensors, of_complex_numbers, with_gradients_to_follow, of_what_does_not_move]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_tangents_are_pytorchs(case):
    def within(m):
        with m.autograd.forward_ad.dual_level():
            return case(m, m.autograd.forward_ad)

    agree(within)


@pytest.mark.parametrize("m", [tn, torch], ids=["tenfold", "torch"])
def test_levels_and_tangents_that_do_not_fit_are_refused(m):
    fw = m.autograd.forward_ad
    x, v = pair(m)
    with pytest.raises(RuntimeError):
        fw.make_dual(x, v)
    with fw.dual_level():
        with pytest.raises(RuntimeError):
            fw.enter_dual_level()
        with pytest.raises(RuntimeError):
            fw.make_dual(x, v[:2])
