"""FlatIR functions of one program at several sizes, merged into one: what differs between them is `Open`.
Where they differ in more than numbers, the program is another one at other sizes: it is refused, with the
place."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tenfold.base.errors import UnsupportedError
from tenfold.flat.composite import Composite
from tenfold.flat.ir import Function, Op, TensorType, Value
from tenfold.flat.sizes import Open, OpenLiteral, OpenText, OpenType

# Says of a number in a recording at which sizes that was made: "n = 11".
Described = Callable[[int], str]


def another(op: str, source: Any, numbers: Sequence[Any], described: Described) -> UnsupportedError:
    if isinstance(numbers[0], TensorType):  # of which other sizes are no difference
        k = next(
            i
            for i, type in enumerate(numbers)
            if (type.rank, type.dtype) != (numbers[0].rank, numbers[0].dtype)
        )
        what = "a result"
    else:
        first = (type(numbers[0]), numbers[0])
        k = next((i for i, number in enumerate(numbers) if (type(number), number) != first), 1)
        what = "an argument"
    return UnsupportedError(
        f"{what} is {numbers[0]!r} at {described(0)} and {numbers[k]!r} at {described(k)}: the program "
        "is another one for other sizes",
        help="leave this dimension fixed, say which sizes it is for, as Dim('n', min=2), or export once for "
        "each size",
    ).located(op, source)


class Different(Exception):
    """Values that cannot be merged."""

    def __init__(self, numbers: Sequence[Any]):
        super().__init__(numbers)
        self.numbers = numbers


def merged(values: Sequence[Any]) -> Any:
    """Arguments or attributes of one op in all recordings, as one."""
    first = values[0]
    if all(value is first for value in values):
        return first
    if isinstance(first, np.ndarray):
        return _merged_arrays(values)
    if isinstance(first, str):
        return _merged_texts(values)
    if isinstance(first, Function):
        return merged_functions(values)
    if isinstance(first, TensorType):
        return merged_type(values)
    if isinstance(first, (tuple, list)):
        if any(type(value) is not type(first) or len(value) != len(first) for value in values):
            raise Different(values)
        parts = [merged(each) for each in zip(*values)]
        return type(first)(*parts) if hasattr(first, "_fields") else type(first)(parts)
    if all(type(value) is type(first) and value == first for value in values):
        return first
    if all(type(value) in (int, float) and type(value) is type(first) for value in values):
        return Open(values)
    raise Different(values)


def _merged_arrays(arrays: Sequence[np.ndarray]) -> Any:
    """A literal; or, if it differs, a tuple of numbers with the literal's shape."""
    first = arrays[0]
    if all(array.shape == first.shape and array.tobytes() == first.tobytes() for array in arrays):
        return first
    if any(array.shape != first.shape for array in arrays) or first.size > 16:
        raise Different([f"a literal of shape {list(array.shape)}" for array in arrays])
    return OpenLiteral(first.shape, merged([tuple(array.ravel().tolist()) for array in arrays]))


def _merged_texts(texts: Sequence[str]) -> str:
    """A message, in which numbers may be open."""
    if all(text == texts[0] for text in texts):
        return texts[0]
    several = list(zip(*[re.split(r"(\d+)", text) for text in texts], strict=False))
    parts: list[str | Open] = []
    for i, each in enumerate(several):
        if len(set(each)) == 1:
            parts.append(each[0])
        elif i % 2:
            parts.append(Open(map(int, each)))
        else:
            raise Different(texts)
    if any(len(re.split(r"(\d+)", text)) != len(several) for text in texts):
        raise Different(texts)
    return OpenText.of(parts)


def merged_type(types: Sequence[TensorType]) -> Any:
    """A type, itself where all are equal."""
    first = types[0]
    if all(type is first for type in types):
        return first
    if any(type.rank != first.rank or type.dtype is not first.dtype for type in types):
        raise Different(types)
    return OpenType(first.dtype, merged([type.shape for type in types]))


def merged_functions(functions: Sequence[Function], described: Described | None = None) -> Function:
    """FlatIR functions as one. Its ops are not checked again: no one op holds for all sizes at once."""
    first = functions[0]
    values: dict[Value, Value] = {}
    for several in zip(*[function.params for function in functions]):
        values[several[0]] = Value(merged_type([function.type for function in several]))
        values[several[0]].name = several[0].name
    for ops in _rows(functions, described):
        op = ops[0]
        try:
            copy = _merged_op(ops, values)
        except Different as error:
            if described is None:
                raise
            raise another(op.name.split(".")[1], op.source, error.numbers, described) from None
        values.update(zip(op.results, copy.results, strict=True))
    merged_function = Function(
        [values[param] for param in first.params], [values[result] for result in first.results], first.name
    )
    return merged_function


def _rows(functions: Sequence[Function], described: Described | None) -> Any:
    places = [
        {value: (i, r) for i, op in enumerate(f.ops) for r, value in enumerate(op.results)} for f in functions
    ]
    params = [{value: i for i, value in enumerate(f.params)} for f in functions]
    for ops in zip(*[function.ops for function in functions]):
        shapes = {
            (type(op), tuple((places[k].get(v), params[k].get(v)) for v in op.operands))
            for k, op in enumerate(ops)
        }
        if len(shapes) > 1:
            raise _lowered_otherwise(ops[0].source, described)
        yield ops
    results = {
        tuple((places[k].get(v), params[k].get(v)) for v in function.results)
        for k, function in enumerate(functions)
    }
    if len({len(function.ops) for function in functions}) > 1 or len(results) > 1:
        raise _lowered_otherwise(_last_source(functions), described)


def _last_source(functions: Sequence[Function]) -> Any:
    return next((function.ops[-1].source for function in functions if function.ops), None)


def _lowered_otherwise(source: Any, described: Described | None) -> Exception:
    if described is None:
        return Different(["a program in a branch or loop", "another"])
    return UnsupportedError(
        "this op is lowered to StableHLO in another way for other sizes",
        help="export the torch dialect, or leave this dimension fixed",
    ).located("", source)


def _merged_op(ops: Sequence[Op], values: Mapping[Value, Value]) -> Op:
    op = ops[0]
    copy = object.__new__(type(op))
    operands = dict(op.operand_fields)
    state: dict[str, Any] = {"source": op.source}
    for field in op.fields:
        own = op.__dict__[field]
        if isinstance(op, Composite) and field in ("rule", "push"):
            state[field] = own  # what is merged is not differentiated: its body is what it is
        elif isinstance(op, Composite) and field == "elsewhere":
            state[field] = {
                kind: merged_functions([each.__dict__[field][kind] for each in ops])
                for kind in own
                if kind == "open"
            }
        elif field not in operands:
            state[field] = merged([each.__dict__[field] for each in ops])
        elif operands[field]:
            state[field] = tuple([values.get(each, each) for each in own])
        else:
            state[field] = values.get(own, own)
    types = [merged_type([each.results[r].type for each in ops]) for r in range(len(op.results))]
    state["results"] = tuple([Value(type, copy, r) for r, type in enumerate(types)])
    copy.__dict__ = state
    return copy
