"""Policies that choose which modules inside a model `FullyShardedDataParallel` wraps separately."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tenfold.base.errors import ArgumentError
from tenfold.nn.attention import MultiheadAttention
from tenfold.nn.containers import ModuleDict, ModuleList
from tenfold.nn.module import Module

__all__ = [
    "CustomPolicy",
    "ModuleWrapPolicy",
    "always_wrap_policy",
    "lambda_auto_wrap_policy",
    "size_based_auto_wrap_policy",
    "transformer_auto_wrap_policy",
]


class CustomPolicy:
    """Wraps the modules for which a function returns True, or a dict of arguments for the wrapper."""

    def __init__(self, lambda_fn: Callable[[Module], bool | dict[str, Any]]):
        self.choose = lambda_fn

    def __call__(self, module: Module, recurse: bool, nonwrapped_numel: int = -1) -> Any:
        return True if recurse else self.choose(module)


class ModuleWrapPolicy(CustomPolicy):
    """Wraps modules of these classes."""

    def __init__(self, module_classes: Iterable[type[Module]]):
        classes = tuple(module_classes)
        if not classes or not all(isinstance(each, type) for each in classes):
            raise ArgumentError("ModuleWrapPolicy takes classes of modules")
        super().__init__(lambda module: isinstance(module, classes))


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """A policy that wraps every module."""
    return True


def lambda_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable[[Module], bool]
) -> bool:
    """A policy that wraps the modules for which a function returns True."""
    return recurse or lambda_fn(module)


def transformer_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, transformer_layer_cls: set[type[Module]]
) -> bool:
    """A policy that wraps modules of these classes, such as a transformer's blocks."""
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def size_based_auto_wrap_policy(
    module: Module,
    recurse: bool,
    nonwrapped_numel: int,
    min_num_params: int = int(1e8),
    force_leaf_modules: set[type[Module]] | None = None,
    exclude_wrap_modules: set[type[Module]] | None = None,
) -> bool:
    """Wraps modules that have at least a number of parameters, without those in modules already wrapped."""
    from_leaf = tuple(force_leaf_modules or {MultiheadAttention})
    excluded = tuple(exclude_wrap_modules or {ModuleList, ModuleDict})
    is_large = nonwrapped_numel >= min_num_params
    return is_large and not isinstance(module, from_leaf if recurse else excluded)


def wrap_inside(
    module: Module, policy: Callable[..., Any], wrapper: Callable[..., Module], ignored: set[int]
) -> int:
    """Wrap modules inside of a module as a policy says, the innermost first; gives how many parameters they
    have."""
    total = 0
    for name, child in list(module.named_children()):
        if id(child) in ignored:
            continue
        size = sum([parameter.numel() for parameter in child.parameters()])
        if not policy(module=child, recurse=True, nonwrapped_numel=size):
            continue
        wrapped = wrap_inside(child, policy, wrapper, ignored)
        chosen = policy(module=child, recurse=False, nonwrapped_numel=size - wrapped)
        if chosen:
            setattr(module, name, wrapper(child, **(chosen if isinstance(chosen, dict) else {})))
        total += size if chosen else wrapped
    return total
