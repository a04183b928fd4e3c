"""`vmap`: maps a function of tensors over a batch, computing all elements at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, ShapeError, TraceError, located
from tenfold.flat.vmap import batched
from tenfold.func.functions import mapping
from tenfold.func.recorded import RecordedFunction, is_tensor, like
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten
from tenfold.trace import tree
from tenfold.trace.graph import Value

RANDOMNESS = ("error", "different", "same")


@located
def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Map a function over a batch.

    `in_dims` is the batch dimension of each argument, or None for arguments that all elements share.
    `out_dims` is the batch dimension of each result. Keyword arguments are shared.

    `randomness` says whether random numbers inside are an "error", "different" for each element, or the
    "same". `chunk_size` is the number of elements that are computed at once.

        per_example = tenfold.vmap(lambda x, w: x @ w, in_dims=(0, None))
    """
    if not callable(func):
        raise ArgumentError(f"takes a function, not {type(func).__name__}")
    if randomness not in RANDOMNESS:
        raise ArgumentError(f"randomness is 'error', 'different' or 'same', not {randomness!r}")
    if chunk_size is not None and not (isinstance(chunk_size, int) and chunk_size > 0):
        raise ArgumentError(f"chunk_size is a positive number, not {chunk_size!r}")

    @like(func, "vmap")
    def vmapped(*args: Any, **kwargs: Any) -> Any:
        flat_args: list[Any] = []
        structure = tree.flatten((args, kwargs), is_tensor, flat_args)
        dims = _argument_dims(in_dims, args, kwargs)
        size = _batch_size(flat_args, dims)
        mapped = _Mapped(func, structure, flat_args, dims, out_dims, randomness)
        if chunk_size is None or chunk_size >= size:
            return mapped(flat_args, size)
        return _in_chunks(mapped, size, chunk_size)

    return vmapped


def batch_size(args: tuple[Any, ...], in_dims: Any) -> int:
    """How many elements `vmap` with these `in_dims` maps a function over."""
    tensors: list[Any] = []
    tree.flatten((args, {}), is_tensor, tensors)
    return _batch_size(tensors, _argument_dims(in_dims, args, {}))


class _Mapped:
    """A call of a vmapped function, all of its batch or a part of it."""

    def __init__(
        self,
        func: Any,
        structure: Any,
        tensors: list[Tensor],
        dims: list[int | None],
        out_dims: Any,
        randomness: str,
    ):
        self.func = func
        self.structure = structure
        self.given = tensors
        self.dims = dims
        self.out_dims = out_dims
        self.randomness = randomness
        self.places: list[int | None] = []

    def __call__(self, tensors: Sequence[Tensor], size: int) -> Any:
        mapped = [i for i, dim in enumerate(self.dims) if dim is not None]
        dims = [self.dims[i] for i in mapped]
        elements = []
        for i, dim in zip(mapped, dims, strict=True):
            value = tensors[i].current()
            shape = (*value.type.shape[:dim], *value.type.shape[dim + 1 :])  # type: ignore[operator]
            elements.append(_element(value, shape))

        def call(stand_ins: Sequence[Tensor]) -> Any:
            filled = list(tensors)
            for i, stand_in in zip(mapped, stand_ins, strict=True):
                filled[i] = stand_in
            args, kwargs = tree.unflatten(self.structure, iter(filled))
            return self.func(*args, **kwargs)

        recorded = RecordedFunction("vmap", call, elements)
        if recorded.random and self.randomness == "error":
            raise TraceError(
                "vmap: the function draws random numbers: are those of the elements the same or different?",
                help='pass randomness="different" or randomness="same"',
            )
        self.places = _result_dims(self.out_dims, recorded.structure)
        different = recorded.random and self.randomness == "different"
        key = ("vmap", size, tuple(dims), tuple(self.places), self.randomness)

        def make() -> flat.Function:
            with mapping(self.randomness):
                return _batch(recorded, size, dims, self.places, different)

        results = recorded.call(key, [tensors[i] for i in mapped], make, alike=True)
        return tree.unflatten(recorded.structure, iter(results))


