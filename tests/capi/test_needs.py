"""What libtorch's kernels take for granted is checked before they are called, by name and typed alike."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import pytest

from tenfold.capi.binding import Device, Scalar
from tenfold.errors import TenfoldError
from tests.capi.bridge import Bridge, Handle, handles, nothing_left
from tests.capi.odd_tensors import odd_tensors

INT64 = 4


@pytest.fixture
def tn() -> Iterator[Bridge]:
    bridge = Bridge()
    with nothing_left(bridge):
        yield bridge


def by_name(tn: Bridge, name: str, *arguments: Any) -> None:
    """Call an operator; a list is one of tensors, and None is None."""
    stack = tn.tn_stack_new()
    try:
        for each in arguments:
            if each is None:
                tn.tn_stack_push_none(stack)
            elif isinstance(each, list) and all(isinstance(entry, Handle) for entry in each):
                tn.tn_stack_push_tensors(stack, *handles(each))
            else:
                tn.push(stack, each)
        tn.tn_call(f"aten::{name}".encode(), stack)
    finally:
        tn.tn_stack_free(stack)


def test_arguments_that_a_kernel_would_divide_by_or_not_find_are_errors_by_name(tn: Bridge) -> None:
    x, one, empty = tn.tensor([[1.0, 2.0]]), tn.tensor([1.0]), tn.tensor([])
    sparse = tn.call("to_sparse_csr", x)
    cases: list[tuple[str, str, tuple[Any, ...]]] = [
        ("native_group_norm", "group is a positive number", (x, None, None, 1, 2, 1, 0, 0.1)),
        ("native_batch_norm", "running_mean", (x, None, None, None, None, False, 0.1, 0.1)),
        ("native_batch_norm", "each channel", (x, one, None, None, None, True, 0.1, 0.1)),
        ("native_batch_norm", "out of range", (one, None, None, None, None, True, 0.1, 0.1)),
        ("_native_batch_norm_legit.no_stats", "training is true", (x, None, None, False, 0.1, 0.1)),
        ("range.step", "step", (0, 1, 0.5, INT64)),
        ("_fft_c2c", "out of range", (x, [1 << 40], 0, True)),
        ("_stack", "at least one tensor", ([], 0)),
        ("_weight_norm_interface", "dimensions", (empty, empty, 3)),
        ("_weight_norm_interface", "each entry", (x, empty, 0)),
        ("copy", "strides", (sparse, x)),
        ("linalg_eigvals", "no NaNs", (tn.tensor([[1.0, float("nan")], [float("inf"), 1.0]]),)),
    ]
    for name, message, arguments in cases:
        with pytest.raises(TenfoldError, match=message):
            by_name(tn, name, *arguments)


def test_such_arguments_are_errors_of_typed_functions_too(tn: Bridge) -> None:
    x, count = ctypes.c_void_p(tn.tensor([[1.0, 2.0]])), ctypes.c_int64
    none, results = ctypes.c_void_p(), (ctypes.c_void_p * 3)()
    half, whole = ctypes.c_double(0.5), ctypes.c_int32(INT64)
    odd = [tn.keep(each) for each in odd_tensors(tn.lib)]
    undefined = ctypes.c_void_p(next(each for each in odd if not tn.tn_tensor_is_defined(each)))
    typed: list[tuple[str, tuple[Any, ...]]] = [
        ("tn_native_group_norm", (x, none, none, count(1), count(2), count(1), count(0), half, results)),
        ("tn_native_batch_norm", (x, none, none, none, none, False, half, half, results)),
        (
            "tn_range_step_with",
            (Scalar.of(0), Scalar.of(1), Scalar.of(0.5), ctypes.byref(whole), none, none, none),
        ),
        ("tn__stack", (none, count(0), count(0))),
        ("tn_copy", (undefined, x, False)),
    ]
    for name, arguments in typed:
        tn.tn_error_clear()
        function = tn.lib.library[name]
        function.restype = ctypes.c_void_p
        function(*arguments)
        assert tn.tn_error_code() == 1, (name, tn.tn_error_message())


def test_an_undefined_tensor_is_none_where_none_may_be_and_an_error_elsewhere(tn: Bridge) -> None:
    odd = [tn.keep(each) for each in odd_tensors(tn.lib)]
    undefined = next(each for each in odd if not tn.tn_tensor_is_defined(each))
    x = tn.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert tn.array(tn.call("linear", x, x, undefined)).tolist() == [[5.0, 11.0], [11.0, 25.0]]
    for name, arguments in [("copy", (undefined, x)), ("cat", ([x, undefined], 0))]:
        with pytest.raises(TenfoldError, match="was given an undefined tensor"):
            by_name(tn, name, *arguments)


def test_memory_that_is_yet_to_be_conjugated_is_not_handed_out(tn: Bridge) -> None:
    conjugated = tn.call("_conj", tn.call("complex", tn.tensor([1.0]), tn.tensor([2.0])))
    with pytest.raises(TenfoldError, match="tn_resolve_conj"):
        tn.tn_tensor_to_dlpack(conjugated)
    moved = tn.keep(tn.tn_to_device(conjugated, Device(0, -1), False))
    assert tn.array(moved).tolist() == [1 - 2j]
