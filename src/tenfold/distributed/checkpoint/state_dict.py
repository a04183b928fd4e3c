"""State dicts of models and optimizers for checkpoints: by parameter names that do not depend on wrappers of
the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tenfold.base.devices import Device
from tenfold.base.dtypes import BY_NAME
from tenfold.base.errors import ArgumentError, FormatError, UnsupportedError, located
from tenfold.distributed.collectives import broadcast
from tenfold.distributed.group import get_rank, is_initialized, world_of
from tenfold.distributed.objects import exchange
from tenfold.tensor import Tensor, leaf, sharding

FSDP_PREFIX = "_fsdp_wrapped_module."  # in the names of parameters that FullyShardedDataParallel is around


@dataclass(frozen=True)
class StateDictOptions:
    """How a state dict is made (of whole tensors, or of tensors as they are sharded) and loaded."""

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"

    def __post_init__(self) -> None:
        if self.flatten_optimizer_state_dict:
            raise UnsupportedError(
                "StateDictOptions: flatten_optimizer_state_dict is not supported", help="leave it out"
            )
        if self.broadcast_from_rank0 and not self.full_state_dict:
            raise ArgumentError("StateDictOptions: broadcast_from_rank0 needs full_state_dict=True")
        if not self.keep_submodule_prefixes:
            raise UnsupportedError("StateDictOptions: prefixes of submodules are kept", help="leave it out")


@located
def get_model_state_dict(
    model: Any, *, submodules: Any = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """The state dict of a model. `options` can ask for whole tensors, or leave out frozen parameters."""
    chosen = _checked(options, submodules)
    frozen = {name for name, each in model.named_parameters() if not each.requires_grad}
    left_out = frozen if chosen.ignore_frozen_params else ()
    rename = _names(model)
    return {
        rename(name): _given(each, chosen)
        for name, each in model.state_dict().items()
        if name not in left_out
    }


@located
def get_optimizer_state_dict(
    model: Any, optimizers: Any, *, submodules: Any = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """The state of one or several optimizers, by the names of the model's parameters. An optimizer that has
    made no step yet initializes its state, so that there is state to load into."""
    chosen = _checked(options, submodules)
    names = _by_parameter(model)
    state: dict[str, Any] = {}
    groups: list[dict[str, Any]] = []
    for optimizer in _listed(optimizers):
        begin_state(optimizer)
        found = optimizer.state_dict()
        places = _places(optimizer, found["param_groups"], names)
        for number, kept in found["state"].items():
            state[places[number]] = {key: _given(each, chosen) for key, each in kept.items()}
        for group in found["param_groups"]:
            groups.append({**group, "params": [places[number] for number in group["params"]]})
    return {"state": state, "param_groups": groups}


def get_state_dict(
    model: Any, optimizers: Any, *, submodules: Any = None, options: StateDictOptions | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The state dicts of a model and of its optimizers, as a pair."""
    return (
        get_model_state_dict(model, submodules=submodules, options=options),
        get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options),
    )


@located
def set_model_state_dict(
    model: Any, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> Any:
    """Load a state dict into a model; whole tensors are sharded like the model's. A model on the meta device
    takes over the tensors."""
    chosen, rename = _checked(options), _names(model)
    own = model.state_dict()
    given = dict(of_first(model_state_dict) if chosen.broadcast_from_rank0 else model_state_dict)
    loaded = {}
    for name, each in own.items():
        if rename(name) in given:
            loaded[name] = laid_out(given.pop(rename(name)), each)
    is_meta = any(each.device.type == "meta" for each in own.values() if isinstance(each, Tensor))
    return model.load_state_dict({**loaded, **given}, strict=chosen.strict, assign=is_meta)


@located
def set_optimizer_state_dict(
    model: Any,
    optimizers: Any,
    optim_state_dict: dict[str, Any],
    *,
    options: StateDictOptions | None = None,
) -> None:
    """Load the result of `get_optimizer_state_dict` into one or several optimizers."""
    if _checked(options).broadcast_from_rank0:
        optim_state_dict = of_first(optim_state_dict)
    for optimizer in _listed(optimizers):
        optimizer.load_state_dict(numbered_state(model, optimizer, optim_state_dict))


def numbered_state(model: Any, optimizer: Any, optim_state_dict: dict[str, Any]) -> dict[str, Any]:
    """The state of an optimizer by numbers, as it loads it, of one by the names of the model's parameters."""
    names = _by_parameter(model)
    begin_state(optimizer)
    groups, state, number = [], {}, 0
    for group in optimizer.param_groups:
        numbers = []
        for parameter in group["params"]:
            name = _name_of(parameter, names)
            if name in optim_state_dict["state"]:
                kept, present = optim_state_dict["state"][name], optimizer.state.get(parameter, {})
                state[number] = {key: laid_out(each, present.get(key)) for key, each in kept.items()}
            numbers.append(number)
            number += 1
        groups.append({**_group_with(group, optim_state_dict["param_groups"], names), "params": numbers})
    return {"state": state, "param_groups": groups}


def set_state_dict(
    model: Any,
    optimizers: Any,
    *,
    model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any],
    options: StateDictOptions | None = None,
) -> Any:
    """Load the state dicts of a model and of its optimizers."""
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)


