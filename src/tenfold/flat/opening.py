"""Open sizes: a function whose sizes are open made into one at their bounds, by a table with one rule per
FlatIR op.

The function is one of several recordings merged (`merging.py`). The new one takes arrays of the bounds' sizes
and the true sizes as further arguments, and gives arrays of the bounds' sizes: the caller pads and cuts. What
lies in the padding may be anything, NaN included: a rule keeps it from reaching a valid element, by a mask
where its op reads across an open dimension. An op that has no rule, or whose rule does not know what to do
with an open dimension, is refused: then the program is compiled for its size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tenfold.base.errors import UnsupportedError
from tenfold.flat import (
    data_ops as m,
    elementwise as e,
    open_control as control,
    open_moves as moves,
    open_rules as rules,
    structured as s,
    windows as w,
)
from tenfold.flat.build import convert
from tenfold.flat.composite import Composite
from tenfold.flat.indexed import Gather, Scatter
from tenfold.flat.ir import Function, Op, TensorType, Value, in_order
from tenfold.flat.open_layout import SIZE, Extent, Sizes, physical
from tenfold.flat.open_state import Padding, Rule, is_open
from tenfold.flat.sizes import Open


class Opened(NamedTuple):
    """A function at the bounds of its sizes. Its last parameters are the sizes; `shapes` has for each result
    its extents, by numbers and by what they were in each recording. `uncertain`: the formula of a number
    in it may not hold at other sizes."""

    function: Function
    shapes: tuple[tuple[Extent, ...], ...]
    uncertain: bool


class Counted(NamedTuple):
    """A size that depends on data: its symbol, and the most that arrays have room for."""

    symbol: Open
    bound: int


def opened(
    function: Function, ranges: dict[Open, tuple[int, int]], counted: Sequence[Counted] = ()
) -> Opened:
    """A merged function at its bounds; `ranges` says for each open size from where to where it goes. Its last
    results are the sizes that are `counted`."""
    sizes = [Value(TensorType(SIZE, ())) for _ in ranges]
    bounds = {each.symbol: (0, each.bound) for each in counted}
    padding = Padding(Sizes({**ranges, **bounds}, sizes), _apply)
    params = []
    for param in function.params:
        layouts = tuple([padding.sizes.simple(extent) for extent in param.type.shape])
        value = Value(TensorType(param.type.dtype, tuple([physical(layout) for layout in layouts])))
        value.name = param.name
        params.append(value)
        padding.put(param, value, layouts)
    _follow(function, padding, counted)
    results = [padding.simple(result) for result in function.results]
    shapes = tuple([tuple(result.type.shape) for result in function.results])
    return Opened(Function([*params, *sizes], results, function.name), shapes, padding.sizes.uncertain)


def _follow(function: Function, padding: Padding, counted: Sequence[Counted]) -> None:
    """Open all ops. What counts a size comes first: others may need it that do not depend on its results."""
    ops = function.ops
    done: set[Op] = set()
    counts = function.results[len(function.results) - len(counted) :]
    for each, count in zip(counted, counts):
        needed = set(in_order([count])) - done
        padding.follow([op for op in ops if op in needed])
        done |= needed
        padding.sizes.scalars[each.symbol] = convert(padding.at(count), SIZE)
    padding.follow([op for op in ops if op not in done])


def _apply(op: Op, padding: Padding) -> Sequence[tuple[Value, Any]]:
    rule = OPEN.get(type(op))
    if rule is None:
        raise UnsupportedError(f"{op.name.partition('.')[2]} has no form for open sizes")
    return rule(op, padding)


ELEMENTWISE = [
    member
    for member in vars(e).values()
    if isinstance(member, type) and issubclass(member, Op) and member.name
]

OPEN: dict[type[Op], Rule] = {
    **dict.fromkeys(ELEMENTWISE, rules.elementwise),
    e.BitcastConvert: rules.bitcast,
    e.OptimizationBarrier: rules.barrier,
    m.Constant: rules.literal,
    m.Iota: rules.counted,
    m.BroadcastInDim: moves.broadcast_rule,
    m.Reshape: moves.reshape_rule,
    m.Transpose: moves.transpose_rule,
    m.Slice: moves.slice_rule,
    m.DynamicSlice: moves.dynamic_slice_rule,
    m.DynamicUpdateSlice: moves.dynamic_update_slice_rule,
    m.Concatenate: moves.concatenate_rule,
    m.Pad: moves.pad_rule,
    m.Reverse: moves.reverse_rule,
    Gather: rules.gather_rule,
    Scatter: rules.scatter_rule,
    s.DotGeneral: rules.dot_general_rule,
    w.Convolution: rules.convolution_rule,
    s.Reduce: rules.reduce_rule,
    w.ReduceWindow: rules.reduce_window_rule,
    s.Sort: rules.sort_rule,
    s.RngBitGenerator: rules.random_rule,
    s.TopK: rules.batch_rule,
    s.Fft: rules.batch_rule,
    s.Cholesky: rules.batch_rule,
    s.TriangularSolve: rules.batch_rule,
    s.While: control.while_rule,
    s.Case: control.case_rule,
    Composite: control.composite_rule,
    s.Check: rules.check_rule,
}

__all__ = ["OPEN", "Opened", "is_open", "opened"]
