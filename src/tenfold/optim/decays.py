"""Schedules that go one way: by a function of the epoch, by steps, linearly, by powers, along a cosine."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from typing import Any

from tenfold.optim.optimizer import Optimizer, OptionError
from tenfold.optim.scheduler import Factor, LRScheduler, Rates, factors, state_of


class ByFunction(LRScheduler):
    """A schedule by functions of the epoch, one for each group. Of a function nothing is stored."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Factor | list[Factor], last_epoch: int = -1):
        self.lr_lambdas = factors(optimizer, lr_lambda)
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "lr_lambdas": [state_of(lr_lambda) for lr_lambda in self.lr_lambdas]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict({name: each for name, each in state_dict.items() if name != "lr_lambdas"})
        for lr_lambda, kept in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=True):
            if kept is not None:
                vars(lr_lambda).update(kept)


class LambdaLR(ByFunction):
    """Sets the learning rate to the initial rate times a function of the epoch

    The rates of four epochs, where the optimizer's is 1:

        optimizer = tn.optim.SGD([tn.ones(2, requires_grad=True)], lr=1.0)
        schedule = tn.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5**epoch)
        rates = []
        for _ in range(4):
            optimizer.step()
            schedule.step()
            rates.append(optimizer.param_groups[0]["lr"])
        rates  # [0.5, 0.25, 0.125, 0.0625]
    """

    def get_lr(self) -> Rates:
        self._check_asked()
        return [
            base * factor(self.last_epoch)
            for base, factor in zip(self.base_lrs, self.lr_lambdas, strict=True)
        ]


class MultiplicativeLR(ByFunction):
    """Multiplies the learning rate by a function of the epoch

    The rates of four epochs, where the optimizer's is 1:

        optimizer = tn.optim.SGD([tn.ones(2, requires_grad=True)], lr=1.0)
        schedule = tn.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
        rates = []
        for _ in range(4):
            optimizer.step()
            schedule.step()
            rates.append(optimizer.param_groups[0]["lr"])
        rates  # [0.5, 0.25, 0.125, 0.0625]
    """

    def get_lr(self) -> Rates:
        self._check_asked()
        if self._is_initial:
            return self._present()
        groups = self.optimizer.param_groups
        return [
            group["lr"] * factor(self.last_epoch)
            for group, factor in zip(groups, self.lr_lambdas, strict=True)
        ]


class StepLR(LRScheduler):
    """Multiplies the learning rate by `gamma` every `step_size` epochs

    The rates of four epochs, where the optimizer's is 1:

        optimizer = tn.optim.SGD([tn.ones(2, requires_grad=True)], lr=1.0)
        schedule = tn.optim.lr_scheduler.StepLR(optimizer, step_size=2)
        rates = []
        for _ in range(4):
            optimizer.step()
            schedule.step()
            rates.append(optimizer.param_groups[0]["lr"])
        rates  # [1.0, 0.1, 0.1, 0.01]
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1):
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        self._check_asked()
        falls = self.last_epoch != 0 and self.last_epoch % self.step_size == 0
        return self._scaled(self.gamma) if falls else self._present()

    def _get_closed_form_lr(self) -> Rates:
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Multiplies the learning rate by `gamma` at each of the milestones

    The rates of four epochs, where the optimizer's is 1:

        optimizer = tn.optim.SGD([tn.ones(2, requires_grad=True)], lr=1.0)
        schedule = tn.optim.lr_scheduler.MultiStepLR(optimizer, [2, 4])
        rates = []
        for _ in range(4):
            optimizer.step()
            schedule.step()
            rates.append(optimizer.param_groups[0]["lr"])
        rates  # [1.0, 0.1, 0.1, 0.01]
    """

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ):
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        self._check_asked()
        times = self.milestones[self.last_epoch]
        return self._scaled(self.gamma**times) if times else self._present()

    def _get_closed_form_lr(self) -> Rates:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * self.gamma**passed for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """Multiplies the initial rate by `factor` for the first `total_iters` epochs

    The rates of four epochs, where the optimizer's is 1:

        optimizer = tn.optim.SGD([tn.ones(2, requires_grad=True)], lr=1.0)
        schedule = tn.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
        rates = []
        for _ in range(4):
            optimizer.step()
            schedule.step()
            rates.append(optimizer.param_groups[0]["lr"])
        rates  # [0.5, 1.0, 1.0, 1.0]
    """

    def __init__(
        self, optimizer: Optimizer, factor: float = 1 / 3, total_iters: int = 5, last_epoch: int = -1
    ):
        if not 0 <= factor <= 1:
            raise OptionError(f"factor must lie in [0, 1]: {factor}")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        self._check_asked()
        if self.last_epoch == 0:
            return self._scaled(self.factor)
        return self._scaled(1.0 / self.factor) if self.last_epoch == self.total_iters else self._present()

    def _get_closed_form_lr(self) -> Rates:
        factor = 1 if self.last_epoch >= self.total_iters else self.factor
        return [base * factor for base in self.base_lrs]


