"""Names in the C of a program: those of its globals, record types and files, what C reserves, what is
read."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tenfold.purple import core, ir
from tenfold.purple.constants import Constants
from tenfold.purple.ir import Atom, Block, Drop, Let, Variable
from tenfold.purple.rows import RowTables

# Words of C, of the runtime and of what it includes that no local variable may be called.
C_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        auto break case char const continue default do double else enum extern float for goto if inline int
        long
        register restrict return short signed sizeof static struct switch typedef union unsigned void volatile
        while bool true false Value asm typeof constant entry self arguments count keywords main NULL NAN
        stdin
        stdout stderr errno signal exp sin cos tan sqrt floor fabs log pow index unix linux head hole
        """,
    )
)


class SharedNames:
    """What all C files of one program share: the names of its globals and record types, the functions that
    files other than their own mention, and which file makes a literal."""

    def __init__(self, exported: frozenset[str] = frozenset()):
        self.exported = exported
        self.globals: dict[str, str] = {}
        self.types: dict[str, str] = {}
        self.literals: dict[int, Constants] = {}

    def linkage(self, function: str) -> str:
        """What the definition of a function begins with, by its C name."""
        return "" if function in self.exported else "static "


class Names:
    """What the functions of one C file share: names of globals, record types and files, constants, operator
    tables."""

    def __init__(self, program: core.Program, shared: SharedNames, lines: bool, unit: str):
        self.program, self.shared, self.lines = program, shared, lines
        self.constants, self.rows = Constants(shared.literals, unit), RowTables()
        self.files: dict[str, str] = {}

    def file(self, path: str) -> str:
        if path not in self.files:
            self.files[path] = f"file_{len(self.files)}"
        return self.files[path]

    def where(self, place: core.Place) -> str:
        """A place as the fields of a PuPlace; its width is in characters of the line."""
        width = len(self.program.source(place).partition("\n")[0].rstrip("\r"))
        return f"{self.file(place.file)}, {place.line}, {place.column}, {max(1, width)}"

    def definition(self, place: core.Place) -> str:
        """The same of a definition; those of the library are nowhere that its users could look at."""
        return "NULL, 0, 0, 0" if core.is_unseen(place.file) else self.where(place)

    def globals(self, name: str) -> str:
        return _named(self.shared.globals, name, "global_")

    def has_type(self, declared: core.DefType) -> bool:
        """Whether some code uses it."""
        return declared.name in self.shared.types

    def type(self, declared: core.DefType) -> str:
        return _named(self.shared.types, declared.name, "")


def _named(known: dict[str, str], name: str, prefix: str) -> str:
    """A name of C for a name of the program, which depends as little as possible on the program's others."""
    if name not in known:
        module, _, own = name.rpartition("::")
        plain = prefix + identifier(f"{module}_{own}" if module else own)
        found, n = plain, 1
        while found in known.values():
            n += 1
            found = f"{plain}_{n}"
        known[name] = found
    return known[name]


def identifier(name: str) -> str:
    """A name of the source as C allows it."""
    return re.sub(
        r"[^A-Za-z0-9_]", "_", core.shown(name).replace("->", "_to_").replace("?", "_p").replace("!", "_x")
    )


def reads(block: Block) -> Iterable[Variable]:
    """The variables that some statement reads."""
    for statement in ir.statements(block):
        atoms: list[Atom] = []
        match statement:
            case Let():
                atoms = list(statement.op.args)
                yield from statement.on_error
            case ir.LetTry():
                atoms = [*statement.args, statement.ok, statement.var]
            case ir.TailCall() | ir.TailClosure():
                atoms = statement.args
            case ir.If():
                atoms = [statement.test]
            case ir.Return():
                atoms = [statement.value]
            case Drop() | ir.Dup():
                atoms = [statement.var]
            case ir.Uncons():
                atoms = [statement.pair, statement.car, statement.cdr]
        yield from (atom for atom in atoms if isinstance(atom, Variable))
