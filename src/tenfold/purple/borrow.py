"""Borrowing across functions, decided before ownership: parameters that a function only looks at stay their
caller's, and variables that look into them, or into a global that never changes, need no share of their own.

As in Lean: every parameter that may be is borrowed, until some use takes it over (it is returned, stored,
captured, or passed on to one who owns it), or until a call in tail position would have to release it
afterwards."""

from __future__ import annotations

from tenfold.purple import effects, ir
from tenfold.purple.ir import Atom, Function, Let, Variable
from tenfold.purple.usage import is_about_tensors, uses_tensors

# Types through which no tensor can be held.
WITHOUT_TENSORS = ("int", "float", "number", "string", "symbol", "keyword", "char", "bool")


def borrow(module: ir.Module) -> None:
    """Mark the borrowed parameters and the variables that are lent."""
    functions = [*module.functions, module.main]
    makers = _tensor_makers(module) if uses_tensors(module.program) else set()
    held = _held_by_globals(module, functions)
    for function in functions:
        _propose(function, id(function) in makers, held)
    writing = effects.writers(module)
    _give_up_tail_calls(functions)
    changed = True
    while changed:
        changed = False
        for function in functions:
            lent = _lendable(module, function, writing[id(function)])
            for param in _unborrowable(module, function, lent, writing[id(function)]):
                param.borrowed = False
                changed = True
    number = max((var.number for function in functions for var in _all(function)), default=0)
    for function in functions:
        for var in _lendable(module, function, writing[id(function)]):
            var.lender = var
        number = _share_results(function.body, number)


def _give_up_tail_calls(functions: list[Function]) -> None:
    """Make a tail call a plain one where it would have to hand over what the callee only looks at, if that
    can add no more than one frame to the stack: the callee gives no call back, and calls none of those
    that lead to it."""
    reach: dict[int, set[int]] = {id(function): set() for function in functions}
    changed = True
    while changed:
        changed = False
        for function in functions:
            for each in ir.statements(function.body):
                if isinstance(each, ir.TailCall):
                    more = {id(each.function)} | reach[id(each.function)]
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
    return number


def _is_owned(atom: Atom) -> bool:
    return isinstance(atom, Variable) and atom.is_managed


def _all(function: Function) -> list[Variable]:
    return function.all_params + [each.var for each in ir.statements(function.body) if isinstance(each, Let)]


def _share_results(block: ir.Block, number: int) -> int:
    """Give the caller a share of its own where the result is only lent. The numbers of variables go on
    from `number`."""
    for i in range(len(block) - 1, -1, -1):
        match block[i]:
            case ir.Return(value=Variable() as value) if value.borrowed or value.lender is not None:
                number += 1
                result = Variable(value.name, number, value.place)
                result.type = value.type
                block[i : i + 1] = [Let(result, ir.Share([value]), value.place), ir.Return(result)]
            case ir.If(then=then, otherwise=otherwise):
                number = _share_results(otherwise, _share_results(then, number))
            case ir.Loop(body=body):
                number = _share_results(body, number)
    return number


def _held_by_globals(module: ir.Module, functions: list[Function]) -> set[Variable]:
    """The parameters for which every call passes a constant, or what a global goes on holding: to own them
    would free nothing earlier."""
    found: set[Variable] = set()
    others: set[Variable] = set()
    for function in functions:
        definitions: dict[Variable, list[ir.Op]] = {}
        for each in ir.statements(function.body):
            if isinstance(each, Let):
                definitions.setdefault(each.var, []).append(each.op)
        for each in ir.statements(function.body):
            called = effects.passes(each)
            for param, arg in zip(called[0].all_params, called[1]) if called is not None else ():
                made = definitions.get(arg, []) if isinstance(arg, Variable) else []
                loads = [isinstance(op, ir.LoadGlobal) and _is_constant(module, op) for op in made]
                held = isinstance(arg, ir.Constant) or (bool(loads) and all(loads))
                (found if held else others).add(param)
    return found - others


def _is_constant(module: ir.Module, op: ir.LoadGlobal) -> bool:
    return effects.is_constant_global(module.program, op.name)


def _propose(function: Function, makes_tensors: bool, held: set[Variable]) -> None:
    """Borrow each parameter that may be. Where tensors are made meanwhile, whoever is called must be able
    to let go of those it was given: they would add to the peak of memory. Those `held` stay in any case."""
    params = function.captured if function.escapes else function.all_params
    walked = _walked(function) if makes_tensors else set()
    for param in params:
        allowed = param.type in WITHOUT_TENSORS or param in function.captured or param not in walked
        allowed = allowed or param in held
        if param.is_managed and (allowed or not makes_tensors):
            param.borrowed = True


