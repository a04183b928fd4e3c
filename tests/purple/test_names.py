"""What the table of primitives says of their results: the compiler's types rest on it."""

from __future__ import annotations

import contextlib
import io
import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from tenfold.base.errors import TenfoldError
from tenfold.purple import natives
from tenfold.purple.errors import PurpleError
from tenfold.purple.interpret import Session
from tenfold.purple.names import PRIMITIVES
from tenfold.purple.numerals import LARGEST, SMALLEST
from tenfold.purple.prims.registry import REGISTRY
from tenfold.purple.values import (
    NIL,
    UNSPECIFIED,
    Box,
    Char,
    ErrorValue,
    Keyword,
    Pair,
    Symbol,
    Table,
    is_list,
)
from tenfold.tensor import Tensor

# By kind of a parameter: expressions of values that fit it.
SAMPLES = {
    "int": ("0", "3", "-2", "64"),
    "number": ("0", "7", "-2", "2.5", "-0.0", "+nan.0", "7/2", "36893488147419103232"),
    "string": ('""', '"abc"', '"-1/2"'),
    "char": (r"#\a", r"#\5"),
    "symbol": ("'a",),
    "keyword": ("':b",),
    "list": ("nil", "(list 1 2)", r"(list #\a)"),
    "pair": ("(cons 1 2)", "(list (list 1) (list 2) 3)"),
    "vector": ("(vector)", "(vector 1 2.5)"),
    "bytevector": ("(bytevector)", "(bytevector 65 66)"),
    "table": ("(make-hash-table)", "(let ((t (make-hash-table))) (hash-table-set! t 1 2) t)"),
    "box": ("(box 1)",),
    "procedure": ("list", "car"),
    "error": ('(try (error "e" 1) identity)', "(try (car 5) identity)"),
    "tensor": (
        "(tensor 2)",
        "(tensor '(1.5))",
        "(tensor '(1 2 3))",
        "(= (tensor '(1.0)) 1)",
        "(= (tensor '(1 2)) 1)",
        "(tensor '((1.0 2.0) (3.0 4.0)) :requires-grad #t)",
    ),
    "index": ("0", "'(0 1)"),
}
SAMPLES["number*"] = SAMPLES["number"] + SAMPLES["tensor"]
SAMPLES["any"] = tuple(found[0] for found in SAMPLES.values()) + ("#f", "#t", "2.5", "7/2")
# What asks the world, or changes it.
FAMILIES = {
    "numbers",
    "truth and equality",
    "lists",
    "symbols and characters",
    "strings",
    "vectors",
    "bytevectors",
    "hash tables",
    "boxes",
    "tensors",
    "random numbers",
}
OUTSIDE = {"tensor-load", "tensor-save", "jit-load"}
FITS: dict[str, Callable[[Any], bool]] = {
    "any": lambda value: True,
    "none": lambda value: False,
    "void": lambda value: value is UNSPECIFIED,
    "int": lambda value: type(value) is int and SMALLEST <= value <= LARGEST,
    "integer": lambda value: type(value) is int,
    "float": lambda value: type(value) is float,
    "number": lambda value: type(value) in (int, float, Fraction),
    "bool": lambda value: type(value) is bool,
    "string": lambda value: type(value) is str,
    "char": lambda value: type(value) is Char,
    "symbol": lambda value: type(value) is Symbol,
    "keyword": lambda value: type(value) is Keyword,
    "nil": lambda value: value is NIL,
    "pair": lambda value: type(value) is Pair,
    "list": is_list,
    "vector": lambda value: type(value) is list,
    "bytevector": lambda value: type(value) is bytearray,
    "table": lambda value: type(value) is Table,
    "box": lambda value: type(value) is Box,
    "error": lambda value: type(value) is ErrorValue,
    "tensor": lambda value: isinstance(value, Tensor),
}


@pytest.fixture(scope="module")
def makers() -> dict[str, Callable[[], Any]]:
    """By expression: a procedure that gives its value anew."""
    texts = {text: None for found in SAMPLES.values() for text in found}
    session = Session()
    return {text: session.run_text(f"(lambda () (let ((made {text})) made))", "samples") for text in texts}


@pytest.mark.parametrize(
    "name",
    [name for name, found in PRIMITIVES.items() if found.family in FAMILIES and name not in OUTSIDE],
)
def test_what_a_primitive_gives_is_of_the_type_that_the_compiler_infers(name, makers):
    found = PRIMITIVES[name]
    kinds = [*found.parameters, *found.parameters[-1:]][: 3 if found.rest else len(found.parameters)]
    for count in range(found.minimum, len(kinds) + 1):
        calls = list(itertools.product(*(SAMPLES[kind] for kind in kinds[:count])))
        for texts in calls[:: 1 + len(calls) // 150]:
            arguments = [makers[text]() for text in texts]
            types = [type_of(argument) for argument in arguments]
            given_back = natives.gives_back(name)
            expected = types[0] if given_back else natives.result_type(name, types, tensors=True)
            with contextlib.suppress(PurpleError, TenfoldError), contextlib.redirect_stdout(io.StringIO()):
                result = REGISTRY[name](*arguments)
                assert FITS[expected](result), f"({name} {' '.join(texts)}) is no {expected}: {result!r}"


def type_of(value: Any) -> str:
    """The narrowest of the compiler's types that a value is of."""
    fitting = (kind for kind, fits in FITS.items() if kind != "any" and fits(value))
    return next(fitting, "any")
