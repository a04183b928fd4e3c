"""Calls of TorchScript that libtorch runs, with arrays in the place of tensors. Where gradients are followed
its autograd records the call, which is joined to our graph as one step."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.autograd.custom import Function
from tenfold.autograd.flow import is_grad_enabled
from tenfold.autograd.grad_mode import no_grad
from tenfold.base.errors import ArgumentError, UnsupportedError, did_you_mean
from tenfold.base.source import capture
from tenfold.tensor import Tensor
from tenfold.tensor.interchange import from_numpy
from tenfold.trace import tree

if TYPE_CHECKING:
    from tenfold.engines.libtorch_script import Recorded


class Compiled:
    """TorchScript that libtorch runs. Its methods or functions are attributes, which take and give tensors,
    numbers, strings, None, and lists, tuples and dicts of these."""

    _script: Any

    def _run(self, method: str, args: Sequence[Any], kwargs: Mapping[str, Any] = {}) -> Any:
        script = self._script
        placed = _placed(method, args, kwargs, script.text("code")) if kwargs else args
        tensors: list[Tensor] = []
        structure = tree.flatten(list(placed), lambda each: isinstance(each, Tensor), tensors)
        arrays = [tensor.detach().numpy().view() for tensor in tensors]  # each an object of its own
        arguments = tree.unflatten(structure, iter(arrays))
        followed = {
            id(array): tensor for array, tensor in zip(arrays, tensors, strict=True) if tensor.requires_grad
        }
        trained = self._trained()
        if not is_grad_enabled() or not (followed or trained):
            result, written = script.call(method, arguments)
            result = _with_tensors(result)
        else:
            known = [array for array in arrays if id(array) in followed]
            call = script.record(method, arguments, known, [place for place, _ in trained])
            inputs = [*followed.values(), *[tensor for _, tensor in trained]]
            result, written = _with_tensors(call.result, _joined(call, inputs)), call.written
        for array, now in written:
            with no_grad():
                tensors[next(i for i, each in enumerate(arrays) if each is array)].copy_(from_numpy(now))
        return result

    def _trained(self) -> list[tuple[tuple[Any, str, str], Tensor]]:
        """The tensors that are not given, and require gradients, each after where libtorch has it."""
        return []

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


def _with_tensors(result: Any, joined: Mapping[int, Tensor] = {}) -> Any:
    """A result with tensors in the place of its arrays, by the arrays' ids where they are joined already."""
    arrays: list[np.ndarray] = []
    structure = tree.flatten(result, lambda each: isinstance(each, np.ndarray), arrays)
    tensors = [joined[id(array)] if id(array) in joined else from_numpy(array) for array in arrays]
    return tree.unflatten(structure, iter(tensors))


def _joined(call: Recorded, inputs: Sequence[Tensor]) -> dict[int, Tensor]:
    """The tensors of a recorded call's result whose gradients flow to its inputs, by the ids of arrays."""
    arrays = list(call.outputs())
    if not arrays:
        return {}
    return dict(zip(map(id, arrays), _Recorded.apply(call, arrays, *inputs), strict=True))


class _Recorded(Function):
    """The results of a call that libtorch recorded, as one step of our graph."""

    @staticmethod
    def forward(
        ctx: Any, call: Recorded, results: Sequence[np.ndarray], *inputs: Tensor
    ) -> tuple[Tensor, ...]:
        ctx.call = call
        ctx.set_materialize_grads(False)
        return tuple([from_numpy(array) for array in results])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Any, ...]:
        if is_grad_enabled():
            raise UnsupportedError(
                "gradients of gradients do not flow through a TorchScript module",
                help="call backward without create_graph, or load the model itself",
            )
        found = ctx.call.gradients([None if each is None else each.numpy() for each in gradients])
        return (None, None, *[None if each is None else from_numpy(each) for each in found])
