"""Rows that write or share memory, against PyTorch: in-place methods, `out=`, views seen from both sides."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tenfold as tn
from tenfold.base import dtypes
from tenfold.base.dtypes import DType
from tenfold.base.errors import TenfoldError
from tenfold.ops.table import Row, all_rows
from tests.ops import generate, golden
from tests.ops.golden import Call
from tests.ops.test_rows import report

MODULES = {None: "", "special": "special", "linalg": "linalg", "fft": "fft"}


def named(rows: list[Row]) -> Any:
    ordered = sorted(rows, key=lambda row: row.qualified)
    return pytest.mark.parametrize("row", ordered, ids=[row.qualified for row in ordered])


# PyTorch's own `out=` leaves memory of these unwritten: what comes out is what happened to be there.
UNWRITTEN = {"_native_batch_norm_legit.no_stats"}


def has_out(row: Row) -> bool:
    """Whether PyTorch's public function of this row takes `out=`."""
    if row.qualified in UNWRITTEN:
        return False
    overloads = getattr(torch.ops.aten, row.name).overloads()
    written = {"out", f"{row.overload}_out"} if row.overload else {"out"}
    return (
        row.function and row.module in MODULES and not row.schema.is_view and bool(written & set(overloads))
    )


def calls(row: Row, *chosen: DType, limit: int | None = None) -> list[Call]:
    return [
        Call(row, number, sample, dtype)
        for dtype in chosen
        for number, sample in generate.for_dtype(row, dtype)[:limit]
    ]


def public(package: Any, row: Row) -> Any:
    """The function that users call, by the row's Python name."""
    module = getattr(package, row.module) if row.module else package
    return getattr(module, row.python_name)


class Comparison:
    """What each side did with the calls: collected first, so that our results are computed as one program."""

    def __init__(self, row: Row):
        self.row = row
        self.wrong: list[str] = []
        self.pairs: list[tuple[Call, str, Any, Any]] = []

    def add(self, call: Call, ours: Any, theirs: Any, what: str = "") -> None:
        self.pairs.append((call, what, ours, theirs))

    def refuse(self, call: Call, error: Exception) -> None:
        self.wrong.append(f"{call}: PyTorch runs it, we raise {type(error).__name__}: {error}")

    def must_raise(self, call: Call, function: Any, *args: Any, **kwargs: Any) -> None:
        try:
            tn.eval(function(*args, **kwargs))
        except TenfoldError:
            return
        self.wrong.append(f"{call}: PyTorch raises, we do not")

    def conclude(self) -> None:
        tn.eval(*[ours for _, _, ours, _ in self.pairs if isinstance(ours, tn.Tensor)])
        for call, what, ours, theirs in self.pairs:
            exact = not (self.row.random or self.row.differs)
            found = golden.difference(self.row, ours, theirs, values=exact)
            if found:
                self.wrong.append(f"{call}: {what}{found}")
        assert not self.wrong, report(self.row, self.wrong)


@named([row for row in all_rows() if row.inplace])
def test_inplace_method_agrees_with_pytorch(row: Row) -> None:
    comparison = Comparison(row)
    receiver = [a.name for a in row.schema.arguments].index("self")
    for call in calls(row, dtypes.float32, dtypes.int64, dtypes.float64, limit=4):
        ours, ours_named = call.arguments(golden.to_tenfold)
        theirs, theirs_named = call.arguments(golden.as_torch)
        x, reference = ours.pop(receiver), theirs.pop(receiver)
        try:
            golden.quietly(getattr(reference, row.name + "_"), *theirs, **theirs_named)
        except Exception as error:
            # A TypeError is its argument parser's: the method takes less than the overload does.
            if not golden.only_lacks(error) and not isinstance(error, TypeError):
                comparison.must_raise(call, getattr(x, row.name + "_"), *ours, **ours_named)
            continue
        try:
            assert getattr(x, row.name + "_")(*ours, **ours_named) is x
        except TenfoldError as error:
            if not golden.runs_empty(error, [reference]):
                comparison.refuse(call, error)
            continue
        comparison.add(call, x, reference)
    assert comparison.pairs or comparison.wrong, f"PyTorch ran no sample of {row.name}_"
    comparison.conclude()


