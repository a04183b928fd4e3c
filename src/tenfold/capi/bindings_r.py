"""The R package's operators, written from libtenfold's description: R functions and C glue.

What is written by hand lies in bindings/r; r_help.py writes the help pages, r_package.py puts all together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tenfold.capi import r_by_hand
from tenfold.capi.describe import Enum, Function
from tenfold.capi.r_literals import literal
from tenfold.capi.r_places import counts_from_one, result_places
from tenfold.ops.order import overloads_in_torch_order
from tenfold.ops.pytorch_names import pytorch_names
from tenfold.ops.schema import MISSING, Argument, Schema, parse

__all__ = [
    "ROperator",
    "argument_names",
    "c_source",
    "enums_source",
    "functional_signature",
    "operators",
    "r_source",
    "signature_of",
]

# Written by hand in the package, with R's own ways of giving their arguments.
BY_HAND = frozenset({"to", "tensor"})
FACTORY = ("dtype", "layout", "device", "pin_memory")
_KINDS = {
    "Tensor": "T", "int": "i", "float": "d", "bool": "b", "Scalar": "S", "str": "s", "ScalarType": "D",
    "Device": "V", "Layout": "L", "MemoryFormat": "M", "Generator": "G",
}  # fmt: skip


@dataclass(frozen=True)
class Form:
    """One overload and the C function that takes all of its arguments."""

    function: Function
    schema: Schema


@dataclass(frozen=True)
class ROperator:
    """All overloads of a name: one R function, whose arguments are theirs together."""

    name: str
    forms: tuple[Form, ...]
    arguments: tuple[str, ...]
    in_place: bool  # whether there is an operator of this name that writes into its input

    @property
    def r_name(self) -> str:
        return f"torch_{self.name}"

    @property
    def functional(self) -> str | None:
        """The function of torch.nn.functional that it is, unless the package has one of its own."""
        theirs = self.name in pytorch_names()["torch.nn.functional"]
        return f"nnf_{self.name}" if theirs and self.name not in r_by_hand.functionals() else None

    @property
    def own_signature(self) -> str | None:
        """Its arguments in R, where the package defines it in a way of its own."""
        return r_by_hand.changed_signatures().get(self.name)

    @property
    def is_factory(self) -> bool:
        return all(each in self.arguments for each in FACTORY)

    @property
    def takes_sizes(self) -> bool:
        """Whether the sizes may be given one by one, as in torch_zeros(2, 3)."""
        return all([a.name for a in form.schema.positional] == ["size"] for form in self.forms)

    @property
    def takes_names(self) -> bool:
        """Whether R's torch lets dimensions of what it makes be named; libtorch no longer does."""
        return self.is_factory and self.arguments[0] == "size"

    @property
    def is_part(self) -> bool:
        """Whether it is there for other operators, as its name says."""
        return self.name.startswith("_")

    @property
    def is_method(self) -> bool:
        return self.arguments[:1] == ("self",)


def operators(functions: Sequence[Function]) -> list[ROperator]:
    """The operators of a description by the name that R gives them; out forms are left to C."""
    found: dict[str, dict[str, Form]] = {}
    for function in functions:
        if function.op is None or function.form == "out":
            continue
        schema = parse(function.op)
        if schema.name not in BY_HAND:
            # The form `with` comes after the plain one, and takes its place.
            found.setdefault(schema.name, {})[schema.qualified] = Form(function, schema)
    return [
        ROperator(
            name,
            tuple(overloads_in_torch_order(forms.values(), lambda form: form.schema)),
            tuple(_merged(list(forms.values()))),
            f"{name}_" in found,
        )
        for name, forms in sorted(found.items())
    ]


def argument_names(form: Form) -> list[str]:
    names = [a.name for a in form.schema.arguments]
    if form.schema.name.endswith("_like") and names[:1] == ["self"]:
        return ["input", *names[1:]]
    return ["self", *names[1:]] if names[:1] == ["input"] and form.schema.overload == "vec" else names


def _merged(forms: list[Form]) -> list[str]:
    """One order of all names: the longest overload's own, then what only others have. So an argument that R
    is given by position is, where it can be, one of the longest. What only goes by name comes last."""
    longest_first = sorted(forms, key=lambda form: len(form.schema.arguments), reverse=True)
    names = [(form, argument_names(form)) for form in longest_first]
    by_position = [name for form, each in names for name in each[: len(form.schema.positional)]]
    return list(dict.fromkeys([*by_position, *(name for _, each in names for name in each)]))


