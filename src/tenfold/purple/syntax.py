"""`syntax-rules`: patterns, templates, and the renaming that keeps them hygienic."""

from __future__ import annotations

from typing import Any, TypeAlias

from tenfold.purple.core import Place
from tenfold.purple.errors import PurpleError
from tenfold.purple.reader import Datum, Name, Sequence, Vector
from tenfold.purple.scope import Alias, Macro, Rule, Scope
from tenfold.purple.values import NIL

# What a pattern variable took: a datum, or one such for each repetition under an ellipsis.
Taken: TypeAlias = "Datum | list[Taken]"


def parse_rules(name: Name, datum: Datum, scope: Scope) -> Macro:
    """The macro that `(syntax-rules (literal …) (pattern template) …)` describes."""
    if not (isinstance(datum, Sequence) and is_name(datum.value[0], "syntax-rules") and len(datum.value) > 1):
        raise PurpleError(
            "a macro is defined by (syntax-rules (literal …) (pattern template) …)", "syntax", datum.place
        )
    parts = datum.value[1:]
    ellipsis: Any = "..."
    if isinstance(parts[0], Name):
        ellipsis, parts = parts[0].key, parts[1:]
    if not parts:
        raise PurpleError("syntax-rules needs a list of literals", "syntax", datum.place)
    literals = list_items(parts[0])
    if literals is None or not all(isinstance(literal, Name) for literal in literals):
        raise PurpleError("the literals of syntax-rules are a list of names", "syntax", parts[0].place)
    rules = []
    for part in parts[1:]:
        if not (isinstance(part, Sequence) and len(part.value) == 2 and part.tail is None):
            raise PurpleError("a rule of syntax-rules is (pattern template)", "syntax", part.place)
        pattern, template = part.value
        if not isinstance(pattern, Sequence):
            raise PurpleError(
                "a rule's pattern is a list that begins with the macro's name", "syntax", pattern.place
            )
        rules.append(Rule(pattern, template))
    macro = Macro(
        name.value,
        frozenset(literal.key for literal in literals if isinstance(literal, Name)),
        tuple(rules),
        ellipsis,
        scope,
        datum.place,
    )
    for rule in rules:
        _check(macro, rule)
    return macro


SIZE_LIMIT = 1_000_000  # data that one program's macros may make, and by which they may make it longer


def expand_macro(macro: Macro, use: Sequence, scope: Scope, made: list[int]) -> Datum:
    """The first rule whose pattern fits the use, filled in. `made` counts data over all expansions."""
    for rule in macro.rules:
        taken: dict[Any, Taken] = {}
        pattern = rule.pattern
        assert isinstance(pattern, Sequence)
        # The macro's own name, first in both, is not matched.
        if _match_items(macro, pattern.value[1:], pattern.tail, use.value[1:], use.tail, scope, taken):
            filled = _Filling(macro, use.place, made).fill(rule.template, taken)
            count_data(filled, use, made)
            return filled
    raise PurpleError(f"no rule of the macro {macro.name} fits this use", "syntax", use.place).note(
        f"{macro.name} is defined here", macro.place
    )


def count_data(filled: Datum, use: Sequence, made: list[int]) -> None:
    """Count what an expansion adds: what is put into several places is expanded at each."""
    made[0] += max(0, filled.size - use.size)
    if made[0] > SIZE_LIMIT:
        raise PurpleError("macros expand without end", "syntax", use.place)


def is_name(datum: Datum, name: str) -> bool:
    return isinstance(datum, Name) and datum.value == name


def list_items(datum: Datum) -> list[Datum] | None:
    """The data of a proper list; None for anything else."""
    if datum.value is NIL:
        return []
    return datum.value if isinstance(datum, Sequence) and datum.tail is None else None


def _is_ellipsis(macro: Macro, datum: Datum) -> bool:
    if not isinstance(datum, Name) or datum.key in macro.literals:
        return False
    return datum.value == "..." if macro.ellipsis == "..." else datum.key == macro.ellipsis


