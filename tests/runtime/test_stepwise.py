"""Programs of equal layers are compiled step by step, and compute what they compute in one piece."""

from __future__ import annotations

import os
import signal
from collections import Counter

import numpy as np
import pytest

import tenfold as tn
from tenfold import nn
from tenfold.engines import xla
from tenfold.runtime import executables, stepwise, tiers
from tenfold.runtime.background import background

pytestmark = pytest.mark.usefixtures("on_all_tiers")
LAYERS, WIDTH = 8, 512


@pytest.fixture
def compiles(monkeypatch):
    """How many ops of each kind are compiled. All programs are compiled in haste, and stay so."""
    count = Counter()
    compile = xla.compile

    def noting(module, device, **options):
        count.update(word for word in module.text().split() if word.startswith("stablehlo."))
        return compile(module, device, **options)

    monkeypatch.setattr(xla, "compile", noting)
    monkeypatch.setattr(executables, "_executables", {})
    monkeypatch.setattr(tiers, "LONG", 0)
    monkeypatch.setattr(tiers, "WORTH", 1e9)
    yield count
    background.wait()


@pytest.fixture
def whole(monkeypatch):
    """Lets programs be compiled in one piece."""

    def choose():
        monkeypatch.setattr(executables, "_executables", {})
        monkeypatch.setattr(stepwise, "MOST", 0)

    return choose


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.linear = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return x + nn.functional.gelu(self.linear(self.norm(x)))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(50, WIDTH)
        self.layers = nn.Sequential(*[Layer() for _ in range(LAYERS)])
        self.head = nn.Linear(WIDTH, 50)

    def forward(self, words):
        return self.head(self.layers(self.words(words)))


def training():
    """A training step of a model of equal layers, and the model."""
    tn.manual_seed(0)
    model = Model()
    optimizer = tn.optim.Adam(model.parameters())

    @tn.compile
    def step(words):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(words)[:-1], words[1:])
        loss.backward()
        optimizer.step()
        return loss

    return step, model


WORDS = [3, 1, 4, 1, 5, 9, 2, 6]


def trained(steps=3):
    step, model = training()
    losses = [step(tn.tensor(WORDS)).item() for _ in range(steps)]
    return losses, [each.detach().numpy().copy() for each in model.parameters()]


def test_a_layer_that_repeats_is_compiled_once(compiles, whole):
    trained(1)
    own = compiles.copy()
    compiles.clear()
    whole()
    trained(1)
    assert 3 * own["stablehlo.dot_general"] < compiles["stablehlo.dot_general"]
    assert 3 * own["stablehlo.multiply"] < compiles["stablehlo.multiply"]


def test_training_step_by_step_gives_the_same_weights(compiles, whole):
    losses, weights = trained()
    whole()
    for found, expected in zip((losses, *weights), (lambda both: (both[0], *both[1]))(trained())):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_steps_write_over_donated_memory(compiles, monkeypatch):
    given = []
    steps = stepwise.Steps._donations
    monkeypatch.setattr(
        stepwise.Steps, "_donations", lambda *a: given.append(steps(*a)) or given[-1], raising=True
    )
    trained(1)
    assert sum(len(pairs) for program in given for pairs in program.values()) > 3 * 4


def test_a_failed_check_leaves_the_weights_as_they_were(compiles):
    step, model = training()
    step(tn.tensor(WORDS)).item()
    before = [each.detach().numpy().copy() for each in model.parameters()]
    with pytest.raises(IndexError):
        step(tn.tensor([3, 1, 4, 1, 5, 50, 2, 6])).item()
    for weight, expected in zip(model.parameters(), before, strict=True):
        np.testing.assert_array_equal(weight.detach().numpy(), expected)
    assert step(tn.tensor(WORDS)).item() > 0


