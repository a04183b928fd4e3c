"""The rows of the op table, batched: what FlatIR's vmap makes of a row's lowering, against a loop."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import tenfold as tn
from tenfold.base import dtypes
from tenfold.base.errors import TenfoldError
from tenfold.flat.vmap import batched
from tenfold.ops.table import OpCall, Row, all_rows
from tenfold.tensor import Tensor
from tests.flat.batches import Loop
from tests.ops import generate, golden
from tests.ops.generate import Edges
from tests.ops.golden import Call
from tests.ops.torch_mlir_limits import ANSWERS, GIVEN_BACK

SIZE = 2
SAMPLES = 2
LARGE = 150  # ops: a lowering of more is batched in one way only
# Rows that have nothing to batch, and why.
NOT_BATCHED = {
    **{row.qualified: "its shape depends on data, so NumPy computes it" for row in all_rows() if row.host},
    **dict.fromkeys(ANSWERS, "it answers with a Python bool"),
    **dict.fromkeys(GIVEN_BACK, "it gives its argument back"),
}
ROWS = sorted(
    (
        row
        for row in all_rows()
        if row.qualified not in NOT_BATCHED
        and (row.random or any(a.type.kind == "Tensor" for a in row.schema.arguments))
    ),
    key=lambda row: row.qualified,
)
PARTS = 24


class Sample:
    """A row's lowering for one sample, and several draws of its inputs."""

    def __init__(self, row: Row, signature: OpCall, draws: list[list[np.ndarray]], text: str):
        self.row = row
        self.fragment = signature.fragment
        self.draws = draws
        self.text = text

    def ways(self, first: bool) -> Iterator[list[int | None]]:
        """Each input alone, in front, for a row's first sample; for others all inputs, behind."""
        count = len(self.fragment.params)
        if first and len(self.fragment.ops) <= LARGE:
            yield from ([0 if j == i else None for j in range(count)] for i in range(count))
        else:
            yield [-1] * count


def samples(row: Row) -> list[Sample]:
    """The first sample that a row takes, and its last: of floats, or else of integers, bools, complex."""
    for dtype in (dtypes.float32, dtypes.int64, dtypes.bool_, dtypes.complex64):
        found = []
        numbered = [
            each
            for each in generate.for_dtype(row, dtype)
            if not any(isinstance(a, Edges) for a in each[1].args)
        ]
        for number, sample in [*numbered[:1], *reversed(numbered[1:])]:
            enough = len(found) == SAMPLES or (found and len(found[0].fragment.ops) > LARGE)
            if not enough and (drawn := draw(row, number, sample, dtype)):
                found.append(drawn)
        if found:
            return found
    return []


def draw(row: Row, number: int, sample: generate.S, dtype: dtypes.DType) -> Sample | None:
    """The sample with inputs drawn several times, if the row takes them and has any to batch."""
    draws, signatures = [], set()
    for turn in range(SIZE):
        call = Call(row, number + 1000 * turn, sample, dtype)
        try:
            results = golden.flattened(call.ours())
        except (TenfoldError, RuntimeError, ValueError, IndexError, TypeError, NotImplementedError):
            return None
        nodes = [each.current().node for each in results if isinstance(each, Tensor)]
        if not nodes or nodes[0] is None or nodes[0].callee.row is not row or not nodes[0].inputs:
            return None
        signatures.add(nodes[0].callee)
        draws.append([Tensor(each).numpy() for each in nodes[0].inputs])
    # Where arguments are completed by numbers that tensors hold, each draw may be another program.
    return Sample(row, signatures.pop(), draws, str(call)) if len(signatures) == 1 else None


@pytest.mark.parametrize("part", range(PARTS))
def test_rows_batched_give_what_a_loop_over_the_batch_gives(part):
    tn.manual_seed(0)
    rows = ROWS[part::PARTS]
    found = {row: samples(row) for row in rows}
    bare = [row.qualified for row, each in found.items() if not each]
    assert not bare, f"{bare}: give them samples with tensors, or a reason in NOT_BATCHED"
    chosen = [each for several in found.values() for each in several]
    firsts = {several[0] for several in found.values()}
    tried = [(i, dims) for i, sample in enumerate(chosen) for dims in sample.ways(sample in firsts)]
    made = [batched(chosen[number].fragment, SIZE, dims) for number, dims in tried]
    results = Loop([function for function, _ in made])(
        [
            [
                draws[0] if dim is None else np.stack(draws, dim)
                for draws, dim in zip(zip(*chosen[number].draws, strict=True), dims, strict=True)
            ]
            for number, dims in tried
        ]
    )
    single = Loop([sample.fragment for sample in chosen])
    known: dict[tuple[int, ...], list[list[np.ndarray]]] = {}
    most = max(len(sample.fragment.params) for sample in chosen)

    def reference(number: int, turns: list[int]) -> list[np.ndarray]:
        """One run serves all samples: each of its inputs is from the draw that `turns` says."""
        key = (*turns, *[0] * (most - len(turns)))
        if key not in known:
            known[key] = single(
                [[each.draws[key[i]][i] for i in range(len(each.draws[0]))] for each in chosen]
            )
        return known[key][number]

    wrong = []
    for (number, dims), (_, stacked), arrays in zip(tried, made, results, strict=True):
        sample = chosen[number]
        for place in range(SIZE):
            golden_results = reference(number, [0 if dim is None else place for dim in dims])
            for array, has, expected in zip(arrays, stacked, golden_results, strict=True):
                mine = array[place] if has else array
                rtol, atol = golden.tolerance(sample.row, dtypes.from_numpy(expected.dtype))
                if mine.shape != expected.shape or not golden.close(mine, expected, rtol, atol).all():
                    wrong.append(
                        f"aten::{sample.row.qualified}, {sample.text}, batched at {dims}, element {place}: "
                        f"{mine.tolist()}, alone {expected.tolist()}"
                    )
    assert not wrong, f"{len(wrong)} wrong:\n  " + "\n  ".join(wrong[:20])


def test_nearly_all_rows_are_batched():
    assert len(ROWS) >= 640
    assert set(NOT_BATCHED) <= {row.qualified for row in all_rows()}
