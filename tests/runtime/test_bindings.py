"""Compiled functions that bind tensors to names: attributes of modules and objects, variables, entries of
lists and dicts. What is bound goes on from call to call, as in PyTorch and as recorded lazily."""

from __future__ import annotations

import dataclasses
import functools
from collections import defaultdict, deque
from typing import Any

import pytest

import tenfold as tn
from tests.runtime.cases import WAYS, same


@pytest.mark.parametrize("wrap", WAYS)
def test_attributes_go_on_from_call_to_call(wrap):
    def program(library, wrap):
        class Averaging(library.nn.Module):
            def __init__(self):
                super().__init__()
                self.mean, self.before, self.hidden = library.zeros(2), None, None
                self.register_buffer("total", library.zeros(2))
                self.left = self.right = library.zeros(2)
                self.named, self.listed = {}, [library.zeros(2), library.ones(2)]

            def forward(self, x):
                self.before = self.mean
                self.mean = 0.5 * self.mean + x
                self.total = self.total + x
                hidden, cell = self.hidden or (x * 0, x * 0)
                self.hidden = (hidden + x, cell + hidden)
                self.last = x
                self.left, self.right = self.right + x, self.left
                self.named["next"] = x + 1
                self.listed[0], self.listed[1] = self.listed[1], self.listed[0] + x
                return self.mean * 2

        module, seen = Averaging(), []
        call = wrap(module)
        for i in range(5):
            x = library.full((2,), float(i + 1))
            result = call(x)
            held = (result, module.before, module.mean, module.total, *module.hidden, module.last)
            held += (module.left, module.right, module.named["next"], *module.listed)
            seen.append([each.tolist() for each in held])
            seen.append(module.last is x)
            if i == 2:
                module.hidden = None
            if i == 3:
                module.mean = library.ones(2)
        return seen

    same(program, wrap)


@pytest.mark.parametrize("wrap", WAYS)
def test_variables_and_objects_go_on_from_call_to_call(wrap):
    def program(library, wrap):
        class Trainer:
            def __init__(self):
                self.average, self.rate = library.zeros(1), 1.0

            def step(self, x):
                self.average = self.average * 0.5 + x * self.rate
                return self.average.sum()

        state, weight, trainer, seen = library.zeros(2), library.ones(2), Trainer(), []

        def update(x):
            nonlocal state
            state = state * 0.5 + x * weight
            return state.sum()

        call, step = wrap(update), wrap(trainer.step)
        for i in range(4):
            seen += [call(library.full((2,), float(i))).item(), state.tolist()]
            seen += [step(library.ones(1)).item(), trainer.average.tolist()]
            weight = library.full((2,), float(i + 2))
            trainer.rate += 1
        return seen

    same(program, wrap)


@pytest.mark.parametrize("wrap", WAYS)
def test_entries_of_containers_and_objects_go_on_from_call_to_call(wrap):
    def program(library, wrap):
        @dataclasses.dataclass
        class State:
            hidden: Any
            caches: Any = ()

            def advance(self, x):
                self.hidden = self.hidden * 0.5 + x

        class Layer(library.nn.Module):
            def __init__(self):
                super().__init__()
                self.state, self.rows = State(library.zeros(2)), [{}, {"sum": library.ones(2)}]

            def forward(self, x):
                self.state.advance(x)
                for row in self.rows:
                    row["sum"] = row["sum"] + x if "sum" in row else x * 3
                return self.state.hidden + self.rows[0]["sum"] + self.rows[1]["sum"]

        layer = Layer()
        averages, recent, totals = {"a": library.zeros(2)}, deque(maxlen=2), defaultdict(float)
        state = State(library.ones(2), ({"keys": [library.zeros(2)]}, {}))
        scale = State(library.ones(2))

        @wrap
        def step(x):
            result = layer(x) * scale.hidden
            averages["a"] = averages["a"] * 0.5 + result
            recent.append(result)
            totals["x"] = totals["x"] + x
            state.advance(x)
            state.caches[0]["keys"][0] = state.caches[0]["keys"][0] + state.hidden
            return result + sum(recent)

        seen = []
        for i in range(5):
            held = [
                step(library.full((2,), i + 1.0)),
                layer.state.hidden,
                *[row["sum"] for row in layer.rows],
            ]
            held += [averages["a"], *recent, totals["x"], state.hidden, state.caches[0]["keys"][0]]
            seen.append([each.tolist() for each in held])
            scale.hidden = library.full((2,), i + 2.0)
            if i == 2:
                totals.clear()
                state = State(library.zeros(2), ({"keys": [library.ones(2)]},))
                layer.rows[1] = {"sum": library.zeros(2)}
        return seen

    same(program, wrap)


