"""What is generated of the Lua binding: the declarations for LuaJIT's FFI, and a function for every operator.

`python -m tenfold.capi.bindings_lua FOLDER` writes them into a copy of bindings/lua, whose rest is written
by hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tenfold.capi.bindings_ops import Given, Operator, Overload, enum_words, operators, written_by
from tenfold.capi.describe import HEADER, Description, Function, describe
from tenfold.capi.layers import described
from tenfold.capi.locate import find_libtorch
from tenfold.capi.typed import c_name

__all__ = ["main", "write"]

_WORDS = frozenset(
    (
        *("and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if", "in"),
        *("local", "nil", "not", "or", "repeat", "return", "then", "true", "until", "while"),
    )
)
# How a value is turned into what C takes, by the type's kind; what is not here passes as it is.
_CONVERT = {
    "Scalar": "to_scalar",
    "float": "to_double",
    "ScalarType": "to_dtype",
    "MemoryFormat": "to_memory_format",
}
_POINTER = {
    "Tensor": "to_maybe_tensor",
    "Generator": "to_maybe_generator",
    "Scalar": "to_maybe_scalar",
    "int": "to_maybe_int",
    "float": "to_maybe_double",
    "bool": "to_maybe_bool",
    "ScalarType": "to_maybe_dtype",
    "Layout": "to_maybe_layout",
    "Device": "to_maybe_device",
    "MemoryFormat": "to_maybe_memory_format",
}
_LIST = {
    "int": "to_ints",
    "float": "to_doubles",
    "bool": "to_bools",
    "Scalar": "to_scalars",
    "Tensor": "to_tensors",
}
_CHECK = {
    "Tensor": "is_tensor",
    "Scalar": "is_scalar",
    "int": "is_int",
    "float": "is_float",
    "bool": "is_bool",
    "str": "is_string",
    "ScalarType": "is_dtype",
    "Layout": "is_layout",
    "Device": "is_device",
    "MemoryFormat": "is_memory_format",
    "Generator": "is_generator",
    "int[]": "is_ints",
    "float[]": "is_floats",
    "bool[]": "is_bools",
    "Scalar[]": "is_scalars",
    "Tensor[]": "is_tensors",
    "Tensor?[]": "is_maybe_tensors",
}
_HELPERS = sorted({*_CONVERT.values(), *_POINTER.values(), *_LIST.values(), "to_maybe_tensors"})


def write(folder: Path, library: Path) -> None:
    """Write what is generated into a folder, for a libtenfold.so."""
    description = describe(find_libtorch())
    package = folder / "tenfold"
    package.mkdir(parents=True, exist_ok=True)
    for name, text in {
        "declarations.lua": _declarations(description, _mentioned(package)),
        "enums.lua": "\n".join(_enums(enum_words(description))) + "\n",
        "fitting.lua": f"return {_lua(description.stands_for)}\n",
        "operators.lua": "\n".join(_operators(operators(description))) + "\n",
        "layers.lua": f"return {_lua(_layers())}\n",
        "location.lua": f"return {json.dumps(str(library))}\n",
    }.items():
        (package / name).write_text(text, encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    return written_by(write, "Lua", arguments)


def _layers() -> dict[str, Any]:
    """The layers, their options as tables with names: Lua's tables hold no nil."""
    rows = described()
    for row in rows.values():
        row["options"] = [
            {"name": name, "required": not optional, **({} if default is None else {"default": default})}
            for name, optional, default in row["options"]
        ]
    return rows


