"""The C++ of one typed call: C parameters turned into what `at::_ops::NAME::call` takes, and its result given
back."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any

from tenfold.capi.typed import TypedForm, c_name
from tenfold.ops.schema import MISSING, Argument, Type

__all__ = ["call_of"]

_ENUMERATIONS = {
    "ScalarType": "dtype",
    "Layout": "layout",
    "Device": "device",
    "MemoryFormat": "memory_format",
}
_CPP = {"int": "int64_t", "float": "double", "bool": "bool"}


def call_of(form: TypedForm, checked: Container[str]) -> Iterator[str]:
    """The statements of a form's body, for the overload that is installed. If it is among `checked`, its
    arguments are looked at first."""
    assert form.installed is not None
    given = {argument.name: argument for argument in form.given}
    values: list[str] = []
    read: list[str] = []
    written: list[str] = []
    held: list[str] = []  # of those written, those that an operator may put another tensor for
    for theirs in form.installed.schema.arguments:
        ours = given.get(theirs.name)
        if ours is None:
            values.append(_default(theirs.default, theirs.type))
            continue
        name = c_name(ours.name)
        if theirs.type.kind == "Tensor":
            (written if theirs.type.is_written else read).append(name)
        if theirs.type.kind == "Tensor" and not theirs.type.is_list and not _nullable(ours):
            holder = "Written" if theirs.type.is_written else "Read" if form.form == "out" else "Borrowed"
            yield f'{holder} {name}_given({name}, "{name}");'
            held += [name] if theirs.type.is_written else []
            values.append(f"*{name}_given")
        elif (
            theirs.type.kind in ("Tensor", "Scalar")
            and theirs.type.is_list
            and not theirs.type.element_optional
        ):
            function = "tensors" if theirs.type.kind == "Tensor" else "scalars"
            yield f'auto {name}_given = tenfold::{function}({name}, {name}_count, "{name}");'
            if theirs.type.is_written:
                yield f"WrittenEach {name}_written({name}_given);"
            values.append(f"{name}_given")
        elif theirs.type.kind == "Tensor" and form.form == "out":
            yield f"auto {name}_given = {_value(name, ours, theirs.type)};"
            values.append(f"{name}_given")
        else:
            values.append(_value(name, ours, theirs.type))
    if form.form == "out":
        tensors = {a.name for a in form.installed.schema.arguments if not a.type.is_list}
        for out in written:
            for name in read:
                yield f"keep_apart({name}_given, {'*' if out in tensors else ''}{out}_given);"
    op = f"aten::{form.installed.schema.qualified}"
    if op in checked:
        call = f'call_checked<{_result_type(form)}>("{op}", {", ".join(values)})'
    else:
        call = f"at::_ops::{form.installed.struct}::call({', '.join(values)})"
    yield from _give_back(form, call, held)


def _result_type(form: TypedForm) -> str:
    if form.result == "tensors":
        return f"std::tuple<{', '.join(['at::Tensor'] * len(form.schema.returns))}>"
    return {"tensor": "at::Tensor", "list": "std::vector<at::Tensor>", "none": "void"}[form.result]


def _give_back(form: TypedForm, call: str, held: list[str]) -> Iterator[str]:
    if form.result == "none":
        yield f"{call};"
    elif held:
        yield f"auto result = {call};"
        call = "std::move(result)"
    yield from (f'{name}_given.finish("{name}");' for name in held)
    if form.result == "tensor":
        yield f"return own({call});"
    elif form.result == "tensors":
        yield f"own_results({call}, {form.parameters[-1].name});"
    elif form.result == "list":
        yield f"own_list({call}, {form.parameters[-2].name}, {form.parameters[-1].name});"
    elif form.result == "number":
        yield f'non_null({form.parameters[-1].name}, "{form.parameters[-1].name}") = {call};'


def _nullable(argument: Argument) -> bool:
    return argument.type.optional or (argument.keyword_only and argument.default is not MISSING)


def _value(name: str, ours: Argument, type: Type) -> str:
    """An argument that is passed as an expression. NULL is the default of a keyword-only argument, or else
    None."""
    given = _given(name, ours, type)
    if type.optional and ours.keyword_only and ours.default is not MISSING and ours.default is not None:
        return f"({name} ? {given} : decltype({given})({_default(ours.default, type)}))"
    return given


def _given(name: str, ours: Argument, type: Type) -> str:
    symbolic = type.base == "SymInt"
    quoted = f'"{name}"'
    if type.is_list:
        if type.kind == "Tensor":
            return f"tenfold::optional_tensors({name}, {name}_count, {quoted})"
        if type.kind == "bool":
            return f"tenfold::fixed<{type.list_size}>({name}, {name}_count, {quoted})"
        if type.optional:
            return f"tenfold::maybe_{'symbols' if symbolic else 'array'}({name}, {name}_count, {quoted})"
        given = f"tenfold::{'symbols' if symbolic else 'array'}({name}, {name}_count, {quoted})"
        if type.kind == "int" and type.list_size is not None and type.list_size > 1:
            empty = "true" if ours.default == () else "false"
            entries = f"tenfold::Fixed<{type.list_size}, {empty}>({name}, {name}_count, {quoted}).entries"
            given = f"c10::fromIntArrayRefSlow({entries})" if symbolic else entries
        return given if not _nullable(ours) else f"({name} ? {given} : {_default(ours.default, type)})"
    if type.kind == "Tensor":
        return f"tenfold::optional_tensor({name}, {quoted})"
    if type.kind == "Generator":
        return f"tenfold::maybe_generator({name}, {quoted})"
    if type.kind == "str":
        if type.optional:
            return f"tenfold::maybe_text({name})"
        given = f"std::string_view(tenfold::text({name}, {quoted}))"
        return given if not _nullable(ours) else f"({name} ? {given} : {_default(ours.default, type)})"
    if type.optional:
        if type.kind in _ENUMERATIONS:
            return f"tenfold::maybe_{_ENUMERATIONS[type.kind]}({name}, {quoted})"
        if type.kind == "Scalar":
            return f"tenfold::maybe_scalar({name}, {quoted})"
        return f"tenfold::maybe<{'c10::SymInt' if symbolic else _CPP[type.kind]}>({name})"
    pointed = f"*{name}" if _nullable(ours) else name
    if type.kind in _ENUMERATIONS:
        given = f"tenfold::{_ENUMERATIONS[type.kind]}({pointed}, {quoted})"
    elif type.kind == "Scalar":
        given = f"Number({pointed}, {quoted})"
    else:
        given = f"c10::SymInt({pointed})" if symbolic else pointed
    return given if not _nullable(ours) else f"({name} ? {given} : {_default(ours.default, type)})"


_WORDS = {
    "contiguous_format": "Contiguous",
    "preserve_format": "Preserve",
    "channels_last": "ChannelsLast",
    "channels_last_3d": "ChannelsLast3d",
}


def _default(value: Any, type: Type) -> str:
    """A schema's default in C++."""
    if value is None:
        return "std::nullopt"
    if type.is_list:
        element = "c10::SymInt" if type.base == "SymInt" else _CPP[type.kind]
        entries = ", ".join(_literal(each, type) for each in value)
        return f"at::ArrayRef<{element}>({{{entries}}})" if value else f"at::ArrayRef<{element}>()"
    if type.kind == "ScalarType":
        return f"at::k{str(value).capitalize()}"
    if type.kind == "MemoryFormat":
        return f"at::MemoryFormat::{_WORDS[value]}"
    if type.kind == "str":
        return f'std::string_view("{value}")'
    return _literal(value, type)


def _literal(value: Any, type: Type) -> str:
    text = {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value)
    if text in ("inf", "-inf", "nan"):
        limits = "std::numeric_limits<double>::"
        text = {"inf": f"{limits}infinity()", "-inf": f"-{limits}infinity()", "nan": f"{limits}quiet_NaN()"}[
            text
        ]
    if type.kind == "Scalar":
        return f"Number({text if text != '0' else 'int64_t{0}'})"
    if type.base == "SymInt":
        return f"c10::SymInt(int64_t{{{text}}})"
    return text
