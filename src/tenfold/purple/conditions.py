"""Forms that choose: `if`, `cond`, `case`, `and`, `or` and their like, all of them `If` in the core
language.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tenfold.purple import core, names
from tenfold.purple.core import Expr, Literal, Place
from tenfold.purple.errors import PurpleError
from tenfold.purple.forms import form
from tenfold.purple.reader import Datum, Sequence, to_value
from tenfold.purple.scope import Scope
from tenfold.purple.syntax import is_name, list_items
from tenfold.purple.values import UNSPECIFIED

if TYPE_CHECKING:
    from tenfold.purple.expressions import Expressions


@form("if", "(if TEST THEN [ELSE])", 2, 3)
def _if(expander: Expressions, place: Place, parts: list[Datum], scope: Scope) -> Expr:
    test, then = expand_test(expander, parts[0], scope), expander.expand(parts[1], scope)
    otherwise = expander.expand(parts[2], scope) if len(parts) > 2 else Literal(UNSPECIFIED, place=place)
    return core.If(test, then, otherwise, place=place)


@form("when", "(when TEST BODY …)", 2)
def _when(expander: Expressions, place: Place, parts: list[Datum], scope: Scope) -> Expr:
    test = expand_test(expander, parts[0], scope)
    return core.If(
        test, expander.expand_body(parts[1:], scope, place), Literal(UNSPECIFIED, place=place), place=place
    )


@form("unless", "(unless TEST BODY …)", 2)
def _unless(expander: Expressions, place: Place, parts: list[Datum], scope: Scope) -> Expr:
    test = expand_test(expander, parts[0], scope)
    return core.If(
        test, Literal(UNSPECIFIED, place=place), expander.expand_body(parts[1:], scope, place), place=place
    )


@form("and", "(and EXPRESSION …)", 0)
def _and(expander: Expressions, place: Place, parts: list[Datum], scope: Scope) -> Expr:
    exprs = [expander.expand(part, scope) for part in parts]
    result: Expr = exprs.pop() if exprs else Literal(True, place=place)
    while exprs:
        # What is false stays what it was: #f or nil.
        first = exprs.pop()
        if is_boolean(first):
            result = core.If(first, result, Literal(False, place=place), place=place)
        else:
            var = expander.fresh("and")
            local = core.Local(var, place=place)
            result = core.Let(((var, first),), core.If(local, result, local, place=place), place=place)
    return result


@form("or", "(or EXPRESSION …)", 0)
def _or(expander: Expressions, place: Place, parts: list[Datum], scope: Scope) -> Expr:
    exprs = [expander.expand(part, scope) for part in parts]
    result: Expr = exprs.pop() if exprs else Literal(False, place=place)
    while exprs:
        first = exprs.pop()
        if is_boolean(first):
            result = core.If(first, Literal(True, place=place), result, place=place)
        else:
            var = expander.fresh("or")
            local = core.Local(var, place=place)
            result = core.Let(((var, first),), core.If(local, local, result, place=place), place=place)
    return result


def expand_test(expander: Expressions, datum: Datum, scope: Scope) -> Expr:
    """An expression of which only the truth is asked: `and` and `or` need not keep what was false or true."""
    datum = expander.expand_head(datum, scope)
    name = expander.special(datum, scope)
    if (
        name not in ("and", "or")
        or not isinstance(datum, Sequence)
        or datum.tail is not None
        or len(datum.value) < 3
    ):
        return expander.expand(datum, scope)
    place = datum.place
    *others, result = [expand_test(expander, each, scope) for each in datum.value[1:]]
    for other in reversed(others):
        if name == "and":
            result = core.If(other, result, Literal(False, place=place), place=place)
        else:
            result = core.If(other, Literal(True, place=place), result, place=place)
    return result


def is_boolean(expr: Expr) -> bool:
    """Whether it surely gives #t or #f. (Comparisons may give tensors.)"""
    if isinstance(expr, core.Prim):
        known = names.PRIMITIVES.get(expr.name)
        return known is not None and known.result == "bool"
    if isinstance(expr, core.If):
        return is_boolean(expr.then) and is_boolean(expr.otherwise)
    return isinstance(expr, core.IsRecord) or (isinstance(expr, Literal) and isinstance(expr.value, bool))


