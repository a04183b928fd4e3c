"""Every typed function, called with the samples of its row, gives what PyTorch's same overload gives."""

from __future__ import annotations

import ctypes
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from tenfold.base import dtypes
from tenfold.capi.describe import HEADER, read_header
from tenfold.capi.locate import NEWEST, find_libtorch
from tenfold.capi.typed import TypedForm, typed_forms
from tests.capi.bridge import library
from tests.capi.typed_calls import Comparison
from tests.ops import generate
from tests.ops.golden import Call

TAKEN = read_header(HEADER.read_text(encoding="utf-8")).taken
FORMS: dict[str, list[TypedForm]] = defaultdict(list)
LIBTORCH = find_libtorch()
for each in typed_forms(LIBTORCH.schemas, TAKEN):
    FORMS[each.row.qualified[0]].append(each)


def comparisons(form: TypedForm) -> Iterator[Comparison]:
    """Calls of a form worth making: its row's samples, without keywords where the form takes none."""
    for dtype in (dtypes.float32, dtypes.int64, dtypes.complex64):
        calls = [
            Call(form.row, number, sample, dtype) for number, sample in generate.for_dtype(form.row, dtype)
        ]
        calls = [call for call in calls if survived(call)]
        fitting = [each for call in calls if (each := Comparison(form, call)).applies]
        yield from (fitting or [Comparison(form, call, without_keywords=True) for call in calls])[:6]


def survived(call: Call) -> bool:
    """Whether PyTorch itself gets through a call: an older one divides by an integer step that is zero."""
    values = {argument.name: value for argument, value in [*call.positional, *call.named]}
    stands = (
        call.row.name == "arange" and abs(values.get("step", 1)) < 1 and values.get("dtype") == dtypes.int64
    )
    return LIBTORCH.version.startswith(NEWEST) or not stands


@pytest.mark.parametrize("letter", sorted(FORMS))
def test_typed_functions_give_what_pytorch_gives(letter: str, record_property: Any) -> None:
    lib = library()
    before = lib.tn_live_tensors()
    wrong: list[str] = []
    uncalled: list[str] = []
    called = 0
    for form in FORMS[letter]:
        if form.installed is None:
            continue
        found = list(comparisons(form))
        called += len(found)
        if not found:
            uncalled.append(form.name)
        for comparison in found:
            difference = comparison.difference()
            if difference:
                wrong.append(f"{form.name}: {comparison.call}: {difference[:400]}")
    assert not wrong, "\n".join([f"{len(wrong)} differ", *wrong[:40]])
    assert lib.tn_live_tensors() == before
    assert not uncalled, uncalled
    record_property("calls", called)


def test_a_row_that_this_libtorch_lacks_says_so() -> None:
    lib = library()
    lacking = [form for forms in FORMS.values() for form in forms if form.installed is None]
    for form in lacking:
        function = getattr(lib.library, form.name)
        function.restype = ctypes.c_void_p if form.result == "tensor" else ctypes.c_int32
        empty = [ctypes.c_double() if p.ctype == "double" else ctypes.c_void_p() for p in form.parameters]
        assert function(*empty) in (None, 7)
        assert f"has no aten::{form.schema.qualified}" in lib.tn_error_message().decode()