def _lua(value: Any) -> str:
    """A plain value as Lua writes it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"[{json.dumps(key)}] = {_lua(each)}" for key, each in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "{" + ", ".join(map(_lua, value)) + "}"
    return json.dumps(value)


# ---- declarations -----------------------------------------------------------------------------------------


def _mentioned(package: Path) -> set[str]:
    """The functions of C that what is written by hand calls."""
    texts = (path.read_text(encoding="utf-8") for path in package.glob("*.lua"))
    return {name for text in texts for name in re.findall(r"\bC\.(tn_\w+)", text)}


def _declarations(description: Description, mentioned: set[str]) -> str:
    """tenfold.h as the FFI reads it: no preprocessor, no inline functions; then the operators that are
    mentioned. The others declare themselves when they are first used: the collector walks over all names."""
    text = HEADER.read_text(encoding="utf-8")
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    text = re.sub(r"#ifdef __cplusplus.*?#endif", "", text, flags=re.DOTALL)
    text = re.sub(r"static inline .*?\n}\n", "", text, flags=re.DOTALL)
    text = re.sub(r"^\s*#.*\n|^TN_API [^;]*;", "", text, flags=re.MULTILINE)
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    lines += [
        _declared(function)
        for function in description.functions
        if function.op is None or function.name in mentioned
    ]
    return "return [==[\n" + "\n".join(lines) + "\n]==]\n"


def _enums(words: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    yield "-- The constants of tenfold.h by type, written by `python -m tenfold.capi.bindings_lua`."
    yield "return {"
    for name, numbers in words.items():
        yield f"  {name} = {_table(f'[{json.dumps(word)}] = {number}' for word, number in numbers.items())},"
    yield "}"


def _declared(function: Function) -> str:
    """Without names of parameters, each of which would be one more object."""
    parameters = ", ".join(parameter.ctype for parameter in function.parameters) or "void"
    return f"{function.returns} {function.name}({parameters});"


# ---- operators --------------------------------------------------------------------------------------------


def _operators(found: Sequence[Operator]) -> Iterator[str]:
    """All operators are one text, of which a part is compiled when it is first used: Lua's collector walks
    over every object time and again, and finds each of them cold. `index` has where the parts are."""
    yield "-- Every operator of the table, written by `python -m tenfold.capi.bindings_lua`."
    yield "return {"
    yield "prelude = [==["
    yield "local core, resolve = ..."
    yield "local lib, own, own_maybe, own_list = core.C, core.own, core.own_maybe, core.own_list"
    yield "local again, check, fail, declare = core.again, core.check, core.fail, core.declare"
    for names, table in ((_HELPERS, "convert"), (sorted(_CHECK.values()), "is")):
        values = ", ".join(f"core.{table}.{name.partition('_')[2]}" for name in names)
        yield f"local {', '.join(names)} = {values}"
    yield "local new_outs, new_list, new_bool = core.new_outs, core.new_list, core.new_bool"
    yield "local signatures, select = resolve.signatures, select ]==],"
    sources = ["\n".join(_operator(each)) + "\n" for each in found]
    index, first = [], 1
    for each, source in zip(found, sources, strict=True):
        last = first + len(source.encode()) - 1
        index.append(f" {each.name}={first},{last}{',method' if each.is_method else ''};")
        first = last + 1
    yield f"index = [==[{''.join(index)}]==],"
    yield f"sources = [====[\n{''.join(sources)}]====] }}"


def _operator(operator: Operator) -> Iterator[str]:
    forms = [each for overload in operator.overloads for each in (overload.plain, overload.full)]
    declared = {_declared(form): None for form in forms if form is not None}
    yield f"  declare([=[{' '.join(declared)}]=])"
    for number, overload in enumerate(operator.overloads):
        yield f"  -- {overload.schema}"
        names = ", ".join(_name(argument) for argument in overload.arguments)
        yield f"  local function f{number}({names})"
        yield from (f"    {line}" for line in _overload(overload))
        yield "  end"
    yield f"  signatures[{json.dumps(operator.name)}] = {{"
    if operator.spread is not None:
        yield f"    spread = {operator.spread + 1},"
    for number, overload in enumerate(operator.overloads):
        fields = [
            f"f{number}",
            json.dumps(str(overload.schema)),
            str(len(overload.positional)),
            _table(json.dumps(argument.name) for argument in overload.arguments),
            _table(json.dumps(re.sub(r"\d+", "n", argument.code)) for argument in overload.arguments),
            _table("true" if argument.needed else "false" for argument in overload.arguments),
        ]
        yield f"    {{ {', '.join(fields)} }},"
    yield "  }"
    yield from _dispatch(operator)


def _table(entries: Iterator[str]) -> str:
    return "{ " + ", ".join(entries) + " }"


def _dispatch(operator: Operator) -> Iterator[str]:
    """The function of a name: what is given in order is told apart here, names and mistakes by `resolve`."""
    most = operator.most
    places = [f"a{i}" for i in range(1, most + 1)]
    last = "..." if operator.spread is not None else "extra"
    none_left = 'select("#", ...) == 0' if operator.spread is not None else "extra == nil"
    quoted = json.dumps(operator.name)
    yield f"  return function({', '.join([*places, last])})"
    for number, overload in enumerate(operator.overloads):
        if any(keyword.required for keyword in overload.keywords):
            continue
        given = overload.positional
        tests = [_test(each, place) for each, place in zip(given, places, strict=False)]
        tests += [f"{place} == nil" for place in places[len(given) :]] + [none_left]
        yield f"    if {' and '.join(tests)} then return f{number}({', '.join(places[: len(given)])}) end"
    yield f"    return resolve.call({', '.join([quoted, *places, last])})"
    yield "  end"


def _test(given: Given, place: str) -> str:
    code = re.sub(r"\d+", "", given.code)
    test = f"{_CHECK[code]}({place})"
    if given.code != code:  # a fixed number of entries: one may stand for all
        one = _CHECK[given.type.kind]
        test = f"({one}({place}) or {test})"
    return test if given.needed else f"({place} == nil or {test})"


def _name(given: Given) -> str:
    return f"{given.name}_" if given.name in _WORDS else given.name


def _overload(overload: Overload) -> Iterator[str]:
    yield from _filled(overload.positional)
    keywords = [_name(keyword) for keyword in overload.keywords]
    if overload.plain is not None and keywords:
        yield f"if {' and '.join(f'{keyword} == nil' for keyword in keywords)} then"
        yield from (f"  {line}" for line in _call(overload, overload.plain))
        yield "end"
    yield from _filled(overload.keywords)
    yield from _call(overload, overload.full)


def _filled(given: Sequence[Given]) -> Iterator[str]:
    for each in given:
        if each.filled is not None:
            yield f"if {_name(each)} == nil then {_name(each)} = {_literal(each.filled)} end"


def _literal(value: object) -> str:
    if isinstance(value, tuple):
        return "{ " + ", ".join(_literal(each) for each in value) + " }"
    return json.dumps(value)


def _call(overload: Overload, function: Function) -> Iterator[str]:
    given = {c_name(each.name): each for each in overload.arguments}
    values = []
    for parameter in function.parameters:
        if parameter.role == "count":
            values.append(f"{parameter.count_of[0]}_n")
        elif parameter.name in given:
            argument = given[parameter.name]
            if argument.type.is_list:
                yield f"local {parameter.name}_v, {parameter.name}_n = {_as_list(argument)}"
                values.append(f"{parameter.name}_v")
            else:
                values.append(_as_value(argument))
    c = f"lib.{function.name}"
    arguments = ", ".join(values)
    if overload.result == "tensor":
        yield f"local made = {c}({arguments})"
        yield f"if made == nil then made = again({', '.join([c, *values])}) end"
        yield "return own(made)"
        return
    if overload.result == "written":
        yield f"if {c}({arguments}) ~= 0 then fail() end"
        yield f"return {', '.join(_name(each) for each in overload.written)}"
        return
    if overload.result == "tensors":
        count = len(overload.schema.returns)
        yield f"local outs = new_outs({count})"
        yield f"check({', '.join([c, *values, 'outs'])})"
        yield f"return {', '.join(f'own_maybe(outs[{i}])' for i in range(count))}"
    elif overload.result == "list":
        yield "local outs, number = new_list()"
        yield f"check({', '.join([c, *values, 'outs', 'number'])})"
        yield "return own_list(outs, number)"
    else:
        yield "local truth = new_bool()"
        yield f"check({', '.join([c, *values, 'truth'])})"
        yield "return truth[0]"


def _as_value(given: Given) -> str:
    name, kind = _name(given), given.type.kind
    if given.pointer and kind in _POINTER:
        return f"{_POINTER[kind]}({name})"
    if kind == "Tensor":
        return f"{name}.handle"
    return f"{_CONVERT[kind]}({name})" if kind in _CONVERT else name


def _as_list(given: Given) -> str:
    name = _name(given)
    if given.type.element_optional:
        return f"to_maybe_tensors({name})"
    size = max(given.type.list_size or 1, 1)
    return f"{_LIST[given.type.kind]}({name}, {size})"


if __name__ == "__main__":
    raise SystemExit(main())