def enums_source(enums: Sequence[Enum]) -> str:
    """The numbers of errors, which the package's own R code raises too."""
    status = next(enum for enum in enums if enum.name == "tn_status")
    codes = ", ".join(f"{constant.name} = {constant.value}L" for constant in status.constants)
    return f"# enums.R: written by tenfold.capi.bindings_r.\n\nerror_codes <- c({codes})\n"


# ---- C ---------------------------------------------------------------------------------------------------


def c_source(made: Sequence[ROperator], stands_for: Mapping[str, Sequence[str]]) -> str:
    lines = ["/* operators.c: written by tenfold.capi.bindings_r. */", '#include "bridge.h"', ""]
    lines += ["#include <R_ext/Rdynload.h>", "", *_numbers(stands_for), ""]
    for number, op in enumerate(made):
        for place, form in enumerate(op.forms):
            lines += [*_parameters(op, form, f"p{number}_{place}"), *_glue(form, f"c{number}_{place}"), ""]
        entries = [
            f"{{{_c_text(str(form.schema))}, c{number}_{i}, p{number}_{i}, {len(form.schema.arguments)}}}"
            for i, form in enumerate(op.forms)
        ]
        slots = len(op.arguments)
        names = [f"a{i}" for i in range(slots)]
        lines += [
            f"static const overload f{number}[] = {{{', '.join(entries)}}};",
            f'static const operator_entry e{number} = {{"{op.name}", f{number}, {len(op.forms)}, {slots}}};',
            f"static SEXP op_{op.name}({', '.join(f'SEXP {n}' for n in names)}) {{",
            f"    SEXP given[] = {{{', '.join(names)}}};",
            f"    return call_operator(&e{number}, given);",
            "}",
            "",
        ]
    lines += ["const R_CallMethodDef operator_methods[] = {"]
    lines += [f'    {{"op_{o.name}", (DL_FUNC)&op_{o.name}, {len(o.arguments)}}},' for o in made]
    lines += ["    {NULL, NULL, 0},", "};"]
    return "\n".join(lines) + "\n"


