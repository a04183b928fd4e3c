"""The Trace as text: ATen's names, tensors in place, other arguments by name, defaults left out."""

from __future__ import annotations

import pytest

import tenfold as tn


def calls(*tensors: tn.Tensor) -> list[str]:
    """The calls of a program, without where they were made."""
    text = tensors[0].show(stage="trace")
    return [line.partition("  # ")[0] for line in text.splitlines() if " = aten." in line]


X, Y, PLACES = tn.tensor([[1.0, 2.0], [3.0, 4.0]]), tn.tensor([[5.0, 6.0]]), tn.tensor([0, 1])


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: X + Y, "t0 = aten.add.Tensor(p0, p1)"),
        (lambda: X + X, "t0 = aten.add.Tensor(p0, p0)"),
        (lambda: tn.add(X, Y, alpha=2), "t0 = aten.add.Tensor(p0, p1, alpha=2)"),
        (lambda: tn.add(X, Y, alpha=1.0), "t0 = aten.add.Tensor(p0, p1, alpha=1.0)"),
        (lambda: X * 2, "t0 = aten.mul.Scalar(p0, other=2)"),
        (lambda: X * True, "t0 = aten.mul.Scalar(p0, other=True)"),
        (lambda: tn.cat([X, Y]), "t0 = aten.cat((p0, p1))"),
        (lambda: tn.cat([X], 1), "t0 = aten.cat((p0,), dim=1)"),
        (lambda: X[:, PLACES], "t0 = aten.index.Tensor(p0, (None, p1))"),
        (lambda: X.clamp(min=0.5), "t0 = aten.clamp(p0, min=0.5)"),
        (lambda: X.clamp(max=2), "t0 = aten.clamp(p0, max=2)"),
        (lambda: tn.max(X, 1).values, "t0_0, t0_1 = aten.max.dim(p0, dim=1)"),
        (lambda: tn.max(X, 1, keepdim=True).indices, "t0_0, t0_1 = aten.max.dim(p0, dim=1, keepdim=True)"),
        (lambda: tn.split(X, 1)[1], "t0_0, t0_1 = aten.split.Tensor(p0, split_size=1)"),
        (lambda: X.sum(dtype=tn.float64), "t0 = aten.sum(p0, dtype=float64)"),
        (lambda: X.sum(0), "t0 = aten.sum.dim_IntList(p0, dim=(0,))"),
        (lambda: tn.zeros(2, 3, dtype=tn.bool), "t0 = aten.zeros(size=(2, 3), dtype=bool)"),
        (lambda: tn.zeros(()), "t0 = aten.zeros(size=())"),
        (lambda: tn.full((2,), float("nan")), "t0 = aten.full(size=(2,), fill_value=nan)"),
        (lambda: tn.full((2,), -0.0), "t0 = aten.full(size=(2,), fill_value=-0.0)"),
        (lambda: tn.full((2,), float("-inf")), "t0 = aten.full(size=(2,), fill_value=-inf)"),
        (lambda: tn.full((2,), 1 + 2j), "t0 = aten.full(size=(2,), fill_value=(1+2j))"),
        (lambda: tn.einsum("ij,kj->ik", X, Y), "t0 = aten.einsum(equation='ij,kj->ik', tensors=(p0, p1))"),
        (lambda: tn.rand(3), "t0_0, t0_1 = aten.rand(size=(3,), generator=p0)"),
    ],
)
def test_a_call_reads_as_its_schema(make, expected):
    tn.manual_seed(0)  # random state that an earlier test left to be computed would be part of the program
    assert calls(make()) == [expected]


def test_inputs_and_outputs_carry_their_types():
    lines = (X[0] * PLACES).show(stage="trace").splitlines()
    assert lines[:4] == [
        "==== Trace IR ====",
        "inputs:",
        "    p0: [shape=(2, 2), dtype=(float32), loc=(cpu)]",
        "    p1: [shape=(2,), dtype=(int64), loc=(cpu)]",
    ]
    assert lines[-2:] == ["outputs:", "    t1: [shape=(2,), dtype=(float32), loc=(cpu)]"]


def test_a_tensor_that_has_its_data_is_input_and_output():
    lines = X.show(stage="trace").splitlines()
    assert lines == [
        "==== Trace IR ====",
        "inputs:",
        "    p0: [shape=(2, 2), dtype=(float32), loc=(cpu)]",
        "outputs:",
        "    p0: [shape=(2, 2), dtype=(float32), loc=(cpu)]",
    ]


def test_each_call_names_the_line_that_made_it():
    total = X + Y
    total = total.sum()
    lines = [line for line in total.show(stage="trace").splitlines() if " = aten." in line]
    first = test_each_call_names_the_line_that_made_it.__code__.co_firstlineno
    assert [line.partition("  # ")[2] for line in lines] == [
        f"test_printer.py:{first + 1}",
        f"test_printer.py:{first + 2}",
    ]


def test_several_outputs_are_written_in_order():
    text = tn.show(lambda x: (x.exp(), x, x.max(1)), X, stage="trace")
    assert text.splitlines()[-5:] == [
        "outputs:",
        "    t0: [shape=(2, 2), dtype=(float32), loc=(cpu)]",
        "    p0: [shape=(2, 2), dtype=(float32), loc=(cpu)]",
        "    t1_0: [shape=(2,), dtype=(float32), loc=(cpu)]",
        "    t1_1: [shape=(2,), dtype=(int64), loc=(cpu)]",
    ]
