"""The base of all optimizers: groups of parameters with their options, state for each parameter, hooks, and
PyTorch's layout of both for storing them. How parameters are updated is in `update.py`."""

from __future__ import annotations

import copy
import functools
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from tenfold.autograd import RemovableHandle
from tenfold.autograd.grad_mode import no_grad
from tenfold.base import dtypes
from tenfold.base.devices import Device
from tenfold.base.errors import ArgumentError, TenfoldError, UnsupportedError, constructor, located
from tenfold.base.source import capture
from tenfold.base.warning import warn
from tenfold.optim.conventions import *  # noqa: F403, names that optimizers of other people import from here
from tenfold.optim.conventions import _group_tensors_by_device_and_dtype
from tenfold.tensor import Tensor, leaf, sharding
from tenfold.tensor.interchange import as_tensor, from_dlpack
from tenfold.tensor.views import SAVED_APART
from tenfold.trace import graph

Hooks = dict[int, Callable[..., Any]]
StateDict = dict[str, Any]
ParamsT = Iterable[Any]  # parameters, groups of them, or pairs of a name and a parameter
# State that counts or weighs, and so does not follow the dtype of a parameter.
COUNTERS = ("step", "mu_product", "eta", "mu")


class OptionError(ArgumentError, ValueError):
    """An option of an optimizer or a schedule is out of range."""


def construct(cls: type) -> None:
    """Let a class say, in errors of its constructor, its name and where it was called."""
    if "__init__" in cls.__dict__:
        cls.__init__ = constructor(cls.__init__)  # type: ignore[misc]


class _Required:
    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()
