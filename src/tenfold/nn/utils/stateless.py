"""Calls a module with other tensors in place of its own parameters and buffers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tenfold.base.errors import ArgumentError, located
from tenfold.nn.state import StateDictError
from tenfold.tensor import Tensor


@located
def functional_call(
    module: Any,
    parameters_and_buffers_dicts: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with the tensors of a dictionary instead of its own parameters and buffers of the names.

    Several dictionaries must not share names. A tensor that the module has under several names is replaced
    under all of them, unless tie_weights is False. Strict, the names must be exactly the module's. Gradients
    flow to the tensors given.
    """
    given = _joined(parameters_and_buffers_dicts)
    arguments = () if args is None else args if isinstance(args, tuple) else (args,)
    with replaced(module, given, tie_weights, strict):
        return module(*arguments, **(kwargs or {}))


def _joined(dictionaries: Any) -> dict[str, Tensor]:
    if isinstance(dictionaries, Mapping):
        return dict(dictionaries)
    if not isinstance(dictionaries, Sequence) or not all(
        isinstance(dictionary, Mapping) for dictionary in dictionaries
    ):
        raise ArgumentError(f"takes a dict of tensors or several, not a {type(dictionaries).__name__}")
    names = [name for dictionary in dictionaries for name in dictionary]
    if len(set(names)) < len(names):
        raise ArgumentError(f"{sorted({name for name in names if names.count(name) > 1})} are given twice")
    return {name: dictionary[name] for dictionary in dictionaries for name in dictionary}


@contextmanager
def replaced(module: Any, given: Mapping[str, Tensor], tie_weights: bool, strict: bool) -> Iterator[None]:
    """The module with other tensors, until the end of the block."""
    places = _places(module)
    if strict:
        missing, unexpected = places.keys() - given.keys(), given.keys() - places.keys()
        if missing or unexpected:
            raise StateDictError(
                f"the names differ from the module's: {sorted(missing)} are missing, {sorted(unexpected)} "
                "are not its"
            )
    chosen = {name: each for name, each in given.items() if name in places}
    if tie_weights:
        chosen = _tied(places, chosen)
    before = [(places[name], holder_value(places[name])) for name in chosen]
    try:
        for name, tensor in chosen.items():
            holder, key = places[name]
            holder[key] = tensor
        yield
    finally:
        for (holder, key), tensor in before:
            holder[key] = tensor


def _places(module: Any) -> dict[str, tuple[dict[str, Any], str]]:
    """Where each of the module's tensors is kept, by its dotted name."""
    places = {}
    for path, each in module.named_modules(remove_duplicate=False):
        for holder in (each._parameters, each._buffers):
            for name, tensor in holder.items():
                if tensor is not None:
                    places[f"{path}.{name}" if path else name] = (holder, name)
    return places


def holder_value(place: tuple[dict[str, Any], str]) -> Any:
    holder, key = place
    return holder[key]


def _tied(places: dict[str, Any], given: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors given, for all names under which the module has what they replace."""
    names: dict[int, list[str]] = {}
    for name, place in places.items():
        names.setdefault(id(holder_value(place)), []).append(name)
    result: dict[str, Tensor] = {}
    for together in names.values():
        tensors = [given[name] for name in together if name in given]
        if any(tensor is not tensors[0] for tensor in tensors):
            raise ArgumentError(
                f"{', '.join(together)} are one tensor, and get different ones", help="pass tie_weights=False"
            )
        if tensors:
            result |= dict.fromkeys(together, tensors[0])
    return result