class LinearLR(LRScheduler):
    """Scales the learning rate by a factor, from `start_factor` to `end_factor` in `total_iters` epochs

    The rates of four epochs, where the optimizer's is 1:

        optimizer = tn.optim.SGD([tn.ones(2, requires_grad=True)], lr=1.0)
        schedule = tn.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=4)
        rates = []
        for _ in range(4):
            optimizer.step()
            schedule.step()
            rates.append(optimizer.param_groups[0]["lr"])
        rates  # [0.625, 0.75, 0.875, 1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ):
        if not 0 < start_factor <= 1:
            raise OptionError(f"start_factor must lie in (0, 1]: {start_factor}")
        if not 0 <= end_factor <= 1:
            raise OptionError(f"end_factor must lie in [0, 1]: {end_factor}")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        self._check_asked()
        if self.last_epoch == 0:
            return self._scaled(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._present()
        rise = self.end_factor - self.start_factor
        return self._scaled(
            1.0 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise)
        )

    def _get_closed_form_lr(self) -> Rates:
        done = min(self.total_iters, self.last_epoch) / self.total_iters
        factor = self.start_factor + (self.end_factor - self.start_factor) * done
        return [base * factor for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Multiplies the learning rate by `gamma` at every epoch

    The rates of four epochs, where the optimizer's is 1:

        optimizer = tn.optim.SGD([tn.ones(2, requires_grad=True)], lr=1.0)
        schedule = tn.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        rates = []
        for _ in range(4):
            optimizer.step()
            schedule.step()
            rates.append(optimizer.param_groups[0]["lr"])
        rates  # [0.5, 0.25, 0.125, 0.0625]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        self._check_asked()
        return self._present() if self._is_initial else self._scaled(self.gamma)

    def _get_closed_form_lr(self) -> Rates:
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """Decays the learning rate to zero: lr·(1 - epoch / total_iters)^power

    The rates of four epochs, where the optimizer's is 1:

        optimizer = tn.optim.SGD([tn.ones(2, requires_grad=True)], lr=1.0)
        schedule = tn.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4)
        rates = []
        for _ in range(4):
            optimizer.step()
            schedule.step()
            rates.append(optimizer.param_groups[0]["lr"])
        rates  # [0.75, 0.5, 0.25, 0.0]
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1):
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        self._check_asked()
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._present()
        left = lambda epoch: 1.0 - epoch / self.total_iters
        return self._scaled((left(self.last_epoch) / left(self.last_epoch - 1)) ** self.power)

    def _get_closed_form_lr(self) -> Rates:
        left = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * left**self.power for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """Moves the learning rate along a cosine, down to `eta_min` in `T_max` epochs and up again

    The rates of four epochs, where the optimizer's is 1:

        optimizer = tn.optim.SGD([tn.ones(2, requires_grad=True)], lr=1.0)
        schedule = tn.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
        rates = []
        for _ in range(4):
            optimizer.step()
            schedule.step()
            rates.append(optimizer.param_groups[0]["lr"])
        rates  # [0.8536, 0.5, 0.1464, 0.0]
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1):
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        self._check_asked()
        if self._is_initial:
            return self._present()
        if self._step_count == 1 and self.last_epoch > 0:
            return self._get_closed_form_lr()
        groups, least = self.optimizer.param_groups, self.eta_min
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            # At the lowest point the ratio of two epochs has no meaning: from there it goes up.
            up = (1 - math.cos(math.pi / self.T_max)) / 2
            return [
                group["lr"] + (base - least) * up for group, base in zip(groups, self.base_lrs, strict=True)
            ]
        ratio = self._height(self.last_epoch) / self._height(self.last_epoch - 1)
        return [(group["lr"] - least) * ratio + least for group in groups]

    def _height(self, epoch: int) -> float:
        return 1 + math.cos(math.pi * epoch / self.T_max)

    def _get_closed_form_lr(self) -> Rates:
        height = self._height(self.last_epoch)
        return [self.eta_min + (base - self.eta_min) * height / 2 for base in self.base_lrs]
