"""Compiled functions notice what changes in containers of every kind between their calls: those derived from
dict and list, deques, sets, tuples that hold such, and small NumPy arrays."""

from __future__ import annotations

import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tests.runtime.cases import WAYS, same


class Settings(dict):
    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__


class Row(list):
    pass


def seen(library: Any, wrap: Any, function: Any, *changes: Callable[[], Any]) -> list[Any]:
    """What a function gives at first, and after each change."""
    call = wrap(function)
    found = [call(library.ones(1)).tolist()]
    for change in changes:
        change()
        found.append(call(library.ones(1)).tolist())
    return found


@pytest.mark.parametrize("wrap", WAYS)
@pytest.mark.parametrize("kind", [OrderedDict, Counter, Settings, lambda given: defaultdict(int, given)])
def test_entries_of_dicts_of_other_classes(wrap, kind):
    def program(library, wrap):
        rates = kind({"a": 1, "b": 3})

        def call(x):
            return x * rates["a"] + next(iter(rates.values()))

        def reorder():
            rates["a"] = rates.pop("a")

        return seen(
            library,
            wrap,
            call,
            lambda: rates.update(a=2),
            lambda: rates.__setitem__("a", 7),
            lambda: rates.__setitem__("a", 7.0),
            reorder,
        )

    same(program, wrap)


@pytest.mark.parametrize("wrap", WAYS)
def test_an_ordered_dict_whose_entries_change_places(wrap):
    def program(library, wrap):
        rates = OrderedDict(a=1.0, b=2.0)
        call = lambda x: x * next(iter(rates.values()))
        return seen(library, wrap, call, lambda: rates.move_to_end("a"))

    same(program, wrap)


@pytest.mark.parametrize("wrap", WAYS)
def test_settings_within_settings_and_in_an_object(wrap):
    def program(library, wrap):
        settings = Settings(optimizer=Settings(lr=1.0))
        holder = types.SimpleNamespace(settings=settings)
        call = lambda x: x * holder.settings.optimizer.lr
        return seen(library, wrap, call, lambda: setattr(settings.optimizer, "lr", 2.0))

    same(program, wrap)


@pytest.mark.parametrize("wrap", WAYS)
def test_entries_of_deques_and_lists_of_other_classes(wrap):
    def program(library, wrap):
        row, recent = Row([1.0, 2.0]), deque([1.0, 2.0], maxlen=3)
        nested = {"recent": deque([1.0]), "pair": ([1.0], 2.0)}

        def call(x):
            return x * row[0] + recent[0] + nested["recent"][0] + nested["pair"][0][0]

        return seen(
            library,
            wrap,
            call,
            lambda: row.insert(0, 5.0),
            lambda: recent.__setitem__(0, 3.0),
            lambda: recent.appendleft(9.0),
            lambda: nested["recent"].__setitem__(0, 7.0),
            lambda: nested["pair"][0].__setitem__(0, 4.0),
        )

    same(program, wrap)


@pytest.mark.parametrize("wrap", WAYS)
def test_sets_and_tuples_that_hold_lists(wrap):
    def program(library, wrap):
        chosen, pair = {1, 2}, ([1.0], 2.0)
        holder = types.SimpleNamespace(fixed=frozenset({1}))

        def call(x):
            return x * len(chosen) + (10.0 if 3 in chosen else 0.0) + pair[0][0] + len(holder.fixed)

        return seen(
            library,
            wrap,
            call,
            lambda: chosen.add(3),
            lambda: (chosen.remove(3), chosen.add(4)),
            lambda: pair[0].__setitem__(0, 5.0),
            lambda: setattr(holder, "fixed", frozenset({1, 2})),
        )

    same(program, wrap)


@pytest.mark.parametrize("wrap", WAYS)
def test_containers_that_are_attributes_of_modules(wrap):
    def program(library, wrap):
        class Layer(library.nn.Module):
            def __init__(self):
                super().__init__()
                self.settings, self.recent, self.chosen = Settings(lr=1.0), deque([1.0]), {1}
                self.table = np.array([1.0, 2.0], np.float32)

            def forward(self, x):
                result = x * self.settings.lr + self.recent[0] + len(self.chosen)
                return result + library.tensor(self.table).sum()

        layer = Layer()
        return seen(
            library,
            wrap,
            layer,
            lambda: setattr(layer.settings, "lr", 2.0),
            lambda: layer.recent.appendleft(3.0),
            lambda: layer.chosen.add(2),
            lambda: layer.table.__setitem__(0, 4.0),
        )

    same(program, wrap)


@pytest.mark.parametrize("wrap", WAYS)
def test_elements_of_small_arrays(wrap):
    def program(library, wrap):
        weights = np.array([1.0, 2.0], np.float32)
        holder = {"weights": np.array([1.0], np.float32)}

        def call(x):
            return x * float(weights[0]) + library.tensor(holder["weights"])

        return seen(
            library,
            wrap,
            call,
            lambda: weights.__setitem__(0, 5.0),
            lambda: holder["weights"].__setitem__(0, 7.0),
        )

    same(program, wrap)


@pytest.mark.parametrize("wrap", WAYS)
def test_tensors_in_containers_of_other_classes(wrap):
    def program(library, wrap):
        states, row = OrderedDict(a=library.zeros(1)), Row([library.ones(1)])
        totals = defaultdict(float, a=library.zeros(1))
        nested = {"recent": deque([library.ones(1)], maxlen=2)}

        def call(x):
            states["a"] = states["a"] + x
            totals["a"] = totals["a"] + states["a"]
            nested["recent"].append(totals["a"])
            return states["a"] * row[0] + totals["a"] + nested["recent"][0]

        return seen(
            library,
            wrap,
            call,
            lambda: None,
            lambda: row.__setitem__(0, library.full((1,), 3.0)),
            lambda: nested["recent"].append(library.full((1,), 50.0)),
            lambda: totals.update(a=library.full((1,), 7.0)),
            lambda: states.update(a=library.full((1,), 9.0)),
        )

    same(program, wrap)


def test_a_queue_of_tensors_is_looked_up_and_not_compared(recordings):
    recent = deque([tn.ones(1)], maxlen=1)
    settings = {"recent": recent}
    call, found = tn.compile(lambda x: x * settings["recent"][0]), []
    for i in range(4):
        recent.append(tn.full((1,), float(i)))
        found.append(call(tn.ones(1)).item())
    assert found == [0, 1, 2, 3]
    assert len(recordings) == 1


def test_what_is_as_it_was_is_not_recorded_again(recordings):
    settings, chosen, weights = Settings(lr=1.0), {1, 2}, np.ones(2)
    settings.itself = settings

    @tn.compile
    def call(x):
        return x * settings.lr + len(chosen) + float(weights[0]) + len(settings.itself)

    for _ in range(4):
        assert call(tn.ones(1)).item() == 6
        settings.lr, weights[0] = 1.0, 1.0
    assert len(recordings) == 1
    settings.lr = 2.0
    assert call(tn.ones(1)).item() == 7


def test_comparing_a_defaultdict_makes_no_entries():
    totals = defaultdict(float, a=tn.zeros(1), rate=2.0)

    @tn.compile
    def call(x):
        totals["a"] = totals["a"] + x
        return totals["a"] * totals.get("rate", 1.0)

    found = [call(tn.ones(1)).item()]
    totals["other"] = totals.pop("rate")
    found.append(call(tn.ones(1)).item())
    assert found == [2, 2]
    assert list(totals) == ["a", "other"]
