"""Every schedule gives the learning rates that PyTorch's gives, epoch by epoch, also after being stored."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tenfold as tn

SCHEDULES: dict[str, Callable[[Any, Any], Any]] = {
    "LambdaLR": lambda s, o: s.LambdaLR(o, [lambda e: 0.95**e, lambda e: 1 / (e + 1)]),
    "MultiplicativeLR": lambda s, o: s.MultiplicativeLR(o, lambda e: 0.9 + 0.001 * e),
    "StepLR": lambda s, o: s.StepLR(o, 7, gamma=0.5),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [3, 10, 10, 40], gamma=0.5),
    "ConstantLR": lambda s, o: s.ConstantLR(o, factor=0.25, total_iters=9),
    "LinearLR": lambda s, o: s.LinearLR(o, start_factor=0.2, end_factor=0.9, total_iters=20),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.93),
    "PolynomialLR": lambda s, o: s.PolynomialLR(o, total_iters=30, power=1.7),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, T_max=13, eta_min=0.01),
    "CosineAnnealingWarmRestarts": lambda s, o: s.CosineAnnealingWarmRestarts(
        o, T_0=4, T_mult=2, eta_min=0.01
    ),
    "CosineAnnealingWarmRestarts of one length": lambda s, o: s.CosineAnnealingWarmRestarts(o, T_0=5),
    "CyclicLR": lambda s, o: s.CyclicLR(o, 0.01, 0.3, step_size_up=5, step_size_down=8),
    "CyclicLR triangular2": lambda s, o: s.CyclicLR(o, [0.01, 0.02], 0.3, step_size_up=5, mode="triangular2"),
    "CyclicLR exp_range": lambda s, o: s.CyclicLR(o, 0.01, 0.3, step_size_up=6, mode="exp_range", gamma=0.97),
    "CyclicLR by a function": lambda s, o: s.CyclicLR(
        o, 0.01, 0.3, 6, scale_fn=lambda x: 1 / x, cycle_momentum=False
    ),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, [0.3, 0.5], total_steps=62),
    "OneCycleLR in three phases": lambda s, o: s.OneCycleLR(
        o, 0.3, epochs=7, steps_per_epoch=9, three_phase=True, anneal_strategy="linear"
    ),
    "SequentialLR": lambda s, o: s.SequentialLR(
        o,
        [s.LinearLR(o, 0.1, total_iters=5), s.CosineAnnealingLR(o, 20), s.ExponentialLR(o, 0.9)],
        milestones=[5, 25],
    ),
    "SequentialLR of a chain": lambda s, o: s.SequentialLR(
        o, [s.ChainedScheduler([s.ConstantLR(o), s.ExponentialLR(o, 0.9)]), s.StepLR(o, 3)], milestones=[12]
    ),
    "ChainedScheduler": lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 4), s.ExponentialLR(o, 0.95)]),
}


def optimizers(kind: str = "SGD", **options: Any) -> tuple[Any, Any]:
    options = options or ({"momentum": 0.9} if kind == "SGD" else {})
    made = []
    for library in (tn, torch):
        params = [library.ones(2).requires_grad_() for _ in range(2)]
        groups = [{"params": [params[0]]}, {"params": [params[1]], "lr": 0.2}]
        made.append(getattr(library.optim, kind)(groups, lr=0.1, **options))
    return made[0], made[1]


def told(optimizer: Any) -> list[Any]:
    """What a schedule may change of each group."""
    return [
        [float(group[name]) for name in ("lr", "momentum") if name in group] + list(group.get("betas", ()))
        for group in optimizer.param_groups
    ]


def both(name: str, ours: Any, theirs: Any) -> tuple[Any, Any]:
    return SCHEDULES[name](tn.optim.lr_scheduler, ours), SCHEDULES[name](torch.optim.lr_scheduler, theirs)


@pytest.mark.filterwarnings("ignore:.*before .*optimizer")
@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_sixty_epochs_are_pytorchs(name, kind):
    ours, theirs = optimizers(kind)
    our, their = both(name, ours, theirs)
    for _ in range(60):
        np.testing.assert_allclose(told(ours), told(theirs), rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(our.get_last_lr(), their.get_last_lr(), rtol=1e-12, atol=1e-15)
        ours.step()
        theirs.step()
        our.step()
        their.step()


@pytest.mark.filterwarnings("ignore:.*before .*optimizer")
@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_goes_on_from_its_stored_state(name):
    ours, theirs = optimizers()
    our, their = both(name, ours, theirs)
    for _ in range(15):
        ours.step()
        theirs.step()
        our.step()
        their.step()
    others, _ = optimizers()
    other = SCHEDULES[name](tn.optim.lr_scheduler, others)
    others.load_state_dict(copy.deepcopy(ours.state_dict()))
    other.load_state_dict(copy.deepcopy(our.state_dict()))
    others.step()
    for _ in range(20):
        np.testing.assert_allclose(told(others), told(theirs), rtol=1e-12, atol=1e-15)
        other.step()
        their.step()


@pytest.mark.parametrize("name", ["StepLR", "CosineAnnealingLR", "LinearLR", "PolynomialLR", "MultiStepLR"])
def test_pytorchs_stored_state_can_be_loaded(name):
    ours, theirs = optimizers()
    our, their = both(name, ours, theirs)
    for _ in range(9):
        theirs.step()
        their.step()
    ours.load_state_dict(theirs.state_dict())
    our.load_state_dict(their.state_dict())
    ours.step()
    for _ in range(9):
        our.step()
        their.step()
    np.testing.assert_allclose(told(ours), told(theirs), rtol=1e-12)


CLOSED = [
    "StepLR",
    "MultiStepLR",
    "ConstantLR",
    "LinearLR",
    "ExponentialLR",
    "PolynomialLR",
    "CosineAnnealingLR",
]


@pytest.mark.parametrize(
    "name", [*CLOSED, "CosineAnnealingWarmRestarts", "CosineAnnealingWarmRestarts of one length"]
)
def test_any_epoch_can_be_asked_for(name):
    ours, theirs = optimizers()
    our, their = both(name, ours, theirs)
    ours.step()
    theirs.step()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for epoch in (3, 17, 0, 41):
            our.step(epoch)
            their.step(epoch)
            np.testing.assert_allclose(told(ours), told(theirs), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mode": "max"},
        {"threshold_mode": "abs", "threshold": 0.1},
        {"mode": "max", "threshold_mode": "abs"},
    ],
)
def test_a_plateau_lowers_the_rate(options):
    ours, theirs = optimizers()
    options = {"patience": 2, "cooldown": 3, "factor": 0.5, "min_lr": [0.001, 0.01], **options}
    our = tn.optim.lr_scheduler.ReduceLROnPlateau(ours, **options)
    their = torch.optim.lr_scheduler.ReduceLROnPlateau(theirs, **options)
    draws = np.random.default_rng(0)
    for _ in range(60):
        metric = float(draws.normal())
        our.step(tn.tensor(metric, dtype=tn.float64))
        their.step(metric)
        assert told(ours) == told(theirs) and our.num_bad_epochs == their.num_bad_epochs
    other = tn.optim.lr_scheduler.ReduceLROnPlateau(ours, **options)
    other.load_state_dict(our.state_dict())
    assert (other.best, other.cooldown_counter) == (their.best, their.cooldown_counter)


def test_a_rate_that_is_a_tensor_stays_the_same_tensor():
    weight = tn.ones(2).requires_grad_()
    rate = tn.tensor(0.5)
    optimizer = tn.optim.SGD([weight], lr=rate)
    schedule = tn.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    optimizer.step()
    schedule.step()
    assert optimizer.param_groups[0]["lr"] is rate and rate.item() == 0.25
    assert schedule.get_last_lr()[0].item() == 0.25


def test_a_schedule_in_a_compiled_function_is_refused():
    weight = tn.ones(2).requires_grad_()
    optimizer = tn.optim.SGD([weight], lr=0.5)
    schedule = tn.optim.lr_scheduler.StepLR(optimizer, 1)

    @tn.compile
    def step():
        weight.sum().backward()
        optimizer.step()
        schedule.step()
        return weight * 1

    with pytest.raises(tn.TraceError, match="a schedule in a compiled function"):
        step()
    assert optimizer.param_groups[0]["lr"] == 0.5 and weight.tolist() == [1, 1]


def test_a_schedule_that_steps_first_is_warned_about():
    optimizer, _ = optimizers()
    schedule = tn.optim.lr_scheduler.StepLR(optimizer, 3)
    with pytest.warns(UserWarning, match="before the optimizer's"):
        schedule.step()
    with pytest.warns(UserWarning, match="the last is get_last_lr"):
        schedule.get_lr()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda s, o: s.StepLR(3, 4), "is of an Optimizer, not of a int"),
        (lambda s, o: s.LambdaLR(o, [lambda e: 1.0]), "lr_lambda has 1 entries for 2 groups"),
        (lambda s, o: s.MultiplicativeLR(o, 0.5), "lr_lambda is a function of the epoch"),
        (lambda s, o: s.ConstantLR(o, 2), r"factor must lie in \[0, 1\]"),
        (lambda s, o: s.LinearLR(o, 0), "start_factor must lie in"),
        (lambda s, o: s.OneCycleLR(o, 0.1), "the number of steps is not given"),
        (lambda s, o: s.OneCycleLR(o, 0.1, 10, pct_start=2), "pct_start is a float"),
        (lambda s, o: s.CyclicLR(o, 0.1, 0.2, mode="square"), "mode is triangular"),
        (lambda s, o: s.CosineAnnealingWarmRestarts(o, 0), "T_0 is a positive integer"),
        (lambda s, o: s.ReduceLROnPlateau(o, factor=1.5), "factor must be below 1"),
        (lambda s, o: s.SequentialLR(o, [s.StepLR(o, 1)], [3]), "1 schedules need 0 milestones"),
        (lambda s, o: s.ChainedScheduler([s.ReduceLROnPlateau(o)]), "needs a metric at each step"),
        (lambda s, o: s.StepLR(o, 3, last_epoch=2), "has no initial_lr to go on from"),
    ],
)
def test_wrong_schedules_are_refused(make, message):
    optimizer, _ = optimizers()
    with pytest.raises(tn.TenfoldError, match=message):
        make(tn.optim.lr_scheduler, optimizer)


def test_momentum_cycles_only_where_there_is_one():
    optimizer = tn.optim.Adagrad([tn.ones(2).requires_grad_()])
    with pytest.raises(ValueError, match="Adagrad has neither momentum nor betas to cycle"):
        tn.optim.lr_scheduler.CyclicLR(optimizer, 0.1, 0.2)
