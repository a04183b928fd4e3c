"""Conversions: every operand becomes what its operation takes, a Value or a number or truth value as C has
them."""

from __future__ import annotations

from typing import Any

from tenfold.purple import ir, natives
from tenfold.purple.direct_rows import direct_row
from tenfold.purple.ir import BOOL, FLOAT, INT, VALUE, Atom, Block, Constant, Function, Let, Variable
from tenfold.purple.literal_types import type_of_literal


class Conversion:
    """Puts a `Convert` wherever a variable is not what its use takes."""

    def __init__(self, count: int, tensors: bool):
        self.count, self.tensors = count, tensors
        self.out: Block = []

    def block(self, block: Block, function: Function) -> Block:
        outer, self.out = self.out, []
        for each in block:
            self.statement(each, function)
        made, self.out = self.out, outer
        return made

    def statement(self, each: ir.Statement, function: Function) -> None:
        match each:
            case Let():
                self.let(each)
                return
            case ir.LetTry():
                each.args = self.passed(each.function, each.args, each)
            case ir.If():
                each.test = self.truth(each.test, each.place)
                each.then = self.block(each.then, function)
                each.otherwise = self.block(each.otherwise, function)
            case ir.Loop():
                each.body = self.block(each.body, function)
            case ir.Return():
                each.value = self.convert(each.value, function.rep, function.place)
            case ir.TailCall():
                each.args = self.passed(each.function, each.args, each)
                if each.function.rep != function.rep:
                    result = self.variable(each.function.result, each.function.rep, each.place)
                    self.out.append(Let(result, ir.CallKnown(each.args, each.function), each.place))
                    self.out.append(ir.Return(self.convert(result, function.rep, each.place)))
                    return
            case ir.TailClosure():
                each.args = [self.convert(arg, VALUE, each.place) for arg in each.args]
        self.out.append(each)

    def let(self, each: Let) -> None:
        op = each.op
        result = VALUE
        match op:
            case ir.Copy() | ir.Narrow():
                arg = op.args[0]
                if isinstance(arg, Variable) and arg.rep != each.var.rep:
                    each.op = ir.Convert([arg], each.var.rep)
                result = each.var.rep
            case ir.Prim(name="not", args=[Variable() as arg]) if not op.keywords:
                op.args = [self.truth(arg, each.place)]
                op.form = natives.Form("!{0}", (BOOL,), BOOL, "")
                result = BOOL
            case ir.Prim():
                op.form = self.form(op, each.var.type)
                op.args = [self.convert(a, rep, each.place) for a, rep in zip(op.args, op.form.args)]
                result = op.form.result
            case ir.CallKnown():
                op.args = self.passed(op.function, op.args, each)
                result = op.function.rep
            case ir.CallWithin():
                given = op.args[: op.kind == "device"]
                args = self.passed(op.function, op.args[len(given) :], each)
                op.args = [*(self.convert(a, VALUE, each.place) for a in given), *args]
                result = op.function.rep
            case ir.IsAbsent():
                if isinstance(op.args[0], Variable) and op.args[0].rep != VALUE:  # every call gives it
                    each.op = ir.Copy([Constant(False)])
                result = BOOL
            case ir.IsRecord():
                op.args = [self.convert(a, VALUE, each.place) for a in op.args]
                result = BOOL
            case ir.Foreign():
                takes = {"int": INT, "int32": INT, "float": FLOAT, "float32": FLOAT, "bool": BOOL}
                op.args = [self.convert(a, VALUE, each.place) for a in op.args]
                result = takes.get(op.declaration.result.type, VALUE)
            case _:
                op.args = [self.convert(arg, VALUE, each.place) for arg in op.args]
        if result == each.var.rep:
            self.out.append(each)
            return
        raw = self.variable(each.var.type if result == VALUE else REP_TYPES[result], result, each.place)
        self.out.append(Let(raw, each.op, each.place))
        self.out.append(Let(each.var, ir.Convert([raw], each.var.rep), each.place))

    def truth(self, atom: Atom, place: Any) -> Atom:
        """Whether an operand counts as true, as C has it."""
        if isinstance(atom, Constant) or atom.rep == BOOL:
            return atom
        if atom.rep != VALUE:
            return Constant(True)
        truth = self.variable("bool", BOOL, place)
        may_fail = self.tensors and atom.type in ("any", "tensor", "none")
        self.out.append(Let(truth, ir.Truth([atom], may_fail), place))
        return truth

    def form(self, op: ir.Prim, result: str) -> natives.Form:
        if op.name == "%hole":
            return natives.Form("pu_extend(&hole, {0})", (VALUE,), VALUE, "")
        if op.name == "%check-device":
            return natives.Form("pu_check_device({0})", (VALUE,), VALUE, "zero")
        types = [a.type if isinstance(a, Variable) else type_of_literal(a.value) for a in op.args]
        direct = direct_row(op.name, tuple(types), op.keywords)
        if direct is not None:
            return direct
        known = op.name in natives.PRIMITIVES or op.name == "%apply-tail"
        if op.keywords or not known or not natives.accepts(op.name, len(op.args), ()):
            return natives.Form("", (VALUE,) * len(op.args), VALUE, "zero")
        return natives.choose(op.name, types, result)

    def passed(self, function: Function, args: list[Atom], each: Any) -> list[Atom]:
        return [self.convert(arg, p.rep, each.place) for p, arg in zip(function.all_params, args)]

    def convert(self, atom: Atom, rep: str, place: Any) -> Atom:
        if isinstance(atom, Constant) or atom.rep == rep:
            return atom
        if {atom.rep, rep} == {INT, FLOAT}:  # C converts
            return atom
        var = self.variable(atom.type, rep, place)
        self.out.append(Let(var, ir.Convert([atom], rep), place))
        return var

    def variable(self, type_: str, rep: str, place: Any) -> Variable:
        self.count += 1
        var = Variable("boxed" if rep == VALUE else "plain", self.count, place)
        var.type, var.rep = type_, rep
        return var


REP_TYPES = {INT: "int", FLOAT: "float", BOOL: "bool"}
