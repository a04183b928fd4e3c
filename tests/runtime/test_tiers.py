"""The policy of tiers: estimates from types, and what is decided by them."""

from __future__ import annotations

import pytest

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError
from tenfold.flat.ir import Function, TensorType, Value
from tenfold.runtime import tiers
from tenfold.runtime.tiers import Tier, Work, decide, work_of

TINY = Work(ops=5, bytes=1000)
SMALL = Work(ops=40, bytes=1000)
LARGE = Work(ops=5, bytes=1 << 30, flops=10**11)
MIDDLE = Work(ops=100, bytes=20 << 20)


def matrix(*shape: int) -> Value:
    return Value(TensorType(dtypes.float32, shape))


def test_a_product_costs_two_operations_for_each_multiplication():
    x, y = matrix(8, 16), matrix(16, 4)
    work = work_of(Function([x, y], [flat.dot_general(x, y, ((1,), (0,)))]))
    assert work.flops == 2 * 8 * 16 * 4
    assert work.bytes == 4 * (8 * 16 + 16 * 4 + 8 * 4)


def test_a_grouped_convolution_costs_what_its_groups_do():
    x, kernel = matrix(2, 8, 10, 10), matrix(8, 1, 3, 3)
    numbers = flat.ConvDimensions(0, 1, (2, 3), 1, 0, (2, 3), 0, 1, (2, 3))
    value = flat.convolution(x, kernel, numbers, groups=8)
    assert work_of(Function([x, kernel], [value])).flops == 2 * value.numel * 9


def test_views_move_nothing_and_functions_count_their_elements():
    x = matrix(10, 10)
    assert work_of(Function([x], [flat.transpose(x, (1, 0))])).bytes == 0
    assert work_of(Function([x], [flat.tanh(x)])).calls == 100
    assert work_of(Function([x], [flat.add(x, x)])).calls == 0


def test_a_loop_is_taken_to_go_round_many_times():
    count = Value(TensorType(dtypes.int32, ()))
    once = work_of(Function([count], [count + 1]))
    loop = flat.while_loop(lambda i: i < 10, lambda i: (i + 1,), (count,))
    assert work_of(Function([count], loop)).ops >= tiers.ROUNDS * once.ops


def test_a_small_program_runs_at_once_and_is_compiled_aside_when_it_comes_again():
    assert decide(SMALL, 0).tier is Tier.NUMPY
    assert decide(SMALL, 1).tier is Tier.NUMPY  # to compile it takes a thousand times as long
    assert decide(SMALL, 100).tier is Tier.BACKGROUND
    assert decide(MIDDLE, 1).tier is Tier.NUMPY and decide(MIDDLE, 2).tier is Tier.BACKGROUND


def test_what_is_quicker_than_a_call_of_xlas_is_never_compiled():
    assert decide(TINY, 100).tier is Tier.NUMPY


def test_what_takes_longer_than_its_compile_is_compiled_first():
    assert decide(LARGE, 0).tier is Tier.XLA


def test_what_takes_less_than_its_compile_runs_on_tier_0_at_first():
    assert MIDDLE.seconds < MIDDLE.compile_seconds
    assert decide(MIDDLE, 0).tier is Tier.NUMPY


def test_a_gpu_and_deterministic_results_keep_to_xla():
    assert decide(SMALL, 0, device="cuda").tier is Tier.XLA
    assert decide(SMALL, 0, device="cuda", setting="numpy").tier is Tier.XLA
    assert decide(SMALL, 0, pinned=True).tier is Tier.XLA


def test_the_environment_forces_a_tier(choose_tier):
    choose_tier("numpy")
    assert decide(LARGE, 9, setting=tiers.setting()).tier is Tier.NUMPY
    choose_tier("xla")
    assert decide(SMALL, 0, setting=tiers.setting()) == (Tier.XLA, "TENFOLD_TIER=xla")
    choose_tier("fast")
    with pytest.raises(ArgumentError, match="names no tier"):
        tiers.setting()
