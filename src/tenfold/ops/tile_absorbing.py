"""What surrounds a kernel of our own, taken into it.

XLA fuses nothing with such a call: a conversion before or after it, and the sum that a residual connection
is, would be written out and read again. A kernel loads and stores narrow floats itself, a layer norm can add
two operands, and its gradient can add to what it gives. Attention over a cache can write the next row of the
cache. `ops/row_fusing.py` does the same for products with one row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tenfold import flat
from tenfold.base import dtypes
from tenfold.flat.data_ops import BroadcastInDim, Reshape
from tenfold.flat.elementwise import Add, Clamp, Convert
from tenfold.flat.half_products import HALVES, is_of_vectors
from tenfold.flat.indexed import Scatter
from tenfold.flat.ir import Function, Op, TensorType, Value
from tenfold.flat.structured import CustomCall, DotGeneral, Reduce
from tenfold.ops.cache_rows import is_zero, rows_written, run_of
from tenfold.ops.row_attention import attend
from tenfold.ops.row_fusing import product_unit
from tenfold.ops.tile_kernels import (
    LONG_STRIP,
    LONG_WARPS,
    TARGET,
    column_sum,
    likelihood,
    likelihood_and_gradient,
    likelihood_gradient,
    norm,
    norm_gradient,
    pointwise_gradient,
)
from tenfold.ops.tile_units import Graph, Unit, rebuilt, unwidened

WIDTHS = (dtypes.float32, *HALVES)  # of sums that a norm takes


def absorbed(function: Function) -> Function:
    """The same program, whose kernels have absorbed what they can."""
    graph = Graph(function)
    units: dict[Value, Unit] = {}
    for op in function.ops:
        if op in graph.taken:
            continue
        if isinstance(op, CustomCall) and op.call_target_name.startswith(TARGET):
            unit: Unit | None = _unit(op, graph)
        else:
            unit = product_unit(op, graph) if isinstance(op, DotGeneral) else None
        if unit is not None:
            units.update({value: unit for _, value in unit.stands_for})
    return rebuilt(function, units) if units else function


class _Draft:
    """A call as it will be."""

    def __init__(self, op: CustomCall):
        self.target = op.call_target_name
        self.inputs, self.types = list(op.inputs), list(op.result_types)
        assert not isinstance(op.backend_config, str)
        self.options: dict[str, Any] = dict(op.backend_config)
        self.stands_for = list(enumerate(op.results))
        self.sums: list[Value] = []  # of a result's columns: the last part of the second result has them
        self.aliases: tuple[tuple[int, int], ...] = ()

    def add_result(self, type: TensorType, values: Iterable[Value]) -> None:
        self.types.append(type)
        self.stands_for += [(len(self.types) - 1, value) for value in values]

    def narrow(self, place: int, result: Value, graph: Graph) -> None:
        """Let the call round a result, if only that is used."""
        conversions = graph.narrowing(result)
        if conversions and self.types[place] is result.type and graph.only(conversions, result):
            self.types[place] = TensorType(conversions[0].dtype, result.shape)
            self.stands_for += [(place, conversion.result) for conversion in conversions]

    def write_over_scores(self, place: int, ops: Sequence[Op], graph: Graph) -> None:
        """Let a result lie where the first operand does, if these ops are the last to read that."""
        scores = self.inputs[0]
        if self.types[place] is scores.type and _ends(scores, ops, self.inputs, graph):
            self.aliases = ((place, 0),)

    def unit(self, op: CustomCall) -> Unit:
        def call(operands: Sequence[Value]) -> Sequence[Value]:
            by_rows = (False,) * (len(operands) + len(self.types))
            config = tuple(self.options.items())
            target, types = self.target, tuple(self.types)
            made = CustomCall(tuple(operands), target, types, config, self.aliases, by_rows)
            made.__dict__["source"] = op.source
            if not self.sums:
                return made.results
            parts, width = made.results[1], self.options["width"]
            total = column_sum(parts, parts.shape[1] // width - 1, width)
            return (*made.results, *[flat.reshape(total, value.shape) for value in self.sums])

        sums = [(len(self.types) + i, value) for i, value in enumerate(self.sums)]
        return Unit(tuple(self.inputs), call, (*self.stands_for, *sums))


def _unit(op: CustomCall, graph: Graph) -> Unit:
    draft = _Draft(op)
    name = op.call_target_name.partition("#")[2]
    if name == norm.__name__:
        _take_sum(draft, op, graph)
    elif name == norm_gradient.__name__:
        _add_to_result(draft, op, graph)
    elif name == pointwise_gradient.__name__:
        _sum_columns(draft, op, graph)
    elif name == attend.__name__:
        _take_writes(draft, op, graph)
    elif name == likelihood.__name__:
        _take_gradient(draft, op, graph)
    draft.inputs = [unwidened(operand) for operand in draft.inputs]
    for i, result in enumerate(op.results):
        draft.narrow(i, result, graph)
    if name == likelihood_gradient.__name__:
        draft.write_over_scores(0, [op], graph)
    return draft.unit(op)


def _take_sum(draft: _Draft, op: CustomCall, graph: Graph) -> None:
    """Let a norm add up what it takes, if that is a sum of two tensors that lie in memory anyway."""
    total = unwidened(op.inputs[0]).op
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
    graph.unite(op, total)
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


def _add_to_result(draft: _Draft, op: CustomCall, graph: Graph) -> None:
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
    graph.unite(op, total)
    draft.inputs.append(other)
    draft.options["residual"] = True
    draft.stands_for[0] = (0, total.result)
    conversions = graph.narrowing(total.result)
    if conversions:
        draft.options["narrow"] = True
        narrow = TensorType(conversions[0].dtype, to_x.shape)
        draft.add_result(narrow, [conversion.result for conversion in conversions])
        draft.sums = _sums_of(conversions, graph)


def _sum_columns(draft: _Draft, op: CustomCall, graph: Graph) -> None:
    """Let the gradient of an elementwise function add up the columns of what it rounds."""
    conversions = graph.narrowing(op.results[0])
    if conversions and graph.only(conversions, op.results[0]):
        draft.sums = _sums_of(conversions, graph)
        if draft.sums:
            groups = -(-draft.options["rows"] // draft.options["each"])
            draft.options["sums"] = True
            draft.add_result(TensorType(dtypes.float32, (groups, draft.options["width"])), [])


def _take_writes(draft: _Draft, op: CustomCall, graph: Graph) -> None:
    """Let attention write the row of its keys, and that of its values, that the program writes before it."""
    writes = []
    for place, name in ((1, "key"), (2, "value")):
        cache = unwidened(op.inputs[place])
        write = cache.op
        rows = rows_written(write) if isinstance(write, Scatter) and write not in graph.taken else None
        if rows is None:
            continue
        assert isinstance(write, Scatter)
        others = [operand for i, operand in enumerate(draft.inputs) if i != place]
        if any(graph.depends(operand, write) for operand in others):
            continue
        graph.unite(op, write)
        draft.inputs[place] = write.inputs[0]
        writes.append((name, len(draft.inputs), rows.heads))
        draft.inputs += [rows.numbers, write.updates[0]]
        draft.add_result(cache.type, [cache])
        draft.aliases = (*draft.aliases, (len(draft.types) - 1, place))
    if writes:
        draft.options["writes"] = tuple(writes)
    starts = []
    for place in (0, *[number + 1 for _, number, _ in writes]):
        draft.inputs[place], start = run_of(unwidened(draft.inputs[place]))
        if start:
            starts.append((place, start))
    if starts:
        draft.options["starts"] = tuple(starts)


def _take_gradient(draft: _Draft, op: CustomCall, graph: Graph) -> None:
    """Let the likelihood of a row give the row's gradient as well, if what flows back is known before: then
    the row is read from memory once."""
    gradient = next((user for user in graph.users.get(op.inputs[0], ()) if _is_gradient(user, op)), None)
    if gradient is None or gradient in graph.taken or graph.depends(gradient.operands[-1], op):
        return
    assert isinstance(gradient, CustomCall)
    graph.unite(op, gradient)
    x, target = (unwidened(operand) for operand in op.inputs)
    draft.target = f"{TARGET}#{likelihood_and_gradient.__name__}"
    draft.inputs = [x, target, gradient.inputs[-1]]
    draft.options |= {"strip": LONG_STRIP, "warps": LONG_WARPS}
    (result,) = gradient.results
    draft.add_result(result.type, [result])
    draft.narrow(len(draft.types) - 1, result, graph)
    draft.write_over_scores(len(draft.types) - 1, [op, gradient], graph)


def _is_gradient(user: Op, likelihood: CustomCall) -> bool:
    """Whether an op is the gradient of this likelihood."""
    if not isinstance(user, CustomCall):
        return False
    if user.call_target_name != f"{TARGET}#{likelihood_gradient.__name__}":
        return False
    of_rows = (*likelihood.inputs, *likelihood.results[1:])
    return all(_source(own) is _source(other) for own, other in zip(user.inputs, of_rows, strict=False))


def _source(value: Value) -> Value:
    """What a value is in another shape, or within bounds."""
    while isinstance(value.op, Reshape | Clamp):
        value = value.op.x
    return value


def _column_sums(value: Value, graph: Graph) -> list[Value]:
    """The sums in float32 over all dimensions of a value but the last."""
    found: list[Value] = []
    for user in graph.users.get(value, ()):
        if isinstance(user, Convert | Reshape):
            exact = user.result.dtype in (value.dtype, dtypes.float32)
            if exact and user.result.shape[-1:] == value.shape[-1:]:
                found += _column_sums(user.result, graph)
        elif isinstance(user, Reduce) and value.dtype is dtypes.float32:
            columns = sorted(user.dimensions) == list(range(value.rank - 1))
            found += user.results if columns and _adds_up(user) else ()
    return found


def _sums_of(conversions: Sequence[Convert], graph: Graph) -> list[Value]:
    return [total for conversion in conversions for total in _column_sums(conversion.result, graph)]


def _adds_up(op: Reduce) -> bool:
    """Whether a reduction is a sum, from zero."""
    zero = is_zero(op.inits[0])
    return len(op.inputs) == 1 and zero and [type(each) for each in op.body.ops] == [Add]


def _is_stored(value: Value, graph: Graph) -> bool:
    """Whether a value lies in memory anyway: it is a product, or comes from one by a bias alone, or a kernel
    takes or gives it."""
    value = unwidened(value)
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


def _ends(value: Value, ops: Sequence[Op], inputs: Sequence[Value], graph: Graph) -> bool:
    """Whether a call with these inputs, which takes the place of some ops, is the last to read a value."""
    if value.op is None or value in graph.results:
        return False
    readers, seen = [*graph.users[value]], set[Op]()
    while readers:
        reader = readers.pop()
        if reader in ops or reader in seen:
            continue
        seen.add(reader)
        if isinstance(reader, Convert | Reshape) and reader.result not in graph.results:
            readers += graph.users.get(reader.result, [])
        elif not any(graph.depends(operand, reader) for operand in inputs):
            return False
    return True
