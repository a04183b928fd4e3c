"""What all schedules of the learning rate share, and those made of others. The single ones are in `decays.py`
and `cycles.py`; `lr_scheduler` has them all."""

from __future__ import annotations

import types
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

from tenfold.autograd.grad_mode import no_grad
from tenfold.base.errors import ArgumentError, TraceError, UnsupportedError
from tenfold.base.source import capture
from tenfold.base.warning import warn
from tenfold.optim.optimizer import Optimizer, OptionError, construct
from tenfold.tensor import Tensor
from tenfold.trace.context import context

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible: "
    "call `scheduler.step()` once for each epoch"
)

Rates = list[Any]  # for each group a number, or a Tensor where the group has one


class LRScheduler:
    """The base of schedules. Each `step()` sets the learning rate of every group to what `get_lr()` computes
    from the present one. If a schedule defines `_get_closed_form_lr()`, `step(epoch)` jumps to an epoch."""

    _get_lr_called_within_step = False
    _is_initial = False
    optimizer: Optimizer

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1):
        if not isinstance(optimizer, Optimizer):
            raise ArgumentError(f"a schedule is of an Optimizer, not of a {type(optimizer).__name__}")
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", unshared(group["lr"]))
            elif "initial_lr" not in group:
                raise MissingRate(
                    f"group {i} of the optimizer has no initial_lr to go on from at epoch {last_epoch}",
                    help="load the optimizer's state before, or leave last_epoch out to begin",
                )
        self.base_lrs: Rates = [unshared(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._initial_step()

    def __init_subclass__(cls) -> None:
        construct(cls)

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def step(self, epoch: int | None = None) -> None:
        """Advance to the next epoch, or to a given one. Call it after the optimizer's step."""
        if self._step_count == 1 and not self.optimizer._opt_called:
            warn(
                "the schedule's step() is called before the optimizer's, which so misses the first learning "
                "rate: call `optimizer.step()` before `lr_scheduler.step()`"
            )
        self._step_count += 1
        if epoch is not None:
            warn(EPOCH_DEPRECATION_WARNING)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        self._get_lr_called_within_step = True
        try:
            self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
            closed = None if epoch is None else getattr(self, "_get_closed_form_lr", None)
            self._set(self.get_lr() if closed is None else closed())
        finally:
            self._get_lr_called_within_step = False

    def _set(self, rates: Rates) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            set_option(group, "lr", rate)
        self._last_lr = self._present()

    def _present(self) -> Rates:
        return [unshared(group["lr"]) for group in self.optimizer.param_groups]

    def _scaled(self, factor: float) -> Rates:
        """The present rates times a factor."""
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    def _check_asked(self) -> None:
        if not self._get_lr_called_within_step:
            warn("get_lr() computes the next learning rate: the last is get_last_lr()")

    def get_lr(self) -> Rates:
        """The next learning rate of each group."""
        raise UnsupportedError(f"{type(self).__name__} has no get_lr()", help="define it in the subclass")

    def get_last_lr(self) -> Rates:
        """The present learning rate of each group."""
        return self._last_lr

    def state_dict(self) -> dict[str, Any]:
        """The state of the schedule, without its optimizer."""
        return {name: value for name, value in vars(self).items() if name != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        vars(self).update(state_dict)


class MissingRate(OptionError, KeyError):
    """A group without the learning rate that a schedule began with."""


def unshared(option: Any) -> Any:
    """An option as it is now: a tensor would follow what is written to it."""
    return option.clone() if isinstance(option, Tensor) else option


def set_option(group: dict[str, Any], name: str, value: Any) -> None:
    """Set an option of a group; one that is a tensor is written to, and so stays the same tensor."""
    if context.recorder is not None:
        raise TraceError(
            f"a schedule in a compiled function would set {name} once, while it is recorded, and no more",
            help="call the schedule's step() outside, after the function",
        ).located("lr_scheduler", capture())
    if isinstance(group[name], Tensor):
        with no_grad():
            group[name].copy_(value) if isinstance(value, Tensor) else group[name].fill_(value)
    else:
        group[name] = value


def for_groups(name: str, optimizer: Optimizer, option: Any) -> list[Any]:
    """One option for each group, given one by one or once for all."""
    count = len(optimizer.param_groups)
    if isinstance(option, (list, tuple)):
        if len(option) != count:
            raise OptionError(f"{name} has {len(option)} entries for {count} groups of parameters")
        return [unshared(each) for each in option]
    return [unshared(option) for _ in range(count)]


def state_of(function: Any) -> dict[str, Any] | None:
    """What is stored of a callable: an object's attributes, nothing of a function."""
    return None if isinstance(function, types.FunctionType) else dict(vars(function))


class Combined(LRScheduler):
    """A schedule made of others."""

    _schedulers: Sequence[LRScheduler]

    def _take(self, optimizer: Optimizer, schedulers: Sequence[LRScheduler]) -> None:
        for i, scheduler in enumerate(schedulers):
            if not isinstance(scheduler, LRScheduler):
                raise ArgumentError(f"schedule {i} is a {type(scheduler).__name__}")
            if getattr(scheduler, "needs_metrics", False):
                raise OptionError(
                    f"schedule {i}, {type(scheduler).__name__}, needs a metric at each step",
                    help="step it by itself",
                )
            if scheduler.optimizer is not optimizer:
                raise OptionError(f"schedule {i}, {type(scheduler).__name__}, is of another optimizer")
        self._schedulers = schedulers
        self.optimizer = optimizer

    def state_dict(self) -> dict[str, Any]:
        own = {
            name: member for name, member in vars(self).items() if name not in ("optimizer", "_schedulers")
        }
        return {**own, "_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        vars(self).update({name: each for name, each in state_dict.items() if name != "_schedulers"})
        for scheduler, kept in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(kept)


class SequentialLR(Combined):
    """Applies one schedule after the other, each from its milestone on

    The rates of four epochs, where the optimizer's is 1:

        optimizer = tn.optim.SGD([tn.ones(2, requires_grad=True)], lr=1.0)
        first = tn.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
        then = tn.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        schedule = tn.optim.lr_scheduler.SequentialLR(optimizer, [first, then], milestones=[2])
        rates = []
        for _ in range(4):
            optimizer.step()
            schedule.step()
            rates.append(optimizer.param_groups[0]["lr"])
        rates  # [0.5, 1.0, 0.5, 0.25]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: list[LRScheduler],
        milestones: list[int],
        last_epoch: int = -1,
    ):
        if not schedulers:
            raise OptionError("a sequence needs at least one schedule")
        if len(milestones) != len(schedulers) - 1:
            raise OptionError(
                f"{len(schedulers)} schedules need {len(schedulers) - 1} milestones between them"
            )
        self._take(optimizer, schedulers)
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        # Each of them has taken its first step when it was made: all of it is undone but the first one's.
        for group in optimizer.param_groups:
            set_option(group, "lr", group["initial_lr"])
        _undo(self)
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def step(self) -> None:  # type: ignore[override]
        self.last_epoch += 1
        place = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[place]
        if place > 0 and self._milestones[place - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


def _undo(scheduler: Any) -> None:
    """Take back the first step of a schedule, or of all that it is made of."""
    if isinstance(scheduler, Combined):
        for each in scheduler._schedulers:
            _undo(each)
    else:
        scheduler.last_epoch -= 1


class ChainedScheduler(Combined):
    """Applies all of its schedules at every step, each to the rates that the previous one set

    The rates of four epochs, where the optimizer's is 1:

        optimizer = tn.optim.SGD([tn.ones(2, requires_grad=True)], lr=1.0)
        halved = tn.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        warmed = tn.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
        schedule = tn.optim.lr_scheduler.ChainedScheduler([halved, warmed])
        rates = []
        for _ in range(4):
            optimizer.step()
            schedule.step()
            rates.append(optimizer.param_groups[0]["lr"])
        rates  # [0.25, 0.25, 0.125, 0.0625]
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None):
        if not schedulers:
            raise OptionError("a chain needs at least one schedule")
        self._take(optimizer or schedulers[0].optimizer, schedulers)
        self._last_lr = self._present()

    def step(self) -> None:  # type: ignore[override]
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._present()


Factor = Callable[[int], float]


def factors(optimizer: Optimizer, given: Factor | list[Factor]) -> list[Factor]:
    """A function from epochs to factors, for each group."""
    found = for_groups("lr_lambda", optimizer, given)
    for each in found:
        if not callable(each):
            raise ArgumentError(f"lr_lambda is a function of the epoch, not a {type(each).__name__}")
    return found
