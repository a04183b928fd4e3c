"""The typed functions of operators: which there are, what they are called, and how arguments cross C.

A row of the table gives `tn_NAME` (positional arguments only) and, where its schema has keyword-only
arguments, `tn_NAME_with`; an in-place form ends in `_`, an out form in `_out`. The overload without a name is
`tn_NAME`, or else that of tensors alone, or the table's first; the others are `tn_NAME_OVERLOAD` (with
`_overload` added where that is another operator's name). An operator whose name the header uses for a type is
`tn_NAME_op`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tenfold.capi.locate import Installed
from tenfold.ops.schema import MISSING, Argument, Schema, Type
from tenfold.ops.table import TABLE, Row

__all__ = ["RESERVED", "TypedForm", "TypedParameter", "c_name", "encode", "plain_name", "typed_forms"]

# Words that C or C++ keep for themselves.
RESERVED = frozenset({
    "alignas", "alignof", "and", "asm", "auto", "bool", "break", "case", "catch", "char", "class", "const",
    "continue", "default", "delete", "do", "double", "else", "enum", "explicit", "export", "extern",
    "false", "float", "for", "friend", "goto", "if", "inline", "int", "long", "mutable", "namespace", "new",
    "not", "operator", "or", "private", "protected", "public", "register", "restrict", "return", "short",
    "signed", "sizeof", "static", "struct", "switch", "template", "this", "throw", "true", "try", "typedef",
    "typename", "union", "unsigned", "using", "virtual", "void", "volatile", "while", "xor",
})  # fmt: skip

_PLAIN = {
    "int": "int64_t",
    "float": "double",
    "bool": "bool",
    "Scalar": "tn_scalar",
    "ScalarType": "tn_dtype",
    "Layout": "tn_layout",
    "Device": "tn_device",
    "MemoryFormat": "tn_memory_format",
}
_PREFERRED = {
    "": 0,
    "Tensor": 1,
    "Tensor_Tensor": 2,
    "src": 3,
}  # overloads that are plain tn_NAME, before any other
_POINTERS = {"Tensor": "tn_tensor *", "Generator": "tn_generator *", "str": "char *"}


@dataclass(frozen=True)
class TypedParameter:
    """One C parameter: `argument` is the schema's argument it carries, `role` as in describe.Parameter."""

    name: str
    ctype: str
    role: str = "in"
    optional: bool = False
    owned: bool = False
    count_of: str | None = None
    type: str | None = None


@dataclass(frozen=True)
class TypedForm:
    """One typed function. `schema` is that of the overload it calls, `given` the arguments it takes; the
    others have their defaults. `result` is tensor, tensors (a fixed number), list, number or none."""

    name: str
    row: Row
    schema: Schema
    form: str
    given: tuple[Argument, ...]
    result: str
    parameters: tuple[TypedParameter, ...]
    installed: Installed | None

    @property
    def doc(self) -> str:
        """One line: what it does, then the operator's own schema."""
        how = {"inplace": "In place. ", "out": "Into given tensors. ", "with": "", "": ""}[self.form]
        return f"{how}{self.row.doc}{' ' * bool(self.row.doc)}aten::{self.schema}"


def typed_forms(installed: Mapping[str, Installed], taken: frozenset[str]) -> Iterator[TypedForm]:
    """Every typed function, in the order of the table. A row that this libtorch lacks still has its
    functions. `taken` are names that tenfold.h has for something else, such as the type tn_stack."""
    outs = _by_inputs(installed)
    # By what they take: pow_.Scalar is the in-place form of pow.Tensor_Scalar, and pow.Scalar has none.
    inplaces = {(e.schema.name, _types(e.schema)): e for e in installed.values() if e.schema.is_inplace}
    for rows in TABLE.values():
        for row in rows:
            base = plain_name(row, rows)
            if f"tn_{base}" in taken:
                base = f"{base}_op"
            found = _fitting(row.schema, installed.get(row.qualified))
            yield from _forms(base, row, row.schema, "", found)
            inplace = inplaces.get((f"{row.name}_", _types(row.schema)))
            if inplace is not None and _can_encode(inplace.schema):
                yield from _forms(base, row, inplace.schema, "_", inplace)
            out = outs.get((row.name, _inputs(row.schema)))
            if out is not None and _can_encode(out.schema):
                yield from _forms(base, row, out.schema, "_out", out)


def plain_name(row: Row, rows: Sequence[Row]) -> str:
    """What follows `tn_` in the name of a row's function, where the header has no such name of its own."""
    first = min(rows, key=lambda each: _PREFERRED.get(each.overload, len(_PREFERRED)))
    if row is first:
        return row.name
    base = f"{row.name}_{row.overload}"
    return f"{base}_overload" if base in TABLE else base  # scatter.reduce is not scatter_reduce


