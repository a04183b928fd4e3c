"""Containers taken apart and put together again, and what makes two of them the same."""

from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass
from types import MappingProxyType, SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

import tenfold as tn
from tenfold.trace import tree

Pair = namedtuple("Pair", "first second")


@dataclass
class Option:
    value: object
    more: object = None

    def __post_init__(self):
        self.added = (self.value, 2)


@dataclass(frozen=True)
class Fixed:
    value: object
    number: int


@dataclass(slots=True)
class Slotted:
    value: object


def taken_apart(value):
    leaves = []
    return tree.flatten(value, lambda each: isinstance(each, str), leaves), leaves


@pytest.mark.parametrize(
    "value",
    [
        ["a", ("b", 1), {"k": "c"}],
        Pair("a", [2.5, None]),
        OrderedDict(z="a", y=["b"]),
        defaultdict(list, {"k": "a"}),
        {"k": np.float32(1.5), "l": 1 + 2j, "m": np.int64(3)},
        Counter(k=2, l=3),
        MappingProxyType({"k": ["a"]}),
        slice(1, "a", None),
        {"a", 1, 2.5},
        frozenset({"a", 1}),
        deque(["a", 1], 5),
        Option("a", [1, "b"]),
        Fixed("a", 3),
        Slotted("a"),
        SimpleNamespace(k="a", l=2),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_taken_apart_is_put_together_again(value):
    structure, leaves = taken_apart(value)
    made = tree.unflatten(structure, iter(leaves))
    assert made == value and type(made) is type(value)
    assert hash(structure) == hash(taken_apart(value)[0])


def test_what_else_a_container_is_belongs_to_its_structure():
    assert taken_apart(deque([1], 2))[0] != taken_apart(deque([1], 3))[0]
    assert taken_apart({1})[0] != taken_apart({True})[0] != taken_apart(frozenset({True}))[0]
    assert tree.unflatten(taken_apart(deque([1], 2))[0], iter(())).maxlen == 2
    assert tree.unflatten(taken_apart(Option("a"))[0], iter("aa")).added == ("a", 2)


def test_an_object_that_is_only_itself_is_not_taken_apart():
    @dataclass(eq=False)
    class Layer:
        value: object

    layer = Layer("a")
    assert taken_apart(layer) == ((Layer, layer), [])


def test_a_dict_keeps_what_makes_its_missing_entries():
    structure, leaves = taken_apart({"inner": defaultdict(list, k="a")})
    made = tree.unflatten(structure, iter(leaves))["inner"]
    made["new"].append(1)
    assert made == {"k": "a", "new": [1]}
    assert taken_apart(defaultdict(int))[0] != taken_apart(defaultdict(list))[0]


@pytest.mark.parametrize(
    "kind", [float, np.float64, np.float32, np.float16, complex, np.complex64, ml_dtypes.bfloat16]
)
def test_numbers_are_told_apart_by_their_bits(kind):
    structures = [taken_apart(kind(each))[0] for each in (0.0, -0.0, 1.0, float("nan"))]
    assert len(set(structures)) == 4
    assert structures == [taken_apart(kind(each))[0] for each in (0.0, -0.0, 1.0, float("nan"))]


def test_numbers_of_different_types_are_told_apart():
    given = (1, 1.0, True, 1 + 0j, np.float64(1), np.float32(1), np.int64(1), np.bool_(True))
    assert len({taken_apart(each)[0] for each in given}) == len(given)
    for each in given:
        assert type(tree.unflatten(taken_apart(each)[0], iter(()))) is type(each)


def test_a_compiled_function_keeps_signs_of_zero_and_factories():
    @tn.compile
    def inverse(x, k):
        found = defaultdict(list)
        found["a"].append(1 / (x * k))
        return found

    x = tn.ones(1)
    for k in (np.float64(0.0), np.float64(-0.0), np.float32(0.0), np.float32(-0.0)):
        found = inverse(x, k)
        assert found["a"][0].item() == (-np.inf if np.signbit(k) else np.inf)
        assert found["b"] == []


def test_numbers_come_back_as_objects_of_their_own_types():
    for number in (0.0, -0.0, float("nan"), 1.5, True, 3):
        structure = tree.flatten([number], lambda value: False, [])
        (again,) = tree.unflatten(structure, iter(()))
        assert type(again) is type(number)
        assert repr(again) == repr(number)


def test_the_first_value_that_is_no_leaf_has_its_type_told():
    structure = lambda value: tree.flatten(value, lambda each: isinstance(each, str), [])
    assert tree.other_type(structure("a")) is None
    assert tree.other_type(structure(["a", {"b": ("c", [])}])) is None
    assert tree.other_type(structure(["a", {"b": ("c", 3.5)}, 2])) is float
    assert tree.other_type(structure(None)) is type(None)
