"""The names that come from the op table are PyTorch's: functions, methods, in-place methods."""

from __future__ import annotations

from typing import Any

import torch

import tenfold as tn
from tenfold.ops.table import TABLE, Row

# Where PyTorch keeps the functions of a module of the table.
THEIRS: dict[str | None, list[Any]] = {
    None: [torch],
    "special": [torch.special],
    "linalg": [torch.linalg],
    "fft": [torch.fft],
    "nn": [torch.nn.functional],
}


def theirs(row: Row) -> bool:
    return any(hasattr(each, row.python_name) for each in THEIRS[row.module])


OURS: dict[str | None, Any] = {
    None: tn,
    "special": tn.special,
    "linalg": tn.linalg,
    "fft": tn.fft,
    "nn": tn.nn.functional,
}


def ours(row: Row) -> bool:
    return hasattr(OURS[row.module], row.python_name)


FIRST = {name: rows[0] for name, rows in TABLE.items()}


def test_every_function_is_one_of_pytorchs():
    assert [
        name for name, rows in TABLE.items() if any(r.function for r in rows) and not theirs(FIRST[name])
    ] == []


def test_every_function_of_pytorchs_is_there():
    assert [name for name, row in FIRST.items() if theirs(row) and not ours(row)] == []


def test_every_function_of_the_table_is_there():
    functions = [name for name, rows in TABLE.items() if any(row.function for row in rows)]
    assert [name for name in functions if not ours(FIRST[name])] == []


def test_every_method_is_one_of_pytorchs():
    methods = [name for name, rows in TABLE.items() if any(r.method and not r.module for r in rows)]
    assert [name for name in methods if not hasattr(torch.Tensor, name)] == []


def test_every_method_of_pytorchs_is_there():
    namesakes = {"index"}  # PyTorch's Tensor.index is about first-class dimensions, not aten::index
    methods = [name for name in TABLE if hasattr(torch.Tensor, name) and name not in namesakes]
    assert [name for name in methods if not hasattr(tn.Tensor, name)] == []


def test_every_inplace_method_is_one_of_pytorchs():
    written = [name + "_" for name, rows in TABLE.items() if any(r.inplace for r in rows)]
    assert [name for name in written if not hasattr(torch.Tensor, name)] == []


def test_every_inplace_method_of_pytorchs_is_there():
    written = [name + "_" for name in TABLE if hasattr(torch.Tensor, name + "_")]
    assert [name for name in written if not hasattr(tn.Tensor, name)] == []


def test_a_name_and_its_alias_are_both_callable():
    for name in ("arccos", "multiply", "greater", "absolute"):
        assert callable(getattr(tn, name)) and callable(getattr(tn.Tensor, name))
