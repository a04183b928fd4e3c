"""Parametrizations: parameters that modules compute from other parameters each time they are read.

A parametrized module gets a class of its own, in which the parameter's name is a property.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tenfold.autograd.grad_mode import no_grad
from tenfold.base.errors import ArgumentError, DTypeError, ShapeError, located
from tenfold.nn.containers import ModuleDict, ModuleList
from tenfold.nn.module import Module
from tenfold.nn.parameter import Parameter
from tenfold.tensor import Tensor

_cache: dict[tuple[int, str], Tensor] = {}
_caching = 0


@contextmanager
def cached() -> Iterator[None]:
    """A block in which each parametrized tensor is computed only once, when it is first read."""
    global _caching
    _caching += 1
    try:
        yield
    finally:
        _caching -= 1
        if not _caching:
            _cache.clear()


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, in order, and the tensor that they start from: `original`.

    If the first one's right_inverse returns several tensors, they start from `original0`, `original1`, …."""

    def __init__(self, modules: Any, original: Tensor, unsafe: bool = False):
        super().__init__(modules)
        self.unsafe = unsafe
        started: Any = original
        with no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    with contextlib.suppress(NotImplementedError):  # then it begins with the tensor itself
                        started = module.right_inverse(started)
        self.is_tensor = isinstance(started, Tensor)
        self.ntensors = 1 if self.is_tensor else len(started)
        if self.is_tensor:
            self._keep("original", original, started, reuse=True)
        else:
            for i, each in enumerate(started):
                self._keep(f"original{i}", original, each, reuse=False)
        if not unsafe:
            self._check(original)

    def _keep(self, name: str, like: Tensor, value: Tensor, reuse: bool) -> None:
        if not isinstance(like, Parameter):
            self.register_buffer(name, value)
        elif not reuse:
            self.register_parameter(name, Parameter(value.detach(), like.requires_grad))
        else:
            if value is not like:
                like.data = value.detach()
            self.register_parameter(name, like)

    def _check(self, original: Tensor) -> None:
        with no_grad():
            computed = self()
        if computed.dtype is not original.dtype:
            raise DTypeError(
                f"the parametrization gives {computed.dtype.name} for a tensor of {original.dtype.name}",
                help="pass unsafe=True if that is meant",
            )
        if computed.shape != original.shape:
            raise ShapeError(
                f"the parametrization gives {tuple(computed.shape)} for a tensor of {tuple(original.shape)}",
                help="pass unsafe=True if that is meant",
            )

    def originals(self) -> list[Tensor]:
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def forward(self) -> Tensor:
        first, *others = self
        value = first(*self.originals())
        for module in others:
            value = module(value)
        return value

    def right_inverse(self, value: Tensor) -> None:
        """Set the originals so that the parametrized tensor has this value."""
        with no_grad():
            started: Any = value
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise ArgumentError(f"{type(module).__name__} has no right_inverse to assign through")
                started = module.right_inverse(started)
            given = [started] if self.is_tensor else list(started)
            for target, each in zip(self.originals(), given, strict=True):
                target.copy_(each)


def _property(name: str) -> property:
    def read(self: Any) -> Tensor:
        if not _caching:
            return self.parametrizations[name]()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = self.parametrizations[name]()
        return _cache[key]

    def write(self: Any, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(read, write)


class _Settable:
    """What makes assignment to a parametrized name reach its property, before a module's own rules."""

    def __setattr__(self, name: str, value: Any) -> None:
        own = getattr(type(self), name, None)
        if isinstance(own, property) and own.fset is not None:
            own.fset(self, value)
        else:
            super().__setattr__(name, value)

    def __reduce_ex__(self: Any, protocol: Any) -> Any:
        return _rebuild, (self._plain_class, list(self.parametrizations)), self.__getstate__()


def _rebuild(plain: type, names: list[str]) -> Any:
    made: Any = object.__new__(plain)
    made.__class__ = _parametrized_class(plain, names)
    return made


def _parametrized_class(plain: type, names: list[str]) -> type:
    members: dict[str, Any] = {name: _property(name) for name in names}
    return type(f"Parametrized{plain.__name__}", (_Settable, plain), members | {"_plain_class": plain})


@located
def register_parametrization(
    module: Any, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Any:
    """Replace a parameter or buffer by the result of a module, computed from the original.

    If the module has a right_inverse, that computes the original from the present value. Unless `unsafe` is
    set, the shape and dtype must not change.
    """
    if is_parametrized(module, tensor_name):
        held = module.parametrizations[tensor_name]
        before = getattr(module, tensor_name)
        if hasattr(parametrization, "right_inverse"):
            with no_grad():
                held.right_inverse(parametrization.right_inverse(before))
        held.append(parametrization)
        if not unsafe:
            held._check(before)
        return module
    original = module._parameters.get(tensor_name)
    if original is None:
        original = module._buffers.get(tensor_name)
    if original is None:
        raise ArgumentError(f"{type(module).__name__} has no parameter or buffer {tensor_name!r}")
    parametrizations = ParametrizationList([parametrization], original, unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        module.parametrizations = ModuleDict()
        plain, names = type(module), [tensor_name]
    else:
        plain, names = module._plain_class, [*module.parametrizations, tensor_name]
    module.parametrizations[tensor_name] = parametrizations
    module.__class__ = _parametrized_class(plain, names)
    return module


def is_parametrized(module: Any, tensor_name: str | None = None) -> bool:
    """Whether a module, or one tensor of it, is computed by parametrizations."""
    held = module._modules.get("parametrizations")
    if not isinstance(held, ModuleDict):
        return False
    return len(held) > 0 if tensor_name is None else tensor_name in held


@located
def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """Make a parametrized tensor an ordinary one again, with its computed value or that of `original`."""
    if not is_parametrized(module, tensor_name):
        raise ArgumentError(f"{tensor_name} of {type(module).__name__} has no parametrization")
    held = module.parametrizations[tensor_name]
    originals = held.originals()
    if leave_parametrized:
        with no_grad():
            value = getattr(module, tensor_name)
    elif not held.is_tensor:
        raise ArgumentError("one of several originals cannot be left", help="pass leave_parametrized=True")
    else:
        value = originals[0]
    del module.parametrizations[tensor_name]
    names = list(module.parametrizations)
    plain = module._plain_class
    module.__class__ = _parametrized_class(plain, names) if names else plain
    if not names:
        delattr(module, "parametrizations")
    if isinstance(originals[0], Parameter):
        if value is not originals[0]:
            value = Parameter(value.detach(), originals[0].requires_grad)
        module.register_parameter(tensor_name, value)
    else:
        module.register_buffer(tensor_name, value)
    return module


def type_before_parametrizations(module: Any) -> type:
    """The class of a module before it was parametrized."""
    return module._plain_class if is_parametrized(module) else type(module)
