"""Rules of opening for what has functions inside: loops, branches, composites. A function inside sees nothing
but its parameters, so the true sizes are further ones. The table is in `opening.py`."""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.flat import structured as s
from tenfold.flat.composite import Composite
from tenfold.flat.ir import Function, TensorType, Value
from tenfold.flat.open_layout import SIZE, Layouts, Sizes, physical
from tenfold.flat.open_state import Padding, Placed, extents_of


def inner(function: Function, p: Padding, passed_on: bool = False) -> Function:
    """A function inside an op at its bounds, whose last parameters are the sizes; if they are `passed_on`,
    they are its last results as well."""
    sizes = [Value(TensorType(SIZE, ())) for _ in p.sizes.known]
    inside = Padding(Sizes(p.sizes.known, sizes), p.apply)
    params = []
    for param in function.params:
        layouts = simple_layouts(param, p)
        params.append(Value(TensorType(param.dtype, tuple([physical(layout) for layout in layouts]))))
        inside.put(param, params[-1], layouts)
    inside.follow(function.ops)
    results = [inside.simple(result) for result in function.results]
    p.sizes.include(inside.sizes)
    return Function([*params, *sizes], [*results, *(sizes if passed_on else ())], function.name)


def simple_layouts(value: Value, p: Padding) -> Layouts:
    return tuple([p.sizes.simple(extent) for extent in extents_of(value)])


def sizes_of(p: Padding) -> list[Value]:
    return [p.sizes.scalar(size) for size in p.sizes.known]


def while_rule(op: s.While, p: Padding) -> Sequence[Placed]:
    carry = (*[p.simple(value) for value in op.carry], *sizes_of(p))
    loop = s.While(carry, inner(op.condition, p), inner(op.body, p, passed_on=True))
    return [(array, simple_layouts(result, p)) for array, result in zip(loop.results, op.results)]


def case_rule(op: s.Case, p: Padding) -> Sequence[Placed]:
    arguments = (*[p.simple(argument) for argument in op.arguments], *sizes_of(p))
    case = s.Case(p.at(op.index), arguments, tuple([inner(branch, p) for branch in op.branches]))
    return [
        (array, simple_layouts(result, p)) for array, result in zip(case.results, op.results, strict=True)
    ]


def composite_rule(op: Composite, p: Padding) -> Sequence[Placed]:
    """Its body; one that is for open sizes, if there is one."""
    body = op.elsewhere.get("open", op.body)
    for param, operand in zip(body.params, op.inputs, strict=True):
        p.put(param, *p.placed(operand))
    p.follow(body.ops)
    return [p.placed(result) for result in body.results]
