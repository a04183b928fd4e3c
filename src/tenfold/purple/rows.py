"""Operators of the table in C: for each that a program uses, its overloads and their arguments, from which
the runtime chooses by the values of a call, as Python's dispatch does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tenfold.ops.fitting import STANDS_FOR
from tenfold.ops.order import overloads_in_torch_order
from tenfold.ops.schema import MISSING, Argument
from tenfold.ops.table import Row
from tenfold.purple.constants import c_string
from tenfold.purple.names import row_of

# The kinds of numbers that Purple has, as the runtime knows them.
STANDS = {"bool": "PU_STANDS_BOOL", "int": "PU_STANDS_INT", "float": "PU_STANDS_FLOAT"}


class RowTables:
    """The tables of one C file."""

    def __init__(self) -> None:
        self._tables: dict[str, list[str]] = {}

    def table(self, name: str) -> str:
        """The C name of an operator's table."""
        ident = "row_" + re.sub(r"[^A-Za-z0-9_]", lambda m: "_x" if m[0] == "!" else "_", name)
        if name not in self._tables:
            self._tables[name] = list(self._lines(name, ident))
        return ident

    def definitions(self) -> list[str]:
        return [line for lines in self._tables.values() for line in lines]

    def _lines(self, name: str, ident: str) -> Iterator[str]:
        found = row_of(name)
        assert found is not None
        rows, inplace = found
        usable = [row for row in rows if not inplace or row.inplace]
        usable = overloads_in_torch_order(usable, lambda row: row.schema)
        for i, row in enumerate(usable):
            arguments = [self._argument(argument) for argument in row.schema.arguments]
            if arguments:
                yield f"static const PuRowArgument {ident}_{i}[] = {{{', '.join(arguments)}}};"
        yield f"static PuOverload {ident}_overloads[] = {{"
        for i, row in enumerate(usable):
            pointer = f"{ident}_{i}" if row.schema.arguments else "NULL"
            yield f"    {{{c_string(operator(row, inplace))}, {len(row.schema.arguments)}, {pointer}, NULL}},"
        yield "};"
        facts = ", ".join(truth(fact) for fact in (inplace, any(row.numbers for row in usable)))
        yield f"static const PuRow {ident} = {{{c_string(name)}, {len(usable)}, {ident}_overloads, {facts}}};"

    def _argument(self, each: Argument) -> str:
        kind = each.type
        flags = [kind.is_list, kind.optional, kind.element_optional, each.keyword_only]
        words = ", ".join(map(truth, flags))
        default = "NULL" if each.default is MISSING else c_string(default_text(each.default))
        keyword = c_string(each.name.replace("_", "-"))
        numbers = " | ".join(STANDS[each] for each in STANDS_FOR.get(kind.kind, ()) if each in STANDS) or "0"
        kinds = f"PU_ROW_{kind.kind.upper()}, {numbers}"
        return f"{{{keyword}, {kinds}, {words}, {kind.list_size or 0}, {default}}}"


def truth(fact: bool) -> str:
    return "true" if fact else "false"


def operator(row: Row, inplace: bool) -> str:
    """The dispatcher's name of a row: aten::add_.Tensor."""
    name, overload = row.name + "_" * inplace, row.overload
    return f"{row.namespace}::{name}.{overload}" if overload else f"{row.namespace}::{name}"


def default_text(value: Any) -> str:
    """A default as the runtime reads it: `none`, `true`, a number, text after a quote, or several in
    brackets."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return truth(value)
    if isinstance(value, tuple | list):
        return "[" + " ".join(default_text(item) for item in value) + "]"
    return "'" + value if isinstance(value, str) else repr(value)
