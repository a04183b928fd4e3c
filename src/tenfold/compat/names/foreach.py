"""PyTorch's functions on lists of tensors, `_foreach_add` and its like, by which code updates many tensors at
once. Here one program computes them all in any case, so each is its function on one tensor after another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenfold.base.errors import ArgumentError, located, unknown_name
from tenfold.compat.names import FOREACH
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten

# Those that are called otherwise on one tensor.
OTHERWISE: dict[str, Callable[..., Any]] = {
    "norm": lambda x, ord=2, dtype=None: aten("linalg_vector_norm")(x, ord, dtype=dtype),
    "max": lambda x: x.max(),
    "pow": lambda x, exponent: aten("pow")(x, exponent),  # of a number to tensors, too
    "maximum": lambda x, y: x.maximum(y) if isinstance(y, Tensor) else x.clamp_min(y),
    "minimum": lambda x, y: x.minimum(y) if isinstance(y, Tensor) else x.clamp_max(y),
    "maximum_": lambda x, y: x.copy_(x.maximum(y)) if isinstance(y, Tensor) else x.clamp_min_(y),
    "minimum_": lambda x, y: x.copy_(x.minimum(y)) if isinstance(y, Tensor) else x.clamp_max_(y),
    **{
        name: lambda x, y, z, value=1, name=name: getattr(x, name)(y, z, value=value)
        for name in ("addcmul", "addcmul_", "addcdiv", "addcdiv_")
    },
}


def _over_lists(name: str) -> Callable[..., Any]:
    call = OTHERWISE.get(name) or (lambda x, *args, **kwargs: getattr(x, name)(*args, **kwargs))
    packed = name.removesuffix("_") in ("addcmul", "addcdiv")

    def foreach(self: Any, *args: Any, **kwargs: Any) -> Any:
        lists = [arg for arg in (self, *args) if isinstance(arg, (list, tuple))]
        if not lists or not lists[0] or not isinstance(lists[0][0], Tensor):
            raise ArgumentError("takes a list of at least one Tensor first")
        count = len(lists[0])
        results = [
            call(
                *[_ith(arg, i, count, packed) for arg in (self, *args)],
                **{key: _ith(each, i, count, packed) for key, each in kwargs.items()},
            )
            for i in range(count)
        ]
        return self if name.endswith("_") else tuple(results)

    foreach.__name__ = foreach.__qualname__ = f"_foreach_{name}"
    foreach.__doc__ = f"`{name}` of each tensor in a list; what is given as a list, one for each."
    return located(foreach)


def _ith(given: Any, i: int, count: int, packed: bool) -> Any:
    """What an argument is for the i-th tensor: a list has one for each, and so has a vector where numbers are
    given `packed`; any other tensor is a number for all."""
    if isinstance(given, Tensor):
        if given.ndim != packed:
            wanted = "a vector with a number for each" if packed else "of no dimensions, a number for all"
            raise ArgumentError(f"a tensor beside lists must be {wanted}, not of shape {tuple(given.shape)}")
        if not packed:
            return given
    elif not isinstance(given, (list, tuple)):
        return given
    if len(given) != count:
        raise ArgumentError(f"a list of {len(given)} does not fit {count} tensors")
    return given[i]


for _name in FOREACH:
    globals()[_name] = _over_lists(_name.removeprefix("_foreach_"))


def __getattr__(name: str) -> Any:
    raise unknown_name("tenfold", name, globals())