def begin_state(optimizer: Any) -> None:
    """Let an optimizer have the state that it will need, as it is before the first step."""
    if not hasattr(optimizer, "begin"):
        return
    for group in optimizer.param_groups:
        counters: dict[str, Any] = {}
        for parameter in group["params"]:
            if parameter.requires_grad:
                optimizer.begin(parameter, group, counters)


_init_optim_state = begin_state  # PyTorch's name of it, which its examples use


def _checked(options: StateDictOptions | None, submodules: Any = None) -> StateDictOptions:
    if submodules:
        raise UnsupportedError("state dicts are of whole models", help="leave submodules out")
    if options is not None and not isinstance(options, StateDictOptions):
        raise ArgumentError(f"options are StateDictOptions, not a {type(options).__name__}")
    return options or StateDictOptions()


def _listed(optimizers: Any) -> list[Any]:
    return list(optimizers) if isinstance(optimizers, (list, tuple)) else [optimizers]


def _given(each: Any, options: StateDictOptions) -> Any:
    """A part of a state as the options want it."""
    if not isinstance(each, Tensor):
        return each
    if options.full_state_dict and each.device.mesh is not None:
        each = each.detach().full_tensor()
    if not options.cpu_offload or each.device.type == "cpu":
        return each
    if each.device.mesh is not None:
        raise UnsupportedError(
            "parts of tensors are not moved to the host",
            help="use full_state_dict=True with cpu_offload=True",
        )
    return each.cpu()


def laid_out(given: Any, target: Any) -> Any:
    """A plain tensor, sharded as the one it is loaded into."""
    if not isinstance(given, Tensor) or not isinstance(target, Tensor):
        return given
    placed = sharding.placed_as(target)
    if placed is None or given.device.mesh is not None or given.shape != target.shape:
        return given
    if target.device.type == "meta":
        return sharding.put(given.detach()._host(), given.current().type, placed)
    return sharding.leaf_like(given.detach()._host(), target, given.dtype)


class _Tensor(NamedTuple):
    """A tensor in the outline of a state, by its place among all."""

    place: int
    shape: tuple[int, ...]
    dtype: str


def of_first(state: Any) -> Any:
    """The state that the first process has, of plain tensors. What the others give does not count."""
    if not is_initialized() or world_of(None).size() == 1:
        return state
    tensors: list[Tensor] = []

    def outlined(value: Any) -> Any:
        if isinstance(value, Tensor):
            tensors.append(value.detach().clone())
            return _Tensor(len(tensors) - 1, tuple(value.shape), value.dtype.name)
        if isinstance(value, dict):
            return {key: outlined(each) for key, each in value.items()}
        return [outlined(each) for each in value] if isinstance(value, list) else value

    def shared(value: Any) -> Any:
        if isinstance(value, _Tensor):
            if get_rank() == 0:
                tensor = tensors[value.place]
            else:
                zeros = np.zeros(value.shape, BY_NAME[value.dtype].numpy)
                tensor = leaf(zeros, Device("cpu"), BY_NAME[value.dtype])
            broadcast(tensor, src=0)
            return tensor
        if isinstance(value, dict):
            return {key: shared(each) for key, each in value.items()}
        return [shared(each) for each in value] if isinstance(value, list) else value

    own = outlined(state) if get_rank() == 0 else None
    return shared(exchange(own, world_of(None), [0])[0])


# Names of parameters: those of the model itself, without the prefixes of what wraps it


def _names(model: Any) -> Callable[[str], str]:
    """Gives the name of a state's entry without `module.` of DistributedDataParallel and `_orig_mod.` of
    compiled modules."""
    prefixes = []
    for path, each in model.named_modules():
        inner = "module" if hasattr(each, "require_backward_grad_sync") else "_orig_mod"
        if inner in vars(each).get("_modules", {}):
            prefixes.append((f"{path}." if path else "") + inner + ".")

    def rename(name: str) -> str:
        for prefix in sorted(prefixes, key=len, reverse=True):
            if name.startswith(prefix):
                outer = prefix.removesuffix(".").rpartition(".")[0]
                name = (f"{outer}." if outer else "") + name.removeprefix(prefix)
        return name

    return rename


def _by_parameter(model: Any) -> dict[int, str]:
    rename = _names(model)
    return {id(each): rename(name).replace(FSDP_PREFIX, "") for name, each in model.named_parameters()}


def _name_of(parameter: Tensor, names: dict[int, str]) -> str:
    if id(parameter) not in names:
        raise ArgumentError(
            f"the optimizer has a parameter of shape {list(parameter.shape)} that the model does not have",
            help="give the model whose parameters the optimizer updates",
        )
    return names[id(parameter)]


def _places(optimizer: Any, numbered: list[dict[str, Any]], names: dict[int, str]) -> dict[int, str]:
    """The names of an optimizer's parameters, by the numbers that its state dict has for them."""
    return {
        number: _name_of(parameter, names)
        for group, own in zip(numbered, optimizer.param_groups, strict=True)
        for number, parameter in zip(group["params"], own["params"], strict=True)
    }


def _group_with(group: dict[str, Any], saved: list[dict[str, Any]], names: dict[int, str]) -> dict[str, Any]:
    """The options that were saved for a group of parameters."""
    own = {_name_of(param, names) for param in group["params"]}
    for each in saved:
        if own <= set(each["params"]):
            return each
    raise FormatError(
        f"no group of parameters was saved that has {sorted(own)}",
        help="group the parameters as they were when the state was saved",
    )
