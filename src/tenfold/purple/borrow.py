"""Borrowing across functions, decided before ownership: parameters that a function only looks at stay their
caller's, and variables that look into them, or into a global that never changes, need no share of their own.

As in Lean: every parameter that may be is borrowed, until some use takes it over (it is returned, stored,
captured, or passed on to one who owns it), or until a call in tail position would have to release it
afterwards. Where every caller only looks at what it passes, to own it would free nothing earlier: such a
parameter stays borrowed, and a use that takes it over gets a share of its own. So does a use that takes
over a variable that is lent."""

from __future__ import annotations

from collections.abc import Callable

from tenfold.purple import effects, ir
from tenfold.purple.aliases import lent_by_owned
from tenfold.purple.cells import rebuilt
from tenfold.purple.freshness import Freshness
from tenfold.purple.ir import Atom, Function, Let, Variable
from tenfold.purple.lenders import find_lenders
from tenfold.purple.liveness import LiveAfter, live_after_calls
from tenfold.purple.outlived import names_of_params, outlived, tensor_makers, walked
from tenfold.purple.usage import uses_tensors


def borrow(module: ir.Module) -> effects.Writing:
    """Mark the borrowed parameters and the variables that are lent. What each function may write, which
    nothing here changes, is asked for on the way."""
    functions = [*module.functions, module.main]
    makers = tensor_makers(module) if uses_tensors(module.program) else set()
    eager: set[Variable] = set()
    for function in functions:
        eager |= _propose(function, makers)
    eager |= _handed_on(functions, eager)
    writing = effects.writers(module)
    _give_up_tail_calls(functions)
    live = {id(function): function.once(live_after_calls) for function in functions}
    freshness = Freshness(functions, live)
    lent = _settle(module, functions, writing, live, eager, freshness)
    lendable = lambda function: _lendable(module, function, writing[id(function)])
    find_lenders(module, lendable, lent)
    number = max((var.number for function in functions for var in _all(function)), default=0)
    for function in functions:
        for var in lent[id(function)]:
            var.lender = var
        aliases = lent_by_owned(function, lent[id(function)], writing[id(function)], freshness.held)
        for var, owner in aliases.items():
            var.lender = owner
        number = Shares(number, function.lends is not None).block(function.body)
        function.changed()
    return writing


def _settle(
    module: ir.Module,
    functions: list[Function],
    writing: effects.Writing,
    live: dict[int, LiveAfter],
    eager: set[Variable],
    freshness: Freshness,
) -> dict[int, set[Variable]]:
    """Give up the borrowing of parameters that some function must own; by function, the variables that are
    lent then. Only functions that a change may concern are looked at again."""
    owners = {param: function for function in functions for param in function.all_params}
    callers = _callers(functions)
    lists = {param for function in functions for param in _taken_apart(function)}
    reusable = {param for function in functions for param in rebuilt(function)}
    looked_into = {id(function): _looked_into(function) for function in functions}

    def frees(arg: Variable, param: Variable) -> bool:
        if param not in lists or freshness.is_fresh(arg):
            return True
        return param in reusable and arg in freshness.made

    lent = {id(each): _lendable(module, each, writing[id(each)]) for each in functions}
    concerned = set(functions)
    before: set[Variable] = set()
    while concerned:
        owned, sharing = _passed(functions, lent, live, frees)
        refused = {param for param in owned if param.borrowed and param in eager}
        concerned |= {owners[param] for param in sharing ^ before}
        for function in concerned:
            key = id(function)
            refused |= _unborrowable(module, function, lent[key], writing[key], sharing, looked_into[key])
        for param in refused:
            param.borrowed = False
        changed = {owners[param] for param in refused}
        for function in changed:
            lent[id(function)] = _lendable(module, function, writing[id(function)])
        concerned = changed | {caller for function in changed for caller in callers[id(function)]}
        before = sharing
    return lent