def _numbers(stands_for: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The function that says which kinds of numbers stand for a parameter."""
    yield "int numbers_for(char kind) {"
    yield "    switch (kind) {"
    for name, kinds in stands_for.items():
        if name in _KINDS:
            yield f"    case '{_KINDS[name]}': return {' | '.join(f'{each.upper()}S' for each in kinds)};"
    yield "    default: return 0;"
    yield "    }"
    yield "}"


def _parameters(op: ROperator, form: Form, name: str) -> Iterator[str]:
    yield f"static const parameter {name}[] = {{"
    for slot_name, argument in zip(argument_names(form), form.schema.arguments, strict=True):
        flags = ["0"]
        if argument.type.optional:
            flags.append("OPTIONAL")
        if argument.default is not MISSING:
            flags.append("HAS_DEFAULT")
        if argument.keyword_only:
            flags.append("KEYWORD")
        if argument.type.element_optional:
            flags.append("NONE_ENTRIES")
        if argument.name == "reduction":
            flags.append("REDUCTION")
        if counts_from_one(form.schema, argument):
            flags.append("PLACE" if argument.type.kind == "Tensor" else "DIMENSION")
        size = argument.type.list_size or 0
        kind = _KINDS[argument.type.kind]
        yield f"    {{{op.arguments.index(slot_name)}, '{kind}', {' | '.join(flags)}, {size}}},"
    yield "};"


def _glue(form: Form, name: str) -> Iterator[str]:
    """The function that converts the values of one overload and calls it."""
    schema, function = form.schema, form.function
    yield f"static SEXP {name}(SEXP *v) {{"
    passed: list[str] = []
    by_pointer = {p.name: p.ctype for p in function.parameters}
    for at, argument in enumerate(schema.arguments):
        ctype = by_pointer.get(argument.name) or by_pointer[f"{argument.name}_"]
        lines, expressions = _pass(schema, argument, ctype, at)
        yield from (f"    {line}" for line in lines)
        passed += expressions
    returns = schema.returns
    call = f"{function.name}({', '.join(passed)}"
    places = result_places(schema)
    if function.returns == "tn_tensor *":
        yield f"    return {'give_place' if places else 'give'}({call}));"
    elif schema.is_inplace or not returns:
        yield f"    check({call}));"
        yield "    return v[0];"
    elif returns[0].type.is_list:
        yield "    tn_tensor **out = NULL;"
        yield "    int64_t out_count = 0;"
        yield f"    check({call}, &out, &out_count));"
        yield f"    return {'give_places' if places else 'give_list'}(out, out_count);"
    elif returns[0].type.kind == "Tensor":
        labels = "NULL"
        if all(each.name for each in returns):
            yield f"    static const char *const names[] = {{{', '.join(_c_text(r.name) for r in returns)}}};"
            labels = "names"
        yield f"    tn_tensor *out[{len(returns)}] = {{NULL}};"
        yield f"    check({call}, out));"
        yield f"    return give_all(out, {len(returns)}, {labels}, {sum(1 << i for i in places)}u);"
    else:
        ctype, maker = {
            "bool": ("bool", "Rf_ScalarLogical(out)"),
            "int": ("int64_t", "Rf_ScalarReal((double)out)"),
            "float": ("double", "Rf_ScalarReal(out)"),
        }[returns[0].type.kind]
        yield f"    {ctype} out = 0;"
        yield f"    check({call}, &out));"
        yield f"    return {maker};"
    yield "}"


def _pass(schema: Schema, argument: Argument, ctype: str, at: int) -> tuple[list[str], list[str]]:
    """Statements before the call, and the expressions that pass one argument."""
    type, value = argument.type, f"v[{at}]"
    dims = "true" if counts_from_one(schema, argument) and type.kind == "int" else "false"
    if type.is_list:
        return _pass_list(argument, at, dims)
    if type.kind == "Tensor":
        return [], [f"tensor_or_null({value})" if type.optional else f"tensor_of({value})"]
    read = {
        "int": f"dim_of({value})" if dims == "true" else f"int_of({value})",
        "float": f"double_of({value})",
        "bool": f"bool_of({value})",
        "Scalar": f"scalar_of({value})",
        "str": f"text_of({value})",
        "ScalarType": f"dtype_of({value})",
        "Device": f"device_of({value})",
        "Layout": f"word_of({value}, 'L')",
        "MemoryFormat": f"word_of({value}, 'M')",
        "Generator": f"handle_of({value}, GENERATOR)",
    }[type.kind]
    if argument.name == "reduction":
        read = f"word_of({value}, 'r')"
    if type.kind in ("str", "Generator"):
        default = "NULL" if argument.default in (None, MISSING) else _c_text(str(argument.default))
        given = default if not argument.keyword_only or argument.default is None else "NULL"
        return [], [f"{value} == R_NilValue ? {given} : {read}"]
    if ctype.endswith("*"):
        plain = ctype.removeprefix("const ").removesuffix(" *")
        if type.optional and argument.default not in (None, MISSING):  # NULL would be None, not the default
            return [f"{plain} x{at} = {value} == R_NilValue ? {_literal(argument)} : {read};"], [f"&x{at}"]
        return [f"{plain} x{at};", f"bool g{at} = {value} != R_NilValue;", f"if (g{at}) x{at} = {read};"], [
            f"g{at} ? &x{at} : NULL"
        ]
    if argument.default is MISSING:
        return [], [read]
    return [], [f"{value} == R_NilValue ? {_literal(argument)} : {read}"]


def _pass_list(argument: Argument, at: int, dims: str) -> tuple[list[str], list[str]]:
    type, value = argument.type, f"v[{at}]"
    size = type.list_size
    if type.kind == "Tensor":
        lines = [f"int64_t n{at} = 0;"]
        if type.optional or argument.default is not MISSING:
            return [
                *lines,
                f"tensor_array x{at} = {value} == R_NilValue ? NULL : tensors_of({value}, &n{at});",
            ], [f"x{at}", f"n{at}"]
        return [*lines, f"tensor_array x{at} = tensors_of({value}, &n{at});"], [
            f"(void *)x{at}" if type.is_written else f"x{at}",
            f"n{at}",
        ]
    ctype, read = {
        "int": ("int64_t", "ints_of"),
        "float": ("double", "doubles_of"),
        "bool": ("bool", "bools_of"),
        "Scalar": ("tn_scalar", "scalars_of"),
    }[type.kind]
    default = () if argument.default in (None, MISSING) else argument.default
    lines = [f"int64_t n{at} = 0;"]
    otherwise, otherwise_count = "NULL", 0
    if default:
        entries = ", ".join(_number(each) for each in default)
        lines.append(f"static const {ctype} d{at}[] = {{{entries}}};")
        otherwise, otherwise_count = f"d{at}", len(default)
    elif argument.default == ():
        lines.append(f"static const {ctype} d{at}[] = {{0}};")
        otherwise = f"d{at}"
    if type.kind == "int":
        call = f"ints_of({value}, {size}, {dims}, {otherwise}, {otherwise_count}, &n{at})"
    else:
        lines.append(f"if ({value} == R_NilValue) n{at} = {otherwise_count};")
        call = f"{value} == R_NilValue ? {otherwise} : {read}({value}, {size}, &n{at})"
    return [*lines, f"const {ctype} *x{at} = {call};"], [f"x{at}", f"n{at}"]


def _literal(argument: Argument) -> str:
    kind, default = argument.type.kind, argument.default
    if kind == "Scalar":
        if isinstance(default, bool):
            return f"tn_bool({str(default).lower()})"
        return f"tn_int({default})" if isinstance(default, int) else f"tn_double({_number(default)})"
    if kind in ("ScalarType", "Layout", "MemoryFormat"):
        return {"long": "TN_INT64", "float": "TN_FLOAT32", "strided": "TN_STRIDED"}[default]
    return _number(default)


def _number(value: float | bool) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return {"inf": "R_PosInf", "-inf": "R_NegInf"}.get(repr(value), repr(value))


def _c_text(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


# ---- R ---------------------------------------------------------------------------------------------------


def r_source(made: Sequence[ROperator]) -> str:
    lines = ["# operators.R: written by tenfold.capi.bindings_r.", ""]
    for op in made:
        if op.own_signature is not None:
            continue
        lines.append(f"{op.r_name} <- function({signature_of(op)}) {_body(op)}")
    for op in made:
        if op.functional:
            lines.append(f"{op.functional} <- function({functional_signature(op)}) {_functional_body(op)}")
    pairs = [f"`{op.name}` = {op.r_name}" for op in made if op.is_method]
    lines += ["", "operator_methods <- list(", ",\n".join(f"  {pair}" for pair in pairs), ")"]
    return "\n".join(lines) + "\n"


def signature_of(op: ROperator) -> str:
    if op.own_signature is not None:
        return op.own_signature
    shown = []
    for place, name in enumerate(op.arguments):
        if op.takes_sizes and name == "size":
            shown.append("...")
        else:
            needed = all(_needs(form, place, name) for form in op.forms)
            shown.append(name if needed else f"{name} = {_default(op, name)}")
    if op.is_factory:
        shown.append("requires_grad = FALSE")
    if op.takes_names:
        shown.append("names = NULL")
    return ", ".join(shown)


def _default(op: ROperator, name: str) -> str:
    """What an argument is where R is not given it: NULL unless all overloads have it, with one default."""
    arguments = [
        dict(zip(argument_names(form), form.schema.arguments, strict=True)).get(name) for form in op.forms
    ]
    written = {_default_of(form.schema, a) for form, a in zip(op.forms, arguments, strict=True)}
    return written.pop() if len(written) == 1 else "NULL"


def _default_of(schema: Schema, argument: Argument | None) -> str:
    if (
        argument is None
        or argument.default is MISSING
        or argument.type.kind in ("ScalarType", "Layout", "MemoryFormat")
    ):
        return "NULL"
    if argument.name == "reduction":
        return f'"{("none", "mean", "sum")[argument.default]}"'
    return literal(argument.default, counts_from_one(schema, argument)) or "NULL"


def functional_signature(op: ROperator) -> str:
    """The arguments of nnf_NAME, whose first tensor is called `input`."""
    return _as_input(signature_of(op)) + (", inplace = FALSE" if op.in_place else "")


def _functional_body(op: ROperator) -> str:
    body = _as_input(_body(op))
    if not op.in_place:
        return body
    written = f"torch_{op.name}_({_as_input(', '.join(op.arguments))})"
    return f"if (inplace) {written} else {body}"


def _as_input(text: str) -> str:
    return re.sub(r"\bself\b", "input", text)


def _needs(form: Form, place: int, name: str) -> bool:
    """Whether an overload has an argument at its place among all, and no default for it."""
    names = argument_names(form)
    if names[place : place + 1] != [name]:
        return False
    argument = form.schema.arguments[place]
    return argument.default is MISSING and not argument.type.optional


def _body(op: ROperator) -> str:
    given = ["c(...)" if op.takes_sizes and name == "size" else name for name in op.arguments]
    if op.is_factory:
        given = ["placed(device)" if name == "device" else name for name in given]
    call = f".Call(C_op_{op.name}, {', '.join(given)})" if given else f".Call(C_op_{op.name})"
    if op.takes_names:
        return f"{{ refuse_names(names); wanting_grad({call}, requires_grad) }}"
    if op.is_factory:
        return f"wanting_grad({call}, requires_grad)"
    return f"invisible({call})" if op.name.endswith("_") and op.forms[0].schema.is_inplace else call
