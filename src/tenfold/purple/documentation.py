"""What can be said of a name: how it is used, and in a line what it does. For `,doc` and for completion."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tenfold.purple import names
from tenfold.purple.core import NOWHERE
from tenfold.purple.expand import Expander
from tenfold.purple.forms import USAGES
from tenfold.purple.reader import Datum, Name, Sequence, Vector
from tenfold.purple.scope import ForeignName, GlobalName, Macro, PreludeName, RecordName, Transformer
from tenfold.purple.values import Char

FORM_DOCS = {
    "quote": "The datum itself, not evaluated.",
    "if": "THEN when TEST is neither nil nor #f, else ELSE.",
    "define": "Names a value or a function.",
    "lambda": "A function without a name.",
    "let": "Names values for a body; with a name of its own, a loop.",
    "let*": "Names values one after the other.",
    "letrec": "Names functions that may call each other.",
    "begin": "One expression after the other; the last one's value.",
    "do": "The same as begin.",
    "when": "The body when TEST is true.",
    "unless": "The body when TEST is false.",
    "and": "The last value when all are true, else the first that is not.",
    "or": "The first value that is true.",
    "cond": "The body of the first clause whose test is true.",
    "case": "The body of the first clause that lists the value.",
    "while": "The body again and again while TEST is true.",
    "dotimes": "The body with NAME from 0 up to COUNT.",
    "set!": "Assigns to a variable or a place.",
    "try": "The value; when it fails, what HANDLER makes of the error.",
    "with-device": "New tensors of the body are made on the device.",
    "with-grad": "Operations of the body are recorded for gradients.",
    "no-grad": "Operations of the body are not recorded for gradients.",
    "match": "The body of the first clause whose pattern fits.",
    "syntax-error": "Refuses the program where it is expanded: what a macro makes of a use it does not take.",
    "let-values": "Names several values at once.",
    "quasiquote": "A template: `,` fills in a value, `,@` a list.",
    "define-syntax": "A macro.",
    "deftype": "A record type: mk-NAME makes one, NAME-FIELD reads, NAME? tests.",
    "module": "Names what a file exports.",
    "import": "The definitions of another file.",
    "ffi-declare": "A function of a C library.",
}


class Entry(NamedTuple):
    usage: str
    doc: str


def describe(name: str, expander: Expander) -> Entry | None:
    """What is known of a name; None for one that means nothing."""
    found = expander.main.scope.lookup(Name(name, NOWHERE))
    if name in FORM_DOCS and name in USAGES:
        return Entry(USAGES[name], FORM_DOCS[name])
    if isinstance(found, PreludeName):
        return _definition(expander.prelude_data[found.name][1])
    if isinstance(found, GlobalName):
        datum = expander.definitions.get(found.unique)
        return _definition(datum) if datum is not None else Entry(name, "")
    if isinstance(found, RecordName):
        fields = " ".join(field.name for field in found.type.fields)
        usage = {"make": f"({name} {fields})", "type": f"(deftype {name} {fields})"}.get(
            found.role, f"({name} record)"
        )
        return Entry(usage, "Of a record type.")
    if isinstance(found, ForeignName):
        return Entry(
            f"({name} {' '.join(parameter.type for parameter in found.declaration.parameters)})",
            "A foreign function.",
        )
    if isinstance(found, Transformer):
        return Entry(f"({name} …)", "A procedural macro.")
    if isinstance(found, Macro):
        return Entry(
            "  ".join(show(rule.pattern).replace("(_", f"({name}", 1) for rule in found.rules), "A macro."
        )
    primitive = names.PRIMITIVES.get(name)
    if primitive is not None:
        return Entry(primitive.signature(), primitive.doc)
    row = names.row_of(name)
    if row is not None:
        rows, inplace = row
        doc = next((each.doc for each in rows if each.doc), "")
        return Entry(rows[0].text, " ".join(["In place.", doc]).strip() if inplace else doc)
    return None


def known_names(expander: Expander) -> Iterator[str]:
    """All that can be named at the top level."""
    yield from sorted(
        {
            *expander.main.scope.visible(),
            *(primitive for primitive in names.PRIMITIVES if primitive[0] != "%"),
            *names.row_names(),
        }
    )


def _definition(datum: Sequence) -> Entry:
    target = datum.value[1]
    if not isinstance(target, Sequence):
        return Entry(show(target), "A value.")
    body = datum.value[2:]
    has_doc = len(body) > 1 and type(body[0]) is Datum and isinstance(body[0].value, str)
    return Entry(show(target), body[0].value if has_doc else "")


def show(datum: Datum) -> str:
    """A datum as text."""
    if isinstance(datum, Sequence):
        tail = f" . {show(datum.tail)}" if datum.tail is not None else ""
        return f"({' '.join(map(show, datum.value))}{tail})"
    if isinstance(datum, Vector):
        return f"#({' '.join(map(show, datum.value))})"
    if isinstance(datum, Name):
        return datum.value
    if isinstance(datum.value, bool):
        return "#t" if datum.value else "#f"
    if isinstance(datum.value, Char):
        return f"#\\{chr(datum.value.code)}"
    return f'"{datum.value}"' if isinstance(datum.value, str) else repr(datum.value)
