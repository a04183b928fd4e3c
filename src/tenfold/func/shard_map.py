"""`shard_map`: a function written for one device, run by all devices of a mesh on their parts of its
arguments. PyTorch has it as `torch.distributed.tensor.experimental.local_map`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tenfold import flat
from tenfold.base.errors import ArgumentError, UnsupportedError, located
from tenfold.base.meshes import MeshDevice, Sharding
from tenfold.distributed import DeviceMesh
from tenfold.distributed._functional_collectives import written_for
from tenfold.distributed.tensor import Partial, Placement, Replicate
from tenfold.distributed.tensor.placements import partly
from tenfold.flat.collectives import ManualComputation, PartitionId, all_reduce, groups_along
from tenfold.flat.ir import TensorType
from tenfold.func.recorded import RecordedFunction, is_tensor, like
from tenfold.tensor import Tensor
from tenfold.trace import tree
from tenfold.trace.graph import Value

__all__ = ["shard_map"]

Placements = Sequence[Placement] | None


@located
def shard_map(
    function: Callable[..., Any], mesh: DeviceMesh, in_placements: Any, out_placements: Any
) -> Callable[..., Any]:
    """Run a function on each device of a mesh, on the device's parts of the arguments.

    `in_placements` gives the placements of each argument, such as `[Shard(0), Replicate()]`, one for each
    dimension of the mesh. `out_placements` does the same for the results. The function returns its part of a
    result that is sharded, the whole of one that is replicated, and a summand of one that is `Partial()`.
    Everything else that it reads is replicated.

    Inside, the devices exchange data by the functions of `distributed._functional_collectives`, along a
    dimension of the mesh that is given by its name.

    If the mesh is a part of another, as `mesh["data"]`, the function is written for one device along these
    dimensions. Along the others, its tensors are whole, and XLA partitions the computation as usual.

    >>> total = lambda x: all_reduce(x.sum(), "sum", "data")
    >>> shard_map(total, mesh, in_placements=([Shard(0)],), out_placements=[Replicate()])(x)
    """
    root = mesh.root

    @like(function, "shard_map")
    def call(*args: Any) -> Any:
        tensors, placed, structure = _inputs(args, mesh, in_placements)
        parts = [_part(tensor, sharding) for tensor, sharding in zip(tensors, placed, strict=True)]

        def local(stand_ins: Sequence[Tensor]) -> Any:
            with written_for(mesh):
                return function(*tree.unflatten(structure, iter(stand_ins)))

        recorded = RecordedFunction("shard_map", local, parts)
        if any(isinstance(write, int) for write in recorded.writes):
            raise UnsupportedError("the function writes to its argument", help="let it return the new value")
        results = _results(recorded, mesh, out_placements)
        key = ("shard_map", root, tuple(placed), tuple(results))

        def make() -> flat.Function:
            return _mapped(recorded, mesh, placed, results)

        outputs = recorded.call(key, tensors, make)
        return tree.unflatten(recorded.structure, iter(outputs))

    return call


def _inputs(args: Sequence[Any], mesh: DeviceMesh, placements: Any) -> tuple[list[Tensor], list[Any], Any]:
    """The tensors of the arguments, how each is placed, and the arguments' structure."""
    chosen = _several(placements)
    if len(chosen) != len(args):
        raise ArgumentError(f"in_placements has {len(chosen)} entries for {len(args)} arguments")
    local_tensors: list[Tensor] = []
    placed: list[Sharding] = []
    for argument, own in zip(args, chosen, strict=True):
        tensors: list[Tensor] = []
        tree.flatten(argument, is_tensor, tensors)
        local_tensors += tensors
        placed += [partly(mesh, _filled(own, mesh), tensor.ndim) for tensor in tensors]
    if not local_tensors:
        raise ArgumentError("shard_map takes at least one tensor")
    return local_tensors, placed, tree.flatten(tuple(args), is_tensor, [])


def _several(placements: Any) -> list[Placements]:
    """Placements of several tensors; those of one stand alone."""
    if placements is None or (placements and isinstance(placements[0], Placement)):
        return [placements]
    return list(placements)


def _filled(placements: Placements, mesh: DeviceMesh) -> Sequence[Placement]:
    return [Replicate()] * mesh.ndim if placements is None else placements


def _part(tensor: Tensor, placed: Sharding) -> Value:
    """What stands for the part of a tensor that one device has."""
    placed.check_even(tensor.shape)
    shape = placed.shard_shape(tensor.shape)
    part = Value(TensorType(tensor.dtype, shape), MeshDevice(placed.mesh))
    part.source = tensor.current().made_at
    return part


def _results(recorded: RecordedFunction, mesh: DeviceMesh, placements: Any) -> list[tuple[Placement, ...]]:
    chosen = _several(placements)
    if len(chosen) == 1:
        chosen = chosen * recorded.count
    if len(chosen) != recorded.count:
        raise ArgumentError(f"out_placements has {len(chosen)} entries for {recorded.count} results")
    return [tuple(_filled(spec, mesh)) for spec in chosen]


def _mapped(
    recorded: RecordedFunction,
    mesh: DeviceMesh,
    placed: Sequence[Sharding],
    results: Sequence[Sequence[Placement]],
) -> flat.Function:
    """The recorded function as one op on whole tensors."""
    body = recorded.fragment()
    if mesh.size() < mesh.root.size and any(isinstance(op, PartitionId) for op in body.ops):
        raise UnsupportedError(
            "XLA does not tell a device's place along some dimensions of a mesh, which axis_index and "
            "broadcast take",
            help="give shard_map the whole mesh",
        )
    whole = lambda rank: partly(mesh, [Replicate()] * mesh.ndim, rank)
    into = [
        whole(param.rank) if place is None else placed[place]
        for param, place in zip(body.params, recorded.places, strict=True)
    ]
    body_results = list(body.results)
    out: list[Sharding] = []
    for i, placements in enumerate(results):
        body_results[i] = _summed(body_results[i], mesh, placements)
        added_up = [Replicate() if isinstance(placement, Partial) else placement for placement in placements]
        out.append(partly(mesh, added_up, body_results[i].rank))
    out += [whole(result.rank) for result in body_results[len(results) :]]
    body = flat.Function(body.params, body_results, "shard_map")
    params = []
    for param, sharding in zip(body.params, into, strict=True):
        shape = tuple([extent * n for extent, n in zip(param.shape, sharding.parts, strict=True)])
        params.append(flat.Value(TensorType(param.dtype, shape)))
    outputs = ManualComputation(tuple(params), body, tuple(into), tuple(out)).results
    return flat.Function(params, outputs, "shard_map")


def _summed(value: flat.Value, mesh: DeviceMesh, placements: Sequence[Placement]) -> flat.Value:
    """A result added up along the dimensions of the mesh where it is partial."""
    for axis, placement in zip(mesh.axes, placements, strict=True):
        if isinstance(placement, Partial):
            if placement.reduce_op not in ("sum", "avg"):
                raise ArgumentError(f"partial results are added up, not {placement.reduce_op!r}")
            value = all_reduce(value, "add", groups_along(mesh.root.axes, [axis.name]))
            value = value / axis.size if placement.reduce_op == "avg" else value
    return value
