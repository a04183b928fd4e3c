"""How long XLA would fold the constants of a module.

XLA's constant folding evaluates reductions and windows one element at a time, at a million elements a second,
as long as their results are small: the sum of a range of 40 million numbers takes it 40 seconds, a window of
two billion elements half an hour. Modules with such ops are compiled without that pass.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

MOST = 500_000  # elements that XLA may evaluate: half a second
WINDOWS = ("stablehlo.reduce_window", "stablehlo.select_and_scatter")
VARYING = ("stablehlo.rng", "stablehlo.rng_bit_generator", "stablehlo.custom_call")


def is_slow(functions: Sequence[Any]) -> bool:
    """Whether the reductions and windows of constants in these functions have more elements than XLA may
    evaluate. The functions stand in the order of their calls, `main` first."""
    total = 0
    constant: dict[str, set[int]] = {}  # of each function, the arguments that some call gives constants for
    for function in functions:
        arguments = function.regions[0].blocks[0].arguments
        given = constant.get(function.attributes["sym_name"].value, ())
        varying = {argument for i, argument in enumerate(arguments) if i not in given}
        for op in _ops(function):
            if op.name == "stablehlo.while":
                varying.update(_changing(op, varying))
            elif op.name == "func.call":
                places = {i for i, operand in enumerate(op.operands) if operand not in varying}
                constant.setdefault(op.attributes["callee"].value, set()).update(places)
            if op.name in VARYING or any(operand in varying for operand in op.operands):
                varying.update(op.results)
            else:
                total += elements(op)
    return total > MOST


def elements(op: Any) -> int:
    """How many elements XLA evaluates to fold an op, as far as it does so one by one."""
    if op.name == "stablehlo.reduce":
        return _numel(op.operands[0])
    if op.name not in WINDOWS:
        return 0
    # XLA looks at one window of a source without elements; a length of 2^63 is written as -2^63.
    windows = max(_numel(op.operands[1] if op.name == WINDOWS[1] else op.results[0]), 1)
    return windows * math.prod([abs(extent) for extent in op.attributes["window_dimensions"]])


def _ops(function: Any) -> list[Any]:
    """The ops of a function, those in regions after those around them."""
    found, left = [], [function]
    while left:
        for region in left.pop().regions:
            for block in region.blocks:
                inside = [each.operation for each in block.operations]
                found += inside
                left += [op for op in inside if len(op.regions)]
    return found


def _changing(loop: Any, varying: set[Any]) -> set[Any]:
    """The values of a loop's regions that are not one constant in all its rounds."""
    body = loop.regions[1].blocks[0]
    after = list(body.operations)[-1].operation.operands
    kept = [
        operand not in varying and result == argument
        for operand, result, argument in zip(loop.operands, after, body.arguments, strict=True)
    ]
    return {
        argument
        for region in loop.regions
        for argument, fixed in zip(region.blocks[0].arguments, kept, strict=True)
        if not fixed
    }


def _numel(value: Any) -> int:
    return math.prod([max(extent, 1) for extent in value.type.shape])
