"""What surrounds a kernel of our own, taken into it.

XLA fuses nothing with such a call: a conversion before or after it, and the sum that a residual connection
is, would be written out and read again. A kernel loads and stores narrow floats itself, a layer norm can add
two operands, and its gradient can add to what it gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tenfold import flat
from tenfold.base import dtypes
from tenfold.flat.data_ops import BroadcastInDim, Constant, Reshape
from tenfold.flat.elementwise import Add, Convert
from tenfold.flat.ir import Function, Op, TensorType, Value
from tenfold.flat.narrow import HALVES, is_of_vectors
from tenfold.flat.structured import CustomCall, DotGeneral, Reduce
from tenfold.ops.tile_kernels import (
    TARGET,
    column_sum,
    likelihood_gradient,
    norm,
    norm_gradient,
    pointwise_gradient,
)

WIDTHS = (dtypes.float32, *HALVES)  # of sums that a norm takes


class Unit(NamedTuple):
    """A call that takes the place of ops: what it needs, and which values its results stand for."""

    inputs: tuple[Value, ...]
    call: Callable[[Sequence[Value]], Sequence[Value]]
    stands_for: tuple[tuple[int, Value], ...]  # a result, and a value of the program before


def absorbed(function: Function) -> Function:
    """The same program, whose kernels have absorbed what they can."""
    graph = _Graph(function)
    units: dict[Value, Unit] = {}
    for op in function.ops:
        if isinstance(op, CustomCall) and op.call_target_name.startswith(TARGET):
            unit = _unit(op, graph)
            units.update({value: unit for _, value in unit.stands_for})
    return _rebuilt(function, units) if units else function


class _Graph:
    """Who uses a value, and what it depends on."""

    def __init__(self, function: Function):
        self.places = {op: i for i, op in enumerate(function.ops)}
        self.results = set(function.results)
        self.users: dict[Value, list[Op]] = {}
        for op in function.ops:
            for operand in op.operands:
                self.users.setdefault(operand, []).append(op)
        self.taken: set[Op] = set()  # sums that a call has absorbed

    def depends(self, value: Value, op: Op) -> bool:
        """Whether a value is computed from a result of the op."""
        first, stack, seen = self.places[op], [value.op], set[Op]()
        while stack:
            each = stack.pop()
            if each is op:
                return True
            if each is not None and each not in seen and self.places[each] > first:
                seen.add(each)
                stack += [operand.op for operand in each.operands]
        return False

    def column_sums(self, value: Value) -> list[Value]:
        """The sums in float32 over all dimensions of a value but the last."""
        found: list[Value] = []
        for user in self.users.get(value, ()):
            if isinstance(user, Convert | Reshape):
                exact = user.result.dtype in (value.dtype, dtypes.float32)
                if exact and user.result.shape[-1:] == value.shape[-1:]:
                    found += self.column_sums(user.result)
            elif isinstance(user, Reduce) and value.dtype is dtypes.float32:
                columns = sorted(user.dimensions) == list(range(value.rank - 1))
                found += user.results if columns and _adds_up(user) else ()
        return found

    def sums_of(self, conversions: Sequence[Convert]) -> list[Value]:
        return [total for conversion in conversions for total in self.column_sums(conversion.result)]

    def only(self, users: Sequence[Op], value: Value) -> bool:
        """Whether nothing else uses a value."""
        return value not in self.results and len(users) == len(self.users[value])

    def narrowing(self, value: Value) -> list[Convert]:
        """The conversions of a float32 value to half precision."""
        found = [each for each in self.users.get(value, []) if isinstance(each, Convert)]
        return [each for each in found if each.dtype in HALVES and each.dtype is found[0].dtype]


class _Draft:
    """A call as it will be."""

    def __init__(self, op: CustomCall):
        self.inputs, self.types = list(op.inputs), list(op.result_types)
        assert not isinstance(op.backend_config, str)
        self.options: dict[str, Any] = dict(op.backend_config)
        self.stands_for = list(enumerate(op.results))
        self.sums: list[Value] = []  # of a result's columns: the last part of the second result has them
        self.aliases: tuple[tuple[int, int], ...] = ()

    def add_result(self, type: TensorType, values: Iterable[Value]) -> None:
        self.types.append(type)
        self.stands_for += [(len(self.types) - 1, value) for value in values]

    def unit(self, op: CustomCall) -> Unit:
        def call(operands: Sequence[Value]) -> Sequence[Value]:
            by_rows = (False,) * (len(operands) + len(self.types))
            config = tuple(self.options.items())
            target, types = op.call_target_name, tuple(self.types)
            made = CustomCall(tuple(operands), target, types, config, self.aliases, by_rows)
            made.__dict__["source"] = op.source
            if not self.sums:
                return made.results
            parts, width = made.results[1], self.options["width"]
            total = column_sum(parts, parts.shape[1] // width - 1, width)
            return (*made.results, *[flat.reshape(total, value.shape) for value in self.sums])

        sums = [(len(self.types) + i, value) for i, value in enumerate(self.sums)]
        return Unit(tuple(self.inputs), call, (*self.stands_for, *sums))


def _unit(op: CustomCall, graph: _Graph) -> Unit:
    draft = _Draft(op)
    name = op.call_target_name.partition("#")[2]
    if name == norm.__name__:
        _take_sum(draft, op, graph)
    elif name == norm_gradient.__name__:
        _add_to_result(draft, op, graph)
    elif name == pointwise_gradient.__name__:
        _sum_columns(draft, op, graph)
    draft.inputs = [_unwidened(operand) for operand in draft.inputs]
    for i, result in enumerate(op.results):
        conversions = graph.narrowing(result)
        if conversions and draft.types[i] is result.type and graph.only(conversions, result):
            draft.types[i] = TensorType(conversions[0].dtype, result.shape)
            draft.stands_for += [(i, conversion.result) for conversion in conversions]
    scores = draft.inputs[0]
    if name == likelihood_gradient.__name__ and draft.types[0] is scores.type and _ends(scores, op, graph):
        draft.aliases = ((0, 0),)
    return draft.unit(op)


def _take_sum(draft: _Draft, op: CustomCall, graph: _Graph) -> None:
    """Let a norm add up what it takes, if that is a sum of two tensors that lie in memory anyway."""
    total = _unwidened(op.inputs[0]).op
    if not isinstance(total, Add) or total in graph.taken or total.result.dtype not in WIDTHS:
        return
    if any(graph.depends(operand, total) for operand in op.inputs[1:]):
        return
    first, second = total.operands
    addends = _biased(second)
    if addends is None and not _is_stored(second, graph):
        return
    if not _is_stored(first, graph):
        return
    graph.taken.add(total)
    draft.inputs[0] = first
    draft.inputs += [second] if addends is None else addends
    draft.options["residual"] = True
    if addends is not None:
        draft.options["biased"] = True
    draft.add_result(total.result.type, [total.result])


def _biased(value: Value) -> list[Value] | None:
    """The product with a vector, and the bias, that a value in half precision is the rounded sum of: XLA adds
    a bias within a product of matrices, and in a kernel of its own to that of a vector."""
    rounding = value.op
    if not isinstance(rounding, Convert) or rounding.dtype not in HALVES:
        return None
    total = rounding.x.op
    if not isinstance(total, Add):
        return None
    product, bias = total.x, total.y.op
    source = product
    while isinstance(source.op, Reshape):
        source = source.op.x
    whole = isinstance(source.op, DotGeneral) and is_of_vectors(source.op)
    if not whole or not isinstance(bias, BroadcastInDim) or bias.x.rank != 1:
        return None
    along_columns = bias.broadcast_dimensions == (product.rank - 1,) and bias.x.shape == product.shape[-1:]
    return [product, bias.x] if along_columns else None


def _add_to_result(draft: _Draft, op: CustomCall, graph: _Graph) -> None:
    """Let the gradient of a norm add the other cotangent of what the norm took, and round the sum, too."""
    to_x = op.results[0]
    users = graph.users.get(to_x, [])
    if len(users) != 1 or to_x in graph.results or not isinstance(users[0], Add) or users[0] in graph.taken:
        return
    total = users[0]
    other = total.operands[1] if total.operands[0] is to_x else total.operands[0]
    if other is to_x or other.type is not to_x.type or not _is_stored(other, graph):
        return
    if graph.depends(other, op):
        return
    graph.taken.add(total)
    draft.inputs.append(other)
    draft.options["residual"] = True
    draft.stands_for[0] = (0, total.result)
    conversions = graph.narrowing(total.result)
    if conversions:
        draft.options["narrow"] = True
        narrow = TensorType(conversions[0].dtype, to_x.shape)
        draft.add_result(narrow, [conversion.result for conversion in conversions])
        draft.sums = graph.sums_of(conversions)


def _sum_columns(draft: _Draft, op: CustomCall, graph: _Graph) -> None:
    """Let the gradient of an elementwise function add up the columns of what it rounds."""
    conversions = graph.narrowing(op.results[0])
    if conversions and graph.only(conversions, op.results[0]):
        draft.sums = graph.sums_of(conversions)
        if draft.sums:
            groups = -(-draft.options["rows"] // draft.options["each"])
            draft.options["sums"] = True
            draft.add_result(TensorType(dtypes.float32, (groups, draft.options["width"])), [])


def _adds_up(op: Reduce) -> bool:
    """Whether a reduction is a sum, from zero."""
    start = op.inits[0].op
    zero = isinstance(start, Constant) and not np.any(start.value)
    return len(op.inputs) == 1 and zero and [type(each) for each in op.body.ops] == [Add]


def _unwidened(value: Value) -> Value:
    op = value.op
    if isinstance(op, Convert) and value.dtype is dtypes.float32 and op.x.dtype in HALVES:
        return op.x
    return value


def _is_stored(value: Value, graph: _Graph) -> bool:
    """Whether a value lies in memory anyway: it is a product, or comes from one by a bias alone, or a kernel
    takes or gives it."""
    value = _unwidened(value)
    op = value.op
    if op in graph.taken or isinstance(op, CustomCall | DotGeneral) or op is None:
        return True
    users = graph.users.get(value, [])
    users = [
        *users,
        *[user for each in users if isinstance(each, Convert) for user in graph.users.get(each.result, ())],
    ]
    if any(isinstance(user, CustomCall) for user in users):
        return True
    if isinstance(op, Reshape):
        return _is_stored(op.x, graph)
    if isinstance(op, Add) and any(isinstance(operand.op, BroadcastInDim) for operand in op.operands):
        return any(_is_stored(operand, graph) for operand in op.operands)
    return False


def _ends(value: Value, op: CustomCall, graph: _Graph) -> bool:
    """Whether a call is the last to read a value, whose memory it may write to."""
    if value.op is None or value in graph.results:
        return False
    readers, seen = [*graph.users[value]], set[Op]()
    while readers:
        reader = readers.pop()
        if reader is op or reader in seen:
            continue
        seen.add(reader)
        if isinstance(reader, Convert | Reshape) and reader.result not in graph.results:
            readers += graph.users.get(reader.result, [])
        elif not any(graph.depends(operand, reader) for operand in op.inputs):
            return False
    return True


def _rebuilt(function: Function, units: dict[Value, Unit]) -> Function:
    """The program with units in place of the ops that give their values, however those are ordered."""
    values: dict[Value, Value] = {param: param for param in function.params}
    stack = list(function.results)
    while stack:
        value = stack[-1]
        if value in values:
            stack.pop()
            continue
        unit = units.get(value)
        op = value.op
        assert op is not None
        missing = [each for each in (unit.inputs if unit else op.operands) if each not in values]
        if missing:
            stack += missing
            continue
        stack.pop()
        if unit is None:
            copy = op.replace(values, None)
            values.update(zip(op.results, copy.results, strict=True))
        else:
            results = unit.call([values[each] for each in unit.inputs])
            values.update({stood: results[i] for i, stood in unit.stands_for})
    return Function(function.params, [values[result] for result in function.results], function.name)
