"""Types: what each variable and each function's result can be, over the whole program, and from that which of
them are numbers as C has them."""

from __future__ import annotations

from typing import Any

from tenfold.purple import ir, narrowing, natives, ranges
from tenfold.purple.anf_calls import ABSENT
from tenfold.purple.branches import EITHER, Branches, without_dead_branches
from tenfold.purple.conversions import Conversion
from tenfold.purple.direct_rows import direct_row
from tenfold.purple.ir import BOOL, FLOAT, INT, VALUE, Atom, Block, Constant, Function, Let, Variable
from tenfold.purple.literal_types import type_of_literal
from tenfold.purple.usage import uses_tensors

REPS = {"int": INT, "float": FLOAT, "bool": BOOL}


def infer(module: ir.Module) -> None:
    """Find the types, choose representations, and make every conversion explicit."""
    number = _last_number(module)
    for function in [*module.functions, module.main]:
        number = narrowing.insert(function, number)
    inference = Inference(module)
    inference.run()
    for function in [*module.functions, module.main]:
        function.body = without_dead_branches(function.body, inference.branches)
    for function in [*module.functions, module.main]:
        for var in variables(function):
            var.rep = VALUE if var in inference.absent else REPS.get(var.type, VALUE)
            var.is_small = var.rep == INT and ranges.is_small(inference.ranges.get(var, ranges.ANY))
        function.rep = VALUE if function.bounces else REPS.get(function.result, VALUE)
    for function in [*module.functions, module.main]:
        for statement in ir.statements(function.body):
            if isinstance(statement, ir.LetTry):
                statement.function.rep = VALUE  # what it gives joins with the error
    conversion = Conversion(_last_number(module), uses_tensors(module.program))
    for function in [*module.functions, module.main]:
        narrowing.resolve(function)
        function.body = conversion.block(function.body, function)


def _last_number(module: ir.Module) -> int:
    return max((v.number for f in [*module.functions, module.main] for v in variables(f)), default=0)


def variables(function: Function) -> list[Variable]:
    found: dict[Variable, None] = dict.fromkeys(function.all_params)
    for statement in ir.statements(function.body):
        if isinstance(statement, Let):
            found[statement.var] = None
        elif isinstance(statement, ir.LetTry):
            found[statement.ok] = found[statement.var] = None
    return list(found)


def join(a: str, b: str) -> str:
    if a == b or b == "none":
        return a
    if a == "none":
        return b
    if {a, b} == {"int", "integer"}:
        return "integer"
    for group, name in ((NUMBERS, "number"), (LISTS, "list"), (PROCEDURES, "procedure")):
        if a in group and b in group:
            return name
    return "any"


NUMBERS = ("int", "integer", "float", "number")
LISTS = ("nil", "pair", "list")
PROCEDURES = ("routine", "procedure")


