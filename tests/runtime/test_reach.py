"""Compiled functions depend on what the code that they call comes to by name, as their own code does."""

from __future__ import annotations

import dataclasses
import functools
import types
import weakref
from typing import Any

import pytest

import tenfold as tn
from tests.runtime.cases import WAYS, same

HELPERS = """
total, scale, settings = library.zeros(1), 1.0, Namespace(shift=0.0, power=1)

def add(x):
    global total
    total = total + x
    return total * scale + settings.shift

class Running:
    sum, rate = library.zeros(1), 1.0

    @classmethod
    def add(cls, x):
        cls.sum = cls.sum + x
        return cls.sum * cls.rate

    @property
    def twice(self):
        return self.sum * 2 + settings.shift
"""


def helpers(library: Any) -> Any:
    """A module of the user's, by whatever name it is imported."""
    module = types.ModuleType("helpers")
    vars(module).update(library=library, Namespace=types.SimpleNamespace)
    exec(HELPERS, vars(module))
    return module


@pytest.mark.parametrize("wrap", WAYS)
def test_what_helpers_bind_goes_on_from_call_to_call(wrap):
    def program(library, wrap):
        module = helpers(library)
        running, seen, state = module.Running(), [], library.zeros(1)

        sums = [library.zeros(1)]

        def advance(x, kept=sums):
            nonlocal state
            state = state + x
            kept[0] = kept[0] + state
            return kept[0]

        @wrap
        def inner(x):
            return module.add(x) * 2

        class Layer(library.nn.Module):
            count = library.zeros(1)

            def forward(self, x):
                type(self).count = self.count + x
                return self.count + advance(x)

        layer = Layer()

        @wrap
        def step(x):
            step.calls = step.calls + x
            return inner(x) + running.add(x) + running.twice + layer(x) + state + step.calls

        step.calls = library.zeros(1)
        for i in range(5):
            seen.append(step(library.full((1,), i + 1.0)).item())
            seen += [each.item() for each in (module.total, module.Running.sum, state, layer.count)]
        return seen

    same(program, wrap)


@pytest.mark.parametrize("wrap", WAYS)
def test_what_helpers_read_is_noticed_where_it_changes(wrap):
    def program(library, wrap):
        module, seen = helpers(library), []

        @dataclasses.dataclass
        class Options:
            factor: float

            def apply(self, x):
                return x * self.factor

        options, power = Options(1.0), 1
        act = library.relu

        def raised(x):
            return x**power

        class Layer(library.nn.Module):
            def __init__(self):
                super().__init__()
                self.act = library.relu

            def forward(self, x):
                return self.act(x) + raised(x)

        layer = Layer()

        @wrap
        def step(x):
            return options.apply(layer(x)) + act(x) + module.Running.rate + module.add(x)

        def run():
            seen.append(step(library.full((1,), 0.5)).item())

        run()
        options.factor = 3.0
        run()
        options = Options(5.0)
        run()
        power = 2
        run()
        act, layer.act = library.sin, library.cos
        run()
        layer = Layer()
        run()
        module.Running.rate = 7.0
        run()
        module.scale, module.settings.shift = 2.0, 9.0
        run()
        module.add = lambda x: x * 100
        run()
        return seen

    same(program, wrap)


@pytest.mark.parametrize("wrap", WAYS)
def test_attributes_that_take_the_place_of_inherited_ones_are_noticed(wrap):
    def program(library, wrap):
        class Base(library.nn.Module):
            gain = 1.0

            def forward(self, x):
                return x * self.gain

        class Derived(Base):
            pass

        layer = Derived()
        call = wrap(layer)
        seen = [call(library.ones(1)).item()]
        for owner, gain in ((Base, 2.0), (Derived, 3.0), (layer, 4.0)):
            owner.gain = gain
            seen.append(call(library.ones(1)).item())
        return seen

    same(program, wrap)


def test_what_is_not_named_is_not_looked_at(recordings):
    """A log that the caller keeps beside a step is none of the step's business."""

    class Trainer:
        def __init__(self):
            self.average, self.history, self.steps = tn.zeros(1), [], 0

        def update(self, x):
            self.average = self.average * 0.5 + x

        @tn.compile
        def step(self, x):
            self.update(x)
            return self.average * 1

    trainer = Trainer()
    for _ in range(5):
        trainer.history.append(trainer.step(tn.ones(1)).item())
        trainer.steps += 1
    assert trainer.history[-1] == pytest.approx(1.9375)
    assert len(recordings) == 1


def test_a_count_that_is_named_like_a_method_is_not_looked_at(recordings):
    """`optimizer.step()` has nothing to do with a loop's variable, or a number, that is called step."""

    class Trainer:
        def __init__(self):
            self.weight, self.step = tn.ones(1, requires_grad=True), 0
            self.optimizer = tn.optim.SGD([self.weight], lr=0.5)

        def update(self, x):
            loss = (self.weight * x).sum()
            self.weight.grad = None
            loss.backward()
            self.optimizer.step()
            return loss.data

    module = types.ModuleType("script")
    vars(module).update(tn=tn, trainer=Trainer())
    exec("def update(x): return trainer.update(x).data", vars(module))
    compiled, seen = tn.compile(module.update), []
    for step in range(5):
        module.step = module.data = module.trainer.step = step
        seen.append(compiled(tn.ones(1)).item())
    assert seen == [1, 0.5, 0, -0.5, -1]
    assert len(recordings) == 2  # before and after there is a gradient


def test_a_variable_that_two_functions_share_is_looked_up_once(recordings):
    state = tn.zeros(1)

    def add(x):
        nonlocal state
        state = state + x

    @tn.compile
    def step(x):
        add(x)
        return state * 2

    assert [step(tn.ones(1)).item() for _ in range(4)] == [2, 4, 6, 8]
    assert len(recordings) == 1


