"""How Shardy shards the operations of a program: told by its propagation, run on a copy of the program.
`emitter` is that of `stablehlo.py`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from tenfold.base.meshes import Mesh, Sharding
from tenfold.base.warning import warn

MARK = "tenfold.number"
PROPAGATION = "builtin.module(sdy-propagation-pipeline)"
Axes = tuple[str, ...]  # the names of the axes that split a dimension, the outermost first


class Layout(NamedTuple):
    """How the operands and the result of an op are sharded."""

    operands: list[list[Axes]]
    result: list[Axes]


def _propagation(b: Any) -> Any:
    """Shardy's own pipeline of passes; None where jaxlib has none of that name."""
    try:
        return b.passmanager.PassManager.parse(PROPAGATION)
    except ValueError:
        warn("jaxlib has no pass that tells shardings: gradients are all-reduced, which sends more bytes")
        return None


def layouts_of(emitter: Any, module: Any, operations: Sequence[Any]) -> list[Layout | None]:
    """How Shardy shards these operations of a module; None where it splits an axis, and where jaxlib cannot
    tell."""
    ir, propagation = emitter.b.ir, _propagation(emitter.b)
    if propagation is None:
        return [None] * len(operations)
    number = ir.IntegerType.get_signless(64)
    for i, operation in enumerate(operations):
        operation.attributes[MARK] = ir.IntegerAttr.get(number, i)
    copy = module.operation.clone()
    for operation in operations:
        del operation.attributes[MARK]
    propagation.run(copy)
    layouts: list[Layout | None] = [None] * len(operations)

    def look(operation: Any) -> Any:
        if MARK in operation.attributes:
            number = ir.IntegerAttr(operation.attributes[MARK]).value
            layouts[number] = _layout(emitter, operation)
        return ir.WalkResult.ADVANCE

    copy.walk(look)
    return layouts


def _layout(emitter: Any, operation: Any) -> Layout | None:
    values = [*operation.operands, operation.results[0]]
    axes = [_axes(emitter, each) for each in values]
    known = [each for each in axes if each is not None]
    return Layout(known[:-1], known[-1]) if len(known) == len(axes) else None


def _axes(emitter: Any, value: Any) -> list[Axes] | None:
    """The axes that split each dimension of a value; None where one is split itself."""
    ir, sdy = emitter.b.ir, emitter.b.sdy
    rank, sharding = ir.ShapedType(value.type).rank, None
    owner = value.owner
    is_argument = isinstance(owner, ir.Block)
    place = ir.BlockArgument(value).arg_number if is_argument else ir.OpResult(value).result_number
    owner = owner.owner if is_argument else owner
    if is_argument and "arg_attrs" in owner.attributes:
        said = owner.attributes["arg_attrs"][place]
        if "sdy.sharding" in said:
            sharding = said["sdy.sharding"]
    elif "sdy.sharding" in owner.attributes:  # what a loop's body takes lies as the loop's results do
        sharding = sdy.TensorShardingPerValueAttr(owner.attributes["sdy.sharding"]).shardings[place]
    if sharding is None:
        return [()] * rank
    axes: list[Axes] = []
    for dimension in sdy.TensorShardingAttr(sharding).dimension_shardings:
        references = [sdy.AxisRefAttr(axis) for axis in sdy.DimensionShardingAttr(dimension).axes]
        if any(axis.sub_axis_info is not None for axis in references):
            return None
        axes.append(tuple([axis.name for axis in references]))
    return axes


def keep_scatters_even(emitter: Any, module: Any, mesh: Mesh) -> None:
    """Let scatters have operands that the devices divide: those that Shardy would split unevenly, as it
    splits a slice of what is split evenly, are whole along that dimension. XLA's partitioner ends the process
    for some of them."""
    scatters: list[Any] = []

    def look(operation: Any) -> Any:
        if operation.name == "stablehlo.scatter" and any(
            extent % mesh.size for operand in operation.operands for extent in operand.type.shape
        ):
            scatters.append(operation)
        return emitter.b.ir.WalkResult.ADVANCE

    module.operation.walk(look)
    layouts = layouts_of(emitter, module, scatters) if scatters else []
    for operation, layout in zip(scatters, layouts, strict=True):
        for i, operand in enumerate(list(operation.operands)):
            shape = operand.type.shape
            axes = [tuple(dict(mesh.axes))] * len(shape) if layout is None else layout.operands[i]
            uneven = [
                extent % math.prod([mesh.axis(name).size for name in names]) != 0
                for extent, names in zip(shape, axes, strict=True)
            ]
            if any(uneven):
                operation.operands[i] = _joined(emitter, operation, operand, mesh, uneven)


def _joined(emitter: Any, before: Any, operand: Any, mesh: Mesh, joined: Sequence[bool]) -> Any:
    """An operand of an operation, whole along some dimensions."""
    ir = emitter.b.ir
    placed = Sharding(mesh, [() if whole else None for whole in joined])
    with ir.InsertionPoint(before):
        return ir.Operation.create(
            "sdy.sharding_constraint",
            results=[operand.type],
            operands=[operand],
            attributes={"sharding": emitter.sharding(placed)},
            loc=before.location,
        ).result
