"""What the C of a function is written with: its lines, the names of its variables, operands, and the ladder
of labels by which failures leave, each of which releases one value and falls to the next."""

from __future__ import annotations

from collections.abc import Iterable

from tenfold.purple import core
from tenfold.purple.constants import c_string, immediate, plain
from tenfold.purple.emit_names import C_WORDS, Names, identifier, reads
from tenfold.purple.ir import BOOL, FLOAT, INT, VALUE, Atom, Function, Variable, words
from tenfold.purple.values import Keyword


def is_of_library(function: Function, program: core.Program) -> bool:
    """Whether it is a procedure of the library, or one that a form became, that programs call by name."""
    public = function.name in program.globals and not core.shown(function.name).startswith("%")
    return public and core.is_unseen(function.place.file)


C_TYPES = {VALUE: "Value ", INT: "int64_t ", FLOAT: "double ", BOOL: "bool "}
FAILED = {VALUE: "PU_FAILURE", INT: "0", FLOAT: "0.0", BOOL: "false"}


def c_type(rep: str) -> str:
    return C_TYPES[rep]


class Writer:
    """The C of one function, or of a group that jumps among itself, while it is written."""

    def __init__(self, names: Names, functions: list[Function]):
        self.names, self.functions = names, functions
        self.lines: list[str] = []
        self.depth = 1
        self.variables: dict[Variable, str] = {}
        self.taken: set[str] = set()
        self.ladder: dict[tuple[Variable, ...], str] = {}
        self.jumped: set[str] = set()  # labels that some goto names
        self.cells: dict[Variable, int] = {}  # those that keep memory, and how many words of it
        self.function = functions[0]
        self.merged = len(functions) > 1
        self.read = {var for f in functions for var in reads(f.body)}

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def name(self, var: Variable) -> str:
        found = self.variables.get(var)
        if found is None:
            plain_name = identifier(var.name) or "v"
            if plain_name[0].isdigit() or plain_name.startswith(
                ("pu_", "PU_", "Pu", "tn_", "TN_", "file_", "global_")
            ):
                plain_name = "v_" + plain_name
            found, n = plain_name, 1
            while found in self.taken or found in C_WORDS:
                n += 1
                found = f"{plain_name}_{n}"
            self.taken.add(found)
            self.variables[var] = found
        return found

    def atom(self, atom: Atom, rep: str = VALUE, owned: bool = False) -> str:
        if isinstance(atom, Variable):
            return self.name(atom)
        if rep != VALUE:
            return plain(atom.value, rep)
        text = self.names.constants.value(atom.value)
        return f"pu_dup({text})" if owned and immediate(atom.value) is None else text

    def source_line(self, place: core.Place) -> None:
        if self.names.lines and place.line:
            self.lines.append(f"#line {place.line} {c_string(place.file)}")

    def leave(self, owned: tuple[Variable, ...], note: str = "") -> str:
        """A C statement that leaves the function when something failed."""
        label = self.label(owned)
        self.jumped.add(label)
        return f"{{ {note}goto {label}; }}"

    def label(self, owned: tuple[Variable, ...]) -> str:
        if owned not in self.ladder:
            if owned:
                self.label(owned[:-1])
            self.ladder[owned] = f"failed_{len(self.ladder)}"
        return self.ladder[owned]

    def ladder_lines(self, rep: str) -> None:
        """Labels so ordered that each one, where it can, falls through to the next."""
        if not self.ladder:
            return
        waiting = dict.fromkeys(sorted(self.ladder, key=len, reverse=True))
        waiting.pop((), None)
        steps: list[tuple[Variable, ...] | str] = []
        while waiting:
            owned = next(iter(waiting))
            while owned in waiting:
                del waiting[owned]
                steps.append(owned)
                owned = owned[:-1]
            if owned or waiting:
                self.jumped.add(self.ladder[owned])
                steps.append(self.ladder[owned])
        for step in [*steps, ()]:
            if isinstance(step, str):
                self.line(f"goto {step};")
                continue
            if self.ladder[step] in self.jumped:
                self.lines.append(f"{self.ladder[step]}:")
            if not step and self.functions[0].has_hole:
                self.line("if (hole != &head) { *hole = PU_NIL; pu_drop(head); }")
            self.line(self.release(step[-1]) if step else f"return {FAILED[rep]};")

    def release(self, var: Variable) -> str:
        """A C statement that lets go of a value, or of the memory that a cell keeps."""
        if var in self.cells:
            return f"pu_free_cell({self.name(var)}, {self.cells[var]} * sizeof(Value));"
        return f"pu_drop_after_failure({self.name(var)});"

    def keep(self, cell: Variable | None, shape: core.DefType | None) -> str:
        """The assignment of a cell that keeps the memory of a record, or of a pair; "" without one."""
        if cell is None:
            return ""
        self.cells[cell] = words(shape)
        return f"{self.name(cell)} = "

    def where(self, place: core.Place) -> str:
        return self.names.where(place)

    def at(self, place: core.Place, names: Iterable[str] = ()) -> str:
        """C that notes where an operation failed; `names` are what its message may call it."""
        if not place.line or place == core.LIBRARY:
            return ""
        owns = "".join(f"pu_own({c_string(name)}); " for name in names)
        if core.is_unseen(place.file):  # its callers are whose error it is
            return owns
        blamed = f"{owns}pu_blame({c_string(place.copied)}); " if place.copied else ""
        return f"{blamed}pu_at({self.where(place)}); "

    def within_copy(self, place: core.Place) -> str:
        """C that notes the call of a library procedure whose text stands here."""
        return f"pu_in_library({c_string(place.copied)}, {self.where(place)}); "

    def called(self, function: Function, place: core.Place) -> str:
        """C that notes the call of a function that failed."""
        if core.is_unseen(place.file):
            return ""
        name = core.shown(function.name)
        if place.copied or is_of_library(function, self.names.program):
            return f"pu_in_library({c_string(place.copied or name)}, {self.where(place)}); "
        return f"pu_in({c_string(name)}, {self.where(place)}); "

    def passed(self, function: Function, args: Iterable[Atom]) -> str:
        return ", ".join(
            self.atom(arg, p.rep, owned=not p.borrowed) for p, arg in zip(function.all_params, args)
        )

    def array(self, args: list[Atom], keywords: tuple[str, ...], owned: bool = True) -> str:
        """Arguments in an array, their count, and the count of those after them that belong to keywords."""
        count = len(args) - len(keywords)
        texts = [self.atom(arg, owned=owned) for arg in args[:count]]
        for keyword, arg in zip(keywords, args[count:]):
            texts += [self.names.constants.value(Keyword(keyword)), self.atom(arg, owned=owned)]
        array = f"(Value[]){{{', '.join(texts)}}}" if texts else "NULL"
        return f"{array}, {count}, {len(keywords)}"
