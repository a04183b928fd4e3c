"""A guess at the variables whose values nothing else holds, made before ownership is decided: `borrow` asks
it whether to own a list would free anything earlier. `unique` proves later what is so."""

from __future__ import annotations

from tenfold.purple import effects, ir
from tenfold.purple.ir import Atom, Function, Let, Variable
from tenfold.purple.liveness import LiveAfter


class Freshness:
    """A fixpoint from above: every value is fresh until it is found to be held by something else."""

    def __init__(self, functions: list[Function], live: dict[int, LiveAfter]):
        self.held: set[Variable] = set()
        self.held_results: set[int] = set()  # of the functions with these ids
        for function in functions:
            if function.escapes:
                self.held.update(function.params)
            self.held.update(function.captured)
            self.held |= _shared(function, live[id(function)])
        statements = {id(function): ir.statements(function.body) for function in functions}
        changed = True
        while changed:
            before = len(self.held) + len(self.held_results)
            for function in functions:
                self.look_at(function, statements[id(function)])
            changed = len(self.held) + len(self.held_results) > before
        self.made = _made(functions, statements)  # results of functions that make them on some path

    def is_fresh(self, atom: Atom) -> bool:
        if isinstance(atom, Variable):
            return atom not in self.held
        return ir.is_immediate(atom.value)

    def look_at(self, function: Function, statements: list[ir.Statement]) -> None:
        for statement in statements:
            called = effects.passes(statement)
            if called is not None:
                pairs = zip(called[0].all_params, called[1])
                self.held |= {param for param, arg in pairs if not self.is_fresh(arg)}
            match statement:
                case Let():
                    if statement.var not in self.held and not self.makes_fresh(statement.op):
                        self.held.add(statement.var)
                case ir.LetTry():
                    self.held.add(statement.var)
                case ir.Return() if not self.is_fresh(statement.value):
                    self.held_results.add(id(function))
                case ir.TailCall() if id(statement.function) in self.held_results:
                    self.held_results.add(id(function))
                case ir.TailClosure():
                    self.held_results.add(id(function))

    def makes_fresh(self, op: ir.Op) -> bool:
        match op:
            case ir.Copy() | ir.Prim(name="cdr"):
                return self.is_fresh(op.args[0])
            case ir.Prim(name="append"):
                return not op.args or self.is_fresh(op.args[-1])
            case ir.Prim():
                return effects.makes_new(op)
            case ir.CallKnown() | ir.CallWithin():
                return id(op.function) not in self.held_results
        return isinstance(op, ir.Convert | ir.MakeRecord | ir.MakeClosure)


def _made(functions: list[Function], statements: dict[int, list[ir.Statement]]) -> set[Variable]:
    """The variables that hold what a function called makes on some of its paths, if not on all."""
    found: set[Variable] = set()
    makers = {id(function) for function in functions if function.has_hole}
    before = -1
    while len(found) + len(makers) > before:
        before = len(found) + len(makers)
        for function in functions:
            for statement in statements[id(function)]:
                match statement:
                    case Let(op=ir.CallKnown(function=callee)) if id(callee) in makers:
                        found.add(statement.var)
                    case Let(op=ir.Prim(name="cons" | "list")):
                        found.add(statement.var)
                    case ir.Return(value=Variable() as value) if value in found:
                        makers.add(id(function))
                    case ir.TailCall(function=callee) if id(callee) in makers:
                        makers.add(id(function))
    return found


def _shared(function: Function, needed: LiveAfter) -> set[Variable]:
    """The variables whose value something takes over, or may keep, while the function goes on using it."""
    found: set[Atom] = set()
    for statement in ir.statements(function.body):
        if isinstance(statement, Let):
            op = statement.op
            if not isinstance(op, ir.CallKnown | ir.CallWithin):
                taken = {arg for arg, owned in zip(op.args, op.owned()) if owned}
                found |= taken & needed[id(statement)]
            if isinstance(op, ir.Prim):
                found |= set(effects.kept(op)) & needed[id(statement)]
    return {atom for atom in found if isinstance(atom, Variable)}
