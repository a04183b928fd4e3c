"""The order in which PyTorch tries the overloads of a name. Python, Purple, R, Lua and Node all follow it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from tenfold.ops.schema import MISSING, Argument, Schema, Type

__all__ = ["in_torch_order", "overloads_in_torch_order", "python_name"]

T = TypeVar("T")


def in_torch_order(schemas: Sequence[Schema], method: bool) -> list[Schema]:
    """The order in which PyTorch tries overloads: by the text of their signatures in its own notation, but
    one that would take another's arguments too comes after it."""
    ordered = sorted(schemas, key=lambda schema: _torch_signature(schema, method))
    types = [[_unaliased(a.type) for a in s.arguments if not (method and a.name == "self")] for s in ordered]
    waiting = {}
    for i, own in enumerate(types):
        before = {j for j, other in enumerate(types) if _gives_way(own, other)}
        if before:
            waiting[i] = before
    order = [i for i in range(len(ordered)) if i not in waiting]
    for done in order:  # grows as it is walked
        for i in sorted(waiting):
            waiting[i].discard(done)
            if not waiting[i]:
                del waiting[i]
                order.append(i)
    return [ordered[i] for i in order]


def overloads_in_torch_order(overloads: Collection[T], schema: Callable[[T], Schema]) -> list[T]:
    """Overloads of a function, whose schemas `schema` gives, in the order in which PyTorch tries them."""
    by_schema = {id(schema(overload)): overload for overload in overloads}
    return [
        by_schema[id(each)] for each in in_torch_order([schema(overload) for overload in overloads], False)
    ]


def _gives_way(own: list[str], other: list[str]) -> bool:
    return (
        len(own) == len(other)
        and own != other
        and all(a == b or b in _GIVES_WAY_TO.get(a, ()) for a, b in zip(own, other))
    )


# A tensor may stand for a number and an empty list for any list, so what is more specific is tried first.
_GIVES_WAY_TO = {
    "Scalar": ("Tensor",),
    "Scalar?": ("Tensor?",),
    "int": ("Tensor",),
    "SymInt": ("Tensor",),
    "int[]": ("int", "int?"),
    "SymInt[]": ("int[]",),
    "Tensor[]": ("int[]", "SymInt[]", "Scalar[]", "float[]"),
}


def _torch_signature(schema: Schema, method: bool) -> str:
    texts = [
        f"{_torch_type(a.type)} {python_name(a, method)}{'' if a.default is MISSING else f'={a.default}'}"
        for a in schema.arguments
        if not (method and a.name == "self")
    ]
    if schema.keyword_only:
        texts.insert(len(texts) - len(schema.keyword_only), "*")
    return ", ".join(texts)


def _torch_type(type: Type) -> str:
    optional = "?" * type.optional
    if not type.is_list:
        return _TORCH_NAMES.get(type.base, type.base) + optional
    size = f"[{type.list_size}]" if type.list_size != -1 else ""
    return f"{_TORCH_LISTS.get(type.base, f'ArrayRef<{type.base}>')}{size}{optional}"


_TORCH_NAMES = {"int": "int64_t", "float": "double", "str": "c10::string_view"}
_TORCH_LISTS = {
    "int": "IntArrayRef",
    "SymInt": "SymIntArrayRef",
    "Tensor": "TensorList",
    "Scalar": "ScalarList",
    "float": "ArrayRef<double>",
    "bool": "::std::array",
}


def python_name(argument: Argument, method: bool) -> str:
    """What Python calls an argument."""
    renamed = argument.name == "self" and _unaliased(argument.type) == "Tensor" and not method
    return "input" if renamed else argument.name


def _unaliased(type: Type) -> str:
    return Type(type.base, type.optional, type.list_size, type.element_optional).text
