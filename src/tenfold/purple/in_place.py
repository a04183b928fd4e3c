"""Operations that give back their operand: `tensor-add!` and its like, `requires-grad!` and `evaluate!`.

In C they give nothing of their own. What a program does with their result it does with the operand, so that
ownership need know nothing of them."""

from __future__ import annotations

from collections import Counter

from tenfold.purple import ir
from tenfold.purple.ir import Atom, Block, Let, Variable
from tenfold.purple.names import row_of
from tenfold.purple.natives import gives_back


def split_in_place(module: ir.Module) -> None:
    """Make the result of each such operation another name of its operand."""
    functions = [*module.functions, module.main]
    variables = [var for each in functions for var in (*each.all_params, *_assigned(each.body))]
    number = max((var.number for var in variables), default=0)
    for function in functions:
        defined = Counter([*function.all_params, *_assigned(function.body)])
        split = Split({var for var, count in defined.items() if count == 1}, _read(function.body), number)
        split.block(function.body)
        number = split.number
        if split.names:
            _rename(function.body, split.names)


def _assigned(block: Block) -> list[Variable]:
    found: list[Variable] = []
    for statement in ir.statements(block):
        if isinstance(statement, Let):
            found.append(statement.var)
        elif isinstance(statement, ir.LetTry):
            found += [statement.ok, statement.var]
    return found


def _read(block: Block) -> set[Atom]:
    """The variables that some statement reads."""
    found: set[Atom] = set()
    for statement in ir.statements(block):
        found.update(_atoms(statement))
    return found


def _atoms(each: ir.Statement) -> list[Atom]:
    match each:
        case Let():
            return each.op.args
        case ir.LetTry() | ir.TailCall() | ir.TailClosure():
            return each.args
        case ir.If():
            return [each.test]
        case ir.Return():
            return [each.value]
    return []


class Split:
    """One function. `names`: results that are their operands, which are defined once as they are."""

    def __init__(self, once: set[Variable], read: set[Atom], number: int):
        self.once, self.read, self.number = once, read, number
        self.names: dict[Atom, Atom] = {}

    def block(self, block: Block) -> None:
        made: Block = []
        for each in block:
            made.append(each)
            match each:
                case Let(op=ir.Prim() as op) if gives_back(op.name) and op.args:
                    self.split(each, op.args[_operand(op)], made)
                case ir.If():
                    self.block(each.then)
                    self.block(each.otherwise)
                case ir.Loop():
                    self.block(each.body)
        block[:] = made

    def split(self, each: Let, operand: Atom, made: Block) -> None:
        result = each.var
        self.number += 1
        each.var = Variable("done", self.number, each.place)
        operand = self.names.get(operand, operand)
        if result in self.once and operand in self.once:
            self.names[result] = operand
        elif result in self.read:
            made.append(Let(result, ir.Copy([operand]), each.place))


def _rename(block: Block, names: dict[Atom, Atom]) -> None:
    for statement in ir.statements(block):
        renamed = [names.get(atom, atom) for atom in _atoms(statement)]
        match statement:
            case Let():
                statement.op.args = renamed
            case ir.LetTry() | ir.TailCall() | ir.TailClosure():
                statement.args = renamed
            case ir.If():
                statement.test = renamed[0]
            case ir.Return():
                statement.value = renamed[0]


def _operand(op: ir.Prim) -> int:
    """Where the operand is that an operation gives back: first, unless it is given by keyword."""
    row = row_of(op.name)
    if row is None or len(op.args) > len(op.keywords):
        return 0
    names = [name.replace("-", "_") for name in op.keywords]
    first = row[0][0].schema.arguments[0].name
    return names.index(first) if first in names else 0