@named([row for row in all_rows() if has_out(row)])
def test_out_agrees_with_pytorch(row: Row) -> None:
    """`out=` of the result's shape, and of none, which is resized."""
    comparison = Comparison(row)
    for call in calls(row, dtypes.float32, dtypes.int64, dtypes.float64, limit=4):
        theirs, theirs_named = call.arguments(golden.as_torch)
        ours, ours_named = call.arguments(golden.to_tenfold)
        try:
            expected = golden.flattened(golden.quietly(golden.overload(row), *theirs, **theirs_named))
        except Exception:
            continue
        for empty in (False, True):
            blank = [torch.zeros([0] if empty else each.shape, dtype=each.dtype) for each in expected]
            mine = [tn.zeros(list(each.shape), dtype=getattr(tn, str(each.dtype)[6:])) for each in blank]
            try:
                out = tuple(blank) if len(blank) > 1 else blank[0]
                golden.quietly(public(torch, row), *theirs, **theirs_named, out=out)
            except Exception:
                continue  # PyTorch has it in C++ alone, or refuses this dtype
            try:
                public(tn, row)(*ours, **ours_named, out=tuple(mine) if len(mine) > 1 else mine[0])
            except Exception as error:
                if not isinstance(error, TenfoldError) or not golden.runs_empty(error, expected):
                    comparison.refuse(call, error)
                continue
            for x, reference in zip(mine, blank, strict=True):
                comparison.add(call, x, reference, "resized out=: " if empty else "out=: ")
    comparison.conclude()


# What an `out=` is tried with that could hold the result.
WIDER = {
    torch.float32: torch.float64, torch.int64: torch.float32, torch.bool: torch.int64,
    torch.complex64: torch.complex128,
}  # fmt: skip
# PyTorch decides these by their arguments: it takes the absolute value, or the inverse transform, of complex
# numbers alone, `diff` adds the bits of bools, and copies first what is ordered otherwise in memory.
BY_ARGUMENTS = {"abs", "absolute", "diff", "fft_ifft", "inner", "lerp.Tensor", "split_copy.Tensor"}


@named([row for row in all_rows() if has_out(row) and row.qualified not in BY_ARGUMENTS])
def test_out_of_a_wider_dtype_is_taken_where_pytorch_takes_it(row: Row) -> None:
    wrong = []
    for call in calls(row, dtypes.float32, dtypes.int64, limit=2):
        theirs, theirs_named = call.arguments(golden.as_torch)
        ours, ours_named = call.arguments(golden.to_tenfold)
        if {"dtype", "out_dtype"} & {*theirs_named}:
            continue
        try:
            expected = golden.flattened(golden.quietly(golden.overload(row), *theirs, **theirs_named))
        except Exception:
            continue
        for place, each in enumerate(expected):
            kinds = [one.dtype for one in expected]
            if each.dtype not in WIDER or not each.numel():
                continue
            found = []
            for kind in (each.dtype, WIDER[each.dtype]):
                kinds[place] = kind
                for package, args, keywords in ((torch, theirs, theirs_named), (tn, ours, ours_named)):
                    outs = tuple(
                        [
                            package.zeros(list(one.shape), dtype=getattr(package, str(dtype)[6:]))
                            for one, dtype in zip(expected, kinds, strict=True)
                        ]
                    )
                    try:
                        golden.quietly(
                            public(package, row), *args, **keywords, out=outs if outs[1:] else outs[0]
                        )
                        found.append(True)
                    except Exception:
                        found.append(False)
            plain, plain_ours, wider, wider_ours = found
            if plain and plain_ours and wider is not wider_ours:
                wrong.append(
                    f"{call}: PyTorch {'takes' if wider else 'refuses'} {WIDER[each.dtype]} for {place}"
                )
    assert not wrong, report(row, wrong)


