"""What `dynamic` says of a call: which dimensions of its tensors are open."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tenfold.base.dim import Dim
from tenfold.base.errors import ArgumentError
from tenfold.tensor import Tensor

# For a tensor's place among those of a call, which of its dimensions are open.
OpenDims = dict[int, dict[int, Dim]]


def open_dimensions(
    dynamic: Any, args: Sequence[Any], kwargs: Mapping[str, Any], names: Sequence[str]
) -> OpenDims:
    """The open dimensions that `dynamic` names, by the place of each tensor in the call.

    The keys of `dynamic` are arguments, by place or name. Its values are dimensions, as in {0: "n"}; for an
    argument that holds several tensors, a container with the dimensions of each.
    """
    if isinstance(dynamic, Sequence) and not isinstance(dynamic, str):
        dynamic = dict(enumerate(dynamic))
    if not isinstance(dynamic, Mapping):
        raise ArgumentError(
            f"dynamic says for each argument which dimensions are open, and {dynamic!r} does not",
            help='as dynamic={0: {0: "batch"}}, for the first dimension of the first argument',
        )
    open_dims: OpenDims = {}
    arguments = [*args, *kwargs.values()]
    for key, said in dynamic.items():
        place = _place(key, args, kwargs, names)
        before = len(_tensors(arguments[:place]))
        for tensor, dims in _matched(arguments[place], said, f"dynamic[{key!r}]", before):
            several = open_dims.setdefault(tensor, {})
            for axis, dim in dims.items():
                _add(several, axis, dim, f"dynamic[{key!r}]")
    _require_agreement(open_dims, _tensors(arguments))
    return {place: dims for place, dims in open_dims.items() if dims}


def call_dimensions(dynamic: Any, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> OpenDims:
    """What `dynamic` says of a call of a function or module."""
    import inspect  # slow to import, and only needed here

    called = getattr(getattr(function, "__self__", function), "forward", function)
    names: list[str] = []
    with contextlib.suppress(TypeError, ValueError):  # of what is written in C
        names = list(inspect.signature(called).parameters)
    return open_dimensions(dynamic, args, kwargs, names)


def tensors_of(args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Tensor]:
    """The tensors of a call, in the order of their places."""
    return _tensors([*args, *kwargs.values()])


def _place(key: Any, args: Sequence[Any], kwargs: Mapping[str, Any], names: Sequence[str]) -> int:
    """The place of an argument, those by keyword after the others."""
    if key in kwargs:
        return len(args) + list(kwargs).index(key)
    place = names.index(key) if key in names else key
    if type(place) is int and 0 <= place < len(args):
        return place
    known = [*range(len(args)), *names[: len(args)], *kwargs]
    raise ArgumentError(
        f"dynamic names an argument {key!r}, which the call does not have",
        help=f"its arguments are {', '.join(map(repr, known))}" if known else "the call has no arguments",
    )


def _tensors(tree: Any) -> list[Tensor]:
    if isinstance(tree, Tensor):
        return [tree]
    parts = tree.values() if isinstance(tree, Mapping) else tree if isinstance(tree, (tuple, list)) else ()
    return [tensor for part in parts for tensor in _tensors(part)]


def _matched(argument: Any, said: Any, where: str, before: int) -> Iterator[tuple[int, dict[int, Dim]]]:
    """The open dimensions of an argument's tensors, by their places; `before` counts the tensors before
    it."""
    if said is None:
        return
    if isinstance(argument, Tensor):
        yield before, _dimensions(argument, said, where)
        return
    if not isinstance(argument, (Mapping, tuple, list)):
        raise ArgumentError(f"{where} is about an argument that is no tensor but {type(argument).__name__}")
    if not isinstance(said, (Mapping, tuple, list)):
        raise ArgumentError(f"{where} is about several tensors: it holds the same for each, not {said!r}")
    parts = dict(argument) if isinstance(argument, Mapping) else dict(enumerate(argument))
    for key, spec in said.items() if isinstance(said, Mapping) else enumerate(said):
        if key not in parts:
            raise ArgumentError(f"{where} names {key!r}, which the argument does not have")
        earlier = list(parts.values())[: list(parts).index(key)]
        yield from _matched(parts[key], spec, f"{where}[{key!r}]", before + len(_tensors(earlier)))


def _dimensions(tensor: Tensor, said: Any, where: str) -> dict[int, Dim]:
    if not isinstance(said, Mapping):
        raise ArgumentError(
            f"{where} says which dimensions are open, and {said!r} does not", help='as {0: "batch"}'
        )
    dims: dict[int, Dim] = {}
    rank = len(tensor.shape)
    for key, name in said.items():
        if type(key) is not int or not -rank <= key < rank:
            raise ArgumentError(
                f"{where} names a dimension {key!r}, and the argument is {tensor.current().type}"
            )
        if not isinstance(name, (str, Dim)):
            raise ArgumentError(f"{where}[{key}] is the name of a dimension or a Dim, not {name!r}")
        _add(dims, key % rank, Dim(name) if isinstance(name, str) else name, where)
    return dims


def _add(dims: dict[int, Dim], axis: int, dim: Dim, where: str) -> None:
    if dims.setdefault(axis, dim) != dim:
        raise ArgumentError(
            f"{where} contradicts itself: dimension {axis} is {dims[axis]!r} and {dim!r}",
            help="name each dimension once",
        )


def _require_agreement(open_dims: OpenDims, tensors: Sequence[Tensor]) -> None:
    """Refuse what contradicts itself: two demands, or two sizes, for one name."""
    dims: dict[str, Dim] = {}
    sizes: dict[str, int] = {}
    for place, several in open_dims.items():
        for axis, dim in several.items():
            size = tensors[place].shape[axis]
            if dims.setdefault(dim.name, dim) != dim:
                raise ArgumentError(
                    f"dynamic contradicts itself: {dims[dim.name]!r} and {dim!r}",
                    help="make one Dim, use it twice",
                )
            if sizes.setdefault(dim.name, size) != size:
                raise ArgumentError(
                    f"{dim.name} is one size, and the example has {sizes[dim.name]} and {size} for it",
                    help="give dimensions of different sizes different names",
                )
            if not dim.admits(size):
                raise ArgumentError(f"{dim.name} must be {dim.demands}, and the example has {size}")
