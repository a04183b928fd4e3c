"""Optimizers and schedules of other languages beside PyTorch's: the options that each is tried with, and
where PyTorch ends up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.optim import lr_scheduler

__all__ = [
    "GOAL",
    "OPTIMIZERS",
    "SCHEDULES",
    "START",
    "STEPS",
    "expected_parameters",
    "expected_rates",
    "written",
]

STEPS = 12
START, GOAL = [2.0, -1.0, 0.5], [0.5, 1.5, -1.0]
OPTIMIZERS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.2, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "momentum": 0.8, "nesterov": True}),
    ("SGD", {"lr": 0.01, "maximize": True}),
    ("Adam", {}),
    ("Adam", {"lr": 0.2, "beta1": 0.7, "beta2": 0.95, "eps": 1e-3, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.1, "amsgrad": True, "maximize": True}),
    ("AdamW", {}),
    ("AdamW", {"lr": 0.1, "weight_decay": 0.3, "amsgrad": True}),
    ("RMSprop", {}),
    ("RMSprop", {"lr": 0.05, "alpha": 0.8, "eps": 1e-4, "momentum": 0.5, "centered": True}),
    ("RMSprop", {"lr": 0.05, "weight_decay": 0.1, "maximize": True}),
    ("Adagrad", {}),
    ("Adagrad", {"lr": 0.3, "lr_decay": 0.1, "weight_decay": 0.05, "initial_accumulator_value": 0.4}),
]
# The name of a schedule, its arguments after the optimizer, and PyTorch's own.
SCHEDULES: list[tuple[str, list[float], Callable[[Any], Any]]] = [
    ("StepLR", [3], lambda optimizer: lr_scheduler.StepLR(optimizer, 3)),
    ("StepLR", [5, 0.5], lambda optimizer: lr_scheduler.StepLR(optimizer, 5, 0.5)),
    ("ExponentialLR", [0.9], lambda optimizer: lr_scheduler.ExponentialLR(optimizer, 0.9)),
    ("CosineAnnealingLR", [12], lambda optimizer: lr_scheduler.CosineAnnealingLR(optimizer, 12)),
    ("CosineAnnealingLR", [5, 0.02], lambda optimizer: lr_scheduler.CosineAnnealingLR(optimizer, 5, 0.02)),
]


def written(options: dict[str, Any], assign: str) -> str:
    """Options as a Lua table (`=`) or a JavaScript object (`:`)."""
    parts = [f"{name}{assign} {str(value).lower()}" for name, value in options.items()]
    return "{ " + ", ".join(parts) + " }"


def expected_parameters(name: str, options: dict[str, Any]) -> list[float]:
    keywords = dict(options)
    if name in ("Adam", "AdamW"):
        keywords["betas"] = (keywords.pop("beta1", 0.9), keywords.pop("beta2", 0.999))
    w, goal = torch.tensor(START, requires_grad=True), torch.tensor(GOAL)
    optimizer = getattr(torch.optim, name)([w], **keywords)
    for _ in range(STEPS):
        optimizer.zero_grad()
        ((w - goal) * (w - goal) + w.sin()).sum().backward()
        optimizer.step()
    return w.tolist()


def expected_rates(schedule: Callable[[Any], Any]) -> list[float]:
    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)
    schedule = schedule(optimizer)
    rates = []
    for _ in range(STEPS):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return rates