@pytest.mark.parametrize("wrap", WAYS)
def test_whatever_is_compiled_binds_what_it_would(wrap):
    def program(library, wrap):
        class Counting(library.nn.Module):
            def __init__(self):
                super().__init__()
                self.count, self.total, self.rate = library.zeros(()), library.zeros(()), 1.0

            @wrap
            def forward(self, x):
                self.count = self.count + 1
                return x * self.count * self.rate

            def sum(self, x):
                self.total = self.total + x * self.rate
                return self.total * 1

        class Called:
            def __init__(self):
                self.sum, self.rate = library.zeros(()), 1.0

            def add(self, x):
                self.sum = self.sum + x * self.rate
                return self.sum * 1

            def __call__(self, x):
                return self.add(x)

        module, called, plain, state = Counting(), Called(), Called(), library.zeros(())

        @wrap
        @library.no_grad()
        def decorated(x):
            nonlocal state
            state = state + x * module.rate
            return state * 1

        calls = [module, wrap(module.sum), wrap(called), wrap(functools.partial(plain.add)), decorated]
        seen = []
        for _ in range(3):
            results = [call(library.ones(())) for call in calls]
            held = [*results, module.count, module.total, called.sum, plain.sum, state]
            seen.append([each.item() for each in held])
            module.rate = called.rate = plain.rate = module.rate + 1
        return seen

    same(program, wrap)


@pytest.mark.parametrize("wrap", WAYS)
def test_what_is_bound_is_written_in_place_too(wrap):
    def program(library, wrap):
        class Both(library.nn.Module):
            def __init__(self):
                super().__init__()
                self.state, self.seen = library.zeros(2), library.ones(2)
                self.register_buffer("count", library.zeros(2))

            def forward(self, x):
                doubled = self.seen * 2
                self.count.add_(x)
                result = self.seen + doubled
                self.seen = self.count
                self.state.mul_(0.5)
                old, self.state = self.state, self.state + x
                old.add_(1)
                return result + old

        module, seen = Both(), []
        call = wrap(module)
        for i in range(4):
            seen += [call(library.full((2,), i + 1.0)).tolist(), module.state.tolist(), module.seen.tolist()]
            seen.append(module.seen is module.count)
        return seen

    same(program, wrap)