def _match(macro: Macro, pattern: Datum, datum: Datum, scope: Scope, taken: dict[Any, Taken]) -> bool:
    if isinstance(pattern, Name):
        if pattern.key in macro.literals:
            return isinstance(datum, Name) and same_meaning(datum, scope, pattern, macro.scope)
        if pattern.value != "_":
            taken[pattern.key] = datum
        return True
    if isinstance(pattern, Sequence):
        items = [] if datum.value is NIL else datum.value if isinstance(datum, Sequence) else None
        tail = datum.tail if isinstance(datum, Sequence) else None
        return items is not None and _match_items(
            macro, pattern.value, pattern.tail, items, tail, scope, taken
        )
    if isinstance(pattern, Vector):
        return isinstance(datum, Vector) and _match_items(
            macro, pattern.value, None, datum.value, None, scope, taken
        )
    same = not isinstance(datum, (Name, Sequence, Vector))
    return same and type(pattern.value) is type(datum.value) and pattern.value == datum.value


def _match_items(
    macro: Macro,
    patterns: list[Datum],
    pattern_tail: Datum | None,
    items: list[Datum],
    tail: Datum | None,
    scope: Scope,
    taken: dict[Any, Taken],
) -> bool:
    at = next((i for i, pattern in enumerate(patterns) if _is_ellipsis(macro, pattern)), None)
    if at is None:
        before, repeated, after = patterns, None, []
    else:
        before, repeated, after = patterns[: at - 1], patterns[at - 1], patterns[at + 1 :]
    count = len(items) - len(before) - len(after)
    if count < 0 or (repeated is None and count > 0 and pattern_tail is None):
        return False
    if repeated is None and pattern_tail is not None:
        rest, count = items[len(before) :], 0
        end: Datum | None = tail if not rest else Sequence(rest, rest[0].place, tail)
        items = items[: len(before)]
    else:
        end = tail
    if (pattern_tail is None) != (end is None):
        # `(a b)` fits `(a b . rest)`: rest is then nil.
        if pattern_tail is None:
            return False
        end = Datum(NIL, items[-1].place if items else pattern_tail.place)
    middle = len(before) + count
    pairs = [*zip(before, items), *zip(after, items[middle:])]
    if not all(_match(macro, each, item, scope, taken) for each, item in pairs):
        return False
    if pattern_tail is not None and end is not None and not _match(macro, pattern_tail, end, scope, taken):
        return False
    if repeated is not None:
        rounds: list[dict[Any, Taken]] = []
        for item in items[len(before) : middle]:
            rounds.append({})
            if not _match(macro, repeated, item, scope, rounds[-1]):
                return False
        for key in _variables(macro, repeated):
            taken[key] = [each[key] for each in rounds]
    return True


def same_meaning(name: Name, scope: Scope, other: Name, other_scope: Scope) -> bool:
    """Whether two names, each in its scope, are bound to the same thing, or both free and the same."""
    found, wanted = scope.lookup(name), other_scope.lookup(other)
    return (
        name.value == other.value if found is None and wanted is None else found is wanted or found == wanted
    )


def _variables(macro: Macro, pattern: Datum) -> list[Any]:
    if isinstance(pattern, Name):
        plain = (
            pattern.key not in macro.literals and pattern.value != "_" and not _is_ellipsis(macro, pattern)
        )
        return [pattern.key] if plain else []
    if not isinstance(pattern, (Sequence, Vector)):
        return []
    parts = list(pattern.value)
    if isinstance(pattern, Sequence) and pattern.tail is not None:
        parts.append(pattern.tail)
    return [key for part in parts for key in _variables(macro, part)]


def _check(macro: Macro, rule: Rule) -> None:
    """Refuse patterns that mean nothing, when the macro is defined rather than when it is used."""
    depths: dict[Any, int] = {}

    def visit(pattern: Datum, depth: int, is_top: bool = False) -> None:
        if isinstance(pattern, Name):
            for key in _variables(macro, pattern):
                if key in depths:
                    raise PurpleError(f"{pattern.value} stands twice in one pattern", "syntax", pattern.place)
                depths[key] = depth
        elif isinstance(pattern, (Sequence, Vector)):
            parts = pattern.value[1:] if is_top else pattern.value
            dots = [i for i, each in enumerate(parts) if _is_ellipsis(macro, each)]
            if len(dots) > 1 or dots[:1] == [0]:
                raise PurpleError("an ellipsis follows a pattern, once in a list", "syntax", pattern.place)
            for i, part in enumerate(parts):
                if i not in dots:
                    visit(part, depth + (i + 1 in dots))
            if isinstance(pattern, Sequence) and pattern.tail is not None:
                visit(pattern.tail, depth)

    visit(rule.pattern, 0, is_top=True)
    _check_template(macro, rule.template, 0, depths)


