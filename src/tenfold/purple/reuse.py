"""Tensors that die at an operator whose result may take over their memory."""

from __future__ import annotations

from collections import Counter

from tenfold.purple import ir
from tenfold.purple.ir import Atom, Block, Drop, Function, Let, Variable
from tenfold.purple.natives import gives_new_memory

IN_PLACE = tuple(
    f"tensor-{name}"
    for name in (
        "relu", "tanh", "sigmoid", "exp", "neg", "abs", "sqrt", "rsqrt", "floor", "ceil", "sin", "cos",
        "log", "square", "sign", "reciprocal", "trunc", "erf",
    )
)  # fmt: skip


def reuse(function: Function) -> None:
    """Find operators one of whose operands is a tensor that was made for it alone: nothing else has seen it,
    so no view
    and no gradient can share it. Whether its shape fits is known when the program runs."""
    uses: Counter[Variable] = Counter()
    made: Counter[Variable] = Counter()
    for each in ir.statements(function.body):
        uses.update(var for var in _operands(each))
        if isinstance(each, Let):
            fresh = (
                isinstance(each.op, ir.Prim) and gives_new_memory(each.op.name) and each.var.type == "tensor"
            )
            made[each.var] += 1 if fresh else 2
    alone = {var for var, count in made.items() if count == 1 and uses[var] == 1 and var.is_managed}
    _reuse_in(function.body, alone)


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
    if op.name in IN_PLACE and len(op.args) == 1:
        return 0 if op.args[0] in alone else None
    if op.name in ("+", "-", "*", "/") and len(op.args) == 2:
        for i in range(2 if op.name in "+*" else 1):
            if op.args[i] in alone:
                return i
    return None