@pytest.mark.parametrize("wrap", WAYS)
def test_gradients_flow_through_what_was_bound(wrap):
    def program(library, wrap):
        class Cell(library.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = library.nn.Parameter(library.full((2, 2), 0.3))
                self.state = library.zeros(2)

            def forward(self, x):
                self.state = library.tanh(self.weight @ self.state + x)
                return self.state

        module = Cell()
        call = wrap(module)
        sum([call(library.full((2,), 0.1 * i)).sum() for i in range(4)]).backward()
        return module.weight.grad.tolist()

    same(program, wrap)


def test_a_step_that_binds_is_recorded_no_more_than_twice(recordings):
    average, best = tn.zeros(()), None
    model = tn.nn.Linear(2, 1)
    optimizer = tn.optim.SGD(model.parameters(), lr=0.1)

    @tn.compile
    def step(x):
        nonlocal average, best
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        average = 0.9 * average + 0.1 * loss.detach()
        best = model.weight.detach().clone()
        return loss

    losses = [step(tn.ones(3, 2)).item() for _ in range(6)]
    assert len(recordings) <= 2
    expected = 0.0
    for each in losses:
        expected = 0.9 * expected + 0.1 * each
    assert average.item() == pytest.approx(expected, rel=1e-5)
    assert best.tolist() == model.weight.tolist()


def test_entries_that_keep_their_types_are_recorded_once(recordings):
    averages = {str(i): tn.zeros(2) for i in range(150)}
    nested = [{"sum": tn.zeros(2)}]

    @tn.compile
    def step(x):
        for name in averages:
            averages[name] = averages[name] + x
        nested[0]["sum"] = nested[0]["sum"] + averages["7"]
        return nested[0]["sum"] * 1

    assert [step(tn.ones(2)).tolist()[0] for _ in range(4)] == [1, 3, 6, 10]
    assert averages["149"].tolist() == [4, 4]
    assert len(recordings) == 1


def test_a_call_that_fails_leaves_what_was_bound():
    class Keeping(tn.nn.Module):
        def __init__(self):
            super().__init__()
            self.state, self.fails = tn.zeros(2), True

        def forward(self, x):
            self.state = self.state + x
            if self.fails:
                raise ValueError("as asked")
            return self.state * 1

    module = Keeping()
    call = tn.compile(module)
    with pytest.raises(ValueError, match="as asked"):
        call(tn.ones(2))
    assert module.state.tolist() == [0, 0]
    module.fails = False
    assert call(tn.ones(2)).tolist() == [1, 1]


def test_a_program_that_is_shown_binds_nothing():
    class Keeping(tn.nn.Module):
        def forward(self, x):
            self.last = x * 2
            return self.last

    module = Keeping()
    assert "mul" in tn.show(module, tn.ones(2), stage="trace")
    assert not hasattr(module, "last")


@pytest.mark.parametrize("wrap", WAYS)
def test_parameters_over_detached_memory_are_read_at_every_call(wrap):
    def program(library, wrap):
        layer = library.nn.utils.weight_norm(library.nn.Linear(2, 2))
        base = library.nn.Parameter(library.ones(2))
        over = library.nn.Parameter(base.detach()[:1])
        with library.no_grad():
            layer.weight_v.copy_(library.tensor([[1.0, 2.0], [3.0, 4.0]]))
            layer.weight_g.fill_(2.0)
            layer.bias.zero_()
        optimizer = library.optim.SGD([*layer.parameters(), base], lr=0.0625)

        @wrap
        def step(x):
            optimizer.zero_grad()
            loss = (layer(x) * over + base).square().sum()
            loss.backward()
            optimizer.step()
            return loss

        seen = []
        for _ in range(4):
            seen += [step(library.ones(1, 2)).item(), layer.weight.tolist(), over.tolist()]
        return seen

    same(program, wrap)


def test_lazy_modules_get_their_shapes_in_a_compiled_call():
    model = tn.nn.Sequential(tn.nn.LazyLinear(3), tn.nn.LazyBatchNorm1d())
    call = tn.compile(model)
    for i in range(3):
        assert call(tn.ones(4, 2)).shape == (4, 3)
        assert model[1].num_batches_tracked.item() == i + 1
    assert type(model[0]) is tn.nn.Linear and model[0].weight.shape == (3, 2)


def test_functions_may_share_the_tuple_of_their_defaults():
    def double(x, by=None, to=None):
        return x * 2 if by is None else x * by

    def shift(x, by=None, to=None):
        return x + 1 if by is None else x + by

    shift.__defaults__ = double.__defaults__
    assert tn.compile(lambda x: shift(double(x)))(tn.ones(2)).tolist() == [3, 3]
