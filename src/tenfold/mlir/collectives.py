"""Code for one device of a mesh, and the collectives in it, as Shardy's and StableHLO's ops.
`emitter` is that of `stablehlo.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tenfold.base.meshes import Sharding
from tenfold.flat import collectives as c
from tenfold.flat.folding import monoid
from tenfold.flat.ir import Op


def _manual(emitter: Any, op: c.ManualComputation) -> Any:
    """The op itself; over one device its body, which has all of everything."""
    ir = emitter.b.ir
    if op.in_shardings[0].mesh.size == 1:
        body = op.body.expanded()
        emitter.values.update(
            zip(body.params, [emitter.values[operand] for operand in op.inputs], strict=True)
        )
        emitter.ops(body)
        return [emitter.values[result] for result in body.results]
    names = ", ".join([f'"{name}"' for name in c.manual_axes(op)])
    attributes = {
        "in_shardings": _per_value(emitter, op.in_shardings),
        "out_shardings": _per_value(emitter, op.out_shardings),
        "manual_axes": ir.Attribute.parse(f"#sdy<manual_axes{{{names}}}>"),
    }
    created = ir.Operation.create(
        op.name,
        results=[emitter.type(result.type) for result in op.results],
        operands=[emitter.values[operand] for operand in op.inputs],
        attributes=attributes,
        regions=1,
        loc=emitter.location(op.source, op.name),
    )
    emitter.region(created.regions[0], op.body, (), "sdy.return")
    return created.results


def _per_value(emitter: Any, shardings: Sequence[Sharding]) -> Any:
    for sharding in shardings:
        emitter.meshes[sharding.mesh] = None
    texts = ", ".join([f"<@mesh, {sharding.text}>" for sharding in shardings])
    return emitter.b.ir.Attribute.parse(f"#sdy.sharding_per_value<[{texts}]>")


# How StableHLO names the attributes of a collective, and which are enough for it.
GROUPED = ("all_gather_dim", "scatter_dimension", "split_dimension", "concat_dimension")


ALONE = ((0,),)  # a mesh of one device, where nothing is exchanged


def _collective(emitter: Any, op: Op) -> Any:
    ir, state = emitter.b.ir, op.__dict__
    if state.get("groups") == ALONE or state.get("source_target_pairs") == ((0, 0),):
        return [emitter.values[operand] for operand in op.operands]
    parse = ir.Attribute.parse
    channel = f"#stablehlo.channel_handle<handle = {next(emitter.channels)}, type = 1>"
    attributes = {"channel_handle": parse(channel)}
    attributes.update({name: emitter.attribute(state[name]) for name in GROUPED if name in state})
    if isinstance(op, c.CollectivePermute):
        attributes["source_target_pairs"] = _table(emitter, op.source_target_pairs, 2)
    else:
        attributes["replica_groups"] = _table(emitter, state["groups"], len(state["groups"][0]))
    if isinstance(op, c.AllToAll):
        attributes["split_count"] = emitter.attribute(op.size)
    elif not isinstance(op, c.CollectivePermute):
        attributes["use_global_device_ids"] = ir.UnitAttr.get()
    folds = isinstance(op, c.AllReduce | c.ReduceScatter)
    created = ir.Operation.create(
        op.name,
        results=[emitter.type(op.result.type)],
        operands=[emitter.values[operand] for operand in op.operands],
        attributes=attributes,
        regions=int(folds),
        loc=emitter.location(op.source, op.name),
    )
    if folds:
        emitter.region(created.regions[0], monoid(state.get("kind", "add"), op.result.dtype), ())
    return created.results


def _table(emitter: Any, rows: Sequence[Sequence[int]], width: int) -> Any:
    lists = [list(row) for row in rows]
    return emitter.b.ir.Attribute.parse(f"dense<{lists}> : tensor<{len(rows)}x{width}xi64>")


EMITTERS: dict[type[Op], Callable[[Any, Any], Any]] = {
    c.ManualComputation: _manual,
    **dict.fromkeys(
        (c.AllReduce, c.AllGather, c.ReduceScatter, c.AllToAll, c.CollectivePermute), _collective
    ),
}
