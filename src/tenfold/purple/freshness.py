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
        self.waiting = dict.fromkeys(functions)  # those to look at again
        self.owners = {param: function for function in functions for param in function.all_params}
        self.callers: dict[int, list[Function]] = {id(function): [] for function in functions}
        for function in functions:
            for callee in {id(callee) for callee, _ in function.once(calls)}:
                self.callers[callee].append(function)
        while self.waiting:
            function = next(iter(self.waiting))
            del self.waiting[function]
            self.look_at(function)
        self.made = _made(functions)  # results of functions that make them on some path

    def is_fresh(self, atom: Atom) -> bool:
        if isinstance(atom, Variable):
            return atom not in self.held
        return ir.is_immediate(atom.value)

    def look_at(self, function: Function) -> None:
        more = True
        while more:
            more = False
            for statement in function.statements():
                if isinstance(statement, Let):
                    if statement.var not in self.held and not self.makes_fresh(statement.op):
                        self.held.add(statement.var)
                        more = function.once(has_loops)
                elif isinstance(statement, ir.LetTry) and statement.var not in self.held:
                    self.held.add(statement.var)
                    more = function.once(has_loops)
        for callee, arguments in function.once(calls):
            for param, arg in zip(callee.all_params, arguments):
                if param not in self.held and not self.is_fresh(arg):
                    self.held.add(param)
                    self.waiting[self.owners[param]] = None
        if id(function) not in self.held_results and any(map(self.gives_held, function.statements())):
            self.held_results.add(id(function))
            self.waiting |= dict.fromkeys(self.callers[id(function)])

    def gives_held(self, each: ir.Statement) -> bool:
        """Whether a statement makes what something else holds the function's result."""
        match each:
            case ir.Return():
                return not self.is_fresh(each.value)
            case ir.TailCall():
                return id(each.function) in self.held_results
        return isinstance(each, ir.TailClosure)

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


def calls(function: Function) -> list[tuple[Function, list[Atom]]]:
    """The known functions that a function calls, and what it passes to each."""
    return list(filter(None, map(effects.passes, function.statements())))


def has_loops(function: Function) -> bool:
    """Whether a variable may be read before the statement that defines it, in the turn before."""
    return any(isinstance(each, ir.Loop) for each in function.statements())


def _made(functions: list[Function]) -> set[Variable]:
    """The variables that hold what a function called makes on some of its paths, if not on all."""
    found: set[Variable] = set()
    makers = {id(function) for function in functions if function.has_hole}
    before = -1
    while len(found) + len(makers) > before:
        before = len(found) + len(makers)
        for function in functions:
            for statement in function.statements():
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
    for statement in function.statements():
        if isinstance(statement, Let):
            op = statement.op
            if not isinstance(op, ir.CallKnown | ir.CallWithin):
                taken = {arg for arg, owned in zip(op.args, op.owned()) if owned}
                found |= taken & needed[id(statement)]
            if isinstance(op, ir.Prim):
                found |= set(effects.kept(op)) & needed[id(statement)]
    return {atom for atom in found if isinstance(atom, Variable)}
