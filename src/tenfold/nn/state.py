"""A module's state as a dictionary of tensors, and back: `state_dict` and `load_state_dict`."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tenfold.autograd import RemovableHandle
from tenfold.autograd.grad_mode import no_grad
from tenfold.base.errors import ArgumentError, TenfoldError
from tenfold.base.source import capture
from tenfold.nn.hooks import Hooks
from tenfold.nn.parameter import Parameter, UninitializedBuffer, UninitializedParameter
from tenfold.nn.registry import Registry
from tenfold.ops.table import find
from tenfold.tensor import Tensor, views
from tenfold.trace import graph

_EXTRA_STATE = "_extra_state"


class StateDictError(TenfoldError):
    """A state dictionary that does not match its module."""


class IncompatibleKeys(NamedTuple):
    """The names in which a state dict and a module differ, as load_state_dict returns them."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


class StateDict(OrderedDict):
    """A module's state: tensors by their dotted names, and in `_metadata` each module's version."""

    _metadata: OrderedDict[str, dict[str, Any]]

    def __repr__(self) -> str:
        return super().__repr__().replace(type(self).__name__, "OrderedDict", 1)


class Stateful(Registry):
    """A registry that is saved and loaded by name."""

    _version = 1
    _state_dict_hooks: Hooks
    _state_dict_pre_hooks: Hooks
    _load_state_dict_pre_hooks: Hooks
    _load_state_dict_post_hooks: Hooks

    # A class that has more to save than tensors overrides these two.

    def get_extra_state(self) -> Any:
        """Additional state to save. It is only called if a class defines it."""
        raise NotImplementedError(f"{type(self).__name__} defines no get_extra_state")

    def set_extra_state(self, state: Any) -> None:
        """Restore what get_extra_state returned."""
        raise NotImplementedError(f"{type(self).__name__} defines no set_extra_state")

    # Saving

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> Any:
        """All parameters and persistent buffers, by their dotted names.

        The tensors are detached and share the module's memory; with keep_vars they are the module's own.
        """
        for name, value in zip(("destination", "prefix", "keep_vars"), args, strict=False):
            if name == "destination":
                destination = value
            elif name == "prefix":
                prefix = value
            else:
                keep_vars = value
        if destination is None:
            destination = StateDict()
            destination._metadata = OrderedDict()
        local = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local
        for hook in list(self._state_dict_pre_hooks.values()):
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for key, hook in list(self._state_dict_hooks.items()):
            replaced = hook(self, destination, prefix, local)
            if (
                key in self._state_dict_hooks.with_kwargs and replaced is not None
            ):  # a private hook may give another dictionary
                destination = replaced
            elif replaced is not None:
                raise StateDictError("a state_dict post-hook must return None").located(
                    "state_dict", capture()
                )
        return destination

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Put this module's own tensors, without its children's, into the dictionary."""
        for name, tensor in self._own_state():
            if tensor is not None:
                destination[prefix + name] = tensor if keep_vars else detached(tensor)
        if type(self).get_extra_state is not Stateful.get_extra_state:
            destination[prefix + _EXTRA_STATE] = self.get_extra_state()

    def _own_state(self) -> list[tuple[str, Tensor | None]]:
        kept = [each for each in self._buffers.items() if each[0] not in self._non_persistent_buffers_set]
        return [*self._parameters.items(), *kept]

    # Loading

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copy tensors into the parameters and buffers of the same names; with `assign`, replace these.

        With strict, both must have the same names. Returns the names that differ.
        """
        if not isinstance(state_dict, Mapping):
            raise ArgumentError(f"a state dictionary is a dict, not a {type(state_dict).__name__}").located(
                "load_state_dict", capture()
            )
        metadata = getattr(state_dict, "_metadata", None)
        state = OrderedDict(state_dict)
        if metadata is not None:
            state._metadata = metadata  # type: ignore[attr-defined]
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []
        _load(self, state, "", metadata, strict, assign, missing, unexpected, errors)
        if strict:
            listed = lambda names: ", ".join(f'"{name}"' for name in names)
            if unexpected:
                errors.insert(0, f"Unexpected key(s) in state_dict: {listed(unexpected)}. ")
            if missing:
                errors.insert(0, f"Missing key(s) in state_dict: {listed(missing)}. ")
        if errors:
            report = "\n\t".join(errors)
            raise StateDictError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{report}",
                help="pass strict=False to load only what has the same name"
                if strict and unexpected
                else None,
            ).located("", capture())
        return IncompatibleKeys(missing, unexpected)

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Take this module's own tensors, without its children's, from the dictionary."""
        for place, hook in list(self._load_state_dict_pre_hooks.items()):
            own = (self,) if place in self._load_state_dict_pre_hooks.with_kwargs else ()
            hook(*own, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        assign = bool(local_metadata.get("assign_to_params_buffers", False))
        for name, tensor in self._own_state():
            key = prefix + name
            if tensor is None:
                continue
            if key not in state_dict:
                if strict:
                    missing_keys.append(key)
                continue
            problem = self._load_tensor(name, key, tensor, state_dict[key], assign)
            if problem:
                error_msgs.append(problem)
        extra = prefix + _EXTRA_STATE
        has_extra = type(self).set_extra_state is not Stateful.set_extra_state
        if has_extra and extra in state_dict:
            self.set_extra_state(state_dict[extra])
        elif has_extra and strict:
            missing_keys.append(extra)
        if strict:
            unexpected_keys += [key for key in state_dict if self._unexpected(key, prefix, has_extra)]

    def _unexpected(self, key: str, prefix: str, has_extra: bool) -> bool:
        if not key.startswith(prefix):
            return False
        name, dot, _ = key[len(prefix) :].partition(".")
        if key == prefix + _EXTRA_STATE:
            return not has_extra
        return name not in self._modules if dot else name not in dict(self._own_state())

    def _load_tensor(self, name: str, key: str, tensor: Tensor, given: Any, assign: bool) -> str | None:
        """Copy or take one tensor; what kept it from that, if anything did."""
        if not isinstance(given, Tensor):
            return (
                f'While copying the parameter named "{key}", expected a Tensor from checkpoint but received '
                f"{type(given).__name__}"
            )
        if isinstance(tensor, (UninitializedParameter, UninitializedBuffer)):
            tensor.materialize(given.shape)
        if tensor.ndim == 0 and given.ndim == 1 and given.shape[0] == 1:
            given = given[0]
        if given.shape != tensor.shape:
            return (
                f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, "
                f"the shape in current model is {tensor.shape}."
            )
        with no_grad():
            if not assign:
                copied(given, tensor)
            elif isinstance(tensor, Parameter) and not isinstance(given, Parameter):
                setattr(self, name, Parameter(given, tensor.requires_grad))
            else:
                setattr(self, name, given)
        return None

    # Hooks

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata)` after state_dict has been filled."""
        return self._state_dict_hooks.add(hook)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        return self._state_dict_hooks.add(hook, with_kwargs=True)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, prefix, keep_vars)` before state_dict is filled."""
        return self._state_dict_pre_hooks.add(hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata, strict, missing, unexpected, errors)` before
        this module's tensors are loaded."""
        return self._load_state_dict_pre_hooks.add(hook, with_kwargs=True)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        return self._load_state_dict_pre_hooks.add(hook, with_kwargs=with_module)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)` after this module and its descendants are loaded."""
        return self._load_state_dict_post_hooks.add(hook)


def _load(
    module: Any,
    state: Any,
    prefix: str,
    metadata: Any,
    strict: bool,
    assign: bool,
    missing: list[str],
    unexpected: list[str],
    errors: list[str],
) -> None:
    local = dict({} if metadata is None else metadata.get(prefix[:-1], {}))
    local["assign_to_params_buffers"] = assign
    # Always by the strict rules: what differs is returned even where it is no error.
    module._load_from_state_dict(state, prefix, local, True, missing, unexpected, errors)
    for name, child in module._modules.items():
        if child is not None:
            inner = f"{prefix}{name}."
            below = {key: value for key, value in state.items() if key.startswith(inner)}
            _load(child, below, inner, metadata, strict, assign, missing, unexpected, errors)
    keys = IncompatibleKeys(missing, unexpected)
    for hook in list(module._load_state_dict_post_hooks.values()):
        if hook(module, keys) is not None:
            raise StateDictError(
                "a load_state_dict post-hook must return None",
                help="change the lists that it is given in place",
            ).located("load_state_dict", capture())


def detached(tensor: Tensor) -> Tensor:
    """The tensor's memory without its gradients, as `detach` gives it, but holding its data at once; it is
    sharded as the tensor is."""
    value = graph.fresh(tensor.current(), capture())
    alias, row = tensor.share(), find("detach")
    way = views.way_on(alias, row, value.type, (), value)
    result = Tensor(value, views.extend(alias, row, value, way))
    placed = vars(tensor).get("_placed")
    if placed is not None:
        vars(result)["_placed"] = placed
    return result


def copied(source: Tensor, target: Tensor) -> None:
    """Write a tensor's value into another of its shape."""
    if source.dtype is target.dtype and source.device is target.device:
        target.assign(graph.fresh(source.current(), capture()))
    else:
        target.copy_(source)
