"""What modules hold: parameters, which are trained, and buffers, which are not; and tensors made on the host
to start from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold.base import devices, dtypes
from tenfold.base.devices import Device
from tenfold.base.dtypes import DType, as_dtype
from tenfold.base.errors import ArgumentError, TenfoldError, located
from tenfold.base.source import capture
from tenfold.tensor import Tensor, leaf, overriding
from tenfold.tensor.dispatch import aten
from tenfold.tensor.parameter import Parameter
from tenfold.trace import graph

_ParameterMeta = type(Parameter)
__all__ = [
    "Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "UninitializedTensorMixin",
    "filled", "is_lazy", "new_parameter",
]  # fmt: skip


class Buffer(Tensor):
    """A tensor that a module registers as a buffer when it is assigned to an attribute: state that is not
    trained. A buffer that is not persistent is left out of the module's state_dict."""

    __slots__ = ()
    __torch_function__ = staticmethod(overriding.disabled)  # what is computed from it is a plain tensor
    persistent: bool

    def __init__(self, data: Any = None, alias: Any = None, *, persistent: bool = True):
        if isinstance(data, Tensor):
            held = data.detach() if data.requires_grad else data
            super().__init__(graph.fresh(held.current(), capture()), held.share().copy())
        else:
            super().__init__(() if data is None else data, alias)
        self.persistent = persistent


class UninitializedTensorMixin:
    """A tensor whose shape is known only when its module first sees its input."""

    __slots__ = ()
    _kind: type[Tensor]

    @located
    def materialize(
        self: Any, shape: Sequence[int], device: Device | str | None = None, dtype: DType | None = None
    ) -> None:
        """Become an ordinary tensor of this shape, with uninitialized elements."""
        made = filled(shape, 0, dtype or self.dtype, device or self.device)
        self.__class__ = self._kind
        self.become(made.current(), None)

    @property
    def shape(self) -> Any:
        raise TenfoldError(
            "the shape of an uninitialized parameter is not known yet",
            help="call the module once on data of the right shape",
        ).located("shape", capture())

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __deepcopy__(self: Any, memo: dict[int, Any]) -> Any:
        made = memo[id(self)] = type(self)(device=self.device, dtype=self.dtype)
        return made if made.requires_grad == self.requires_grad else made.requires_grad_(self.requires_grad)

    def __reduce_ex__(self: Any, protocol: Any) -> tuple[Any, ...]:
        return _uninitialized, (type(self), self.device, self.dtype, self.requires_grad)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A Parameter without a shape, for lazy modules: `materialize` gives it one."""

    __slots__ = ()
    _kind = Parameter

    def __init__(self, requires_grad: bool = True, device: Any = None, dtype: DType | None = None):
        Parameter.__init__(self, filled((0,), 0, dtype, device).current(), requires_grad)


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer without a shape, for lazy modules: `materialize` gives it one."""

    __slots__ = ()
    _kind = Tensor

    def __init__(
        self,
        requires_grad: bool = False,
        device: Any = None,
        dtype: DType | None = None,
        persistent: bool = True,
    ):
        Tensor.__init__(self, filled((0,), 0, dtype, device).current())
        self.persistent = persistent
        if requires_grad:
            self.requires_grad_()


def is_lazy(param: Any) -> bool:
    """Whether this is a parameter or buffer whose shape is not known yet."""
    return isinstance(param, UninitializedTensorMixin)


def _uninitialized(kind: Any, device: Device, dtype: DType, requires_grad: bool) -> Any:
    return kind(requires_grad, device, dtype)


def filled(size: Sequence[int], value: float, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor that holds its data from the start.

    A new module's tensors are not recorded: the first step of a training loop would be another program than
    the following ones, and compiled apart.
    """
    place = devices.get_default_device() if device is None else Device(device)
    wanted = dtypes.get_default_dtype() if dtype is None else as_dtype(dtype)
    if any(not isinstance(extent, int) or extent < 0 for extent in size):
        raise ArgumentError(f"a tensor of size {tuple(size)} cannot be made").located("", capture())
    if place.type == "meta":
        return aten("empty")(list(size), dtype=wanted, device=place)
    array = np.zeros(size, wanted.numpy) if value == 0 else np.full(size, value, wanted.numpy)
    return leaf(array, place, wanted)


def new_parameter(
    size: Sequence[int], value: float, dtype: Any = None, device: Any = None, requires_grad: bool = True
) -> Parameter:
    """A parameter of its own, not sharing the memory of any tensor, that holds its data from the start."""
    return Parameter(filled(size, value, dtype, device).current(), requires_grad)