@pytest.mark.parametrize("wrap", WAYS)
def test_attributes_without_a_dict_go_on_and_are_noticed(wrap):
    def program(library, wrap):
        @dataclasses.dataclass(slots=True, eq=False)
        class State:
            sum: Any
            rate: float = 1.0

        state, given, seen = State(library.zeros(1)), State(library.ones(1)), []
        gone = weakref.proxy(set())

        @wrap
        def step(other, x):
            state.sum = state.sum + x * state.rate
            other.sum = other.sum * 2
            return state.sum + other.sum if x is not gone else x

        for i in range(4):
            seen += [step(given, library.ones(1)).item(), state.sum.item(), given.sum.item()]
            state.rate = 1.0 if i < 2 else 3.0
        return seen

    same(program, wrap)


@pytest.mark.parametrize("wrap", WAYS)
def test_attributes_that_are_looked_up_by_other_means_are_noticed(wrap):
    def program(library, wrap):
        options = types.SimpleNamespace(first=1.0, second=2.0)

        def sum_of(names):
            return sum(getattr(options, name) for name in names)

        step = wrap(functools.partial(lambda names, x: x * sum_of(names), ("first", "second")))
        seen = [step(library.ones(1)).item()]
        options.second = 5.0
        return [*seen, step(library.ones(1)).item()]

    same(program, wrap)


@pytest.mark.parametrize("wrap", WAYS)
def test_attributes_that_were_not_there_are_noticed(wrap):
    def program(library, wrap):
        class Layer(library.nn.Module):
            def forward(self, x):
                return x * (self.extra if hasattr(self, "extra") else 1.0)

        class Plain:
            pass

        class Slotted:
            __slots__ = ("slot",)

        layer, plain, later, slotted = Layer(), Plain(), Plain(), Slotted()
        module, names = types.ModuleType("settings"), ("first", "second")
        options = types.SimpleNamespace(first=1.0)

        def tried(x):
            try:
                return x * plain.tried
            except AttributeError:
                return x * 9

        calls = [
            wrap(layer),
            wrap(lambda x: x * (2.0 if hasattr(plain, "flag") else 1.0)),
            wrap(lambda x: x * getattr(later, "rate", 9.0)),
            wrap(lambda x: x * getattr(slotted, "slot", 9.0)),
            wrap(lambda x: x * (2.0 if hasattr(module, "flag") else 1.0)),
            wrap(lambda x: x * sum(hasattr(options, name) for name in names)),
            wrap(lambda x: x * sum(getattr(options, name, 9.0) for name in names)),
            wrap(tried),
        ]
        seen = [[call(library.ones(1)).item() for call in calls]]
        layer.extra, plain.flag, later.rate, slotted.slot = 3.0, True, 2.0, 5.0
        module.flag, options.second, plain.tried = True, 4.0, 6.0
        seen.append([call(library.ones(1)).item() for call in calls])
        del layer.extra, plain.flag, later.rate, slotted.slot, module.flag, options.second, plain.tried
        seen.append([call(library.ones(1)).item() for call in calls])
        Plain.flag, Plain.rate, Layer.extra = True, 8.0, 7.0
        seen.append([call(library.ones(1)).item() for call in calls])
        return seen

    same(program, wrap)


@pytest.mark.parametrize("wrap", WAYS)
def test_a_parameter_buffer_or_module_that_was_not_there_is_noticed(wrap):
    def program(library, wrap):
        class Layer(library.nn.Module):
            def forward(self, x):
                x = x * self.weight if hasattr(self, "weight") else x
                x = x + self.shift if hasattr(self, "shift") else x
                return self.act(x) if hasattr(self, "act") else x

        layer = Layer()
        call = wrap(layer)
        seen = [call(library.full((1,), -1.0)).item()]
        layer.weight = library.nn.Parameter(library.full((1,), 3.0))
        seen.append(call(library.full((1,), -1.0)).item())
        layer.register_buffer("shift", library.ones(1))
        seen.append(call(library.full((1,), -1.0)).item())
        layer.act = library.nn.ReLU()
        seen.append(call(library.full((1,), -1.0)).item())
        return seen

    same(program, wrap)


@pytest.mark.parametrize("wrap", WAYS)
def test_attributes_that_take_the_place_of_methods_are_noticed(wrap):
    def program(library, wrap):
        class Base(library.nn.Module):
            def act(self, x):
                return x * 3

            def forward(self, x):
                return self.act(x)

        class Layer(Base):
            pass

        class Plain:
            def act(self, x):
                return x * 3

        class Derived(Plain):
            pass

        layer, inner, plain, held = Layer(), library.nn.ReLU(), Derived(), [Layer()]
        outer = library.nn.Sequential(inner, library.nn.Identity())
        calls = [
            wrap(layer),
            wrap(lambda x: layer(x) + outer(x)),
            wrap(lambda x: plain.act(x)),
            wrap(lambda x: held[0].act(x)),
        ]
        seen = []

        def look():
            seen.append([call(library.ones(1)).item() for call in calls])

        look()
        layer.act = plain.act = held[0].act = lambda x: x * 7
        look()
        inner.forward = lambda x: x * 11
        look()
        del layer.act, plain.act, inner.forward, held[0].act
        look()
        Derived.act = lambda self, x: x * 13
        Layer.forward = lambda self, x: x * 17
        look()
        layer.forward = lambda x: x * 19
        look()
        layer.forward = lambda x: x * 23
        look()
        return seen

    same(program, wrap)
