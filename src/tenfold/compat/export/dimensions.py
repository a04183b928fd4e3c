"""`Dim` and `dynamic_shapes` as `torch.export` has them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from tenfold.base.dim import Dim as Dimension
from tenfold.base.errors import ArgumentError, UnsupportedError
from tenfold.tensor import Tensor

__all__ = ["Dim", "ShapesCollection", "dims", "said_of"]


class _Hint:
    """What is asked of a dimension without a name."""

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"Dim.{self.name}"


class Dim:
    """A dimension of any size from `min` to `max`; those of one name have one size. `Dim.DYNAMIC` is one
    without a name, `Dim.AUTO` too if the program allows it, `Dim.STATIC` is fixed."""

    AUTO, DYNAMIC, STATIC = _Hint("AUTO"), _Hint("DYNAMIC"), _Hint("STATIC")

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None):
        self.__name__ = name
        self.min, self.max = 0 if min is None else min, max
        if max is not None and self.min > max:
            raise AssertionError(f"Cannot create Dim with inconsistent min={self.min}, max={max}")
        Dimension(name)  # which refuses what is no name

    def __repr__(self) -> str:
        return f"Dim({self.__name__!r}, min={self.min}, max={self.max})"

    def _derived(self, other: Any) -> Any:
        raise UnsupportedError(
            f"a dimension that is computed from {self.__name__!r} is not supported",
            help="name both, and export once for each size; or pass one tensor less, and compute the size",
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _derived


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Several dimensions of the same bounds."""
    return tuple([Dim(name, min=min, max=max) for name in names])


class ShapesCollection:
    """Which dimensions of which tensors are open: `shapes[x] = {0: Dim.DYNAMIC}`."""

    def __init__(self) -> None:
        self._shapes: dict[int, tuple[Tensor, Any]] = {}

    def __setitem__(self, t: Tensor, shape: Any) -> None:
        self._shapes[id(t)] = (t, shape)

    def __getitem__(self, t: Tensor) -> Any:
        return self._shapes[id(t)][1]

    def __len__(self) -> int:
        return len(self._shapes)

    def dynamic_shapes(self, m: Any, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None) -> Any:
        """The same as a tree like the arguments."""

        def said(argument: Any) -> Any:
            if isinstance(argument, Tensor):
                return self._shapes[id(argument)][1] if id(argument) in self._shapes else None
            if isinstance(argument, Mapping):
                return {key: said(each) for key, each in argument.items()}
            return [said(each) for each in argument] if isinstance(argument, (tuple, list)) else None

        names = list(inspect.signature(m.forward).parameters)
        return {
            **dict(zip(names, map(said, args))),
            **{key: said(each) for key, each in (kwargs or {}).items()},
        }


class Wishes:
    """What `dynamic_shapes` says, as `tenfold.export` takes it. Dimensions without names get names; `shared`
    gives one to those of one size, and without `auto` those of `Dim.AUTO` stay fixed."""

    def __init__(self, shared: bool, auto: bool):
        self.shared, self.auto = shared, auto
        self.unnamed = 0
        self.names: dict[int, Dimension] = {}
        self.has_hints = False

    def of(self, argument: Any, said: Any) -> Any:
        if said is None:
            return None
        if isinstance(argument, Tensor):
            pairs = said.items() if isinstance(said, Mapping) else enumerate(said)
            wished = {axis: self._dimension(dim, argument.shape[axis]) for axis, dim in pairs}
            return {axis: dim for axis, dim in wished.items() if dim is not None}
        if isinstance(argument, Mapping) and isinstance(said, Mapping):
            return {key: self.of(argument[key], said[key]) for key in said}
        if isinstance(argument, (tuple, list)) and isinstance(said, (tuple, list)):
            return [self.of(*pair) for pair in zip(argument, said, strict=True)]
        raise ArgumentError(f"dynamic_shapes says {said!r} of an argument that is {type(argument).__name__}")

    def _dimension(self, said: Any, size: int) -> Dimension | None:
        if isinstance(said, Dim):
            return Dimension(said.__name__, min=max(said.min, 1), max=said.max)
        if said is None or said is Dim.STATIC:
            return None
        if type(said) is int:
            if said != size:
                raise ArgumentError(f"dynamic_shapes says that a dimension is {said}, and it is {size}")
            return None
        if isinstance(said, str):
            return Dimension(said)
        if said is not Dim.AUTO and said is not Dim.DYNAMIC:
            raise ArgumentError(f"dynamic_shapes says {said!r} of a dimension", help="as Dim('batch')")
        self.has_hints = True
        if said is Dim.AUTO and (not self.auto or size < 2):
            return None
        if self.shared and size in self.names:
            return self.names[size]
        self.unnamed += 1
        self.names[size] = Dimension(f"s{self.unnamed - 1}", min=min(2, size))
        return self.names[size]


def said_of(
    module: Any, dynamic_shapes: Any, args: Sequence[Any], kwargs: Mapping[str, Any], wishes: Wishes
) -> dict[Any, Any]:
    """What `dynamic_shapes` says of each argument, by its place or its keyword."""
    if isinstance(dynamic_shapes, ShapesCollection):
        dynamic_shapes = dynamic_shapes.dynamic_shapes(module, args, kwargs)
    parameters = inspect.signature(module.forward).parameters
    names = list(parameters)
    if not isinstance(dynamic_shapes, Mapping):
        dynamic_shapes = dict(zip([*names[: len(args)], *kwargs], dynamic_shapes, strict=True))
    variadic = [name for name, each in parameters.items() if each.kind is each.VAR_POSITIONAL]
    if variadic and variadic[0] in dynamic_shapes:
        first = names.index(variadic[0])
        more = dict(enumerate(dynamic_shapes[variadic[0]], first))
        dynamic_shapes = {**{k: v for k, v in dynamic_shapes.items() if k != variadic[0]}, **more}
    known: dict[Any, Any] = {**dict(zip(names, args)), **dict(enumerate(args)), **kwargs}
    if unknown := [key for key in dynamic_shapes if key not in known]:
        raise ArgumentError(
            f"dynamic_shapes names {unknown}, which the call does not have",
            help=f"its arguments are {', '.join([*names[: len(args)], *kwargs])}",
        )
    wished = {key: wishes.of(known[key], said) for key, said in dynamic_shapes.items()}
    return {key: each for key, each in wished.items() if each}
