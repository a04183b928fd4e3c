"""Training in which processes have different numbers of batches: those that have run out take part in what
the others still do together."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tenfold.base.devices import Device
from tenfold.base.errors import DistributedError
from tenfold.distributed.collectives import all_gather
from tenfold.distributed.group import ProcessGroup
from tenfold.tensor import leaf


class Plan(NamedTuple):
    """What one process does in its next forward and backward pass."""

    is_active: bool
    averages: bool = False  # its backward pass averages gradients
    takes_buffers: bool = False


class Round(NamedTuple):
    """What all processes do in a pass."""

    plans: list[Plan]

    @property
    def active(self) -> list[int]:
        """The places of those that have a batch."""
        return [place for place, plan in enumerate(self.plans) if plan.is_active]

    @property
    def source(self) -> int:
        """The process whose buffers the others take."""
        return max(self.active, default=0)

    @property
    def averages(self) -> bool:
        return any(plan.averages for plan in self.plans)

    @property
    def takes_buffers(self) -> bool:
        return any(plan.takes_buffers for plan in self.plans)


class UnevenInputs:
    """The rounds of a block in which some processes run out of batches before others."""

    def __init__(self, group: ProcessGroup, divide_by_initial_world_size: bool, throws: bool):
        self.group, self.throws = group, throws
        self.divide_by_initial_world_size = divide_by_initial_world_size
        self.last = Round([Plan(False)] * group.size())  # the last round in which a process had a batch
        self.scale = 1.0  # of means over all processes, to make them means over those with a batch

    def begin(self, plan: Plan) -> Round:
        """Tell the others what this process does next, and hear what they do."""
        own = leaf(np.array(plan, np.int32), Device("cpu"))
        plans = [leaf(np.zeros(len(plan), np.int32), Device("cpu")) for _ in self.group.ranks]
        all_gather(plans, own, self.group)
        current = Round([Plan(*map(bool, each.tolist())) for each in plans])
        count = len(current.active)
        if self.throws and count and count < self.group.size():
            raise DistributedError(
                "Detected at least one rank that exhausted inputs. Throwing across all ranks."
                if plan.is_active
                else f"Rank {self.group.rank()} exhausted all inputs.",
                help="give every process as many batches, or join(throw_on_early_termination=False)",
            )
        if count:
            self.last = current
            self.scale = 1.0 if self.divide_by_initial_world_size else self.group.size() / count
        return current


def follow(inputs: UnevenInputs, module: Any) -> None:
    """Take part in the passes of the others until none has a batch; then all take the module of one that
    came last."""
    while True:
        current = inputs.begin(Plan(False))
        if not current.active:
            break
        if current.takes_buffers:
            module._take_buffers_of(current.source)
        if current.averages:
            module._average_nothing()
    module._take_all_of(inputs.last.source)
