"""Recurrent layers as functions against PyTorch: values and gradients over layers, directions and layouts."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.base.errors import ArgumentError, DTypeError, ShapeError, TenfoldError, UnsupportedError
from tests.nn.comparing import Drawn, compare

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
TIMES, BATCH, FEATURES, UNITS = 5, 2, 3, 4


def drawn(name: str, layers: int, directions: int, biases: bool, batch_first: bool) -> Drawn:
    rows = GATES[name] * UNITS
    found = Drawn().normal(
        x=(BATCH, TIMES, FEATURES) if batch_first else (TIMES, BATCH, FEATURES),
        h=(layers * directions, BATCH, UNITS),
        c=(layers * directions, BATCH, UNITS),
    )
    for layer in range(layers):
        features = FEATURES if layer == 0 else UNITS * directions
        for direction in range(directions):
            shapes = {"w_ih": (rows, features), "w_hh": (rows, UNITS)}
            shapes |= {"b_ih": (rows,), "b_hh": (rows,)} if biases else {}
            found.normal(**{f"{each}_{layer}_{direction}": shape for each, shape in shapes.items()})
    return found


def weights(t) -> list:
    return [tensor for name, tensor in vars(t).items() if name[:4] in ("w_ih", "w_hh", "b_ih", "b_hh")]


def library(F):
    return tn if F is tn.nn.functional else torch


@pytest.mark.parametrize("name", GATES)
@pytest.mark.parametrize(
    ("layers", "directions", "biases", "batch_first"), [(1, 1, False, False), (2, 2, True, True)]
)
def test_sequences_are_pytorchs(
    name: str, layers: int, directions: int, biases: bool, batch_first: bool
) -> None:
    def call(F, t):
        start = (t.h, t.c) if name == "lstm" else t.h
        run = getattr(library(F), name)
        return run(t.x, start, weights(t), biases, layers, 0.0, False, directions == 2, batch_first)

    compare(call, drawn(name, layers, directions, biases, batch_first))


def test_one_time_alone() -> None:
    given = drawn("lstm", 1, 1, True, False)
    given.arrays["x"] = given.arrays["x"][:1]
    compare(
        lambda F, t: library(F).lstm(t.x, (t.h, t.c), weights(t), True, 1, 0.0, False, False, False), given
    )


def test_gradients_of_a_loop_have_gradients() -> None:
    arrays = drawn("rnn_tanh", 1, 1, False, False).arrays

    def curvature(library):
        t = {k: library.tensor(v, requires_grad=True) for k, v in arrays.items()}
        params = [t["w_ih_0_0"], t["w_hh_0_0"]]
        outputs = library.rnn_tanh(t["x"], t["h"], params, False, 1, 0.0, False, False, False)[0]
        (first,) = library.autograd.grad((outputs**2).sum(), [params[1]], create_graph=True)
        (second,) = library.autograd.grad((first**2).sum(), [params[1]])
        return second.numpy()

    np.testing.assert_allclose(curvature(tn), curvature(torch), 1e-7)


def test_dropout_between_layers_follows_the_seed() -> None:
    t = {k: tn.tensor(v) for k, v in drawn("gru", 2, 1, True, False).arrays.items()}
    params = [v for k, v in t.items() if k[1:2] == "_"]

    def run(p: float) -> tn.Tensor:
        tn.manual_seed(1)
        return tn.gru(t["x"], t["h"], params, True, 2, p, True, False, False)[0]

    first, second, plain = run(0.5), run(0.5), run(0.0)
    tn.eval(first, second, plain)
    np.testing.assert_array_equal(first.numpy(), second.numpy())
    assert np.abs(first.numpy() - plain.numpy()).max() > 1e-3


@pytest.mark.parametrize("name", GATES)
def test_a_cell_is_pytorchs(name: str) -> None:
    rows = GATES[name] * UNITS
    given = Drawn().normal(
        x=(BATCH, FEATURES),
        h=(BATCH, UNITS),
        c=(BATCH, UNITS),
        w=(rows, FEATURES),
        u=(rows, UNITS),
        b=(rows,),
    )
    compare(
        lambda F, t: getattr(library(F), f"{name}_cell")(
            t.x, (t.h, t.c) if name == "lstm" else t.h, t.w, t.u, t.b, t.b
        ),
        given,
    )


def _run(x=(5, 2, 3), h=(1, 2, 4), w=(12, 3), u=(12, 4), layers=1, dtype="float32"):
    params = [tn.ones(*w), tn.ones(*u)]
    return tn.gru(
        tn.ones(*x).to(tn.dtypes.BY_NAME[dtype]), tn.ones(*h), params, False, layers, 0.0, *[False] * 3
    )


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: _run(x=(5, 3)), ShapeError),
        (lambda: _run(x=(0, 2, 3)), ShapeError),
        (lambda: _run(h=(2, 2, 4)), ShapeError),
        (lambda: _run(w=(11, 3)), ShapeError),
        (lambda: _run(layers=2, h=(2, 2, 4)), ArgumentError),
        (lambda: _run(dtype="float64"), DTypeError),
        (lambda: tn.gru_cell(tn.ones(2, 3), tn.ones(1, 4), tn.ones(12, 3), tn.ones(12, 4)), ShapeError),
        (
            lambda: tn.lstm(
                tn.ones(5, 2, 3),
                (tn.ones(1, 2, 2), tn.ones(1, 2, 4)),
                [tn.ones(16, 3)],
                False,
                1,
                0.0,
                *[False] * 3,
            ),
            UnsupportedError,
        ),
    ],
)
def test_wrong_arguments_are_refused(call, error: type[TenfoldError]) -> None:
    with pytest.raises(error):
        call()


@pytest.mark.parametrize("library", [tn, torch])
def test_the_memory_of_a_cell_is_not_broadcast(library):
    cell = library.nn.LSTMCell(4, 5)
    with pytest.raises(RuntimeError):
        cell(library.ones(3, 4), (library.ones(3, 5), library.ones(3, 1)))
