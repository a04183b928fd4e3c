"""Parts lent by what the function itself owns: `x = (car y)`, where `x` is only looked at while `y` stays
owned and nothing can replace what `y` holds, needs no share of its own."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from tenfold.purple import effects, ir
from tenfold.purple.ir import Block, Drop, Function, Let, Variable


class Path(NamedTuple):
    """A part, who owns what it is a part of, and what lies between: the kinds of containers that lead
    there."""

    part: Variable
    owner: Variable
    kinds: frozenset[str]


class Taken(Exception):
    """The part, or what lends it, is needed as one's own."""


def lend(function: Function, writing: effects.Writing) -> None:
    """Mark the parts that are lent, and take their releases away."""
    made: dict[Variable, int] = {}
    for statement in function.statements():
        if isinstance(statement, Let):
            made[statement.var] = made.get(statement.var, 0) + 1
    lent: Lent = {}
    _lend_in(function.body, {var for var, count in made.items() if count == 1}, writing, lent)
    if lent:
        function.body = _without_releases(function.body, lent)


Lent: TypeAlias = dict[Variable, Path]


def _lend_in(block: Block, once: set[Variable], writing: effects.Writing, lent: Lent) -> None:
    for i, each in enumerate(block):
        if isinstance(each, ir.If):
            _lend_in(each.then, once, writing, lent)
            _lend_in(each.otherwise, once, writing, lent)
        elif isinstance(each, ir.Loop):
            _lend_in(each.body, once, writing, lent)
        elif isinstance(each, Let) and each.var in once and each.var.is_managed:
            part = effects.looks_into(each.op)
            lender = each.op.args[part[0]] if part is not None else None
            if (
                part is not None
                and isinstance(lender, Variable)
                and lender is not each.var
                and not _is_alias(lender)
            ):
                before = lent.get(lender, Path(lender, lender, frozenset()))
                path = Path(each.var, before.owner, before.kinds | part[1])
                try:
                    dies = _follow(block[i + 1 :], path, writing, is_live=True)
                except Taken:
                    continue
                if not dies:  # it was released on every path
                    each.var.lender = lender
                    lent[each.var] = path


def _is_alias(var: Variable) -> bool:
    """Whether it is another name of what the function owns under a name that may go first."""
    return var.lender is not None and var.lender is not var and var.lender.is_managed


def _follow(block: Block, path: Path, writing: effects.Writing, is_live: bool) -> bool:
    """Whether the part is still to be released after the block."""
    for each in block:
        if not is_live:
            return False
        if isinstance(each, Drop):
            if each.var is path.owner:
                raise Taken
            is_live = each.var is not path.part
        elif isinstance(each, ir.If):
            then = _follow(each.then, path, writing, is_live)
            otherwise = _follow(each.otherwise, path, writing, is_live)
            ends = [ir.leaves(each.then), ir.leaves(each.otherwise)]
            is_live = (then and not ends[0]) or (otherwise and not ends[1])
            if is_live and not (ends[0] or ends[1]) and then != otherwise:
                raise Taken
        elif isinstance(each, ir.Loop):
            is_live = _follow(each.body, path, writing, is_live)
        elif isinstance(each, ir.Continue):
            return False  # the next turn finds it as this one did
        else:
            _check(each, path, writing)
    return is_live


def _check(each: ir.Statement, path: Path, writing: effects.Writing) -> None:
    """Refuse statements that take the part or its owner over, or may replace what the owner holds."""
    part, owner, kinds = path
    if effects.touched(effects.writes(each, writing), kinds):
        raise Taken
    taken: list[ir.Atom] = []
    match each:
        case Let():
            taken = [arg for arg, owned in zip(each.op.args, each.op.owned()) if owned]
            if each.var is owner:
                raise Taken
        case ir.LetTry() | ir.TailCall():
            taken = [arg for arg, param in zip(each.args, each.function.all_params) if not param.borrowed]
            if isinstance(each, ir.TailCall) and (part in each.args):
                raise Taken
        case ir.Uncons():
            taken = [each.pair]
        case ir.Dup():
            taken = [each.var] if each.var is part else []
        case ir.Return():
            taken = [each.value]
        case ir.TailClosure():
            taken = each.args
    if part in taken or owner in taken:
        raise Taken


def _without_releases(block: Block, lent: Lent) -> Block:
    kept: Block = []
    for each in block:
        match each:
            case Drop() if each.var in lent:
                continue
            case Let():
                each.on_error = tuple(var for var in each.on_error if var not in lent)
            case ir.If():
                each.then = _without_releases(each.then, lent)
                each.otherwise = _without_releases(each.otherwise, lent)
            case ir.Loop():
                each.body = _without_releases(each.body, lent)
        kept.append(each)
    return kept
