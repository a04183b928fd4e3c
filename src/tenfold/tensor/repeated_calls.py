"""Calls that were made before: what a call is known by, so that its callee is found at once the next time."""

from __future__ import annotations

import math
from typing import Any

from tenfold.base import dtypes
from tenfold.base.dtypes import DType
from tenfold.tensor import Tensor
from tenfold.tensor.parameter import Parameter
from tenfold.trace.graph import Value

PLAIN: frozenset[Any] = frozenset((Tensor, Parameter))


def key_of(
    args: tuple[Any, ...], kwargs: dict[str, Any], plain: bool
) -> tuple[tuple[Any, ...] | None, tuple[Value, ...]]:
    """A call as types of tensors and plain values, and the values of the tensors; None if there are other
    arguments. In a `plain` context a tensor without an alias is read by a look at its value."""
    if len(args) == 2 and not kwargs:
        x, y = args
        if x.__class__ in PLAIN and y.__class__ in PLAIN:  # as most calls are
            one = x._value if plain and x._alias is None else x.current()
            other = y._value if plain and y._alias is None else y.current()
            return (dtypes._default_dtype, one.type, other.type), (one, other)
    key: list[Any] = [dtypes._default_dtype]
    inputs: list[Value] = []
    for arg in args:
        kind = arg.__class__
        if kind in PLAIN:
            value = arg._value if plain and arg._alias is None else arg.current()
            inputs.append(value)
            key.append(value.type)
        elif kind is int or kind is bool or _is_exact(arg):
            key.append(kind)
            key.append(arg)
        else:
            return None, ()
    if kwargs:
        for name, arg in kwargs.items():
            if not _is_exact(arg):
                return None, ()
            key += name, arg.__class__, arg
    return tuple(key), tuple(inputs)


def _is_exact(argument: Any) -> bool:
    """Whether an argument can be part of a key: it hashes, and equals only arguments that mean the same. A
    symbolic number of an export claims to be an int, so `type` is asked."""
    kind = type(argument)
    if kind is int or kind is bool or kind is DType or kind is str or argument is None:
        return True
    if kind is float:
        # -0.0 equals 0.0, and NaN not even itself.
        return argument == argument and (argument != 0 or math.copysign(1, argument) > 0)
    return kind is tuple and all(type(each) is int for each in argument)
