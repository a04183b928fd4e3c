"""Calls of TorchScript that libtorch runs: without gradients, and with arrays in the place of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold.base.errors import UnsupportedError
from tenfold.tensor import Tensor
from tenfold.tensor.interchange import from_numpy
from tenfold.trace import tree


class Compiled:
    """TorchScript that libtorch runs. Its methods or functions are attributes, which take and give tensors,
    numbers, strings, None, and lists, tuples and dicts of these."""

    _script: Any

    def _run(self, method: str, args: Sequence[Any]) -> Any:
        found = self._script.call(method, [_arrays(each) for each in args])
        return _tensors(found)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name in self._script.ask("methods"):
            return lambda *args: self._run(name, args)
        raise AttributeError(f"the TorchScript module has no method {name}")


def _arrays(argument: Any) -> Any:
    """An argument with arrays in the place of its tensors, without a gradient."""
    tensors: list[Tensor] = []
    structure = tree.flatten(argument, lambda each: isinstance(each, Tensor), tensors)
    if any(each.requires_grad for each in tensors):
        raise UnsupportedError(
            "gradients do not flow through a TorchScript module",
            help="give x.detach(), or load the model itself",
        )
    return tree.unflatten(structure, iter([each.numpy() for each in tensors]))


def _tensors(result: Any) -> Any:
    arrays: list[Any] = []
    structure = tree.flatten(result, lambda each: isinstance(each, np.ndarray), arrays)
    return tree.unflatten(structure, iter([from_numpy(each) for each in arrays]))
