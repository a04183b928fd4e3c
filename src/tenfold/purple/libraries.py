"""Libraries as R7RS has them: `import` of sets of names, `define-library`, `cond-expand`, `include` and
`include-ci`.

The standard libraries' names are the language's own, and are there without being imported."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tenfold.base.errors import did_you_mean
from tenfold.purple import core, names
from tenfold.purple.core import Place
from tenfold.purple.errors import PurpleError
from tenfold.purple.forms import USAGES
from tenfold.purple.reader import Datum, Name, Sequence, read, read_named
from tenfold.purple.scope import Alias, PrimitiveName, Scope
from tenfold.purple.syntax import is_name, list_items

if TYPE_CHECKING:
    from tenfold.purple.expand import Expander, Module
    from tenfold.purple.expressions import Expressions

PARTS = (
    "base case-lambda char complex cxr eval file inexact lazy load process-context read repl time write r5rs"
)
STANDARD = tuple(("scheme", name) for name in PARTS.split())
# Libraries that are files beside this one, and what each file calls itself.
OWN: dict[tuple[str, ...], tuple[str, ...]] = {
    ("srfi", "1"): ("srfi", "1"),
    ("scheme", "list"): ("srfi", "1"),
}
FEATURES = ("r7rs", "purple", "full-unicode", "ieee-float", "exact-closed", "ratios")
MOST_INCLUDED = 1000  # files, in a program
MODIFIERS = ("only", "except", "prefix", "rename")
USAGES["define-library"] = "(define-library (NAME …) (export NAME …) (import SET …) (begin FORM …) …)"
USAGES["cond-expand"] = "(cond-expand (REQUIREMENT FORM …) … [(else FORM …)])"
USAGES["include"] = '(include "FILE" …)'
USAGES["include-ci"] = '(include-ci "FILE" …)'


def is_library(datum: Datum) -> bool:
    """Whether an import names a library, or a set of its names, rather than a file."""
    return isinstance(datum, Sequence)


def import_sets(expander: Expander, sets: list[Datum], module: Module) -> None:
    for each in sets:
        module.scope.bindings.update(_bindings(expander, each, module))


def _bindings(expander: Expander, datum: Datum, module: Module) -> dict[str, Any]:
    """What an import set binds, by name."""
    items = list_items(datum)
    if not items:
        raise PurpleError("a library is named by a list", "syntax", datum.place)
    if not (items[0].value in MODIFIERS and len(items) > 1 and isinstance(items[1], Sequence)):
        return _library(expander, items, datum.place, module)
    inner = _bindings(expander, items[1], module)
    if not inner and items[0].value in ("prefix", "rename", "only"):
        inner = _language(expander)  # a standard library
    if items[0].value == "prefix" and len(items) == 3:
        return {f"{items[2].value}{name}": each for name, each in inner.items()}
    if items[0].value == "rename":
        for pair in items[2:]:
            old, new = list_items(pair) or (pair, pair)
            inner[new.value] = inner.pop(_known(old, inner))
        return inner
    wanted = [_known(item, inner) for item in items[2:]] if inner else []
    if items[0].value == "only":
        return {name: inner[name] for name in wanted}
    return {name: each for name, each in inner.items() if name not in wanted}


def _known(datum: Datum, found: dict[str, Any]) -> str:
    if isinstance(datum, Name) and datum.value in found:
        return datum.value
    help = did_you_mean(str(datum.value), list(found))
    raise PurpleError(f"the library does not export {datum.value}", "unbound", datum.place, help=help)


def _language(expander: Expander) -> dict[str, Any]:
    """All names of the language itself."""
    own = {name: PrimitiveName(name) for name in names.PRIMITIVES if not name.startswith("%")}
    return own | {key: binding for key, binding in expander.base.bindings.items() if isinstance(key, str)}


def _library(expander: Expander, items: list[Datum], place: Place, module: Module) -> dict[str, Any]:
    name = tuple(str(item.value) for item in items)
    if name in STANDARD:
        return {}
    found = expander.libraries.get(OWN.get(name, name))
    if found is None:
        folder = core.SHIPPED if name in OWN else os.path.dirname(module.file)
        path = os.path.join(folder, *OWN.get(name, name)) + ".purple"
        if not os.path.exists(path):
            known = [" ".join(each) for each in (*STANDARD, *OWN, *expander.libraries)]
            help = did_you_mean(" ".join(name), known)
            raise PurpleError(f"there is no library ({' '.join(name)})", "unbound", place, help=help)
        found = expander.import_file(os.path.normpath(path), place)
        found = expander.libraries.get(OWN.get(name, name), found)
    return expander.exports(found)


def define_library(expander: Expander, datum: Sequence, module: Module) -> None:
    items = datum.value[1:]
    parts = list_items(items[0]) if items else None
    if not parts:
        raise PurpleError(f"define-library is written {USAGES['define-library']}", "syntax", datum.place)
    name = tuple(str(part.value) for part in parts)
    made = expander.new_module("/".join(name), module.file)
    made.exports = {}
    renamed: list[tuple[Datum, Datum]] = []
    forms: list[Datum] = []
    queue = list(reversed(items[1:]))
    while queue:
        each = queue.pop()
        head = each.value[0].value if isinstance(each, Sequence) else None
        if head == "export":
            for export in each.value[1:]:
                old, new = (export.value[1:3]) if isinstance(export, Sequence) else (export, export)
                renamed.append((old, new))
        elif head == "import":
            import_sets(expander, each.value[1:], made)
        elif head == "begin":
            forms += each.value[1:]
        elif head in REWRITTEN and isinstance(each, Sequence):
            rewritten = rewrite(head, expander, each, made.scope)
            queue += reversed([rewritten] if head in ("include", "include-ci") else rewritten.value[1:])
        else:
            raise PurpleError(f"define-library is written {USAGES['define-library']}", "syntax", each.place)
    expander.expand_forms(forms, made)
    for old, new in renamed:
        found = made.scope.lookup(old) if isinstance(old, Name) else None
        if found is None and names.is_primitive(str(old.value)):
            found = PrimitiveName(str(old.value))
        if found is None:
            raise PurpleError(f"{old.value} is exported but not defined", "unbound", old.place)
        made.scope.bindings[new.value] = found
        made.exports[new.value] = new.place
    expander.libraries[name] = made


def rewrite(name: str, expander: Expressions, datum: Sequence, scope: Scope) -> Sequence:
    """`cond-expand`, `include` or `include-ci` as the `begin` that it stands for."""
    place = datum.place
    begin = Name("begin", place, Alias("begin", "begin", expander.base))
    return Sequence([begin, *REWRITTEN[name](expander, datum, scope)], place)


def _cond_expand(expander: Any, datum: Sequence, scope: Scope) -> list[Datum]:
    for clause in datum.value[1:]:
        if not isinstance(clause, Sequence):
            raise PurpleError(f"cond-expand is written {USAGES['cond-expand']}", "syntax", clause.place)
        if is_name(clause.value[0], "else") or _holds(expander, clause.value[0]):
            return clause.value[1:]
    return []


def _holds(expander: Any, datum: Datum) -> bool:
    """Whether a requirement of `cond-expand` is met."""
    if isinstance(datum, Name):
        return datum.value in FEATURES
    items = list_items(datum)
    if not items:
        raise PurpleError(
            "a requirement is a feature, or is made by and, or, not, library", "syntax", datum.place
        )
    head, rest = items[0].value, items[1:]
    if head == "library" and rest:
        name = tuple(str(each.value) for each in list_items(rest[0]) or [])
        return name in STANDARD or name in expander.libraries
    if head == "not" and rest:
        return not _holds(expander, rest[0])
    every = [_holds(expander, each) for each in rest]
    return all(every) if head == "and" else any(every)


def _include(expander: Any, datum: Sequence, scope: Scope, folds: bool = False) -> list[Datum]:
    data: list[Datum] = []
    for each in datum.value[1:]:
        if not isinstance(each.value, str) or isinstance(each, Name):
            name = "include-ci" if folds else "include"
            raise PurpleError(f"{name} is written {USAGES[name]}", "syntax", each.place)
        path = os.path.normpath(os.path.join(os.path.dirname(scope.module.file), each.value))
        expander.included += 1
        if expander.included > MOST_INCLUDED:
            raise PurpleError(
                f"over {MOST_INCLUDED:,} files are included: does one include itself?", "syntax", each.place
            )
        text = expander.sources[path] = read_named(path, each.place)
        data += read(text, path, folds)
    return data


REWRITTEN: dict[str, Callable[[Any, Sequence, Scope], list[Datum]]] = {
    "cond-expand": _cond_expand,
    "include": _include,
    "include-ci": functools.partial(_include, folds=True),
}
