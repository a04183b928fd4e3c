"""The rows of linear algebra on a GPU, on every sample of floats and complex numbers, against PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.base import dtypes
from tenfold.base.errors import TenfoldError
from tenfold.ops.schema import Argument
from tenfold.ops.table import Row, all_rows
from tests.ops import generate, golden
from tests.ops.golden import Call

FAMILIES = ("factors", "matrices", "matrix_functions", "solving", "spectra", "symmetric_factors")
ROWS = [row for row in all_rows() if row.lowering.__module__.rpartition(".")[2] in FAMILIES]
DTYPES = (dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128)

pytestmark = pytest.mark.skipif(not tn.cuda.is_available(), reason="there is no GPU here")


def on_cuda(argument: Argument, value: Any) -> Any:
    converted = golden.to_tenfold(argument, value)
    return converted.to("cuda") if isinstance(value, np.ndarray) else converted


@pytest.mark.parametrize("row", ROWS, ids=[row.qualified for row in ROWS])
def test_row_on_a_gpu_agrees_with_pytorch(row: Row) -> None:
    results: list[tuple[Call, list[Any], list[Any]]] = []
    for dtype in DTYPES:
        for number, sample in generate.for_dtype(row, dtype):
            call = Call(row, number, sample, dtype)
            arguments, options = call.arguments(on_cuda)
            try:
                expected = golden.flattened(call.theirs())
                results.append(
                    (call, golden.flattened(golden.function(row)(*arguments, **options)), expected)
                )
            except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, TenfoldError):
                continue  # what either refuses is compared on the CPU
    tensors = [found for _, ours, _ in results for found in ours if isinstance(found, tn.Tensor)]
    tn.eval(*tensors)
    wrong = [
        f"{call}: {difference}"
        for call, ours, theirs in results
        for mine, reference in zip(ours, theirs, strict=True)
        if (difference := compared(row, mine, reference)) is not None
    ]
    assert results and not wrong, "\n".join(wrong[:20])


def compared(row: Row, mine: Any, reference: Any) -> str | None:
    found = mine.cpu() if isinstance(mine, tn.Tensor) else mine
    return golden.difference(row, found, reference, values=not (row.random or row.differs))
