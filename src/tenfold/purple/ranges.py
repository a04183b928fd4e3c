"""Which integers fit in 64 bits: an interval for each variable that is one, over the whole program.

An integer of the language has any size, so a sum of two is a tagged word that may point to a long one. Where
the interval of a result lies within 64 bits it is a plain number of C instead. Bounds are rounded outwards to
a few rungs, so that a loop's soon stop growing. Counting is no growth: what is only ever changed by small
constants needs months to leave 64 bits, and is checked all the same."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence

from tenfold.purple.numerals import LARGEST, SMALLEST

Interval = tuple[int, int]

COUNTED = 1 << 61  # what counting reaches at most
STEP = 256  # the most that a step of counting adds
RUNGS = (0, 1 << 8, 1 << 16, 1 << 24, 1 << 31, 1 << 40, 1 << 47, 1 << 53, 1 << 62, LARGEST)
SIZE = (-1, 1 << 47)  # of what fits in memory
ANY = (SMALLEST, LARGEST)


def of_literal(value: int) -> Interval:
    return value, value


def is_small(interval: Interval) -> bool:
    """Whether the tagged word holds every number of an interval."""
    return interval[0] >= -(1 << 62) and interval[1] < 1 << 62


def join(a: Interval | None, b: Interval | None) -> Interval | None:
    if a is None or b is None:
        return b if a is None else a
    return min(a[0], b[0]), max(a[1], b[1])


def rounded(interval: Interval) -> Interval:
    return -_rung(-interval[0], SMALLEST), _rung(interval[1], LARGEST)


def _rung(bound: int, last: int) -> int:
    if bound == COUNTED:
        return bound
    if bound < 0:
        below = bisect_left(RUNGS, -bound + 1) - 1
        return -RUNGS[below]
    return RUNGS[bisect_left(RUNGS, bound)] if bound <= LARGEST else abs(last)


def result(name: str, operands: Sequence[Interval], constant: Sequence[bool]) -> Interval | None:
    """The interval of what an operation gives; None where 64 bits may not hold it."""
    if len(operands) == 2 and name in ("+", "-"):
        counted = _counted(name, operands, constant)
        if counted is not None:
            return counted
    rule = RULES.get((name, len(operands)))
    if rule is not None:
        found = rule(*operands)
    elif name in FOLDED and operands:
        found = operands[0]
        for operand in operands[1:]:
            found = RULES[name, 2](found, operand)
    else:
        return None
    return found if found[0] >= SMALLEST and found[1] <= LARGEST else None


def _counted(name: str, operands: Sequence[Interval], constant: Sequence[bool]) -> Interval | None:
    """The interval of a counter after a step, which does not go on growing."""
    step = operands[1] if constant[1] else operands[0] if constant[0] and name == "+" else None
    counter = operands[0] if constant[1] else operands[1]
    if step is None or all(constant) or abs(step[0]) > STEP:
        return None
    if counter[0] < -COUNTED or counter[1] > COUNTED:
        return None
    by = step[0] if name == "+" else -step[0]
    low, high = counter[0] + by, counter[1] + by
    if low < -(1 << 53):
        low = -COUNTED
    if high > 1 << 53:
        high = COUNTED
    return low, high


def _product(a: Interval, b: Interval) -> Interval:
    corners = [x * y for x in a for y in b]
    return min(corners), max(corners)


def _quotient(a: Interval, b: Interval) -> Interval:
    most = max(-a[0], a[1])
    return (0 if a[0] >= 0 and b[0] >= 0 else -most), most


def _remainder(a: Interval, b: Interval) -> Interval:
    most = min(max(-b[0], b[1]) - 1, max(-a[0], a[1]))
    return (-max(most, 0) if a[0] < 0 else 0), max(most, 0)


def _modulo(a: Interval, b: Interval) -> Interval:
    return min(b[0] + 1, 0), max(b[1] - 1, 0)


def _bits(a: Interval, b: Interval) -> Interval:
    length = max(bound.bit_length() for bound in (*a, *b))
    return (0 if a[0] >= 0 and b[0] >= 0 else -(1 << length)), (1 << length) - 1


def _magnitude(a: Interval) -> Interval:
    return 0, max(-a[0], a[1])


def _shift(a: Interval, b: Interval) -> Interval:
    if b[1] > 62:
        return SMALLEST - 1, LARGEST + 1
    scale = 1 << max(b[1], 0)
    low, high = min(a[0] * scale, a[0]), max(a[1] * scale, a[1])
    if b[0] < 0:  # to the right, towards 0 from above and -1 from below
        low, high = (min(low, 0), high) if a[1] >= 0 else (low, max(high, -1))
    return low, high


Rule = Callable[..., Interval]
RULES: dict[tuple[str, int], Rule] = {
    ("+", 2): lambda a, b: (a[0] + b[0], a[1] + b[1]),
    ("-", 2): lambda a, b: (a[0] - b[1], a[1] - b[0]),
    ("-", 1): lambda a: (-a[1], -a[0]),
    ("*", 2): _product,
    ("quotient", 2): _quotient,
    ("%", 2): _remainder,
    ("modulo", 2): _modulo,
    ("abs", 1): _magnitude,
    ("bitwise-and", 2): _bits,
    ("bitwise-or", 2): _bits,
    ("bitwise-xor", 2): _bits,
    ("arithmetic-shift", 2): _shift,
    ("min", 2): lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    ("max", 2): lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    **{
        (name, 1): lambda a: a
        for name in ("floor", "ceiling", "round", "truncate", "->int", "exact", "+", "*")
    },
}
FOLDED = ("+", "-", "*", "min", "max")