class Inference:
    """A fixpoint from below: what nothing contradicts is so."""

    def __init__(self, module: ir.Module):
        self.module = module
        self.tensors = uses_tensors(module.program)
        self.globals: dict[str, str] = {}
        self.waiting: dict[Function, None] = {}  # functions to look at again
        self.undecided: set[Function] = set()  # those that asked, when last looked at, what is not computed
        self.users: dict[Any, list[Function]] = {}  # by variable, function or global: who looks at it
        self.active: set[Function] = set()  # those that are being looked at,
        self.current: Function | None = None  # the innermost of them,
        self.read: set[Atom] = set()  # and what it has read so far
        self.absent: set[Variable] = set()  # parameters that some call does not give
        self.ranges: dict[Variable | Function | str, ranges.Interval] = {}  # of those that are an "int"
        functions = [*module.functions, module.main]
        tries = [s for f in functions for s in ir.statements(f.body) if isinstance(s, ir.LetTry)]
        self.branches = Branches(
            [*(p for f in functions for p in f.all_params), *(each.ok for each in tries)]
        )

    def run(self) -> None:
        functions = [*self.module.functions, self.module.main]
        for function in functions:
            if function.escapes:
                for param in function.params:
                    param.type = "any"
        for function in functions:
            if function.has_hole:
                function.result = "any"
        for function in functions:
            self.note_uses(function)
        self.settle(functions)
        self.branches.unknown = EITHER  # what is left is never reached, and typed all the same
        self.settle([function for function in functions if function in self.undecided])

    def settle(self, functions: list[Function]) -> None:
        self.waiting = dict.fromkeys(reversed(functions))
        while self.waiting:
            self.look_at(next(iter(self.waiting)))

    def look_at(self, function: Function) -> None:
        """Read a function from its start, and on the way those that it calls and that wait: it is not looked
        at again for what they give."""
        del self.waiting[function]
        around = self.current, self.read, self.branches.met_unknown
        self.current, self.read, self.branches.met_unknown = function, set(), False
        self.active.add(function)
        self.block(function.body, function)
        self.active.discard(function)
        if self.branches.met_unknown:
            self.undecided.add(function)
        else:
            self.undecided.discard(function)
        self.current, self.read, self.branches.met_unknown = around

    def call(self, function: Function, args: list[Atom]) -> None:
        """Give a function its arguments, and find what it gives if that is worth waiting for."""
        self.pass_to(function, args)
        if function in self.waiting and function not in self.active:
            self.look_at(function)

    def block(self, block: Block, function: Function) -> None:
        """Look at the statements that can be reached, as far as types are known."""
        for statement in block:
            if isinstance(statement, ir.If):
                truths = self.branches.of(statement.test, self.of(statement.test))
                if True in truths:
                    self.block(statement.then, function)
                if False in truths:
                    self.block(statement.otherwise, function)
            elif isinstance(statement, ir.Loop):
                self.block(statement.body, function)
            else:
                self.statement(statement, function)

    def note_uses(self, function: Function) -> None:
        for var in variables(function):
            self.users.setdefault(var, []).append(function)
        for statement in ir.statements(function.body):
            match statement:
                case Let(op=ir.CallKnown() | ir.CallWithin() as op):
                    self.users.setdefault(op.function, []).append(function)
                case ir.LetTry() | ir.TailCall():
                    self.users.setdefault(statement.function, []).append(function)
                case Let(op=ir.LoadGlobal() as op):
                    self.users.setdefault(op.name, []).append(function)

    def changed(self, what: Any) -> None:
        """A variable, a function's result or a global is of a wider type: who uses it is looked at again,
        unless all its uses are still to come."""
        for user in self.users.get(what, ()):
            if user is not self.current or what in self.read or not isinstance(what, Variable):
                self.waiting[user] = None

    def statement(self, each: ir.Statement, function: Function) -> None:
        match each:
            case Let():
                found = self.op(each.op)
                self.widen(each.var, found, self.given_within(each.op) if found == "int" else None)
                if each.var.type == "bool" and self.branches.note(
                    each, [self.of(arg) for arg in each.op.args]
                ):
                    self.changed(each.var)
                if isinstance(each.op, ir.Prim) and each.op.name == "%apply-tail":
                    self.bounce(function)
            case ir.LetTry():
                self.pass_to(each.function, each.args)
                self.widen(each.ok, "bool", None)
                self.widen(each.var, "any", None)
            case ir.Return():
                self.returns(function, self.of(each.value), self.within(each.value))
            case ir.TailCall():
                self.call(each.function, each.args)
                self.returns(function, each.function.result, self.ranges.get(each.function))
                if each.function.bounces:
                    self.bounce(function)
            case ir.TailClosure():
                self.returns(function, "any")
                self.bounce(function)

    def bounce(self, function: Function) -> None:
        if not function.bounces:
            function.bounces = True
            self.changed(function)

    def of(self, atom: Atom) -> str:
        self.read.add(atom)
        return atom.type if isinstance(atom, Variable) else type_of_literal(atom.value)

    def widen(self, var: Variable, found: str, within: ranges.Interval | None) -> None:
        wider = join(var.type, found)
        if wider != var.type:
            var.type = wider
            self.changed(var)
        self.spread(var, found, within)

    def returns(self, function: Function, found: str, within: ranges.Interval | None = None) -> None:
        wider = join(function.result, found)
        if wider != function.result:
            function.result = wider
            self.changed(function)
        self.spread(function, found, within)

    def spread(self, key: Variable | Function | str, found: str, within: ranges.Interval | None) -> None:
        """Add an interval to that of a variable, a function's result or a global."""
        if found != "int":
            return
        old = self.ranges.get(key)
        wider = ranges.join(old, ranges.rounded(within or ranges.ANY))
        if wider != old and wider is not None:
            self.ranges[key] = wider
            self.changed(key)

    def within(self, atom: Atom) -> ranges.Interval | None:
        """The interval of an operand that is an "int"."""
        if isinstance(atom, Variable):
            return self.ranges.get(atom) if atom.type == "int" else None
        return ranges.of_literal(atom.value) if type_of_literal(atom.value) == "int" else None

    def given_within(self, op: ir.Op) -> ranges.Interval | None:
        """The interval of what an operation gives, where that is an "int"."""
        match op:
            case ir.Copy():
                return self.within(op.args[0])
            case ir.Narrow():
                return self.narrowed(op)
            case ir.CallKnown() | ir.CallWithin():
                return self.ranges.get(op.function)
            case ir.LoadGlobal():
                return self.ranges.get(op.name)
            case ir.Prim():
                return self.computed_within(op) or ranges.SIZE
        return ranges.ANY

    def narrowed(self, op: ir.Narrow) -> ranges.Interval:
        """The interval that a check leaves of an operand."""
        known = self.within(op.args[0]) or ranges.ANY
        return narrowing.within(op, known, self.within(op.args[-1]) if len(op.args) > 1 else None)

    def computed_within(self, op: ir.Prim) -> ranges.Interval | None:
        """The interval of arithmetic on operands that 64 bits hold, if they hold the result too."""
        found = [self.within(arg) for arg in op.args]
        divides = op.name in ("modulo", "%") and len(found) == 2 and found[1] is not None
        if divides and found[0] is None and self.of(op.args[0]) == "integer":
            found[0] = ranges.ANY  # of any size: the divisor bounds what is left
        operands = [each for each in found if each is not None]
        if len(operands) < len(found):
            return None
        return ranges.result(op.name, operands, [isinstance(arg, Constant) for arg in op.args])

    def pass_to(self, function: Function, args: list[Atom]) -> None:
        for param, arg in zip(function.all_params, args):
            if isinstance(arg, Constant) and arg.value is ABSENT:
                self.absent.add(param)  # its default, which is typed by itself, takes its place
            else:
                self.widen(param, self.of(arg), self.within(arg))

    def op(self, op: ir.Op) -> str:
        types = [self.of(each) for each in op.args]
        match op:
            case ir.Prim():
                if op.name in ("%apply-tail", "%hole"):
                    return "any" if op.name == "%apply-tail" else "void"
                if "none" in types:  # some operand is not computed yet, or never
                    return "none"
                if not natives.gives_back(op.name) and direct_row(op.name, tuple(types), op.keywords):
                    return "tensor"
                found = natives.result_type(op.name, types, self.tensors)
                return "int" if found == "integer" and self.computed_within(op) is not None else found
            case ir.Copy():
                return types[0]
            case ir.Narrow():
                is_index = op.relation == "index" and types[0] in narrowing.NUMERIC
                return "int" if is_index else types[0]
            case ir.CallKnown():
                self.call(op.function, op.args)
                return op.function.result
            case ir.CallWithin():
                self.call(op.function, op.args[op.kind == "device" :])
                return op.function.result
            case ir.MakeClosure():
                for param, arg in zip(op.function.captured, op.args):
                    self.widen(param, self.of(arg), self.within(arg))
                return "procedure" if op.args else "routine"
            case ir.PrimClosure():
                return "routine"
            case ir.LoadGlobal():
                return self.globals.get(op.name, "none")
            case ir.StoreGlobal():
                wider = join(self.globals.get(op.name, "none"), types[0])
                if wider != self.globals.get(op.name, "none"):
                    self.globals[op.name] = wider
                    self.changed(op.name)
                self.spread(op.name, types[0], self.within(op.args[0]))
                return "void"
            case ir.Defined() | ir.CheckField() | ir.SetField():
                return "void"
            case ir.IsAbsent() | ir.IsRecord():
                return "bool"
            case ir.MakeRecord():
                return "record"
            case ir.FieldRef():
                kind = op.type.fields[op.index]
                known = {"int": "integer", "float": "float", "tensor": "tensor", "string": "string"}
                return "any" if kind.weak else known.get(kind.type, "any")
            case ir.Foreign():
                kind_of = {"int32": "int", "float32": "float"}
                return kind_of.get(op.declaration.result.type, op.declaration.result.type)
        return "any"
