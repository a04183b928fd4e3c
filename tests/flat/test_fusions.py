"""Estimates of the kernels that XLA makes."""

from __future__ import annotations

import pytest

import tenfold as tn
from tenfold import flat
from tenfold.base import dtypes
from tenfold.engines import xla
from tenfold.flat.fusions import largest_fusion
from tenfold.flat.ir import Function, TensorType, Value
from tenfold.mlir import stablehlo


def chain(length: int, cut: int = 0) -> Function:
    """So many ops, each on the result of the last, with a product after each `cut` of them."""
    x = value = Value(TensorType(dtypes.float32, (2, 2)))
    for i in range(length):
        if cut and i % cut == 0:
            value = flat.dot_general(value, x, ((1,), (0,)))
        value = flat.tanh(value)
    return Function([x], [value])


def test_ops_that_are_used_by_one_kernel_go_into_it():
    assert largest_fusion(chain(30), 10) == 30
    assert largest_fusion(chain(30, cut=6), 10) == 6


def test_an_op_that_two_kernels_use_is_in_neither():
    x = Value(TensorType(dtypes.float32, (2, 2)))
    shared = flat.tanh(flat.tanh(x))
    products = [flat.dot_general(flat.sin(shared), x, ((1,), (0,))) for _ in range(2)]
    assert largest_fusion(Function([x], products), 1) == 2


def test_a_program_of_few_ops_is_not_looked_at():
    assert largest_fusion(chain(30), 31) == 0


@pytest.mark.usefixtures("compiled_as_by_users")
def test_long_kernels_are_emitted_the_way_whose_time_does_not_grow_with_the_square():
    def settings(length: int) -> dict[str, object]:
        return dict(xla.overrides("cpu", stablehlo.emit(chain(length))))

    assert settings(stablehlo.LONG)["xla_cpu_use_fusion_emitters"] is False
    assert "xla_cpu_use_fusion_emitters" not in settings(100)


def test_integers_to_negative_powers_are_right_in_long_programs(on_xla, compiled_as_by_users):
    base, exponent = tn.tensor([-1, -1, 1, 2, -2]), tn.tensor([-1, -2, -3, -1, -5])
    y = tn.ones(5, dtype=tn.int64)
    for i in range(stablehlo.LONG // 2):
        y = (y * 3 + i) ^ 5
    assert (base**exponent + y * 0).tolist() == [-1, 1, 1, 0, 0]
