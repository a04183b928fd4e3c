"""The schemas of ops that write, `add_` and `add.out`, as ATen derives them from those of ops that do not."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tenfold.ops.schema import Argument, Schema, parse

# What a new tensor is made like; of an `out` that is decided already.
FACTORY = {"dtype", "layout", "device", "pin_memory"}
# Whose arguments an `out` overload has, where its name does not say so.
OUT_OF = {
    **dict.fromkeys(("mean.out", "any.out", "all.out", "var.out", "std.out"), "dim"),
    **dict.fromkeys(("max.out", "min.out"), "other"),
    "range.out": "step",
    "arange.start_out": "start_step",
}
# What ATen calls the tensors that are written, where it is not as the results are called.
OUT_NAMES = {
    **dict.fromkeys(("_softmax_backward_data", "huber_loss_backward"), "grad_input"),
    **dict.fromkeys(("native_batch_norm", "_native_batch_norm_legit"), "out save_mean save_invstd"),
    **dict.fromkeys(("max_pool2d_with_indices", "max_pool3d_with_indices"), "out indices"),
    **dict.fromkeys(("adaptive_max_pool2d", "adaptive_max_pool3d"), "out indices"),
}
ALIAS = re.compile(r"\([a-z]!?\)")


def written_text(text: str, name: str) -> str:
    """Of the schema that `name` writes in place by: `self` comes first, is written to, and is the result."""
    schema = parse(text)
    names = [each.name for each in schema.positional]
    written = "self" if "self" in names else names[0]
    others = [_plain(each) for each in schema.positional if each.name != written]
    return _text(schema, name, schema.overload, [f"Tensor(a!) {written}", *others], [], "Tensor(a!)")


def out_text(text: str, overload: str) -> str:
    """Of the overload that writes its results to tensors that it is given after all other arguments."""
    schema = parse(text)
    names = {argument.name for argument in schema.arguments}
    gone = FACTORY if names >= FACTORY else set()
    if [str(each.type) for each in schema.returns] == ["Tensor[]"]:
        outs, results = ["Tensor(a!)[] out"], "()"
    elif len(schema.returns) == 1:
        outs, results = [f"Tensor(a!) {OUT_NAMES.get(schema.name, 'out')}"], "Tensor(a!)"
    else:
        marks = [f"Tensor({chr(ord('a') + i)}!)" for i in range(len(schema.returns))]
        given = ["" if "_cachemask" in schema.name else each.name for each in schema.returns]
        called = " ".join([name or f"out{i}" for i, name in enumerate(given)])
        called = OUT_NAMES.get(schema.name, called)
        outs = [f"{mark} {name}" for mark, name in zip(marks, called.split())]
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
