"""What is generated of the Node binding: the functions for koffi, the operators, and TypeScript's types.

`python -m tenfold.capi.bindings_node FOLDER` writes them into a copy of bindings/node, whose rest is
written by hand.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tenfold.capi.bindings_ops import Given, Operator, Overload, enum_words, operators, written_by
from tenfold.capi.describe import Description, Function, describe
from tenfold.capi.layers import described
from tenfold.capi.locate import find_libtorch
from tenfold.capi.typed import RESERVED, c_name

__all__ = ["main", "write"]

# A handle is a number in JavaScript: an address has fewer bits than a double holds. What C writes to, or
# reads many of, is a typed array.
_VALUES = {"bool", "double", "int", "int64_t", "uint64_t", "int32_t", "void", "tn_scalar", "tn_device"}
_CALLBACKS = {"tn_trace_fn", "tn_trace_stack_fn", "tn_forward_fn", "tn_backward_fn", "tn_hook_fn"}
_NUMBERS = {"tn_status", "tn_dtype", "tn_layout", "tn_memory_format", "tn_tag"}


def write(folder: Path, library: Path) -> None:
    """Write what is generated into a folder, for a libtenfold.so."""
    description = describe(find_libtorch())
    found = operators(description)
    generated = folder / "generated"
    generated.mkdir(parents=True, exist_ok=True)
    for name, text in {
        "enums.json": json.dumps(enum_words(description)),
        "fitting.json": json.dumps(description.stands_for),
        "enums.d.ts": "\n".join(_enum_types(enum_words(description))) + "\n",
        "functions.json": json.dumps(_functions(description)),
        "operators.json": json.dumps({each.name: _operator(each) for each in found}, separators=(",", ":")),
        "layers.json": json.dumps(described()),
        "layers.d.ts": "\n".join(_layer_types()) + "\n",
        "location.json": json.dumps(str(library)),
        "operators.d.ts": "\n".join(_types(found)) + "\n",
    }.items():
        (generated / name).write_text(text, encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    return written_by(write, "Node", arguments)


def _layer_types() -> Iterator[str]:
    yield "import type { LayerKind } from '../types'"
    yield "export interface Layers {"
    yield from (f"  readonly {name}: LayerKind" for name in described())
    yield "}"


# ---- functions --------------------------------------------------------------------------------------------


def _functions(description: Description) -> dict[str, Any]:
    """By name: the type of the result, then of each parameter."""
    found = {}
    for function in description.functions:
        parameters = [
            "uint64_t" if p.role == "user" else _type(p.ctype, description.opaque)
            for p in function.parameters
        ]
        found[function.name] = [_type(function.returns, description.opaque), *parameters]
    return found


def _type(ctype: str, opaque: Sequence[str]) -> str:
    if ctype in _VALUES or ctype == "const char *" or ctype in _CALLBACKS:
        return ctype
    if ctype in _NUMBERS:
        return "int32_t"
    if ctype == "const char *const *":
        return "const char **"
    plain = ctype.removeprefix("const ")
    return "uint64_t" if any(plain == f"{each} *" for each in opaque) else "void *"


# ---- operators --------------------------------------------------------------------------------------------


def _operator(operator: Operator) -> dict[str, Any]:
    described: dict[str, Any] = {"overloads": [_overload(overload) for overload in operator.overloads]}
    if operator.is_method:
        described["method"] = True
    if operator.spread is not None:
        described["spread"] = operator.spread
    return described


def _overload(overload: Overload) -> dict[str, Any]:
    """`arguments` are [name, type, whether it is needed, whether C takes a pointer, what stands for it];
    `plain` and `full` the C function's name and the places of the arguments that it takes, in its order;
    `written` the places of those that it writes to."""
    given = [
        [argument.name, argument.code, argument.needed, argument.pointer, argument.filled]
        for argument in overload.arguments
    ]
    return {
        "schema": str(overload.schema),
        "positional": len(overload.positional),
        "arguments": given,
        "plain": None if overload.plain is None else _places(overload, overload.plain),
        "full": _places(overload, overload.full),
        "result": overload.result,
        "results": len(overload.schema.returns),
        "written": [place for place, argument in enumerate(overload.arguments) if argument.type.is_written],
    }


def _places(overload: Overload, function: Function) -> list[Any]:
    places = {c_name(argument.name): place for place, argument in enumerate(overload.arguments)}
    return [
        function.name,
        *(places[parameter.name] for parameter in function.parameters if parameter.name in places),
    ]


# ---- TypeScript -------------------------------------------------------------------------------------------

_TYPES = {
    "Tensor": "Tensor",
    "Scalar": "Scalar",
    "int": "Int",
    "float": "number",
    "bool": "boolean",
    "str": "string",
    "ScalarType": "DType",
    "Layout": "Layout",
    "Device": "Device",
    "MemoryFormat": "MemoryFormat",
    "Generator": "Generator",
}
_WORDS = RESERVED | {
    "in",
    "function",
    "var",
    "with",
    "let",
    "null",
    "import",
    "super",
    "typeof",
    "arguments",
    "eval",
}


def _enum_types(words: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    yield "// Words of tenfold.h, written by `python -m tenfold.capi.bindings_node`."
    for name, kind in {"DType": "dtype", "Layout": "layout", "MemoryFormat": "memory_format"}.items():
        yield f"export type {name} = {' | '.join(f'{word!r}' for word in words[kind])}"
    errors = (word for word in words["status"] if word != "ok")
    yield f"export type ErrorCode = {' | '.join(f'{_code(word)!r}' for word in errors)}"


def _code(word: str) -> str:
    return f"TN_{word.upper()}"


def _types(found: Sequence[Operator]) -> Iterator[str]:
    yield "// Every operator, written by `python -m tenfold.capi.bindings_node`."
    names = "DType, Device, Generator, Int, Layout, MemoryFormat, Scalar, Tensor"
    yield f"import type {{ {names} }} from '../types'"
    yield ""
    yield "export interface Operators {"
    for operator in found:
        yield from (f"  {line}" for line in _signatures(operator, method=False))
    yield "}"
    yield ""
    yield "export interface Methods {"
    for operator in found:
        if operator.is_method:
            yield from (f"  {line}" for line in _signatures(operator, method=True))
    yield "}"


def _signatures(operator: Operator, method: bool) -> Iterator[str]:
    if operator.doc:
        yield f"/** {operator.doc.replace('*/', '* /')} */"
    seen = set()
    for overload in operator.overloads:
        if method and not (overload.arguments[:1] and overload.arguments[0].name == "self"):
            continue
        skipped = 1 if method else 0
        positional, result = overload.positional[skipped:], _result(overload)
        needed = any(keyword.needed for keyword in overload.keywords)
        parameters = list(_parameters(positional, followed=needed))
        if overload.keywords:
            parameters.append(f"named{'' if needed else '?'}: {_named(overload.keywords)}")
        lines = [f"{operator.name}({', '.join(parameters)}): {result}"]
        if len(positional) > 1 or (positional and overload.keywords):
            first = [] if method or not overload.positional else list(_parameters(overload.positional[:1]))
            rest = overload.arguments[1:] if first or method else overload.arguments
            lines.append(f"{operator.name}({', '.join([*first, f'named: {_named(rest)}'])}): {result}")
        if operator.spread is not None and len(overload.positional) == operator.spread + 1:
            before = list(_parameters(overload.positional[skipped:-1]))
            named = _named(overload.keywords) if overload.keywords else None
            for sizes in ("Int[]", *([f"[...Int[], {named}]"] if named else [])):
                lines.append(f"{operator.name}({', '.join([*before, f'...sizes: {sizes}'])}): {result}")
        for line in lines:
            if line not in seen:
                seen.add(line)
                yield line


def _parameters(given: Sequence[Given], followed: bool = False) -> Iterator[str]:
    """`followed` says that something which is needed comes after them."""
    for place, each in enumerate(given):
        name = f"{each.name}_" if each.name in _WORDS else each.name
        if each.needed:
            yield f"{name}: {_typescript(each)}"
        elif followed or any(later.needed for later in given[place:]):
            yield f"{name}: {_typescript(each)} | null | undefined"
        else:
            yield f"{name}?: {_typescript(each)} | null"


def _named(given: Sequence[Given]) -> str:
    fields = []
    for each in given:
        none = " | null" if each.type.optional else ""
        fields.append(f"{each.name}{'' if each.needed else '?'}: {_typescript(each)}{none}")
    return "{ " + "; ".join(fields) + " }"


def _typescript(given: Given) -> str:
    one = _TYPES[given.type.kind]
    if not given.type.is_list:
        return one
    many = f"({one} | null)[]" if given.type.element_optional else f"{one}[]"
    return f"{one} | {many}" if (given.type.list_size or -1) > 0 else many


def _result(overload: Overload) -> str:
    count = len(overload.written) if overload.result == "written" else len(overload.schema.returns)
    if overload.result == "written" and overload.written[0].type.is_list:
        return "Tensor[]"
    if overload.result in ("tensor", "written") and count == 1:
        return "Tensor"
    if overload.result in ("tensors", "written"):
        return f"[{', '.join(['Tensor'] * count)}]"
    return "Tensor[]" if overload.result == "list" else "boolean"


if __name__ == "__main__":
    raise SystemExit(main())
