"""Modules as functions of their parameters: `functional_call`, `stack_module_state`, and what these ask of
batch norms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenfold.base.errors import ArgumentError, located
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten


@located
def functional_call(
    module: Any,
    parameter_and_buffer_dicts: dict[str, Tensor] | Sequence[dict[str, Tensor]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other tensors in the place of its parameters and buffers, by their names; those not
    named stay, and names that it has not are passed over. What is tied, one tensor under several names, is
    replaced under all of them by `tie_weights`; `strict` requires that all are named, and no others."""
    tensors: dict[str, Tensor] = {}
    several = isinstance(parameter_and_buffer_dicts, (list, tuple))
    for part in parameter_and_buffer_dicts if several else (parameter_and_buffer_dicts,):
        if not isinstance(part, dict):
            raise ArgumentError(f"parameters are given as a dict by name, not as a {type(part).__name__}")
        doubled = sorted(tensors.keys() & part.keys())
        if doubled:
            raise ArgumentError(f"{doubled[0]!r} is given twice")
        tensors.update(part)
    slots = _slots(module)
    unknown = [name for name in tensors if name not in slots]
    if strict and (unknown or len(tensors) < len(slots)):
        missing = [name for name in slots if name not in tensors]
        raise ArgumentError(f"strict=True: missing are {missing}, unexpected {unknown}")
    replaced = {name: each for name, each in tensors.items() if name in slots}
    if tie_weights:
        for name, each in list(replaced.items()):
            holder, own = slots[name]
            tied = [
                other
                for other, (kept, key) in slots.items()
                if kept[key] is holder[own] and holder[own] is not None
            ]
            if any(other in tensors and tensors[other] is not each for other in tied):
                raise ArgumentError(
                    f"{name!r} is tied to others, and other tensors are given for them: {tied}",
                    help="give one of them, or tie_weights=False",
                )
            replaced.update(dict.fromkeys(tied, each))
    before = {name: slots[name][0][slots[name][1]] for name in replaced}
    positional = () if args is None else args if isinstance(args, tuple) else (args,)
    try:
        for name, each in replaced.items():
            holder, own = slots[name]
            holder[own] = each
        return module(*positional, **(kwargs or {}))
    finally:
        for name, kept in before.items():
            holder, own = slots[name]
            holder[own] = kept


def _slots(module: Any) -> dict[str, tuple[dict[str, Any], str]]:
    """Where each parameter and buffer is kept, by its full name."""
    slots = {}
    for prefix, each in module.named_modules(remove_duplicate=False):
        for kept in (each._parameters, each._buffers):
            for name in kept:
                slots[f"{prefix}.{name}" if prefix else name] = (kept, name)
    return slots


@located
def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The parameters of modules of one kind, stacked by name, and their buffers: to `vmap` over modules."""
    if not models:
        raise ArgumentError("there are no modules to stack")
    if any(type(model) is not type(models[0]) for model in models):
        raise ArgumentError("modules of different classes cannot be stacked")
    if any(model.training != models[0].training for model in models):
        raise ArgumentError(
            "some of the modules are in training and some are not", help="call train() or eval()"
        )
    params: dict[str, Tensor] = {}
    for name, first in models[0].named_parameters():
        stacked = aten("stack")([dict(model.named_parameters())[name].detach() for model in models])
        params[name] = stacked.requires_grad_(first.requires_grad)
    buffers = {
        name: aten("stack")([dict(model.named_buffers())[name] for model in models])
        for name, _ in models[0].named_buffers()
    }
    return params, buffers


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Make the batch norms of a module keep no running statistics, in place: a transformed function cannot
    write them."""
    for module in root.modules():
        if "running_mean" in module._buffers and "num_batches_tracked" in module._buffers:
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
