"""The core language: what the expander makes, and both the interpreter and the compiler read.

A program here has no macros and no derived forms left. Local variables are objects, unique by identity;
global names are unique strings (`linear` of the prelude is `prelude::linear`; a program's own keep their
names); a call of a primitive is a `Prim`, so that whoever reads it never asks whether the name was
shadowed. Arguments are evaluated from left to right.
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias


class Place(NamedTuple):
    """Where a datum stands: line and column count from 1; `start:end` is its text in
    `Program.sources[file]`. `copied` names the library's procedure whose text stands here as a copy.
    """

    file: str
    line: int
    column: int
    start: int = 0
    end: int = 0
    copied: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


NOWHERE = Place("<purple>", 0, 0)
PRELUDE_FILE = "prelude.purple"
DATUM_FILE = "<datum>"  # where data that were never read stand
UNSEEN = (PRELUDE_FILE, DATUM_FILE)  # whose places mean nothing to people
LIBRARY = Place(PRELUDE_FILE, 1, 1)
SHIPPED = os.path.dirname(__file__)  # where the libraries of the language are


DERIVED = " (derived)"  # ends the file of what stands in no file: procedures that a form became


def is_library_text(place: Place) -> bool:
    """Whether a place is in the library's text, rather than of what was made for a program's own names."""
    return is_unseen(place.file) and place != LIBRARY


@functools.cache
def is_unseen(file: str) -> bool:
    """Whether a file is part of the language, or none at all: its errors are told where it was called."""
    return file in UNSEEN or file.endswith(DERIVED) or file.startswith(SHIPPED + os.sep)


def derived(place: Place) -> Place:
    """A place of what a form became, whose errors are its callers'."""
    return place._replace(file=place.file + DERIVED)


class Var:
    """A local variable. `assigned`: some `SetLocal` names it. `captured`: an inner lambda mentions it."""

    __slots__ = ("assigned", "captured", "name", "number")

    def __init__(self, name: str, number: int):
        self.name, self.number = name, number
        self.assigned = self.captured = False

    def __repr__(self) -> str:
        return f"{self.name}.{self.number}"


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """An expression or a top-level form. `place` is last, and given by keyword."""

    place: Place = field(kw_only=True, default=NOWHERE)


@dataclass(frozen=True, slots=True, eq=False)
class Literal(Node):
    """A constant: an int, a float, a bool, a str, or a value of `tenfold.purple.values` (quoted data
    included).
    """

    value: Any


@dataclass(frozen=True, slots=True, eq=False)
class Local(Node):
    var: Var