def _element(value: Value, shape: tuple[int, ...]) -> Value:
    element = Value(flat.TensorType(value.type.dtype, shape), value.device)
    element.source = value.made_at
    element.origin = value.origin
    return element


def _batch(
    recorded: RecordedFunction,
    size: int,
    dims: Sequence[int | None],
    places: Sequence[int | None],
    different: bool,
) -> flat.Function:
    """The function on the whole batch. If elements have random states of their own, these are made from the
    one state there is; after the call, the first of them becomes the state for all."""
    states = recorded.states() if different else set()
    leaf_dims = [
        0 if i in states else None if place is None else dims[place]
        for i, place in enumerate(recorded.places)
    ]
    inner, stacked = batched(recorded.fragment(), size, leaf_dims)
    params = [
        flat.Value(leaf.type if i in states else param.type)
        for i, (leaf, param) in enumerate(zip(recorded.leaves, inner.params, strict=True))
    ]
    arguments = [_own_states(param, size) if i in states else param for i, param in enumerate(params)]
    mapped_results = inner.inline(arguments, None, whole=True)
    results = []
    for value, is_stacked, place in zip(mapped_results, stacked, places, strict=False):
        if place is None:
            if is_stacked:
                raise ShapeError(
                    "out_dims is None for a result that differs between the elements of the batch"
                )
            results.append(value)
        else:
            results.append(flat.move(_stack(value, is_stacked, size), 0, place))
    next_states = {recorded.state_written(i): params[i] for i in states}
    written = range(recorded.count, len(mapped_results))
    for i, target in zip(written, recorded.writes, strict=True):
        value = mapped_results[i]
        if isinstance(target, int):
            dim = dims[target]
            assert dim is not None
            value = flat.move(_stack(value, stacked[i], size), 0, dim)
        elif i in next_states:
            key = flat.slice(next_states[i], (0,), (1,))
            value = flat.concatenate([key, flat.reshape(flat.slice(value, (0, 1), (1, 2)), (1,))], 0)
        elif stacked[i]:
            raise TraceError(
                "vmap: a tensor from outside the function is written, with what differs between the elements",
                help="return the value instead, or pass the tensor as an argument that is mapped",
            )
        results.append(value)
    return flat.Function(params, results, "vmap")


def _stack(value: flat.Value, is_stacked: bool, size: int) -> flat.Value:
    return value if is_stacked else flat.broadcast_to(value, (size, *value.shape))


def _own_states(state: flat.Value, size: int) -> flat.Value:
    """A state for each element of the batch: with a key of its own, counting from where this one is."""
    key, count = flat.slice(state, (0,), (1,)), flat.slice(state, (1,), (2,))
    number = lambda word: flat.constant(word, dtypes.uint64)
    keys = key + (flat.iota((size,), 0, dtypes.uint64) + 1) * number(0x9E3779B97F4A7C15)
    # SplitMix64's finish, so that keys of keys, where batches nest, are again all different.
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        keys = flat.logical_xor(keys, flat.shift_right_logical(keys, number(shift))) * number(factor)
    keys = flat.logical_xor(keys, flat.shift_right_logical(keys, number(31)))
    counts = flat.broadcast_to(count, (size,))
    return flat.concatenate([flat.reshape(column, (size, 1)) for column in (keys, counts)], 1)


def _in_chunks(mapped: _Mapped, size: int, chunk_size: int) -> Any:
    chunks = []
    structure: Any = None
    for start in range(0, size, chunk_size):
        length = min(chunk_size, size - start)
        part = [
            tensor if dim is None else tensor.narrow(dim, start, length)
            for tensor, dim in zip(mapped.given, mapped.dims, strict=True)
        ]
        pieces: list[Any] = []
        structure = tree.flatten(mapped(part, length), is_tensor, pieces)
        chunks.append(pieces)
    joined = [
        parts[0] if place is None else aten("cat")(list(parts), place)
        for parts, place in zip(zip(*chunks, strict=True), mapped.places, strict=True)
    ]
    return tree.unflatten(structure, iter(joined))


