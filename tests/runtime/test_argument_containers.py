"""What a compiled function does to the containers among its arguments is done to the caller's own."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import tenfold as tn
from tenfold.base.errors import TraceError


@dataclass
class State:
    hidden: Any
    seen: list = field(default_factory=list)


def appended(m, x, cache):
    cache.append(x * 2)
    return x + len(cache)


def rotated(m, x, cache):
    cache.insert(0, cache.pop())
    cache[1] = cache[0] + x
    return cache[0] * 1


def stored(m, x, cache):
    cache["new"] = x * 3
    del cache["old"]
    return x + 1


def nested(m, x, cache):
    cache["layers"][0]["keys"] = m.cat([cache["layers"][0]["keys"], x])
    cache["layers"].append({"keys": x * 5})
    return cache["layers"][0]["keys"].sum()


def moved(m, x, cache):
    cache["first"], cache["second"] = cache["second"], cache["first"]
    cache["second"].append(x * 2)
    return x * 1


def remembered(m, x, cache):
    cache.seen.append(x - 1)
    cache.hidden = cache.hidden + x
    cache.extra = x * 7
    return cache.hidden * 2


def queued(m, x, cache):
    cache.append(x + 1)
    return cache[0] * 1


def counted(m, x, cache):
    cache["calls"] += 1
    return x * cache["calls"]


def emptied(m, x, cache):
    total = sum(cache)
    cache.clear()
    return total + x


def within_a_tuple(m, x, cache):
    cache[0].append(x)
    return cache[1] * x


CASES = [
    (appended, lambda m: []),
    (rotated, lambda m: [m.zeros(2), m.ones(2)]),
    (stored, lambda m: OrderedDict(old=m.zeros(1), kept=m.ones(1))),
    (nested, lambda m: {"layers": [{"keys": m.ones(2)}]}),
    (moved, lambda m: {"first": [m.ones(1)], "second": []}),
    (remembered, lambda m: State(m.ones(2))),
    (remembered, lambda m: SimpleNamespace(hidden=m.ones(2), seen=[])),
    (queued, lambda m: deque([m.zeros(2), m.ones(2)], 2)),
    (counted, lambda m: Counter(calls=2)),
    (emptied, lambda m: [m.ones(2), m.full((2,), 3.0)]),
    (within_a_tuple, lambda m: ([], m.full((2,), 3.0))),
]


@pytest.mark.parametrize(("function", "make"), CASES, ids=[function.__name__ for function, _ in CASES])
def test_it_is_as_without_compiling(function, make):
    def run(m, compiled):
        f = compiled(lambda x, cache: function(m, x, cache))
        cache, seen = make(m), []
        for i in range(2):
            with_old = isinstance(cache, OrderedDict) and cache.setdefault("old", m.ones(1))
            seen.append((f(m.tensor([1.0, 2.0]) + i, cache), cache, with_old))
        # The same container with the same contents again: a call that is not recorded.
        again = make(m)
        seen.append((f(m.tensor([1.0, 2.0]), again), again))
        return repr(seen)

    expected = run(torch, lambda f: f)
    assert run(tn, lambda f: tn.compile(f, fullgraph=True)) == expected
    assert run(tn, lambda f: f) == expected


def test_tensors_and_containers_that_stay_are_the_very_same():
    x, weight, inner = tn.ones(2).eval(), tn.ones(2, requires_grad=True).eval(), {"k": tn.zeros(1)}
    cache = [weight, inner]

    @tn.compile
    def f(x, cache):
        cache.append(x * 2)
        cache[1]["k"] = x + 1
        return x

    f(x, cache)
    assert cache[0] is weight and cache[1] is inner
    assert inner["k"].tolist() == [2.0, 2.0] and cache[2].tolist() == [2.0, 2.0]


def test_gradients_flow_through_what_was_put_into_a_list():
    w, kept = tn.tensor([2.0], requires_grad=True), []

    @tn.compile
    def f(w, kept):
        kept.append(w * w)
        return w * 1

    f(w, kept)
    kept[0].sum().backward()
    assert w.grad.tolist() == [4.0]


def test_a_list_that_is_given_twice_and_changed_is_refused():
    cache = [tn.ones(1)]
    with pytest.raises(TraceError, match="given twice"):
        tn.compile(lambda a, b: a.append(b[0] * 2))(cache, cache)
    assert len(cache) == 1
    assert tn.compile(lambda a, b: a[0] + b[0])(cache, cache).item() == 2


def test_a_list_that_is_given_twice_is_refused_also_where_two_lists_were_given_before():
    f = tn.compile(lambda x, a, b: (a.append(1), b.append(2), x * 2)[-1])
    f(tn.ones(1), [], [])
    cache = []
    with pytest.raises(TraceError, match="given twice"):
        f(tn.ones(1), cache, cache)
    assert cache == []


def test_a_function_that_fails_changes_nothing():
    cache = [tn.arange(3.0)]

    @tn.compile
    def f(i, cache):
        cache.append(cache[0][i])
        return i * 1

    with pytest.raises(IndexError):
        f(tn.tensor([5]), cache)
    assert len(cache) == 1


@pytest.mark.parametrize("wrap", [tn.compile, lambda function: function])
def test_containers_of_the_caller_stay_so_inside_new_ones(wrap):
    @wrap
    def f(x, cache, inner):
        cache.append((inner, {"again": inner}))
        return x * 1

    for _ in range(2):  # the second call is not recorded
        cache: list[Any] = []
        inner = [1]
        f(tn.ones(1), cache, inner)
        assert cache[0][0] is inner and cache[0][1]["again"] is inner


@pytest.mark.parametrize("wrap", [tn.compile, lambda function: function])
def test_containers_of_the_caller_that_are_returned_are_its_own(wrap):
    @wrap
    def f(x, cache, options):
        cache.append(x * 2)
        return cache, {"options": options}, x + 1

    for _ in range(2):
        cache: list[Any] = []
        options = {"scale": 2}
        found, named, _ = f(tn.ones(1), cache, options)
        assert found is cache and named["options"] is options and found[0].item() == 2


def test_a_list_of_tensors_may_be_all_that_is_returned():
    found = tn.compile(lambda x, cache: cache)(tn.ones(1), [tn.ones(1) * 3])
    assert found[0].item() == 3
