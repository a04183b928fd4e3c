"""Integer arguments of compiled functions that change: when they are open, and that nothing is wrong where
they are not."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tn
from tenfold import nn

X = np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32)


def same(found, expected):
    if isinstance(expected, tuple):
        assert type(found) is tuple and len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            same(one, other)
    elif isinstance(expected, tn.Tensor):
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)
    else:
        assert found == expected and type(found) is type(expected)


def agree(function, values):
    """Compile a function of a tensor and an integer, and compare it with itself."""
    x, step = tn.tensor(X), tn.compile(function)
    for value in values:
        same(step(x, value), function(x, value))
    return step


class Attention(nn.Module):
    """A step of decoding as it is often written: the position is a number."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(16, 48)
        self.scale = 0.25
        self.register_buffer("keys", tn.zeros(2, 80, 16))
        self.register_buffer("values", tn.zeros(2, 80, 16))

    def forward(self, x, start_pos: int):
        q, k, v = self.inner(x).chunk(3, -1)
        end = start_pos + x.shape[1]
        self.keys[:, start_pos:end] = k
        self.values[:, start_pos:end] = v
        scores = q @ self.keys[:, :end].mT * self.scale
        return tn.softmax(scores, -1) @ self.values[:, :end]


def test_a_position_compiles_a_few_programs():
    tn.manual_seed(0)
    model, plain = Attention(), Attention()
    plain.load_state_dict(model.state_dict())
    step = tn.compile(lambda x, start: model(x, start))
    with tn.no_grad():
        for position in range(70):
            x = tn.randn(2, 1, 16)
            same(step(x, position), plain(x, position))
    np.testing.assert_allclose(model.keys.numpy(), plain.keys.numpy(), rtol=1e-5, atol=1e-6)
    assert step.programs.open_count == 4 and step.programs.count == 2  # the last ends where the cache does
    assert "argument 1: any size from 64 to 79" in step.guards()
    assert "argument 1: any size from 32 to 63" in step.guards()


def test_a_changed_attribute_is_noticed_beside_an_open_integer():
    tn.manual_seed(0)
    model = Attention()
    step = tn.compile(lambda x, start: model(x, start))
    with tn.no_grad():
        for position in range(5):
            x = tn.randn(2, 1, 16)
            before = step(x, position)
        model.scale = -2.0
        after = step(x, 4)
        same(after, model(x, 4))
        assert not np.allclose(before.numpy(), after.numpy())


OPEN = {
    "slice": lambda x, n: x[:n].sum(0),
    "place": lambda x, n: x[n],
    "factor": lambda x, n: x * n / (n + 1),
    "sizes": lambda x, n: tn.ones(n, n) + tn.arange(n),
    "roll": lambda x, n: x.roll(n, 0),
    "topk": lambda x, n: x.topk(n, 0).values,
    "text": lambda x, n: x + len(f"{n:>{n}}"),
}


@pytest.mark.parametrize("function", OPEN.values(), ids=OPEN)
def test_integers_that_are_sizes_places_and_factors_are_open(function):
    step = agree(function, range(2, 16))
    assert step.programs.open_count == 1 and step.programs.count <= 1


CLOSED = {
    "dimension": (lambda x, n: x.reshape(2, 2, 2, 5, 6).sum(n), [0, 1, 2, 3, 4, -1, 2, 3]),
    "loop": (lambda x, n: sum([x * i for i in range(n)], x), [2, 3, 4, 5, 6, 3]),
    "result": (lambda x, n: (x[:n], n + 1), range(2, 12)),
    "power": (lambda x, n: x.abs() ** n, range(6)),
    "data": (lambda x, n: tn.tensor(n) + tn.tensor([n, n]), [2, 3, 4, 5, 9]),
    "returned data": (lambda x, n: (tn.tensor([n, n + 1]), tn.tensor([1, 2]), x + n), [9, 7, 5, 6]),
    "branches": (lambda x, n: x * 2 if n % 2 == 0 else x - n, range(12)),
    "kind": (lambda x, n: x * (2 if type(n) is int else 3), [2, 3, 4, 5]),
    "entry": (lambda x, n: x * [1.0, 2.0, 4.0, 8.0, 16.0, 3.0][n], range(6)),
    "flag": (lambda x, n: x if n else -x, [True, False, True]),
    "sign": (lambda x, n: x + (n if n < 6 else -n), [9, 10, 3, 11, 5]),
    "negative root": (lambda x, n: x * -(n**0.5), range(2, 12)),
    "quotient": (lambda x, n: x + divmod(n, 4)[0], [5, 14, 9, 6, 2, 8, 3, 4, 7, 10]),
    "step": (lambda x, n: x[: 20 : n + 1] * 2, [5, 17, *range(16, 32)]),
}


@pytest.mark.parametrize(("function", "values"), CLOSED.values(), ids=CLOSED)
def test_other_uses_of_integers_are_right_at_each_value(function, values):
    agree(function, values)


def test_negative_and_large_integers_and_the_ends_of_a_tensor():
    agree(lambda x, n: x[:n].sum(0), (5, 7, 9, 11, 3, 0, 1, 39, 40, 41, 33, -1, -3, 50))
    agree(lambda x, n: x + n, (2**31, 2**40, 5, 2**31 - 1, 7, 9, -(2**33)))


def test_several_integers_by_name():
    x = tn.tensor(X)
    function = lambda x, *, start, count=3: x[start : start + count] * count
    step = tn.compile(function)
    for start in range(2, 9):
        for count in (3, 4, 5):
            same(step(x, start=start, count=count), function(x, start=start, count=count))
        same(step(x, start=start), function(x, start=start))
    assert "argument `start`" in step.guards()


def test_gradients_flow_in_a_step_with_an_open_integer():
    def run(wrap):
        tn.manual_seed(0)
        model = nn.Linear(6, 1)
        optimizer = tn.optim.SGD(model.parameters(), lr=0.1)

        def step(x, n):
            optimizer.zero_grad()
            loss = model(x[:n]).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        step = wrap(step)
        return [step(tn.tensor(X), n).item() for n in (5, 8, 13, 3, 16, 12)]

    np.testing.assert_allclose(run(tn.compile), run(lambda step: step), rtol=1e-5)


def test_containers_among_the_arguments_are_the_callers():
    kept = []

    @tn.compile
    def step(cache, x, n):
        cache.append(x[:n].sum())
        return len(cache)

    for n in (2, 3, 4, 5):
        step(kept, tn.tensor(X), n)
    assert [round(each.item(), 3) for each in kept] == [round(float(X[:n].sum()), 3) for n in (2, 3, 4, 5)]


def test_without_open_sizes_each_integer_has_a_program():
    step = tn.compile(lambda x, n: x[:n], dynamic=False)
    for n in (2, 3, 4):
        assert step(tn.tensor(X), n).shape == (n, 6)
    assert step.programs.count == 3 and step.programs.open_count == 0


def test_the_change_of_an_integer_is_told():
    step = tn.compile(lambda x, n=2: x[:n])
    step(tn.tensor(X), n=2)
    step(tn.tensor(X), n=5)
    assert step.guards().endswith("because argument `n` was 2 and is 5")
    step(tn.tensor(X), n=20)
    assert step.guards().endswith("because argument `n` was 5 and is 20")
