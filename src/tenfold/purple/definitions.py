"""Definitions that are others written shortly: `define-record-type` and `define-values`. Each becomes a list
of data that the expander reads in its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenfold.purple.core import Place, derived
from tenfold.purple.errors import PurpleError
from tenfold.purple.forms import USAGES
from tenfold.purple.reader import Datum, Name, Sequence
from tenfold.purple.syntax import list_items
from tenfold.purple.values import NIL

USAGES["define-record-type"] = (
    "(define-record-type NAME (CONSTRUCTOR FIELD …) PREDICATE (FIELD ACCESSOR [MODIFIER]) …)"
)
USAGES["define-values"] = "(define-values (NAME … [. REST]) VALUES)"


def _refuse(form: str, place: Place) -> PurpleError:
    return PurpleError(f"{form} is written {USAGES[form]}", "syntax", place)


def record_type(datum: Sequence, count: Any) -> list[Datum]:
    items, place = datum.value, datum.place
    if len(items) < 4 or not isinstance(items[1], Name) or not isinstance(items[3], Name):
        raise _refuse("define-record-type", place)
    fields = [list_items(item) for item in items[4:]]
    makes = list_items(items[2]) if isinstance(items[2], Sequence) else [items[2]]
    if makes is None or not all(isinstance(each, Name) for each in makes):
        raise _refuse("define-record-type", items[2].place)
    names: list[Name] = []
    for field, item in zip(fields, items[4:]):
        if field is None or not 2 <= len(field) <= 3 or not all(isinstance(part, Name) for part in field):
            raise _refuse("define-record-type", item.place)
        names.append(field[0])  # type: ignore[arg-type]
    kind = items[1].value
    word = lambda text: Name(text, place)
    form = lambda *parts: Sequence(list(parts), place)
    given = makes[1:] if isinstance(items[2], Sequence) else list(names)
    for each in given:
        if each.value not in [name.value for name in names]:
            raise PurpleError(f"{kind} has no field {each.value}", "syntax", each.place)
    filled = [n if n.value in [g.value for g in given] else Datum(False, place) for n in names]
    out: list[Datum] = [form(word("deftype"), items[1], *names)]
    out.append(form(word("define"), form(makes[0], *given), form(word(f"mk-{kind}"), *filled)))
    if items[3].value != f"{kind}?":
        out.append(_procedure(items[3], ("record",), (f"{kind}?", "record")))
    for field in fields:
        assert field is not None
        read = (f"{kind}-{field[0].value}", "record")
        if field[1].value != read[0]:
            out.append(_procedure(field[1], ("record",), read))
        if len(field) == 3:
            out.append(_procedure(field[2], ("record", "new"), ("set!", read, "new")))
    return out


def _procedure(name: Datum, parameters: tuple[str, ...], body: tuple[Any, ...]) -> Datum:
    """The definition of a procedure of a record type, at the place of its name: its errors are told where it
    is called, and by that name."""
    place = derived(name.place)

    def datum(parts: Any) -> Datum:
        return Name(parts, place) if isinstance(parts, str) else Sequence(list(map(datum, parts)), place)

    head = Sequence([name, *map(datum, parameters)], place)
    return Sequence([datum("define"), head, datum(body)], place)


def values(datum: Sequence, count: Any) -> list[Datum]:
    items, place = datum.value, datum.place
    if len(items) != 3:
        raise _refuse("define-values", place)
    word = lambda text: Name(text, place)
    form = lambda *parts: Sequence(list(parts), place)
    names = items[1]
    each: list[Datum] = []
    rest: Datum | None = None
    if isinstance(names, Name):
        rest = names
    elif isinstance(names, Sequence):
        each, rest = names.value, names.tail
    elif names.value is not NIL:
        raise _refuse("define-values", names.place)
    bundle = word(f"values-{next(count)}")
    parameters = Sequence(each, place, rest) if each else names
    made: Datum = form(word("list"), *each)
    if rest is not None:
        made = rest
        for name in reversed(each):
            made = form(word("cons"), name, made)
    taken = form(word("let-values"), form(form(parameters, items[2])), made)
    out: list[Datum] = [form(word("define"), bundle, taken)]
    for i, name in enumerate(each):
        out.append(form(word("define"), name, form(word("list-ref"), bundle, Datum(i, place))))
    if rest is not None:
        out.append(form(word("define"), rest, form(word("list-tail"), bundle, Datum(len(each), place))))
    return out


DEFINITIONS: dict[str, Callable[[Sequence, Any], list[Datum]]] = {
    "define-record-type": record_type,
    "define-values": values,
}
