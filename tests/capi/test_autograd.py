"""libtenfold's autograd, against PyTorch's own: gradients, scopes, functions of the host's, hooks."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import numpy as np
import pytest
import torch

from tenfold.base.errors import EngineError, IndexOutOfRange, TenfoldError, UnknownName
from tests.capi.bridge import Bridge, Handle, handles

FORWARD = ctypes.CFUNCTYPE(
    ctypes.c_int32,
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.c_int64,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.c_int64,
    ctypes.c_void_p,
)
HOOK = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p)
DESTROY = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
VALUES = np.array([[0.5, -1.0, 2.0], [3.0, 0.25, -0.75]], np.float32)


def address(callback: Any) -> Any:
    return ctypes.cast(callback, ctypes.c_void_p)


def test_backward_adds_to_the_gradients_of_leaves(tn: Bridge) -> None:
    x = tn.tensor(VALUES, requires_grad=True)
    assert tn.tn_requires_grad(x) == 1 and tn.tn_is_leaf(x) == 1 and tn.tn_has_grad(x) == 0
    for times in (1, 2):
        loss = tn.call("sum", tn.call("mul.Tensor", x, x))
        assert tn.tn_is_leaf(loss) == 0
        tn.tn_backward(loss)
        np.testing.assert_allclose(tn.array(tn.keep(tn.tn_grad(x))), 2 * VALUES * times)
    tn.tn_zero_grad(x)
    assert not tn.array(tn.keep(tn.tn_grad(x))).any()
    tn.tn_set_grad(x, None)
    assert tn.tn_has_grad(x) == 0
    with pytest.raises(UnknownName, match="no gradient was collected"):
        tn.tn_grad(x)


def test_a_gradient_can_be_given_and_the_graph_retained(tn: Bridge) -> None:
    x = tn.tensor(VALUES, requires_grad=True)
    y = tn.call("tanh", x)
    start = tn.tensor(np.full_like(VALUES, 3))
    tn.tn_backward_with(y, start, True, False)
    tn.tn_backward_with(y, start, False, False)
    golden = torch.tensor(VALUES, requires_grad=True)
    golden.tanh().backward(torch.full_like(golden, 6))
    np.testing.assert_allclose(tn.array(tn.keep(tn.tn_grad(x))), golden.grad, rtol=1e-6)
    with pytest.raises(EngineError, match="second time"):
        tn.tn_backward_with(y, start, False, False)


def test_several_tensors_go_back_together(tn: Bridge) -> None:
    x = tn.tensor(VALUES, requires_grad=True)
    first, second = tn.call("sum", x), tn.call("exp", x)
    start = tn.tensor(np.ones_like(VALUES))
    tn.tn_backward_all(*handles([first, second]), *handles([None, start]), False, False)
    np.testing.assert_allclose(tn.array(tn.keep(tn.tn_grad(x))), 1 + np.exp(VALUES), rtol=1e-6)


def gradients(tn: Bridge, outputs: list, inputs: list, create: bool = False, unused: bool = False) -> list:
    out, count = handles([None] * len(inputs))
    tn.tn_gradients(*handles(outputs), *handles(inputs), None, 0, False, create, unused, out, count)
    return [None if each is None else tn.keep(each) for each in out]


def test_gradients_of_gradients(tn: Bridge) -> None:
    x = tn.tensor(VALUES, requires_grad=True)
    cube = tn.call("sum", tn.call("pow.Tensor_Scalar", x, 3))
    (first,) = gradients(tn, [cube], [x], create=True)
    np.testing.assert_allclose(tn.array(first), 3 * VALUES**2, rtol=1e-6)
    (second,) = gradients(tn, [tn.call("sum", first)], [x])
    np.testing.assert_allclose(tn.array(second), 6 * VALUES, rtol=1e-6)
    assert tn.tn_has_grad(x) == 0


def test_an_input_that_is_not_used_has_no_gradient(tn: Bridge) -> None:
    x, other = tn.tensor(VALUES, requires_grad=True), tn.tensor([1.0], requires_grad=True)
    with pytest.raises(EngineError, match="not have been used"):
        gradients(tn, [tn.call("sum", x)], [x, other])
    found = gradients(tn, [tn.call("sum", x)], [x, other], unused=True)
    assert found[0] is not None and found[1] is None


def test_scopes_nest_and_end_in_order(tn: Bridge) -> None:
    x = tn.tensor(VALUES, requires_grad=True)
    outer = tn.tn_no_grad_begin()
    assert tn.tn_requires_grad(tn.call("exp", x)) == 0
    inner = tn.tn_enable_grad_begin()
    assert tn.tn_requires_grad(tn.call("exp", x)) == 1
    with pytest.raises(EngineError, match="reverse order"):
        tn.tn_scope_end(outer)
    tn.tn_scope_end(inner)
    assert tn.tn_grad_enabled() == 0
    tn.tn_scope_end(outer)
    assert tn.tn_grad_enabled() == 1
    scope = tn.tn_inference_begin()
    assert tn.tn_inference_enabled() == 1
    tn.tn_scope_end(scope)
    assert tn.tn_inference_enabled() == 0
    with pytest.raises(EngineError, match="no scope is open"):
        tn.tn_scope_end(scope)


def test_scopes_belong_to_their_thread(tn: Bridge) -> None:
    scope = tn.tn_no_grad_begin()
    seen: list[Any] = []

    def other() -> None:
        seen.append(tn.tn_grad_enabled())
        try:
            tn.tn_scope_end(scope)
        except TenfoldError as error:
            seen.append(str(error))
        tn.tn_inference_begin()  # left open: it goes with its thread

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert seen[0] == 1 and "no scope is open in this thread" in seen[1]
    tn.tn_scope_end(scope)


def test_only_a_leaf_of_floats_can_require_gradients(tn: Bridge) -> None:
    with pytest.raises(EngineError, match="floating point"):
        tn.tn_set_requires_grad(tn.tensor([1, 2], "int64"), True)
    x = tn.tensor(VALUES, requires_grad=True)
    with pytest.raises(EngineError, match="only a leaf"):
        tn.tn_set_requires_grad(tn.call("exp", x), False)
    with pytest.raises(EngineError, match="shape, dtype and device"):
        tn.tn_set_grad(x, tn.tensor([1.0]))
    detached = tn.call("detach", tn.call("exp", x))
    assert tn.tn_requires_grad(detached) == 0


def cube_function(tn: Bridge, fails: str = "", destroyed: list | None = None) -> tuple[int, list]:
    """x³ with a gradient written here, which fails where it is told to."""
    seen: list[Any] = []

    def forward(context: int, inputs: Any, count: int, outputs: Any, results: int, user: int) -> int:
        seen.append(("forward", count, results, tn.tn_context_needs_grad(context, 0)))
        if fails == "forward":
            return tn.lib.raw("tn_fail")(b"the host said no")
        tn.tn_context_save(context, inputs, 1)
        kept = Bridge.__new__(Bridge)
        kept.lib, kept.made = tn.lib, []
        x = Handle(inputs[0])
        outputs[0] = kept.call("mul.Tensor", kept.call("mul.Tensor", x, x), x)
        kept.made.pop()
        kept.close()
        return 0

    def backward(context: int, given: Any, count: int, outputs: Any, results: int, user: int) -> int:
        seen.append(("backward", count, results, tn.tn_context_saved_count(context)))
        if fails == "backward":
            return 1
        kept = Bridge.__new__(Bridge)
        kept.lib, kept.made = tn.lib, []
        x = kept.keep(tn.tn_context_saved(context, 0))
        square = kept.call("mul.Tensor", x, x)
        outputs[0] = kept.call("mul.Tensor", kept.call("mul.Scalar", square, 3), Handle(given[0]))
        kept.made.pop()
        kept.close()
        return 0

    note = destroyed if destroyed is not None else []
    callbacks = FORWARD(forward), FORWARD(backward), DESTROY(lambda user: note.append(user))
    KEPT.append(callbacks)
    made = tn.tn_function_new(b"cube", *map(address, callbacks[:2]), 1, 77, address(callbacks[2]))
    return made, seen


KEPT: list[Any] = []  # ctypes' callbacks live as long as this


def called(tn: Bridge, function: int, x: Handle) -> Handle:
    out, count = handles([None])
    tn.tn_function_call(function, *handles([x]), out, count)
    return tn.keep(out[0])


def test_a_function_has_the_gradient_that_the_host_writes(tn: Bridge) -> None:
    destroyed: list[int] = []
    function, seen = cube_function(tn, destroyed=destroyed)
    x = tn.tensor(VALUES, requires_grad=True)
    y = called(tn, function, x)
    np.testing.assert_allclose(tn.array(y), VALUES**3, rtol=1e-6)
    tn.tn_function_free(function)
    assert destroyed == []  # the graph still needs it
    tn.tn_backward(tn.call("sum", y))
    np.testing.assert_allclose(tn.array(tn.keep(tn.tn_grad(x))), 3 * VALUES**2, rtol=1e-6)
    assert seen == [("forward", 1, 1, 1), ("backward", 1, 1, 1)]
    tn.close()
    assert destroyed == [77]


def test_gradients_flow_through_a_hosts_gradient(tn: Bridge) -> None:
    function, _ = cube_function(tn)
    x = tn.tensor(VALUES, requires_grad=True)
    (first,) = gradients(tn, [tn.call("sum", called(tn, function, x))], [x], create=True)
    (second,) = gradients(tn, [tn.call("sum", first)], [x])
    np.testing.assert_allclose(tn.array(second), 6 * VALUES, rtol=1e-6)
    tn.tn_function_free(function)


@pytest.mark.parametrize("fails", ["forward", "backward"])
def test_a_failing_callback_fails_the_call(tn: Bridge, fails: str) -> None:
    function, _ = cube_function(tn, fails)
    x = tn.tensor(VALUES, requires_grad=True)
    if fails == "forward":
        with pytest.raises(EngineError, match="forward of cube failed: the host said no"):
            called(tn, function, x)
    else:
        y = tn.call("sum", called(tn, function, x))
        assert tn.lib.raw("tn_backward")(y) == 9
        assert b"backward of cube failed with status 1" in tn.tn_error_message()
    tn.tn_function_free(function)
    # The library goes on.
    tn.tn_backward(tn.call("sum", tn.call("exp", x)))
    assert tn.tn_has_grad(x) == 1


def test_hooks_see_and_replace_gradients(tn: Bridge) -> None:
    destroyed: list[int] = []
    x = tn.tensor(VALUES, requires_grad=True)

    def doubled(gradient: int, out: Any, user: int) -> int:
        seen.append(user)
        result = tn.call("mul.Scalar", Handle(gradient), 2)
        tn.made.remove(result)
        out[0] = result
        return 0

    seen: list[int] = []
    callbacks = HOOK(doubled), DESTROY(lambda user: destroyed.append(user))
    KEPT.append(callbacks)
    hook = tn.tn_hook_new(x, address(callbacks[0]), 5, address(callbacks[1]))
    tn.tn_backward(tn.call("sum", x))
    assert (tn.array(tn.keep(tn.tn_grad(x))) == 2).all() and seen == [5]
    tn.tn_hook_free(hook)
    assert destroyed == [5]
    tn.tn_backward(tn.call("sum", x))
    assert (tn.array(tn.keep(tn.tn_grad(x))) == 3).all() and seen == [5]


def counting_hook(tn: Bridge, tensor: int, calls: list[str], name: str) -> int:
    callback = HOOK(lambda gradient, out, user: calls.append(name) or 0)
    KEPT.append(callback)
    return tn.tn_hook_new(tensor, address(callback), None, None)


def test_a_hook_is_removed_from_a_tensor_that_was_written_since(tn: Bridge) -> None:
    calls: list[str] = []
    y = tn.call("mul.Scalar", tn.tensor(VALUES, requires_grad=True), 2.0)
    first = counting_hook(tn, y, calls, "first")
    tn.call("add_.Scalar", y, 1.0)
    second = counting_hook(tn, y, calls, "second")
    tn.tn_hook_free(first)
    tn.tn_backward(tn.call("sum", y))
    assert calls == ["second"]
    tn.tn_hook_free(second)


def test_a_hook_is_removed_though_its_tensor_is_gone(tn: Bridge) -> None:
    calls: list[str] = []
    y = tn.call("mul.Scalar", tn.tensor(VALUES, requires_grad=True), 2.0)
    hooks = [counting_hook(tn, y, calls, name) for name in ("freed", "kept")]
    loss = tn.call("sum", y)
    tn.made.remove(y)
    tn.tn_free(y)
    tn.tn_hook_free(hooks[0])
    tn.tn_backward(loss)
    assert calls == ["kept"]
    tn.tn_hook_free(hooks[1])


def test_a_failing_hook_fails_backward(tn: Bridge) -> None:
    x = tn.tensor(VALUES, requires_grad=True)
    callback = HOOK(lambda gradient, out, user: tn.lib.raw("tn_fail")(b"not this one"))
    hook = tn.tn_hook_new(x, address(callback), None, None)
    with pytest.raises(EngineError, match="hook failed: not this one"):
        tn.tn_backward(tn.call("sum", x))
    tn.close()  # before the hook, which does not keep its tensor
    tn.tn_hook_free(hook)


def test_bad_arguments_are_errors(tn: Bridge) -> None:
    function, _ = cube_function(tn)
    for name, arguments in (
        ("tn_backward", (None,)),
        ("tn_requires_grad", (None,)),
        ("tn_function_call", (None, None, 0, None, 0)),
        ("tn_function_call", (function, None, 0, None, 0)),
        ("tn_function_call", (function, None, -1, handles([None])[0], 1)),
        ("tn_function_new", (b"f", None, None, 1, None, None)),
        ("tn_context_saved", (None, 0)),
        ("tn_hook_new", (None, None, None, None)),
        ("tn_backward_all", (None, 2, None, 0, False, False)),
        ("tn_fail", (None,)),
    ):
        with pytest.raises(TenfoldError):
            getattr(tn, name)(*arguments)
    tn.tn_function_free(function)


def test_saved_tensors_are_counted(tn: Bridge) -> None:
    asked: list[Any] = []

    def backward(context: int, given: Any, count: int, outputs: Any, results: int, user: int) -> int:
        try:
            tn.tn_context_saved(context, 4)
        except IndexOutOfRange as error:
            asked.append(str(error))
        return 0

    def forward(context: int, inputs: Any, count: int, outputs: Any, results: int, user: int) -> int:
        outputs[0] = tn.tn_tensor_share(inputs[0])
        return 0

    callbacks = FORWARD(forward), FORWARD(backward)
    function = tn.tn_function_new(b"same", *map(address, callbacks), 1, None, None)
    x = tn.tensor(VALUES, requires_grad=True)
    tn.tn_backward(tn.call("sum", called(tn, function, x)))
    assert "forward kept 0 tensors" in asked[0]
    assert tn.tn_has_grad(x) == 0
    tn.tn_function_free(function)
