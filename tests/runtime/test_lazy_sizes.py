"""Lazy loops whose sizes change: one executable serves them, whatever lies in its padding."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.runtime import evaluate, lazy_sizes
from tenfold.runtime.executables import counting_compiles
from tests.random_programs.open_sizes import hostile

pytestmark = pytest.mark.usefixtures("on_xla")
RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def no_families(monkeypatch):
    monkeypatch.setattr(lazy_sizes, "_families", type(lazy_sizes._families)())
    monkeypatch.setattr(evaluate, "blank", hostile)
    monkeypatch.setenv("TENFOLD_CACHE_DIR", "")


def rows(count, width=4):
    return RNG.normal(size=(count, width)).astype(np.float32)


def test_the_third_size_compiles_for_those_that_follow():
    def program(lib, x):
        return (lib.tensor(x) @ lib.ones(4, 3)).softmax(0).cumsum(0)

    for size in (20, 25, 31):
        x = rows(size)
        np.testing.assert_allclose(program(tn, x).numpy(), program(torch, x).numpy(), 1e-5, 1e-6)
    with counting_compiles() as compiles:
        for size in (18, 32, 17, 27):
            x = rows(size)
            np.testing.assert_allclose(program(tn, x).numpy(), program(torch, x).numpy(), 1e-5, 1e-6)
    assert compiles == 0


def train(lib, sizes):
    """The losses of a network on batches of these sizes."""
    model = lib.nn.Sequential(lib.nn.Linear(4, 8), lib.nn.LayerNorm(8), lib.nn.Tanh(), lib.nn.Linear(8, 3))
    with lib.no_grad():
        for i, each in enumerate(model.parameters()):
            each.copy_(lib.linspace(-1, 1, each.numel()).reshape(each.shape) * 0.5**i)
    optimizer = lib.optim.Adam(model.parameters(), lr=0.01)
    chance, losses = np.random.default_rng(1), []
    for size in sizes:
        x = lib.tensor(chance.normal(size=(size, 4)).astype(np.float32))
        optimizer.zero_grad()
        loss = lib.nn.functional.cross_entropy(model(x), lib.tensor(chance.integers(0, 3, size)))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_batches_of_every_length_train_by_one_executable():
    sizes = [20, 25, 31, 18, 22, 32, 17, 29]
    with counting_compiles() as compiles:
        losses = train(tn, sizes)
    assert compiles <= 4  # the first step, which also makes the parameters; two sizes; all others
    np.testing.assert_allclose(losses, train(torch, sizes), 1e-5)


def decode(lib, count):
    """A cache that grows by cat, and is read by one query after the other."""
    cache, outputs = lib.ones(1, 4), []
    for i in range(count):
        query = lib.tensor([[float(i), 1.0, 0.0, -1.0]])
        cache = lib.cat([cache, query * 0.5])
        weights = (query @ cache.T / cache.shape[0]).softmax(-1)
        outputs.append((weights @ cache + lib.arange(cache.shape[0]).sum()).tolist()[0])
    return outputs


def test_a_cache_that_grows_by_cat_takes_few_executables():
    with counting_compiles() as compiles:
        outputs = decode(tn, 40)
    assert compiles < 8
    np.testing.assert_allclose(outputs, decode(torch, 40), 1e-5)


def test_two_lengths_that_changed_alike_may_change_apart():
    def program(lib, n, m):
        x, y = lib.arange(4 * n).reshape(n, 4), lib.arange(4 * m).reshape(m, 4)
        return (x @ y.T).sum(1)

    for n, m in ((20, 21), (24, 25), (28, 29), (30, 18), (19, 32), (22, 27), (17, 17)):
        assert program(tn, n, m).tolist() == program(torch, n, m).tolist()


def test_a_slice_that_ends_with_the_data_is_right():
    for size in (20, 25, 31, 18, 5, 3, 2, 1, 0):
        x = rows(size)
        for lib in (tn, torch):
            found = lib.tensor(x)[:3].sum(0) + lib.tensor(x)[-2:].sum()
            expected = x[:3].sum(0) + x[-2:].sum()
            np.testing.assert_allclose(found.numpy(), expected, 1e-5, 1e-6)


def test_an_op_without_an_open_form_is_compiled_for_each_size():
    for size in (20, 25, 31, 18):
        x = rows(size)
        found = tn.fft.fft(tn.tensor(x), dim=0).abs().sum()
        assert found.item() == pytest.approx(np.abs(np.fft.fft(x, axis=0)).sum(), 1e-4)
    (family,) = [each for each in lazy_sizes._families.values() if each.refused]
    assert "fft" in next(iter(family.refused.values()))


def test_random_numbers_are_those_of_the_true_size():
    expected = []
    for size in (20, 25, 31, 18, 32):
        tn.manual_seed(size)
        expected.append((tn.rand(size, 2).eval() * 2).numpy())
    for size, own in zip((20, 25, 31, 18, 32), expected, strict=True):
        tn.manual_seed(size)
        np.testing.assert_array_equal((tn.rand(size, 2) * 2).numpy(), own)


def test_a_number_beyond_32_bits_that_follows_from_a_size_stays_exact():
    for size in (50000, 50001, 50002, 50003):
        share = tn.ones(size, dtype=tn.float64).sum() / (size * size)
        assert share.item() == size / (size * size)


def test_numbers_that_are_no_sizes_may_change():
    x = tn.ones(2, 2, 3, 3, 3, 3)
    for dim in (2, 3, 4, 5):
        assert x.flip(dim).cumsum(dim).max().item() == 3
    for size in (10, 12, 9, 13, 14, 15, 8, 7):
        assert tn.ones(size).chunk(3)[-1].sum().item() == torch.ones(size).chunk(3)[-1].sum().item()


def test_a_number_that_falls_as_a_size_grows_follows_from_it():
    def program(lib, x):
        return lib.cat([lib.tensor(x), lib.zeros(40 - len(x), 4)]).cumsum(0).tanh() + len(x)

    for size in (20, 25, 31):
        x = rows(size)
        np.testing.assert_allclose(program(tn, x).numpy(), program(torch, x).numpy(), 1e-5, 1e-6)
    with counting_compiles() as compiles:
        for size in (18, 32, 17, 27):
            x = rows(size)
            np.testing.assert_allclose(program(tn, x).numpy(), program(torch, x).numpy(), 1e-5, 1e-6)
    assert compiles == 0
