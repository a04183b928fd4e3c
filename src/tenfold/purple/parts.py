"""Parts of pairs without counting: they move out of a pair that dies. And lists that die where they are
reversed, which become what is made of them."""

from __future__ import annotations

from tenfold.purple import ir
from tenfold.purple.ir import Block, Drop, Let, Variable
from tenfold.purple.natives import Form


def specialised(block: Block) -> Block:
    """`car` and `cdr` followed by the pair's drop become one step that needs no counting where the pair is
    unique."""
    out: Block = []
    for each in block:
        if isinstance(each, ir.If):
            each.then, each.otherwise = specialised(each.then), specialised(each.otherwise)
        elif isinstance(each, ir.Loop):
            each.body = specialised(each.body)
        elif isinstance(each, Drop):
            _fuse(each, out)
            continue
        out.append(each)
    return out


def _is_part(op: ir.Op) -> bool:
    return isinstance(op, ir.Prim) and op.name in ("car", "cdr") and len(op.args) == 1


def _part(each: ir.Statement, pair: Variable) -> str:
    if isinstance(each, Let) and _is_part(each.op):
        assert isinstance(each.op, ir.Prim)
        is_lent = each.var.lender is not None or each.var.borrowed
        fits = each.op.args[0] is pair and each.var.rep == ir.VALUE and each.var is not pair and not is_lent
        return each.op.name if fits else ""
    return ""


def _reverses(each: Let, dying: Variable) -> bool:
    op = each.op
    return isinstance(op, ir.Prim) and op.name == "reverse" and op.args == [dying] and not op.keywords


def _fuse(drop: Drop, out: Block) -> None:
    """Join a drop with the `car` and `cdr` of the same pair before it."""
    pair = drop.var
    last = out[-1] if out else None
    if isinstance(last, Let) and _reverses(last, pair):
        last.op = ir.Reverse([pair])
        last.on_error = tuple(var for var in last.on_error if var is not pair)
        return
    part = _part(last, pair) if last is not None else ""
    if not isinstance(last, Let) or not part:
        out.append(drop)
        return
    for i in range(len(out) - 2, -1, -1):
        other = out[i]
        if not isinstance(other, Let):
            break
        first = _part(other, pair)
        if first and first != part and other.var is not last.var:
            between = out[i + 1 : -1]
            _uncons(drop, other, last, between)
            checked = Let(_nothing(other), _check(pair, first), other.place, other.on_error)
            car, cdr = (other, last) if first == "car" else (last, other)
            out[i:] = [checked, ir.Uncons(car.var, cdr.var, pair, last.place), *between]
            return
        if not (isinstance(other.op, ir.Prim) and other.op.name in QUIET) or pair in other.op.args:
            break
    out[-1] = Let(_nothing(last), _check(pair, part), last.place, last.on_error)
    out.append(Let(last.var, ir.Take([pair], part), last.place))


# Primitives that change nothing and let nothing run: a part of a pair may be taken before them.
QUIET = ("car", "cdr", "+", "-", "*", "=", "<", ">", "<=", ">=", "eq?", "null?", "pair?", "not", "cons")


def _check(pair: Variable, part: str) -> ir.Prim:
    return ir.Prim(
        [pair], f"%check-{part}", (), Form(f'pu_check_pair({{0}}, "{part}")', (ir.VALUE,), ir.VALUE, "zero")
    )


def _uncons(drop: Drop, first: Let, last: Let, between: Block) -> None:
    """What stands between the two now runs when the pair is gone and its later part is there."""
    for each in between:
        assert isinstance(each, Let)
        kept = tuple(var for var in each.on_error if var is not drop.var)
        each.on_error = (*kept, last.var) if last.var.is_managed else kept


def _nothing(let: Let) -> Variable:
    unit = Variable("is_pair", let.var.number, let.place)
    unit.type = "void"
    return unit
