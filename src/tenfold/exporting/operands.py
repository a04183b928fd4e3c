"""Python values as operands of ops made by hand: constants, lists, tuples and dicts of the torch dialect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tenfold.base.devices import Device
from tenfold.base.dtypes import DType
from tenfold.base.errors import ArgumentError
from tenfold.exporting.building import Builder
from tenfold.exporting.ssa import SSAValue
from tenfold.mlir import torch_types
from tenfold.mlir.torch_emitter import Emitter
from tenfold.mlir.torch_operations import LISTS
from tenfold.tensor import Tensor

__all__ = ["Rendering", "renderings"]


class Rendering(NamedTuple):
    """One way to write a Python value in the dialect."""

    type: str
    emit: Callable[[Emitter], Any]


def renderings(builder: Builder, value: Any) -> list[Rendering]:
    """The ways to write a value, the most natural first: an int may be a float where the op takes one."""
    if isinstance(value, Tensor):
        mlir = builder.mlir_value(value)
        return [Rendering(str(mlir.type), lambda _: mlir)]
    if isinstance(value, SSAValue):
        if value.builder is not builder:
            raise ArgumentError("a value of another module", help="build it in this one")
        return [Rendering(value.type, lambda _: value.mlir)]
    if isinstance(value, DType):
        return [_constant(torch_types.SCALAR_TYPES[value.name])]
    if isinstance(value, Device):
        return [Rendering("!torch.Device", lambda at: at.word("device", "value", str(value)))]
    if isinstance(value, str):
        return [Rendering("!torch.str", lambda at: at.word("str", "value", value))]
    if isinstance(value, bool) or value is None or isinstance(value, float):
        return [_constant(value)]
    if isinstance(value, int):
        return [_constant(value), _constant(float(value))]
    if isinstance(value, (list, tuple)):
        return _sequence(builder, value)
    if isinstance(value, dict):
        return _dict(builder, value)
    raise ArgumentError(f"the torch dialect has no constant for a {type(value).__name__}")


def _constant(value: Any) -> Rendering:
    return Rendering(torch_types.constant_text(value)[1], lambda at: at.constant(value))


def _sequence(builder: Builder, values: Sequence[Any]) -> list[Rendering]:
    alternatives = [renderings(builder, one) for one in values]
    lists = _lists(builder, alternatives)
    natural = [one[0] for one in alternatives]
    inner = ", ".join([one.type.removeprefix("!torch.") for one in natural])
    as_tuple = _construct("Tuple", f"!torch.tuple<{inner}>", natural)
    return [*lists, as_tuple] if isinstance(values, list) else [as_tuple, *lists]


def _lists(builder: Builder, alternatives: Sequence[list[Rendering]]) -> list[Rendering]:
    """The values as a list: its elements have one type, or are optional, or tensors of any type."""
    tensor = "vtensor" if builder.value_tensors else "tensor"
    if not alternatives:
        return [_construct("List", f"!torch.{one}", []) for one in (*LISTS, f"list<{tensor}>")]
    lists: dict[str, list[Rendering]] = {}
    for way in range(max([len(one) for one in alternatives])):
        chosen = [one[min(way, len(one) - 1)] for one in alternatives]
        types = dict.fromkeys([one.type.removeprefix("!torch.") for one in chosen])
        some = [one for one in types if one != "none"]
        elements = some if len(some) == 1 else []
        if some and all(one.startswith(tensor) for one in some):
            elements = [*elements, tensor]
        for element in elements:
            if len(some) == len(types):
                lists.setdefault(f"!torch.list<{element}>", chosen)
            lists.setdefault(f"!torch.list<optional<{element}>>", chosen)
    return [_construct("List", text, chosen) for text, chosen in lists.items()]


def _construct(kind: str, type: str, elements: Sequence[Rendering]) -> Rendering:
    def emit(at: Emitter) -> Any:
        parts = [one.emit(at) for one in elements]
        return at.create(f"torch.prim.{kind}Construct", [at.parsed(type)], parts)[0]

    return Rendering(type, emit)


def _dict(builder: Builder, values: dict[Any, Any]) -> list[Rendering]:
    keys = [renderings(builder, one)[0] for one in values]
    entries = [renderings(builder, one)[0] for one in values.values()]
    types = [{one.type.removeprefix("!torch.") for one in kind} for kind in (keys, entries)]
    if any(len(kind) != 1 for kind in types):
        raise ArgumentError("a dict of the torch dialect has keys of one type, and values of one type")
    (key,), (entry,) = types
    return [_construct("Dict", f"!torch.dict<{key}, {entry}>", [*keys, *entries])]
