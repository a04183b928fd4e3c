"""Tensors that few expect: without memory, without strides, of one element many times, in a form of
their own, or none at all."""

from __future__ import annotations

import ctypes
from typing import Any

from tenfold.capi.binding import Device, Library, Scalar, handles, numbers

META = Device(14, -1)
SMALL = (0, 0.5, 13)  # numbers that are no handles


def odd_tensors(lib: Library) -> list[int]:
    """One handle of each, for the caller to free."""
    elements = (ctypes.c_float * 4)(1, float("nan"), 0, -2)
    leaf = lib.tn_tensor_from_data(elements, 6, *numbers([2, 2]), None, 0)
    made = [leaf, lib.tn_to_device(leaf, META, False)]
    made += [_first(lib, name, leaf) for name in ("to_sparse", "to_sparse_csr", "_neg_view", "complex")]
    made.append(_first(lib, "_conj", made[-1]))
    made.append(_first(lib, "_efficientzerotensor", [2, 2]))
    made.append(_first(lib, "as_strided", leaf, [3, 1000], [0, 0]))
    made.append(_undefined(lib))
    made += [_first(lib, "to_mkldnn", leaf), _first(lib, "quantize_per_tensor", leaf, 0.5, 0, 13)]
    made.append(_first(lib, "_nested_tensor_from_tensor_list", (leaf, leaf)))
    lib.tn_set_requires_grad(leaf, True)
    return made


def _first(lib: Library, name: str, *arguments: Any) -> int:
    """The first result of an operator of tensors, sizes and numbers."""
    stack = lib.tn_stack_new()
    for each in arguments * (2 if name == "complex" else 1):
        if isinstance(each, list):
            lib.tn_stack_push_ints(stack, *numbers(each))
        elif isinstance(each, tuple):
            lib.tn_stack_push_tensors(stack, *handles(each))
        elif each in SMALL:
            lib.tn_stack_push_scalar(stack, Scalar.of(each))
        else:
            lib.tn_stack_push_tensor(stack, each)
    lib.tn_call(f"aten::{name}".encode(), stack)
    found: int = lib.tn_stack_tensor_at(stack, 0)
    lib.tn_stack_free(stack)
    return found


def _undefined(lib: Library) -> int:
    """What a gradient that was not asked for comes back as."""
    stack = lib.tn_stack_new()
    image = lib.tn_tensor_from_data((ctypes.c_float * 1)(), 6, *numbers([1, 1, 1, 1]), None, 0)
    for _ in range(3):
        lib.tn_stack_push_tensor(stack, image)
    lib.tn_stack_push_none(stack)
    for entry in (1, 0, 1):
        lib.tn_stack_push_ints(stack, *numbers([entry, entry]))
    lib.tn_stack_push_bool(stack, False)
    lib.tn_stack_push_ints(stack, *numbers([0, 0]))
    lib.tn_stack_push_int(stack, 1)
    wanted = lib.tn_value_bool_list((ctypes.c_bool * 3)(False, True, False), 3)
    lib.tn_stack_push(stack, wanted)
    lib.tn_call(b"aten::convolution_backward", stack)
    found: int = lib.tn_stack_tensor_at(stack, 0)
    assert lib.tn_tensor_is_defined(found) == 0
    lib.tn_value_free(wanted)
    lib.tn_free(image)
    lib.tn_stack_free(stack)
    return found
