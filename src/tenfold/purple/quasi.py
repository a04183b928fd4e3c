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
    return _quasi(expander, parts[0], 1, scope)


def _quasi(expander: Expressions, datum: Datum, level: int, scope: Scope) -> Expr:
    if not _has_unquote(datum):
        return Literal(to_value(datum), place=datum.place)
    place = datum.place
    if isinstance(datum, Vector):
        elements = _quasi(expander, Sequence(datum.value, place), level, scope)
        return core.Prim("list->vector", (elements,), place=place)
    assert isinstance(datum, Sequence)
    head = datum.value[0]
    if len(datum.value) == 2 and datum.tail is None and _is_prefix(head):
        if head.value == "unquote" and level == 1:
            return expander.expand(datum.value[1], scope)
        inner = _quasi(expander, datum.value[1], level + (1 if head.value == "quasiquote" else -1), scope)
        symbol = Literal(to_value(head), place=head.place)
        return core.Prim("list", (symbol, inner), place=place)
    result: Expr = Literal(NIL, place=place)
    if datum.tail is not None:
        result = _quasi(expander, datum.tail, level, scope)
    items = list(datum.value)
    if len(items) > 2 and datum.tail is None and _is_prefix(items[-2]):  # `(a . ,b)
        result = _quasi(expander, Sequence(items[-2:], place), level, scope)
        items = items[:-2]
    parts: list[tuple[bool, Expr]] = []
    for item in items:
        splices = (
            isinstance(item, Sequence) and is_name(item.value[0], "unquote-splicing") and len(item.value) == 2
        )
        if splices and level == 1:
            parts.append((True, expander.expand(item.value[1], scope)))
        elif splices:
            inner = _quasi(expander, item.value[1], level - 1, scope)
            symbol = Literal(to_value(item.value[0]), place=item.place)
            parts.append((False, core.Prim("list", (symbol, inner), place=item.place)))
        else:
            parts.append((False, _quasi(expander, item, level, scope)))
    return _assemble(expander, parts, result, place)


def _assemble(expander: Expressions, parts: list[tuple[bool, Expr]], tail: Expr, place: Place) -> Expr:
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


def _has_unquote(datum: Datum) -> bool:
    stack = [datum]
    while stack:
        each = stack.pop()
        if isinstance(each, Name) and each.value in ("unquote", "unquote-splicing"):
            return True
        if isinstance(each, (Sequence, Vector)):
            stack += each.value
            if isinstance(each, Sequence) and each.tail is not None:
                stack.append(each.tail)
    return False


@form("unquote", ",EXPRESSION inside a quasiquotation", 0)
def _unquote(expander: Expressions, place: Place, parts: list[Datum], scope: Scope) -> Expr:
    raise PurpleError("a comma may stand only inside a quasiquotation", "syntax", place)


FORMS["unquote-splicing"] = FORMS["unquote"]
