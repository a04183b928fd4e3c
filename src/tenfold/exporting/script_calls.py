"""Calls of TorchScript that libtorch runs: without gradients, and with arrays in the place of tensors."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tenfold.base.errors import ArgumentError, UnsupportedError, did_you_mean
from tenfold.base.source import capture
from tenfold.tensor import Tensor
from tenfold.tensor.interchange import from_numpy
from tenfold.trace import tree


class Compiled:
    """TorchScript that libtorch runs. Its methods or functions are attributes, which take and give tensors,
    numbers, strings, None, and lists, tuples and dicts of these."""

    _script: Any

    def _run(self, method: str, args: Sequence[Any], kwargs: Mapping[str, Any] = {}) -> Any:
        script = self._script
        placed = _placed(method, args, kwargs, script.text("code")) if kwargs else args
        return _tensors(script.call(method, [_arrays(each) for each in placed]))

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name in self._script.ask("methods"):
            return lambda *args, **kwargs: self._run(name, args, kwargs)
        raise AttributeError(f"the TorchScript module has no method {name}")


def _placed(method: str, args: Sequence[Any], kwargs: Mapping[str, Any], code: str) -> list[Any]:
    """The arguments in the places that the method's code gives their names, with its defaults between."""
    header = re.search(rf"^def {re.escape(method)}\((.*?)\) -> ", code, re.MULTILINE | re.DOTALL)
    assert header is not None
    (function,) = ast.parse(f"def method({header[1]}): pass").body
    assert isinstance(function, ast.FunctionDef)
    names = [each.arg for each in function.args.args][1:]
    defaults = dict(zip(reversed(names), reversed(function.args.defaults), strict=False))
    found, left = list(args), dict(kwargs)
    for name in names[len(args) :]:
        if name in left:
            found.append(left.pop(name))
        elif not left:
            break
        elif name in defaults:
            found.append(ast.literal_eval(defaults[name]))
        else:
            raise ArgumentError(f"needs {name!r}").located(method, capture())
    for name in left:
        if name in names:
            raise ArgumentError(f"{name!r} is given twice").located(method, capture())
        raise ArgumentError(f"takes no {name!r}", help=did_you_mean(name, names)).located(method, capture())
    return found


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
