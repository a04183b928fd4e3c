"""The memory of pairs and records that die, kept for the next one of their size.

As in Perceus: where a pair or record dies and on some way from there one of its size is made, a cell keeps
the memory in between. Where the dead one is not proved unique its count decides: the cell is empty if
something else holds it. On ways that make nothing of that size the memory is given back first."""

from __future__ import annotations

from collections.abc import Iterator

from tenfold.purple import core, ir
from tenfold.purple.ir import Block, Drop, Function, Let, Variable

LISTS = ("pair", "list")
SHAPES = ("cons", "%hole")


def reuse_cells(function: Function, number: int) -> int:
    """Keep memory in the function's blocks. The numbers of new variables go on from `number`."""
    cells = Cells(number)
    cells.block(function.body, {})
    return cells.number


class Cells:
    """`block` visits what dies; records are known by the fields that were looked at before."""

    def __init__(self, number: int):
        self.number = number

    def block(self, block: Block, records: dict[Variable, core.DefType]) -> None:
        for i, each in enumerate(block):
            match each:
                case Let(op=ir.FieldRef() as op) if isinstance(op.args[0], Variable):
                    records[op.args[0]] = op.type
                case ir.If():
                    self.block(each.then, dict(records))
                    self.block(each.otherwise, dict(records))
                case ir.Loop():
                    self.block(each.body, {})
            size = _dying(each, records)
            if size and _is_made(block[i + 1 :], size):
                cell = self.keep(each, records)
                block[i + 1 :] = _placed(block[i + 1 :], cell, size)

    def keep(self, each: ir.Statement, records: dict[Variable, core.DefType]) -> Variable:
        self.number += 1
        cell = Variable("cell", self.number, each.place)  # type: ignore[union-attr]
        cell.type = ir.CELL
        match each:
            case ir.Uncons():
                each.cell = cell
            case Drop():
                each.cell, each.shape = cell, records.get(each.var)
            case Let(op=ir.Take() as op):
                op.cell = cell
        return cell


def rebuilt(function: Function) -> set[Variable]:
    """The parameters that are taken apart, at once or along their rests, before something of the size of
    their parts is made: its memory can be theirs, if they are owned."""
    sources: dict[Variable, Variable] = {}
    for statement in function.statements():
        match statement:
            case Let(
                op=ir.Copy(args=[Variable() as source]) | ir.Prim(name="cdr", args=[Variable() as source])
            ):
                sources.setdefault(statement.var, source)
    found: set[Variable] = set()
    for var in _taken_apart(function.body):
        seen: set[Variable] = set()
        while var in sources and var not in seen and var not in function.params:
            seen.add(var)
            var = sources[var]
        if var in function.params:
            found.add(var)
    return found


def _taken_apart(block: Block) -> Iterator[Variable]:
    """The variables whose parts are looked at before something of their size is made."""
    for i, each in enumerate(block):
        match each:
            case Let(op=ir.FieldRef() as op) if isinstance(op.args[0], Variable):
                if _is_made(block[i + 1 :], ir.words(op.type)):
                    yield op.args[0]
            case Let(op=ir.Prim(name="car" | "cdr", args=[Variable() as pair])):
                if _is_made(block[i + 1 :], ir.words(None)):
                    yield pair
            case ir.If():
                yield from _taken_apart(each.then)
                yield from _taken_apart(each.otherwise)
            case ir.Loop():
                yield from _taken_apart(each.body)


def _dying(each: ir.Statement, records: dict[Variable, core.DefType]) -> int:
    """The words of a pair or record that dies in a statement; 0 where none does."""
    match each:
        case ir.Uncons() | Let(op=ir.Take()):
            return ir.words(None)
        case Drop(var=var) if var in records:
            return ir.words(records[var])
        case Drop(var=var) if var.type in LISTS:
            return ir.words(None)
    return 0


def _made(each: ir.Statement) -> int:
    """The words of a pair or record that a statement makes in new memory; 0 where it makes none."""
    match each:
        case Let(op=ir.Prim(name=name)) if name in SHAPES:
            return ir.words(None)
        case Let(op=ir.MakeRecord() as op) if op.args:
            return ir.words(op.type)
    return 0


def _is_made(block: Block, size: int) -> bool:
    """Whether something of this size is made on some way through a block, outside loops."""
    for each in block:
        if _made(each) == size:
            return True
        if isinstance(each, ir.If) and (_is_made(each.then, size) or _is_made(each.otherwise, size)):
            return True
        if isinstance(each, ir.Loop) or (isinstance(each, ir.If) and _loops(each)):
            return False
    return False


def _loops(each: ir.If) -> bool:
    return any(
        isinstance(s, ir.Loop) for branch in (each.then, each.otherwise) for s in ir.statements(branch)
    )


def _placed(block: Block, cell: Variable, size: int) -> Block:
    """The block with the cell used up on each way through it."""
    out: Block = []
    for i, each in enumerate(block):
        if isinstance(each, Let) and _made(each) == size:
            assert isinstance(each.op, ir.Prim | ir.MakeRecord)
            op = ir.Rebuild([*each.op.args, cell], each.op)
            return [*out, Let(each.var, op, each.place, each.on_error), *block[i + 1 :]]
        out.append(each)
        if isinstance(each, ir.If):
            if _is_made(each.then, size) or _is_made(each.otherwise, size):
                each.then = _ended(each.then, cell, size, each.place)
                each.otherwise = _ended(each.otherwise, cell, size, each.place)
                return [*out, *block[i + 1 :]]
            each.then = _carried(each.then, cell, each.place)
            each.otherwise = _carried(each.otherwise, cell, each.place)
        elif isinstance(each, Let) and ir.can_fail(each.op):
            each.on_error = (*each.on_error, cell)
    raise AssertionError("nothing of this size is made")


def _ended(block: Block, cell: Variable, size: int, place: ir.Place) -> Block:
    if _is_made(block, size):
        return _placed(block, cell, size)
    return [Drop(cell, "memory that is not used again in this branch", place), *block]


def _carried(block: Block, cell: Variable, place: ir.Place) -> Block:
    """A block in which the cell is not used: control leaves it with the cell, or not at all."""
    if ir.leaves(block):
        return [Drop(cell, "memory that is not used again in this branch", place), *block]
    for each in block:
        if isinstance(each, Let) and ir.can_fail(each.op):
            each.on_error = (*each.on_error, cell)
        elif isinstance(each, ir.If):
            each.then = _carried(each.then, cell, place)
            each.otherwise = _carried(each.otherwise, cell, place)
    return block
