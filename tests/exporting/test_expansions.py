"""Ops in other words against the rows they stand for: every expansion on its row's own samples."""

from __future__ import annotations

import ast
import math

import numpy as np
import pytest

import tenfold as tn
from tenfold.base import dtypes
from tenfold.base.errors import TenfoldError
from tenfold.exporting.expansions import FOR_LOWERING, FOR_OPEN_STABLEHLO, STEPS
from tenfold.exporting.rewriting import rewritten
from tenfold.ops.table import TABLE, Row, all_rows
from tenfold.tensor import Tensor
from tenfold.trace.collect import collect
from tenfold.trace.graph import results_of
from tests.ops import generate, golden
from tests.ops.golden import Call

EXPANSIONS = {**FOR_LOWERING, **FOR_OPEN_STABLEHLO}
ROWS = {row.qualified: row for row in all_rows() if row.qualified in EXPANSIONS}
NAMES = sorted(EXPANSIONS)
TOGETHER = 24  # of them share a compilation
SLACK = 10  # in other words it is another order of rounding


def expanded(results: list[Tensor], name: str) -> list[Tensor] | None:
    """What the expansion gives in the results' place; None where it is not called upon."""
    program, _ = collect([each.current() for each in results])
    found = rewritten(program, {}, range(len(program.outputs)), {name: EXPANSIONS[name]})
    if found is program:
        return None
    values = {node: results_of(node, found.device) for node in found.nodes}
    return [
        Tensor(values[found.nodes[place]][index] if place >= 0 else found.leaves[-1 - place])
        for place, index in found.outputs
    ]


def pairs(name: str) -> list[tuple[Call, list[Tensor], list[Tensor]]]:
    """Each call of the row that can be recorded: its results, and the expansion's."""
    row, found = ROWS[name], []
    for dtype in (dtypes.float32, dtypes.int64, dtypes.float16):
        for number, sample in generate.for_dtype(row, dtype):
            call = Call(row, number, sample, dtype)
            try:
                results = [each for each in golden.flattened(call.ours()) if isinstance(each, Tensor)]
            except TenfoldError:
                continue
            others = expanded(results, name) if results else None
            if others is not None:
                found.append((call, results, others))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, len(NAMES), TOGETHER))
def test_an_expansion_computes_what_its_row_does(start):
    assert set(NAMES) == set(ROWS)
    compared = {name: pairs(name) for name in NAMES[start : start + TOGETHER]}
    everything = [pair for several in compared.values() for pair in several]
    tn.eval(*[each for _, rows, others in everything for each in (*rows, *others)])
    wrong = [
        f"{name} {call}: {difference}"
        for name, several in compared.items()
        for call, rows, others in several
        for one, two in zip(rows, others, strict=True)
        if (difference := differing(ROWS[name], one, two))
    ]
    assert not wrong, "\n".join(wrong)
    assert [name for name, several in compared.items() if not several] == []


def differing(row: Row, one: Tensor, two: Tensor) -> str | None:
    if (one.dtype, one.shape) != (two.dtype, two.shape):
        return f"{one.dtype.short}{list(one.shape)}, in other words {two.dtype.short}{list(two.shape)}"
    rtol, atol = golden.tolerance(row, one.dtype)
    wrong = ~golden.close(one.numpy(), two.numpy(), rtol * SLACK, atol * SLACK)
    return f"{one.numpy()[wrong][:3]}, in other words {two.numpy()[wrong][:3]}" if wrong.any() else None


def test_exported_functions_keep_their_digits_at_the_ends_of_the_range():
    x = tn.tensor([-math.inf, -30.0, -2.0, -1.0, 0.0, 0.5, 1.0, 1.001, 2.0, 5.0, 6.0, 9.0, 27.0, math.nan])
    for dtype, rtol in ((tn.float32, 2e-6), (tn.float64, 1e-14)):
        (found,) = EXPANSIONS["erfc"](self=x.to(dtype))
        expected = np.array([math.erfc(each) for each in x.tolist()])
        tiny = tn.finfo(dtype).tiny
        np.testing.assert_allclose(found.numpy(), expected, rtol=rtol, atol=tiny)
    large = tn.tensor([1e30, 3e-30, 0.0, math.inf, -3.0])
    (found,) = EXPANSIONS["hypot"](self=large, other=tn.tensor([1e30, 4e-30, 0.0, math.nan, 4.0]))
    np.testing.assert_allclose(found.numpy(), [2**0.5 * 1e30, 5e-30, 0, math.inf, 5], rtol=1e-6)


def test_a_query_that_may_attend_to_nothing_gets_zeros():
    x, mask = tn.ones(1, 2, 3), tn.tensor([[True, False], [False, False]])
    given = {"dropout_p": 0.0, "is_causal": False, "scale": None, "enable_gqa": False}
    (found,) = EXPANSIONS["scaled_dot_product_attention"](query=x, key=x, value=x, attn_mask=mask, **given)
    assert found.tolist() == [[[1, 1, 1], [0, 0, 0]]]


def test_every_form_that_a_row_states_names_its_arguments_and_functions_that_exist():
    used = set()
    for row in all_rows():
        for text in (row.torch_dialect, row.torch_lowering, row.open_stablehlo):
            if text not in ("", "own name"):
                names = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
                others = names - {each.name for each in row.schema.arguments}
                assert others <= TABLE.keys() | STEPS.keys(), row.qualified
                used |= others
    assert STEPS.keys() <= used
    assert not STEPS.keys() & TABLE.keys()


def test_an_alias_is_written_by_the_first_name_of_its_op():
    x = tn.ones(2, 3)
    assert "torch.aten.transpose.int" in str(tn.export(lambda x: x.swapaxes(0, 1), (x,), dialect="torch"))
    assert "torch.aten.mul.Tensor" in str(tn.export(lambda x: tn.multiply(x, x), (x,), dialect="torch"))
