"""The stages of a pipeline: modules of one structure, of which each device along a dimension of a mesh has
one. A batch passes through them in microbatches, as one scan that all devices run together: in each step a
device applies its stage and passes the result on to the next one."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from tenfold.base.errors import ArgumentError, ShapeError, located
from tenfold.distributed._functional_collectives import axis_index, permute_tensor
from tenfold.distributed.device_mesh import DeviceMesh
from tenfold.distributed.tensor.dtensor import place
from tenfold.distributed.tensor.placements import Partial, Placement, Replicate, Shard, sharding_by
from tenfold.func.modules import functional_call
from tenfold.func.scans import scan
from tenfold.func.shard_map import shard_map
from tenfold.nn import Module, Parameter
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten


class PipelineStage(Module):
    """All stages of a pipeline over a mesh of one dimension, such as `mesh["pipe"]`. The parameters and
    buffers of the stages are stacked; those of stage i are on device i only.

    In PyTorch, each process makes an object for its own stage. Here all processes run one program, so each
    makes this object with all stages. Batches are split over the other dimensions of the mesh.

    >>> pipeline = PipelineStage([Block() for _ in range(4)], mesh["pipe"])
    >>> schedule = ScheduleGPipe(pipeline, n_microbatches=8, loss_fn=loss)
    >>> schedule.step(x, target=y)
    """

    @located
    def __init__(self, submodules: Sequence[Module], device_mesh: DeviceMesh):
        super().__init__()
        stages = list(submodules)
        if device_mesh.ndim != 1 or device_mesh.size() != len(stages):
            raise ArgumentError(
                f"{len(stages)} stages need a mesh of one dimension and as many devices, not {device_mesh}",
                help='take one with mesh["pipe"]; nn.Sequential joins several layers to one stage',
            )
        self.num_stages, self.device_mesh = len(stages), device_mesh
        tensors = [dict([*stage.named_parameters(), *stage.named_buffers()]) for stage in stages]
        self.stages = copy.deepcopy(stages[0])
        for owner in self.stages.named_modules():
            self._stack_all(*owner, tensors)

    def _stack_all(self, path: str, owner: Module, tensors: Sequence[dict[str, Tensor]]) -> None:
        """Let a layer of the first stage have the parameters and buffers of all stages."""
        kinds: tuple[dict[str, Any], ...] = (owner._parameters, owner._buffers)
        for slots in kinds:
            for name, own in slots.items():
                if own is not None:
                    whole = f"{path}.{name}" if path else name
                    stacked = self._stacked(whole, [tensor.get(whole) for tensor in tensors])
                    is_trained = isinstance(own, Parameter)
                    slots[name] = Parameter(stacked, own.requires_grad) if is_trained else stacked

    def _stacked(self, name: str, tensors: Sequence[Tensor | None]) -> Tensor:
        types = {None if tensor is None else (tensor.shape, tensor.dtype) for tensor in tensors}
        if len(types) > 1:
            shapes = [None if tensor is None else list(tensor.shape) for tensor in tensors]
            raise ShapeError(
                f"the stages differ: {name} has the shapes {shapes}",
                help="stages have one structure; keep the embedding and the head out of the pipeline",
            )
        stacked = aten("stack")([tensor.detach() for tensor in tensors if tensor is not None]).eval()
        place(stacked, sharding_by(self.device_mesh, [Shard(0)], stacked.ndim))
        return stacked

    def forward(self, x: Tensor, n_microbatches: int = 1) -> Tensor:
        """What the stages, one after the other, make of a batch, in so many microbatches."""
        batch = x.shape[0]
        if n_microbatches < 1 or batch % n_microbatches:
            raise ShapeError(
                f"a batch of {batch} cannot be split into {n_microbatches} microbatches of one size"
            )
        mesh = self.device_mesh.whole
        along = [axis == self.device_mesh.axes[0] for axis in mesh.axes]
        rows: list[Placement] = [Replicate() if here else Shard(1) for here in along]
        stacked: list[Placement] = [Shard(0) if here else Replicate() for here in along]
        summed: list[Placement] = [Partial() if here else Shard(1) for here in along]
        tensors = dict([*self.stages.named_parameters(), *self.stages.named_buffers()])
        microbatches = x.reshape((n_microbatches, batch // n_microbatches, *x.shape[1:]))
        run = shard_map(self._on_one_device, mesh, (stacked, rows), summed)
        return run(tensors, microbatches).reshape((batch, *x.shape[1:]))

    def _on_one_device(self, tensors: dict[str, Tensor], microbatches: Tensor) -> Tensor:
        """What one device does: in step t, microbatch t - i comes to stage i, if there is one."""
        count, axis = self.num_stages, self.device_mesh.axes[0].name
        own = {name: tensor[0] for name, tensor in tensors.items()}
        place = axis_index(microbatches, axis)
        is_first, is_last = place == 0, place == count - 1
        onward = [*range(1, count), -1]

        def step(arriving: Tensor, entering: Tensor) -> tuple[Tensor, Tensor]:
            given = aten("where")(is_first, entering, arriving)
            result = functional_call(self.stages, own, (given,))
            if result.shape != given.shape or result.dtype is not given.dtype:
                raise ShapeError(
                    f"a stage makes {list(result.shape)} of {list(given.shape)}",
                    help="stages give what the next one takes: tensors of one shape and dtype",
                )
            return permute_tensor(result, onward, axis), result

        # Idle steps compute too. On zeros a stage may divide by 0, and its gradient, 0 · NaN, would be NaN.
        filler = microbatches[:1]
        entering = aten("cat")([microbatches, *[filler] * (count - 1)])
        _, results = scan(step, filler[0], entering)
        return aten("where")(is_last, results[count - 1 :], 0)
