"""Schedules that raise and lower the learning rate: cycles, warm restarts, and ReduceLROnPlateau."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tenfold.base.errors import ArgumentError
from tenfold.base.warning import warn
from tenfold.optim.optimizer import Optimizer, OptionError
from tenfold.optim.scheduler import LRScheduler, Rates, for_groups, set_option, state_of

INFINITY = float("inf")


class Cycling(LRScheduler):
    """A schedule that may move the momentum against the learning rate: an option of the optimizer's, or the
    first of its betas."""

    cycle_momentum: bool
    use_beta1: bool

    def _cycle_momentum(self, base: Any, most: Any, begins: bool) -> tuple[list[Any], list[Any]]:
        defaults = self.optimizer.defaults
        if "momentum" not in defaults and "betas" not in defaults:
            raise OptionError(
                f"{type(self.optimizer).__name__} has neither momentum nor betas to cycle",
                help="pass cycle_momentum=False",
            )
        self.use_beta1 = "betas" in defaults
        bases = for_groups("base_momentum", self.optimizer, base)
        mosts = for_groups("max_momentum", self.optimizer, most)
        if begins:
            for group, low, high in zip(self.optimizer.param_groups, bases, mosts, strict=True):
                self._set_momentum(group, high)
                group["max_momentum"], group["base_momentum"] = high, low
        return bases, mosts

    def _set_momentum(self, group: dict[str, Any], momentum: float) -> None:
        if self.use_beta1:
            group["betas"] = (momentum, *group["betas"][1:])
        else:
            group["momentum"] = momentum


class CyclicLR(Cycling):
    """Cycles the learning rate between `base_lr` and `max_lr`; `mode` sets the height of each cycle

    The rates of four epochs, where the optimizer's is 1:

        optimizer = tn.optim.SGD([tn.ones(2, requires_grad=True)], lr=1.0)
        schedule = tn.optim.lr_scheduler.CyclicLR(optimizer, 0.1, 1.0, step_size_up=2, cycle_momentum=False)
        rates = []
        for _ in range(4):
            optimizer.step()
            schedule.step()
            rates.append(optimizer.param_groups[0]["lr"])
        rates  # [0.55, 1.0, 0.55, 0.1]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ):
        if not isinstance(optimizer, Optimizer):
            raise ArgumentError(f"a schedule is of an Optimizer, not of a {type(optimizer).__name__}")
        if mode not in HEIGHTS and scale_fn is None:
            raise OptionError(f"mode is {', '.join(HEIGHTS)}, not {mode!r}", help="or pass a scale_fn")
        self.optimizer = optimizer
        base_lrs = for_groups("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, base_lrs, strict=True):
                set_option(group, "lr", rate)
        self.max_lrs = for_groups("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else HEIGHTS[mode][0]
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            found = self._cycle_momentum(base_momentum, max_momentum, last_epoch == -1)
            self.base_momentums, self.max_momentums = found
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """The amplitude of a cycle, or at an iteration, relative to the first cycle."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        return HEIGHTS[self.mode][1](self.gamma, x)

    def get_lr(self) -> Rates:
        self._check_asked()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        along = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height = along * self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            pairs = zip(self.base_momentums, self.max_momentums, strict=True)
            for group, (low, high) in zip(self.optimizer.param_groups, pairs, strict=True):
                self._set_momentum(group, high - (high - low) * height)
        return [low + (high - low) * height for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        custom = self._scale_fn_custom
        return {**super().state_dict(), "_scale_fn_custom": None if custom is None else state_of(custom)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(
            {name: each for name, each in state_dict.items() if name != "_scale_fn_custom"}
        )
        if state_dict["_scale_fn_custom"] is not None:
            vars(self._scale_fn_custom).update(state_dict["_scale_fn_custom"])


# For each mode of CyclicLR: what its height is a function of, and the function.
HEIGHTS: dict[str, tuple[str, Callable[[float, float], float]]] = {
    "triangular": ("cycle", lambda gamma, cycle: 1.0),
    "triangular2": ("cycle", lambda gamma, cycle: 1 / 2.0 ** (cycle - 1)),
    "exp_range": ("iterations", lambda gamma, epoch: gamma**epoch),
}


class OneCycleLR(Cycling):
    """Raises the learning rate to `max_lr` once, then lowers it far below where it began

    It starts at `max_lr / div_factor`, rises in the first `pct_start` of all steps, and ends at a
    `final_div_factor`th of where it began.

    The rates of four epochs, where the optimizer's is 1:

        optimizer = tn.optim.SGD([tn.ones(2, requires_grad=True)], lr=1.0)
        schedule = tn.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=10)
        rates = []
        for _ in range(4):
            optimizer.step()
            schedule.step()
            rates.append(optimizer.param_groups[0]["lr"])
        rates  # [0.52, 1.0, 0.9505, 0.8117]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ):
        if not isinstance(optimizer, Optimizer):
            raise ArgumentError(f"a schedule is of an Optimizer, not of a {type(optimizer).__name__}")
        self.optimizer = optimizer
        if total_steps is not None:
            self.total_steps = _positive("total_steps", total_steps)
        elif epochs is not None and steps_per_epoch is not None:
            self.total_steps = _positive("epochs", epochs) * _positive("steps_per_epoch", steps_per_epoch)
        else:
            raise OptionError(
                "the number of steps is not given", help="pass total_steps, or epochs and steps_per_epoch"
            )
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise OptionError(f"pct_start is a float in [0, 1], not {pct_start!r}")
        if anneal_strategy not in ("cos", "linear"):
            raise OptionError(f"anneal_strategy is 'cos' or 'linear', not {anneal_strategy!r}")
        self._anneal_func_type = anneal_strategy
        peak = float(pct_start * self.total_steps) - 1
        phases = [(peak, "initial_lr", "max_lr", "max_momentum", "base_momentum")]
        if three_phase:
            back = float(2 * pct_start * self.total_steps) - 2
            phases.append((back, "max_lr", "initial_lr", "base_momentum", "max_momentum"))
            phases.append((self.total_steps - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"))
        else:
            phases.append((self.total_steps - 1, "max_lr", "min_lr", "base_momentum", "max_momentum"))
        names = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")
        self._schedule_phases: list[dict[str, Any]] = [
            dict(zip(names, phase, strict=True)) for phase in phases
        ]
        if last_epoch == -1:
            for group, most in zip(
                optimizer.param_groups, for_groups("max_lr", optimizer, max_lr), strict=True
            ):
                group["initial_lr"] = most / div_factor
                group["max_lr"] = most
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._cycle_momentum(base_momentum, max_momentum, last_epoch == -1)
        super().__init__(optimizer, last_epoch)

    def _anneal(self, start: Any, end: Any, done: float) -> Any:
        if self._anneal_func_type == "cos":
            return end + (start - end) / 2.0 * (math.cos(math.pi * done) + 1)
        return (end - start) * done + start

    def get_lr(self) -> Rates:
        self._check_asked()
        step = self.last_epoch
        if step > self.total_steps:
            raise OptionError(
                f"step {step} of a schedule of {self.total_steps}", help="give a larger total_steps"
            )
        start = 0.0
        for phase in self._schedule_phases:
            if step <= phase["end_step"] or phase is self._schedule_phases[-1]:
                break
            start = phase["end_step"]
        done = (step - start) / (phase["end_step"] - start)
        groups = self.optimizer.param_groups
        if self.cycle_momentum:
            for group in groups:
                ends = group[phase["start_momentum"]], group[phase["end_momentum"]]
                self._set_momentum(group, self._anneal(*ends, done))
        return [self._anneal(group[phase["start_lr"]], group[phase["end_lr"]], done) for group in groups]


def _positive(name: str, number: Any) -> int:
    if not isinstance(number, int) or number <= 0:
        raise OptionError(f"{name} is a positive integer, not {number!r}")
    return number


class CosineAnnealingWarmRestarts(LRScheduler):
    """Moves the learning rate down to `eta_min` along a cosine, over and over

    The first period has `T_0` epochs, and each next one is `T_mult` times as long. Epochs may be fractions.

    The rates of four epochs, where the optimizer's is 1:

        optimizer = tn.optim.SGD([tn.ones(2, requires_grad=True)], lr=1.0)
        schedule = tn.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
        rates = []
        for _ in range(4):
            optimizer.step()
            schedule.step()
            rates.append(optimizer.param_groups[0]["lr"])
        rates  # [0.5, 1.0, 0.5, 1.0]
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ):
        if not isinstance(eta_min, (float, int)):
            raise OptionError(f"eta_min is a number, not a {type(eta_min).__name__}")
        self.T_0 = _positive("T_0", T_0)
        self.T_i = T_0
        self.T_mult = _positive("T_mult", T_mult)
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        self._check_asked()
        height = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Advance to the next epoch, or to a given one, which may be fractional."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        elif epoch < 0:
            raise OptionError(f"an epoch is not negative: {epoch}")
        else:
            restarts = 0
            if epoch >= self.T_0 and self.T_mult > 1:
                restarts = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
                self.T_cur = epoch - self.T_0 * (self.T_mult**restarts - 1) / (self.T_mult - 1)
            else:
                self.T_cur = epoch % self.T_0 if epoch >= self.T_0 else epoch
            self.T_i = self.T_0 * self.T_mult**restarts
        self.last_epoch = math.floor(epoch)
        self._get_lr_called_within_step = True
        try:
            self._set(self.get_lr())
        finally:
            self._get_lr_called_within_step = False


class ReduceLROnPlateau(LRScheduler):
    """Multiplies the learning rate by `factor` when a metric stops improving for `patience` epochs

    `step` takes the metric; mode="max" is for a metric that should rise.

    The rates of four epochs, where the optimizer's is 1:

        optimizer = tn.optim.SGD([tn.ones(2, requires_grad=True)], lr=1.0)
        schedule = tn.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
        rates = []
        for _ in range(4):
            optimizer.step()
            schedule.step(2.0)
            rates.append(optimizer.param_groups[0]["lr"])
        rates  # [1.0, 0.1, 0.01, 0.001]
    """

    needs_metrics = True

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | list[float] = 0,
        eps: float = 1e-8,
    ):
        if factor >= 1:
            raise OptionError(f"factor must be below 1: {factor}")
        if not isinstance(optimizer, Optimizer):
            raise ArgumentError(f"a schedule is of an Optimizer, not of a {type(optimizer).__name__}")
        if mode not in ("min", "max"):
            raise OptionError(f"mode is 'min' or 'max', not {mode!r}")
        if threshold_mode not in ("rel", "abs"):
            raise OptionError(f"threshold_mode is 'rel' or 'abs', not {threshold_mode!r}")
        self.factor = factor
        self.optimizer = optimizer
        self.default_min_lr = None if isinstance(min_lr, (list, tuple)) else min_lr
        self.min_lrs = for_groups("min_lr", optimizer, min_lr)
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.mode_worse = INFINITY if mode == "min" else -INFINITY
        self._last_lr = self._present()
        self._reset()

    def _reset(self) -> None:
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Advance to the next epoch, given the metric of the last one."""
        current = float(metrics)
        if epoch is not None:
            warn("step(metrics, epoch) is deprecated: call step(metrics) for each epoch")
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self.num_bad_epochs += 1
        if self._is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = self._present()

    def _reduce(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise OptionError(
                    f"min_lr has {len(self.min_lrs)} entries for {len(groups)} groups of parameters"
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs, strict=True):
            before = float(group["lr"])
            after = max(before * self.factor, least)
            if before - after > self.eps:
                set_option(group, "lr", after)

    @property
    def in_cooldown(self) -> bool:
        return self.cooldown_counter > 0

    def _is_better(self, metric: float, best: float) -> bool:
        sign = 1 if self.mode == "min" else -1
        if self.threshold_mode == "rel":
            return sign * metric < sign * best * (1 - sign * self.threshold)
        return sign * metric < sign * best - self.threshold
