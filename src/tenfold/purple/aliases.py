"""Other names of what a function itself owns and goes on needing, such as the variable that walks a list that
is used again afterwards: they and the parts that they look at need no share of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tenfold.purple import effects, ir
from tenfold.purple.ir import Block, Function, Let, Variable
from tenfold.purple.liveness import live_after_calls

Definitions: TypeAlias = dict[Variable, list[Let]]


def lent_by_owned(
    function: Function, lent: set[Variable], writes: frozenset[str], held: set[Variable]
) -> dict[Variable, Variable]:
    """By variable: the owned one that holds what it looks at, and is kept until it is looked at no more.
    Where something else holds that too (`held`), to let go of it earlier would free nothing."""
    definitions: Definitions = {}
    others: set[Variable] = set(function.all_params) | lent
    for statement in function.statements():
        if isinstance(statement, Let):
            definitions.setdefault(statement.var, []).append(statement)
        elif isinstance(statement, ir.LetTry):
            others |= {statement.var, statement.ok}
        elif isinstance(statement, ir.TailCall):  # which nothing can be released after
            others.update(arg for arg in statement.args if isinstance(arg, Variable))
    once = _defined_once(function.body, frozenset())[0] - set(function.all_params)
    owners = {var for var in once if len(definitions[var]) == 1} | _settled(function, definitions)
    owners = {var for var in owners if var.is_managed and var not in lent}
    needed = function.once(live_after_calls)

    def is_root(let: Let) -> bool:
        """Whether a definition gives what is owned and held on to, or a part of what something else holds."""
        source = _source(let)
        stays = source in held or (isinstance(let.op, ir.Copy) and source in needed[id(let)])
        return source in owners and stays

    found = {
        var
        for var, lets in definitions.items()
        if var.is_managed and var not in others and all(_looks(let, writes) for let in lets)
    }
    while True:
        roots = _roots(definitions, found, is_root)
        lenders = {
            var: root for var in found for root in roots[var] if root is not None and len(roots[var]) == 1
        }
        if len(lenders) == len(found):
            return lenders
        found = set(lenders)


def _settled(function: Function, definitions: Definitions) -> set[Variable]:
    """The parameters that nothing assigns to, but for the default of a keyword that a call does not give."""
    asks = {let.var: let.op.args[0] for lets in definitions.values() for let in lets if _asks(let)}
    defaults: set[int] = set()
    for statement in function.statements():
        if isinstance(statement, ir.If) and statement.test in asks:
            inside = ir.statements(statement.then)
            defaults |= {
                id(let) for let in inside if isinstance(let, Let) and let.var is asks[statement.test]
            }
    return {
        param
        for param in function.all_params
        if all(id(let) in defaults for let in definitions.get(param, ()))
    }


def _asks(let: Let) -> bool:
    return isinstance(let.op, ir.IsAbsent)


def _looks(let: Let, writes: frozenset[str]) -> bool:
    """Whether a definition gives what another variable is, or a part of it that nothing replaces."""
    if _source(let) is None:
        return False
    part = effects.looks_into(let.op)
    return part is None or not effects.touched(writes, part[1])


def _source(let: Let) -> Variable | None:
    """The variable that a definition gives, or gives a part of."""
    part = (0, effects.NOTHING) if isinstance(let.op, ir.Copy) else effects.looks_into(let.op)
    source = let.op.args[part[0]] if part is not None else None
    return source if isinstance(source, Variable) else None


def _roots(
    definitions: Definitions, found: set[Variable], is_root: Callable[[Let], bool]
) -> dict[Variable, set[Variable | None]]:
    """The owned variables that each variable leads to; None among them where it leads to another."""
    roots: dict[Variable, set[Variable | None]] = {var: set() for var in found}
    changed = True
    while changed:
        changed = False
        for var in found:
            for let in definitions[var]:
                source = _source(let)
                assert source is not None
                more = roots[source] if source in found else {source if is_root(let) else None}
                changed |= not more <= roots[var]
                roots[var] |= more
    return roots


def _defined_once(block: Block, labels: frozenset[str]) -> tuple[set[Variable], frozenset[str]]:
    """The variables whose definitions in a block no loop around it runs again, such as those made on the way
    out of one; and the labels of the loops that may go on after the block starts. `labels`: of those that
    may go on after it ends."""
    found: set[Variable] = set()
    for each in reversed(block):
        match each:
            case Let() if not labels:
                found.add(each.var)
            case ir.If():
                then, after_then = _defined_once(each.then, labels)
                otherwise, after_otherwise = _defined_once(each.otherwise, labels)
                found |= then | otherwise
                labels = after_then | after_otherwise
            case ir.Loop():
                inside, labels = _defined_once(each.body, labels)
                found |= inside
                labels -= {each.label}
            case ir.Continue():
                labels = frozenset((each.label,))
            case ir.Return() | ir.TailCall() | ir.TailClosure():
                labels = frozenset()
    return found, labels
