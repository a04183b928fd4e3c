"""Functions behind handles: methods of TorchScript modules, and the host's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from tenfold.base.errors import EngineError, TenfoldError
from tenfold.capi.binding import Scalar, handles
from tests.capi.bridge import Bridge, Handle
from tests.capi.test_autograd import cube_function

SOURCE = b"""
def both(x, y, scale: int = 2):
    return x + y, x * scale

def named(x):
    return {"x": x}

def twice(x):
    return x + x
"""
X = np.array([1, -2, 3], np.float32)


@contextmanager
def function_of(tn: Bridge, method: bytes) -> Iterator[int]:
    module = tn.tn_module_compile(SOURCE)
    function = tn.tn_module_function(module, method)
    tn.tn_module_free(module)  # which the function keeps
    yield function
    tn.tn_function_free(function)


def run(tn: Bridge, function: int, *tensors: int) -> int:
    """The stack of a function's result."""
    stack = tn.tn_stack_new()
    for each in tensors:
        tn.tn_stack_push_tensor(stack, each)
    try:
        tn.tn_function_run(function, stack)
    except TenfoldError:
        assert tn.tn_stack_count(stack) == 0
        tn.tn_stack_free(stack)
        raise
    return stack


def test_a_method_is_called_with_tensors_and_with_a_stack(tn: Bridge) -> None:
    with function_of(tn, b"both") as function:
        x, y = tn.tensor(X, requires_grad=True), tn.tensor(X * 10)
        out, count = handles([None, None])
        tn.tn_function_call(function, *handles([x, y]), out, count)
        total, scaled = (tn.keep(each) for each in out)
        np.testing.assert_array_equal(tn.array(total), X * 11)
        tn.tn_backward(tn.call("sum", scaled))
        np.testing.assert_array_equal(tn.array(tn.keep(tn.tn_grad(x))), np.full(3, 2, np.float32))
        stack = run(tn, function, x, y)
        value = tn.tn_stack_at(stack, 0)
        assert tn.tn_stack_count(stack) == 1 and tn.tn_value_count(value) == 2
        tn.tn_value_free(value)
        tn.tn_stack_free(stack)


def test_the_hosts_function_is_called_with_a_stack(tn: Bridge) -> None:
    function, _ = cube_function(tn)
    x = tn.tensor(X, requires_grad=True)
    stack = run(tn, function, x)
    result = tn.keep(tn.tn_stack_pop_tensor(stack))
    tn.tn_stack_free(stack)
    tn.tn_backward(tn.call("sum", result))
    np.testing.assert_allclose(tn.array(tn.keep(tn.tn_grad(x))), 3 * X**2)
    with pytest.raises(TenfoldError, match="no TorchScript function"):
        tn.tn_function_module(function)
    tn.tn_function_free(function)


def test_a_function_becomes_the_forward_of_a_module(tn: Bridge) -> None:
    with function_of(tn, b"twice") as function:
        module = tn.tn_function_module(function)
    same = tn.tn_module_share(module)
    tn.tn_module_free(module)
    result = tn.keep(tn.tn_module_forward(same, *handles([tn.tensor(X)])))
    np.testing.assert_array_equal(tn.array(result), X * 2)
    tn.tn_module_free(same)


def test_what_does_not_fit_a_function_is_an_error(tn: Bridge) -> None:
    x, room = tn.tensor(X), handles([None])
    with function_of(tn, b"both") as both, function_of(tn, b"named") as named:
        with pytest.raises(EngineError, match="both has 2 results, and there is room for 1"):
            tn.tn_function_call(both, *handles([x, x]), *room)
        with pytest.raises(TenfoldError, match="tn_function_run for it"):
            tn.tn_function_call(named, *handles([x]), *room)
        with pytest.raises(EngineError, match="both"):
            run(tn, both, x)
        module = tn.tn_function_module(both)
        with pytest.raises(TenfoldError, match="the module has no method absent: it has forward"):
            tn.tn_module_function(module, b"absent")
        tn.tn_module_free(module)
    for name, given in (
        ("tn_module_function", (None, b"f")),
        ("tn_function_module", (None,)),
        ("tn_function_run", (None, None)),
        ("tn_module_share", (None,)),
        ("tn_torch_get_function", (None, None)),
        ("tn_torch_wrap_function", (None, None)),
    ):
        with pytest.raises(TenfoldError, match="NULL"):
            getattr(tn, name)(*given)


@pytest.mark.parametrize(
    ("dtype", "number", "expected"),
    [("int32", 2, "int32"), ("int32", 2.5, "float32"), ("float16", 2.5, "float16")],
)
def test_a_tensor_of_a_number_gives_way_in_type_promotion(
    tn: Bridge, dtype: str, number: float, expected: str
) -> None:
    made = Handle(tn.keep(tn.tn_tensor_from_number(Scalar.of(number))))
    product = tn.call("mul.Tensor", tn.tensor([1, 2], dtype), made)
    assert tn.array(product).dtype == expected