def _callers(functions: list[Function]) -> dict[int, set[Function]]:
    found: dict[int, set[Function]] = {id(function): set() for function in functions}
    for function in functions:
        for statement in function.statements():
            called = effects.passes(statement)
            if called is not None:
                found[id(called[0])].add(function)
    return found


def _handed_on(functions: list[Function], eager: set[Variable]) -> set[Variable]:
    """The borrowed parameters that are passed on, at their last use, to those that had better be owned."""
    passed_on: set[tuple[Variable, Variable]] = set()
    for function in functions:
        names = names_of_params(function, {param for param in function.params if param.borrowed})
        needed = function.once(live_after_calls)
        for statement in function.statements():
            called = effects.passes(statement)
            for param, arg in zip(called[0].all_params, called[1]) if called is not None else ():
                if isinstance(arg, Variable) and arg not in needed[id(statement)]:
                    passed_on |= {(source, param) for source in names.get(arg, ())}
    found: set[Variable] = set()
    while more := {source for source, param in passed_on if param in eager | found} - found:
        found |= more
    return found


def _give_up_tail_calls(functions: list[Function]) -> None:
    """Make a tail call a plain one where it would have to hand over what the callee only looks at, if that
    can add no more than one frame to the stack: the callee gives no call back, and calls none of those
    that lead to it."""
    reach: dict[int, set[int]] = {id(function): set() for function in functions}
    changed = True
    while changed:
        changed = False
        for function in functions:
            for statement in function.statements():
                if isinstance(statement, ir.TailCall):
                    more = {id(statement.function)} | reach[id(statement.function)]
                    if not more <= reach[id(function)]:
                        reach[id(function)] |= more
                        changed = True
    number = max((var.number for function in functions for var in _all(function)), default=0)
    for function in functions:
        if not function.has_hole:
            number = _plain_calls(function, function.body, reach, number)


def _plain_calls(function: Function, block: ir.Block, reach: dict[int, set[int]], number: int) -> int:
    for i in range(len(block) - 1, -1, -1):
        each = block[i]
        match each:
            case ir.If():
                number = _plain_calls(function, each.then, reach, number)
                number = _plain_calls(function, each.otherwise, reach, number)
            case ir.Loop():
                number = _plain_calls(function, each.body, reach, number)
            case ir.TailCall(function=callee) if not callee.bounces and callee.rep == ir.VALUE:
                owned = [a for a, p in zip(each.args, callee.all_params) if p.borrowed and _is_owned(a)]
                if owned and id(function) not in reach[id(callee)] and callee is not function:
                    number += 1
                    result = Variable("result", number, each.place)
                    result.type = callee.result
                    block[i : i + 1] = [
                        Let(result, ir.CallKnown(each.args, callee), each.place),
                        ir.Return(result),
                    ]
                    function.changed()
    return number


def _is_owned(atom: Atom) -> bool:
    return isinstance(atom, Variable) and atom.is_managed


def _all(function: Function) -> list[Variable]:
    return function.all_params + [
        statement.var for statement in function.statements() if isinstance(statement, Let)
    ]


class Shares:
    """Gives a share of its own to each use that takes over what is only lent; to a function's result unless
    that `is_lent` too. The numbers of variables go on from `number`."""

    def __init__(self, number: int, is_lent: bool):
        self.number, self.is_lent = number, is_lent

    def block(self, block: ir.Block) -> int:
        """Change a block in place; the last number used."""
        made: ir.Block = []
        for each in block:
            self.statement(each, made)
            made.append(each)
        block[:] = made
        return self.number

    def statement(self, each: ir.Statement, made: ir.Block) -> None:
        match each:
            case Let(op=ir.Copy(args=[Variable() as source])):
                if _is_lent_here(source) and each.var.is_managed:
                    each.op = ir.Share([source])
            case Let():
                each.op.args = self.shared(each.op.args, each.op.owned(), each.place, made)
            case ir.LetTry() | ir.TailCall():
                owned = [not param.borrowed for param in each.function.all_params]
                each.args = self.shared(each.args, owned, each.place, made)
            case ir.TailClosure():
                each.args = self.shared(each.args, [True] * len(each.args), each.place, made)
            case ir.Return(value=Variable() as value) if not self.is_lent:
                (each.value,) = self.shared([value], [True], value.place, made)
            case ir.If():
                self.block(each.then)
                self.block(each.otherwise)
            case ir.Loop():
                self.block(each.body)

    def shared(self, args: list[Atom], owned: list[bool], place: ir.Place, made: ir.Block) -> list[Atom]:
        found: list[Atom] = []
        for arg, takes in zip(args, owned, strict=True):
            if takes and isinstance(arg, Variable) and _is_lent_here(arg):
                self.number += 1
                share = Variable(arg.name, self.number, place)
                share.type = arg.type
                made.append(Let(share, ir.Share([arg]), place))
                arg = share
            found.append(arg)
        return found


