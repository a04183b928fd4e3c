"""Tensors that die at an operator whose result may take over their memory."""

from __future__ import annotations

import functools
from collections import Counter

from tenfold.base.dtypes import float32
from tenfold.base.errors import TenfoldError
from tenfold.flat.ir import TensorType
from tenfold.ops.table import SLOT
from tenfold.purple import ir
from tenfold.purple.ir import Atom, Block, Drop, Function, Let, Variable
from tenfold.purple.names import row_of
from tenfold.purple.natives import gives_new_memory


def reuse(function: Function) -> None:
    """Find operators one of whose operands is a tensor that was made for it alone.

    Nothing else has seen it, so no view and no gradient can share it. Whether its shape fits is known when
    the program runs.
    """
    made: Counter[Variable] = Counter()
    for statement in function.statements():
        if isinstance(statement, Let) and statement.var.type == "tensor":
            fresh = isinstance(statement.op, ir.Prim) and gives_new_memory(statement.op.name)
            made[statement.var] += 1 if fresh else 2
    if 1 in made.values():
        uses = Counter(var for statement in function.statements() for var in _operands(statement))
        alone = {var for var, count in made.items() if count == 1 and uses[var] == 1 and var.is_managed}
        _reuse_in(function.body, alone)
        function.changed()


def _operands(each: ir.Statement) -> list[Variable]:
    atoms: list[Atom] = []
    match each:
        case Let():
            atoms = each.op.args
        case ir.LetTry() | ir.TailCall() | ir.TailClosure():
            atoms = each.args
        case ir.If():
            atoms = [each.test]
        case ir.Return():
            atoms = [each.value]
        case ir.Uncons():
            atoms = [each.pair]
    return [atom for atom in atoms if isinstance(atom, Variable)]


def _reuse_in(block: Block, alone: set[Variable]) -> None:
    for i in range(len(block) - 1, -1, -1):
        each = block[i]
        if isinstance(each, ir.If):
            _reuse_in(each.then, alone)
            _reuse_in(each.otherwise, alone)
        elif isinstance(each, ir.Loop):
            _reuse_in(each.body, alone)
        elif isinstance(each, Let) and isinstance(each.op, ir.Prim) and not each.op.keywords:
            dying = _dying_operand(each.op, alone)
            if dying is None:
                continue
            operand = each.op.args[dying]
            drop = next(
                k for k in range(i + 1, len(block)) if isinstance(d := block[k], Drop) and d.var is operand
            )
            del block[drop]
            each.on_error = tuple(var for var in each.on_error if var is not operand)
            each.op = ir.Reuse(each.op.args, each.op.name, dying)


def _dying_operand(op: ir.Prim, alone: set[Variable]) -> int | None:
    if len(op.args) == 1 and _has_unary_form_in_place(op.name):
        return 0 if op.args[0] in alone else None
    if op.name in ("+", "-", "*", "/") and len(op.args) == 2:
        for i in range(2 if op.name in "+*" else 1):
            if op.args[i] in alone:
                return i
    return None


@functools.cache
def _has_unary_form_in_place(name: str) -> bool:
    """Whether a primitive is an operator of one tensor alone that has a form in place, and whose result has
    that tensor's dtype and shape: `logical_not` of floats, which gives bools, is none."""
    found = row_of(name)
    if found is None or found[1] or len(found[0]) != 1:
        return False
    (row,) = found[0]
    if not row.inplace or len(row.schema.arguments) != 1 or row.schema.is_view or row.host or row.random:
        return False
    given = TensorType(float32, (2, 3))
    try:
        return row.call((given,), (SLOT,)).result_types == (given,)
    except TenfoldError:
        return False