def _walked(function: Function) -> set[Variable]:
    """The variables that may be tensors, or collections of them: all but those of which only fields are
    looked at, and procedures that are called."""
    found = {param for param in function.all_params if param.type in ("tensor", "list", "pair", "vector")}
    for each in ir.statements(function.body):
        used: list[Atom] = []
        match each:
            case Let(op=ir.FieldRef() | ir.IsRecord() | ir.Truth() | ir.CallKnown() | ir.CallWithin()):
                pass
            case Let(op=ir.CallClosure() as op):
                used = op.args[1:]
            case Let(op=ir.Prim() as op) if op.name not in ("unbox", "set-box!", "null?"):
                used = op.args
            case Let(op=ir.Copy() | ir.MakeClosure() as op):
                used = op.args
        found.update(atom for atom in used if isinstance(atom, Variable))
    return found


def _tensor_makers(module: ir.Module) -> set[int]:
    """The ids of functions in which tensors may be made, by themselves or by whom they call."""
    found: set[int] = set()
    changed = True
    while changed:
        changed = False
        for function in [*module.functions, module.main]:
            if id(function) not in found and any(
                _makes_tensor(s, found) for s in ir.statements(function.body)
            ):
                found.add(id(function))
                changed = True
    return found


def _makes_tensor(each: ir.Statement, makers: set[int]) -> bool:
    called = effects.passes(each)
    if called is not None:
        return id(called[0]) in makers
    match each:
        case Let(op=ir.Prim() as op):
            mixed = op.name in effects.OPERATORS and each.var.type in ("any", "tensor")
            return is_about_tensors(op.name) or mixed or op.name in ("apply", "%apply-tail")
        case Let(op=ir.CallClosure() | ir.Foreign()) | ir.TailClosure():
            return True
    return False


def _lendable(module: ir.Module, function: Function, writes: frozenset[str]) -> set[Variable]:
    """The variables that only look at what a borrowed parameter or a constant global holds. Parts are lent in
    functions that let no such part be written."""
    looked_into = _looked_into(function)
    definitions: dict[Variable, list[ir.Op]] = {}
    consumed: set[Variable] = set()
    copies: list[tuple[Variable, Variable]] = []
    params = set(function.all_params)
    for each in ir.statements(function.body):
        if isinstance(each, ir.LetTry):
            definitions.setdefault(each.var, []).append(ir.Op([]))
        if isinstance(each, Let):
            definitions.setdefault(each.var, []).append(each.op)
            if isinstance(each.op, ir.Copy):
                if isinstance(each.op.args[0], Variable):
                    copies.append((each.var, each.op.args[0]))
                continue
        consumed.update(_taken(each, looked_into))
    lent = {
        var
        for var in definitions
        if var.rep == ir.VALUE and var.type not in ir.UNMANAGED and var not in params and var not in consumed
    }
    borrowed = {param for param in function.all_params if param.borrowed}

    def stays(var: Variable) -> bool:
        if any(source is var and target not in lent and target.is_managed for target, source in copies):
            return False
        return all(_is_lent(module, op, lent | borrowed, writes) for op in definitions[var])

    while gone := {var for var in lent if not stays(var)}:
        lent -= gone
    return lent


def _looked_into(function: Function) -> set[Variable]:
    """The variables whose parts a function looks at, and those that are such parts."""
    found: set[Variable] = set()
    for each in ir.statements(function.body):
        if isinstance(each, Let) and effects.gives_part(each.op):
            found |= {each.var, *(arg for arg in each.op.args[:1] if isinstance(arg, Variable))}
        elif isinstance(each, Let) and isinstance(each.op, ir.Copy) and each.op.args[0] in found:
            found.add(each.var)
    return found


def _is_lent(module: ir.Module, op: ir.Op, held: set[Variable], writes: frozenset[str]) -> bool:
    match op:
        case ir.Copy():
            arg = op.args[0]
            return not isinstance(arg, Variable) or arg in held
        case ir.LoadGlobal():
            return effects.is_constant_global(module.program, op.name)
    kind = effects.gives_part(op)
    return bool(kind) and not effects.touched(writes, (kind,)) and op.args[0] in held


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
    module: ir.Module, function: Function, lent: set[Variable], writes: frozenset[str]
) -> list[Variable]:
    """Borrowed parameters that must be owned after all: this function's own, or those of whom it calls."""
    found: list[Variable] = []
    looked_into = _looked_into(function)
    held = lent | {param for param in function.all_params if param.borrowed}
    for each in ir.statements(function.body):
        if isinstance(each, Let) and each.var.borrowed and not _is_lent(module, each.op, held, writes):
            found.append(each.var)
        looks = isinstance(each, Let) and isinstance(each.op, ir.Copy) and each.var in held
        if not looks:
            found += [var for var in _taken(each, looked_into) if var.borrowed]
        if isinstance(each, ir.TailCall):
            for param, arg in zip(each.function.all_params, each.args):
                if param.borrowed and isinstance(arg, Variable) and arg.is_managed and arg not in lent:
                    found.append(param)
    return found
