"""The certifier: proves of each compiled function that every value it owns is released exactly once on
every path, and that what it only looks at is there whenever it looks.

It knows nothing of how `own`, `borrow` and `lend` decide. It runs each function on an abstract state: how
many times the function owns what each variable holds, and which lent variables can still be trusted. It
follows both branches, each turn of a loop and each failure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from tenfold.base.errors import TenfoldError
from tenfold.purple import claims, core, effects, ir
from tenfold.purple.ir import Atom, Block, Function, Let, Variable

Held: TypeAlias = tuple[Variable | None, frozenset[str]]
Lent: TypeAlias = dict[Variable, Held]


@dataclass
class State:
    """`owned`: how often, absent means not at all. `lent`: the owned variable whose parts are looked at,
    None where the caller or a global holds them, and the kinds of containers between: a write to one may
    replace them."""

    owned: dict[Variable, int] = field(default_factory=dict)
    lent: Lent = field(default_factory=dict)

    def copy(self) -> State:
        return State(dict(self.owned), dict(self.lent))


def agreed(one: Lent, other: Lent) -> Lent:
    """What two paths that meet both trust."""
    common = [var for var in one if var in other and one[var][0] is other[var][0]]
    return {var: (one[var][0], one[var][1] | other[var][1]) for var in common}


class CompilerBug(TenfoldError, RuntimeError):
    """The compiler made a program that would leak, release twice, or look at what is gone."""


def certify(module: ir.Module) -> int:
    """Check every function; the number of points at which something may fail, each checked too."""
    writing, claimed = effects.writers(module), claims.Claims(module)
    functions = [*module.functions, module.main]
    return sum(Certifier(module, function, writing, claimed).run() for function in functions)


class Certifier:
    def __init__(
        self, module: ir.Module, function: Function, writing: effects.Writing, claimed: claims.Claims
    ):
        self.module, self.function, self.writing, self.claimed = module, function, writing, claimed
        self.headers: dict[str, State] = {}
        self.sizes: dict[Variable, int] = {}  # of the memory that cells keep, in words
        self.failures = 0

    def run(self) -> int:
        state = State({p: 1 for p in self.function.all_params if p.is_managed})
        lends = self.function.lends
        if lends is not None and lends[0] not in range(len(self.function.all_params)):
            self.wrong("its result is lent, but by none of its parameters", None)
        for i, param in enumerate(self.function.all_params):
            if param.borrowed:  # what it gives without a share must be of one parameter alone
                holder = param if lends is not None and i != lends[0] else None
                state.lent[param] = (holder, effects.NOTHING)
        left = self.block(self.function.body, state)
        if left is not None:
            self.wrong("control reaches the end of the function", None)
        for each, why in self.claimed.refuted(self.function):
            self.wrong(why, each)
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
                self.call(each.function, each.args, state, each)
                self.define(each.ok, state, each)
                return self.define(each.var, state, each)
            case ir.Uncons():
                self.take([each.pair], state, each)
                self.define(each.car, state, each)
                self.define(each.cdr, state, each)
                return self.keep_memory(each.cell, None, state, each)
            case ir.Dup():
                self.borrow([each.var], state, each)
                state.owned[each.var] += 1
                return state
            case ir.Drop():
                self.take([each.var], state, each, may_be_cell=True)
                return self.keep_memory(each.cell, each.shape, state, each)
            case ir.If():
                self.borrow([each.test], state, each)
                return self.join(each, state)
            case ir.Loop():
                return self.loop(each, state)
            case ir.Continue():
                header = self.headers[each.label]
                if state.owned != header.owned:
                    self.wrong(
                        f"turns of a loop disagree about {self.difference(state.owned, header.owned)}", each
                    )
                self.headers[each.label] = State(header.owned, agreed(header.lent, state.lent))
                return None
            case ir.Return() if self.function.lends is not None:
                self.give_part(each, self.function.lends[1], state)
            case ir.Return():
                self.take([each.value], state, each)
            case ir.TailCall():
                self.call(each.function, each.args, state, each)
                for param, arg in zip(each.function.all_params, each.args):
                    lender = (
                        state.lent.get(arg, (None, effects.NOTHING))[0] if isinstance(arg, Variable) else None
                    )
                    if param.borrowed and lender is not None:
                        self.wrong(f"{lender.name} would be gone when the call looks at it", each)
            case ir.TailClosure():
                self.take(each.args, state, each)
        if state.owned:
            self.wrong(f"still owned on return: {self.names(state.owned)}", each)
        return None

    def join(self, each: ir.If, state: State) -> State | None:
        then = self.block(each.then, state.copy())
        otherwise = self.block(each.otherwise, state.copy())
        if then is None or otherwise is None:
            return then if otherwise is None else otherwise
        if then.owned != otherwise.owned:
            self.wrong(f"branches disagree about {self.difference(then.owned, otherwise.owned)}", each)
        return State(then.owned, agreed(then.lent, otherwise.lent))

    def loop(self, each: ir.Loop, state: State) -> State | None:
        """What a turn stops trusting, the first one must not trust either."""
        while True:
            self.headers[each.label] = state.copy()
            failures = self.failures
            after = self.block(each.body, state.copy())
            trusted = self.headers[each.label].lent
            if trusted == state.lent:
                return after
            self.failures = failures
            state = State(state.owned, trusted)

    def let(self, each: Let, state: State) -> State:
        if each.var.lender is not None or each.var.borrowed:
            return self.lend(each, state)
        owned = each.op.owned()
        taken = [arg for arg, takes in zip(each.op.args, owned) if takes]
        looked_at = [arg for arg, takes in zip(each.op.args, owned) if not takes]
        self.borrow(looked_at, state, each)
        if isinstance(each.op, ir.Rebuild):
            self.fill(each.op, taken.pop(), state, each)
        self.take(taken, state, each)
        self.borrow(looked_at, state, each)
        self.may_fail(each, state)
        self.written(each, state)
        self.define(each.var, state, each)
        cell = each.op.cell if isinstance(each.op, ir.Take) else None
        return self.keep_memory(cell, None, state, each)

    def keep_memory(
        self, cell: Variable | None, shape: core.DefType | None, state: State, each: ir.Statement
    ) -> State:
        """What died is a record of the type `shape`, or a pair: its memory is for another of that size."""
        if cell is None:
            return state
        if cell.type != ir.CELL:
            self.wrong(f"{cell.name} would keep memory, but is a value", each)
        self.sizes[cell] = 3 if shape is None else 2 + len(shape.fields)
        return self.define(cell, state, each)

    def fill(self, op: ir.Rebuild, cell: Atom, state: State, each: ir.Statement) -> None:
        """Something is made in a cell, which must be of its size."""
        made = op.made
        size = 2 + len(made.type.fields) if isinstance(made, ir.MakeRecord) else 0
        if isinstance(made, ir.Prim) and made.name in ("cons", "%hole"):
            size = 3
        if not isinstance(cell, Variable) or self.sizes.get(cell) != size:
            self.wrong("something is made in memory that is not of its size", each)
        self.take([cell], state, each, may_be_cell=True)

    def may_fail(self, each: Let, state: State) -> None:
        if ir.can_fail(each.op):
            self.failures += 1
            released = dict.fromkeys(each.on_error, 1)
            if released != state.owned or len(released) != len(each.on_error):
                self.wrong(f"a failure here disagrees about {self.difference(released, state.owned)}", each)

    def lend(self, each: Let, state: State) -> State:
        """A variable without a share of its own: what it looks into must be held, and go on being so."""
        op = each.op
        held: Held | None = None
        part = effects.looks_into(op)
        lender = self.holder(op.args[part[0]], state) if part is not None else None
        if isinstance(op, ir.CallKnown):
            self.call(op.function, op.args, state, each)
        else:
            self.borrow(op.args, state, each)
        match op:
            case ir.LoadGlobal():
                if effects.is_constant_global(self.module.program, op.name):
                    held = (None, effects.NOTHING)
            case ir.Copy():
                held = self.holder(op.args[0], state)
            case _:
                if part is not None and lender is not None:
                    held = (lender[0], lender[1] | part[1])
        if held is None:
            self.wrong(f"{each.var.name} is lent by nobody", each)
            return state
        self.may_fail(each, state)
        state.lent[each.var] = held
        return state

    def give_part(self, each: ir.Return, kinds: frozenset[str], state: State) -> None:
        """A function that lends its result gives a part of what its caller holds, or a constant."""
        if isinstance(each.value, Variable) and each.value.type not in ir.UNMANAGED:
            held = state.lent.get(each.value)
            if held is None or held[0] is not None or not held[1] or not held[1] <= kinds:
                self.wrong(f"{each.value.name} is given without a share, but not held by the caller", each)

    def holder(self, atom: Atom, state: State) -> Held | None:
        """Who holds an operand: an owned variable, or None for one who outlives the function."""
        if not isinstance(atom, Variable) or atom.type in ir.UNMANAGED:
            return (None, effects.NOTHING)
        if atom in state.owned:
            return (atom, effects.NOTHING)
        return state.lent.get(atom)

    def written(self, each: ir.Statement, state: State) -> None:
        """After a write, parts that are lent may not be what they were."""
        written = effects.writes(each, self.writing)
        if written:
            state.lent = {
                var: held for var, held in state.lent.items() if not effects.touched(written, held[1])
            }

    def call(self, function: Function, args: list[Atom], state: State, each: ir.Statement) -> None:
        pairs = list(zip(args, function.all_params))
        self.borrow([arg for arg, param in pairs if param.borrowed], state, each)
        self.take([arg for arg, param in pairs if not param.borrowed], state, each)
        self.borrow([arg for arg, param in pairs if param.borrowed], state, each)
        self.written(each, state)

    def define(self, var: Variable, state: State, each: ir.Statement) -> State:
        if var in state.owned:
            self.wrong(f"{var.name} is defined again while its value is owned", each)
        self.forget(var, state)
        if var.is_managed:
            state.owned[var] = 1
        return state

    def forget(self, owner: Variable, state: State) -> None:
        """What an owner lent is not to be looked at any more."""
        state.lent = {var: held for var, held in state.lent.items() if held[0] is not owner}

    def take(self, args: Iterable[Atom], state: State, each: ir.Statement, may_be_cell: bool = False) -> None:
        for arg in args:
            if not isinstance(arg, Variable):
                continue
            if arg.type == ir.CELL and not may_be_cell:
                self.wrong(f"{arg.name} is used as a value, but only keeps memory", each)
            if arg.lender is not None or arg.borrowed:
                self.wrong(f"{arg.name} is given away, but only lent", each)
            if arg.is_managed:
                if arg not in state.owned:
                    self.wrong(f"{arg.name} is given away, but not owned", each)
                state.owned[arg] -= 1
                if state.owned[arg] == 0:
                    del state.owned[arg]
                    self.forget(arg, state)

    def borrow(self, args: Iterable[Atom], state: State, each: ir.Statement) -> None:
        for arg in args:
            if not isinstance(arg, Variable):
                continue
            if arg.type == ir.CELL:
                self.wrong(f"{arg.name} is looked at, but only keeps memory", each)
            if (arg.lender is not None or arg.borrowed) and arg.type not in ir.UNMANAGED:
                if arg not in state.lent:
                    self.wrong(f"{arg.name} is looked at, but nobody is known to hold it", each)
            elif arg.is_managed and arg not in state.owned:
                self.wrong(f"{arg.name} is used, but not owned", each)

    def names(self, found: Iterable[Variable]) -> str:
        return ", ".join(sorted(repr(var) for var in found))

    def difference(self, one: dict[Variable, int], other: dict[Variable, int]) -> str:
        return self.names({var for var in {*one, *other} if one.get(var) != other.get(var)})
