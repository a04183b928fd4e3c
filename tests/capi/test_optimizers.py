"""libtenfold's optimizers beside PyTorch's: many steps of each with many options, state saved and loaded."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
import torch

from tenfold.base.errors import EngineError, TenfoldError, UnknownName
from tests.capi.bridge import Bridge, handles

CASES: list[tuple[str, dict[str, Any]]] = [
    ("sgd", {}),
    ("sgd", {"momentum": 0.9}),
    ("sgd", {"momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1}),
    ("sgd", {"momentum": 0.5, "nesterov": 1, "maximize": 1}),
    ("adam", {}),
    ("adam", {"weight_decay": 0.1, "beta1": 0.8, "beta2": 0.95, "eps": 1e-6}),
    ("adam", {"amsgrad": 1, "maximize": 1}),
    ("adamw", {}),
    ("adamw", {"weight_decay": 0.2, "amsgrad": 1}),
    ("rmsprop", {}),
    ("rmsprop", {"momentum": 0.9, "weight_decay": 0.1}),
    ("rmsprop", {"centered": 1, "alpha": 0.9, "eps": 1e-5, "maximize": 1}),
    ("adagrad", {}),
    ("adagrad", {"lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5, "eps": 1e-6}),
]
CLASSES = {
    "sgd": torch.optim.SGD,
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "rmsprop": torch.optim.RMSprop,
    "adagrad": torch.optim.Adagrad,
}
FLAGS = ("nesterov", "maximize", "amsgrad", "centered")


def golden(method: str, parameters: list[torch.Tensor], lr: float, options: dict[str, Any]) -> Any:
    given = {name: bool(value) if name in FLAGS else value for name, value in options.items()}
    if "beta1" in given:
        given["betas"] = (given.pop("beta1"), given.pop("beta2"))
    return CLASSES[method](parameters, lr=lr, **given)


def starts(dtype: str = "float32") -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    arrays = [rng.standard_normal((3, 4)), rng.standard_normal(5), rng.standard_normal(())]
    return [each.astype(dtype) for each in arrays]


def made(tn: Bridge, method: str, parameters: list[Any], lr: float, options: dict[str, Any]) -> int:
    optimizer = getattr(tn, f"tn_optimizer_{method}")(*handles(parameters), lr)
    for name, value in options.items():
        tn.tn_optimizer_set(optimizer, name.encode(), value)
    return optimizer


def step(tn: Bridge, optimizer: int, parameters: list[Any], numbers: list[np.ndarray], dtype: str) -> None:
    for each, gradient in zip(parameters, numbers, strict=True):
        tn.tn_set_grad(each, tn.tensor(gradient, dtype))
    tn.tn_optimizer_step(optimizer)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize(("method", "options"), CASES)
def test_steps_equal_pytorchs(tn: Bridge, method: str, options: dict[str, Any], dtype: str) -> None:
    arrays = starts(dtype)
    parameters = [tn.tensor(each, dtype, requires_grad=True) for each in arrays]
    expected = [torch.tensor(each, requires_grad=True) for each in arrays]
    optimizer = made(tn, method, parameters, 0.05, options)
    reference = golden(method, expected, 0.05, options)
    rng = np.random.default_rng(5)
    for i in range(5):
        numbers = [np.asarray(rng.standard_normal(each.shape)).astype(dtype) for each in arrays]
        if dtype == "complex64":
            numbers = [(each + 1j * rng.standard_normal(each.shape)).astype(dtype) for each in numbers]
        step(tn, optimizer, parameters, numbers, dtype)
        for each, gradient in zip(expected, numbers, strict=True):
            each.grad = torch.tensor(gradient)
        reference.step()
        if i == 2:
            tn.tn_optimizer_set(optimizer, b"lr", 0.02)
            reference.param_groups[0]["lr"] = 0.02
    for each, wanted in zip(parameters, expected, strict=True):
        np.testing.assert_allclose(tn.array(each), wanted.detach().numpy(), rtol=2e-5, atol=2e-6)
    tn.tn_optimizer_free(optimizer)


@pytest.mark.parametrize("method", list(CLASSES))
def test_defaults_are_pytorchs(tn: Bridge, method: str) -> None:
    x = tn.tensor([1.0], requires_grad=True)
    reference = golden(method, [torch.ones(1, requires_grad=True)], 0.25, {}).param_groups[0]
    optimizer = made(tn, method, [x], 0.25, {})
    value = ctypes.c_double()
    names = {name for name in reference if isinstance(reference[name], int | float)}
    options = ("lr", "momentum", "dampening", "weight_decay", "alpha", "eps", "lr_decay", *FLAGS)
    for name in names & set(options):
        tn.tn_optimizer_get(optimizer, name.encode(), ctypes.byref(value))
        assert value.value == float(reference[name]), name
    if "betas" in reference:
        for name, wanted in zip(("beta1", "beta2"), reference["betas"], strict=True):
            tn.tn_optimizer_get(optimizer, name.encode(), ctypes.byref(value))
            assert value.value == wanted
    tn.tn_optimizer_free(optimizer)


def test_parameters_without_a_gradient_stay(tn: Bridge) -> None:
    x, y = tn.tensor([1.0], requires_grad=True), tn.tensor([2.0], requires_grad=True)
    optimizer = made(tn, "adam", [x, y], 0.1, {})
    tn.tn_set_grad(x, tn.tensor([1.0]))
    tn.tn_optimizer_step(optimizer)
    assert tn.array(x)[0] < 1 and tn.array(y)[0] == 2
    tn.tn_optimizer_zero_grad(optimizer)
    assert tn.tn_has_grad(x) == 0
    tn.tn_optimizer_step(optimizer)
    tn.tn_optimizer_free(optimizer)


def test_a_transposed_parameter_takes_the_same_step(tn: Bridge) -> None:
    array = starts()[0]
    x = tn.call("t", tn.tensor(array))
    tn.tn_set_requires_grad(x, True)
    expected = torch.tensor(array).T.requires_grad_(True)
    optimizer, reference = made(tn, "adam", [x], 0.1, {}), golden("adam", [expected], 0.1, {})
    gradient = np.arange(12, dtype=np.float32).reshape(4, 3) - 5
    for _ in range(3):
        step(tn, optimizer, [x], [gradient], "float32")
        expected.grad = torch.tensor(gradient)
        reference.step()
    np.testing.assert_allclose(tn.array(x), expected.detach().numpy(), rtol=2e-6)
    tn.tn_optimizer_free(optimizer)


@pytest.mark.parametrize(("method", "options"), [case for case in CASES if case[1]])
def test_state_that_is_loaded_goes_on(tn: Bridge, method: str, options: dict[str, Any]) -> None:
    arrays = starts()
    rng = np.random.default_rng(7)
    steps = [[np.asarray(rng.standard_normal(each.shape), np.float32) for each in arrays] for _ in range(4)]
    whole = [tn.tensor(each, requires_grad=True) for each in arrays]
    first = made(tn, method, whole, 0.05, options)
    for numbers in steps[:2]:
        step(tn, first, whole, numbers, "float32")
    state = tn.tn_optimizer_state(first)
    resumed = [tn.tensor(tn.array(each), requires_grad=True) for each in whole]
    second = made(tn, method, resumed, 1.0, {})
    tn.tn_optimizer_set_state(second, state)
    for numbers in steps[2:]:
        step(tn, first, whole, numbers, "float32")
        step(tn, second, resumed, numbers, "float32")
    for each, other in zip(whole, resumed, strict=True):
        np.testing.assert_array_equal(tn.array(each), tn.array(other))
    tn.tn_value_free(state)
    tn.tn_optimizer_free(first)
    tn.tn_optimizer_free(second)


def test_what_is_no_state_of_it_is_refused(tn: Bridge) -> None:
    x, y = tn.tensor([1.0], requires_grad=True), tn.tensor([1.0, 2.0], requires_grad=True)
    adam, sgd, other = (made(tn, name, [p], 0.1, {}) for name, p in (("adam", x), ("sgd", x), ("adam", y)))
    step(tn, adam, [x], [np.ones(1)], "float32")
    state, number = tn.tn_optimizer_state(adam), tn.tn_value_int(3)
    for optimizer, given, why in (
        (sgd, state, "not of sgd"),
        (other, state, "another shape"),
        (adam, number, "not a dict"),
    ):
        with pytest.raises(EngineError, match=why):
            tn.tn_optimizer_set_state(optimizer, given)
    for each in (state, number):
        tn.tn_value_free(each)
    for each in (adam, sgd, other):
        tn.tn_optimizer_free(each)


def test_bad_options_and_parameters_are_errors(tn: Bridge) -> None:
    x = tn.tensor([1.0], requires_grad=True)
    optimizer = made(tn, "sgd", [x], 0.1, {})
    with pytest.raises(UnknownName, match="sgd has no option beta1: it has lr, momentum"):
        tn.tn_optimizer_set(optimizer, b"beta1", 0.5)
    for name, value in ((b"lr", -1.0), (b"lr", float("nan")), (b"nesterov", 0.5)):
        with pytest.raises(EngineError):
            tn.tn_optimizer_set(optimizer, name, value)
    tn.tn_optimizer_set(optimizer, b"nesterov", 1)
    tn.tn_set_grad(x, tn.tensor([1.0]))
    with pytest.raises(EngineError, match="nesterov needs a momentum"):
        tn.tn_optimizer_step(optimizer)
    for parameters in ([], [None], [x, x], [tn.call("exp", x)], [tn.tensor([1], "int64")]):
        with pytest.raises(TenfoldError):
            tn.tn_optimizer_adam(*handles(parameters), 0.1)
    with pytest.raises(EngineError):
        tn.tn_optimizer_step(None)
    tn.tn_optimizer_free(optimizer)


def test_a_callback_inside_a_step_cannot_use_its_optimizer(tn: Bridge) -> None:
    x = tn.tensor(np.ones(100), requires_grad=True)
    tn.tn_set_grad(x, tn.tensor(np.ones(100)))
    optimizer = made(tn, "adam", [x], 0.1, {})
    told: list[str] = []

    def collect(live: int, user: int) -> None:
        try:
            tn.tn_optimizer_set(optimizer, b"lr", 5.0)
        except TenfoldError as error:
            told.append(str(error))

    callback = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)(collect)
    tn.tn_set_pressure_callback(0, callback, None)
    tn.tn_optimizer_step(optimizer)  # which allocates what it remembers
    tn.tn_set_pressure_callback(0, None, None)
    assert told and all("at work" in each for each in told)
    tn.tn_optimizer_set(optimizer, b"lr", 5.0)
    tn.tn_optimizer_free(optimizer)
