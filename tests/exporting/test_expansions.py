"""Ops in other words against the rows they stand for: every expansion on its row's own samples."""

from __future__ import annotations

import ast

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
