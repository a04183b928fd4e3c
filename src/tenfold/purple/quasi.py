"""Quasiquotation: templates become calls of `list`, `append` and `list->vector`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold.purple import core
from tenfold.purple.core import Expr, Literal, Place
from tenfold.purple.errors import PurpleError
from tenfold.purple.forms import FORMS, form
from tenfold.purple.reader import Datum, Name, Sequence, Vector, to_value
from tenfold.purple.scope import Scope
from tenfold.purple.syntax import is_name
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
            return self.items(datum.value, datum.tail, level, datum.place)
        finally:
            self.expander.depth -= 1

    def items(self, items: list[Datum], tail: Datum | None, level: int, place: Place) -> Expr:
        if len(items) == 2 and tail is None and _is_prefix(items[0]):
            return self.prefixed(items[0], items[1], level, place)
        result: Expr = Literal(NIL, place=place) if tail is None else self.expand(tail, level)
        if len(items) > 2 and tail is None and _is_prefix(items[-2]):  # `(a . ,b)
            result = self.prefixed(items[-2], items[-1], level, place)
            items = items[:-2]
        parts: list[tuple[bool, Expr]] = []
        for item in items:
            splices = (
                isinstance(item, Sequence)
                and is_name(item.value[0], "unquote-splicing")
                and len(item.value) == 2
            )
            if splices and level == 1:
                parts.append((True, self.expander.expand(item.value[1], self.scope)))
            elif splices:
                parts.append((False, self.prefixed(item.value[0], item.value[1], level, item.place)))
            else:
                parts.append((False, self.expand(item, level)))
        return _assemble(parts, result, place)

    def prefixed(self, prefix: Datum, datum: Datum, level: int, place: Place) -> Expr:
        """`datum or ,datum: an expression, or a list of the prefix and what stands after it."""
        level += 1 if prefix.value == "quasiquote" else -1
        if level == 0:
            return self.expander.expand(datum, self.scope)
        symbol = Literal(to_value(prefix), place=prefix.place)
        return core.Prim("list", (symbol, self.expand(datum, level)), place=place)


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


def _is_prefix(datum: Datum) -> bool:
    return is_name(datum, "unquote") or is_name(datum, "quasiquote")


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
        if len(inner) > 1 and isinstance(inner[-2], Name) and inner[-2].value in PREFIXES:
            below = level + PREFIXES[inner[-2].value]
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


PREFIXES = {"quasiquote": 1, "unquote": -1, "unquote-splicing": -1}


@form("unquote", ",EXPRESSION inside a quasiquotation", 0)
def _unquote(expander: Expressions, place: Place, parts: list[Datum], scope: Scope) -> Expr:
    raise PurpleError("a comma may stand only inside a quasiquotation", "syntax", place)


FORMS["unquote-splicing"] = FORMS["unquote"]
