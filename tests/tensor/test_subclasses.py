"""Classes derived from Tensor: how they are made and kept, by what is computed, copied and pickled."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch

import tenfold as tn

BOTH = pytest.mark.parametrize("t", [tn, torch], ids=["tenfold", "pytorch"])


EXPRESSIONS = """
x + 1; 1 + x; y + x; x - 1; 1 - x; x * y; y @ x; x == y; x[0]; x.sum(); -x; x.T; x.add_(1)
F.relu(x); t.cat([x, y]); x.detach(); x.to(t.float64); x.data; abs(x); F.linear(x, t.ones(3, 2))
x // 2; x**2; 2**x; x > 1; x.new_zeros(2); F.dropout(x); t.zeros_like(x); t.split(x, 1); t.max(x, 0)
y.copy_(x); x.clone(); x.view(2, 1); t.einsum('i,i->', x, y)
F.cross_entropy(x.view(1, 2), t.tensor([1])); x.requires_grad_(); x.unbind(0); list(x)[0]; x.float()
x.cpu(); x.expand(3, 2); t.linalg.norm(x); x.item; x.shape; t.tensor(x); x.numpy(); x.dtype; repr(x)
"""


@pytest.mark.filterwarnings("ignore:The use of `x.T`", "ignore:To copy construct from a tensor")
@BOTH
def test_what_is_computed_from_a_subclass_is_of_the_subclass(t):
    class Mine(t.Tensor):
        pass

    F = t.nn.functional
    kinds = {}
    for each in EXPRESSIONS.replace("\n", ";").split(";"):
        if each.strip():
            x, y = Mine([1.0, 2.0]), t.ones(2)
            result = eval(each, {"x": x, "y": y, "t": t, "F": F})
            parts = result if isinstance(result, tuple) and not hasattr(result, "numel") else [result]
            kinds[each.strip()] = [type(part).__name__ for part in parts if isinstance(part, t.Tensor)]
    expected = {each: ["Mine"] for each in kinds}
    expected |= {"t.split(x, 1)": ["Mine"] * 2, "t.max(x, 0)": ["Mine"] * 2, "x.unbind(0)": ["Mine"] * 2}
    expected |= {each: [] for each in ("x.item", "x.shape", "x.numpy()", "x.dtype", "repr(x)")}
    expected["t.tensor(x)"] = ["Tensor"]
    assert kinds == expected


@BOTH
def test_a_class_with_its_own_new_keeps_attributes_and_gradients(t):
    class Tagged(t.Tensor):
        def __new__(cls, data, tag="", **kwargs):
            return super().__new__(cls, data)

        def __init__(self, data, tag=""):
            self.tag = tag

    w = Tagged(t.tensor([1.0, 2.0]), tag="weights").requires_grad_()
    assert (w.tag, type(w).__name__) == ("weights", "Tagged")
    (w * 3).sum().backward()
    assert w.grad.tolist() == [3, 3]
    if t is tn:  # PyTorch wants a class that can be made without arguments
        twin = copy.deepcopy(w)
        assert (type(twin).__name__, twin.tag, twin.tolist()) == ("Tagged", "weights", [1, 2])


@BOTH
def test_make_subclass_shares_memory_and_parameters_can_be_derived_from(t):
    class Quant(t.nn.Parameter):
        def __new__(cls, data, requires_grad=False, bits=4):
            made = t.Tensor._make_subclass(cls, data, requires_grad)
            made.bits = bits
            return made

    data = t.zeros(3)
    p = Quant(data, bits=2)
    data.add_(1)
    layer = t.nn.Linear(3, 3)
    layer.weight = Quant(t.ones(3, 3), requires_grad=True, bits=8)
    assert (p.bits, p.tolist(), p.requires_grad) == (2, [1, 1, 1], False)
    assert layer.weight.bits == 8 and type(dict(layer.named_parameters())["weight"]).__name__ == "Quant"
    assert type(layer.weight * 1) is t.Tensor
    layer(t.ones(1, 3)).sum().backward()
    assert layer.weight.grad.shape == (3, 3)


class Kept(tn.Tensor):
    pass


def test_a_subclass_is_pickled_as_itself():
    made = pickle.loads(pickle.dumps(Kept([1.0, 2.0])))
    assert type(made) is Kept and made.tolist() == [1, 2]


def test_a_wrapper_has_a_shape_a_device_and_no_data():
    class Twice(tn.Tensor):
        @staticmethod
        def __new__(cls, inner):
            made = tn.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device)
            made.inner = inner
            return made

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func is tn.add:
                return Twice(args[0].inner * 2 + args[1])
            return super().__torch_function__(func, types, args, kwargs)

    x = Twice(tn.ones(2, 3))
    assert (x.shape, x.device.type, x.dtype) == ((2, 3), "cpu", tn.float32)
    assert tn.add(x, 1).inner.tolist() == [[3.0] * 3] * 2


def test_a_subclass_may_give_its_plain_tensor_and_clone_that():
    class Named(tn.Tensor):
        def plain(self):
            return self.as_subclass(tn.Tensor)

        def clone(self, **options):
            return self.plain().clone(**options).as_subclass(Named)

    x = tn.tensor([1.0, 2.0]).as_subclass(Named)
    assert type(x.plain()) is tn.Tensor
    assert type(x.clone()) is Named and x.clone().tolist() == [1, 2]
