"""`functorch`: the names of `torch.func`, and the older ones that make a function of a module."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from typing import Any

from tenfold.base.errors import ArgumentError, located
from tenfold.compat.export.proxy_tensor import make_fx
from tenfold.func import (
    associative_scan,
    functional_call,
    functionalize,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    replace_all_batch_norm_modules_,
    stack_module_state,
    vjp,
    vmap,
)
from tenfold.func.batching import batch_size
from tenfold.nn import Module, Parameter
from tenfold.tensor import Tensor

__all__ = [
    "FunctionalModule", "FunctionalModuleWithBuffers", "associative_scan", "chunk_vmap",
    "combine_state_for_ensemble",
    "functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp",
    "linearize", "make_functional", "make_functional_with_buffers", "make_fx",
    "replace_all_batch_norm_modules_", "stack_module_state", "vjp", "vmap",
]  # fmt: skip


def chunk_vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", chunks: int = 2
) -> Callable[..., Any]:
    """Return `func` mapped over a batch in so many chunks, which are computed one after the other."""

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        size = batch_size(args, in_dims)
        return vmap(func, in_dims, out_dims, randomness, chunk_size=-(-size // chunks))(*args, **kwargs)

    return mapped


class FunctionalModuleWithBuffers(Module):
    """A module without state of its own: called with parameters and buffers before its arguments."""

    def __init__(self, stateless_model: Module, param_names: Sequence[str], buffer_names: Sequence[str]):
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names, self.buffer_names = tuple(param_names), tuple(buffer_names)

    def forward(self, params: Sequence[Tensor], buffers: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        named = dict(zip(self.param_names, params, strict=True))
        named.update(zip(self.buffer_names, buffers, strict=True))
        return functional_call(self.stateless_model, named, args, kwargs)


class FunctionalModule(FunctionalModuleWithBuffers):
    """The same of a module without buffers: called with parameters before its arguments."""

    def forward(self, params: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        return super().forward(params, (), *args, **kwargs)


def _parameters(model: Module, disable_autograd_tracking: bool) -> tuple[Tensor, ...]:
    taken = (parameter.detach().clone() for parameter in model.parameters())
    return tuple(
        Parameter(value, requires_grad=own.requires_grad and not disable_autograd_tracking)
        for value, own in zip(taken, model.parameters(), strict=True)
    )


@located
def make_functional(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModule, tuple[Tensor, ...]]:
    """A module as a function of its parameters, and copies of these."""
    if any(True for _ in model.buffers()):
        raise ArgumentError("the module has buffers", help="use make_functional_with_buffers")
    names = [name for name, _ in model.named_parameters()]
    return FunctionalModule(copy.deepcopy(model), names, ()), _parameters(model, disable_autograd_tracking)


@located
def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """A module as a function of its parameters and buffers, and copies of these."""
    names = [[name for name, _ in named] for named in (model.named_parameters(), model.named_buffers())]
    buffers = tuple(buffer.detach().clone() for buffer in model.buffers())
    function = FunctionalModuleWithBuffers(copy.deepcopy(model), *names)
    return function, _parameters(model, disable_autograd_tracking), buffers


@located
def combine_state_for_ensemble(
    models: Sequence[Module],
) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Modules of one kind as one function, and their parameters and buffers, stacked: to `vmap` over them."""
    params, buffers = stack_module_state(models)
    function = FunctionalModuleWithBuffers(copy.deepcopy(models[0]), tuple(params), tuple(buffers))
    return function, tuple(params.values()), tuple(buffers.values())
