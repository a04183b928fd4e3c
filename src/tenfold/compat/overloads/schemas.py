"""The schemas of ops that write, `add_` and `add.out`, as ATen derives them from those of ops that do not."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tenfold.ops.schema import Argument, Schema, parse
from tenfold.ops.table import Row

# What a new tensor is made like; of an `out` that is decided already.
FACTORY = {"dtype", "layout", "device", "pin_memory"}
ALIAS = re.compile(r"\([a-z]!?\)")


def written_text(text: str, name: str) -> str:
    """Of the schema that `name` writes in place by: `self` comes first, is written to, and is the result."""
    schema = parse(text)
    names = [each.name for each in schema.positional]
    written = "self" if "self" in names else names[0]
    others = [_plain(each) for each in schema.positional if each.name != written]
    return _text(schema, name, schema.overload, [f"Tensor(a!) {written}", *others], [], "Tensor(a!)")


def out_text(row: Row, overload: str) -> str:
    """Of the overload that writes a row's results to tensors that it is given after all other arguments."""
    schema = row.schema
    names = {argument.name for argument in schema.arguments}
    gone = FACTORY if names >= FACTORY else set()
    if [str(each.type) for each in schema.returns] == ["Tensor[]"]:
        outs, results = ["Tensor(a!)[] out"], "()"
    elif len(schema.returns) == 1:
        outs, results = [f"Tensor(a!) {row.out_names or 'out'}"], "Tensor(a!)"
    else:
        marks = [f"Tensor({chr(ord('a') + i)}!)" for i in range(len(schema.returns))]
        given = ["" if "_cachemask" in schema.name else each.name for each in schema.returns]
        named = row.out_names.split() or [name or f"out{i}" for i, name in enumerate(given)]
        outs = [f"{mark} {name}" for mark, name in zip(marks, named)]
        results = f"({', '.join(f'{mark} {name}'.strip() for mark, name in zip(marks, given))})"
    positional = [_plain(each) for each in schema.positional if each.name not in gone]
    return _text(schema, schema.name, overload, positional, outs, results, gone)


def _plain(argument: Argument) -> str:
    """An argument that is only read."""
    return ALIAS.sub("", str(argument))


def _text(
    schema: Schema,
    name: str,
    overload: str,
    positional: Sequence[str],
    outs: Sequence[str],
    results: str,
    gone: set[str] | frozenset[str] = frozenset(),
) -> str:
    keywords = [_plain(each) for each in schema.keyword_only if each.name not in gone]
    keywords += outs
    arguments = [*positional, *(["*", *keywords] if keywords else [])]
    namespace = "" if schema.namespace == "aten" else f"{schema.namespace}::"
    dotted = f".{overload}" if overload else ""
    return f"{namespace}{name}{dotted}({', '.join(arguments)}) -> {results}"
