"""C99 from a program in A-normal form: one C function for each of its functions, with the source form beside
it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

from tenfold.purple import anf, core, ir
from tenfold.purple.certify import certify
from tenfold.purple.constants import c_string
from tenfold.purple.cycles import Cycle, find_cycles
from tenfold.purple.deep_stack import with_deep_stack
from tenfold.purple.emit_function import EmitGroup
from tenfold.purple.emit_lines import c_type, is_of_library
from tenfold.purple.emit_names import Names, SharedNames
from tenfold.purple.evaluation import refuse_evaluation
from tenfold.purple.foreign import prototypes
from tenfold.purple.in_place import split_in_place
from tenfold.purple.infer import infer
from tenfold.purple.ir import BOOL, FLOAT, INT, STORED, VALUE, Function
from tenfold.purple.known import drop_checks
from tenfold.purple.names import PRIMITIVES, row_of
from tenfold.purple.natives import c_name, general, gives_back, returns_truth
from tenfold.purple.own import own
from tenfold.purple.specialise import specialise
from tenfold.purple.usage import is_about_tensors, uses_tensors

T = TypeVar("T")


Warn: TypeAlias = Callable[[Cycle], object]


def compile_program(program: core.Program, *, lines: bool = False, warn: Warn = lambda cycle: None) -> str:
    """The C of a whole program, certified. With `lines`, `#line` keeps the source's lines for a debugger.
    `warn` is told of each cycle of references that the program may leave behind."""
    return deep(lambda: Emission(analysed(program, warn), lines).text())


def deep(work: Callable[[], T]) -> T:
    """Do something that recurses as deep as the program is nested."""
    return with_deep_stack(work, frames=400_000)


def analysed(program: core.Program, warn: Warn = lambda cycle: None) -> ir.Module:
    """The program in A-normal form with its ownership, proved."""
    refuse_evaluation(program)
    module = anf.lower(specialise(program))
    for cycle in find_cycles(module):
        warn(cycle)
    split_in_place(module)
    infer(module)
    own(module)
    certify(module)
    drop_checks(module)
    return module


class Emission:
    """The parts of a C file that is a whole program, in the order in which they stand there."""

    def __init__(
        self, module: ir.Module, lines: bool, shared: SharedNames | None = None, unit: str = "program"
    ):
        self.module, self.program = module, module.program
        self.tensors = uses_tensors(self.program)
        self.names = Names(self.program, shared or SharedNames(), lines, unit)

    def text(self) -> str:
        groups = tail_groups([*self.module.functions, self.module.main])
        bodies = [EmitGroup(self.names, group).text() for group in groups]
        closures = [self.closure(f) for f in self.module.functions if f.escapes]
        closures += map(self.primitive, self.module.primitives_as_values)
        types = [self.record_type(each) for each in self.program.types.values() if self.names.has_type(each)]
        parts = [
            *self.opening(),
            *[f"static {each}" for each in types],
            *[f"static {self.global_variable(name)}" for name in self.module.globals],
            *self.tables(),
            *[f"{self.signature(f)} PU_UNUSED;" for f in self.module.functions],
            "",
            *closures,
            *bodies,
            self.main(),
        ]
        return "\n".join(parts) + "\n"

    def opening(self, source: str = "") -> list[str]:
        """What the file includes, and the names of the source's files."""
        files = self.names.files.items()
        return [
            f"/* {source or self.program.file}, compiled by Purple. */",
            f'#include "{"purple_tensors.h" if self.tensors else "purple_all.h"}"\n',
            *[f"static const char {name}[] PU_UNUSED = {c_string(path)};" for path, name in files],
        ]

    def tables(self) -> list[str]:
        """The file's literals and operators, and the foreign functions."""
        literals, rows = self.names.constants.definitions(), self.names.rows.definitions()
        return [*literals, *rows, *prototypes(self.program), ""]

    def global_variable(self, name: str) -> str:
        return f"Value {self.names.globals(name)}; /* {core.shown(name)} */"

    def signature(self, function: Function) -> str:
        params = ", ".join(c_type(p.rep).rstrip() for p in function.all_params) or "void"
        linkage = self.names.shared.linkage(function.cname)
        return f"{linkage}{c_type(function.rep)}{function.cname}({params})"

    def record_type(self, declared: core.DefType) -> str:
        name = self.names.type(declared)
        fields = [
            f"{{{c_string(f.name)}, {c_string(f.type)}, {'true' if f.weak else 'false'}}}"
            for f in declared.fields
        ]
        listed = f"(const PuField[]){{{', '.join(fields)}}}" if fields else "NULL"
        shown = c_string(core.shown(declared.name))
        unique = c_string(declared.name)
        place = self.names.definition(declared.place)
        described = f"{shown}, {unique}, {len(fields)}, {listed}, {{{place}}}"
        return f"const PuType type_{name} = {{{described}}};"

    def closure(self, function: Function) -> str:
        """The code of a function's closures, and their description."""
        name, definition = function.cname, function.definition
        assert definition is not None
        count = len(function.params)
        required = len(definition.params)
        keywords = [
            f"{{{c_string(word)}, {'false' if default is not None else 'true'}}}"
            for word, _, default in definition.keywords
        ]
        args = [f"slot[{i}]" for i in range(count)]
        for i, var in enumerate(function.captured):
            unpacked = "{}" if var.borrowed else UNPACK[var.rep]
            args.append(unpacked.format(f"self->captured[{i}]"))
        rest = "true" if definition.rest else "false"
        of_library = "true" if is_of_library(function, self.program) else "false"
        shape = (
            f"{{{c_string(core.shown(function.name))}, code_{name}, {required}, {rest}, "
            f"{len(keywords)}, {f'keywords_{name}' if keywords else 'NULL'}, {len(function.captured)}, "
            f"{{{self.names.definition(function.place)}}}, "
            f"{c_string(core.signature(definition))}, {of_library}}}"
        )
        call = f"{name}({', '.join(args)})"
        simple = not definition.rest and not keywords
        linkage = self.names.shared.linkage(name)
        lines = [f"static Value code_{name}(PuClosure *self, Value *arguments, int count, int keywords);"]
        if keywords:
            lines.append(f"static const PuKeywordParameter keywords_{name}[] = {{{', '.join(keywords)}}};")
        lines.append(f"{linkage}const PuFunction function_{name} = {shape};")
        if not function.captured:
            lines.append(
                f"{linkage}PuClosure closure_{name} PU_UNUSED = {{PU_STATIC(PU_CLOSURE), &function_{name}}};"
            )
        lines.append(
            f"static Value code_{name}(PuClosure *self, Value *arguments, int count, int keywords) {{"
        )
        lines.append("    (void)self;")
        if simple:
            lines += ["    Value *slot = arguments;"] if count else []
            lines.append(
                f"    if (PU_UNLIKELY(count != {count} || keywords)) "
                f"return pu_wrong_count(&function_{name}, arguments, count, keywords);"
            )
        else:
            lines.append(f"    Value slot[{count}];")
            lines.append(
                f"    if (!pu_bind(&function_{name}, arguments, count, keywords, slot)) return PU_FAILURE;"
            )
        if function.rep == VALUE:
            lines.append(f"    return {call};")
        else:
            lines.append(f"    {c_type(function.rep)}result = {call};")
            lines.append(f"    return pu.pending ? PU_FAILURE : {PACK[function.rep].format('result')};")
        return "\n".join([*lines, "}"]) + "\n"

    def primitive(self, name: str) -> str:
        """A primitive as a value."""
        ident = "primitive_" + re.sub(r"[^A-Za-z0-9_]", lambda m: f"_{ord(m[0]):x}_", name)
        lines = [f"static Value code_{ident}(PuClosure *self, Value *arguments, int count, int keywords) {{"]
        lines.append("    (void)self;")
        found = PRIMITIVES.get(name)
        signature = c_string(found.signature() if found else f"({name} …)")
        if row_of(name) is not None:
            lines.append(
                f"    Value result = pu_row_call(&{self.names.rows.table(name)}, arguments, count, keywords);"
            )
            minimum, rest = 0, True
        else:
            assert found is not None
            minimum, rest = found.minimum, found.rest
            most = -1 if found.maximum is None else found.maximum
            check = f"pu_primitive_fits(self->function, {most}, arguments, count, keywords)"
            lines.append(f"    if (!{check}) return PU_FAILURE;")
            lines += self._primitive_call(name, found.rest, len(found.parameters))
        if is_about_tensors(name) and row_of(name) is None:
            lines.append(f"    if (!result) pu_refused({c_string(name)}, arguments, count, keywords);")
        if gives_back(name):
            lines.append("    if (result) pu_dup(result);")
        lines += ["    pu_drop_given(arguments, count, keywords);", "    return result;", "}"]
        lines.append(
            f"static const PuFunction function_{ident} = {{{c_string(name)}, code_{ident}, {minimum}, "
            f"{'true' if rest else 'false'}, 0, NULL, 0, {{NULL, 0, 0, 0}}, {signature}, false}};"
        )
        linkage = self.names.shared.linkage(ident)
        lines.append(
            f"{linkage}PuClosure closure_{ident} PU_UNUSED = {{PU_STATIC(PU_CLOSURE), &function_{ident}}};"
        )
        return "\n".join(lines) + "\n"

    def _primitive_call(self, name: str, rest: bool, parameters: int) -> list[str]:
        wrap = "pu_of_bool({})" if returns_truth(name) else "{}"
        if name in ("cons", "box"):
            own = ", ".join(f"pu_dup(arguments[{i}])" for i in range(parameters))
            return [f"    Value result = {c_name(name)}({own});"]
        if name in ("list", "vector", "values"):
            return [
                "    pu_dup_all(arguments, count);",
                f"    Value result = {c_name(name)}(arguments, count);",
            ]
        if rest:
            call = general(name, 3).c.partition("(")[0]
            owns = ["    if (count) pu_dup(arguments[count - 1]);"] if name == "append" else []
            return [*owns, f"    Value result = {call}(arguments, count);"]
        stored = STORED.get(name, ())
        given = [f"pu_dup(arguments[{i}])" if i in stored else f"arguments[{i}]" for i in range(parameters)]
        each = ", ".join(f"count > {i} ? {text} : PU_ABSENT" for i, text in enumerate(given))
        return [f"    Value result = {wrap.format(f'{c_name(name)}({each})')};"]

    def main(self, others: Sequence[str] = ()) -> str:
        """Where the program starts. `others`: the other C files, whose literals are made and released too."""
        start = ["pu_use_tensors();"] if self.tensors else []
        start += [*self.make_literals(), *[f"setup_{other}();" for other in others]]
        # Values that later ones may need go last.
        drops = [f"pu_forget(&{self.names.globals(name)});" for name in reversed(self.module.globals)]
        drops += [*self.drop_literals(), *[f"leave_{other}();" for other in others]]
        return (
            function("setup", start)
            + f"static bool run(void) {{\n    return {self.module.main.cname}() != PU_FAILURE;\n}}\n\n"
            + function("leave", drops)
            + "int main(int count, char **arguments) {\n"
            "    return pu_main(count, arguments, setup, run, leave);\n}"
        )

    def make_literals(self) -> list[str]:
        if not self.names.constants.steps:
            return ["(void)constant;"]
        return ["pu_make_constants(literals, sizeof literals / sizeof *literals, constant);"]

    def drop_literals(self) -> list[str]:
        count = len(self.names.constants.steps)
        return [f"pu_drop_all(constant, {count});"] if count else []


