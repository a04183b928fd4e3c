"""What libtenfold's functions are, machine-readable: name, prose, parameters, who owns what, how each fails.

The hand-written part is read from tenfold.h, whose style is strict enough for a few patterns; the operators
come from the table. Stubs, bindings and tests are generated from this description.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from tenfold.base.errors import FormatError
from tenfold.capi.locate import Libtorch
from tenfold.capi.typed import TypedForm, typed_forms
from tenfold.ops.fitting import STANDS_FOR

__all__ = [
    "HEADER",
    "Constant",
    "Description",
    "Enum",
    "Function",
    "Parameter",
    "describe",
    "read_enums",
    "read_header",
]

HEADER = Path(__file__).with_name("include") / "tenfold.h"


@dataclass(frozen=True)
class Parameter:
    """`role` is in, inout (written, not owned), out, count, buffer, size, callback or user (a callback's
    argument). `ownership` is borrowed, consumed (freed by the call), owned (written by the call, the caller
    frees) or value. `count_of` lists the arrays a count belongs to; `type` is the schema's type where the
    function is an operator."""

    name: str
    ctype: str
    role: str
    optional: bool = False
    ownership: str = "value"
    count_of: tuple[str, ...] = ()
    type: str | None = None


@dataclass(frozen=True)
class Function:
    """`errors` says how a call fails: null, status, minus_one or never. `ownership` of what is returned is
    owned, borrowed or value. `op` is an operator's schema, `form` the shape of its function: "", with,
    inplace, out. What is `here` works without libtorch."""

    name: str
    doc: str
    section: str
    returns: str
    parameters: tuple[Parameter, ...]
    ownership: str
    errors: str
    here: bool = False
    op: str | None = None
    form: str | None = None

    @property
    def declaration(self) -> str:
        parameters = (
            ", ".join(_declare(parameter.ctype, parameter.name) for parameter in self.parameters) or "void"
        )
        return f"{_declare(self.returns, self.name)}({parameters})"


@dataclass(frozen=True)
class Constant:
    name: str
    value: int
    doc: str


@dataclass(frozen=True)
class Enum:
    """The constants of a type, such as tn_status."""

    name: str
    constants: tuple[Constant, ...]

    @property
    def words(self) -> dict[str, int]:
        """The numbers by names without what all share: float32 for TN_FLOAT32, list for TN_TAG_LIST."""
        own = self.name.removeprefix("tn_").upper()
        return {
            constant.name.removeprefix("TN_").removeprefix(f"{own}_").lower(): constant.value
            for constant in self.constants
        }


@dataclass(frozen=True)
class Description:
    opaque: tuple[str, ...]
    enums: tuple[Enum, ...]
    functions: tuple[Function, ...]
    taken: frozenset[str]  # every name that tenfold.h gives a meaning

    @property
    def stands_for(self) -> dict[str, tuple[str, ...]]:
        """The kinds of numbers that an operator's argument takes, by the argument's type."""
        return STANDS_FOR

    def as_json(self) -> dict:
        enums, functions = ([asdict(each) for each in several] for several in (self.enums, self.functions))
        return {
            "opaque": self.opaque,
            "enums": enums,
            "stands_for": self.stands_for,
            "functions": functions,
        }


def describe(libtorch: Libtorch) -> Description:
    """All functions: what the header declares, then the operators of the table as this libtorch has them."""
    written = read_header(HEADER.read_text(encoding="utf-8"))
    operators = tuple(_operator(form) for form in typed_forms(libtorch.schemas, written.taken))
    names: set[str] = set()
    for each in (*written.functions, *operators):
        if each.name in names:
            raise FormatError(f"two functions of libtenfold are called {each.name}")
        names.add(each.name)
    return Description(written.opaque, written.enums, written.functions + operators, written.taken)


# ---- the hand-written header ------------------------------------------------------------------------------

_SECTION = re.compile(r"^/\* ==== (?P<title>[\w ]+?) ====", re.MULTILINE)
_ENTRY = re.compile(
    r"/\*\*(?P<doc>(?:[^*]|\*(?!/))*)\*/\s*TN_API\s+(?P<head>[\w\s*]+?)\b(?P<name>tn_\w+)\((?P<parameters>[^;{]*)\);"
)
_OPAQUE = re.compile(r"typedef struct (tn_\w+) \1;")
_ENUM = re.compile(r"(?:typedef \w+|\}) (?P<name>tn_\w+);\nenum \{(?P<body>[^}]*)\};")
_CONSTANT = re.compile(r"\b(?P<name>TN_\w+) = (?P<value>\d+),?(?: *\/\* (?P<doc>.*?) \*\/)?")
_CALLBACK = re.compile(r"typedef [\w\s*]+?\(\*(tn_\w+)\)\(")
_MARK = re.compile(r"@(\w+)((?: +(?!@)\w+)*)")
_PARAMETER = re.compile(r"(?P<ctype>[\w\s*]+?)\s*(?<![\w])(?P<name>\w+)(?P<array>\[\w*\])?")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_NAME = re.compile(r"\btn_\w+")
_MARKS = {"borrowed", "optional", "out", "consumes", "count", "here", "never_fails"}


def read_header(text: str) -> Description:
    """The functions that a header in our style declares."""
    opaque = tuple(_OPAQUE.findall(text))
    callbacks = frozenset(_CALLBACK.findall(text))
    sections = [(match.start(), match["title"]) for match in _SECTION.finditer(text)]
    found = []
    for match in _ENTRY.finditer(text):
        section = [title for start, title in sections if start < match.start()][-1]
        found.append(_read_entry(match, section, opaque, callbacks))
    undocumented = set(re.findall(r"TN_API[^;]*?\b(tn_\w+)\(", text)) - {each.name for each in found}
    if undocumented:
        raise FormatError(f"tenfold.h declares without a comment: {', '.join(sorted(undocumented))}")
    return Description(
        opaque, read_enums(text), tuple(found), frozenset(_NAME.findall(_COMMENT.sub("", text)))
    )


def read_enums(text: str) -> tuple[Enum, ...]:
    """The constants that a header in our style declares, right after the type whose values they are."""
    found = []
    for match in _ENUM.finditer(text):
        constants = [
            Constant(each["name"], int(each["value"]), each["doc"] or "")
            for each in _CONSTANT.finditer(match["body"])
        ]
        found.append(Enum(match["name"], tuple(constants)))
    if len(found) != text.count("enum {"):
        raise FormatError("tenfold.h has an enum that does not follow the type it belongs to")
    return tuple(found)


def _read_entry(
    match: re.Match[str], section: str, opaque: tuple[str, ...], callbacks: frozenset[str]
) -> Function:
    name, comment = match["name"], " ".join(match["doc"].replace("\n *", "\n").split())
    doc, at, tail = comment.partition("@")
    marks: dict[str, list[str]] = {}
    for mark, words in _MARK.findall(at + tail):
        if mark not in _MARKS:
            raise FormatError(f"tenfold.h: {name} has an unknown mark @{mark}")
        marks.setdefault(mark, []).extend(words.split())
    returns = _ctype(match["head"])
    names: list[tuple[str, str]] = []
    for each in match["parameters"].split(","):
        if each.strip() in ("", "void"):
            continue
        parameter = _PARAMETER.fullmatch(each.strip())
        if parameter is None:
            raise FormatError(f"tenfold.h: {name} has a parameter that cannot be read: {each.strip()!r}")
        names.append((_ctype(parameter["ctype"]) + ("*" if parameter["array"] else ""), parameter["name"]))
    for mark in ("optional", "out", "consumes", "count"):
        unknown = set(marks.get(mark, ())) - {each for _, each in names}
        if unknown:
            raise FormatError(
                f"tenfold.h: @{mark} of {name} names no parameter: {', '.join(sorted(unknown))}"
            )
    parameters = tuple(_read_parameter(ctype, each, names, marks, opaque, callbacks) for ctype, each in names)
    owned = returns.endswith("*") and "borrowed" not in marks
    return Function(
        name=name,
        doc=doc.strip(),
        section=section,
        returns=returns,
        parameters=parameters,
        ownership="owned" if owned else "borrowed" if returns.endswith("*") else "value",
        errors="never" if returns == "void" or "never_fails" in marks else _errors(returns),
        here="here" in marks,
    )


def _read_parameter(
    ctype: str,
    name: str,
    names: list[tuple[str, str]],
    marks: Mapping[str, list[str]],
    opaque: tuple[str, ...],
    callbacks: frozenset[str],
) -> Parameter:
    others = {each for _, each in names}
    arrays: tuple[str, ...] = ()
    if name.endswith("_count") and name.removesuffix("_count") in others:
        sharing = marks.get("count", [])
        arrays = (name.removesuffix("_count"),)
        if arrays[0] in sharing:
            arrays = tuple(dict.fromkeys((*arrays, *sharing)))
    if ctype in callbacks:
        role = "callback"
    elif name == "user" and ctype == "void *":
        role = "user"
    elif name in marks.get("out", ()):
        role = "buffer" if name == "buffer" else "out"
    elif arrays:
        role = "count"
    elif name == "size" and "buffer" in others:
        role = "size"
    else:
        role = "inout" if _is_written(ctype, opaque) else "in"
    ownership = "borrowed" if ctype.endswith("*") else "value"
    if name in marks.get("consumes", ()):
        ownership = "consumed"
    elif role == "out" and ctype.count("*") > 1:
        ownership = "owned"
    optional = name in marks.get("optional", ())
    return Parameter(name, ctype, role, optional, ownership, arrays)


def _is_written(ctype: str, opaque: tuple[str, ...]) -> bool:
    return any(ctype == f"{each} *" for each in opaque)


def _errors(returns: str) -> str:
    return "null" if returns.endswith("*") else "status" if returns == "tn_status" else "minus_one"


def _ctype(text: str) -> str:
    """A C type with one space before its first star: `const tn_tensor *const *`."""
    words = re.sub(r"\s*\*\s*", "*", " ".join(text.split()))
    return words.replace("*", " *", 1).replace("*const", "*const ") if "*" in words else words


def _declare(ctype: str, name: str) -> str:
    return f"{ctype}{name}" if ctype.endswith("*") else f"{ctype} {name}"


# ---- operators --------------------------------------------------------------------------------------------


def _operator(form: TypedForm) -> Function:
    returns = "tn_tensor *" if form.result == "tensor" else "tn_status"
    return Function(
        name=form.name,
        doc=form.doc,
        section="operators",
        returns=returns,
        parameters=tuple(_operator_parameters(form)),
        ownership="owned" if form.result == "tensor" else "value",
        errors=_errors(returns),
        op=str(form.schema),
        form=form.form,
    )


def _operator_parameters(form: TypedForm) -> Iterator[Parameter]:
    for parameter in form.parameters:
        arrays = (parameter.count_of,) if parameter.count_of else ()
        ownership = "owned" if parameter.owned else "borrowed" if parameter.ctype.endswith("*") else "value"
        yield Parameter(
            parameter.name,
            parameter.ctype,
            parameter.role,
            parameter.optional,
            ownership,
            arrays,
            parameter.type,
        )
