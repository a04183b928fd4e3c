"""What is known of a Python function before it runs."""

import ast

import pytest

import tenfold as tn
from tenfold.exporting.static_values import Known, stored

SIZES = [3, 4]
LAYER = tn.nn.Linear(2, 3)


def function(x, n):
    return x


def known(text, own=(), **values):
    names = Known(function)
    names.own = {"x", "n", *own}
    names.known = values
    return names.static(ast.parse(text, mode="eval").body)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("len(SIZES) + 1", 3),
        ("SIZES[1] if SIZES else 0", 4),
        ("LAYER.in_features * 2 > 3 and not None", True),
        ("isinstance(LAYER, int)", False),
        ("getattr(LAYER, 'missing', 'none')", "none"),
        ("f'{LAYER.in_features}'", "2"),
        ("LAYER.weight.shape", (3, 2)),
        ("LAYER.weight.ndim", 2),
        ("LAYER.bias is not None", True),
        ("list(zip((1, 2), SIZES))", [(1, 3), (2, 4)]),
        ("-max(1, 2)", -2),
        ("m + 1", 8),
    ],
)
def test_what_is_made_of_known_values_is_known(text, value):
    assert known(text, m=7) == (True, value)


@pytest.mark.parametrize(
    "text",
    [
        "x",  # an argument
        "x + 1",
        "len(x)",
        "undefined",
        "LAYER.training",  # which may be set
        "LAYER.weight + 1",  # its elements may be written
        "LAYER.weight.grad",
        "LAYER.weight == 0",
        "LAYER(x)",
        "print(1)",  # does more than give a value
        "SIZES.append(1)",
        "SIZES[9]",  # raises
        "[s for s in SIZES]",
    ],
)
def test_what_may_change_or_does_something_is_not(text):
    assert known(text) == (False, None) and SIZES == [3, 4]


def test_local_names_hide_those_outside_until_they_are_known():
    assert known("SIZES", own=["SIZES"]) == (False, None)
    assert known("SIZES", own=["SIZES"], SIZES=5) == (True, 5)
    names = Known(function)
    names.known = {"a": 1, "b": 2}
    names.forget({"a", "c"})
    assert names.known == {"b": 2}


def test_variables_of_an_enclosing_function_are_known():
    width = 6

    def inner():
        return width

    assert Known(inner).static(ast.parse("width // 4", mode="eval").body) == (True, 1)


def test_stored_names_are_those_bound_at_any_depth():
    tree = ast.parse("a = b\nfor c, (d, e) in f:\n    with g as h:\n        i += 1\n")
    assert stored(tree.body) == {"a", "c", "d", "e", "h", "i"}