PACK = {VALUE: "{}", INT: "pu_of_int({})", FLOAT: "pu_of_float({})", BOOL: "pu_of_bool({})"}
UNPACK = {VALUE: "pu_dup({})", INT: "pu_int({})", FLOAT: "pu_float({})", BOOL: "pu_truthy({})"}


def function(name: str, lines: list[str], linkage: str = "static ") -> str:
    """A C function of no arguments."""
    return f"{linkage}void {name}(void) {{\n" + "".join(f"    {line}\n" for line in lines) + "}\n\n"


def tail_groups(functions: list[Function]) -> list[list[Function]]:
    """Functions that call each other in tail position, together: such a group becomes one C function."""
    calls = {
        id(f): [
            s.function
            for s in ir.statements(f.body)
            if isinstance(s, ir.TailCall)
            and s.function.rep == f.rep
            and not f.has_hole
            and not s.function.has_hole
        ]
        for f in functions
    }
    order = {id(f): i for i, f in enumerate(functions)}
    groups = components(functions, lambda f: calls[id(f)])
    return [sorted(group, key=lambda f: order[id(f)]) for group in groups]


def components(
    functions: list[Function], successors: Callable[[Function], list[Function]]
) -> list[list[Function]]:
    """Strongly connected components (Tarjan's algorithm, without recursion), callees first."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[Function] = []
    on_stack: set[int] = set()
    found: list[list[Function]] = []
    for root in functions:
        if id(root) in index:
            continue
        work = [(root, iter(successors(root)))]
        index[id(root)] = low[id(root)] = len(index)
        stack.append(root)
        on_stack.add(id(root))
        while work:
            node, rest = work[-1]
            for each in rest:
                if id(each) not in index:
                    index[id(each)] = low[id(each)] = len(index)
                    stack.append(each)
                    on_stack.add(id(each))
                    work.append((each, iter(successors(each))))
                    break
                if id(each) in on_stack:
                    low[id(node)] = min(low[id(node)], index[id(each)])
            else:
                work.pop()
                if work:
                    parent = work[-1][0]
                    low[id(parent)] = min(low[id(parent)], low[id(node)])
                if low[id(node)] == index[id(node)]:
                    group = []
                    while True:
                        member = stack.pop()
                        on_stack.discard(id(member))
                        group.append(member)
                        if member is node:
                            break
                    found.append(group)
    return found
