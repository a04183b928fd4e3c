"""Numbers given when a program runs must give what the same numbers written into the program give."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import tenfold as tn
from tenfold.base import dtypes
from tenfold.base.errors import TenfoldError
from tenfold.ops.table import Row, all_rows, written as stays_written
from tenfold.runtime.executables import counting_compiles
from tenfold.tensor import Tensor
from tenfold.trace.graph import Node, Value
from tests.ops import generate, golden
from tests.ops.golden import Call

# Their samples leave every number at its default, or give it as a tensor: there is none to compare.
NONE_GIVEN = frozenset(
    [
        "allclose",
        "cauchy",
        "cosine_similarity",
        "exponential",
        "log_normal",
        "logspace.Tensor_Tensor",
        "norm.ScalarOpt_dtype",
        "normal_functional",
        "slice_backward",
        "slice_copy.Tensor",
        "uniform",
    ]
)

WITH_NUMBERS = sorted(
    (
        row
        for row in all_rows()
        if not (row.host or row.late is stays_written)
        and any(
            a.type.kind in ("Scalar", "float")
            or (a.type.kind == "int" and a.name in ("index", "start", "shifts", "diagonal"))
            for a in row.schema.arguments
            if row.late or not a.type.is_list
        )
    ),
    key=lambda row: row.qualified,
)


@pytest.mark.parametrize("row", WITH_NUMBERS, ids=[row.qualified for row in WITH_NUMBERS])
def test_late_numbers_change_nothing(row: Row) -> None:
    written: list[Tensor] = []
    late: list[Tensor] = []
    open_numbers = 0
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
                callee = value.node.callee
                if callee.row is row:
                    open_numbers += len((row.late or row._late)(callee.types, callee.arguments)[1])
                loose, numbers = callee.loose
                if not numbers:
                    continue
                given = [
                    Value(p.type, value.device, buffer=np.asarray(n))
                    for p, n in zip(loose.fragment.params[len(value.node.inputs) :], numbers, strict=True)
                ]
                node = Node(loose, (*value.node.inputs, *given), None)
                written.append(result)
                late.append(Tensor(Value(value.type, value.device, node, value.index)))
    assert (not open_numbers) == (row.qualified in NONE_GIVEN), (
        "its samples give no number that may come late"
    )
    if not open_numbers:
        return
    assert written, "no number of its samples came late: say late=written, if its lowering must know them"
    tn.eval(*written, *late)
    for one, other in zip(written, late, strict=True):
        assert one.dtype is other.dtype and one.shape == other.shape
        wide = np.complex128 if one.is_complex() else np.float64
        np.testing.assert_allclose(other.numpy().astype(wide), one.numpy().astype(wide), rtol=2e-6, atol=1e-6)


def gradient_of(f, x):
    """The sum of squares of the gradient of f(x), by either library."""
    x = x.detach().requires_grad_()
    f(x).sum().backward()
    return (x.grad**2).sum()


LOOPS = {
    "index": lambda x, i: x[i].sum(),
    "index from behind": lambda x, i: x[i - 12].sum(),
    "slice": lambda x, i: x[i : i + 3].sum(),
    "factor": lambda x, i: (x * (i + 0.5)).sum(),
    "several": lambda x, i: ((x + i) / (i + 1.5)).clamp(min=i * 0.25).sum(),
    "fill": lambda x, i: x.clone().fill_(i).sum(),
    "write": lambda x, i: (y := x.clone()).__setitem__(i, float(i)) or y.sum(),
    "number before": lambda x, i: ((i + 0.5) - x).sum() + ((i + 0.5) / (x + 1)).sum(),
    "power": lambda x, i: gradient_of(lambda x: (x + 1) ** (i + 1.25), x),
    "norm": lambda x, i: gradient_of(lambda x: x.norm(i + 2.5), x),
    "roll": lambda x, i: (x.roll(i - 3, 0) * x).sum() + (x.roll((i, -i), (0, 1)) * x).sum(),
    "narrow": lambda x, i: x.narrow(0, i - 10, 3).sum(),
    "choice": lambda x, i: sys.modules[type(x).__module__.split(".")[0]].where(x > 2, i + 0.5, 0.0).sum(),
    "size": lambda x, i: x.renorm(2, 0, i + 0.5).sum(),
    "triangle": lambda x, i: x.tril(i - 4).sum(),
    "quantile": lambda x, i: x.quantile(i / 8 + 0.05),
    "weights": lambda x, i: x.lerp(x * x, i / 8 + 0.05).sum(),
    "product": lambda x, i: x.addmm(x @ x.T, x, beta=i + 1.5, alpha=i + 2.5).sum(),
    "epsilon": lambda x, i: gradient_of(lambda x: x * functional(x).layer_norm(x**2, (2,), eps=i + 0.5), x),
    "loss": lambda x, i: gradient_of(lambda x: functional(x).huber_loss(x, x * 0, delta=i + 1.5), x),
    "labels": lambda x, i: functional(x).cross_entropy(x, (x[:, 0] * 0).long(), label_smoothing=i / 8 + 0.05),
}


def functional(x):
    """The functions of the library that x is of."""
    return tn.nn.functional if isinstance(x, Tensor) else sys.modules["torch"].nn.functional


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


def test_a_compiled_function_serves_other_numbers_too():
    f = tn.compile(lambda x, factor, options: (x * factor) ** options["power"])
    x = tn.ones(3) * 2
    with counting_compiles() as compiles:
        found = [f(x, i + 0.5, {"power": i + 5}).sum().item() for i in range(8)]
    np.testing.assert_allclose(found, [3 * (2 * i + 1.0) ** (i + 5) for i in range(8)], rtol=1e-5)
    assert compiles <= 5, compiles


def test_draws_do_not_depend_on_whether_numbers_are_written_into_the_program():
    x = tn.ones(50)

    def drawn(p):
        tn.manual_seed(3)
        counts = tn.empty(9).geometric_(p).tolist()
        return tn.dropout(x, p, True).tolist(), (tn.empty(4).uniform_(-p, p).tolist(), counts)

    first = [drawn(p) for p in (0.2, 0.4, 0.6, 0.8)]
    assert first == [drawn(p) for p in (0.2, 0.4, 0.6, 0.8)]
    for p, (kept, _) in zip((0.2, 0.4, 0.6, 0.8), first, strict=True):
        assert 0.3 < sum(each != 0 for each in kept) / 50 / (1 - p) < 1.9
        np.testing.assert_allclose(max(kept), 1 / (1 - p), rtol=1e-6)


def test_drawing_with_other_probabilities_compiles_a_few_times_only():
    with counting_compiles() as compiles:
        drawn = [tn.empty(200).geometric_(0.1 + i / 10).mean().item() for i in range(8)]
    assert compiles <= 4, compiles
    np.testing.assert_allclose(drawn, [1 / (0.1 + i / 10) for i in range(8)], rtol=0.4)


def _torch(array: np.ndarray):
    import torch

    return torch.from_numpy(array.copy())
