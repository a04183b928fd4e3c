"""The same call in both worlds, PyTorch's and ours, and whether they give the same."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tenfold as tn


def outcome(world: Any, call: Callable[[Any], Any]) -> Any:
    """What a call gives, in a form that compares across the two worlds; or the exception it raises."""
    try:
        return plain(call(world))
    except Exception as error:
        return error


def plain(value: Any) -> Any:
    if isinstance(value, (tn.Tensor, torch.Tensor)):
        elements = value.reshape(-1).tolist()
        if isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex()):
            elements = pytest.approx(elements, rel=1e-5, abs=1e-4 if value.is_complex() else 0, nan_ok=True)
        return [str(value.dtype).split(".")[1], tuple(value.shape), elements]
    if isinstance(value, (tuple, list)):
        return [plain(each) for each in value]
    return type(value).__name__, repr(value).replace("torch", "tenfold")


def agree(call: Callable[[Any], Any]) -> None:
    """Both worlds give the same; or both refuse, ours with an error that PyTorch's users would catch."""
    ours, theirs = outcome(tn, call), outcome(torch, call)
    if isinstance(theirs, Exception):
        assert isinstance(ours, Exception), f"we give {ours}, PyTorch raises {theirs!r}"
        kinds = tuple(k for k in (TypeError, ValueError, IndexError, RuntimeError) if isinstance(theirs, k))
        assert isinstance(ours, kinds), f"we raise {ours!r}, PyTorch {theirs!r}"
    else:
        assert not isinstance(ours, Exception), f"we raise {ours!r}, PyTorch gives {theirs}"
        assert ours == theirs


def cases(*texts: str) -> Any:
    """Expressions over L, the library: each is its own name."""
    names = {"np": np, "math": math, "operator": operator}
    return pytest.mark.parametrize("call", [eval(f"lambda L: {text}", names) for text in texts], ids=texts)


def compute_together(calls: list[tuple[str, Callable[[Any], Any]]]) -> None:
    """Compare many calls; ours are evaluated as one program."""
    results = [(name, attempt(tn, call), attempt(torch, call)) for name, call in calls]
    tn.eval(*[ours for _, ours, _ in results if isinstance(ours, tn.Tensor)])
    wrong = []
    for name, ours, theirs in results:
        try:
            agree(lambda L, pair=(ours, theirs): given(pair[0] if L is tn else pair[1]))
        except AssertionError as error:
            wrong.append(f"{name}: {error}")
    assert not wrong, "\n".join(wrong)


def attempt(world: Any, call: Callable[[Any], Any]) -> Any:
    try:
        return call(world)
    except Exception as error:
        return error


def given(value: Any) -> Any:
    if isinstance(value, Exception):
        raise value
    return value
