"""Sizes of windows: one number for all dimensions, or one for each; and the names by which other packages
know such functions from PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tenfold.base.errors import ArgumentError


def each_dimension(size: Any, rank: int) -> tuple[int, ...]:
    """The size as a tuple, one number for each of the dimensions; one in a list is for all of them."""
    if isinstance(size, (tuple, list)):
        if len(size) == 1:
            return tuple(size) * rank
        if len(size) != rank:
            raise ArgumentError(f"{size} does not give one number for each of {rank} dimensions")
        return tuple(size)
    return (size,) * rank


def _ntuple(count: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    """A function that makes a tuple of `count` of one value, or of an iterable its values."""

    def parse(value: Any) -> tuple[Any, ...]:
        return tuple(value) if isinstance(value, Iterable) else (value,) * count

    parse.__name__ = name
    return parse


_single, _pair = _ntuple(1, "_single"), _ntuple(2, "_pair")
_triple, _quadruple = _ntuple(3, "_triple"), _ntuple(4, "_quadruple")


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Remove a prefix, such as DistributedDataParallel's "module.", from the names of a state dict."""
    for name in list(state_dict):
        if name.startswith(prefix):
            state_dict[name.removeprefix(prefix)] = state_dict.pop(name)
    metadata: dict[str, Any] = getattr(state_dict, "_metadata", None) or {}
    for name in list(metadata):
        if name == prefix.rstrip(".") or name.startswith(prefix):
            metadata[name[len(prefix) :]] = metadata.pop(name)
