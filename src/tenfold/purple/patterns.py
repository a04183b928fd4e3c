"""`match`: a clause becomes tests on parts of the value, then a `Let` of the variables its pattern
names.

A pattern is taken apart into alternatives (more than one where it says `or`); each is a list of tests,
and a path to what each variable names. Paths are made again wherever they are used: they only read.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from tenfold.base.errors import did_you_mean
from tenfold.purple import core
from tenfold.purple.core import Expr, Literal, Place
from tenfold.purple.errors import PurpleError
from tenfold.purple.reader import Datum, Name, Sequence, to_value
from tenfold.purple.scope import RecordName, Scope
from tenfold.purple.values import NIL, Keyword

if TYPE_CHECKING:
    from tenfold.purple.expressions import Expressions

Path: TypeAlias = Callable[[], Expr]
ALTERNATIVES = 64
PATTERNS = ("cons", "list", "list*", "vector", "or", "and", "as", "quote", "?")


class Alternative(NamedTuple):
    tests: tuple[Path, ...]
    names: tuple[tuple[Name, Path], ...]


def expand_match(expander: Expressions, place: Place, parts: list[Datum], scope: Scope) -> Expr:
    subject = expander.fresh("match")
    read = lambda: core.Local(subject, place=place)
    clauses = []
    for clause in parts[1:]:
        if not isinstance(clause, Sequence) or len(clause.value) < 2:
            raise PurpleError(
                "a clause of match is written (PATTERN [:when GUARD] BODY …)", "syntax", clause.place
            )
        clauses.append(clause)
    value = expander.expand(parts[0], scope)
    result: Expr = core.Prim("%match-failed", (read(),), place=place)
    for clause in reversed(clauses):
        result = _clause(expander, clause, read, result, scope)
    return core.Let(((subject, value),), result, place=place)


def _clause(expander: Expressions, clause: Sequence, read: Path, rest: Expr, scope: Scope) -> Expr:
    place = clause.place
    alternatives = _Patterns(expander, scope).split(clause.value[0], read)
    for alternative in alternatives:
        if len(alternative.names) != len(_keys(alternative)):
            raise PurpleError("a pattern names the same variable twice", "syntax", clause.value[0].place)
    body, guard = clause.value[1:], None
    if isinstance(body[0].value, Keyword) and body[0].value.name == "when":
        if len(body) < 3:
            raise PurpleError("a clause of match is written (PATTERN :when GUARD BODY …)", "syntax", place)
        guard, body = body[1], body[2:]
    if guard is None and len(alternatives) == 1:
        then = _bind(
            expander, alternatives[0], lambda inner: expander.expand_body(body, inner, place), scope, place
        )
        return core.If(_all(alternatives[0].tests, place), then, rest, place=place)
    # What follows a failed guard is needed at several points: it becomes a function.
    following = expander.fresh("next")
    following.captured = True
    otherwise = lambda: core.Call(core.Local(following, place=place), (), place=place)

    def guarded(inner: Scope) -> Expr:
        done = expander.expand_body(body, inner, place)
        return (
            done if guard is None else core.If(expander.expand(guard, inner), done, otherwise(), place=place)
        )

    names = [name for name, _ in alternatives[0].names]
    if len(alternatives) == 1:
        whole: Expr = core.If(
            _all(alternatives[0].tests, place),
            _bind(expander, alternatives[0], guarded, scope, place),
            otherwise(),
            place=place,
        )
    else:
        chosen = expander.fresh("chosen")
        inner = Scope(scope, scope.level + 1)
        params = tuple(expander.bind(name, inner) for name in names)
        function = core.Lambda(params, None, (), guarded(inner), "match", derived=True, place=place)
        whole = otherwise()
        for alternative in reversed(alternatives):
            paths = {name.key: path for name, path in alternative.names}
            call = core.Call(
                core.Local(chosen, place=place), tuple(paths[name.key]() for name in names), place=place
            )
            whole = core.If(_all(alternative.tests, place), call, whole, place=place)
        whole = core.Let(((chosen, function),), whole, place=place)
    others = core.Lambda((), None, (), rest, "match", derived=True, place=place)
    return core.Let(((following, others),), whole, place=place)


def _bind(
    expander: Expressions, alternative: Alternative, body: Callable[[Scope], Expr], scope: Scope, place: Place
) -> Expr:
    inner = Scope(scope, scope.level)
    bindings = tuple((expander.bind(name, inner), path()) for name, path in alternative.names)
    expanded = body(inner)
    return core.Let(bindings, expanded, place=place) if bindings else expanded


def _keys(alternative: Alternative) -> set[object]:
    return {name.key for name, _ in alternative.names}


def _all(tests: tuple[Path, ...], place: Place) -> Expr:
    if not tests:
        return Literal(True, place=place)
    result = tests[-1]()
    for test in reversed(tests[:-1]):
        result = core.If(test(), result, Literal(False, place=place), place=place)
    return result


class _Patterns:
    def __init__(self, expander: Expressions, scope: Scope):
        self.expander, self.scope = expander, scope

    def split(self, pattern: Datum, read: Path) -> list[Alternative]:
        place = pattern.place
        if isinstance(pattern, Name):
            if pattern.value == "_":
                return [Alternative((), ())]
            if pattern.value == "t" and pattern.alias is None:
                raise PurpleError("t is a constant; match it as #t", "syntax", place)
            return [Alternative((), ((pattern, read),))]
        if isinstance(pattern, Sequence):
            self.expander.descend(place)
            try:
                return self.split_form(pattern, read)
            finally:
                self.expander.depth -= 1
        return [Alternative((self.equal(pattern, read),), ())]

    def equal(self, datum: Datum, read: Path) -> Path:
        place = datum.place
        if datum.value is NIL:
            return lambda: core.Prim("null?", (read(),), place=place)
        value = to_value(datum)
        return lambda: core.Prim("equal?", (read(), Literal(value, place=place)), place=place)

    def split_form(self, pattern: Sequence, read: Path) -> list[Alternative]:
        head, parts, place = pattern.value[0], pattern.value[1:], pattern.place
        if not isinstance(head, Name) or pattern.tail is not None:
            raise PurpleError(
                "this is no pattern", "syntax", place, help="write (list a b) for a list of two"
            )
        found = self.scope.lookup(head)
        if isinstance(found, RecordName) and found.role in ("type", "make"):
            return self.take_record(found.type, parts, pattern, read)
        if head.value in PATTERNS:
            method = {"?": "satisfies", "list*": "list_star", "or": "either", "and": "both", "as": "named"}
            return getattr(self, "take_" + method.get(head.value, head.value))(parts, pattern, read)
        known = [*PATTERNS, *map(core.shown, self.expander.types)]
        raise PurpleError(
            f"there is no pattern ({head.value} …)", "syntax", place, help=did_you_mean(head.value, known)
        )

    def take_quote(self, parts: list[Datum], pattern: Sequence, read: Path) -> list[Alternative]:
        self.count(parts, 1, pattern, "'DATUM")
        return [Alternative((self.equal(parts[0], read),), ())]

    def take_cons(self, parts: list[Datum], pattern: Sequence, read: Path) -> list[Alternative]:
        self.count(parts, 2, pattern, "(cons FIRST REST)")
        return self.take_list_star(parts, pattern, read)

    def take_list(self, parts: list[Datum], pattern: Sequence, read: Path) -> list[Alternative]:
        return self.take_list_star([*parts, Datum(NIL, pattern.place)], pattern, read)

    def take_list_star(self, parts: list[Datum], pattern: Sequence, read: Path) -> list[Alternative]:
        if not parts:
            raise PurpleError("(list* PATTERN … REST) needs a rest", "syntax", pattern.place)
        place = pattern.place
        choices: list[list[Alternative]] = []
        at = read
        for part in parts[:-1]:
            is_pair = self.prim("pair?", at, place)
            choices.append([Alternative((is_pair,), ())])
            choices.append(self.split(part, self.prim("car", at, place)))
            at = self.prim("cdr", at, place)
        choices.append(self.split(parts[-1], at))
        return self.product(choices, pattern)

    def take_vector(self, parts: list[Datum], pattern: Sequence, read: Path) -> list[Alternative]:
        place = pattern.place
        length = self.prim("vector-length", read, place)
        same = lambda: core.Prim("eq?", (length(), Literal(len(parts), place=place)), place=place)
        choices = [[Alternative((self.prim("vector?", read, place), same), ())]]
        for i, part in enumerate(parts):
            choices.append(self.split(part, self.element(i, read, place)))
        return self.product(choices, pattern)

    def take_record(
        self, type: core.DefType, parts: list[Datum], pattern: Sequence, read: Path
    ) -> list[Alternative]:
        place = pattern.place
        if len(parts) != len(type.fields):
            raise PurpleError(
                f"{core.shown(type.name)} has {len(type.fields)} fields, and this pattern {len(parts)}",
                "syntax",
                place,
            ).note(f"{core.shown(type.name)} is defined here", type.place)
        choices = [[Alternative((lambda: core.IsRecord(type, read(), place=place),), ())]]
        for i, part in enumerate(parts):
            choices.append(self.split(part, lambda i=i: core.FieldRef(type, i, read(), place=place)))  # type: ignore[misc]
        return self.product(choices, pattern)

    def take_either(self, parts: list[Datum], pattern: Sequence, read: Path) -> list[Alternative]:
        if not parts:
            raise PurpleError("an `or` pattern needs a choice", "syntax", pattern.place)
        found = [each for part in parts for each in self.split(part, read)]
        if any(_keys(each) != _keys(found[0]) for each in found):
            raise PurpleError("all patterns of an `or` must name the same variables", "syntax", pattern.place)
        if any(each.names for each in found):
            return found

        def test() -> Expr:  # with nothing to name, which of them fits is all the same
            result: Expr = Literal(False, place=pattern.place)
            for each in reversed(found):
                fits = _all(each.tests, pattern.place)
                result = core.If(fits, Literal(True, place=pattern.place), result, place=pattern.place)
            return result

        return [Alternative((test,), ())]

    def take_both(self, parts: list[Datum], pattern: Sequence, read: Path) -> list[Alternative]:
        return self.product([self.split(part, read) for part in parts], pattern)

    def take_named(self, parts: list[Datum], pattern: Sequence, read: Path) -> list[Alternative]:
        self.count(parts, 2, pattern, "(as NAME PATTERN)")
        if not isinstance(parts[0], Name):
            raise PurpleError("(as NAME PATTERN) begins with a name", "syntax", parts[0].place)
        return self.take_both(parts, pattern, read)

    def take_satisfies(self, parts: list[Datum], pattern: Sequence, read: Path) -> list[Alternative]:
        self.count(parts, 2, pattern, "(? PREDICATE PATTERN)")

        def test() -> Expr:
            function = self.expander.expand(parts[0], self.scope)
            if isinstance(function, core.PrimRef):
                return core.Prim(function.name, (read(),), place=pattern.place)
            return core.Call(function, (read(),), place=pattern.place)

        return self.product([[Alternative((test,), ())], self.split(parts[1], read)], pattern)

    def product(self, choices: list[list[Alternative]], pattern: Sequence) -> list[Alternative]:
        size = 1
        for choice in choices:
            size *= len(choice)
            if size > ALTERNATIVES:
                raise PurpleError("this pattern has too many alternatives", "syntax", pattern.place)
        return [
            Alternative(
                tuple(itertools.chain.from_iterable(each.tests for each in chosen)),
                tuple(itertools.chain.from_iterable(each.names for each in chosen)),
            )
            for chosen in itertools.product(*choices)
        ]

    def element(self, index: int, read: Path, place: Place) -> Path:
        return lambda: core.Prim("vector-ref", (read(), Literal(index, place=place)), place=place)

    def prim(self, name: str, read: Path, place: Place) -> Path:
        return lambda: core.Prim(name, (read(),), place=place)

    def count(self, parts: list[Datum], wanted: int, pattern: Sequence, usage: str) -> None:
        if len(parts) != wanted:
            raise PurpleError(f"this pattern is written {usage}", "syntax", pattern.place)
