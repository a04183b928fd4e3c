"""Examples for the help pages of the R package's operators: the samples of their rows, as R writes them."""

from __future__ import annotations

import itertools
from typing import Any

from tenfold.base.dtypes import BY_NAME, DType, complex64, float32, int64
from tenfold.base.errors import TenfoldError
from tenfold.capi.bindings_r import Form, ROperator, argument_names
from tenfold.capi.r_literals import literal
from tenfold.capi.r_places import counts_from_one
from tenfold.flat.ir import TensorType
from tenfold.ops.samples import Matrices, S, T
from tenfold.ops.schema import MISSING, Argument, Schema
from tenfold.ops.table import SLOT, TABLE, Row

__all__ = ["example"]

_FLOATS = (None, "float32", "float64")


class Untold(Exception):
    """A value that an example has no short way of writing."""


def example(op: ROperator) -> str | None:
    """A call of an operator; None where neither its row nor its schema gives one that fits in a line."""
    name = op.name if op.name in TABLE else op.name.removesuffix("_")  # a row serves its form in place
    rows = {row.qualified: row for row in TABLE.get(name, ()) if not name.startswith("_")}
    for form in op.forms:
        row = rows.get(form.schema.qualified.replace(op.name, name, 1))
        if row is None:
            continue
        dtypes = (int64, float32) if row.host else (float32, int64, complex64)
        for sample, dtype in itertools.product(_samples(row, form), dtypes):
            try:
                written = _call(op, form, sample, dtype)
            except Untold:
                continue
            if len(written) < 200 and _is_valid(row, sample, dtype, in_place=name != op.name):
                return written
    return None


def _is_valid(row: Row, sample: S, dtype: DType, in_place: bool) -> bool:
    """Whether the row infers a type for such arguments, in place of the first one's shape: some samples are
    there to be refused."""
    if row.random or row.host:
        return True  # they lower with more than their arguments, or not at all
    types: list[TensorType] = []

    def placed(value: Any) -> Any:
        if isinstance(value, T):
            types.append(TensorType(BY_NAME[value.dtype] if value.dtype else dtype, value.shape))
            return SLOT
        return tuple(map(placed, value)) if isinstance(value, (tuple, list)) else value

    arguments = row.schema.arguments
    given = {**dict(zip([a.name for a in arguments], sample.args, strict=False)), **sample.kwargs}
    if any(a.name not in given and a.default is MISSING for a in arguments):
        return False
    values = [placed(given.get(a.name, a.default)) for a in arguments]
    try:
        call = row.call(tuple(types), tuple(values))
        return not in_place or (
            isinstance(sample.args[0], T) and call.result_types[0].shape == types[0].shape
        )
    except (TenfoldError, TypeError, ValueError, LookupError, ArithmeticError, AttributeError):
        return False


def _samples(row: Row, form: Form) -> list[S]:
    if row.samples:
        samples = row.samples() if callable(row.samples) else row.samples
        return [
            sample
            for sample in samples
            if all(_usual(value) for value in (*sample.args, *sample.kwargs.values()))
        ]
    needed = [a for a in form.schema.arguments if a.default is MISSING and not a.type.optional]
    alike = bool(needed) and all(a.type.kind == "Tensor" and not a.type.is_list for a in needed)
    return (
        [S(*[T(2, 3) for _ in needed])]
        if alike and needed == list(form.schema.arguments[: len(needed)])
        else []
    )


def _usual(value: Any) -> bool:
    """Whether an argument shows what an operator is for: not an empty tensor, nor one of a rare type."""
    if isinstance(value, T):
        return 0 not in value.shape and (value.dtype in _FLOATS or value.dtype in ("int64", "bool"))
    return all(_usual(each) for each in value) if isinstance(value, (tuple, list)) else True


def _call(op: ROperator, form: Form, sample: S, dtype: DType) -> str:
    arguments = form.schema.arguments
    names = dict(zip([a.name for a in arguments], argument_names(form), strict=True))
    known = {a.name: a for a in arguments}
    given = [(a, value) for a, value in zip(arguments, sample.args, strict=False)]
    given += [(known[name], value) for name, value in sample.kwargs.items() if name in known]
    own = None if op.own_signature is None else _parameters(op.own_signature)
    if own is not None and not {names[a.name] for a, _ in given} >= {name for name in own if own[name]}:
        raise Untold
    words = []
    for place, (argument, value) in enumerate(given):
        if value is None and argument.type.optional:
            continue
        if own is not None and names[argument.name] not in own:
            raise Untold
        written = _told(form.schema, argument, value, dtype)
        by_place = (place < min(2, len(sample.args)) and own is None) or (
            op.takes_sizes and argument.name == "size"
        )
        words.append(written if by_place else f"{names[argument.name]} = {written}")
    return f"{op.r_name}({', '.join(words)})"


def _parameters(signature: str) -> dict[str, bool]:
    """The parameters of a function of R by name, and whether each must be given."""
    parts = [part.partition(" = ") for part in signature.split(", ")]
    return {name: not default and name != "..." for name, _, default in parts}


def _told(schema: Schema, argument: Argument, value: Any, dtype: DType) -> str:
    counted = counts_from_one(schema, argument)
    if isinstance(value, T):
        return _tensor(value, counted, dtype)
    if isinstance(value, (tuple, list)):
        entries = [_told(schema, argument, each, dtype) for each in value]
        if argument.type.kind == "Tensor":
            return f"list({', '.join(entries)})"
        return entries[0] if len(entries) == 1 else f"c({', '.join(entries)})" if entries else "integer(0)"
    written = literal(value, counted)
    if written is None:
        raise Untold
    return written


def _tensor(value: T, counted: bool, dtype: DType) -> str:
    kind = value.dtype or dtype.name
    sizes = ", ".join(map(str, value.shape))
    if isinstance(value, Matrices) and value.positive:
        return f"torch_eye({value.shape[-1]})"
    if kind == "bool":
        return f"torch_rand({sizes}) > 0.5"
    if kind == "int64":
        low, high = value.low or 0, 4 if value.high is None else value.high
        if not sizes or high <= low or (counted and low < 0):
            raise Untold
        return f'torch_randint({int(low) + counted}, {int(high) + counted}, c({sizes}), dtype = "int64")'
    typed = "" if kind == "float32" else f', dtype = "{kind}"'
    if value.low is not None or value.high is not None:
        low = 0 if value.low is None else value.low
        high = low + 1 if value.high is None else value.high
        if not sizes:
            return f"torch_scalar_tensor({(low + high) / 2:g})"
        scaled = f"torch_rand({sizes}{typed})" + (f" * {high - low:g}" if high - low != 1 else "")
        return scaled + (f" + {low:g}" if low > 0 else f" - {-low:g}" if low < 0 else "")
    return f"torch_randn({sizes}{typed})" if sizes else "torch_scalar_tensor(0.5)"
