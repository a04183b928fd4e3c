"""Averages of models are PyTorch's, and so is the schedule that goes with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.runtime.executables import counting_compiles

LIBRARIES = (tn, torch)


def models(bias: float = 0.0) -> list[Any]:
    """A small model of ours and one of PyTorch's, with the same parameters."""
    made = []
    for library in LIBRARIES:
        model = library.nn.Sequential(library.nn.Linear(2, 3), library.nn.BatchNorm1d(3))
        set_parameters(library, model, bias)
        made.append(model)
    return made


def set_parameters(library: Any, model: Any, bias: float) -> None:
    with library.no_grad():
        for i, each in enumerate(model.parameters()):
            values = np.arange(each.numel(), dtype=np.float32).reshape(tuple(each.shape))
            each.copy_(library.tensor(values * 0.1 + bias * (i + 1)))


def same(pair: list[Any]) -> None:
    ours, theirs = (each.state_dict() for each in pair)
    assert set(ours) == set(theirs)
    tn.eval(dict(ours))
    for name, each in theirs.items():
        np.testing.assert_allclose(ours[name].numpy(), each.numpy(), rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("kind", ["mean", "ema", "many", "own"])
@pytest.mark.parametrize("use_buffers", [False, True])
def test_averages_are_pytorchs(kind, use_buffers):
    pair = models()
    averaged = []
    for library, model in zip(LIBRARIES, pair, strict=True):
        swa = library.optim.swa_utils
        options = {
            "mean": {},
            "ema": {"avg_fn": swa.get_ema_avg_fn(0.9)},
            "many": {"multi_avg_fn": swa.get_ema_multi_avg_fn(0.9)},
            "own": {"avg_fn": lambda mine, new, count: mine * 0.25 + new * 0.75},
        }[kind]
        averaged.append(swa.AveragedModel(model, use_buffers=use_buffers, **options))
    for bias in (1.0, 3.0, -2.0):
        for library, model, average in zip(LIBRARIES, pair, averaged, strict=True):
            set_parameters(library, model, bias)
            model(library.ones(4, 2) * bias)
            average.update_parameters(model)
    same(averaged)


def test_an_update_reads_nothing():
    model = tn.nn.Linear(2, 3)
    average = tn.optim.swa_utils.AveragedModel(model)
    update = tn.compile(lambda: average.update_parameters(model))
    with counting_compiles() as compiles:
        for bias in (1.0, 2.0, 6.0):
            set_parameters(tn, model, bias)
            tn.eval(*model.parameters())
            update()
    assert average.n_averaged.item() == 3 and compiles <= 3
    expected = np.arange(3, dtype=np.float32) * 0.1 + 6.0
    np.testing.assert_allclose(average.module.bias.detach().numpy(), expected, rtol=1e-6)


def test_batch_statistics_are_those_of_all_data():
    pair = models()
    batches = np.random.default_rng(0).normal(size=(3, 5, 2)).astype(np.float32)
    for library, model in zip(LIBRARIES, pair, strict=True):
        model.eval()
        library.optim.swa_utils.update_bn([(library.tensor(each),) for each in batches], model)
        assert not model.training and model[1].momentum == 0.1
    same(pair)


@pytest.mark.parametrize(
    "options", [{}, {"anneal_strategy": "linear", "anneal_epochs": 5}, {"anneal_epochs": 0}]
)
def test_the_schedule_is_pytorchs(options):
    told = []
    for library in LIBRARIES:
        params = [library.ones(2).requires_grad_() for _ in range(2)]
        optimizer = library.optim.SGD([{"params": params[:1]}, {"params": params[1:], "lr": 0.3}], lr=0.1)
        schedule = library.optim.swa_utils.SWALR(optimizer, [0.01, 0.5], **options)
        rates = []
        for _ in range(15):
            optimizer.step()
            schedule.step()
            rates.append(schedule.get_last_lr())
        told.append(rates)
    np.testing.assert_allclose(told[0], told[1], rtol=1e-12)


def test_mistakes_are_explained():
    optimizer = tn.optim.SGD([tn.ones(2).requires_grad_()])
    with pytest.raises(ValueError, match="anneal_strategy is 'cos' or 'linear'"):
        tn.optim.swa_utils.SWALR(optimizer, 0.1, anneal_strategy="square")
    with pytest.raises(ValueError, match=r"decay must lie in \[0, 1\]"):
        tn.optim.swa_utils.get_ema_avg_fn(2.0)
