"""Small state travels in few vectors: what is packed, and that every tensor still has its own data."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tn
from tenfold import flat
from tenfold.base import dtypes
from tenfold.engines.numpy import run
from tenfold.flat.ir import TensorType
from tenfold.runtime.packing import FEW, INLINE, Pending, pack

SMALL = TensorType(dtypes.float32, (3,))
MATRIX = TensorType(dtypes.float32, (2, 2))


def written(count: int) -> list[tuple[int, int]]:
    return [(i, i) for i in range(count)]


def test_few_tensors_are_not_packed():
    assert pack(written(FEW), [], [SMALL] * FEW, [SMALL] * FEW) is None
    assert pack(written(FEW + 1), [], [SMALL] * (FEW + 1), [SMALL] * (FEW + 1)) is not None


def test_a_program_with_a_large_array_is_not_packed():
    large = TensorType(dtypes.float32, (INLINE // 4 + 1,))
    types = [SMALL] * 5
    assert pack(written(5), [], [*types, large], types) is None


def test_only_float32_that_keeps_its_type_is_packed():
    count = TensorType(dtypes.int64, ())
    params = [SMALL] * 5 + [count, SMALL]
    results = [SMALL] * 5 + [count, MATRIX]
    packing = pack(written(7), [], params, results)
    assert packing is not None and packing.taken == frozenset(range(5))


def test_a_vector_holds_no_more_than_what_xla_runs_inline():
    several = TensorType(dtypes.float32, (INLINE // 16,))
    packing = pack(written(6), [], [several] * 6, [several] * 6)
    assert packing is not None and [state.size for state in packing.states] == [
        4 * several.numel,
        2 * several.numel,
    ]


def test_state_that_is_written_and_results_that_are_seldom_read_travel_apart():
    packing = pack(written(4), [4, 5], [SMALL] * 4, [SMALL] * 6)
    assert packing is not None and len(packing.states) == len(packing.outcomes) == 1
    assert packing.results == frozenset(range(6))


def test_the_packed_program_computes_the_same():
    params = [flat.Value(type) for type in (SMALL, MATRIX, SMALL, SMALL, SMALL)]
    scale = flat.Value(TensorType(dtypes.float32, ()))
    function = flat.Function([*params, scale], [*[param * scale for param in params], scale + 1.0])
    types = [param.type for param in function.params]
    packing = pack(written(5), [], types, [result.type for result in function.results])
    assert packing is not None
    packed = packing.applied(function)
    assert [param.type.shape for param in packed.params] == [(), (16,)]
    vector = np.arange(16, dtype=np.float32)
    alone, after = run(packed, [np.array(2, np.float32), vector])
    assert alone == 3
    np.testing.assert_array_equal(after, vector * 2)


def test_the_places_of_lent_memory_follow():
    packing = pack(written(4), [], [SMALL] * 4 + [MATRIX] * 2, [SMALL] * 4 + [MATRIX] * 2)
    assert packing is not None
    params = [flat.Value(MATRIX), flat.Value(MATRIX), flat.Value(TensorType(dtypes.float32, (12,)))]
    function = flat.Function(params, params)
    assert packing.donated([(5, 4)], function) == ((1, 0), (2, 2))


def test_each_tensor_is_cut_out_of_the_vector():
    pending = Pending(np.arange(7, dtype=np.float32), [(0, SMALL), (3, MATRIX)])
    assert pending.take(0).tolist() == [0, 1, 2]
    assert pending.take(1).tolist() == [[3, 4], [5, 6]]
    pending.take(0)[:] = 9  # a copy
    assert pending.take(0).tolist() == [0, 1, 2]


@pytest.mark.parametrize("hold", [False, True], ids=["nobody looks", "a result is held"])
def test_a_compiled_step_reads_its_packed_state_as_each_tensor_shows_it(hold):
    state = [tn.full((3,), float(i)).eval() for i in range(6)]

    @tn.compile
    def step(x):
        for each in state:
            each.mul_(2).add_(x)
        return x * 1

    held = []
    for _ in range(4):
        step(tn.ones(3))
        if hold:
            held.append(state[2] * 1)
    expected = [16 * i + 15 for i in range(6)]
    assert [each[0].item() for each in state] == expected
    assert [one[0].item() for one in held] == ([5, 11, 23, 47] if hold else [])
    state[3].fill_(1.0)  # written by somebody else between two calls
    step(tn.ones(3))
    assert [each[0].item() for each in state] == [
        3 if i == 3 else 2 * value + 1 for i, value in enumerate(expected)
    ]


def test_a_packed_tensor_may_be_given_other_memory():
    state = [tn.full((3,), float(i)).eval() for i in range(6)]

    @tn.compile
    def step(x):
        for each in state:
            each.mul_(2).add_(x)
        return x * 1

    for _ in range(2):
        step(tn.ones(3))
    state[3].data = tn.full((3,), 7.0)
    step(tn.ones(3))
    step(tn.ones(3))
    assert [each[0].item() for each in state] == [31 if i == 3 else 16 * i + 15 for i in range(6)]


def test_a_step_that_fails_gives_every_vector_back():
    state = [tn.full((INLINE // 8,), float(i)).eval() for i in range(12)]

    @tn.compile
    def step(x, places):
        for each in state:
            each.add_(x)
        return x.index_select(0, places)

    x = tn.ones(INLINE // 8)
    for _ in range(2):
        step(x, tn.tensor([0, 1])).tolist()
    ((variant,),) = step.programs._recorded.values()
    assert len(variant.plan.packing.states) > 1
    for _ in range(2):
        with pytest.raises(IndexError):
            step(x, tn.tensor([0, 1000])).tolist()
        assert [each[0].item() for each in state] == [i + 2 for i in range(12)]
    step(x, tn.tensor([0, 1]))
    assert [each[1].item() for each in state] == [i + 3 for i in range(12)]
