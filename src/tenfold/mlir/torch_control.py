"""Choices and loops in the torch dialect: `prim.If` and `prim.Loop`, whose regions hold the programs inside a
node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.base.errors import UnsupportedError
from tenfold.flat.ir import TensorType
from tenfold.flat.sizes import Open
from tenfold.trace.control import COND, ControlNode, Part

if TYPE_CHECKING:
    from tenfold.mlir.torch_emitter import Emitter

# A loop ends by its condition alone.
FOREVER = (1 << 63) - 1


def require_drawless(node: ControlNode) -> None:
    """Refuse programs inside that draw: the dialect's ops have no state that a branch could leave alone."""
    name = node.callee.name
    if node.callee.random:
        raise UnsupportedError(
            f"{name} with random numbers inside has no word in the torch dialect",
            help="draw outside and hand the draws in, or emit StableHLO",
        ).located(name, node.source)


def emit(emitter: Emitter, node: ControlNode) -> Sequence[Any]:
    """The node's results."""
    inputs = [emitter.value(operand) for operand in node.inputs]
    return _choice(emitter, node, inputs) if node.callee.name == COND else _loop(emitter, node, inputs)


def _choice(emitter: Emitter, node: ControlNode, inputs: list[Any]) -> Sequence[Any]:
    types = [emitter.tensor(result_type) for result_type in node.callee.result_types]
    chosen = emitter.create("torch.prim.If", types, [_bool(emitter, inputs[0])], regions=2)
    on_false, on_true = node.parts
    for region, part in zip(chosen.owner.regions, (on_true, on_false), strict=True):
        with emitter.ir.InsertionPoint(region.blocks.append()):
            inner = emitter.inner()
            inner.create("torch.prim.If.yield", [], inner_results(inner, part, inputs))
    return chosen


def _loop(emitter: Emitter, node: ControlNode, inputs: list[Any]) -> Sequence[Any]:
    condition, body = node.parts
    kinds, remaining = node.callee.result_types, iter(inputs)
    starts = [
        _start(emitter, node.starts[i], type) if i in node.starts else next(remaining)
        for i, type in enumerate(kinds)
    ]
    types = [emitter.tensor(kind) for kind in kinds]
    (holds,) = inner_results(emitter.inner(), condition, starts)
    operands = [emitter.constant(FOREVER), _bool(emitter, holds), *starts]
    loop = emitter.create("torch.prim.Loop", types, operands, regions=1)
    block = loop.owner.regions[0].blocks.append(emitter.parsed("!torch.int"), *types)
    with emitter.ir.InsertionPoint(block):
        inner = emitter.inner()
        carried = inner_results(inner, body, list(block.arguments)[1:])
        (again,) = inner_results(inner, condition, carried)
        inner.create("torch.prim.Loop.condition", [], [_bool(inner, again), *carried])
    return loop


def _start(emitter: Emitter, number: Any, type: TensorType) -> Any:
    """The number with which something carried starts, as a tensor."""
    if not isinstance(number, Open):
        return emitter.literal(np.array(number, type.dtype.numpy), type, "start")
    operand = emitter.sizes.operand(number, type.dtype.kind)
    return emitter.create("torch.prim.NumToTensor.Scalar", [emitter.tensor(type)], [operand])[0]


def inner_results(emitter: Emitter, part: Part, values: Sequence[Any]) -> list[Any]:
    """A program inside, emitted where we are, on values of the node: what it gives."""
    program = part.trace
    emitter.leaves.update((leaf, values[place]) for leaf, place in zip(program.leaves, part.places))
    for node in program.nodes:
        emitter.node(node)
    outputs = [
        emitter.results[program.nodes[place], index]
        if place >= 0
        else emitter.leaves[program.leaves[-1 - place]]
        for place, index in program.outputs
    ]
    return [outputs[i] if i >= 0 else values[-1 - i] for i in part.results]


def _bool(emitter: Emitter, tensor: Any) -> Any:
    return emitter.create("torch.aten.Bool.Tensor", [emitter.parsed("!torch.bool")], [tensor])[0]
