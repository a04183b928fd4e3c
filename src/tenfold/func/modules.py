"""Modules as functions of their parameters: `functional_call`, `stack_module_state`, and what these ask of
batch norms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tenfold.base.errors import ArgumentError, located
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten

Places = Mapping[str, tuple[dict[str, Any], str]]  # the dictionary that holds a tensor, and its name there


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
    """Call a module with the tensors of a dictionary in place of its own parameters and buffers. Several
    dictionaries may be given; they must not share names.

    A tensor that the module holds under several names is replaced under all of them, unless tie_weights is
    False. Names that the module does not have are ignored; with strict, the names must be exactly the
    module's. Gradients flow to the given tensors. If the module assigns to one of the names, as to a running
    mean, the dictionary holds the new value afterwards.
    """
    if isinstance(parameter_and_buffer_dicts, dict):
        tensors = parameter_and_buffer_dicts
    elif isinstance(parameter_and_buffer_dicts, (list, tuple)):
        tensors = _joined(parameter_and_buffer_dicts)
    else:
        kind = type(parameter_and_buffer_dicts).__name__
        raise ArgumentError(f"takes a dict of tensors by name or several, not a {kind}")
    arguments = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced(module, tensors, tie_weights, strict):
        return module(*arguments, **(kwargs or {}))


def _joined(dictionaries: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = {}
    for part in dictionaries:
        if not isinstance(part, dict):
            raise ArgumentError(f"takes dicts of tensors by name, not a {type(part).__name__}")
        doubled = sorted(tensors.keys() & part.keys())
        if doubled:
            raise ArgumentError(f"{doubled[0]!r} is given twice")
        tensors.update(part)
    return tensors


@contextmanager
def _replaced(module: Any, tensors: dict[str, Tensor], tie_weights: bool, strict: bool) -> Iterator[None]:
    """The module with other tensors, until the end of the block."""
    places = _places(module)
    replacing = {name: tensor for name, tensor in tensors.items() if name in places}
    if tie_weights:
        replacing |= _tied(places, replacing)
    if strict:
        missing = [name for name, (holder, key) in places.items() if holder[key] is not None]
        missing = sorted(set(missing) - replacing.keys())
        unexpected = sorted(tensors.keys() - places.keys())
        if missing or unexpected:
            raise ArgumentError(
                f"the names differ from the module's: {missing} are missing, {unexpected} are unexpected"
            )
    before = {name: places[name][0][places[name][1]] for name in replacing}
    _put(places, replacing)
    try:
        yield
    finally:
        now = {name: places[name][0][places[name][1]] for name in replacing}
        tensors.update((name, tensor) for name, tensor in now.items() if name in tensors)
        _put(places, before)


def _put(places: Places, tensors: Mapping[str, Any]) -> None:
    for name, tensor in tensors.items():
        holder, key = places[name]
        holder[key] = tensor


def _places(module: Any) -> Places:
    """Where each of the module's tensors is kept, by its dotted name."""
    places = {}
    for path, part in module.named_modules(remove_duplicate=False):
        for holder in (part._parameters, part._buffers):
            for name in holder:
                places[f"{path}.{name}" if path else name] = (holder, name)
    return places


def _tied(places: Places, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors, under all names under which the module has what they replace."""
    names: dict[int, list[str]] = {}
    for name, (holder, key) in places.items():
        if holder[key] is not None:
            names.setdefault(id(holder[key]), []).append(name)
    result: dict[str, Tensor] = {}
    for together in names.values():
        replacing = [tensors[name] for name in together if name in tensors]
        if any(tensor is not replacing[0] for tensor in replacing):
            raise ArgumentError(
                f"{', '.join(together)} are one tensor, and get different ones", help="pass tie_weights=False"
            )
        if replacing:
            result |= dict.fromkeys(together, replacing[0])
    return result


@located
def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Stack the parameters and the buffers of modules of one kind by name, to `vmap` over the modules."""
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
    """Remove the running statistics from the batch norms of a module, in place, since a transformed function
    cannot write them."""
    for module in root.modules():
        if "running_mean" in module._buffers and "num_batches_tracked" in module._buffers:
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