# Dimensions


def _argument_dims(in_dims: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[int | None]:
    """For each tensor among the arguments, the dimension that counts the batch, from the front."""
    if isinstance(in_dims, list):
        in_dims = tuple(in_dims)
    if not isinstance(in_dims, (int, tuple)) or isinstance(in_dims, bool):
        raise ArgumentError(f"in_dims is an int or a tuple with an entry for each argument, not {in_dims!r}")
    if isinstance(in_dims, tuple) and len(in_dims) != len(args):
        raise ArgumentError(f"in_dims has {len(in_dims)} entries for {len(args)} arguments")
    dims: list[int | None] = []
    _spread(in_dims, args, dims)
    for keyword in kwargs.values():
        _spread(None, keyword, dims)
    if all(dim is None for dim in dims):
        raise ArgumentError(
            "no argument is mapped", help="give at least one tensor with a dimension in in_dims"
        )
    return dims


def _spread(dims: Any, tree_: Any, result_dims: list[int | None]) -> None:
    """The dimensions for the tensors in a nested argument, given alike or once for all that is below."""
    if isinstance(tree_, Tensor):
        if dims is not None and (not isinstance(dims, int) or isinstance(dims, bool)):
            raise ArgumentError(
                f"in_dims has {dims!r} in the place of a Tensor", help="an int or None belongs there"
            )
        result_dims.append(dims if dims is None else _axis(dims, tree_.ndim))
    elif isinstance(tree_, dict):
        if isinstance(dims, dict) and set(dims) != set(tree_):
            raise ArgumentError(f"in_dims has entries for {sorted(dims)}, the argument has {sorted(tree_)}")
        for name, item in tree_.items():
            _spread(dims[name] if isinstance(dims, dict) else dims, item, result_dims)
    elif isinstance(tree_, (list, tuple)):
        several = isinstance(dims, (list, tuple))
        if several and len(dims) != len(tree_):
            raise ArgumentError(f"in_dims has {len(dims)} entries for {len(tree_)} parts of an argument")
        for i, branch in enumerate(tree_):
            _spread(dims[i] if several else dims, branch, result_dims)
    elif dims is not None:
        raise ArgumentError(
            f"in_dims is {dims!r} for a {type(tree_).__name__}, which has no dimensions",
            help="give None for arguments that are no tensors",
        )


def _axis(dim: int, rank: int) -> int:
    if not -rank <= dim < rank:
        raise ArgumentError(f"in_dims has {dim} for a tensor of {rank} dimensions")
    return dim % rank


def _batch_size(tensors: Sequence[Tensor], dims: Sequence[int | None]) -> int:
    sizes = [tensor.shape[dim] for tensor, dim in zip(tensors, dims, strict=True) if dim is not None]
    if len(set(sizes)) > 1:
        raise ShapeError(f"the dimensions that count the batch differ in size: {sizes}")
    return sizes[0]


def _result_dims(out_dims: Any, structure: Any) -> list[int | None]:
    """For each result where the batch goes."""
    result_dims: list[int | None] = []

    def spread(dims: Any, part: Any) -> None:
        if part is tree.LEAF:
            if dims is not None and (not isinstance(dims, int) or isinstance(dims, bool)):
                raise ArgumentError(f"out_dims has {dims!r} in the place of a Tensor")
            result_dims.append(dims)
            return
        _, names, parts = part
        if isinstance(dims, dict) and names is not None:
            for name, inner in zip(names, parts, strict=True):
                spread(dims[name], inner)
        elif isinstance(dims, (list, tuple)):
            if len(dims) != len(parts):
                raise ArgumentError(f"out_dims has {len(dims)} entries for {len(parts)} results")
            for each_dims, inner in zip(dims, parts, strict=True):
                spread(each_dims, inner)
        else:
            for inner in parts:
                spread(dims, inner)

    if structure is tree.LEAF and isinstance(out_dims, (list, tuple)) and len(out_dims) == 1:
        out_dims = out_dims[0]
    spread(out_dims, structure)
    return result_dims
