"""`__torch_function__`: types and modes are handed calls. The programs run on Tenfold and on PyTorch, and
must tell the same."""

from __future__ import annotations

import pytest
import torch

import tenfold as tn

BOTH = pytest.mark.parametrize("t", [tn, torch], ids=["tenfold", "pytorch"])


@BOTH
def test_a_class_sees_the_functions_by_their_names(t):
    seen = []

    class Logged(t.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    x = Logged([1.0, 2.0])
    (1 - t.nn.functional.relu(x + 1) * t.ones(2)).sum()
    t.stack([x, x])
    x[0], x.shape, -x, x.add_(1), x == x, len(x)
    assert seen == ["add", "relu", "mul", "__rsub__", "sum", "stack", "__getitem__", "__get__", "neg", "add_",
                    "__eq__", "__len__"]  # fmt: skip


@BOTH
def test_a_type_that_is_no_tensor_implements_functions(t):
    handled = {}

    class Scalar:
        def __init__(self, count, value):
            self.count, self.value = count, value

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func not in handled or not all(issubclass(each, (t.Tensor, Scalar)) for each in types):
                return NotImplemented
            return handled[func](*args, **(kwargs or {}))

    handled[t.mean] = lambda input: input.value
    handled[t.add] = lambda input, other: ("add", input.count, other)
    handled[t.nn.functional.softmax] = lambda input, dim=None, **options: ("softmax", dim)
    handled[t.Tensor.mul] = lambda input, other: ("mul", other.count)
    d = Scalar(5, 2)
    assert t.mean(d) == 2
    assert t.add(d, 3) == ("add", 5, 3)
    assert t.nn.functional.softmax(d, dim=1) == ("softmax", 1)
    assert t.ones(2) * d == ("mul", 5)
    with pytest.raises(TypeError, match="no implementation found|Multiple dispatch failed"):
        t.sub(d, 1)


@BOTH
def test_a_class_can_turn_overriding_off(t):
    class Silent(t.Tensor):
        __torch_function__ = t._C._disabled_torch_function_impl

    assert type(Silent([1.0]) + 1) is t.Tensor
    assert not t.overrides.has_torch_function((Silent([1.0]), t.ones(1)))


@BOTH
def test_a_mode_sees_every_call(t):
    class Log(t.overrides.TorchFunctionMode):
        def __init__(self):
            self.names = []

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.names.append(func.__name__)
            return func(*args, **(kwargs or {}))

    with Log() as outer, Log() as inner:
        x = t.zeros(2)
        y = t.nn.functional.relu(x)
        t.add(y, t.tensor([1.0, 2.0]))
    t.ones(1)
    assert inner.names == outer.names == ["zeros", "relu", "tensor", "add"]


@BOTH
def test_a_mode_can_change_what_a_function_gives(t):
    class Ones(t.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {})) if func is not t.zeros else t.ones(*args, **(kwargs or {}))

    with Ones():
        assert t.zeros(2).tolist() == [1, 1]
    assert t.zeros(2).tolist() == [0, 0]


@BOTH
def test_overrides_answers_as_pytorch_does(t):
    class Duck:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return (func.__name__, len(types))

    o = t.overrides

    @o.wrap_torch_function(lambda x, y=None: (x, y))
    def mine(x, y=None):
        return "plain"

    assert mine(t.ones(1)) == "plain" and mine(t.ones(1), Duck()) == ("mine", 2)
    assert o.is_tensor_like(Duck()) and not o.is_tensor_like(3)
    assert o.handle_torch_function(mine, (Duck(), Duck()), 1) == ("mine", 1)
    assert t.add in o.get_overridable_functions()[t]
    assert t.nn.functional.relu in o.get_overridable_functions()[t.nn.functional]
    assert t.is_tensor in o.get_ignored_functions() and t.add in o.get_testing_overrides()
    assert o.resolve_name(t.Tensor.add) == "torch.Tensor.add"
    assert o.is_tensor_method_or_property(t.Tensor.add) and not o.is_tensor_method_or_property(t.add)


def test_compiled_functions_leave_the_word_to_types_and_modes():
    class Answering(tn.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return 42 if func is tn.relu else super().__torch_function__(func, types, args, kwargs or {})

    class Counting(tn.overrides.TorchFunctionMode):
        seen = 0

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.seen += func is tn.relu
            return func(*args, **(kwargs or {}))

    compiled = tn.compile(lambda x: tn.relu(x))
    plain = tn.ones(3)
    for _ in range(3):
        assert compiled(plain).tolist() == [1, 1, 1]
    assert compiled(plain.as_subclass(Answering)) == 42
    with Counting() as mode:
        assert compiled(plain).tolist() == [1, 1, 1]
    assert mode.seen == 1
    assert compiled(tn.nn.Parameter(plain)).tolist() == [1, 1, 1]
