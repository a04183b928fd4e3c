"""Tensors that cross over to foreign functions. Each is one of libtenfold's for the length of a call: what C
writes into it is written into the tensor, and what C computes with it has the gradient that libtorch's own
autograd finds."""

from __future__ import annotations

import ctypes
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tenfold
from tenfold.base.dtypes import from_numpy
from tenfold.purple import core
from tenfold.purple.errors import PurpleError
from tenfold.purple.prims.registry import wrong_type
from tenfold.tensor import Tensor


def library() -> Any:
    """libtenfold, whose functions the libraries that are loaded after it may call."""
    from tenfold.engines import libtorch

    loaded = libtorch.library()
    ctypes.CDLL(loaded.library._name, mode=ctypes.RTLD_GLOBAL)
    return loaded


class Crossing:
    """The tensors of one call, as libtenfold's, until nothing needs them."""

    def __init__(self, name: str, result: core.Passed, values: Sequence[Any]):
        from tenfold.engines.libtorch_calls import Calls

        self.name, self.gives = name, result
        uses = Counter(id(_memory(value)) for value in values if isinstance(value, Tensor))
        self.shared: dict[int, int | None] = {memory: None for memory, count in uses.items() if count > 1}
        self.calls = Calls(library(), tenfold.device("cpu"))
        self.tensors: list[Tensor] = []
        self.arrays: list[np.ndarray] = []
        self.handles: list[int] = []
        self.result: int | None = None
        weakref.finalize(self, self.calls.close)

    def passed(self, parameter: core.Passed, value: Any) -> int:
        """The handle that C is given: another one of the tensor, where C frees it."""
        if not isinstance(value, Tensor):
            wrong_type(self.name, "tensor", value)
        lib, array = self.calls.lib, value.detach().cpu().numpy()
        handle = self._aliased(value, array)
        if handle is None:
            handle = self.calls.copied(array, from_numpy(array.dtype))
        if value.requires_grad and tenfold.is_grad_enabled():
            lib.tn_set_requires_grad(handle, True)
        self.tensors.append(value)
        self.arrays.append(array)
        self.handles.append(handle)
        return int(lib.tn_tensor_share(handle)) if parameter.owned else handle

    def _aliased(self, value: Tensor, array: np.ndarray) -> int | None:
        """The handle of a tensor whose memory another argument shares: a view of one copy of that memory."""
        memory = _memory(value)
        if id(memory) not in self.shared:
            return None
        whole = self.shared[id(memory)]
        if whole is None:
            flat = Tensor(memory.current()).detach().cpu().numpy().reshape(-1)
            whole = self.shared[id(memory)] = self.calls.copied(flat, from_numpy(flat.dtype))
        place = (tuple(value.shape), tuple(value.stride()), value.storage_offset())
        view = self.calls.apply("aten::as_strided", whole, *place)
        if self.calls.fetch(view).tobytes() != array.tobytes():
            help = "clone one of them"
            message = f"{self.name}: two tensors share memory that they read in different ways"
            raise PurpleError(message, "tensor", help=help)
        return view

    def call(self, function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
        """The function's result; a tensor's gradients flow on to those that were passed."""
        lib = self.calls.lib
        records = tenfold.is_grad_enabled()
        scope = None if records else lib.tn_no_grad_begin()
        lib.tn_error_clear()
        try:
            result = function(*arguments)
        finally:
            if scope is not None:
                lib.tn_scope_end(scope)
        if self.gives.type == "tensor":
            result = self._tensor(result)
        self._write_back()
        return result

    def _tensor(self, handle: int | None) -> Tensor:
        lib = self.calls.lib
        if handle is None:
            message = str(lib.error().message)
            plain = message.partition(": ")[2] if message.startswith("tn_") else message
            raise PurpleError(f"{self.name}: {plain}", "tensor")
        self.result = self.calls.own(handle if self.gives.owned else lib.tn_tensor_share(handle))
        if lib.tn_requires_grad(self.result) == 1:
            return _Joined.apply(self, *self.tensors)
        return tenfold.from_numpy(self.calls.fetch(self.result))

    def _write_back(self) -> None:
        for tensor, array, handle in zip(self.tensors, self.arrays, self.handles, strict=True):
            found = self.calls.fetch(handle)
            if found.tobytes() != array.tobytes():
                with tenfold.no_grad():
                    tensor.copy_(tenfold.from_numpy(found))

    def gradients(self, cotangent: np.ndarray) -> list[Tensor | None]:
        """One for each tensor; None where C did not use it."""
        from tenfold.capi.binding import handles

        lib, calls = self.calls.lib, self.calls
        wanted = [i for i, handle in enumerate(self.handles) if lib.tn_requires_grad(handle) == 1]
        out, count = handles([None] * len(wanted))
        given = handles([calls.copied(cotangent, from_numpy(cotangent.dtype))])
        inputs = handles([self.handles[i] for i in wanted])
        lib.tn_gradients(*handles([self.result]), *inputs, *given, True, False, True, out, count)
        found: list[Tensor | None] = [None] * len(self.handles)
        for i, handle in zip(wanted, out):
            found[i] = tenfold.from_numpy(calls.fetch(calls.own(handle))) if handle else None
        return found


def _memory(tensor: Tensor) -> Any:
    """The storage, which tensors that share memory have in common. Every detached tensor has one."""
    alias = tensor.detach()._alias
    assert alias is not None
    return alias.storage


class _Joined(tenfold.autograd.Function):
    """The result of a call, joined to the graph of what was passed."""

    @staticmethod
    def forward(ctx: Any, crossing: Crossing, *tensors: Tensor) -> Tensor:
        ctx.crossing = crossing
        return tenfold.from_numpy(crossing.calls.fetch(crossing.result))  # type: ignore[arg-type]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return (None, *ctx.crossing.gradients(gradients[0].numpy()))
