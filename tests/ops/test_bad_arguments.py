"""Wrong calls of every row: where PyTorch raises, Tenfold raises an error of its own, never a bare one.

The calls are made from a row's first sample that runs, by spoiling one thing at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import tenfold as tn
from tenfold.base import dtypes
from tenfold.base.errors import TenfoldError
from tenfold.ops.samples import S, T
from tenfold.ops.schema import Argument
from tenfold.ops.table import Row, all_rows
from tests.ops import generate, golden
from tests.ops.golden import Call
from tests.ops.test_rows import report

# PyTorch ends the process on pivots that do not fit; `test_linalg.py` has such.
CRASHES = {"lu_unpack"}
ROWS = sorted((row for row in all_rows() if row.qualified not in CRASHES), key=lambda row: row.qualified)
# By the kind of an argument: what it cannot be.
WRONG_TYPES: dict[str, tuple[Any, ...]] = {
    "Tensor": ("a word", {}),
    "Scalar": ("a word", [1]),
    "int": ("a word", 1.5),
    "float": ("a word", 1j),
    "bool": ("a word", 0.5),
    "str": (3, "no such word"),
    "ScalarType": ("no such dtype", 1.5),
}


@pytest.mark.parametrize("row", ROWS, ids=[row.qualified for row in ROWS])
def test_wrong_calls_raise_our_errors(row: Row) -> None:
    valid = first_that_runs(row)
    wrong = []
    for sample in spoiled(row, valid.sample):
        call = Call(row, 0, sample, valid.dtype)
        try:
            if not is_kernel(row):
                call.theirs()
            pytorch_raises = None
        except Exception as error:
            # It also refuses strides, which only its own tensors have here.
            mild = golden.only_lacks(error) or "stride" in str(error)
            pytorch_raises = None if mild else str(error).splitlines()[0][:80]
        try:
            results = golden.flattened(call.ours())
            if pytorch_raises:
                tn.eval(*[each for each in results if isinstance(each, tn.Tensor)])
        except TenfoldError:
            continue
        except Exception as error:
            wrong.append(f"{call}: raises a bare {type(error).__name__}: {error}")
            continue
        if pytorch_raises:
            wrong.append(f"{call}: we accept it, PyTorch says {pytorch_raises}")
    assert not wrong, report(row, wrong)


def is_kernel(row: Row) -> bool:
    """Whether a row is one of PyTorch's inner functions, which trust their caller: given what does not fit,
    they write where they should not, and the process ends later and elsewhere."""
    return row.name.startswith(("_", "native_")) or "backward" in row.name or "forward" in row.name


def first_that_runs(row: Row) -> Call:
    for dtype in (dtypes.float32, dtypes.int64, dtypes.bool_, dtypes.complex64):
        for number, sample in generate.for_dtype(row, dtype):
            call = Call(row, number, sample, dtype)
            try:
                call.theirs()
            except Exception:
                continue
            return call
    pytest.fail(f"aten::{row.qualified}: PyTorch ran none of its samples")


def spoiled(row: Row, sample: S) -> Iterator[S]:
    """The sample with one thing wrong at a time."""
    yield S()
    yield S(*sample.args, *[1] * (len(row.schema.arguments) - len(sample.args) + 1))
    yield S(*sample.args, **sample.kwargs, no_such_argument=1)
    tensors = 0
    for place, argument in enumerate(row.schema.arguments):
        given = (
            sample.args[place]
            if place < len(sample.args)
            else sample.kwargs.get(argument.name, argument.default)
        )
        tensors += isinstance(given, T)
        for value in spoilers(argument, given, tensors):
            if place < len(sample.args):
                yield S(*sample.args[:place], value, *sample.args[place + 1 :], **sample.kwargs)
            else:
                yield S(*sample.args, **{**sample.kwargs, argument.name: value})


def spoilers(argument: Argument, given: Any, tensors: int) -> Iterator[Any]:
    """Values that an argument should not have, given one that it may; it is the `tensors`-th tensor."""
    yield from WRONG_TYPES.get(argument.type.kind, ())
    if argument.type.kind == "int" and "dim" in argument.name:
        yield from [(100,), (-100,), (0, 0)] if argument.type.is_list else [100, -100]
    if isinstance(given, T):
        yield T()
        yield T(2, 3, 2, 2, 3, dtype=given.dtype, low=given.low, high=given.high)
        if tensors > 1:
            yield T(7, 5, dtype=given.dtype, low=given.low, high=given.high)
            yield T(*given.shape, dtype="complex128" if given.dtype else "bool")
        if given.dtype == "int64":
            yield T(*given.shape, dtype="int64", low=1000, high=1001)
            yield T(*given.shape, dtype="int64", low=-1000, high=-999)


@pytest.mark.parametrize("name", ["median", "nanmedian"])
def test_bools_have_no_median(name: str) -> None:
    for arguments in ((), (0,)):
        with pytest.raises(NotImplementedError, match="not defined for bool"):
            getattr(tn.tensor([True, False]), name)(*arguments)
