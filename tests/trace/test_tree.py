"""Containers taken apart and put together again, and what makes two of them the same."""

from collections import OrderedDict, defaultdict, namedtuple

import ml_dtypes
import numpy as np
import pytest

import tenfold as tn
from tenfold.trace import tree

Pair = namedtuple("Pair", "first second")


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
    ],
    ids=repr,
)
def test_what_is_taken_apart_is_put_together_again(value):
    structure, leaves = taken_apart(value)
    made = tree.unflatten(structure, iter(leaves))
    assert made == value and type(made) is type(value)
    assert hash(structure) == hash(taken_apart(value)[0])


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
