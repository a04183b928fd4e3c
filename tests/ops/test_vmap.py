"""The rows of the op table, batched: what FlatIR's vmap makes of a row's lowering, against a loop."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import tenfold as tn
from tenfold import dtypes
from tenfold.errors import TenfoldError
from tenfold.flat.vmap import batched
from tenfold.ops.table import Row, Signature, all_rows
from tenfold.tensor import Tensor
from tests.flat.batches import Loop
from tests.ops import generate, golden
from tests.ops.generate import Edges
from tests.ops.golden import Call

SIZE = 2
SAMPLES = 2
# Rows whose lowerings are not FlatIR, or not one function of tensors.
NOT_BATCHED = {
    **dict.fromkeys(
        [row.qualified for row in all_rows() if row.host],
        "its result's shape depends on data, so NumPy computes it",
    ),
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
PARTS = 12


class Sample:
    """A row's lowering for one sample, and several draws of its inputs."""

    def __init__(self, row: Row, signature: Signature, draws: list[list[np.ndarray]], text: str):
        self.row = row
        self.fragment = signature.fragment
        self.draws = draws
        self.text = text

    def ways(self) -> Iterator[list[int | None]]:
        """Each input alone in front, and all of them behind."""
        count = len(self.fragment.params)
        for i in range(count):
            yield [0 if j == i else None for j in range(count)]
        if count > 1:
            yield [-1] * count


def samples(row: Row) -> list[Sample]:
    """The first sample of a row, and those that differ most from it in their number: floats, or else integers."""
    for dtype in (dtypes.float32, dtypes.int64, dtypes.bool_, dtypes.complex64):
        found = []
        numbered = [
            each for each in generate.for_dtype(row, dtype) if not any(isinstance(a, Edges) for a in each[1].args)
        ]
        for number, sample in [*numbered[:1], *reversed(numbered[1:])]:
            if len(found) < SAMPLES and (drawn := draw(row, number, sample, dtype)):
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
            call.theirs()
            results = golden.flattened(call.ours())
        except (TenfoldError, RuntimeError, ValueError, IndexError, TypeError, NotImplementedError):
            return None
        nodes = [each.current().node for each in results if isinstance(each, Tensor)]
        if not nodes or nodes[0] is None or nodes[0].signature.row is not row or not nodes[0].inputs:
            return None
        signatures.add(nodes[0].signature)
        draws.append([Tensor(each).numpy() for each in nodes[0].inputs])
    # Where arguments are completed by numbers that tensors hold, each draw may be another program.
    return Sample(row, signatures.pop(), draws, str(call)) if len(signatures) == 1 else None
