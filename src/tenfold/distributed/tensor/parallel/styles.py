"""How the parameters, inputs and outputs of a layer are split over the devices along one dimension of a mesh.
The placements of inputs and outputs concern this dimension only.

On a mesh of several processes a plain tensor is what this process has, as in PyTorch: a layer takes it as its
part of the whole, and gives such a part where `use_local_output` says so. A compiled function has no parts of
one process: there results stay on the mesh.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from tenfold.base.errors import UnsupportedError
from tenfold.distributed.device_mesh import DeviceMesh
from tenfold.distributed.tensor.dtensor import DTensor, place
from tenfold.distributed.tensor.inputs import computing, from_process, mapped
from tenfold.distributed.tensor.placements import Placement, Replicate, Shard, partly, sharding_by
from tenfold.tensor import Tensor, sharding
from tenfold.trace.context import context


class ParallelStyle:
    """A way to split a layer."""

    def apply(self, module: Any, mesh: DeviceMesh) -> None:
        raise NotImplementedError


def constrained(tensor: Tensor, mesh: DeviceMesh, placement: Placement | None) -> Tensor:
    """A tensor placed so along the mesh's dimension; None leaves it as it is."""
    if placement is None:
        return tensor
    mesh = computing(mesh)
    return sharding.constrain(tensor, partly(mesh, [placement], tensor.ndim))


def entering(tensor: Tensor, mesh: DeviceMesh, given: Placement | None, wanted: Placement | None) -> Tensor:
    """What a layer is given, on the mesh: a plain tensor of one of several processes is a part that lies as
    `given` says."""
    mesh = computing(mesh)
    if mesh.root.own or isinstance(tensor, DTensor):
        return constrained(tensor, mesh, wanted)
    whole = from_process(tensor, mesh, given or Replicate())
    return constrained(whole, mesh, wanted)


def leaving(tensor: Tensor, mesh: DeviceMesh, wanted: Placement | None, is_local: bool) -> Tensor:
    """What a layer gives, placed so; as this process's part of it, where that is asked for."""
    mesh = computing(mesh)
    placed = constrained(tensor, mesh, wanted)
    is_part = is_local and not mesh.root.own and context.recorder is None
    return placed.to_local() if is_part else placed


class _Layer(ParallelStyle):
    """A linear layer or an embedding, split in one dimension of its weight."""

    linear: dict[str, Placement]
    embedding: dict[str, Placement]

    def __init__(self, input_layouts: Any, output_layouts: Any, use_local_output: bool):
        self.input_layouts, self.output_layouts = input_layouts, output_layouts
        self.use_local_output = use_local_output

    def apply(self, module: Any, mesh: DeviceMesh) -> None:
        placements = self.embedding if hasattr(module, "num_embeddings") else self.linear
        if not hasattr(module, "weight") or module.weight.ndim != 2:
            raise UnsupportedError(
                f"{type(self).__name__} splits Linear and Embedding, not {type(module).__name__}"
            )
        for name, parameter in module._parameters.items():
            if parameter is not None:
                chosen = placements.get(name, Replicate())
                place(parameter, sharding_by(mesh, [chosen], parameter.ndim))
        given = self.input_layouts
        module.register_forward_pre_hook(
            lambda layer, inputs: (entering(inputs[0], mesh, given, given), *inputs[1:])
        )
        module.register_forward_hook(
            lambda layer, inputs, output: leaving(output, mesh, self.output_layouts, self.use_local_output)
        )


class ColwiseParallel(_Layer):
    """Each device computes some of the output features: the weight of a Linear is split by rows."""

    linear = {"weight": Shard(0), "bias": Shard(0)}
    embedding = {"weight": Shard(1)}

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ):
        super().__init__(input_layouts or Replicate(), output_layouts or Shard(-1), use_local_output)


class RowwiseParallel(_Layer):
    """Each device takes some of the input features, and one all-reduce sums the results."""

    linear = {"weight": Shard(1), "bias": Replicate()}
    embedding = {"weight": Shard(0)}

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ):
        super().__init__(input_layouts or Shard(-1), output_layouts or Replicate(), use_local_output)

    def apply(self, module: Any, mesh: DeviceMesh) -> None:
        if hasattr(module, "num_embeddings") and self.input_layouts == Shard(-1):
            self.input_layouts = Replicate()
        super().apply(module, mesh)


class SequenceParallel(ParallelStyle):
    """For a layer that treats each position separately, such as a LayerNorm: splits the sequence, and
    replicates the parameters."""

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False):
        self.sequence_dim, self.use_local_output = sequence_dim, use_local_output

    def apply(self, module: Any, mesh: DeviceMesh) -> None:
        split = Shard(self.sequence_dim)
        for parameter in module.parameters():
            place(parameter, sharding_by(mesh, [Replicate()], parameter.ndim))
        module.register_forward_pre_hook(
            lambda layer, inputs: (entering(inputs[0], mesh, split, split), *inputs[1:])
        )
        module.register_forward_hook(
            lambda layer, inputs, output: leaving(output, mesh, split, self.use_local_output)
        )


class PrepareModuleInput(ParallelStyle):
    """Redistributes the inputs of a module to the given placements."""

    def __init__(
        self,
        *,
        input_layouts: Any = None,
        desired_input_layouts: Any = None,
        input_kwarg_layouts: Any = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_output: bool = False,
    ):
        self.given, self.desired = _several(input_layouts), _several(desired_input_layouts)
        self.given_by_name = input_kwarg_layouts or {}
        self.desired_by_name = desired_input_kwarg_layouts or {}
        self.use_local_output = use_local_output

    def apply(self, module: Any, mesh: DeviceMesh) -> None:
        def placed(value: Any, given: Placement | None, wanted: Placement | None) -> Any:
            if not isinstance(value, Tensor) or (given is None and wanted is None):
                return value
            return leaving(entering(value, mesh, given, wanted), mesh, None, self.use_local_output)

        def prepare(layer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            layouts = itertools.zip_longest(self.given, self.desired)
            positional = [
                placed(arg, *layout)
                for arg, layout in zip(args, itertools.chain(layouts, itertools.repeat((None, None))))
            ]
            named = {
                name: placed(value, self.given_by_name.get(name), self.desired_by_name.get(name))
                for name, value in kwargs.items()
            }
            return tuple(positional), named

        module.register_forward_pre_hook(prepare, with_kwargs=True)


class PrepareModuleOutput(ParallelStyle):
    """Redistributes the outputs of a module to the given placements."""

    def __init__(
        self, *, output_layouts: Any = None, desired_output_layouts: Any, use_local_output: bool = True
    ):
        self.given, self.desired = _several(output_layouts), _several(desired_output_layouts)
        self.use_local_output = use_local_output

    def apply(self, module: Any, mesh: DeviceMesh) -> None:
        def prepare(layer: Any, inputs: Any, output: Any) -> Any:
            layouts = itertools.zip_longest(self.given, self.desired)

            def placed(value: Tensor) -> Tensor:
                given, wanted = next(layouts, (None, None))
                if given is None and wanted is None:
                    return value
                return leaving(entering(value, mesh, given, wanted), mesh, None, self.use_local_output)

            return mapped(output, placed)

        module.register_forward_hook(prepare)


def _several(layouts: Any) -> Sequence[Placement | None]:
    if layouts is None:
        return ()
    return layouts if isinstance(layouts, (tuple, list)) else (layouts,)