@pytest.mark.parametrize("name", ["any", "all"])
def test_truth_is_written_into_bytes_but_not_into_other_numbers(name: str) -> None:
    x = [[1.0, 0.0], [0.0, 2.0]]
    for where in ((), (1,), ((0, 1),)):
        expected = getattr(torch, name)(torch.tensor(x), *where)
        out = tn.empty(list(expected.shape), dtype=tn.uint8)
        assert getattr(tn, name)(tn.tensor(x), *where, out=out) is out
        assert out.tolist() == expected.to(torch.uint8).tolist()
        with pytest.raises(tn.DTypeError, match="int32 does not take a bool result"):
            getattr(tn, name)(tn.tensor(x), *where, out=tn.empty(list(expected.shape), dtype=tn.int32))


@pytest.mark.parametrize("name", ["var", "std"])
def test_deviations_are_cast_into_a_wider_out(name: str) -> None:
    x = [[0.0, 1.0, 5.0], [2.0, -3.0, 4.0]]
    for where in ((), (0,), (0, False)):
        expected = getattr(torch, name)(torch.tensor(x), *where, out=torch.empty(0, dtype=torch.float64))
        out = tn.empty(list(expected.shape), dtype=tn.float64)
        assert getattr(tn, name)(tn.tensor(x), *where, out=out) is out
        assert out.tolist() == pytest.approx(expected.tolist(), rel=1e-6)


@named([row for row in all_rows() if row.schema.is_view])
def test_view_shares_memory_as_in_pytorch(row: Row) -> None:
    """A view has PyTorch's strides; a write to it shows in its base, and a write to the base shows in it."""
    comparison = Comparison(row)
    for call in calls(row, dtypes.float32, dtypes.complex64):
        theirs, theirs_named = call.arguments(golden.as_torch)
        ours, ours_named = call.arguments(golden.to_tenfold)
        theirs[0], ours[0] = theirs[0].contiguous(), ours[0].contiguous()
        try:
            references = golden.flattened(golden.quietly(golden.overload(row), *theirs, **theirs_named))
        except Exception:
            continue
        views = golden.flattened(golden.function(row)(*ours, **ours_named))
        for view, reference in zip(views, references, strict=True):
            layout = (tuple(view.stride()), view.storage_offset())
            expected = (tuple(reference.stride()), reference.storage_offset())
            if reference.numel() and layout != expected:
                comparison.wrong.append(f"{call}: strides and offset {layout}, PyTorch {expected}")
            # Where elements may share a place, only a write of equal numbers has one outcome.
            write = "fill_" if torch._debug_has_internal_overlap(reference) else "add_"
            try:
                getattr(reference, write)(1)
            except Exception:
                comparison.must_raise(call, getattr(view, write), 1)
                continue
            try:
                getattr(view, write)(1)
            except TenfoldError as error:
                comparison.refuse(call, error)
                continue
            comparison.add(call, ours[0].clone(), theirs[0].clone(), "base after a write to its view: ")
        theirs[0].mul_(2)
        ours[0].mul_(2)
        for view, reference in zip(views, references, strict=True):
            comparison.add(call, view, reference, "view after a write to its base: ")
    assert comparison.pairs or comparison.wrong, f"PyTorch ran no sample of {row.qualified}"
    comparison.conclude()


@pytest.mark.parametrize("name", ["abs", "absolute", "angle"])
def test_sizes_and_angles_of_complex_numbers_go_into_complex_tensors(name):
    x, out = tn.tensor([3 + 4j, -1j]), tn.zeros(2, dtype=tn.complex64)
    getattr(tn, name)(x, out=out)
    assert out.tolist() == pytest.approx([complex(each) for each in getattr(tn, name)(x).tolist()])
