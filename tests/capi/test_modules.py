"""TorchScript modules made part by part, and methods traced over whole values."""

from __future__ import annotations

import ctypes
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import torch

from tenfold.base.errors import EngineError, TenfoldError
from tests.capi.bridge import Bridge, Handle

TRACED = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
INPUT = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


class Values:
    """Values that a test makes, freed with it."""

    def __init__(self, tn: Bridge):
        self.tn, self.made = tn, list[int]()

    def keep(self, value: int) -> int:
        self.made.append(value)
        return value

    def tensor(self, handle: int) -> int:
        return self.keep(self.tn.tn_value_tensor(handle))

    def many(self, values: list[int]) -> tuple[object, int]:
        return (ctypes.c_void_p * len(values))(*values), len(values)

    def free(self) -> None:
        for each in self.made:
            self.tn.tn_value_free(each)


@contextmanager
def values_of(tn: Bridge) -> Iterator[Values]:
    made = Values(tn)
    try:
        yield made
    finally:
        made.free()


@contextmanager
def empty_module(tn: Bridge) -> Iterator[tuple[int, int]]:
    """A module and a stack for its example inputs."""
    module, inputs = tn.tn_module_new(b"Made"), tn.tn_stack_new()
    yield module, inputs
    tn.tn_module_free(module)
    tn.tn_stack_free(inputs)


def trace(tn: Bridge, module: int, inputs: int, body: Callable[[Bridge, Values, int], int]) -> None:
    """Trace what `body` makes of the first argument, a value of its own making."""

    def run(stack: int, user: object) -> int:
        kept = Bridge.__new__(Bridge)
        kept.lib, kept.made = tn.lib, []
        with values_of(tn) as values:
            found = body(kept, values, values.keep(tn.tn_stack_at(stack, 0)))
            tn.tn_stack_clear(stack)
            if found:
                tn.tn_stack_push(stack, found)
        kept.close()
        return 0

    tn.tn_module_trace_method(module, b"forward", TRACED(run), inputs, True, None)


def loaded(tn: Bridge, module: int) -> torch.jit.ScriptModule:
    return torch.jit.load(io.BytesIO(tn.array(tn.keep(tn.tn_module_save_data(module))).tobytes()))


def test_a_traced_method_takes_a_dict_and_gives_a_tuple(tn: Bridge) -> None:
    def sum_and_product(kept: Bridge, values: Values, given: int) -> int:
        taken = (tn.tn_value_to_tensor(values.keep(tn.tn_value_at(given, i))) for i in (0, 1))
        x, y = (Handle(kept.keep(each)) for each in taken)
        both = [values.tensor(kept.call(op, x, y)) for op in ("add.Tensor", "mul.Tensor")]
        return values.keep(tn.tn_value_tuple(*values.many(both)))

    with empty_module(tn) as (module, inputs), values_of(tn) as values:
        keys = [values.keep(tn.tn_value_string(each)) for each in (b"a", b"b")]
        tensors = [values.tensor(tn.tensor(INPUT + i)) for i in (0, 1)]
        given = values.keep(tn.tn_value_dict(values.many(keys)[0], *values.many(tensors)))
        tn.tn_stack_push(inputs, given)
        trace(tn, module, inputs, sum_and_product)
        assert tn.tn_module_arity(module, b"forward") == 1
        x, y = torch.tensor(INPUT), torch.tensor(INPUT * 3)
        both, product = loaded(tn, module)({"a": x, "b": y})
        torch.testing.assert_close(both, x + y)
        torch.testing.assert_close(product, x * y)


def test_parameters_of_a_traced_module_stay_parameters(tn: Bridge) -> None:
    weight = tn.tensor(np.ones((3, 1), np.float32))

    def times_weight(kept: Bridge, values: Values, given: int) -> int:
        x = Handle(kept.keep(tn.tn_value_to_tensor(given)))
        return values.tensor(kept.call("mm", x, weight))

    with empty_module(tn) as (module, inputs):
        child = tn.tn_module_add_child(module, b"part")
        tn.tn_module_set_parameter(child, b"weight", weight)
        tn.tn_module_set_buffer(module, b"shift", tn.tensor(np.zeros(1, np.float32)))
        tn.tn_stack_push_tensor(inputs, tn.tensor(INPUT))
        trace(tn, module, inputs, times_weight)
        found = loaded(tn, module)
        assert [name for name, _ in found.named_parameters()] == ["part.weight"]
        assert [name for name, _ in found.named_buffers()] == ["shift"]
        with torch.no_grad():
            found.part.weight.fill_(5)
        torch.testing.assert_close(found(torch.tensor(INPUT)), torch.tensor(INPUT).sum(1, keepdim=True) * 5)
        with pytest.raises(TenfoldError, match="already has a part weight"):
            tn.tn_module_set_parameter(child, b"weight", weight)
        tn.tn_module_free(child)


def test_a_result_that_no_trace_can_give_is_refused(tn: Bridge) -> None:
    with empty_module(tn) as (module, inputs):
        tn.tn_stack_push_tensor(inputs, tn.tensor(INPUT))
        with pytest.raises(EngineError, match="Only tensors, lists, tuples of tensors"):
            trace(tn, module, inputs, lambda kept, values, given: values.keep(tn.tn_value_int(1)))
        with pytest.raises(EngineError, match="one result on its stack"):
            trace(tn, module, inputs, lambda kept, values, given: 0)
