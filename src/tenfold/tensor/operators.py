"""Python's operators on tensors, and attributes that are ops: which op each stands for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold.base.errors import ArgumentError
from tenfold.ops.numbers import number_in
from tenfold.tensor import Tensor, leaf
from tenfold.tensor.dispatch import function, rows_of
from tenfold.tensor.interchange import tensor
from tenfold.tensor.overriding import CODES, PLAIN, hand_over, overridable, overrides, overriding
from tenfold.trace.context import context

PROPERTIES = {"T": "numpy_T", "mT": "mT", "H": "matrix_H", "mH": "mH", "real": "real", "imag": "imag"}

OPERATORS = {
    "__add__": "add", "__sub__": "sub", "__mul__": "mul", "__truediv__": "div",
    "__floordiv__": "floor_divide", "__mod__": "remainder", "__pow__": "pow", "__matmul__": "matmul",
    "__and__": "bitwise_and", "__or__": "bitwise_or", "__xor__": "bitwise_xor",
    "__lshift__": "bitwise_left_shift", "__rshift__": "bitwise_right_shift",
    "__eq__": "eq", "__ne__": "ne", "__lt__": "lt", "__le__": "le", "__gt__": "gt", "__ge__": "ge",
    "__neg__": "neg", "__pos__": "positive", "__abs__": "abs", "__invert__": "bitwise_not",
}  # fmt: skip

UNARY = "__neg__", "__pos__", "__abs__", "__invert__"

REFLECTED = {
    "__radd__": "add", "__rsub__": "sub", "__rmul__": "mul", "__rfloordiv__": "floor_divide",
    "__rmod__": "remainder", "__rpow__": "pow", "__rmatmul__": "matmul",
    "__rand__": "bitwise_and", "__ror__": "bitwise_or", "__rxor__": "bitwise_xor",
    "__rlshift__": "bitwise_left_shift", "__rrshift__": "bitwise_right_shift",
}  # fmt: skip

AUGMENTED = {
    "__iadd__": "add", "__isub__": "sub", "__imul__": "mul", "__itruediv__": "div",
    "__ifloordiv__": "floor_divide", "__imod__": "remainder", "__ipow__": "pow",
    "__iand__": "bitwise_and", "__ior__": "bitwise_or", "__ixor__": "bitwise_xor",
    "__ilshift__": "bitwise_left_shift", "__irshift__": "bitwise_right_shift",
}  # fmt: skip


def install() -> None:
    """Give Tensor its operators; the methods that write are there already."""
    for attribute, name in PROPERTIES.items():
        read = function(attribute, rows_of(name), method=True)
        write = _writing(read) if attribute in ("real", "imag") else None
        setattr(Tensor, attribute, property(read, write))
    for special, name in OPERATORS.items():
        setattr(Tensor, special, _operator(name, special))
    for special, name in REFLECTED.items():
        call = function(name, rows_of(name))
        own = vars(Tensor)[name] if name in ("add", "mul") else None  # there the tensor comes first
        reflected = call if own else lambda self, other, call=call: call(other, self)
        setattr(Tensor, special, _reflected(reflected, special, own))
    for special in ("__rtruediv__", "__rdiv__"):
        setattr(Tensor, special, _reflected(_quotient, special))
    for special, name in AUGMENTED.items():
        setattr(Tensor, special, _protocol(getattr(Tensor, name + "_"), special))


def _writing(part: Callable[[Tensor], Tensor]) -> Callable[[Tensor, Any], None]:
    """`x.real = …`: what is given goes into that part of x."""

    def write(self: Tensor, value: Any) -> None:
        written = part(self)
        if isinstance(value, complex):
            value = number_in(value, written.dtype)
        written.copy_(value if isinstance(value, Tensor) else tensor(value, device=self.device))

    return write


def _operator(name: str, special: str) -> Callable[..., Any]:
    # Not the overloads that take a number first: a tensor of no dimensions would pass for one.
    own: Any = vars(Tensor).get(name)
    if not overridable(own) or special in ("__eq__", "__ne__"):
        own = function(special, rows_of(name, "method"), method=True)
    return _protocol(own, special)


def _protocol(call: Callable[..., Any], special: str) -> Callable[..., Any]:
    """A method as Python's operators want it: what it does not know, the other operand may."""

    def of_one(self: Tensor) -> Any:
        return call(self)

    def of_two(self: Tensor, other: Any) -> Any:
        try:
            return call(self, other)
        except ArgumentError:
            if isinstance(other, (Tensor, bool, int, float, complex, np.generic)):
                raise
            if special in ("__eq__", "__ne__") and isinstance(other, np.ndarray):
                # NumPy would leave the comparison to us, and Python then compares by identity.
                return call(self, leaf(np.array(other, order="C"), self.device))
            return NotImplemented

    operate = of_one if special in UNARY else of_two
    CODES.add(operate.__code__)
    operate.__name__ = operate.__qualname__ = special
    return operate


def _quotient(self: Tensor, other: Any) -> Tensor:
    """other / self, by the reciprocal as in PyTorch: it differs from a quotient in the last place."""
    return self.reciprocal() * other


def _reflected(
    call: Callable[[Tensor, Any], Any], special: str, own: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """An operator whose left operand is no tensor: `call(self, other)`; subclasses override it as `own`."""

    def operate(self: Tensor, other: Any) -> Any:
        if context.heeds and self.__class__ not in PLAIN and overrides(self.__class__):
            return hand_over(own or operate, (self, other), {}, overriding((self, other)))
        if not isinstance(other, (Tensor, bool, int, float, complex, np.generic)):
            return NotImplemented
        return call(self, other)

    CODES.add(operate.__code__)
    operate.__name__ = operate.__qualname__ = special
    return operate
