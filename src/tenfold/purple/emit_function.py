"""The C of one function, or of several that call each other in tail position and so share one C function."""

from __future__ import annotations

import re
from collections import Counter

from tenfold.purple import core, ir
from tenfold.purple.constants import c_string
from tenfold.purple.emit_lines import FAILED, c_type, is_of_library
from tenfold.purple.emit_operations import Operations, drops_of_operands
from tenfold.purple.ir import BOOL, FLOAT, INT, VALUE, Block, Constant, Drop, Function, Let, Variable
from tenfold.purple.values import NIL

WORD = re.compile(r"[A-Za-z_]\w*")
STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
TARGET = re.compile(r"^ *(?:if \(PU_BAD\(|if \(PU_UNLIKELY\(!\()?(\w+) = ", re.MULTILINE)


class EmitGroup(Operations):
    """`functions` are one, or a group that jumps among itself."""

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
        for function in self.functions:  # a keyword that is always given may only be assigned its default
            words = function.definition.keywords if function.definition is not None else ()
            idle |= set(function.params[len(function.params) - len(words) :]) if words else set()
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
        linkage = "static " if self.merged else self.names.shared.linkage(name)
        opening = f"{linkage}{c_type(rep)}{name}({', '.join(params) or 'void'}) {{"
        text = "\n".join([*head, opening, *self.lines, *body, *ladder, "}", ""])
        return (
            text + "".join(self.wrapper(name, i) for i in range(len(self.functions))) if self.merged else text
        )

    def idle(self, lines: list[str]) -> set[Variable]:
        """The variables that no line reads: they are there for what computes them."""
        text = "\n".join(lines)
        mentioned = Counter(WORD.findall(STRING.sub("", text)))
        mentioned.subtract(TARGET.findall(text))
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
            f"{self.names.shared.linkage(own.cname)}{c_type(own.rep)}{own.cname}({params}) {{\n"
            f"    if (PU_ENTRY_FAILS()) {{{drops} return {FAILED[own.rep]}; }}\n"
            f"    return {name}({', '.join([str(entry), *args])});\n}}\n"
        )

    def entry(self, function: Function) -> None:
        owned = tuple(p for p in function.all_params if p.is_managed)
        self.line(f"if (PU_ENTRY_FAILS()) {self.leave(owned)}")

    def block(self, block: Block) -> None:
        at = 0
        while at < len(block):
            dying = self.dying = drops_of_operands(block, at)
            self.statement(block[at])
            at += 1 + len(dying)

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
                how = "pu_uncons_unique" if each.unique else "pu_uncons"
                kept = self.keep(each.cell, None)
                suffix = "_cell" if kept else ""
                self.line(f"{kept}{how}{suffix}({self.name(each.pair)}, &{car}, &{cdr}); {remark}")
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
                value = self.atom(each.value, self.function.rep, owned=self.function.lends is None)
                if self.function.has_hole and self.function.bounces:  # `apply` may give a call to come
                    self.into_hole(value)
                elif self.function.has_hole:
                    self.line(f"*hole = {value};")
                    self.line("return head;")
                else:
                    self.line(f"return {value};")
            case ir.TailCall():
                self.tail_call(each)
            case ir.TailClosure():
                self.source_line(each.place)
                procedure = self.atom(each.args[0], owned=True)
                call = f"pu_call_tail({procedure}, {self.array(each.args[1:], each.keywords)})"
                seen = not core.is_unseen(each.place.file)
                call = f"pu_tail_at({call}, {self.where(each.place)})" if seen else f"pu_tail_given({call})"
                if self.function.has_hole:
                    self.into_hole(call)
                else:
                    self.line(f"return {call};")

    def drop(self, each: Drop) -> None:
        if each.var.type == ir.CELL:
            self.line(f"{self.release(each.var)} /* {each.reason} */")
        elif each.cell is not None:
            given = f"({self.name(each.var)}, {'true' if each.unique else 'false'}"
            call = f"pu_pair_cell{given})"
            if each.shape is not None:
                call = f"pu_record_cell{given}, &type_{self.names.type(each.shape)})"
            self.line(f"{self.keep(each.cell, each.shape)}{call}; /* {each.reason}: its memory is kept */")
        elif each.unique:
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
                self.line(f"{self.name(param)} = {self.atom(arg, param.rep, owned=not param.borrowed)};")
            self.line(f"goto enter_{callee.cname};")
        else:
            self.source_line(each.place)
            call = f"{callee.cname}({self.passed(callee, each.args)})"
            told = each.place.copied or is_of_library(callee, self.names.program)
            note = self.called(callee, each.place) if told else ""
            if note and callee.rep == VALUE:
                name = c_string(each.place.copied or core.shown(callee.name))
                call = f"pu_tail_in({call}, {name}, {self.where(each.place)})"
            elif note:
                self.line(f"{c_type(callee.rep)}result_of_call = {call};")
                self.line(f"if (PU_UNLIKELY(pu.pending)) {{ {note.strip()} }}")
                call = "result_of_call"
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
