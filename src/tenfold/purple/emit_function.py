"""The C of one function, or of several that call each other in tail position and so share one C function.

Failures leave by a ladder of labels at its end, each of which releases one value and falls to the next.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from tenfold.purple import core, foreign, ir
from tenfold.purple.constants import c_string, plain
from tenfold.purple.emit_names import C_WORDS, Names, identifier, reads
from tenfold.purple.ir import BOOL, FLOAT, INT, VALUE, Atom, Block, Constant, Drop, Function, Let, Variable
from tenfold.purple.names import PRIMITIVES
from tenfold.purple.natives import accepts
from tenfold.purple.values import NIL, Keyword

WORD = re.compile(r"[A-Za-z_]\w*")
TARGET = re.compile(r"^ *(?:if \(PU_BAD\(|if \(PU_UNLIKELY\(!\()?(\w+) = ")
PRELUDE_FILE = "prelude.purple"  # whose places mean nothing to people
COMPARISONS = ("<", ">", "<=", ">=", "=", "eq?", "eqv?")
C_TYPES = {VALUE: "Value ", INT: "int64_t ", FLOAT: "double ", BOOL: "bool "}
FAILED = {VALUE: "PU_FAILURE", INT: "0", FLOAT: "0.0", BOOL: "false"}


def c_type(rep: str) -> str:
    return C_TYPES[rep]


class EmitGroup:
    """`functions` are one, or a group that jumps among itself."""

    def __init__(self, names: Names, functions: list[Function]):
        self.names, self.functions = names, functions
        self.lines: list[str] = []
        self.depth = 1
        self.variables: dict[Variable, str] = {}
        self.taken: set[str] = set()
        self.ladder: dict[tuple[Variable, ...], str] = {}
        self.jumped: set[str] = set()  # labels that some goto names
        self.function = functions[0]
        self.merged = len(functions) > 1
        self.read = {var for f in functions for var in reads(f.body)}

    def text(self) -> str:
        rep = self.functions[0].rep
        name = (
            "jumps_" + "_".join(f.cname for f in self.functions) if self.merged else self.functions[0].cname
        )
        declared = {p for f in self.functions for p in f.all_params}
        for function in self.functions:
            for param in function.all_params:
                self.name(param)
        for function in self.functions:
            self.function = function
            if self.merged:
                self.lines.append(f"enter_{function.cname}: ;")
            elif function.name != "main" or function.definition is not None:
                self.entry(function)
            self.block(function.body)
        body, self.lines = self.lines, []
        self.ladder_lines(rep)
        ladder, self.lines = self.lines, []
        idle = self.idle([*body, *ladder])
        params = [
            f"{c_type(p.rep)}{self.name(p)}{' PU_UNUSED' * (p in idle)}"
            for f in self.functions
            for p in f.all_params
        ]
        locals_ = [v for v in self.variables if v not in declared]
        for each in (VALUE, INT, FLOAT, BOOL):
            group = [self.variables[v] + " PU_UNUSED" * (v in idle) for v in locals_ if v.rep == each]
            for start in range(0, len(group), 10):
                self.lines.append(f"    {c_type(each)}{', '.join(group[start : start + 10])};")
        if self.functions[0].has_hole:
            self.lines.append("    Value head, *hole = &head; /* the list so far, and where its rest goes */")
        if self.merged:
            self.lines.append("    switch (entry) {")
            self.lines += [f"    case {i}: goto enter_{f.cname};" for i, f in enumerate(self.functions)]
            self.lines.append("    }")
            params = ["int entry", *params]
        head = [self.comment(f) for f in self.functions]
        opening = f"static {c_type(rep)}{name}({', '.join(params) or 'void'}) {{"
        text = "\n".join([*head, opening, *self.lines, *body, *ladder, "}", ""])
        return (
            text + "".join(self.wrapper(name, i) for i in range(len(self.functions))) if self.merged else text
        )

    def idle(self, lines: list[str]) -> set[Variable]:
        """The variables that no line reads: they are there for what computes them."""
        mentioned: Counter[str] = Counter()
        for line in lines:
            mentioned.update(WORD.findall(line))
            mentioned.subtract(TARGET.findall(line))
        return {var for var, name in self.variables.items() if mentioned[name] <= 0}

    def comment(self, function: Function) -> str:
        source = (
            self.names.program.source(function.place).strip() if function.name != "main" else "the top level"
        )
        place = f"{function.place.file}:{function.place.line}\n   " if function.place.line else ""
        return "/* " + place + source.replace("*/", "* /").replace("/*", "/ *").replace("\n", "\n   ") + " */"

    def wrapper(self, name: str, entry: int) -> str:
        """How a member of a group is called from outside."""
        own = self.functions[entry]
        params = ", ".join(f"{c_type(p.rep)}{self.name(p)}" for p in own.all_params) or "void"
        args = [self.name(p) if f is own else FAILED[p.rep] for f in self.functions for p in f.all_params]
        drops = "".join(f" pu_drop({self.name(p)});" for p in own.all_params if p.is_managed)
        return (
            f"static {c_type(own.rep)}{own.cname}({params}) {{\n"
            f"    if (PU_ENTRY_FAILS()) {{{drops} return {FAILED[own.rep]}; }}\n"
            f"    return {name}({', '.join([str(entry), *args])});\n}}\n"
        )

    def entry(self, function: Function) -> None:
        owned = tuple(p for p in function.all_params if p.is_managed)
        self.line(f"if (PU_ENTRY_FAILS()) {self.leave(owned)}")

    # Lines and names

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
        return f"pu_dup({text})" if owned and text.startswith("constant[") else text

    def source_line(self, place: core.Place) -> None:
        if self.names.lines and place.line:
            self.lines.append(f"#line {place.line} {c_string(place.file)}")

    # Failure

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
            self.line(f"pu_drop({self.name(step[-1])});" if step else f"return {FAILED[rep]};")

    def at(self, place: core.Place) -> str:
        if not place.line or place.file == PRELUDE_FILE:  # its callers are whose error it is
            return ""
        return f"pu_at({self.where(place)}); "

    def called(self, name: str, place: core.Place) -> str:
        if place.file == PRELUDE_FILE:
            return ""
        return f"pu_in({c_string(core.shown(name))}, {self.where(place)}); "

    # Statements

    def block(self, block: Block) -> None:
        for each in block:
            self.statement(each)

    def statement(self, each: ir.Statement) -> None:
        match each:
            case Let():
                self.source_line(each.place)
                self.let(each)
            case ir.LetTry():
                name = self.name(each.var)
                self.line(
                    f"{name} = pu_land({each.function.cname}({self.passed(each.function, each.args)}));"
                )
                self.line(f"{self.name(each.ok)} = {name} != PU_FAILURE;")
                self.line(f"if (!{self.name(each.ok)}) {name} = pu_caught();")
            case ir.Uncons():
                car, cdr = self.name(each.car), self.name(each.cdr)
                remark = "/* its last use: the parts move out */"
                self.line(f"pu_uncons({self.name(each.pair)}, &{car}, &{cdr}); {remark}")
            case ir.Dup():
                self.line(f"pu_dup({self.name(each.var)});")
            case Drop():
                self.drop(each)
            case ir.If():
                self.conditional(each)
            case ir.Loop():
                start = len(self.lines)
                self.block(each.body)
                again = f"goto {each.label};"
                if any(line.endswith(again) for line in self.lines[start:]):
                    self.lines.insert(start, f"{each.label}: ;")
            case ir.Continue():
                self.line(f"goto {each.label};")
            case ir.Return():
                value = self.atom(each.value, self.function.rep, owned=True)
                self.line(f"*hole = {value};" if self.function.has_hole else f"return {value};")
                if self.function.has_hole:
                    self.line("return head;")
            case ir.TailCall():
                self.tail_call(each)
            case ir.TailClosure():
                self.source_line(each.place)
                procedure = self.atom(each.args[0], owned=True)
                call = f"pu_call_tail({procedure}, {self.array(each.args[1:], each.keywords)})"
                if each.place.file != PRELUDE_FILE:
                    call = f"pu_tail_at({call}, {self.where(each.place)})"
                if self.function.has_hole:
                    self.into_hole(call)
                else:
                    self.line(f"return {call};")

    def drop(self, each: Drop) -> None:
        if each.unique:
            why = f"{each.reason}; static: {each.unique}, never shared"
            self.line(f"pu_free_unique({self.name(each.var)}); /* {why} */")
        else:
            self.line(f"pu_drop({self.name(each.var)}); /* {each.reason} */")

    def conditional(self, each: ir.If) -> None:
        if isinstance(each.test, Constant):
            truth = each.test.value is not False and each.test.value is not NIL
            self.block(each.then if truth else each.otherwise)
            return
        test = self.name(each.test)
        if each.test.rep == VALUE:
            test = f"pu_truthy({test})"
        elif each.test.rep != BOOL:
            test = f"((void){test}, true)"
        self.line(f"if ({test}) {{")
        self.depth += 1
        self.block(each.then)
        self.depth -= 1
        if each.otherwise:
            self.line("} else {")
            self.depth += 1
            self.block(each.otherwise)
            self.depth -= 1
        self.line("}")

    def tail_call(self, each: ir.TailCall) -> None:
        callee = each.function
        if self.merged and callee in self.functions:
            for param, arg in zip(callee.all_params, each.args):
                self.line(f"{self.name(param)} = {self.atom(arg, param.rep, owned=True)};")
            self.line(f"goto enter_{callee.cname};")
        else:
            self.source_line(each.place)
            call = f"{callee.cname}({self.passed(callee, each.args)})"
            if self.function.has_hole:
                self.into_hole(call)
            else:
                self.line(f"return {call};")

    def into_hole(self, call: str) -> None:
        """A tail call whose result is the rest of a list."""
        label = self.label(())
        self.jumped.add(label)
        self.line(f"if (hole == &head) return {call};")
        self.line(f"*hole = pu_land({call});")
        self.line(f"if (PU_UNLIKELY(!*hole)) goto {label};")
        self.line("return head;")

    def passed(self, function: Function, args: Iterable[Atom]) -> str:
        return ", ".join(self.atom(arg, p.rep, owned=True) for p, arg in zip(function.all_params, args))

    def array(self, args: list[Atom], keywords: tuple[str, ...], owned: bool = True) -> str:
        """Arguments in an array, their count, and the count of those after them that belong to keywords."""
        count = len(args) - len(keywords)
        texts = [self.atom(arg, owned=owned) for arg in args[:count]]
        for keyword, arg in zip(keywords, args[count:]):
            texts += [self.names.constants.value(Keyword(keyword)), self.atom(arg, owned=owned)]
        array = f"(Value[]){{{', '.join(texts)}}}" if texts else "NULL"
        return f"{array}, {count}, {len(keywords)}"

    # Operations

    def let(self, each: Let) -> None:
        op, var = each.op, each.var
        target = f"{self.name(var)} = " if var in self.read else ""
        calls = isinstance(
            op, ir.CallKnown | ir.CallClosure | ir.CallWithin
        )  # which note the call themselves
        fails = self.leave(each.on_error, self.at(each.place)) if ir.can_fail(op) and not calls else ""
        match op:
            case ir.Prim():
                self.prim(each, op, target, fails)
            case ir.Reuse():
                self.reuse(op, target, fails)
            case ir.Copy():
                if target:
                    self.line(f"{target}{self.atom(op.args[0], var.rep, owned=True)};")
            case ir.Take():
                remark = "/* its last use: the part moves out */"
                self.line(f"{target}pu_take_{op.part}({self.atom(op.args[0])}); {remark}")
            case ir.Convert():
                self.line(f"{target}{self.convert(op.args[0], op.rep)};")
            case ir.CallKnown():
                call = f"{op.function.cname}({self.passed(op.function, op.args)})"
                self.call(each, op.function, call, target)
            case ir.CallWithin():
                self.within(each, op, target)
            case ir.CallClosure():
                call = f"pu_call({self.atom(op.args[0])}, {self.array(op.args[1:], op.keywords)})"
                note = f"pu_in_call({self.atom(op.args[0])}, {self.where(each.place)}); "
                note = "" if each.place.file == PRELUDE_FILE else note
                self.line(f"if (PU_UNLIKELY(!({target}{call}))) {self.leave(each.on_error, note)}")
            case ir.MakeClosure():
                if not op.args:
                    self.line(f"{target}pu_of_object(&closure_{op.function.cname});")
                else:
                    args = ", ".join(self.atom(arg, owned=True) for arg in op.args)
                    self.line(f"{target}pu_closure(&function_{op.function.cname}, {len(op.args)}, {args});")
            case ir.PrimClosure():
                ident = re.sub(r"[^A-Za-z0-9_]", lambda m: f"_{ord(m[0]):x}_", op.name)
                self.line(f"{target}pu_of_object(&closure_primitive_{ident});")
            case ir.LoadGlobal():
                load = f"pu_load({self.names.globals(op.name)}, {c_string(core.shown(op.name))})"
                self.line(f"if (PU_BAD({target}{load})) {fails}")
            case ir.StoreGlobal():
                self.line(f"pu_store(&{self.names.globals(op.name)}, {self.atom(op.args[0], owned=True)});")
            case ir.Defined():
                self.line(f"if (PU_BAD(pu_defined({self.atom(op.args[0])}, {c_string(op.shown)}))) {fails}")
            case ir.IsAbsent():
                self.line(f"{target}{self.atom(op.args[0])} == PU_ABSENT;")
            case ir.CheckField():
                check = (
                    f"pu_check_field(&type_{self.names.type(op.type)}, {op.index}, {self.atom(op.args[0])})"
                )
                self.line(f"if (PU_BAD({check})) {fails}")
            case ir.MakeRecord():
                args = ", ".join(self.atom(arg, owned=not f.weak) for arg, f in zip(op.args, op.type.fields))
                array = f"(Value[]){{{args}}}" if op.args else "NULL"
                self.line(f"{target}pu_record(&type_{self.names.type(op.type)}, {array});")
            case ir.FieldRef():
                call = f"pu_field(&type_{self.names.type(op.type)}, {op.index}, {self.atom(op.args[0])})"
                self.line(f"if (PU_BAD({target}{call})) {fails}")
            case ir.SetField():
                args = ", ".join(self.atom(arg) for arg in op.args)
                self.line(
                    f"if (PU_BAD(pu_set_field(&type_{self.names.type(op.type)}, {op.index}, {args}))) {fails}"
                )
                if target:
                    self.line(f"{target}PU_UNSPECIFIED;")
            case ir.IsRecord():
                self.line(f"{target}pu_is_record(&type_{self.names.type(op.type)}, {self.atom(op.args[0])});")
            case ir.Foreign():
                given = [self.atom(arg) for arg in op.args]
                for text in foreign.call(op.declaration, given, self.name(var) if target else "", fails):
                    self.line(text)

    def reuse(self, op: ir.Reuse, target: str, fails: str) -> None:
        dying = self.atom(op.args[op.dying])
        if len(op.args) == 1:
            name = op.name.removeprefix("tensor-")
            call = f'pu_reuse_unary({dying}, tn_{name}_, tn_{name}, "{name}")'
        else:
            other = self.atom(op.args[1 - op.dying])
            turned = "true" if op.dying else "false"
            call = f'pu_reuse_binary("{op.name}", {dying}, {other}, {turned})'
        remark = f"/* {dying} dies here: its memory is used again */"
        self.line(f"if (PU_UNLIKELY(!({target}{call}))) {fails} {remark}")

    def refusal(self, op: ir.Prim) -> str:
        """C that fails because a primitive does not take the arguments."""
        found = PRIMITIVES[op.name]
        name, count = c_string(op.name), len(op.args) - len(op.keywords)
        most = -1 if found.maximum is None else found.maximum
        if count < found.minimum or (found.maximum is not None and count > found.maximum):
            return f"pu_primitive_arity({name}, {found.minimum}, {most}, {count})"
        unknown = next(word for word in op.keywords if word not in found.keywords)
        return f"pu_unknown_keyword({name}, {c_string(unknown)})"

    def where(self, place: core.Place) -> str:
        return f"{self.names.file(place.file)}, {place.line}, {place.column}"

    def call(self, each: Let, function: Function, call: str, target: str) -> None:
        hidden = function.definition is None
        note = "" if hidden else self.called(function.name, each.place)
        if function.bounces:
            call = f"pu_land({call})"
        failed = self.leave(each.on_error, note)
        if function.rep == VALUE:
            self.line(f"if (PU_UNLIKELY(!({target}{call}))) {failed}")
        else:
            self.line(f"{target or '(void)'}{call};")
            self.line(f"if (PU_UNLIKELY(pu.pending)) {failed}")

    def within(self, each: Let, op: ir.CallWithin, target: str) -> None:
        given = op.args[: op.kind == "device"]
        enter = {"device": "pu_enter_device", "grad": "pu_enter_grad", "no-grad": "pu_enter_no_grad"}[op.kind]
        scope = f"scope_{each.var.number}"
        self.line("{")
        self.depth += 1
        self.line(f"PuScope {scope} = {enter}({', '.join(self.atom(a) for a in given)});")
        call = f"{op.function.cname}({self.passed(op.function, op.args[len(given) :])})"
        if op.function.bounces:
            call = f"pu_land({call})"
        self.line(f"{self.name(each.var)} = {call};")
        self.line(f"pu_leave({scope});")
        self.depth -= 1
        self.line("}")
        failed = f"!{self.name(each.var)}" if op.function.rep == VALUE else "pu.pending"
        self.line(f"if (PU_UNLIKELY({failed})) {self.leave(each.on_error)}")
        if not target:
            self.line(f"(void){self.name(each.var)};")

    def convert(self, arg: Atom, rep: str) -> str:
        assert isinstance(arg, Variable)
        name = self.name(arg)
        if rep == VALUE:
            return {INT: "pu_of_int", FLOAT: "pu_of_float", BOOL: "pu_of_bool"}[arg.rep] + f"({name})"
        return {INT: "pu_int", FLOAT: "pu_float", BOOL: "pu_truthy"}[rep] + f"({name})"

    def prim(self, each: Let, op: ir.Prim, target: str, fails: str) -> None:
        form = op.form
        if not op.name.startswith("%check") and not accepts(
            op.name, len(op.args) - len(op.keywords), op.keywords
        ):
            for arg in op.args:
                if isinstance(arg, Variable):  # which nothing else may read
                    self.line(f"(void){self.name(arg)};")
            self.line(f"if (PU_BAD({self.refusal(op)})) {fails}")
            if target:
                self.line(f"{target}PU_UNSPECIFIED;")
            return
        if op.name == "tensor" and op.keywords:
            given = dict(zip(op.keywords, op.args[1:]))
            words = [
                self.atom(given[k]) if k in given else "PU_ABSENT"
                for k in ("dtype", "device", "requires-grad")
            ]
            call = f"pu_tensor_with({', '.join([self.atom(op.args[0]), *words])})"
            self.line(f"if (PU_BAD({target}{call})) {fails}")
            return
        if not form.c:
            table = self.names.rows.table(op.name)
            call = f"pu_row_call(&{table}, {self.array(op.args, op.keywords, owned=False)})"
            self.line(f"if (PU_BAD({target}{call})) {fails}")
            return
        args = [self.atom(a, rep, owned=o) for a, rep, o in zip(op.args, form.args, op.owned())]
        if op.name in COMPARISONS and not form.fails and form.args[1] != VALUE and args[0] == args[1]:
            args[1] = f"pu_same_{form.args[1]}({args[1]})"  # compilers warn of what is compared with itself
        if form.fails == "status":
            result = self.name(each.var)
            self.line(f"if (PU_BAD({form.c.format(*args, r=result)})) {fails}")
            if not target:
                self.line(f"(void){result};")
        elif form.fails:
            self.line(f"if (PU_BAD({target}{form.c.format(*args)})) {fails}")
        elif target:
            self.line(f"{target}{form.c.format(*args)};")
        else:
            self.line(f"(void)({form.c.format(*args)});")