def _is_lent_here(var: Variable) -> bool:
    return (var.borrowed or var.lender is not None) and var.type not in ir.UNMANAGED


def _taken_apart(function: Function) -> set[Variable]:
    """The parameters that are lists which a function takes apart: of those that something else holds nothing
    is freed earlier where it owns them."""
    names = names_of_params(function, set(function.params))
    found: set[Variable] = set()
    for statement in function.statements():
        if isinstance(statement, Let) and effects.gives_part(statement.op) == "pair":
            found |= names.get(statement.op.args[0], set())
    return found


def _passed(
    functions: list[Function],
    lent: dict[int, set[Variable]],
    live: dict[int, LiveAfter],
    frees: Callable[[Variable, Variable], bool],
) -> tuple[set[Variable], set[Variable]]:
    """Two sets of parameters. Some caller passes the first what it owns and needs no more, and owning it
    `frees` something earlier. Callers pass the second constants, or what they borrow or still need; so do
    the callers of functions that pass a parameter on: owning it would free nothing earlier."""
    owned: set[Variable] = set()
    looked_at: set[Variable] = set()
    passed_on: list[tuple[Variable, Variable]] = []  # a borrowed parameter, and whose argument it becomes
    for function in functions:
        borrowed = {param for param in function.all_params if param.borrowed}
        looks, names = lent[id(function)] | borrowed, names_of_params(function, borrowed)
        needed = live[id(function)]
        for statement in function.statements():
            called = effects.passes(statement)
            for param, arg in zip(called[0].all_params, called[1]) if called is not None else ():
                if isinstance(arg, Variable) and (arg in looks or arg in needed[id(statement)]):
                    looked_at.add(param)
                    passed_on += [(source, param) for source in names.get(arg, ())]
                elif isinstance(arg, Variable) and arg.is_managed:
                    if frees(arg, param):
                        owned.add(param)
                elif isinstance(arg, ir.Constant):
                    looked_at.add(param)
            if isinstance(statement, Let) and isinstance(statement.op, ir.MakeClosure):
                owned.update(statement.op.function.captured)
    tainted = set(owned)
    while more := {param for source, param in passed_on if source in tainted} - tainted:
        tainted |= more
    return owned, looked_at - tainted


def _propose(function: Function, makers: set[int]) -> set[Variable]:
    """Borrow each parameter that may be; give those that had better be owned if some caller owns them: those
    whose memory can be used again, those that the function gives back, and tensors that add to the peak of
    memory because the function makes others when it needs them no more."""
    params = function.captured if function.escapes else function.all_params
    for param in params:
        if param.is_managed:
            param.borrowed = True
    eager = {param for param in rebuilt(function) | _given_back(function) if param.borrowed}
    if id(function) in makers:
        dead = outlived(function, makers) & walked(function)
        eager |= {param for param in dead if param.borrowed and param not in function.captured}
    return eager


def _given_back(function: Function) -> set[Variable]:
    """The parameters that a function returns as they are, under this name or another: a caller that passes
    what nothing else holds gets it back so."""
    names = names_of_params(function, set(function.params))
    returned = [each.value for each in function.statements() if isinstance(each, ir.Return)]
    return {param for value in returned for param in names.get(value, ())}


