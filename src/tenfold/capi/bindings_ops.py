"""The operators as a dynamic language offers them: one function a name, its overloads told apart by what is
given.

Bindings are generated from this: an overload's arguments in order, their defaults, which C function takes
them, and what comes back. It is read from the description of the C ABI alone, so any other generator can do
the same.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tenfold.capi.build import build
from tenfold.capi.describe import Description, Function
from tenfold.ops.order import overloads_in_torch_order
from tenfold.ops.schema import MISSING, Schema, Type, parse

__all__ = ["Given", "Operator", "Overload", "enum_words", "operators", "written_by"]


@dataclass(frozen=True)
class Given:
    """An argument. A `keyword` one may be given by name only; `pointer` says that C takes it as a pointer,
    NULL for None or for its default."""

    name: str
    type: Type
    default: Any
    keyword: bool
    pointer: bool

    @property
    def required(self) -> bool:
        return self.default is MISSING

    @property
    def needed(self) -> bool:
        """Whether it must be given. None in order is nothing; by name it may tell two overloads apart."""
        return self.required and (self.keyword or not self.type.optional)

    @property
    def filled(self) -> Any:
        """What stands for it where nothing is given and C would not know: None where C does."""
        if self.required or (self.keyword and not self.type.optional):
            return None
        return self.default

    @property
    def code(self) -> str:
        """`Tensor`, `int[]`, `int[2]`, `Tensor?[]`: the schema's type without aliases and the last `?`."""
        kind = self.type
        mark = "?" if kind.element_optional else ""
        size = kind.list_size
        return f"{kind.kind}{mark}" + ("" if size is None else "[]" if size < 0 else f"[{size}]")


@dataclass(frozen=True)
class Overload:
    """`full` takes all arguments, `plain` the positional ones, where that is enough. `result` is tensor,
    tensors, list, bool, or written: then the arguments that were written to come back."""

    schema: Schema
    arguments: tuple[Given, ...]
    plain: Function | None
    full: Function
    result: str

    @property
    def leaves_none_unsaid(self) -> bool:
        return any(argument.required and not argument.needed for argument in self.arguments)

    @property
    def positional(self) -> tuple[Given, ...]:
        return tuple(argument for argument in self.arguments if not argument.keyword)

    @property
    def keywords(self) -> tuple[Given, ...]:
        return tuple(argument for argument in self.arguments if argument.keyword)

    @property
    def written(self) -> tuple[Given, ...]:
        return tuple(argument for argument in self.arguments if argument.type.is_written)


@dataclass(frozen=True)
class Operator:
    """All overloads of a name such as add, add_ or add_out. Where `spread` is a place, a list of whole
    numbers that starts there may also be given as so many arguments: zeros(2, 3)."""

    name: str
    doc: str
    overloads: tuple[Overload, ...]

    @property
    def is_method(self) -> bool:
        """Whether every tensor has it as a method."""
        return any(overload.arguments[:1] and _is_self(overload.arguments[0]) for overload in self.overloads)

    @property
    def spread(self) -> int | None:
        for overload in self.overloads:
            given = overload.positional
            if given and given[-1].code == "int[]" and all(_is_self(first) for first in given[:-1]):
                return len(given) - 1
        return None

    @property
    def most(self) -> int:
        """How many positional arguments the longest overload has."""
        return max(len(overload.positional) for overload in self.overloads)


def enum_words(description: Description) -> dict[str, dict[str, int]]:
    """The constants of the ABI: by type, such as dtype, the numbers of words such as float32. Element types
    that are quantized, or bits, are left out: no operator of the table makes them."""
    found = {enum.name.removeprefix("tn_"): enum.words for enum in description.enums}
    found["dtype"] = {
        word: number for word, number in found["dtype"].items() if not word.startswith(("q", "bits"))
    }
    return found


def operators(description: Description) -> list[Operator]:
    """Every operator, in the order of the table."""
    by_schema: dict[str, list[Function]] = {}
    for function in description.functions:
        if function.op is not None:
            by_schema.setdefault(function.op, []).append(function)
    overloads: dict[str, list[Overload]] = {}
    docs: dict[str, str] = {}
    for text, functions in by_schema.items():
        schema = parse(text)
        name = schema.name + ("_out" if functions[0].form == "out" else "")
        overloads.setdefault(name, []).append(_overload(schema, functions))
        prose = functions[0].doc.rpartition("aten::")[0].strip()
        docs.setdefault(name, prose)
    return [Operator(name, docs[name], _in_order(found)) for name, found in overloads.items()]


def _in_order(overloads: list[Overload]) -> tuple[Overload, ...]:
    """PyTorch's order, those that leave a None unsaid last: `random(x, 5)` is below 5, not from 5 to None."""
    found = overloads_in_torch_order(overloads, lambda overload: overload.schema)
    return tuple(sorted(found, key=lambda overload: overload.leaves_none_unsaid))


_DTYPES = {"long": "int64", "float": "float32"}  # the schemas' words for the dtypes that are defaults


def _overload(schema: Schema, functions: Sequence[Function]) -> Overload:
    keywords = {a.name for a in schema.keyword_only if not a.type.is_written}
    full = max(functions, key=lambda each: len(each.parameters))
    plain = min(functions, key=lambda each: len(each.parameters))
    arguments = []
    for argument in (
        *schema.positional,
        *(a for a in schema.keyword_only if a.type.is_written),
        *(a for a in schema.keyword_only if not a.type.is_written),
    ):
        keyword = argument.name in keywords
        pointer = argument.type.optional or (keyword and argument.default is not MISSING)
        default = argument.default
        if argument.type.kind == "ScalarType" and isinstance(default, str):
            default = _DTYPES[default]
        arguments.append(Given(argument.name, argument.type, default, keyword, pointer))
    takes_all = (
        not keywords or len(functions) > 1
    )  # else a keyword has no default, and nothing goes without it
    return Overload(schema, tuple(arguments), plain if takes_all else None, full, _result(full))


def _result(function: Function) -> str:
    if function.form in ("inplace", "out"):
        return "written"
    if function.returns == "tn_tensor *":
        return "tensor"
    last = function.parameters[-1].ctype
    return {"tn_tensor **": "tensors", "bool *": "bool", "int64_t *": "list"}[last]


def _is_self(given: Given) -> bool:
    return given.name == "self" and given.code == "Tensor"


def written_by(
    write: Callable[[Path, Path], Any], language: str, arguments: Sequence[str] | None = None
) -> int:
    """The command that writes what is generated of a language's binding into a copy of its folder."""
    parser = argparse.ArgumentParser(description=f"Write what is generated of the {language} binding.")
    parser.add_argument("folder", type=Path, help=f"a copy of bindings/{language.lower()}")
    parser.add_argument("--library", type=Path, help="a libtenfold.so (default: build it)")
    parsed = parser.parse_args(arguments)
    write(parsed.folder, parsed.library or build().library)
    return 0
