"""Weight averaging: `AveragedModel`, its schedule `SWALR`, and `update_bn`, which recomputes the statistics
of batch norms for averaged parameters."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tenfold.autograd.grad_mode import no_grad
from tenfold.base import dtypes
from tenfold.nn.module import Module
from tenfold.nn.normalisation import _BatchNorm
from tenfold.optim.optimizer import Optimizer, OptionError
from tenfold.optim.scheduler import LRScheduler, Rates, for_groups
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten
from tenfold.tensor.interchange import tensor

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

Average = Callable[[Tensor, Tensor, Any], Tensor]
ManyAverages = Callable[[Sequence[Tensor], Sequence[Tensor], Any], None]


def get_swa_avg_fn() -> Average:
    """Return a function that computes the mean of a parameter over all models so far."""

    @no_grad()
    def average(averaged: Tensor, current: Tensor, count: Any) -> Tensor:
        return averaged + (current - averaged) / (count + 1)

    return average


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """Return a function that computes a moving average, in which earlier models fade by `decay`."""
    if not 0 <= decay <= 1:
        raise OptionError(f"decay must lie in [0, 1]: {decay}")

    @no_grad()
    def average(averaged: Tensor, current: Tensor, count: Any) -> Tensor:
        return decay * averaged + (1 - decay) * current

    return average


def _of_many(average: Average) -> ManyAverages:
    @no_grad()
    def update(averaged: Sequence[Tensor], current: Sequence[Tensor], count: Any) -> None:
        for each, new in zip(averaged, current, strict=True):
            each.copy_(average(each, new, count))

    return update


def get_swa_multi_avg_fn() -> ManyAverages:
    """Return a function that sets a list of parameters to their means over all models so far."""
    return _of_many(get_swa_avg_fn())


def get_ema_multi_avg_fn(decay: float = 0.999) -> ManyAverages:
    """Return a function that sets a list of parameters to their moving averages, which fade by `decay`."""
    return _of_many(get_ema_avg_fn(decay))


class AveragedModel(Module):
    """A copy of a model whose parameters are averages over the models given to `update_parameters`.

    By default this is the mean. `avg_fn(averaged, current, count)` computes another average of one parameter,
    `multi_avg_fn` of all parameters at once."""

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Average | None = None,
        multi_avg_fn: ManyAverages | None = None,
        use_buffers: bool = False,
    ):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise OptionError("avg_fn and multi_avg_fn are both given", help="pass one of them")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", tensor(0, dtype=dtypes.int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Add a model to the average. Buffers are copied, or with `use_buffers` also averaged."""
        own: list[Tensor] = list(self.module.parameters())
        others: list[Tensor] = list(model.parameters())
        own_buffers, other_buffers = list(self.module.buffers()), list(model.buffers())
        if self.use_buffers:
            own, others = own + own_buffers, others + other_buffers
        with no_grad():
            current = [other.detach().to(mine.device) for mine, other in zip(own, others, strict=True)]
            averaged = [each.detach() for each in own]
            if self.multi_avg_fn is not None:
                self.multi_avg_fn(averaged, current, self.n_averaged)
            else:
                average = self.avg_fn or get_swa_avg_fn()
                for mine, new in zip(averaged, current, strict=True):
                    mine.copy_(average(mine, new, self.n_averaged))
            first = self.n_averaged == 0  # decided where the numbers are, so that nothing is read
            for mine, new in zip(averaged, current, strict=True):
                mine.copy_(aten("where")(first, new, mine))
            if not self.use_buffers:
                for mine, new in zip(own_buffers, other_buffers, strict=True):
                    mine.copy_(new.detach().to(mine.device))
            self.n_averaged.add_(1)


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Recompute the running statistics of a model's batch norms as their means over the data."""
    layers = [module for module in model.modules() if isinstance(module, _BatchNorm)]
    if not layers:
        return
    momenta = [layer.momentum for layer in layers]
    training = model.training
    model.train()
    try:
        for layer in layers:
            layer.reset_running_stats()
            layer.momentum = None
        with no_grad():
            for batch in loader:
                data = batch[0] if isinstance(batch, (list, tuple)) else batch
                model(data if device is None else data.to(device))
    finally:
        for layer, momentum in zip(layers, momenta, strict=True):
            layer.momentum = momentum
        model.train(training)


class SWALR(LRScheduler):
    """Moves the learning rate to `swa_lr` in `anneal_epochs` epochs, and keeps it there

    The rates of four epochs, where the optimizer's is 1:

        optimizer = tn.optim.SGD([tn.ones(2, requires_grad=True)], lr=1.0)
        schedule = tn.optim.swa_utils.SWALR(optimizer, swa_lr=0.1, anneal_epochs=2, anneal_strategy="linear")
        rates = []
        for _ in range(4):
            optimizer.step()
            schedule.step()
            rates.append(optimizer.param_groups[0]["lr"])
        rates  # [0.55, 0.1, 0.1, 0.1]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ):
        for group, rate in zip(optimizer.param_groups, for_groups("swa_lr", optimizer, swa_lr), strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise OptionError(f"anneal_strategy is 'cos' or 'linear', not {anneal_strategy!r}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise OptionError(f"anneal_epochs is a number that is not negative: {anneal_epochs!r}")
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _done(self, step: int) -> float:
        """How much of the way is behind after so many steps."""
        part = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return part if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * part)) / 2

    def get_lr(self) -> Rates:
        self._check_asked()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._done(step - 1), self._done(step)
        rates = []
        for group in self.optimizer.param_groups:
            start = (
                group["swa_lr"] if before == 1 else (group["lr"] - before * group["swa_lr"]) / (1 - before)
            )
            rates.append(group["swa_lr"] * now + start * (1 - now))
        return rates