def _check_template(macro: Macro, template: Datum, depth: int, depths: dict[Any, int]) -> None:
    if isinstance(template, Name):
        needed = depths.get(template.key, 0)
        if needed > depth:
            raise PurpleError(f"{template.value} needs {needed} ellipses after it", "syntax", template.place)
    elif isinstance(template, (Sequence, Vector)):
        parts = template.value
        if parts and _is_ellipsis(macro, parts[0]):
            return  # (... template): taken as it stands
        i = 0
        while i < len(parts):
            following = i + 1
            while following < len(parts) and _is_ellipsis(macro, parts[following]):
                following += 1
            dots = following - i - 1
            if dots and not any(depths.get(key, 0) for key in _variables(macro, parts[i])):
                raise PurpleError("nothing before this ellipsis repeats", "syntax", parts[i + 1].place)
            _check_template(macro, parts[i], depth + dots, depths)
            i = following
        if isinstance(template, Sequence) and template.tail is not None:
            _check_template(macro, template.tail, depth, depths)


class _Filling:
    """One use of a template. What it brings in stands at the place of the use, under names of its own."""

    def __init__(self, macro: Macro, place: Place, made: list[int]):
        self.macro, self.place, self.made = macro, place, made
        self.aliases: dict[Any, Alias] = {}

    def fill(self, template: Datum, taken: dict[Any, Taken], plain: bool = False) -> Datum:
        self.made[0] += 1
        if self.made[0] > SIZE_LIMIT:
            raise PurpleError("macros expand without end", "syntax", self.place)
        if isinstance(template, Name):
            if template.key in taken:
                found = taken[template.key]
                assert isinstance(found, Datum)
                return found
            return self.rename(template)
        if isinstance(template, Vector):
            return Vector(self.fill_items(template.value, taken, plain), self.place)
        if not isinstance(template, Sequence):
            return Datum(template.value, self.place)
        parts = template.value
        if not plain and len(parts) == 2 and _is_ellipsis(self.macro, parts[0]):
            return self.fill(parts[1], taken, plain=True)
        items = self.fill_items(parts, taken, plain)
        tail = None if template.tail is None else self.fill(template.tail, taken, plain)
        if isinstance(tail, Sequence):
            return Sequence(items + tail.value, self.place, tail.tail)
        if tail is not None and tail.value is NIL:
            tail = None
        return Sequence(items, self.place, tail) if items else tail or Datum(NIL, self.place)

    def fill_items(self, parts: list[Datum], taken: dict[Any, Taken], plain: bool) -> list[Datum]:
        items: list[Datum] = []
        i = 0
        while i < len(parts):
            following = i + 1
            while not plain and following < len(parts) and _is_ellipsis(self.macro, parts[following]):
                following += 1
            items += self.repeat(parts[i], taken, following - i - 1, plain)
            i = following
        return items

    def repeat(self, part: Datum, taken: dict[Any, Taken], depth: int, plain: bool) -> list[Datum]:
        if depth == 0:
            return [self.fill(part, taken, plain)]
        repeating = [key for key in _variables(self.macro, part) if isinstance(taken.get(key), list)]
        counts = {len(taken[key]) for key in repeating}  # type: ignore[arg-type]
        if len(counts) != 1:
            raise PurpleError(
                f"lists of different lengths repeat together in the macro {self.macro.name}",
                "syntax",
                self.place,
            )
        results: list[Datum] = []
        for i in range(counts.pop()):
            inner = {**taken, **{key: taken[key][i] for key in repeating}}  # type: ignore[index]
            results += self.repeat(part, inner, depth - 1, plain)
        return results

    def rename(self, name: Name) -> Name:
        alias = self.aliases.get(name.key)
        if alias is None:
            alias = self.aliases[name.key] = Alias(name.value, name.key, self.macro.scope)
        return Name(name.value, self.place, alias)
