"""Random arguments for operators that have no typed function, which hosts reach by their names alone."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable
from typing import Any

from tenfold.capi.binding import Device, Library, Scalar
from tenfold.capi.describe import Description
from tenfold.ops.schema import MISSING, Argument, Schema, parse

__all__ = ["NamedCalls", "named_operators"]

SIZES = [0, 1, 1, 2, 2, 3, -1, 4, -2]
FAR = [255, -(1 << 31), 1 << 62, -(1 << 63), (1 << 63) - 1]
FRACTIONS = [0.0, 0.5, 1.0, -1.0, 2.0, float("nan"), float("inf"), 1e308]
SCALARS = [0, 1, 2, -3, 0.5, True, 1j, 1 << 40, float("nan")]
WORDS = [b"", b"sum", b"none", b"mean", b"max", b"reflect", b"constant", b"linear", b"trunc", b"ij", b"x"]
DTYPES = [6, 6, 7, 4, 3, 11, 9, 0, 15, 5, 13]
LEFT_OUT = ("from_file", "record_stream")  # one makes files, the other waits for a stream of CUDA's


def named_operators(library: Library, description: Description) -> list[tuple[str, Schema]]:
    """ATen's overloads without typed functions, in an order that is the same for all seeds."""
    typed = {"aten::" + parse(each.op).qualified for each in description.functions if each.op is not None}
    found = []
    for i in range(library.tn_op_count()):
        text = library.text("tn_op_schema", library.tn_op_at(i))
        name = text.split("(")[0]
        if name.startswith("aten::") and name not in typed and not name[6:].startswith(LEFT_OUT):
            found.append((name, parse(text.replace("Tensor(a -> *)", "Tensor(a)"))))
    random.Random(0).shuffle(found)
    return found


class NamedCalls:
    """Stacks for calls of some operators, with tensors that are chosen elsewhere."""

    def __init__(
        self,
        library: Library,
        operators: list[tuple[str, Schema]],
        choice: random.Random,
        tensor: Callable[[], int | None],
    ):
        self.lib, self.operators, self.random, self.tensor = library, operators, choice, tensor
        self.given: list[Any] = []  # to the operator of the last stack

    def fill(self, stack: int) -> str:
        """Give a stack arguments of an operator, whose name is returned."""
        name, schema = self.random.choice(self.operators)
        self.given = []
        for argument in schema.arguments:
            self.push(stack, argument)
        return name

    def push(self, stack: int, argument: Argument) -> None:
        type, value = argument.type, None
        chance = self.random.random()
        plain_default = argument.default is None or isinstance(argument.default, (bool, int, float))
        if argument.default is not MISSING and plain_default and chance < 0.5:
            value = argument.default
        elif not (type.optional and chance < 0.7):
            value = self.several(argument) if type.is_list else self.one(type.kind)
        self.given.append(value)
        made = None if value is None else self.value(type.kind, value)
        if made is None:
            self.lib.tn_stack_push_none(stack)
        else:
            self.lib.tn_stack_push(stack, made)
            self.lib.tn_value_free(made)

    def several(self, argument: Argument) -> list[Any]:
        size = argument.type.list_size
        count = size if size and self.random.random() < 0.8 else self.random.choice([0, 1, 2, 3])
        return [self.one(argument.type.kind) for _ in range(count)]

    def one(self, kind: str) -> Any:
        choose = self.random.choice
        if kind == "Tensor":
            return self.tensor()
        if kind in ("int", "SymInt"):
            return choose(FAR if self.random.random() < 0.03 else SIZES)
        if kind == "ScalarType":
            return choose(DTYPES)
        if kind in ("Layout", "MemoryFormat"):
            return choose([0, 0, 0, 1, 2, 3])
        if kind == "Device":
            return choose([(0, -1), (0, -1), (14, -1)])
        plain = {"float": FRACTIONS, "bool": [False, True], "Scalar": SCALARS, "str": WORDS}.get(kind)
        return None if plain is None else choose(plain)

    def value(self, kind: str, value: Any) -> int | None:
        """A tn_value; none of a handle that is no tensor's, or of a kind that has no plain values."""
        if isinstance(value, list):
            made = [
                self.value(kind, each) if each is not None else self.lib.tn_value_none() for each in value
            ]
            whole = [each for each in made if each is not None]
            found: int = self.lib.tn_value_list((ctypes.c_void_p * len(whole))(*whole), len(whole))
            for each in whole:
                self.lib.tn_value_free(each)
            return found
        if kind == "Tensor":
            return self.lib.raw("tn_value_tensor")(value)  # type: ignore[no-any-return]
        if kind == "Device":
            return self.lib.tn_value_device(Device(*value))  # type: ignore[no-any-return]
        if kind == "str":
            return self.lib.tn_value_string(value)  # type: ignore[no-any-return]
        return self.lib.tn_value_scalar(Scalar.of(value))  # type: ignore[no-any-return]
