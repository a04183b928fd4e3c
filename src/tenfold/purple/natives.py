"""What C does for each primitive: the general function, which takes and gives Values, and the forms for
operands whose types
are known, which take and give numbers and truth values as C has them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from tenfold.ops.schema import Return
from tenfold.purple.ir import BOOL, FLOAT, INT, VALUE
from tenfold.purple.names import PRIMITIVES, row_of


class Form(NamedTuple):
    """C for a primitive. `fails`: "" for never, "zero" when the result 0 says so, "status" when the C
    expression is
    true on success and writes its result through `{r}`."""

    c: str
    args: tuple[str, ...]
    result: str
    fails: str


def choose(name: str, types: Sequence[str], result: str) -> Form:
    """The form that operands of these types allow, and a result of that type."""
    if name in ("eq?", "eqv?", "equal?") and any(each in IDENTICAL for each in types):
        return Form("{0} == {1}", (VALUE, VALUE), BOOL, "")
    mixed = MIXED.get((name, tuple(types)))
    if mixed is not None and (mixed.result == BOOL or result == "integer"):
        return mixed
    reps = tuple([PLAIN_NUMBERS.get(each, VALUE) for each in types])
    outgrows = result != "int" and name in GROWING and set(reps) == {INT}
    known = (WIDENING if result == "integer" or outgrows else INLINE).get((name, reps))
    if known is None and FLOAT in reps and INT in reps and VALUE not in reps and name in ("+", "-", "*", "/"):
        known = INLINE.get((name, (FLOAT,) * len(reps)))  # C converts the integer
    return known or general(name, len(types))


def _forms() -> dict[tuple[str, tuple[str, ...]], Form]:
    ints, floats = (INT, INT), (FLOAT, FLOAT)
    table: dict[tuple[str, tuple[str, ...]], Form] = {}
    for name, word, sign in (("+", "add", "+"), ("-", "subtract", "-"), ("*", "multiply", "*")):
        table[name, ints] = Form(f"pu_int_{word}({{0}}, {{1}}, &{{r}})", ints, INT, "status")
        table[name, floats] = Form(f"{{0}} {sign} {{1}}", floats, FLOAT, "")
    table["/", floats] = Form("{0} / {1}", floats, FLOAT, "")
    table["-", (INT,)] = Form("pu_int_subtract(0, {0}, &{r})", (INT,), INT, "status")
    table["-", (FLOAT,)] = Form("-{0}", (FLOAT,), FLOAT, "")
    for name in ("<", ">", "<=", ">=", "="):
        sign = "==" if name == "=" else name
        table[name, ints] = Form(f"{{0}} {sign} {{1}}", ints, BOOL, "")
        table[name, floats] = Form(f"{{0}} {sign} {{1}}", floats, BOOL, "")
    for name, word in (("quotient", "quotient"), ("%", "remainder"), ("modulo", "modulo")):
        table[name, ints] = Form(f"pu_int_{word}({{0}}, {{1}}, &{{r}})", ints, INT, "status")
    for name in ("eq?", "eqv?"):
        table[name, ints] = Form("{0} == {1}", ints, BOOL, "")
    for name, sign in (("bitwise-and", "&"), ("bitwise-or", "|"), ("bitwise-xor", "^")):
        table[name, ints] = Form(f"{{0}} {sign} {{1}}", ints, INT, "")
    for name in ("exp", "sin", "cos", "tan", "floor", "sqrt"):
        table[name, (FLOAT,)] = Form(f"{name}({{0}})", (FLOAT,), FLOAT, "")
    table["abs", (FLOAT,)] = Form("fabs({0})", (FLOAT,), FLOAT, "")
    table["->float", (INT,)] = Form("(double){0}", (INT,), FLOAT, "")
    table["->float", (FLOAT,)] = Form("{0}", (FLOAT,), FLOAT, "")
    return table


INLINE = _forms()
# Where 64 bits hold the operands, and perhaps not the result.
WIDENING: dict[tuple[str, tuple[str, ...]], Form] = {
    ("+", (INT, INT)): Form("pu_wide_add({0}, {1})", (INT, INT), VALUE, ""),
    ("-", (INT, INT)): Form("pu_wide_subtract({0}, {1})", (INT, INT), VALUE, ""),
    ("*", (INT, INT)): Form("pu_wide_multiply({0}, {1})", (INT, INT), VALUE, ""),
    ("-", (INT,)): Form("pu_wide_subtract(0, {0})", (INT,), VALUE, ""),
}
# Types whose values are equal only to themselves.
IDENTICAL = ("symbol", "keyword", "bool", "char", "nil", "void")
# What 64 bits may not hold, unless the result is known to be one that they do.
GROWING = ("+", "-", "*", "quotient")
INTEGERS = ("int", "integer")
# Types of operands that C has as numbers.
PLAIN_NUMBERS = {"int": INT, "float": FLOAT}


def _mixed() -> dict[tuple[str, tuple[str, ...]], Form]:
    """Forms for two integers one of which, or both, may have any size."""
    table: dict[tuple[str, tuple[str, ...]], Form] = {}
    compared = {"<": "<", ">": ">", "<=": "<=", ">=": ">=", "=": "==", "eq?": "==", "eqv?": "=="}
    turned = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
    for name, sign in compared.items():
        both = f"pu_compare_integers({{0}}, {{1}}) {sign} 0"
        table[name, ("integer", "integer")] = Form(both, (VALUE, VALUE), BOOL, "")
        one = f"pu_compare_with_int({{0}}, {{1}}) {sign} 0"
        table[name, ("integer", "int")] = Form(one, (VALUE, INT), BOOL, "")
        other = f"pu_compare_with_int({{1}}, {{0}}) {turned.get(sign, sign)} 0"
        table[name, ("int", "integer")] = Form(other, (INT, VALUE), BOOL, "")
    for name, word in (("+", "add"), ("-", "subtract"), ("*", "multiply")):
        form = Form(f"pu_{word}_int({{0}}, {{1}})", (VALUE, INT), VALUE, "zero")
        table[name, ("integer", "int")] = form
        if name != "-":
            table[name, ("int", "integer")] = Form(
                f"pu_{word}_int({{1}}, {{0}})", (INT, VALUE), VALUE, "zero"
            )
    return table


MIXED = _mixed()

# Primitives that cannot fail whatever they are given, apart from predicates.
NEVER_FAIL = {
    "cons", "list", "vector", "box", "values", "display->string", "write->string", "make-hash-table",
    "command-line", "clock", "current-second", "live-tensors", "%environment", "%output-port",
}  # fmt: skip

# Primitives that always fail, or end the program.
NEVER_RETURN = ("error", "raise", "%match-failed", "%fail-as", "exit")

# C names that do not follow from the primitive's.
SPELLED = {
    "+": "add", "-": "subtract", "*": "multiply", "/": "divide", "=": "same_number", "<": "less",
    ">": "greater", "<=": "not_greater", ">=": "not_less", "%": "remainder", "->int": "to_int",
    "->float": "to_float", "number->string": "number_to_string", "eqv?": "is_eq", "box": "new_box",
    "values": "new_values", "string=?": "string_same", "string<?": "string_less", "exit": "exit_program",
    "%send": "send_text", "%set-output!": "set_output", "%fail-as": "fail_as", "current-second": "seconds",
    "drop": "list_drop", "take": "list_take",
    "%apply-tail": "apply_tail", "float?": "is_float_number", "char?": "is_character",
}  # fmt: skip


def c_name(name: str) -> str:
    """The C function of a primitive: pu_string_append for string-append, pu_is_pair for pair?."""
    if name in SPELLED:
        return "pu_" + SPELLED[name]
    if name.endswith("?"):
        name = "is-" + name[:-1]
    return "pu_" + re.sub(r"[^a-z0-9_]", "_", name.replace("->", "-to-").replace("!", "").lstrip("%"))


def returns_truth(name: str) -> bool:
    """Predicates that take anything give a C bool."""
    found = PRIMITIVES.get(name)
    if found is None or name == "not":  # which fails for a tensor of several elements
        return False
    return found.result == "bool" and all(kind == "any" for kind in found.parameters)


# Of two operands, the general forms of these are functions of two; of any other number they take an array.
BINARY = ("+", "-", "*", "/", "=", "<", ">", "<=", ">=", "min", "max", "string=?", "string<?")


SHORT_LISTS = {1: "pu_cons({0}, PU_NIL)", 2: "pu_list2({0}, {1})", 3: "pu_list3({0}, {1}, {2})"}


def general(name: str, count: int) -> Form:
    """The form that takes any Values. Missing optional arguments are PU_ABSENT; those of a rest go in an
    array."""
    found = PRIMITIVES.get(name)
    values = (VALUE,) * count
    each = [f"{{{i}}}" for i in range(count)]
    if name == "cons":
        return Form("pu_cons({0}, {1})", values, VALUE, "")
    if name == "list" and count in SHORT_LISTS:
        return Form(SHORT_LISTS[count], values, VALUE, "")
    if name in BINARY and count == 2:
        return Form(f"{c_name(name)}({{0}}, {{1}})", values, VALUE, "zero")
    fails = "" if name in NEVER_FAIL or returns_truth(name) else "zero"
    if found is None or found.rest or name in BINARY:
        array = f"(Value[]){{{{{', '.join(each)}}}}}" if each else "NULL"
        many = "_many" if name in BINARY else ""
        return Form(f"{c_name(name)}{many}({array}, {count})", values, VALUE, fails)
    each += ["PU_ABSENT"] * (len(found.parameters) - count)
    result = BOOL if returns_truth(name) else VALUE
    return Form(f"{c_name(name)}({', '.join(each)})", values, result, fails)


def gives_back(name: str) -> bool:
    """Whether what a primitive gives is its operand, changed in place."""
    row = row_of(name)
    return row[1] if row is not None else name in ("requires-grad!", "evaluate!")


def one_tensor(returned: Sequence[Return]) -> bool:
    return len(returned) == 1 and returned[0].type.kind == "Tensor" and not returned[0].type.is_list


def gives_new_memory(name: str) -> bool:
    """Whether an operator's result can share no memory with its operands."""
    found = row_of(name)
    if found is None:
        return name in ("+", "-", "*", "/")
    return not found[1] and all(
        one_tensor(row.schema.returns) and not row.schema.returns[0].type.alias_sets for row in found[0]
    )


