"""The measured part of reference counts: what CPython counts besides an object's owners."""

from __future__ import annotations

from tenfold.base.owners import CONSTRUCTED, NAMED, PASSED, count


def asked(thing: object) -> int:
    return count(thing)


class Asker:
    def __init__(self, thing: object):
        self.references = count(thing)


def test_a_local_name_is_not_an_owner():
    thing = object()
    assert count(thing) == NAMED
    assert asked(thing) == PASSED


def test_every_further_reference_is_an_owner():
    thing = object()
    items, table = [thing], {thing: 1}
    assert count(thing) == NAMED + 2
    assert asked(thing) == PASSED + 2
    del items, table
    assert count(thing) == NAMED


def test_a_constructor_knows_whether_its_argument_was_made_for_it():
    thing = object()
    holders = [thing]
    made, kept = Asker(object()), Asker(thing)  # an assertion would keep names of its own
    assert made.references == CONSTRUCTED < kept.references
    assert holders
