"""Calls that no host should make, each an error of a known code: `python -m tests.capi.bad_arguments`."""

from __future__ import annotations

import ctypes
from typing import Any

from tenfold.capi.binding import Device, Scalar
from tests.capi.bridge import Bridge

ARGUMENT, INDEX, HANDLE, NOT_FOUND, MEMORY, TORCH = 1, 2, 4, 5, 6, 8

count = ctypes.c_int64
reference = ctypes.byref


def sizes(*entries: int) -> tuple[Any, Any]:
    return (ctypes.c_int64 * len(entries))(*entries), count(len(entries))


def calls(tensor: int, value: int) -> list[tuple[int, str, tuple[Any, ...]]]:
    x, wrong = ctypes.c_void_p(tensor), ctypes.c_void_p(value)
    dim, none = count(0), ctypes.c_void_p()
    bad_dtype, bad_device = reference(ctypes.c_int32(77)), reference(Device(50, 0))
    return [
        (ARGUMENT, "tn_add", (none, x)),
        (ARGUMENT, "tn_add_with", (x, x, reference(Scalar(9)))),
        (ARGUMENT, "tn_sum_dim_IntList", (x, sizes(0)[0], count(-1), False)),
        (INDEX, "tn_sum_dim_IntList", (x, *sizes(5), False)),
        (INDEX, "tn_select", (x, dim, count(1 << 62))),
        (ARGUMENT, "tn_cat", (none, count(2), dim)),
        (ARGUMENT, "tn_cat", ((ctypes.c_void_p * 2)(tensor, None), count(2), dim)),
        (TORCH, "tn_zeros", sizes(1 << 40, 1 << 40)),
        (MEMORY, "tn_zeros", sizes(1 << 50)),
        (TORCH, "tn_zeros", sizes(-1)),
        (ARGUMENT, "tn_zeros_with", (*sizes(1), bad_dtype, none, none, none)),
        (ARGUMENT, "tn_zeros_with", (*sizes(1), none, none, bad_device, none)),
        (TORCH, "tn_gelu_with", (x, ctypes.c_char_p(b"nope"))),
        (ARGUMENT, "tn_topk", (x, count(1), count(-1), True, True, none)),
        (NOT_FOUND, "tn_call", (ctypes.c_char_p(b"aten::nope"), none)),
        (ARGUMENT, "tn_find", (none,)),
        (ARGUMENT, "tn_stack_push_int", (none, count(1))),
        (ARGUMENT, "tn_reflection_pad1d", (x, none, count(0))),
        (HANDLE, "tn_stack_count", (wrong,)),
    ]


def main() -> None:
    tn = Bridge()
    value = tn.tn_value_int(1)
    for code, name, arguments in calls(tn.tensor([[1.0, 2.0]]), value):
        function = tn.lib.library[name]
        function.restype = ctypes.c_void_p
        function(*arguments)
        assert tn.tn_error_code() == code, (name, tn.tn_error_code(), tn.tn_error_message())
        tn.tn_error_clear()
    tn.tn_value_free(value)
    tn.close()
    assert tn.tn_live_tensors() == tn.tn_live_objects() == 0


if __name__ == "__main__":
    main()
