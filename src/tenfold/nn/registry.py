"""The parameters, buffers and child modules of a module, which are registered by assigning them to attributes
and found by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tenfold.base.errors import ArgumentError, TenfoldError, UnknownName, did_you_mean
from tenfold.base.hooks import CHANGES
from tenfold.base.source import capture
from tenfold.nn import hooks
from tenfold.nn.hooks import HOOKS, Hooks, registered
from tenfold.nn.parameter import Buffer, Parameter
from tenfold.tensor import Tensor
from tenfold.trace.context import context


class RegistrationError(TenfoldError, KeyError):
    """A name under which nothing can be registered, because it is taken, empty, or contains a dot."""


class _Lacking:
    """The attributes that modules do not have, as a container: by the module and the name."""

    def label(self, place: tuple[Registry, str]) -> str:
        return f"whether a {type(place[0]).__name__} has no attribute `{place[1]}`"

    def __getitem__(self, place: tuple[Registry, str]) -> bool:
        module, name = place
        own = module.__dict__
        registers = [own.get(kind, ()) for kind in ("_parameters", "_buffers", "_modules")]
        return not (name in own or any(name in each for each in registers) or hasattr(type(module), name))


LACKING = _Lacking()


class Registry:
    """Holds named parameters, buffers and children: the base of Module."""

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]

    # Registering

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter, which is then also an attribute; None reserves the name."""
        if "_parameters" not in self.__dict__:
            raise _too_early("parameter")
        self._check_name("parameter", name, self._parameters)
        if param is None:
            self._parameters[name] = None
            return
        param = registered(hooks.parameter_registration, self, name, param)
        if not isinstance(param, Parameter):
            raise ArgumentError(
                f"cannot assign a {type(param).__name__} as parameter {name!r}: a Parameter is needed",
                help="wrap it: nn.Parameter(tensor)",
            ).located("register_parameter", capture())
        if not param.is_leaf:
            raise TenfoldError(
                f"parameter {name!r} was computed from other tensors, so it cannot be trained itself",
                help="make a Parameter of its value, and compute in forward() what depends on others",
            ).located("register_parameter", capture())
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a buffer: state that is not trained. If it is not persistent, it is left out of state_dict."""
        if "_buffers" not in self.__dict__:
            raise _too_early("buffer")
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise _wrong_kind(tensor, "buffer", name, "a Tensor").located("register_buffer", capture())
        self._buffers[name] = registered(hooks.buffer_registration, self, name, tensor)
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(
            name
        )

    def add_module(self, name: str, module: Any) -> None:
        """Add a child module, which is then also an attribute."""
        if module is not None and not isinstance(module, Registry):
            raise ArgumentError(f"{_described(module)} is not a Module").located("add_module", capture())
        self._check_name("module", name, self._modules)
        self._modules[name] = registered(hooks.module_registration, self, name, module)

    def register_module(self, name: str, module: Any) -> None:
        """The same as add_module."""
        self.add_module(name, module)

    def _check_name(self, kind: str, name: str, registered: dict[str, Any]) -> None:
        if not isinstance(name, str):
            raise ArgumentError(f"the name of a {kind} is a string, not {_described(name)}").located(
                "", capture()
            )
        problem = None
        if hasattr(self, name) and name not in registered:
            problem = f"attribute {name!r} already exists"
        elif "." in name:
            problem = f'the name of a {kind} has no "." in it, as {name!r} does'
        elif not name:
            problem = f"the name of a {kind} is not empty"
        if problem:
            raise RegistrationError(problem).located("", capture())

    # Attributes

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        if isinstance(value, Parameter):
            if "_parameters" not in own:
                raise _too_early("parameter")
            self._unregister(name, own, self._buffers, self._modules)
            self.register_parameter(name, value)
        elif "_parameters" in own and name in self._parameters:
            if value is not None:
                raise _wrong_kind(value, "parameter", name, "a Parameter or None")
            self._parameters[name] = None
        elif isinstance(value, Registry):
            if "_modules" not in own:
                raise _too_early("module")
            self._unregister(name, own, self._parameters, self._buffers)
            self._check_name("module", name, self._modules)
            self._modules[name] = registered(hooks.module_registration, self, name, value)
        elif "_modules" in own and name in self._modules:
            if value is not None:
                raise _wrong_kind(value, "child module", name, "a Module or None")
            self._modules[name] = None
        elif isinstance(value, Buffer) or ("_buffers" in own and name in self._buffers):
            self._set_buffer(name, value)
        else:
            if name in HOOKS and not isinstance(value, Hooks):
                CHANGES["count"] += 1
                value = Hooks(value)  # so that others can be added where an empty dictionary was assigned
            object.__setattr__(self, name, value)
            self._note_shadowing(name)

    def _note_shadowing(self, name: str) -> None:
        """Tell compiled functions that a method has got another in its place, or is to be seen again."""
        if callable(getattr(type(self), name, None)):
            CHANGES["count"] += 1

    def _set_buffer(self, name: str, value: Any) -> None:
        if "_buffers" not in self.__dict__:
            raise _too_early("buffer")
        if value is not None and not isinstance(value, Tensor):
            raise _wrong_kind(value, "buffer", name, "a Tensor, a Buffer or None")
        if isinstance(value, Buffer):
            self._unregister(name, self._parameters, self._modules)
            self.register_buffer(name, value, value.persistent)
        else:
            self._buffers[name] = registered(hooks.buffer_registration, self, name, value)

    def _unregister(self, name: str, *places: dict[str, Any]) -> None:
        for place in places:
            place.pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        for kind in ("_parameters", "_buffers", "_modules"):
            if kind in own and name in own[kind]:
                recorder = context.recorder
                if recorder is not None and kind != "_modules":
                    recorder.guard(own[kind], name)  # which tensor it is, not what it holds
                return own[kind][name]
        if context.recorder is not None:
            context.recorder.guard(LACKING, (self, name))
        raise self._unknown(name)

    def _unknown(self, name: str) -> UnknownName:
        return UnknownName(
            f"{type(self).__name__!r} object has no attribute {name!r}",
            help=lambda: did_you_mean(name, [each for each in dir(self) if not each.startswith("_")]),
        ).located("", capture())

    def __delattr__(self, name: str) -> None:
        for members in (self._parameters, self._buffers, self._modules):
            if name in members:
                self._unregister(name, members)
                return
        if name not in self.__dict__:
            raise self._unknown(name)
        object.__delattr__(self, name)
        self._note_shadowing(name)

    def __dir__(self) -> list[str]:
        names = [*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers]
        return sorted({name for name in names if not name[0].isdigit()})

    # Looking through the tree

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """This module and its descendants, with their names; each once unless remove_duplicate is False."""
        seen = set() if memo is None else memo
        if self in seen:
            return
        if remove_duplicate:
            seen.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                inner = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(seen, inner, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Any]:
        """This module and its descendants, each once unless remove_duplicate is False."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """The child modules, with their names."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Any]:
        """The child modules."""
        for _, module in self.named_children():
            yield module

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters of this module and of its descendants, with their names."""
        return self._named_members("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters of this module and of its descendants."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The buffers of this module and of its descendants, with their names."""
        return self._named_members("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers of this module and of its descendants."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def _named_members(self, kind: str, prefix: str, recurse: bool, once: bool) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        inside = self.named_modules(prefix=prefix, remove_duplicate=once) if recurse else [(prefix, self)]
        for path, module in inside:
            for name, member in getattr(module, kind).items():
                if member is None or id(member) in seen:
                    continue
                if once:
                    seen.add(id(member))
                yield (f"{path}.{name}" if path else name), member

    # Finding by name

    def get_submodule(self, target: str) -> Any:
        """The descendant at a dotted path; this module for ""."""
        module: Any = self
        for name in target.split(".") if target else ():
            found = module._modules.get(name) if isinstance(module, Registry) else None
            if found is None:
                raise UnknownName(
                    f"{type(module).__name__} has no module {name!r}, which {target!r} asks for",
                    help=did_you_mean(name, module._modules),
                ).located("get_submodule", capture())
            module = found
        return module

    def set_submodule(self, target: str, module: Any, strict: bool = False) -> None:
        """Set the module at a dotted path. With strict, a module must already be there."""
        if not target:
            raise ArgumentError("an empty path names no place").located("set_submodule", capture())
        if not isinstance(module, Registry):
            raise ArgumentError(f"{_described(module)} is not a Module").located("set_submodule", capture())
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and name not in parent._modules:
            raise UnknownName(f"{type(parent).__name__} has no module {name!r} to replace").located(
                "set_submodule", capture()
            )
        if name not in parent._modules and hasattr(parent, name):
            raise UnknownName(f"{name!r} of {type(parent).__name__} is no module").located(
                "set_submodule", capture()
            )
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a dotted path."""
        return self._get_member(target, "_parameters", "parameter")

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a dotted path."""
        return self._get_member(target, "_buffers", "buffer")

    def _get_member(self, target: str, kind: str, word: str) -> Any:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        members = getattr(module, kind)
        if members.get(name) is None:
            raise UnknownName(
                f"{type(module).__name__} has no {word} {name!r}", help=did_you_mean(name, members)
            ).located(f"get_{word}", capture())
        return members[name]


def _too_early(kind: str) -> UnknownName:
    return UnknownName(
        f"a {kind} is assigned before Module.__init__() was called",
        help="begin __init__ with super().__init__()",
    ).located("", capture())


def _wrong_kind(value: Any, kind: str, name: str, wanted: str) -> ArgumentError:
    message = f"cannot assign {_described(value)} as {kind} {name!r}: {wanted} is needed"
    return ArgumentError(message).located("", capture())


def _described(value: Any) -> str:
    return f"a {type(value).__name__}"