_pre_hooks: Hooks = {}
_post_hooks: Hooks = {}


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` before the step of every optimizer."""
    return RemovableHandle(_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` after the step of every optimizer."""
    return RemovableHandle(_post_hooks, hook)


def _with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(step)
    def call(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        if self._stepping:  # a subclass that calls the step of its base
            return step(self, *args, **kwargs)
        given: tuple[Any, ...] = (self, *args)
        for hook in (*_pre_hooks.values(), *self._hooks["step_pre"].values()):
            changed = hook(self, given, kwargs)
            if changed is not None:
                if not isinstance(changed, tuple) or len(changed) != 2:
                    raise ArgumentError(
                        f"a hook before step() returned {changed!r}", help="return None or (args, kwargs)"
                    ).located("step", capture())
                given, kwargs = changed
        self._stepping = True
        try:
            result = step(*given, **kwargs)
        except TenfoldError as error:
            raise error.located("step", capture()) from None
        finally:
            self._stepping = False
        self._opt_called = True
        for hook in (*self._hooks["step_post"].values(), *_post_hooks.values()):
            hook(self, given, kwargs)
        return result

    return call


class Optimizer:
    """The base of all optimizers: groups of parameters, and a state for each parameter.

    A subclass defines the default options of a group, and a method `step(closure=None)` that updates the
    parameters."""

    _stepping = False
    _opt_called = False
    # Which counters the updates of the optimizer keep as tensors that parameters share; an optimizer whose
    # `step` counts in Python keeps what it stored.
    _counters: tuple[str, ...] = ()
    # By which optimizers of other people call it.
    _group_tensors_by_device_and_dtype = staticmethod(_group_tensors_by_device_and_dtype)

    def __init_subclass__(cls) -> None:
        construct(cls)
        if "step" in cls.__dict__:
            cls.step = _with_hooks(cls.__dict__["step"])  # type: ignore[method-assign]

    def __init__(self, params: Any, defaults: dict[str, Any]):
        self.defaults = defaults
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        if isinstance(params, Tensor):
            raise ArgumentError(
                "an optimizer takes an iterable of parameters or of groups, not one Tensor",
                help="put it in a list",
            )
        groups = list(params)
        if not groups:
            raise OptionError("the list of parameters is empty")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def _cuda_graph_capture_health_check(self) -> None:
        """Does nothing: steps are recorded, not captured in a CUDA graph."""

    @functools.cached_property
    def _hooks(self) -> dict[str, Hooks]:
        """The hooks by kind; also of a subclass that wraps another optimizer and does not call `__init__`."""
        kinds = ("step_pre", "step_post", "state_pre", "state_post", "load_pre", "load_post")
        return {kind: {} for kind in kinds}

    @located
    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters, `param_group["params"]`, with its options."""
        if not isinstance(param_group, dict):
            raise ArgumentError(f"a group of parameters is a dict, not {type(param_group).__name__}")
        group = param_group
        given = group["params"]
        if isinstance(given, set):
            raise ArgumentError(
                "the order of a set changes between runs", help="give the parameters as a list"
            )
        entries = [given] if isinstance(given, Tensor) else list(given)
        names = [entry[0] for entry in entries if isinstance(entry, tuple)]
        params = [entry[1] if isinstance(entry, tuple) else entry for entry in entries]
        group["params"] = params
        if names and len(names) != len(params):
            raise OptionError(
                "some parameters have names and some have none", help="name all of them or none"
            )
        if names:
            group["param_names"] = names
        for param in params:
            if not isinstance(param, Tensor):
                raise ArgumentError(f"an optimizer updates Tensors, not a {type(param).__name__}")
            if not (param.is_leaf or param.retains_grad or self.defaults.get("differentiable")):
                raise OptionError(
                    "a tensor that is computed from others cannot be optimized",
                    help="optimize the tensors it is computed from, or detach() it",
                )
        for name, default in self.defaults.items():
            if default is required and name not in group:
                raise OptionError(f"the group gives no value for the option {name!r}, which has no default")
            group.setdefault(name, default)
        if len({id(param) for param in params}) < len(params):
            warn("a group of parameters holds one of them twice")
        known = {id(param) for other in self.param_groups for param in other["params"]}
        if any(("param_names" in group) != ("param_names" in other) for other in self.param_groups):
            raise OptionError("some groups have names for their parameters and some have none")
        if any(id(param) in known for param in params):
            raise OptionError("a parameter is in more than one group")
        self.param_groups.append(group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Reset all gradients to None, or to zero."""
        for group in self.param_groups:
            for param in group["params"]:
                if set_to_none:
                    param.grad = None
                elif param.grad is not None:
                    with no_grad():
                        param.grad.detach_()
                        param.grad.zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters that have gradients; `closure` computes the loss and the gradients first."""
        raise UnsupportedError(f"{type(self).__name__} has no step()", help="define it in the subclass")

    # Storing and loading

    def state_dict(self) -> dict[str, Any]:
        """The options and the state, in which parameters are replaced by numbers."""
        for hook in self._hooks["state_pre"].values():
            hook(self)
        places: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for param in group["params"]:
                places.setdefault(id(param), len(places))
            options = {name: value for name, value in group.items() if name != "params"}
            groups.append({**options, "params": [places[id(param)] for param in group["params"]]})
        given: set[int] = set()
        state = {
            places[id(param)] if isinstance(param, Tensor) else param: _stored(kept, given)
            for param, kept in self.state.items()
        }
        found: dict[str, Any] = {"state": state, "param_groups": groups}
        for hook in self._hooks["state_post"].values():
            changed = hook(self, found)
            found = found if changed is None else changed
        return found

    @located
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load options and state that `state_dict` returned, of this optimizer or of PyTorch's.

        Existing state is written in place, so that a compiled step sees it.
        """
        state_dict = dict(state_dict)
        for hook in self._hooks["load_pre"].values():
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        saved = copy.deepcopy(state_dict["param_groups"])
        if len(saved) != len(self.param_groups):
            raise OptionError(f"{len(saved)} groups are loaded into {len(self.param_groups)}")
        by_number: dict[Any, Tensor] = {}
        for i, (group, other) in enumerate(zip(self.param_groups, saved, strict=True)):
            if len(group["params"]) != len(other["params"]):
                raise OptionError(
                    f"group {i} of {len(other['params'])} parameters is loaded into one of "
                    f"{len(group['params'])}"
                )
            by_number.update(zip(other["params"], group["params"], strict=True))
            other["params"] = group["params"]
            if "param_names" in group:
                other.setdefault("param_names", group["param_names"])
        state: defaultdict[Any, Any] = defaultdict(dict)
        with no_grad():
            for number, kept in state_dict["state"].items():
                if number in by_number:
                    param = by_number[number]
                    state[param] = _loaded(param, kept, self.state.get(param), None, self._counters)
                else:
                    state[number] = kept
        for group in saved:
            _share_counters([state[param] for param in group["params"] if param in state], self._counters)
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in self._hooks["load_post"].values():
            hook(self)

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for group in self.param_groups:
            for name, default in self.defaults.items():
                if default is not required:
                    group.setdefault(name, default)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines += [""] * bool(i) + [f"Parameter Group {i}"]
            lines += [f"    {name}: {group[name]}" for name in sorted(group) if name != "params"]
        return "\n".join([*lines, ")"])

    # Hooks

    def _register(self, kind: str, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        hooks = self._hooks[kind]
        before = dict(hooks)
        handle = RemovableHandle(hooks, hook)
        if prepend:
            for key in before:
                hooks[key] = hooks.pop(key)
        return handle

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` before each step; it may return other args and kwargs."""
        return self._register("step_pre", hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` after each step."""
        return self._register("step_post", hook)

    def register_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer)` before the state is collected."""
        return self._register("state_pre", hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` on the collected state; it may return a replacement."""
        return self._register("state_post", hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` before it is loaded; it may return a replacement."""
        return self._register("load_pre", hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer)` after a state was loaded."""
        return self._register("load_post", hook, prepend)


def _stored(kept: Any, given: set[int]) -> Any:
    """State without what is the optimizer's own business: that parameters share a counter is, too. Whoever
    reads these from a file counts for each, so one that was `given` already is a view with a storage of its
    own there."""
    if not isinstance(kept, dict):
        return kept
    found = {name: each for name, each in kept.items() if not str(name).startswith("_")}
    for name in COUNTERS:
        each = found.get(name)
        if isinstance(each, Tensor):
            if id(each) in given:
                place = each.share().copy()
                found[name] = Tensor(each.current(), place)
                found[name].__dict__[SAVED_APART] = True
            given.add(id(each))
    return found


def _loaded(param: Tensor, kept: Any, present: Any, name: Any, counters: tuple[str, ...]) -> Any:
    """State for a parameter: on its device, of its dtype where it is not a counter. A number is a tensor if
    it is one of `counters`."""
    if hasattr(kept, "__dlpack__"):
        tensor = kept if isinstance(kept, Tensor) else _copied(from_dlpack(kept))
        follows = name not in COUNTERS and param.dtype.is_floating_point
        tensor = tensor if tensor.device is param.device else _moved(tensor, param)
        value = tensor.to(dtype=param.dtype if follows else tensor.dtype).current()
        # A counter may be shared with other parameters, whose own may be loaded differently.
        mine = name not in COUNTERS
        if mine and isinstance(present, Tensor) and present.current().type is value.type:
            present.replace(value)
            return present
        return Tensor(graph.fresh(value, capture()))
    if name in counters:
        return as_tensor(float(kept), dtype=scalar_dtype(), device=param.device)
    if isinstance(kept, dict):
        before = present if isinstance(present, dict) else {}
        return {key: _loaded(param, each, before.get(key), key, counters) for key, each in kept.items()}
    if isinstance(kept, Iterable) and not isinstance(kept, str):
        return type(kept)(_loaded(param, each, None, None, counters) for each in kept)  # type: ignore[call-arg]
    return kept


def _moved(tensor: Tensor, param: Tensor) -> Tensor:
    """Loaded state where its parameter is; over a mesh, sharded as that is."""
    if param.device.mesh is None or tuple(tensor.shape) != tuple(param.shape):
        return tensor.to(device=param.device)
    return sharding.leaf_like(tensor._host(), param, tensor.dtype)


def _share_counters(states: Iterable[Any], counters: tuple[str, ...]) -> None:
    """Let parameters that have come as far share their counters, as those do that began together: the step
    after loading is the program that it was before."""
    shared: dict[Any, Tensor] = {}
    for kept in states:
        for name in counters:
            each = kept.get(name) if isinstance(kept, dict) else None
            if isinstance(each, Tensor) and each.current().buffer is not None and each.numel() == 1:
                kept[name] = shared.setdefault((name, each.current().type, each.device, each.item()), each)


def _copied(lent: Tensor) -> Tensor:
    """Another library's tensor in memory of our own: its owner may write to it."""
    return leaf(lent._host().copy(), Device("cpu"), lent.dtype)


def scalar_dtype() -> dtypes.DType:
    """In what steps are counted."""
    return dtypes.float64 if dtypes.get_default_dtype() is dtypes.float64 else dtypes.float32
