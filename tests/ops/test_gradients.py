"""Gradients of every row of the op table against PyTorch's, of the first and the second order, and against
differences of the results themselves."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.base import dtypes
from tenfold.base.errors import DTypeError, TenfoldError
from tenfold.ops.table import Row, all_rows
from tests.ops import generate, golden
from tests.ops.derivatives import Case, NotDifferentiable, Slope

ROWS = sorted(
    (
        row
        for row in all_rows()
        if (row.chooses or not row.host) and any(a.type.kind == "Tensor" for a in row.schema.arguments)
    ),
    key=lambda row: row.qualified,
)
PARTS = 24
# How many calls of a row are compared, unless all are, of each kind: plain and tied ones of float64, then of
# complex128; every fourth row is compared in float32 as well.
FEW = (1, 2, 1, 0, 1)
# Files whose rows are also differentiated twice.
TWICE = {
    f"tenfold.ops.{each}"
    for each in (
        *("activations", "addmm", "contraction", "division", "einsum", "extremes", "pointwise"),
        *("reductions", "scans", "softmax", "special", "statistics", "transcendental", "triangles"),
    )
} | {"tenfold.flat.build"}

_ZERO = "of a quotient by a complex zero neither the size nor the direction is certain"
_SIGN = "the sign of each vector is for the LAPACK to choose that computes it"
_DEGENERATE = "whole numbers make singular matrices, and equal singular values or eigenvalues"
_ARBITRARY = "which of several equal elements is picked is not PyTorch's to say"
_POLE = "at a pole PyTorch's derivative is a large number, or an infinity of either sign"
# Calls whose gradients are not PyTorch's, and why.
EXCUSED: dict[str, tuple[Callable[[Case], bool], str]] = {
    **dict.fromkeys(
        ("kthvalue", "median.dim", "nanmedian.dim", "topk"), (lambda case: case.tied, _ARBITRARY)
    ),
    **dict.fromkeys(
        ("digamma", "special_digamma", "special_psi", "polygamma", "special_polygamma"),
        (lambda case: case.tied or "Edges" in str(case), _POLE),
    ),
    **dict.fromkeys(
        ("std.dim", "std_mean.dim", "var.dim", "var_mean.dim"),
        (
            lambda case: case.sample.args[1] == [],
            "an empty list of dimensions means all, but PyTorch's gradient divides by one element's count",
        ),
    ),
    **dict.fromkeys(
        ("div.Tensor", "divide.Tensor", "true_divide.Tensor"),
        (lambda case: case.dtype.is_complex and case.tied, _ZERO),
    ),
    **dict.fromkeys(
        ("binary_cross_entropy", "binary_cross_entropy_backward"),
        (lambda case: case.tied, "of probabilities 0 and 1 PyTorch differentiates an unbounded logarithm"),
    ),
    "smooth_l1_loss": (
        lambda case: case.tied and 0.0 in case.sample.args,
        "where both are equal and beta is 0 PyTorch's slope is that of a larger number",
    ),
    **dict.fromkeys(
        ("_linalg_eigh", "_linalg_svd", "linalg_eig", "linalg_eigh", "linalg_svd", "svd"),
        (lambda case: True, _SIGN),
    ),
    **dict.fromkeys(
        ("linalg_cholesky_ex", "linalg_eigvals", "linalg_eigvalsh", "nuclear_norm.dim"),
        (lambda case: case.tied, _DEGENERATE),
    ),
    **dict.fromkeys(
        ("elu_backward", "_prelu_kernel_backward"),
        (lambda case: case.tied, "at the bend PyTorch's derivative is one side's, its second the other's"),
    ),
    "pdist": (
        lambda case: case.sample.args[0].shape[0] < 2,
        "PyTorch crashes",
    ),
    "as_strided_scatter": (
        lambda case: True,
        "PyTorch gives gradients to elements that were written over, and none to those that were not",
    ),
    "cumprod": (
        lambda case: case.dtype.is_complex and "dtype" in case.sample.kwargs,
        "PyTorch takes the product of complex numbers though real ones were asked for",
    ),
    "scatter_reduce.two": (
        lambda case: (
            case.sample.args[2].shape != case.sample.args[3].shape
            or (case.tied and case.sample.kwargs.get("include_self") is False)
        ),
        "PyTorch gives gradients to what lies beyond the index, and shares with what was left out",
    ),
    "index_reduce": (
        lambda case: case.tied and case.sample.kwargs.get("include_self") is False,
        "PyTorch shares with elements that it was told to leave out",
    ),
}


# Rows whose second derivative at a bend is the other side's in PyTorch, or 0 where an exponent is 0: tied
# calls of them are compared once.
BENDS = {"elu", "celu", "selu", "softplus", "prelu", "_prelu_kernel", "pow", "float_power"}


def kinds(row: Row) -> Iterator[list[Case]]:
    """The calls of a row by kind, each kind in an order that differs from row to row but not from run to run:
    plain and tied ones of float64; the same of complex128, which first depends on the row; of float32."""
    numbered = [(i, each) for i, each in enumerate(generate.samples(row)) if generate.depends(each)]
    turn = zlib.crc32(row.qualified.encode())
    ordered = sorted(numbered, key=lambda each: zlib.crc32(str((each[0], turn)).encode()))
    for dtype, tied in (
        (dtypes.float64, False),
        (dtypes.float64, True),
        (dtypes.complex128, turn % 2 == 0),
        (dtypes.complex128, turn % 2 == 1),
        (dtypes.float32, False),
    ):
        cases = [Case(row, i, each, dtype, tied) for i, each in ordered]
        yield [each for each in cases if row.qualified not in EXCUSED or not EXCUSED[row.qualified][0](each)]


def compare(rows: list[Row], few: tuple[int, ...] | None) -> dict[str, int]:
    """Compare a few calls of each kind, or all, as one program; what was counted."""
    counts = dict.fromkeys(("rows", "first", "second", "refused", "constant"), 0)
    pending: list[tuple[Case, Any, Any]] = []
    wrong: list[str] = []
    for row in rows:
        torch.manual_seed(0)
        before = len(pending)
        for number, cases in enumerate(kinds(row)):
            limit = len(cases) if few is None else few[number]
            if number == 4 and zlib.crc32(row.qualified.encode()) % 4:
                continue
            done = 0
            for case in cases:
                if done == limit:
                    break
                try:
                    theirs = case.theirs_to(2 if twice(case) else 1)
                except NotDifferentiable:
                    counts["refused"] += 1
                    continue
                done += 1
                try:
                    pending.append((case, case.ours_to(theirs), theirs))
                except DTypeError:
                    counts["refused"] += 1  # whether we take what PyTorch takes is told by test_rows.py
                    continue
                except (TenfoldError, AssertionError) as error:
                    wrong.append(f"aten::{row.qualified}, {case}: {str(error).splitlines()[0]}")
                counts["first"] += bool(theirs)
                counts["second"] += len(theirs) > 1
                counts["constant"] += not theirs
        counts["rows"] += len(pending) > before
    evaluate([(case, _tensors(ours)) for case, ours, _ in pending], wrong)
    for case, ours, theirs in pending:
        if f"aten::{case.row.qualified}, {case}" not in " ".join(wrong):
            wrong += [f"aten::{case.row.qualified}, {each}" for each in case.differences(ours, theirs)]
    assert not wrong, report(wrong)
    return counts


def twice(case: Case) -> bool:
    """Whether the second derivative is compared: not where few digits of it would be left."""
    precise = case.dtype is not dtypes.float32 and "float16" not in str(case)
    bends = case.row.name in BENDS and (case.tied or "Edges" in str(case))
    return case.row.lowering.__module__ in TWICE and precise and not bends


def _tensors(found: Any) -> list[tn.Tensor]:
    return [each for several in found for each in several if each is not None]


def evaluate(pending: list[tuple[Case, list[tn.Tensor]]], wrong: list[str]) -> None:
    """All as one program; if that fails, one by one, to tell which calls are at fault."""
    try:
        tn.eval(*[each for _, tensors in pending for each in tensors])
    except TenfoldError:
        for case, tensors in pending:
            try:
                tn.eval(*tensors)
            except TenfoldError as error:
                wrong.append(f"aten::{case.row.qualified}, {case}: evaluating raises {error.message}")


def report(wrong: list[str]) -> str:
    shown = wrong[:40] + ([f"and {len(wrong) - 40} more"] if len(wrong) > 40 else [])
    return "\n  ".join([f"{len(wrong)} wrong:", *shown])


@pytest.mark.parametrize("part", range(PARTS))
def test_gradients_are_pytorchs(part: int, record_property: Any) -> None:
    counts = compare([row for row in ROWS[part::PARTS] if not row.random], FEW)
    record_property("gradients", tuple(counts.values()))
    assert counts["rows"] >= 20, counts
    assert counts["first"] >= 60, counts
    assert counts["second"] >= 10, counts


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS * 4))
def test_gradients_of_all_samples_are_pytorchs(part: int) -> None:
    compare([row for row in ROWS[part :: PARTS * 4] if not row.random], None)


# Differences

_HALF = "it has no derivative by one of its arguments"
# Rows whose slope is not measured, and why.
UNMEASURED: dict[str, str] = {
    **dict.fromkeys(("igamma", "igammac", "special_gammainc", "special_gammaincc"), _HALF),
    **dict.fromkeys(("special_zeta", "special_zeta.other_scalar", "special_zeta.self_scalar"), _HALF),
    **dict.fromkeys(("_standard_gamma", "_sample_dirichlet"), "a draw keeps its place of the distribution"),
    **dict.fromkeys(("linalg_ldl_factor", "linalg_ldl_factor_ex", "linalg_ldl_solve"), "it refuses"),
    **dict.fromkeys(("round.decimals", "special_round"), "it steps, so often that a difference meets one"),
    **dict.fromkeys(("geqrf", "linalg_qr", "qr"), "it refuses"),
    **dict.fromkeys(
        (
            *("fake_quantize_per_tensor_affine", "fake_quantize_per_tensor_affine.tensor_qparams"),
            *("fake_quantize_per_tensor_affine_cachemask", "fake_quantize_per_channel_affine"),
            "fake_quantize_per_channel_affine_cachemask",
        ),
        "it steps, and its gradient is that of what it stands for",
    ),
    **dict.fromkeys(
        (
            *("cholesky", "linalg_cholesky", "linalg_cholesky_ex", "cholesky_inverse", "cholesky_solve"),
            *("_linalg_eigh", "linalg_eigh", "linalg_eigvalsh", "linalg_pinv"),
        ),
        "it reads one triangle of what it takes for a Hermitian matrix, and its gradient is Hermitian",
    ),
    **dict.fromkeys(
        ("normal.Tensor_float", "normal.float_Tensor", "normal.Tensor_Tensor"),
        "a draw does not say how it came from mean and deviation, as in PyTorch",
    ),
    "binomial": "counts are drawn, and to what is no whole number nothing is added",
    "multilabel_margin_loss_backward": "it takes marks for numbers",
    "put": "what is written twice to a place has a gradient each time, as in PyTorch",
}


def slopes(row: Row) -> Iterator[Slope]:
    """The first call of a row that differences can measure: all its numbers are float64 or complex128."""
    for case in [case for cases in list(kinds(row))[:4] for case in cases]:
        if case.tied or "Edges" in str(case):
            continue
        try:
            slope = Slope(case)
        except TenfoldError:
            continue
        if slope.exact:
            yield slope
            return


def unknown_to_pytorch(row: Row) -> bool:
    """Whether PyTorch has no gradient for any float64 call of the row, or draws other numbers."""
    if row.random:
        return True
    for case in next(kinds(row))[:3]:
        try:
            case.theirs_to(1)
            return False
        except NotDifferentiable:
            continue
    return True


def measured(part: int, parts: int) -> list[Row]:
    """Every row that PyTorch does not differentiate, and a third of the others."""
    return [
        row
        for i, row in enumerate(ROWS[part::parts])
        if row.qualified not in UNMEASURED and (i % 3 == part % 3 or unknown_to_pytorch(row))
    ]


@pytest.mark.parametrize("part", range(PARTS // 2))
def test_gradients_are_what_differences_measure(part: int) -> None:
    found = [slope for row in measured(part, PARTS // 2) for slope in slopes(row)]
    wrong: list[str] = []
    evaluate([(slope.case, slope.tensors) for slope in found], wrong)
    texts = [(slope.case.row.qualified, slope.difference()) for slope in found] if not wrong else []
    wrong += [f"aten::{name}, {text}" for name, text in texts if text]
    assert not wrong, report(wrong)
    assert len(found) >= 15


# What PyTorch does where numbers end

INF, NAN = float("inf"), float("nan")
ENDS = [
    [INF, INF, 1.0],
    [-INF, -INF, -INF],
    [-INF, 0.0, 1.0],
    [NAN, 0.0, 1.0],
    [2.0, 2.0, -INF],
    [0.0, -0.0, 3.0],
]
CONVENTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "abs": lambda t, x: x.abs(),
    "relu": lambda t, x: t.relu(x),
    "clamp": lambda t, x: x.clamp(0.0, 2.0),
    "clamp_min": lambda t, x: x.clamp(min=0.0),
    "hardtanh": lambda t, x: t.nn.functional.hardtanh(x, 0.0, 1.0),
    "amax": lambda t, x: x.amax(1),
    "max": lambda t, x: x.max(1)[0],
    "min": lambda t, x: x.min(1)[0],
    "max of all": lambda t, x: x.max() + x[4:].max(),
    "min of all": lambda t, x: x.min() + x[:2].min(),
    "median of all": lambda t, x: x.median() + x[4:].median(),
    "maximum": lambda t, x: t.maximum(x, x.flip(1)),
    "logsumexp": lambda t, x: t.logsumexp(x, 1),
    "logaddexp": lambda t, x: t.logaddexp(x, x.flip(1)),
    "softmax": lambda t, x: t.softmax(x, 1)[:, 0],
    "log_softmax": lambda t, x: t.log_softmax(x, 1)[:, 2],
    "sqrt where positive": lambda t, x: t.where(x > 0, t.where(x > 0, x, 1.0).sqrt(), x * 0.0),
    "a dead side": lambda t, x: t.where(x == x, x, x.detach()),
    "masked_fill": lambda t, x: x.masked_fill(x != x, 0.0),
    "nan_to_num": lambda t, x: x.nan_to_num(),
    "nansum": lambda t, x: x.nansum(1),
    "norm": lambda t, x: (x.nan_to_num(0.0, 0.0, 0.0) * 0.0).norm(),
    "std": lambda t, x: (x.nan_to_num(0.0, 0.0, 0.0) * 0.0).std(),
    "prod": lambda t, x: x.nan_to_num(0.0, 2.0, -1.0).prod(1),
    "cumprod": lambda t, x: x.nan_to_num(0.0, 2.0, -1.0).cumprod(1),
    "cummax": lambda t, x: x.cummax(1)[0],
    "sort": lambda t, x: t.sort(x, dim=1, stable=True)[0],
    "pow": lambda t, x: x.nan_to_num(0.0, 2.0, -1.0) ** 2.0,
    "power of zero": lambda t, x: x.nan_to_num(0.0, 2.0, 0.0) ** x.nan_to_num(0.0, 1.0, 2.0),
    "xlogy": lambda t, x: t.xlogy(x[5], x[5].flip(0)),
    "angle": lambda t, x: x.angle(),
    "polar": lambda t, x: t.view_as_real(t.polar(x, x.detach() * 0.0 + 0.7)),
    "l1_loss": lambda t, x: t.nn.functional.l1_loss(x, t.ones_like(x), reduction="none"),
    "huber_loss": lambda t, x: t.nn.functional.huber_loss(x, t.ones_like(x), reduction="none"),
    "smooth_l1_loss": lambda t, x: t.nn.functional.smooth_l1_loss(x, t.ones_like(x), reduction="none"),
    "quotient by steps": lambda t, x: t.div(x, x.flip(1), rounding_mode="floor"),
    "fmod": lambda t, x: t.fmod(x.detach() * 0.7, x.flip(1)) + t.fmod(x, 0.0),
    "remainder": lambda t, x: t.remainder(x.detach() * 0.7, x.flip(1)) + t.remainder(x, 0.0),
    "lerp": lambda t, x: t.lerp(x, x.flip(1) * 2, x.flip(0)) + t.lerp(x, x * 2, INF),
    "digamma": lambda t, x: t.digamma(x.abs() + 0.5),
    "erfcx": lambda t, x: t.special.erfcx(-x.abs()),
    "log_ndtr": lambda t, x: t.special.log_ndtr(x),
}


def test_conventions_where_numbers_end_are_pytorchs() -> None:
    array = np.array(ENDS)
    theirs, ours = {}, {}
    for name, function in CONVENTIONS.items():
        x = torch.from_numpy(array.copy()).requires_grad_()
        (theirs[name],) = torch.autograd.grad(function(torch, x).sum(), x)
        y = tn.tensor(array).requires_grad_()
        (ours[name],) = tn.autograd.grad(function(tn, y).sum(), y)
    tn.eval(*ours.values())
    for name, expected in theirs.items():
        np.testing.assert_allclose(ours[name].numpy(), golden.to_numpy(expected), err_msg=name)


def test_nearly_all_rows_are_here() -> None:
    assert len(ROWS) >= 640
    assert set(EXCUSED) <= {row.qualified for row in ROWS}
