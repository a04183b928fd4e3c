"""Forms that may stand at the top level alone: they declare macros, types, modules and foreign functions."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tenfold.base.errors import did_you_mean
from tenfold.purple import core
from tenfold.purple.errors import PurpleError
from tenfold.purple.forms import USAGES
from tenfold.purple.libraries import define_library, import_sets, is_library
from tenfold.purple.reader import Datum, Name, Sequence
from tenfold.purple.scope import ForeignName, RecordName, Scope
from tenfold.purple.syntax import is_name, list_items
from tenfold.purple.values import Keyword

if TYPE_CHECKING:
    from tenfold.purple.expand import Expander, Module

TOP_LEVEL: dict[str, Callable[..., Any]] = {}


def top_level(name: str, usage: str) -> Callable[[Any], Any]:
    def declare(function: Any) -> Any:
        USAGES[name] = usage
        TOP_LEVEL[name] = function
        return function

    return declare


@top_level("define-syntax", "(define-syntax NAME (syntax-rules …))")
def _define_syntax(expander: Expander, datum: Sequence, where: Module | Scope) -> None:
    scope = where if isinstance(where, Scope) else where.scope
    if len(datum.value) != 3 or not isinstance(datum.value[1], Name):
        raise PurpleError(f"define-syntax is written {USAGES['define-syntax']}", "syntax", datum.place)
    name = datum.value[1]
    scope.bindings[name.key] = expander.macro(name, datum.value[2], scope)


@top_level("deftype", "(deftype NAME FIELD …), a FIELD being NAME, (NAME TYPE) or (NAME TYPE :weak)")
def _deftype(expander: Expander, datum: Sequence, module: Module) -> list[str]:
    items = datum.value[1:]
    if not items or not isinstance(items[0], Name) or datum.tail is not None:
        raise PurpleError(f"deftype is written {USAGES['deftype']}", "syntax", datum.place)
    name, scope = items[0], module.scope
    shown = name.value
    unique = module.prefix + shown
    if unique in expander.types and not expander.late:
        raise PurpleError(f"the type {shown} is defined twice", "syntax", datum.place).note(
            "it was defined here", expander.types[unique].place
        )
    fields = tuple(_field(expander, item, scope, shown, unique) for item in items[1:])
    if len({field.name for field in fields}) != len(fields):
        raise PurpleError(f"two fields of {shown} have the same name", "syntax", datum.place)
    declared = core.DefType(unique, fields, place=datum.place)
    expander.types[unique] = declared
    expander.forms.append(declared)
    bound = {shown: RecordName(declared, "type"), f"mk-{shown}": RecordName(declared, "make")}
    bound[f"{shown}?"] = RecordName(declared, "test")
    bound |= {f"{shown}-{field.name}": RecordName(declared, "field", i) for i, field in enumerate(fields)}
    scope.bindings.update(bound)
    if name.alias is not None:
        scope.bindings[name.key] = bound[shown]
    return list(bound)


def _field(expander: Expander, datum: Datum, scope: Scope, type_name: str, unique: str) -> core.Field:
    items = [datum] if isinstance(datum, Name) else list_items(datum)
    if not items or not isinstance(items[0], Name):
        raise PurpleError("a field is written NAME, (NAME TYPE) or (NAME TYPE :weak)", "syntax", datum.place)
    weak, field_type = False, "any"
    for option in items[1:]:
        if isinstance(option, Name):
            field_type = _field_type(expander, option, scope, type_name, unique)
        elif isinstance(option.value, Keyword) and option.value.name == "weak":
            weak = True
        else:
            raise PurpleError(
                "a field is written NAME, (NAME TYPE) or (NAME TYPE :weak)", "syntax", option.place
            )
    return core.Field(items[0].value, field_type, weak)


def _field_type(expander: Expander, option: Name, scope: Scope, type_name: str, unique: str) -> str:
    if option.value in core.FIELD_TYPES:
        return option.value
    if option.value == type_name:
        return unique
    found = scope.lookup(option)
    if isinstance(found, RecordName) and found.role == "type":
        return found.type.name
    known = [*core.FIELD_TYPES, *(core.shown(each) for each in expander.types)]
    raise PurpleError(
        f"there is no type {option.value}", "syntax", option.place, help=did_you_mean(option.value, known)
    )


@top_level("module", "(module NAME (export NAME …) FORM …)")
def _module(expander: Expander, datum: Sequence, module: Module) -> list[Datum]:
    items = datum.value[1:]
    if not items or not isinstance(items[0], Name):
        raise PurpleError(f"module is written {USAGES['module']}", "syntax", datum.place)
    if module.exports is not None:
        raise PurpleError("a file holds one module", "syntax", datum.place)
    module.name, module.exports = items[0].value, {}
    rest = items[1:]
    while rest and isinstance(rest[0], Sequence) and is_name(rest[0].value[0], "export"):
        for name in rest[0].value[1:]:
            if not isinstance(name, Name):
                raise PurpleError("what is exported is a name", "syntax", name.place)
            module.exports[name.value] = name.place
        rest = rest[1:]
    return rest


@top_level("define-library", USAGES["define-library"])
def _define_library(expander: Expander, datum: Sequence, module: Module) -> None:
    define_library(expander, datum, module)


@top_level("import", '(import "FILE" [:as PREFIX] [:only (NAME …)]) or (import (LIBRARY …) …)')
def _import(expander: Expander, datum: Sequence, module: Module) -> None:
    items = datum.value[1:]
    if items and is_library(items[0]):
        import_sets(expander, items, module)
        return
    if not items or not (isinstance(items[0], Name) or isinstance(items[0].value, str)):
        raise PurpleError(f"import is written {USAGES['import']}", "syntax", datum.place)
    path = items[0].value + (".purple" if isinstance(items[0], Name) else "")
    folder = os.path.dirname(module.file)
    found = expander.import_file(os.path.normpath(os.path.join(folder, path)), items[0].place)
    prefix, only = "", None
    options = items[1:]
    while options:
        keyword = options[0].value
        if len(options) < 2 or not isinstance(keyword, Keyword) or keyword.name not in ("as", "only"):
            raise PurpleError(f"import is written {USAGES['import']}", "syntax", options[0].place)
        if keyword.name == "as":
            prefix = f"{options[1].value}/"
        else:
            only = list_items(options[1]) or []
        options = options[2:]
    exported = exports(found)
    if only is not None:
        for name in only:
            if not isinstance(name, Name) or name.value not in exported:
                raise PurpleError(
                    f"{found.name} does not export {name.value}",
                    "unbound",
                    name.place,
                    help=did_you_mean(str(name.value), exported),
                )
        exported = {name.value: exported[name.value] for name in only}
    for text, binding in exported.items():
        module.scope.bindings[prefix + text] = binding


def exports(module: Module) -> dict[str, Any]:
    bound = {key: binding for key, binding in module.scope.bindings.items() if isinstance(key, str)}
    if module.exports is None:
        return bound
    exported = {key: each for key, each in bound.items() if key in module.exports}
    # With a type go its constructor, test and fields.
    types = [each.type for each in exported.values() if isinstance(each, RecordName) and each.role == "type"]
    return exported | {
        key: each for key, each in bound.items() if isinstance(each, RecordName) and each.type in types
    }


@top_level("ffi-declare", '(ffi-declare NAME (TYPE …) TYPE [:symbol "C-NAME"] [:library "FILE"])')
def _ffi_declare(expander: Expander, datum: Sequence, module: Module) -> None:
    items = datum.value[1:]
    parameters = list_items(items[1]) if len(items) > 2 else None
    if parameters is None or not isinstance(items[0], Name):
        raise PurpleError(f"ffi-declare is written {USAGES['ffi-declare']}", "syntax", datum.place)
    options: dict[str, str] = {}
    rest = items[3:]
    while rest:
        keyword = rest[0].value
        known = isinstance(keyword, Keyword) and keyword.name in ("symbol", "library")
        if not known or len(rest) < 2 or not isinstance(rest[1].value, str) or isinstance(rest[1], Name):
            raise PurpleError(f"ffi-declare is written {USAGES['ffi-declare']}", "syntax", rest[0].place)
        options[keyword.name] = rest[1].value
        rest = rest[2:]
    declared = core.Ffi(
        items[0].value,
        options.get("symbol", items[0].value.replace("-", "_")),
        tuple(_passed(parameter, False) for parameter in parameters),
        _passed(items[2], True),
        _library(options.get("library"), datum.place.file),
        place=datum.place,
    )
    if any(parameter.type == "void" for parameter in declared.parameters):
        raise PurpleError("no parameter is of type void", "syntax", items[1].place)
    expander.forms.append(declared)
    module.scope.bindings[items[0].key] = ForeignName(declared)


def _library(named: str | None, file: str) -> str | None:
    """A library as it is found from anywhere: a path starts at the folder of the file that declares it."""
    if named is None or "/" not in named:
        return named
    return os.path.join(os.path.abspath(os.path.dirname(file)), named)


def _passed(datum: Datum, owned: bool) -> core.Passed:
    """`tensor`, `(own tensor)` or `(borrow tensor)`: arguments are lent, results given, unless it says
    otherwise.
    """
    items = list_items(datum)
    if items and len(items) == 2 and items[0].value in ("own", "borrow"):
        owned, datum = items[0].value == "own", items[1]
    if not isinstance(datum, Name) or datum.value not in core.FOREIGN_TYPES:
        raise PurpleError(
            "this is no type of a foreign function",
            "syntax",
            datum.place,
            help=f"use {', '.join(core.FOREIGN_TYPES)}",
        )
    return core.Passed(datum.value, owned)