def _lendable(module: ir.Module, function: Function, writes: frozenset[str]) -> set[Variable]:
    """The variables that only look at what a borrowed parameter or a constant global holds. Parts are lent in
    functions that let no such part be written."""
    definitions: dict[Variable, list[ir.Op]] = {}
    for statement in function.statements():
        if isinstance(statement, ir.LetTry):
            definitions.setdefault(statement.var, []).append(ir.Op([]))
        elif isinstance(statement, Let):
            definitions.setdefault(statement.var, []).append(statement.op)
    params = set(function.all_params)
    lent = {
        var
        for var in definitions
        if var.rep == ir.VALUE and var.type not in ir.UNMANAGED and var not in params
    }
    borrowed = {param for param in function.all_params if param.borrowed}

    def stays(var: Variable) -> bool:
        return all(_is_lent(module, op, lent | borrowed, writes) for op in definitions[var])

    while gone := {var for var in lent if not stays(var)}:
        lent -= gone
    return lent


def _looked_into(function: Function) -> set[Variable]:
    """The variables whose parts a function looks at, under this name or another, and those that are such
    parts."""
    found = _taken_apart(function)
    for statement in function.statements():
        part = effects.looks_into(statement.op) if isinstance(statement, Let) else None
        if isinstance(statement, Let) and part is not None:
            found |= {
                statement.var,
                *(arg for arg in [statement.op.args[part[0]]] if isinstance(arg, Variable)),
            }
        elif (
            isinstance(statement, Let) and isinstance(statement.op, ir.Copy) and statement.op.args[0] in found
        ):
            found.add(statement.var)
    return found


def _is_lent(module: ir.Module, op: ir.Op, held: set[Variable], writes: frozenset[str]) -> bool:
    match op:
        case ir.Copy():
            arg = op.args[0]
            return not isinstance(arg, Variable) or arg in held
        case ir.LoadGlobal():
            return effects.is_constant_global(module.program, op.name)
    part = effects.looks_into(op)
    return part is not None and not effects.touched(writes, part[1]) and op.args[part[0]] in held


def _taken(each: ir.Statement, looked_into: set[Variable]) -> list[Variable]:
    """The variables that a statement takes over. What the function looks into it may share with its caller
    when it returns it; what it passes on untouched it had better own."""
    atoms: list[Atom] = []
    match each:
        case Let():
            atoms = [arg for arg, owned in zip(each.op.args, each.op.owned()) if owned]
        case ir.LetTry() | ir.TailCall():
            atoms = [arg for arg, param in zip(each.args, each.function.all_params) if not param.borrowed]
        case ir.TailClosure():
            atoms = each.args
        case ir.Return() if each.value not in looked_into:
            atoms = [each.value]
    return [atom for atom in atoms if isinstance(atom, Variable)]


def _unborrowable(
    module: ir.Module,
    function: Function,
    lent: set[Variable],
    writes: frozenset[str],
    sharing: set[Variable],
    looked_into: set[Variable],
) -> set[Variable]:
    """Borrowed parameters that must be owned after all: this function's own, or those of whom it calls.
    `sharing`: those whose callers only look at what they pass; they may share it."""
    found: set[Variable] = set()
    held = lent | {param for param in function.all_params if param.borrowed}
    for statement in function.statements():
        if (
            isinstance(statement, Let)
            and statement.var.borrowed
            and not _is_lent(module, statement.op, held, writes)
        ):
            found.add(statement.var)
        looks = isinstance(statement, Let) and isinstance(statement.op, ir.Copy) and statement.var in held
        if not looks:
            taken = _taken(statement, looked_into)
            found |= {var for var in taken if var.borrowed and var not in sharing and var not in looked_into}
        if isinstance(statement, ir.TailCall):
            for param, arg in zip(statement.function.all_params, statement.args):
                if param.borrowed and isinstance(arg, Variable) and arg.is_managed and arg not in lent:
                    found.add(param)
    return found
