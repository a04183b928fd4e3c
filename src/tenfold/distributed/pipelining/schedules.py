"""In which order microbatches pass through a pipeline, forward and backward."""

from __future__ import annotations

from collections.abc import Callable

from tenfold.base.errors import ArgumentError, ShapeError, located
from tenfold.distributed.pipelining.stages import PipelineStage
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten


class _Schedule:
    def __init__(
        self,
        stage: PipelineStage,
        n_microbatches: int,
        loss_fn: Callable[..., Tensor] | None = None,
        *,
        scale_grads: bool = True,
    ):
        if n_microbatches < 1:
            raise ArgumentError(f"a batch has at least one microbatch, not {n_microbatches}")
        self.stage, self.n_microbatches, self.loss_fn = stage, n_microbatches, loss_fn
        self.scale_grads = scale_grads

    def at_once(self) -> int:
        """How many microbatches pass forward before they pass backward."""
        raise NotImplementedError

    @located
    def step(self, x: Tensor, *, target: Tensor | None = None, losses: list[Tensor] | None = None) -> Tensor:
        """Run a batch, and return its results. With a target, the loss of each microbatch is appended to
        `losses`, and gradients are added to the parameters'; `scale_grads` divides these by the number of
        microbatches."""
        if x.shape[0] % self.n_microbatches:
            raise ShapeError(
                f"a batch of {x.shape[0]} cannot be split into {self.n_microbatches} microbatches of one size"
            )
        if target is None:
            return self.stage(x, self.n_microbatches)
        if self.loss_fn is None:
            raise ArgumentError("a target is of no use without loss_fn")
        if losses is not None:
            losses.clear()
        size = x.shape[0] // self.n_microbatches
        results = []
        for start in range(0, self.n_microbatches, self.at_once()):
            count = min(self.at_once(), self.n_microbatches - start)
            rows = slice(start * size, (start + count) * size)
            result = self.stage(x[rows], count)
            parts = zip(result.chunk(count), target[rows].chunk(count), strict=True)
            found = [self.loss_fn(mine, theirs) for mine, theirs in parts]
            total = aten("stack")(found).sum()
            (total / self.n_microbatches if self.scale_grads else total).backward()
            results.append(result.detach())
            if losses is not None:
                losses.extend([each.detach() for each in found])
        return results[0] if len(results) == 1 else aten("cat")(results)


class ScheduleGPipe(_Schedule):
    """Runs all microbatches forward, then all backward, and keeps the activations of all. With n microbatches
    and s stages, a device is idle for s - 1 of n + s - 1 steps."""

    def at_once(self) -> int:
        return self.n_microbatches


class Schedule1F1B(_Schedule):
    """Keeps the activations of at most as many microbatches as there are stages. XLA runs one program on all
    devices, so forward and backward steps do not interleave: a group of as many microbatches as stages runs
    forward, then backward, and the pipeline drains before the next group."""

    def at_once(self) -> int:
        return self.stage.num_stages
