"""The C++ that checks arguments, as it is written from what rows state."""

import pytest

from tenfold.base.errors import FormatError
from tenfold.capi import needs
from tenfold.capi.locate import Installed
from tenfold.ops.schema import parse
from tenfold.ops.table import TABLE, all_rows, op


def installed(*texts):
    schemas = [parse(text) for text in texts]
    return {schema.qualified: Installed(schema, "", "") for schema in schemas}


FORMS = installed(
    "shuffled(Tensor self, int groups) -> Tensor",
    "shuffled_(Tensor(a!) self, int groups) -> Tensor(a!)",
    "shuffled.out(Tensor self, int groups, *, Tensor(a!) out) -> Tensor(a!)",
    "shuffled.other(Tensor self, float groups) -> Tensor",
)


@pytest.fixture
def shuffled():
    def declare(need):
        TABLE.pop("shuffled", None)
        op("shuffled(Tensor self, int groups) -> Tensor", function=False, method=False, needs=need)(
            lambda x, n: x
        )

    yield declare
    TABLE.pop("shuffled", None)


def of_shuffled(found):
    return {name: need for name, need in found.items() if "shuffled" in name}


def test_a_need_holds_for_every_form_of_the_row(shuffled):
    shuffled("groups > 0")
    names = ("aten::shuffled", "aten::shuffled.out", "aten::shuffled_")
    assert of_shuffled(needs.needs_of(FORMS)) == dict.fromkeys(names, "groups > 0")


def test_a_form_may_need_something_else_or_nothing(shuffled):
    shuffled("groups > 0; out: some_check; inplace: nothing")
    expected = {"aten::shuffled": "groups > 0", "aten::shuffled.out": "some_check"}
    assert of_shuffled(needs.needs_of(FORMS)) == expected


@pytest.mark.parametrize(
    ("condition", "line"),
    [
        ("groups > 0", 'need(arguments[1].toInt() > 0, "groups is positive");'),
        ("groups != -3", 'need(arguments[1].toInt() != -3, "groups is not -3");'),
        ("some tensors", 'need(!arguments[2].toListRef().empty(), "at least one tensor is needed");'),
        (
            "self like other",
            "need(arguments[0].toTensor().sizes() == arguments[3].toTensor().sizes(), "
            '"self has the shape of other");',
        ),
    ],
)
def test_a_condition_becomes_one_line_of_cpp(condition, line):
    schema = parse("f(Tensor self, int groups, Tensor[] tensors, Tensor other) -> Tensor")
    assert needs._check(condition, schema) == line


def test_several_conditions_become_one_function(shuffled):
    shuffled("groups > 0 and groups < 9")
    text = needs.header({**FORMS, **needs_schemas()})
    assert 'need(arguments[1].toInt() > 0, "groups is positive");' in text
    assert 'need(arguments[1].toInt() < 9, "groups is less than 9");' in text
    assert '{"aten::shuffled_", need_' in text


def needs_schemas():
    """The overloads of the table whose needs are conditions: the header asks for their arguments."""
    rows = [row for rows in TABLE.values() for row in rows if " " in row.needs and row.name != "shuffled"]
    return {row.qualified: Installed(row.schema, "", "") for row in rows}


@pytest.mark.parametrize("condition", ["group > 0", "groups is nice", "some of groups"])
def test_a_condition_that_cannot_be_read_is_an_error(condition):
    with pytest.raises(FormatError, match="names no argument of it|cannot be read"):
        needs._check(condition, parse("f(Tensor self, int groups) -> Tensor"))


def test_only_operators_without_a_row_have_their_needs_outside_of_the_table():
    rows = {f"{row.namespace}::{row.qualified}" for row in all_rows()}
    assert needs.without_row().keys() & rows == set()