def test_the_optimised_program_takes_over(compiles, monkeypatch):
    monkeypatch.setattr(tiers, "WORTH", 0)
    step, _ = training()
    losses = []
    for _ in range(3):
        losses.append(step(tn.tensor(WORDS)).item())
        background.wait()
    monkeypatch.setattr(tiers, "WORTH", 1e9)
    np.testing.assert_allclose(losses, trained()[0], rtol=1e-4)


def looked_up(places, *tables):
    total = tables[-1]
    for table, place in zip(tables, places.split(1) * 2, strict=True):
        for function in (tn.tanh, tn.exp, tn.sin, tn.cos, tn.sqrt, tn.log1p, tn.sigmoid):
            table = function((table * table[place]).abs()) + 0.5
        total.add_(table)
    return total * 1


def test_a_check_in_a_layer_is_heard(compiles):
    tables = [tn.linspace(0, i + 1, 5) for i in range(LAYERS)]
    compiled = tn.compile(looked_up)
    expected = looked_up(tn.tensor([0, 1, 2, 3]), *[each.clone() for each in tables])
    tn.testing.assert_close(compiled(tn.tensor([0, 1, 2, 3]), *tables), expected)
    (program,) = [each for each in executables._executables.values() if each.checks]
    assert isinstance(program.executable._executable, stepwise.Stepwise)
    before = tables[-1].clone()
    with pytest.raises(IndexError):
        compiled(tn.tensor([0, 1, 7, 3]), *tables)
    assert tables[-1].tolist() == before.tolist()


def deep(x, weights):
    for weight in weights:
        for function in (tn.tanh, tn.exp, tn.sin, tn.cos, tn.sqrt, tn.log1p, tn.sigmoid, tn.erf):
            x = function((x * weight).abs()) + 0.5
    return x


def test_results_share_no_memory(compiles):
    @tn.compile
    def same(x, *weights):
        y = deep(x, weights)
        return y, y.clone(), x.clone(), weights[0].clone()

    weights = [tn.full((5,), 1.0 + i) for i in range(12)]
    x = tn.linspace(0, 1, 5)
    results = same(x, *weights)
    (program,) = executables._executables.values()
    assert isinstance(program.executable._executable, stepwise.Stepwise)
    expected = deep(x, weights).tolist()
    results[0].zero_()
    results[2].zero_()
    results[3].zero_()
    assert results[1].tolist() == pytest.approx(expected, rel=1e-5)
    assert x.tolist() == [0.0, 0.25, 0.5, 0.75, 1.0] and weights[0].tolist() == [1.0] * 5


def test_a_value_between_layers_is_let_go_after_its_last_use():
    params = tuple([tn.flat.ir.Value(tn.flat.ir.TensorType(tn.float32, (5,))) for _ in range(13)])
    x, *weights = params
    for weight in weights:
        for name in ("tanh", "sin", "cos", "sqrt", "ceil", "floor", "sign", "log1p", "erf", "rsqrt"):
            x = getattr(tn.flat, name)(x * weight) + 0.5
    program = stepwise.Steps(tn.flat.ir.Function(params, [x]), ())
    between = {result for step in program.steps for result in step.results} - {x}
    assert len(between) >= 11
    assert between <= {value for freed in program.freed for value in freed}


def test_an_interrupt_comes_between_runs_and_not_between_steps(compiles, monkeypatch):
    monkeypatch.setattr(tiers, "WORTH", float("inf"))  # the optimised executable never takes over
    step, model = training()
    step(tn.tensor(WORDS)).item()
    (program,) = [each.executable._executable for each in executables._executables.values() if each.checks]
    first = program._first

    def interrupted(buffers):
        os.kill(os.getpid(), signal.SIGINT)
        return first(buffers)

    program._first = interrupted
    before = [each.detach().numpy().copy() for each in model.parameters()]
    with pytest.raises(KeyboardInterrupt):
        step(tn.tensor(WORDS))
    program._first = first
    for weight, old in zip(model.parameters(), before, strict=True):
        assert weight.detach().numpy().shape == old.shape  # none was lost
    assert np.isfinite(step(tn.tensor(WORDS)).item())
