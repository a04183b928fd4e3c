"""Python's and NumPy's protocols on tensors: printing, iteration, and conversion to numbers and arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.base import dtypes, formatting
from tenfold.base.errors import ArgumentError, DeviceError, DTypeError, GradientError, ShapeError
from tenfold.base.late import on_first_use
from tenfold.base.source import capture
from tenfold.runtime import evaluate
from tenfold.tensor import symbolic, views
from tenfold.tensor.questions import Described
from tenfold.trace.context import context
from tenfold.trace.graph import Origin

with on_first_use(__name__):
    from tenfold.base import watched_sizes
    from tenfold.tensor import sized


class Protocols(Described):
    """The base class of Tensor with Python's special methods; most of them compute the value."""

    __slots__ = ()
    _leaf: Origin | None

    if TYPE_CHECKING:  # what Tensor adds

        def __getattr__(self, name: str) -> Any: ...
        def __getitem__(self, index: Any) -> Any: ...
        def __eq__(self, other: Any) -> Any: ...

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from tenfold.base.notebooks import tensor_html

        facts = [str(self._value.type), str(self.device.resolved)]
        facts += ["requires_grad"] if self.requires_grad else []
        known = context.recorder is None and self.device.type != "meta"
        return tensor_html(self._present() if known else None, " · ".join(facts))

    def __repr__(self) -> str:
        if context.recorder is not None:
            describes = context.recorder.policy.describes
            told = f"{self._value.type}, recorded" if describes is None else describes(self.current())
            return f"Tensor({told})"
        mesh = self._value.device.mesh
        if mesh is not None and not mesh.own:  # as PyTorch prints what lies in several processes
            local: Any = self.detach().to_local()
            return (
                f"DTensor(local_tensor={local}, device_mesh={self.device_mesh}, placements={self.placements})"
            )
        suffixes = [] if self.device.type == "cpu" else [f"device='{self.device.resolved}'"]
        if self._leaf is not None:
            suffixes.append("requires_grad=True")
        elif self.requires_grad:
            suffixes.append(f"grad_fn={self.grad_fn}")
        if self.device.type == "meta":
            dtype = [] if self.dtype is dtypes.get_default_dtype() else [f"dtype={self.dtype!r}"]
            return (
                f"tensor(..., {', '.join([suffixes[0], f'size={tuple(self.shape)}', *dtype, *suffixes[1:]])})"
            )
        return formatting.format_tensor(self._present(), self.dtype, suffixes=suffixes)

    def __format__(self, spec: str) -> str:
        traced = context.recorder is not None and self._value.buffer is None
        return object.__format__(self, spec) if self.ndim or traced else format(self.item(), spec)

    def __len__(self) -> int:
        if self.ndim == 0:
            raise ArgumentError("len() of a 0-dimensional tensor", help="use .numel()").located(
                "len", capture()
            )
        length = self._value.type.shape[0]
        if context.asked is not None:
            watched_sizes.note(context.asked, watched_sizes.Asked("len", length, None, None), 2)
        return length

    def __iter__(self) -> Iterator[Any]:
        if self.ndim == 0:
            raise ArgumentError("iteration over a 0-dimensional tensor", help="use .item()").located(
                "iter", capture()
            )
        return iter([self[i] for i in range(len(self))])

    def __reversed__(self) -> Any:
        return self.flip(0) if self.ndim else self

    def __bool__(self) -> bool:
        if self.numel() != 1:
            raise ArgumentError(
                f"the truth of a tensor of {self.numel()} elements is ambiguous", help="use .any() or .all()"
            ).located("bool", capture())
        return bool(self.item())

    def __int__(self) -> int:
        return int(self._real())

    def __float__(self) -> float:
        return float(self._real())

    def _real(self) -> Any:
        """The only element, of a complex tensor as the real number that it must be."""
        number = self.item()
        if isinstance(number, complex):
            if number.imag:
                raise DTypeError(f"{number} is not a real number", help="use .real or .abs()").located(
                    "float", capture()
                )
            return number.real
        return number

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        if self.dtype.kind not in ("int", "bool") or self.numel() != 1:
            raise ArgumentError("only an integer tensor of one element can be an index").located(
                "index", capture()
            )
        return int(self.item())

    def __hash__(self) -> int:
        return id(self)

    def __contains__(self, item: Any) -> bool:
        if not isinstance(item, (Protocols, bool, int, float, complex, np.generic)):
            raise ArgumentError(f"a tensor does not contain a {type(item).__name__}").located("in", capture())
        return bool((self == item).any())

    def item(self) -> Any:
        """The only element, as a Python number."""
        type = self._value.type
        if type.numel != 1:
            raise ShapeError(
                f"item() needs a tensor of one element, this one is {type}", help="index it, or use .tolist()"
            ).located("item", capture())
        if context.recorder is not None and (number := symbolic.of(self)) is not None:
            return number
        alias, narrow = self._alias, type.dtype.itemsize < 4 and type.dtype.kind == "float"
        if alias is not None and alias.steps and not narrow and context.recorder is None:
            number = views.number(alias, type)
            if number is not None:
                return number
        if narrow or (alias is not None and alias.steps):
            return self._plain().reshape(()).item()
        return evaluate.number(self._computed())

    def _as_size(self) -> int:
        """The only element, to be the size of a tensor: inside a compiled function it stays open."""
        value = self.current()
        counts = sized.counts()
        return int(self.item()) if counts is None else sized.as_size(value, counts, capture())

    def tolist(self) -> Any:
        return self._plain().tolist()

    def _plain(self) -> np.ndarray:
        """The data in a dtype that NumPy itself knows, so that Python numbers come out."""
        alias, seen = self._alias, None
        if alias is not None and alias.steps and context.recorder is None:
            seen = views.on_host(alias, self._value.type)
        host = self._present() if seen is None else seen
        return host.astype(np.float32) if self.dtype.kind == "float" and host.dtype.kind != "f" else host

    def _present(self) -> np.ndarray:
        """The data to be read at once: memory that others may write is read where it lies."""
        memory = views.memory_of(self._alias) if context.recorder is None else None
        return self._host() if memory is None else memory

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """The data as a NumPy array. On the CPU it shares the tensor's memory, and is read-only unless that
        memory belongs to another array."""
        if self.device.type != "cpu" and not force:
            raise DeviceError(
                f"a tensor on {self.device} has no NumPy array",
                help="use .cpu().numpy() or .numpy(force=True)",
            ).located("numpy", capture())
        if not force and context.grad_enabled and self.requires_grad:
            raise GradientError(
                "a tensor that requires gradients has no NumPy array, which could not pass them on",
                help="use .detach().numpy() or .numpy(force=True)",
            ).located("numpy", capture())
        memory = views.memory_of(self._alias)
        if memory is not None and context.recorder is None:
            return memory.view()
        array = self._host().view()
        array.flags.writeable = False
        return array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        host = self.numpy()
        if copy is False and dtype is not None and np.dtype(dtype) != host.dtype:
            raise ValueError(f"a {self.dtype.name} tensor cannot be a {np.dtype(dtype)} array without a copy")
        return np.array(host, dtype) if copy else np.asarray(host, dtype)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0) if self.device.type == "cpu" else (2, self.device.resolved.index or 0)
