"""C of a program of several files: a C file for each of them, so that those that did not change need not be
compiled again; and several for a long one, so that they are compiled at the same time.

The program is analysed as a whole. What a C file says depends on its own source and on what the analysis
found about the functions that it calls: their parameters and results as C has them, and who owns them. So
its text is all that its object file depends on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from tenfold.base.garbage import uncollected
from tenfold.purple import core, ir
from tenfold.purple.core import PRELUDE_FILE
from tenfold.purple.emit_c import Emission, Warn, analysed, deep, function, tail_groups
from tenfold.purple.emit_function import WORD, EmitGroup
from tenfold.purple.emit_names import SharedNames, identifier
from tenfold.purple.ir import Function


class CFile(NamedTuple):
    name: str  # that no other C file of the program has
    text: str
    is_whole: bool  # whether it is all of the program


def compile_units(
    program: core.Program,
    *,
    lines: bool = False,
    warn: Warn = lambda cycle: None,
    ready: Callable[[CFile], object] = lambda file: None,
) -> dict[str, str]:
    """The C files of a program, certified, by names of their own. `ready` is told of each as soon as it is
    written."""
    found = {}

    def emit() -> None:
        for file in _units(analysed(program, warn), lines):
            found[file.name] = file.text
            ready(file)

    with uncollected():
        deep(emit)
    return found


def _units(module: ir.Module, lines: bool) -> Iterator[CFile]:
    program = module.program
    groups = _in_parts(_by_file(module), program.file)
    if len(groups) == 1:  # which C compilers know more about as one
        yield CFile("program", Emission(module, lines).text(), True)
        return
    shared = SharedNames(_exported(module, groups))
    units = {file: f"unit_{name}" for file, name in _unit_names(groups).items() if file != program.file}
    # The program's own file comes last: what it shares with an imported one is the imported one's.
    for file in (*units, program.file):
        unit = Unit(module, lines, shared, file, groups[file], units)
        yield CFile(unit.name, unit.text(), False)


LONG = 3000  # statements of one C file: more than that are compiled side by side


def _by_file(module: ir.Module) -> dict[str, list[list[Function]]]:
    """The functions of each file, in groups that stay together. Without imports, what the program uses of
    the prelude is its own, as it stands beside its callers."""
    own = module.program.file
    imported = {_file(f) for f in module.functions} - {own, PRELUDE_FILE, ""}
    found: dict[str, list[list[Function]]] = {own: []}
    for group in tail_groups([*module.functions, module.main]):
        is_own = module.main in group or not imported
        found.setdefault(own if is_own else _file(group[0]) or own, []).append(group)
    return found


def _file(function: Function) -> str:
    return function.place.file.removesuffix(core.DERIVED)


def _in_parts(files: dict[str, list[list[Function]]], own: str) -> dict[str, list[list[Function]]]:
    """The same, with long files in several parts. The last one, which has the top level, keeps the file's
    name."""
    found: dict[str, list[list[Function]]] = {own: []}
    for file, groups in files.items():
        sizes = [sum(len(ir.statements(f.body)) for f in group) for group in groups]
        most = sum(sizes) / max(1, round(sum(sizes) / LONG))
        part: list[list[Function]] = []
        size, number = 0, 1
        for group, more in zip(groups, sizes):
            if part and size + more > most:
                found[f"{file} part {number}"] = part
                part, size, number = [], 0, number + 1
            part.append(group)
            size += more
        found[file] = part
    return found


def _unit_names(files: dict[str, list[list[Function]]]) -> dict[str, str]:
    names: dict[str, str] = {}
    for file in files:
        plain, n = identifier(Path(file).stem), 1
        name = plain
        while name in names.values():
            n += 1
            name = f"{plain}_{n}"
        names[file] = name
    return names


def _exported(module: ir.Module, groups: dict[str, list[list[Function]]]) -> frozenset[str]:
    """The C names of functions that a file other than their own mentions, and of primitives as values."""
    homes = {id(f): file for file, own in groups.items() for group in own for f in group}
    found = {
        "primitive_" + re.sub(r"[^A-Za-z0-9_]", lambda m: f"_{ord(m[0]):x}_", name)
        for name in module.primitives_as_values
    }
    for caller in [*module.functions, module.main]:
        for statement in ir.statements(caller.body):
            other = None
            match statement:
                case ir.Let(op=ir.CallKnown() | ir.CallWithin() | ir.MakeClosure() as op):
                    other = op.function
                case ir.LetTry() | ir.TailCall():
                    other = statement.function
            if other is not None and homes[id(other)] != homes[id(caller)]:
                found.add(other.cname)
    return frozenset(found)


class Unit(Emission):
    """The C of one of a program's files. `units`: the names of the others, by their source."""

    def __init__(
        self,
        module: ir.Module,
        lines: bool,
        shared: SharedNames,
        file: str,
        groups: list[list[Function]],
        units: dict[str, str],
    ):
        self.name = units.get(file, "program")
        super().__init__(module, lines, shared, self.name)
        self.file, self.groups, self.units = file, groups, units
        self.exported = [f for f in module.functions if f.cname in shared.exported]
        self.is_main = file == module.program.file

    def text(self) -> str:
        own = [f for group in self.groups for f in group if f is not self.module.main]
        bodies = [EmitGroup(self.names, group).text() for group in self.groups]
        closures = [self.closure(f) for f in own if f.escapes]
        closures += map(self.primitive, self.module.primitives_as_values) if self.is_main else []
        types = [self.record_type(each) for each in self.program.types.values() if self.has(each)]
        variables = list(map(self.global_variable, self.module.globals)) if self.is_main else []
        end = self.main(list(self.units.values())) if self.is_main else self.end()
        code = [*types, *variables, *[f"{self.signature(f)} PU_UNUSED;" for f in own], "", *closures, *bodies]
        mentioned = set(WORD.findall("\n".join([*code, end])))
        declared = self.declared(mentioned, {f.cname for f in own})
        tables = [*self.tables(), f"Value *const literals_of_{self.name} = constant;"]
        return "\n".join([*self.opening(self.file), *declared, *tables, *code, end]) + "\n"

    def has(self, declared: core.DefType) -> bool:
        home = declared.place.file
        return home == self.file or (self.is_main and home not in self.units)

    def end(self) -> str:
        setup = function(f"setup_{self.name}", self.make_literals(), linkage="")
        return setup + function(f"leave_{self.name}", self.drop_literals(), linkage="")

    def declared(self, mentioned: set[str], own: set[str]) -> list[str]:
        """Declarations of what the file mentions and others define."""
        found = ["#pragma GCC visibility push(hidden)"]
        for name in self.units.values() if self.is_main else [self.name]:
            lines = [f"void setup_{name}(void);", f"void leave_{name}(void);"]
            found += [line for line in lines if line not in found]
        for name in (*self.units.values(), "program"):
            if name == self.name or f"literals_of_{name}" in mentioned:
                found.append(f"extern Value *const literals_of_{name};")
        for declared in self.program.types.values():
            if self.names.has_type(declared) and f"type_{self.names.type(declared)}" in mentioned:
                found.append(f"extern const PuType type_{self.names.type(declared)};")
        for name in self.module.globals:
            if self.names.globals(name) in mentioned:
                found.append(f"extern Value {self.names.globals(name)};")
        for other in self.exported:
            if other.cname in own:
                continue
            if other.cname in mentioned:
                found.append(f"{self.signature(other)};")
            if f"function_{other.cname}" in mentioned:
                found.append(f"extern const PuFunction function_{other.cname};")
            if f"closure_{other.cname}" in mentioned:
                found.append(f"extern PuClosure closure_{other.cname};")
        for name in sorted(self.names.shared.exported):
            if name.startswith("primitive_") and f"closure_{name}" in mentioned and not self.is_main:
                found.append(f"extern PuClosure closure_{name};")
        return found
