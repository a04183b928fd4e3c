"""The certifier: proves of each compiled function that every value it owns is released exactly once on every
path.

It knows nothing of how `own` decides. It runs each function on an abstract state, which says how many times
the
function owns what each variable holds, and follows both branches, each turn of a loop and each failure.
"""

from __future__ import annotations

from collections.abc import Iterable

from tenfold.base.errors import TenfoldError
from tenfold.purple import ir
from tenfold.purple.ir import Atom, Block, Function, Let, Variable

State = dict[Variable, int]  # how often it is owned; absent means not at all


class CompilerBug(TenfoldError, RuntimeError):
    """The compiler made a program that would leak or release twice."""


def certify(module: ir.Module) -> int:
    """Check every function; the number of points at which something may fail, each checked too."""
    return sum(Certifier(function).run() for function in [*module.functions, module.main])


class Certifier:
    def __init__(self, function: Function):
        self.function = function
        self.headers: dict[str, State] = {}
        self.failures = 0

    def run(self) -> int:
        state = {p: 1 for p in self.function.all_params if p.is_managed}
        left = self.block(self.function.body, state)
        if left is not None:
            self.wrong("control reaches the end of the function", None)
        return self.failures

    def wrong(self, what: str, each: ir.Statement | None) -> None:
        place = getattr(each, "place", self.function.place)
        raise CompilerBug(
            f"{self.function.name}: {what} ({type(each).__name__} at {place})",
            help="the program is not at fault: please report it with this message",
        )

    def block(self, block: Block, state: State) -> State | None:
        """The state after a block, or None where control does not get there."""
        after: State | None = state
        for each in block:
            if after is None:
                self.wrong("code after a jump", each)
                return None
            after = self.statement(each, after)
        return after

    def statement(self, each: ir.Statement, state: State) -> State | None:
        match each:
            case Let():
                return self.let(each, state)
            case ir.LetTry():
                self.take(each.args, state, each)
                self.define(each.ok, state, each)
                return self.define(each.var, state, each)
            case ir.Uncons():
                self.take([each.pair], state, each)
                self.define(each.car, state, each)
                return self.define(each.cdr, state, each)
            case ir.Dup():
                self.borrow([each.var], state, each)
                state[each.var] += 1
                return state
            case ir.Drop():
                self.take([each.var], state, each)
                return state
            case ir.If():
                self.borrow([each.test], state, each)
                then = self.block(each.then, dict(state))
                otherwise = self.block(each.otherwise, dict(state))
                if then is None or otherwise is None:
                    return then if otherwise is None else otherwise
                if then != otherwise:
                    self.wrong(f"branches disagree about {self.difference(then, otherwise)}", each)
                return then
            case ir.Loop():
                self.headers[each.label] = dict(state)
                return self.block(each.body, state)
            case ir.Continue():
                if state != self.headers[each.label]:
                    self.wrong(
                        f"turns of a loop disagree about {self.difference(state, self.headers[each.label])}",
                        each,
                    )
                return None
            case ir.Return():
                self.take([each.value], state, each)
            case ir.TailCall() | ir.TailClosure():
                self.take(each.args, state, each)
        if state:
            self.wrong(f"still owned on return: {self.names(state)}", each)
        return None

    def let(self, each: Let, state: State) -> State:
        owned = each.op.owned()
        taken = [arg for arg, takes in zip(each.op.args, owned) if takes]
        self.borrow([arg for arg, takes in zip(each.op.args, owned) if not takes], state, each)
        self.take(taken, state, each)
        self.borrow([arg for arg, takes in zip(each.op.args, owned) if not takes], state, each)
        if ir.can_fail(each.op):
            self.failures += 1
            released = dict.fromkeys(each.on_error, 1)
            if released != state or len(released) != len(each.on_error):
                self.wrong(f"a failure here disagrees about {self.difference(released, state)}", each)
        return self.define(each.var, state, each)

    def define(self, var: Variable, state: State, each: ir.Statement) -> State:
        if var in state:
            self.wrong(f"{var.name} is defined again while its value is owned", each)
        if var.is_managed:
            state[var] = 1
        return state

    def take(self, args: Iterable[Atom], state: State, each: ir.Statement) -> None:
        for arg in args:
            if isinstance(arg, Variable) and arg.lender is not None:
                self.wrong(f"{arg.name} is given away, but only lent", each)
            if isinstance(arg, Variable) and arg.is_managed:
                if arg not in state:
                    self.wrong(f"{arg.name} is given away, but not owned", each)
                state[arg] -= 1
                if state[arg] == 0:
                    del state[arg]

    def borrow(self, args: Iterable[Atom], state: State, each: ir.Statement) -> None:
        for arg in args:
            while (
                isinstance(arg, Variable) and arg.lender is not None
            ):  # a part lives as long as its container
                arg = arg.lender
            if isinstance(arg, Variable) and arg.is_managed and arg not in state:
                self.wrong(f"{arg.name} is used, but not owned", each)

    def names(self, found: Iterable[Variable]) -> str:
        return ", ".join(sorted(repr(var) for var in found))

    def difference(self, one: State, other: State) -> str:
        return self.names({var for var in {*one, *other} if one.get(var) != other.get(var)})
