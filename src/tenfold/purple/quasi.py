"""Quasiquotation: templates become calls of `list`, `append` and `list->vector`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold.purple import core
from tenfold.purple.core import Expr, Literal, Place
from tenfold.purple.errors import PurpleError
from tenfold.purple.forms import FORMS, form
from tenfold.purple.reader import Datum, Name, Sequence, Vector, to_value
from tenfold.purple.scope import Scope
from tenfold.purple.values import NIL

if TYPE_CHECKING:
    from tenfold.purple.expressions import Expressions


@form("quasiquote", "`TEMPLATE", 1, 1)
def _quasiquote(expander: Expressions, place: Place, parts: list[Datum], scope: Scope) -> Expr:
    return _Template(expander, scope, _with_commas(parts[0])).expand(parts[0], 1)


class _Template:
    """One quasiquotation. `with_commas` are the identities of its parts that are not constant."""

    def __init__(self, expander: Expressions, scope: Scope, with_commas: set[int]):
        self.expander, self.scope, self.with_commas = expander, scope, with_commas

    def expand(self, datum: Datum, level: int) -> Expr:
        if id(datum) not in self.with_commas:
            return Literal(to_value(datum), place=datum.place)
        assert isinstance(datum, Sequence | Vector)
        self.expander.descend(datum.place)
        try:
            if isinstance(datum, Vector):
                return core.Prim(
                    "list->vector", (self.items(datum.value, None, level, datum.place),), place=datum.place
                )
            return self.sequence(datum, level)
        finally:
            self.expander.depth -= 1

    def sequence(self, datum: Sequence, level: int) -> Expr:
        prefix = _prefix(datum)
        if prefix is None:
            tail = None if datum.tail is None else self.expand(datum.tail, level)
            return self.items(datum.value, tail, level, datum.place)
        tail = self.prefixed(prefix, datum.value[-1], level, datum.place)
        before = datum.value[:-2]  # `(a . ,b) is read as `(a unquote b)
        return self.items(before, tail, level, datum.place) if before else tail

    def items(self, items: list[Datum], tail: Expr | None, level: int, place: Place) -> Expr:
        end = Literal(NIL, place=place) if tail is None else tail
        return _assemble([self.item(item, level) for item in items], end, place)

    def item(self, datum: Datum, level: int) -> tuple[bool, Expr]:
        """What an item of a list becomes, and whether it is spliced in."""
        prefix = _prefix(datum) if level == 1 else None
        if prefix is not None and prefix.value == "unquote-splicing" and len(datum.value) == 2:
            return True, self.expander.expand(datum.value[1], self.scope)
        return False, self.expand(datum, level)

    def prefixed(self, prefix: Name, datum: Datum, level: int, place: Place) -> Expr:
        """`datum or ,datum: an expression, or a list of the prefix and what stands after it."""
        level += PREFIXES[prefix.value]
        if level == 0 and prefix.value == "unquote-splicing":
            message = ",@ may stand only before an item of a list or a vector"
            raise PurpleError(message, "syntax", prefix.place, help="write , for a value or a list's end")
        if level == 0:
            return self.expander.expand(datum, self.scope)
        symbol = Literal(to_value(prefix), place=prefix.place)
        return _assemble([(False, symbol), self.item(datum, level)], Literal(NIL, place=place), place)


def _assemble(parts: list[tuple[bool, Expr]], tail: Expr, place: Place) -> Expr:
    """Items and lists before a tail, evaluated from left to right: one `append` of lists."""
    if not any(splices for splices, _ in parts) and isinstance(tail, Literal) and tail.value is NIL:
        return core.Prim("list", tuple(each for _, each in parts), place=place)
    lists: list[Expr] = []
    run: list[Expr] = []
    for splices, each in parts:
        if not splices:
            run.append(each)
            continue
        if run:
            lists.append(core.Prim("list", tuple(run), place=place))
            run = []
        lists.append(each)
    if run:
        lists.append(core.Prim("list", tuple(run), place=place))
    elif isinstance(tail, Literal) and tail.value is NIL:  # what is spliced in at the end is the tail
        return core.Prim("append", tuple(lists), place=place)
    return core.Prim("append", (*lists, tail), place=place)


PREFIXES = {"quasiquote": 1, "unquote": -1, "unquote-splicing": -1}  # what each adds to the level


def _prefix(datum: Datum) -> Name | None:
    """The prefix before a list's last datum: it stands for the list, or for its end after a dot."""
    if not isinstance(datum, Sequence) or datum.tail is not None or len(datum.value) < 2:
        return None
    found = datum.value[-2]
    return found if isinstance(found, Name) and found.value in PREFIXES else None


def _with_commas(template: Datum) -> set[int]:
    """The identities of a template's parts that hold a comma of its own, and not of a template inside it."""
    parts: list[tuple[Datum, int, int]] = [(template, 1, -1)]  # each with its level, and what it is a part of
    found: set[int] = set()
    for at, (datum, level, _) in enumerate(parts):  # which grows meanwhile
        if not isinstance(datum, Sequence | Vector):
            continue
        inner = list(datum.value)
        if isinstance(datum, Sequence) and datum.tail is not None:
            inner.append(datum.tail)
        prefix = _prefix(datum)
        if prefix is not None:
            below = level + PREFIXES[prefix.value]
            last = inner.pop()
            if below == 0:
                found.add(at)
            else:
                parts.append((last, below, at))
        parts += [(each, level, at) for each in inner]
    for at in range(len(parts) - 1, 0, -1):
        if at in found:
            found.add(parts[at][2])
    return {id(parts[at][0]) for at in found}


@form("unquote", ",EXPRESSION inside a quasiquotation", 0)
def _unquote(expander: Expressions, place: Place, parts: list[Datum], scope: Scope) -> Expr:
    raise PurpleError("a comma may stand only inside a quasiquotation", "syntax", place)


FORMS["unquote-splicing"] = FORMS["unquote"]
