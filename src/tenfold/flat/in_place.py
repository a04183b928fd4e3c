"""Updates weights in place after all products that read them, so that XLA need not copy them first.

A weight's update and the gradient that flows on through the weight follow from the same values, and neither
from the other. As the update might come first, XLA copies the weight for the other. Here the update waits for
an element of each such product: it is the update where that element equals itself or does not.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence

from tenfold import flat
from tenfold.flat.data_ops import Reshape, Transpose
from tenfold.flat.ir import Function, Op, Value
from tenfold.flat.structured import DotGeneral
from tenfold.flat.windows import Convolution

PRODUCTS = (DotGeneral, Convolution)
WAYS = (Reshape, Transpose)  # by which a weight goes into a product


def updated_last(function: Function, donated: Sequence[tuple[int, int]]) -> Function:
    """The same program, in which a parameter gives its memory to a result after all products with it."""
    products = _products(function, [function.params[place] for place, _ in donated])
    bits = {op: 1 << i for i, op in enumerate(dict.fromkeys([op for ops in products.values() for op in ops]))}
    before: dict[Op, int] = {}  # of each op, the products that come before it, as bits
    for op in function.ops:
        seen = bits.get(op, 0)
        for operand in op.operands:
            if operand.op is not None:
                seen |= before[operand.op]
        before[op] = seen
    results = list(function.results)
    for place, i in donated:
        param, update = function.params[place], results[i]
        if update.op is None or update.type is not param.type:
            continue
        waiting = [op for op in products.get(param, ()) if not bits[op] & before[update.op]]
        if waiting:
            done = functools.reduce(operator.and_, [_is_done(op.result) for op in waiting])
            results[i] = flat.where(done, update, param)
    return Function(function.params, results, function.name)


def _products(function: Function, params: Sequence[Value]) -> dict[Value, list[Op]]:
    """Of each of the parameters, the products that it goes into."""
    source = {param: param for param in params}
    products: dict[Value, list[Op]] = {}
    for op in function.ops:
        if isinstance(op, WAYS) and op.x in source:
            source[op.result] = source[op.x]
        elif isinstance(op, PRODUCTS) and op.result.dtype.kind == "float" and op.result.numel:
            for operand in op.operands:
                if operand in source:
                    products.setdefault(source[operand], []).append(op)
    return products


def _is_done(product: Value) -> Value:
    """True, which XLA does not know of a float: it may be no number."""
    first = flat.reshape(flat.slice(product, [0] * product.rank, [1] * product.rank), ())
    return flat.eq(first, first) | flat.ne(first, first)
