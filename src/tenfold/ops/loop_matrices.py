"""Matrices that a loop multiplies rows with and never changes, transposed once before it.

A row is multiplied sooner with a matrix that lies by its rows, each of which one program reads in one piece,
than with one by columns (`ops/row_products.py`). A loop that generates text does so at every token.
"""

from __future__ import annotations

from tenfold import flat
from tenfold.flat.ir import Function, Op, Value, replay
from tenfold.flat.structured import DotDimensions, DotGeneral, While
from tenfold.ops.row_products import Product


def transposed_before_loops(function: Function, device: str) -> Function:
    """The program whose loops take such matrices transposed."""
    if not any(isinstance(op, While) for op in function.ops):
        return function
    values: dict[Value, Value] = {}
    for op in function.ops:
        copy = op.replace(values) if any(operand in values for operand in op.operands) else op
        results = _by_rows(copy, device) if isinstance(copy, While) else copy.results
        if copy is not op or results is not op.results:
            values.update(zip(op.results, results, strict=True))
    return Function(
        function.params, [values.get(result, result) for result in function.results], function.name
    )


def _by_rows(op: While, device: str) -> tuple[Value, ...]:
    body = op.body.expanded(device)
    unchanged = {
        param: i
        for i, (param, result) in enumerate(zip(body.params, body.results, strict=True))
        if param is result
    }
    products: dict[Op, Value] = {}
    for each in body.ops:
        product = Product.of(each) if isinstance(each, DotGeneral) else None
        if product is not None and not product.by_rows and product.matrix in unchanged:
            products[each] = product.matrix
    if not products:
        return op.results
    matrices = list(dict.fromkeys(products.values()))
    turned = [flat.transpose(op.carry[unchanged[matrix]], (1, 0)) for matrix in matrices]
    inner = {matrix: Value(before.type) for matrix, before in zip(matrices, turned, strict=True)}
    values: dict[Value, Value] = {}
    for each in body.ops:
        if each in products:
            assert isinstance(each, DotGeneral)
            numbers = DotDimensions((), (), each.dot_dimension_numbers.lhs_contracting_dimensions, (1,))
            row = values.get(each.x, each.x)
            values[each.result] = DotGeneral(row, inner[products[each]], numbers, each.result.dtype).result
        elif any(operand in values for operand in each.operands):
            replay((each,), values)
    results = [values.get(result, result) for result in body.results]
    carried = list(inner.values())
    further = [Value(matrix.type) for matrix in carried]
    condition = Function([*op.condition.params, *further], op.condition.results, op.condition.name)
    whole = Function([*body.params, *carried], [*results, *carried], body.name)
    made = While((*op.carry, *turned), condition, whole)
    made.__dict__["source"] = op.source
    return made.results[: len(op.carry)]