def _forms(base: str, row: Row, schema: Schema, ending: str, found: Installed | None) -> Iterator[TypedForm]:
    written = tuple(a for a in schema.keyword_only if a.type.is_written)
    keyword_only = tuple(a for a in schema.keyword_only if not a.type.is_written)
    kind = {"": "", "_": "inplace", "_out": "out"}[ending]
    if all(a.default is not MISSING for a in keyword_only):
        yield _form(f"tn_{base}{ending}", row, schema, kind, schema.positional + written, found)
    if keyword_only:
        given = schema.positional + keyword_only + written
        yield _form(f"tn_{base}_with{ending}", row, schema, kind or "with", given, found)


def _form(
    name: str, row: Row, schema: Schema, form: str, given: tuple[Argument, ...], found: Installed | None
) -> TypedForm:
    result = "none" if form in ("inplace", "out") else _result(schema)
    parameters = [each for argument in given for each in encode(argument)]
    out = "out" if all(argument.name != "out" for argument in given) else "results"
    if result == "tensors":
        parameters.append(TypedParameter(out, "tn_tensor **", "out", owned=True))
    elif result == "list":
        parameters.append(TypedParameter(out, "tn_tensor ***", "out", owned=True))
        parameters.append(TypedParameter(f"{out}_count", "int64_t *", "out"))
    elif result == "number":
        parameters.append(TypedParameter(out, f"{_PLAIN[schema.returns[0].type.kind]} *", "out"))
    return TypedForm(name, row, schema, form, given, result, tuple(parameters), found)


def _result(schema: Schema) -> str:
    types = [each.type for each in schema.returns]
    if all(each.kind == "Tensor" and not each.is_list for each in types):
        return "tensor" if len(types) == 1 else "tensors"
    if len(types) == 1:
        return "list" if types[0].is_list else "number"
    raise NotImplementedError(f"no C form for the results of {schema}")


def c_name(name: str) -> str:
    """What C calls an argument of a schema."""
    return f"{name}_" if name in RESERVED else name


def encode(argument: Argument) -> Iterator[TypedParameter]:
    """The C parameters of an argument: NULL stands for None, and for the default of a keyword-only one."""
    name, type = c_name(argument.name), argument.type
    nullable = type.optional or (argument.keyword_only and argument.default is not MISSING)
    const = "" if type.is_written else "const "
    role = "inout" if type.is_written else "in"
    if type.is_list:
        if type.kind in _POINTERS:
            ctype = f"{const}{_POINTERS[type.kind]}const *"
        else:
            ctype = f"const {_PLAIN[type.kind]} *"
        yield TypedParameter(name, ctype, role, nullable, type=str(type))
        yield TypedParameter(f"{name}_count", "int64_t", "count", count_of=name)
    elif type.kind in _POINTERS:
        yield TypedParameter(name, const + _POINTERS[type.kind], role, nullable, type=str(type))
    elif nullable:
        yield TypedParameter(name, f"const {_PLAIN[type.kind]} *", role, True, type=str(type))
    else:
        yield TypedParameter(name, _PLAIN[type.kind], role, type=str(type))


def _can_encode(schema: Schema) -> bool:
    known = _PLAIN.keys() | _POINTERS.keys()
    return all(a.type.kind in known for a in schema.arguments)


# ---- what the installed libtorch has ----------------------------------------------------------------------

# An out form has no use for where and what to make: its tensors are there.
_OPTIONS = {"dtype", "layout", "device", "pin_memory"}


def _signature(type: Type) -> tuple[str, bool, bool]:
    return type.kind, type.is_list, type.optional


def _types(schema: Schema) -> tuple:
    return tuple(_signature(a.type) for a in schema.arguments)


def _inputs(schema: Schema) -> tuple:
    made = {"layout", "device"} <= {a.name for a in schema.arguments}
    dropped = _OPTIONS if made else set()
    return tuple(
        (a.name, _signature(a.type))
        for a in schema.arguments
        if a.name not in dropped and not (a.keyword_only and a.type.is_written)
    )


def _by_inputs(installed: Mapping[str, Installed]) -> dict[tuple, Installed]:
    """The out overloads by name and by what they take beside the tensors to write."""
    found: dict[tuple, Installed] = {}
    for each in installed.values():
        if any(a.type.is_written for a in each.schema.keyword_only):
            found.setdefault((each.schema.name, _inputs(each.schema)), each)
    return found


def _fitting(schema: Schema, found: Installed | None) -> Installed | None:
    """The installed overload, if a call by the table's schema is a call of it."""
    if found is None:
        return None
    theirs = {a.name: a for a in found.schema.arguments}
    ours = {a.name for a in schema.arguments}
    same = all(
        a.name in theirs and _signature(theirs[a.name].type) == _signature(a.type) for a in schema.arguments
    )
    filled = all(a.default is not MISSING for a in found.schema.arguments if a.name not in ours)
    return found if same and filled and _can_encode(found.schema) else None