def accepts(name: str, count: int, keywords: Sequence[str]) -> bool:
    """Whether a primitive takes so many arguments."""
    if row_of(name) is not None or name.startswith(("%apply", "%check", "%hole")):
        return True
    found = PRIMITIVES[name]
    enough = count >= found.minimum and (found.maximum is None or count <= found.maximum)
    return enough and set(keywords) <= set(found.keywords)


def result_type(name: str, types: Sequence[str], tensors: bool) -> str:
    """The type of what a primitive gives, by those of its operands. In programs without tensors, operators
    that do not fail give numbers and booleans."""
    numeric = all(each in ("int", "integer", "float", "number") for each in types)
    whole = all(each in INTEGERS for each in types)
    if gives_back(name):
        return "void"
    if name in ("+", "-", "*", "/"):
        if numeric and types:
            if "float" in types:
                return "float"
            return "integer" if whole and name != "/" else "number"
        if not tensors and types:
            return "float" if "float" in types else "number"
        known = "tensor" in types and all(
            each in ("int", "integer", "float", "number", "tensor") for each in types
        )
        return "tensor" if known else "any"
    if name in ("=", "<", ">", "<=", ">="):
        return "bool" if numeric or not tensors else "any"
    if (
        name in ("%", "modulo", "abs", "floor", "ceiling", "round", "truncate", "min", "max", "exact")
        and types
        and numeric
    ):
        if whole:
            return "integer"
        return "float" if "float" in types and name not in ("min", "max", "exact") else "number"
    if name in ("sqrt", "expt") and types[:1] == ["float"]:
        return "float"
    if name in NEVER_RETURN:
        return "none"
    found = PRIMITIVES.get(name)
    if found is not None:
        return {"number*": "any", "index": "any", "number": "number"}.get(found.result, found.result)
    rows = row_of(name)
    return "tensor" if rows is not None and all(one_tensor(row.schema.returns) for row in rows[0]) else "any"