def is_else(expander: Expressions, datum: Datum, scope: Scope) -> bool:
    return is_name(datum, "else") and scope.lookup(datum) is None  # type: ignore[arg-type]


def is_arrow(clause: list[Datum], scope: Scope) -> bool:
    """Whether a clause hands its value to a function: (TEST => FUNCTION)."""
    return len(clause) == 3 and is_name(clause[1], "=>") and scope.lookup(clause[1]) is None  # type: ignore[arg-type]


@form("cond", "(cond (TEST BODY …) … [(else BODY …)])", 1)
def _cond(expander: Expressions, place: Place, parts: list[Datum], scope: Scope) -> Expr:
    clauses: list[Callable[[Expr], Expr]] = []
    result: Expr = Literal(UNSPECIFIED, place=place)
    for i, clause in enumerate(parts):
        if not isinstance(clause, Sequence):
            raise PurpleError("a clause of cond is written (TEST BODY …)", "syntax", clause.place)
        if is_else(expander, clause.value[0], scope):
            if i + 1 < len(parts):
                raise PurpleError("else must be the last clause", "syntax", clause.place)
            result = expander.expand_body(clause.value[1:], scope, clause.place)
        else:
            clauses.append(_cond_clause(expander, clause, scope))
    for wrap in reversed(clauses):
        result = wrap(result)
    return result


def _cond_clause(expander: Expressions, clause: Sequence, scope: Scope) -> Callable[[Expr], Expr]:
    place, parts = clause.place, clause.value
    arrow = is_arrow(parts, scope)
    if len(parts) > 1 and not arrow:
        test = expand_test(expander, parts[0], scope)
        then = expander.expand_body(parts[1:], scope, place)
        return lambda rest: core.If(test, then, rest, place=place)
    value_test = expander.expand(parts[0], scope)
    var = expander.fresh("test")
    local = core.Local(var, place=place)
    value: Expr = core.Call(expander.expand(parts[2], scope), (local,), place=place) if arrow else local
    return lambda rest: core.Let(((var, value_test),), core.If(local, value, rest, place=place), place=place)


@form("case", "(case VALUE ((DATUM …) BODY …) … [(else BODY …)])", 1)
def _case(expander: Expressions, place: Place, parts: list[Datum], scope: Scope) -> Expr:
    var = expander.fresh("case")
    local = core.Local(var, place=place)
    clauses: list[tuple[Expr, Expr, Place]] = []
    result: Expr = Literal(UNSPECIFIED, place=place)
    value = expander.expand(parts[0], scope)
    for i, clause in enumerate(parts[1:], 1):
        if not isinstance(clause, Sequence):
            raise PurpleError("a clause of case is written ((DATUM …) BODY …)", "syntax", clause.place)
        body: Expr
        if is_arrow(clause.value, scope):
            body = core.Call(expander.expand(clause.value[2], scope), (local,), place=clause.place)
        else:
            body = expander.expand_body(clause.value[1:], scope, clause.place)
        if is_else(expander, clause.value[0], scope):
            if i + 1 < len(parts):
                raise PurpleError("else must be the last clause", "syntax", clause.place)
            result = body
            continue
        data = list_items(clause.value[0])
        if data is None:
            raise PurpleError("a clause of case begins with a list of data", "syntax", clause.value[0].place)
        test: Expr = Literal(False, place=place)
        for datum in reversed(data):
            literal = Literal(to_value(datum), place=datum.place)
            same = core.Prim("equal?", (local, literal), place=datum.place)
            test = (
                core.If(same, Literal(True, place=place), test, place=place)
                if datum is not data[-1]
                else same
            )
        clauses.append((test, body, clause.place))
    for test, body, where in reversed(clauses):
        result = core.If(test, body, result, place=where)
    return core.Let(((var, value),), result, place=place)


@form("while", "(while TEST BODY …)", 1)
def _while(expander: Expressions, place: Place, parts: list[Datum], scope: Scope) -> Expr:
    test = expand_test(expander, parts[0], scope)
    body = expander.expand_body(parts[1:], scope, place) if parts[1:] else Literal(UNSPECIFIED, place=place)
    return core.While(test, body, place=place)
