"""A module of TorchScript as a module of ours: its tensors are known by name, and written where libtorch
reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tenfold.autograd.grad_mode import no_grad
from tenfold.base.errors import UnsupportedError
from tenfold.base.source import capture
from tenfold.exporting.script_calls import Compiled
from tenfold.nn import Module
from tenfold.nn.parameter import Parameter
from tenfold.tensor import Tensor
from tenfold.tensor.interchange import from_numpy
from tenfold.trace.graph import Value

KINDS = {"parameter": "_parameters", "buffer": "_buffers"}


class HeldModule(Compiled, Module):
    """A module of TorchScript with the modules in it. Its parameters and buffers are copies of libtorch's:
    what is written to them is written there before a call, and what a call writes to buffers is read after
    it."""

    # of a name, the tensor, its value, which libtorch has too, and whether libtorch follows its gradients
    _told: dict[str, tuple[Tensor, Value, bool]]

    def __init__(self, compiled: Any, known: dict[int, Tensor] | None = None):
        super().__init__()
        del self.__dict__["training"]  # libtorch has it
        known = {} if known is None else known  # by libtorch's tensors: one may have two names
        self.__dict__.update(_held=compiled, _told={})
        for kind, place in KINDS.items():
            for name, array in compiled.ask(f"{kind}s").items():
                if "." not in name:
                    made, followed = from_numpy(array), compiled.is_followed(kind, name)
                    tensor = Parameter(made, requires_grad=followed) if kind == "parameter" else made
                    tensor = known.setdefault(compiled.identity(kind, name), tensor)
                    self.__dict__[place][name] = tensor
                    self._told[name] = tensor, tensor.current(), followed
        for name in compiled.ask("children"):
            self._modules[name] = type(self)(compiled.child(name), known)

    @property
    def _script(self) -> Any:
        """The module that libtorch runs, which has been told what was written to its tensors."""
        for _, module in self._parts():
            module._tell()
        return self._held

    @property
    def training(self) -> bool:
        return bool(self._held.training)

    @training.setter
    def training(self, mode: bool) -> None:
        self._held.train(mode)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._run("forward", args, kwargs)

    def _run(self, method: str, args: Sequence[Any], kwargs: Mapping[str, Any] = {}) -> Any:
        found = super()._run(method, args, kwargs)
        parts = dict(self._parts())
        if any(module._buffers for module in parts.values()):
            for path, array in self._held.ask("buffers").items():
                module, _, name = path.rpartition(".")
                parts[module]._read(name, from_numpy(array))
        return found

    def _parts(self) -> Iterator[tuple[str, HeldModule]]:
        """This module and those in it, by their paths."""
        for path, module in self.named_modules(remove_duplicate=False):
            if not isinstance(module, HeldModule):
                raise UnsupportedError(
                    "libtorch runs the modules of the TorchScript file alone, and no "
                    f"{type(module).__name__} at {path!r}",
                    help="load the model itself to change what it is made of",
                ).located("jit.load", capture())
            yield path, module

    def _tell(self) -> None:
        """Write to libtorch what was written to the tensors here."""
        for kind, place in KINDS.items():
            for name, tensor in self.__dict__[place].items():
                if tensor is None or name not in self._told:
                    raise _not_held(name)
                known, value, followed = self._told[name]
                if tensor.requires_grad != followed:
                    self._held.follow(kind, name, tensor.requires_grad)
                if tensor is not known or tensor.current() is not value:
                    if tensor.current().type is not value.type or tensor.device.type != "cpu":
                        raise _not_held(name)
                    self._held.write(kind, name, tensor.detach().numpy())
                self._told[name] = tensor, tensor.current(), tensor.requires_grad

    def _trained(self) -> list[tuple[tuple[Any, str, str], Tensor]]:
        found: dict[int, tuple[tuple[Any, str, str], Tensor]] = {}
        for _, module in self._parts():
            for kind, place in KINDS.items():
                for name, tensor in module.__dict__[place].items():
                    if tensor is not None and tensor.requires_grad:
                        found.setdefault(id(tensor), ((module._held, kind, name), tensor))
        return list(found.values())

    def _read(self, name: str, found: Tensor) -> None:
        """Take the value of a buffer after a call, in the tensor that others may hold."""
        buffer = self._buffers[name]
        assert buffer is not None
        with no_grad():
            buffer.become(found.current(), None)
        self._told[name] = buffer, buffer.current(), buffer.requires_grad

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        """Change the values of all tensors, which stay on the CPU and in their dtypes."""
        for name, tensor in [*self.named_parameters(recurse=recurse), *self.named_buffers(recurse=recurse)]:
            with no_grad():
                found = fn(tensor)
            if found.dtype is not tensor.dtype or found.device != tensor.device:
                raise _not_held(name)
        return super()._apply(fn, recurse)

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        kept = name.startswith("_") or any(name in own[place] for place in (*KINDS.values(), "_modules"))
        return Module.__getattr__(self, name) if kept else super().__getattr__(name)


def _not_held(name: str) -> UnsupportedError:
    return UnsupportedError(
        "libtorch holds the tensors of a TorchScript module, on the CPU and in their shape and dtype: "
        f"{name} cannot become another",
        help="load the model itself to move, convert or reshape it",
    ).located("jit.load", capture())
