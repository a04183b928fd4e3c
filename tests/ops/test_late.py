"""Numbers given when a program runs must give what the same numbers written into the program give."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tn
from tenfold import dtypes
from tenfold.errors import TenfoldError
from tenfold.ops.table import Row, all_rows
from tenfold.runtime.executables import counting_compiles
from tenfold.tensor import Tensor
from tenfold.trace.graph import Node, Value
from tests.ops import generate, golden
from tests.ops.golden import Call

WITH_NUMBERS = sorted(
    (
        row
        for row in all_rows()
        if not (row.random or row.host)
        and any(a.type.kind == "Scalar" or a.name in ("index", "start") for a in row.schema.arguments)
    ),
    key=lambda row: row.qualified,
)


@pytest.mark.parametrize("row", WITH_NUMBERS, ids=[row.qualified for row in WITH_NUMBERS])
def test_late_numbers_change_nothing(row: Row) -> None:
    written: list[Tensor] = []
    late: list[Tensor] = []
    for dtype in (dtypes.float32, dtypes.int32):
        for number, sample in generate.for_dtype(row, dtype):
            try:
                results = golden.flattened(Call(row, number, sample, dtype).ours())
            except (TenfoldError, RuntimeError, ValueError, IndexError, TypeError, NotImplementedError):
                continue
            for result in results:
                if not isinstance(result, Tensor) or result.current().node is None:
                    continue
                value = result.current()
                loose, numbers = value.node.signature.loose
                if not numbers:
                    continue
                given = [
                    Value(p.type, value.device, buffer=np.asarray(n))
                    for p, n in zip(loose.fragment.params[len(value.node.inputs) :], numbers, strict=True)
                ]
                node = Node(loose, (*value.node.inputs, *given), None)
                written.append(result)
                late.append(Tensor(Value(value.type, value.device, node, value.index)))
    tn.eval(*written, *late)
    for one, other in zip(written, late, strict=True):
        assert one.dtype is other.dtype and one.shape == other.shape
        np.testing.assert_allclose(
            other.numpy().astype(np.float64), one.numpy().astype(np.float64), rtol=2e-6, atol=1e-6
        )


LOOPS = {
    "index": lambda x, i: x[i].sum(),
    "index from behind": lambda x, i: x[i - 12].sum(),
    "slice": lambda x, i: x[i : i + 3].sum(),
    "factor": lambda x, i: (x * (i + 0.5)).sum(),
    "several": lambda x, i: ((x + i) / (i + 1.5)).clamp(min=i * 0.25).sum(),
    "fill": lambda x, i: x.clone().fill_(i).sum(),
    "write": lambda x, i: (y := x.clone()).__setitem__(i, float(i)) or y.sum(),
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_over_numbers_compiles_a_few_times_only(name):
    body = LOOPS[name]
    array = np.arange(24, dtype=np.float32).reshape(12, 2)
    x = tn.tensor(array).eval()
    with counting_compiles() as compiles:
        found = [body(x, i).item() for i in range(8)]
    expected = [float(body(_torch(array), i)) for i in range(8)]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert compiles <= 4, compiles


def _torch(array: np.ndarray):
    import torch

    return torch.from_numpy(array.copy())
