"""What a product with one row takes in: the layer norm of the row, and elementwise ops on its result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenfold.base import dtypes
from tenfold.flat.data_ops import BroadcastInDim, Constant, Reshape
from tenfold.flat.elementwise import Convert
from tenfold.flat.half_products import HALVES
from tenfold.flat.ir import Op, Value
from tenfold.flat.structured import CustomCall, DotGeneral
from tenfold.ops.row_products import DTYPES, OPS, Product, multiply
from tenfold.ops.tile_kernels import TARGET, UNROLLED, call, norm
from tenfold.ops.tile_units import Graph, Unit, unwidened

LONGEST = 64  # ops after a product

Step = tuple[object, ...]


def product_unit(op: DotGeneral, graph: Graph) -> Unit | None:
    """The call that takes the place of a product with one row and of what surrounds it."""
    product = Product.of(op)
    if product is None:
        return None
    options: dict[str, Any] = {**product.division()}
    row, first = product.row, list[Value]()
    taken = _norm_of(row)
    if taken is not None and options["turns"] <= UNROLLED:
        row, *first = [unwidened(each) for each in taken.inputs]
        options["eps"] = dict(taken.backend_config)["eps"]  # type: ignore[arg-type]
    steps = _Steps(op, graph, len(first))
    result = steps.result
    graph.taken.update(steps.ops)
    options["steps"] = tuple(steps.steps)
    grid = -(-options["count"] // options["each"])

    def made(operands: Sequence[Value]) -> Sequence[Value]:
        return call(multiply, operands, [result.type], grid, product.warps, **options)

    return Unit((row, product.matrix, *first, *steps.loaded), made, ((0, result),))


def _norm_of(value: Value) -> CustomCall | None:
    """The layer norm that gives a row of half precision, rounded, or one of float32."""
    narrow = value.dtype
    while isinstance(value.op, Reshape):
        value = value.op.x
    if isinstance(value.op, Convert) and value.op.x.dtype is dtypes.float32:
        value = value.op.x
    while isinstance(value.op, Reshape):
        value = value.op.x
    source = value.op
    if not isinstance(source, CustomCall) or source.call_target_name != f"{TARGET}#{norm.__name__}":
        return None
    whole = value is source.results[0] and source.results[1].numel == 1
    return source if whole and (narrow in HALVES or narrow is dtypes.float32) else None


def _widens(op: Op) -> bool:
    return isinstance(op, Convert) and op.dtype is dtypes.float32


class _Steps:
    """The elementwise ops after a product that one result comes of, as steps of the kernel."""

    def __init__(self, product: DotGeneral, graph: Graph, before: int):
        self.product, self.graph, self.before = product, graph, before
        self.count = product.result.numel
        self.dtypes = (product.x.dtype, dtypes.float32)  # what is rounded is rounded to the matrix's
        self.loaded: list[Value] = []
        self.steps: list[Step] = []
        self.ops = self._region()
        self.result = self.ops[-1].result if self.ops else product.result
        self._numbers: dict[Value, int] = {}
        self._rounded(product.result, ("product",))
        for op in self.ops:
            self._write(op)
        if self.result.dtype in HALVES and self.steps[-1][0] == "round":
            self.steps.pop()  # as the store does

    def _region(self) -> list[Op]:
        """The ops that are taken: as many as there are, of which only the last one's result is used."""
        ops = self._reached()
        values = [self.product.result, *[op.result for op in ops]]
        for count in range(len(ops), 0, -1):
            inside, last = set(ops[:count]), ops[count - 1]
            stored = not isinstance(last, Reshape) and not _widens(last)
            if stored and not any(self._used_outside(value, inside) for value in values[:count]):
                return ops[:count]
        return []

    def _reached(self) -> list[Op]:
        """The ops that compute on the product alone and on what lies there before, in order."""
        known, found = {self.product.result}, list[Op]()
        ahead = {*self.graph.users.get(self.product.result, ())}
        while ahead and len(found) < LONGEST:
            op = min(ahead, key=self.graph.places.__getitem__)
            ahead.remove(op)
            if self._takes(op, known):
                found.append(op)
                known.add(op.result)
                ahead.update(self.graph.users.get(op.result, ()))
        return found

    def _takes(self, op: Op, known: set[Value]) -> bool:
        if op in self.graph.taken or len(op.results) != 1 or op.result.numel != self.count:
            return False
        if any(each.dtype not in self.dtypes for each in (op.result, *op.operands)):
            return False
        if isinstance(op, Convert | Reshape):
            return True
        return op.name in OPS and all(
            operand in known or self._source(operand) is not None for operand in op.operands
        )

    def _source(self, value: Value) -> Value | None:
        """What is loaded for an operand that comes from elsewhere: all of it, a row for all rows, or one
        number that is known."""
        while True:
            op = value.op
            if isinstance(op, Reshape) or (isinstance(op, Convert) and _widens(op) and op.x.dtype in HALVES):
                value = op.x
            elif isinstance(op, BroadcastInDim):
                along = op.broadcast_dimensions == (len(op.shape) - 1,) and op.x.shape == op.shape[-1:]
                if op.x.numel > 1 and not (along and op.x.numel == self.count):
                    return None
                value = op.x
            else:
                break
        if isinstance(op, Constant) and value.numel == 1:
            return value
        if value.numel != self.count or value.dtype not in DTYPES:
            return None
        return None if self.graph.depends(value, self.product) else value

    def _used_outside(self, value: Value, inside: set[Op]) -> bool:
        users = self.graph.users.get(value, ())
        return value in self.graph.results or any(user not in inside for user in users)

    def _write(self, op: Op) -> None:
        if isinstance(op, Reshape) or _widens(op):
            self._numbers[op.result] = self._number(op.operands[0])
        elif isinstance(op, Convert):
            self._rounded(op.result, None, self._number(op.x))
        else:
            self._rounded(op.result, (op.name, *[self._number(operand) for operand in op.operands]))

    def _rounded(self, value: Value, step: Step | None, number: int = -1) -> None:
        """A step, and its rounding to the value's dtype."""
        if step is not None:
            self.steps.append(step)
            number = len(self.steps) - 1
        if value.dtype in HALVES:
            self.steps.append(("round", number))
            number = len(self.steps) - 1
        self._numbers[value] = number

    def _number(self, value: Value) -> int:
        if value not in self._numbers:
            source = self._source(value)
            assert source is not None
            if source.numel == 1 and isinstance(source.op, Constant):
                self.steps.append(("constant", float(source.op.value)))
            else:
                if source not in self.loaded:
                    self.loaded.append(source)
                self.steps.append(("load", self.before + self.loaded.index(source)))
            self._numbers[value] = len(self.steps) - 1
        return self._numbers[value]