@dataclass(frozen=True, slots=True, eq=False)
class Global(Node):
    """A definition of the program. Read before its `Define` ran, it is an error of kind `unbound`."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class PrimRef(Node):
    """A primitive as a value: `(map-over car …)`. Its printed form is `#<procedure car>`."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class SetLocal(Node):
    var: Var
    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class SetGlobal(Node):
    name: str
    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Define(Node):
    """At the top level only (those of a body have become `Letrec`)."""

    name: str
    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Lambda(Node):
    """`keywords` are (keyword without its colon, variable, default). A default is evaluated when the
    keyword is absent, in order, and sees the parameters before it; no default: the keyword is required.
    A `derived` function is one that a form became: a program did not write it, and no traceback names it.
    One that stands `apart` is a copy of a program's function: it is called, so that tracebacks name it.
    """

    params: tuple[Var, ...]
    rest: Var | None
    keywords: tuple[tuple[str, Var, Expr | None], ...]
    body: Expr
    name: str = "lambda"
    derived: bool = False
    apart: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Call(Node):
    function: Expr
    arguments: tuple[Expr, ...]
    keywords: tuple[tuple[str, Expr], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Prim(Node):
    """The call of a primitive of `names.PRIMITIVES`. The count of arguments is not checked yet: a wrong
    one is an error of kind `arity` when it is evaluated, after its arguments. Keywords keep their
    dashes: `requires-grad`.
    """

    name: str
    arguments: tuple[Expr, ...]
    keywords: tuple[tuple[str, Expr], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class If(Node):
    test: Expr
    then: Expr
    otherwise: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Let(Node):
    """All values are evaluated, in order, before any variable is bound."""

    bindings: tuple[tuple[Var, Expr], ...]
    body: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Letrec(Node):
    """Variables are bound in order and visible to every value; values that are not lambdas run in that
    order too. Reading one before its value is there is an error of kind `unbound`.
    """

    bindings: tuple[tuple[Var, Expr], ...]
    body: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Seq(Node):
    """At least one expression; the last one's value."""

    exprs: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class While(Node):
    """Its value is unspecified."""

    test: Expr
    body: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Try(Node):
    """`handler` is evaluated, and called with the error, only when `body` fails; that call is a tail call."""

    body: Expr
    handler: Expr


@dataclass(frozen=True, slots=True, eq=False)
class With(Node):
    """kind: "device" (the argument is its name), "grad" or "no-grad" (no argument)."""

    kind: str
    argument: Expr | None
    body: Expr


class Field(NamedTuple):
    """type: "any", a name of `FIELD_TYPES`, or a record type's name. A weak field does not own what it
    names; once that is gone it reads as nil.
    """

    name: str
    type: str
    weak: bool


FIELD_TYPES = (
    "any",
    "int",
    "float",
    "number",
    "bool",
    "string",
    "char",
    "symbol",
    "list",
    "vector",
    "tensor",
    "procedure",
)


@dataclass(frozen=True, slots=True, eq=False)
class DefType(Node):
    """Declares a record type. `name` is unique in the program; what is printed is `shown(name)`."""

    name: str
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True, eq=False)
class MakeRecord(Node):
    """`(mk-Point 1 2)`, with as many arguments as fields. A value of another type than its field's: kind
    `type`.
    """

    type: DefType
    arguments: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class FieldRef(Node):
    """`(Point-x p)`: `p` not a Point is an error of kind `type`."""

    type: DefType
    index: int
    record: Expr


@dataclass(frozen=True, slots=True, eq=False)
class SetField(Node):
    """`(set! (Point-x p) v)`: unspecified value."""

    type: DefType
    index: int
    record: Expr
    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class IsRecord(Node):
    """`(Point? v)`."""

    type: DefType
    value: Expr


class Passed(NamedTuple):
    """How one value crosses into C. type: one of `FOREIGN_TYPES`; `owned`: the receiver frees it."""

    type: str
    owned: bool


FOREIGN_TYPES = {
    "int": "int64_t",
    "int32": "int32_t",
    "float": "double",
    "float32": "float",
    "bool": "bool",
    "string": "const char *",
    "pointer": "void *",
    "tensor": "tn_tensor *",
    "void": "void",
}


@dataclass(frozen=True, slots=True, eq=False)
class Ffi(Node):
    """An external C function: `symbol` of `library` (None: the C library, the program itself or
    libtenfold).
    """

    name: str
    symbol: str
    parameters: tuple[Passed, ...]
    result: Passed
    library: str | None


@dataclass(frozen=True, slots=True, eq=False)
class ForeignCall(Node):
    """With as many arguments as parameters."""

    declaration: Ffi
    arguments: tuple[Expr, ...]


Expr: TypeAlias = (
    Literal
    | Local
    | Global
    | PrimRef
    | SetLocal
    | SetGlobal
    | Lambda
    | Call
    | Prim
    | If
    | Let
    | Letrec
    | Seq
    | While
    | Try
    | With
    | MakeRecord
    | FieldRef
    | SetField
    | IsRecord
    | ForeignCall
)
Form: TypeAlias = Define | DefType | Ffi | Expr


@dataclass(slots=True, eq=False)
class GlobalInfo:
    """What is known of a global name. `assigned`: defined twice or more, or the target of some
    `SetGlobal`.
    """

    name: str
    place: Place
    assigned: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """Forms in the order in which they run: the prelude's that are needed, imported files', the
    program's own.
    """

    forms: tuple[Form, ...]
    types: dict[str, DefType]
    globals: dict[str, GlobalInfo]
    file: str
    sources: dict[str, str]

    def source(self, place: Place) -> str:
        """The text of the form at `place`."""
        return self.sources.get(place.file, "")[place.start : place.end]


def applied_primitive(node: Prim) -> str:
    """The primitive that an `apply` is written with, which calls nothing back; "" for other calls."""
    first = node.arguments[0] if node.name == "apply" and node.arguments else None
    return first.name if isinstance(first, PrimRef) and first.name != "apply" else ""


def called(node: Node) -> Expr | None:
    """What a node calls: the function of a call, or what `apply` is given."""
    if isinstance(node, Prim) and node.name == "apply" and node.arguments:
        return node.arguments[0]
    return node.function if isinstance(node, Call) else None


def is_chosen(function: Expr) -> bool:
    """Whether what is called is written at the call, rather than given to who calls it."""
    return isinstance(function, Global | PrimRef)


def shown(name: str) -> str:
    """A global name as its author wrote it."""
    return name.rpartition("::")[2] or name


def signature(function: Lambda) -> str:
    """(f x y :lr) as its author would write it."""
    words = [function.name, *(param.name for param in function.params)]
    words += [f":{word}" for word, _, _ in function.keywords]
    return f"({' '.join([*words, *([f'. {function.rest.name}'] if function.rest else [])])})"
