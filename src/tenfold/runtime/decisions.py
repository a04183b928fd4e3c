"""Decisions that a function takes in Python by sizes, and whether a program with open sizes is right for all.

What was asked of sizes (`base/watched_sizes.py`) comes from the recordings at a few of them. A comparison
whose two sides follow from the sizes by formulas is looked at for every size of the range. What remains, such
as a list that is indexed by a size, is settled when a size first comes: the function is recorded at it, and
must be the program that was opened.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tenfold.base.bounded import Bounded
from tenfold.base.errors import TenfoldError
from tenfold.base.garbage import uncollected
from tenfold.base.watched_sizes import COMPARISONS, Asked
from tenfold.flat.ir import Function
from tenfold.flat.merging import Different, merged_functions
from tenfold.flat.open_layout import Sizes
from tenfold.flat.opening import Counted, Opened, opened
from tenfold.flat.printer import print_flat
from tenfold.flat.sizes import Formulas, Open

Range = tuple[int, int]
MOST = 1 << 20  # combinations of sizes that are looked at
KEPT = 4096  # sizes of which it is remembered whether the program serves them


def holds_throughout(asked: Sequence[Sequence[Asked]], ranges: Mapping[Open, Range]) -> bool:
    """Whether everything that was asked in each recording is answered alike at all sizes of the ranges."""
    first = asked[0]
    if any(
        [question.what for question in other] != [question.what for question in first] for other in asked[1:]
    ):
        return False
    if math.prod(high - low + 1 for low, high in ranges.values()) > MOST:
        return all(_numbers_are_alike(questions) for questions in zip(*asked))
    axes = np.meshgrid(*[np.arange(low, high + 1) for low, high in ranges.values()], indexing="ij")
    everywhere = dict(zip(ranges, axes))
    formulas = Formulas(ranges)
    return all(
        _numbers_are_alike(questions) or _holds(questions, formulas, everywhere) for questions in zip(*asked)
    )


def _numbers_are_alike(asked: Sequence[Asked]) -> bool:
    return all(question == asked[0] for question in asked)


def _holds(asked: Sequence[Asked], formulas: Formulas, everywhere: Mapping[Open, Any]) -> bool:
    """Whether a comparison comes out the same at all sizes."""
    compare = COMPARISONS.get(asked[0].what)
    if compare is None or len({question.answer for question in asked}) > 1:
        return False
    sides = []
    for numbers in ([question.number for question in asked], [question.other for question in asked]):
        if all(number == numbers[0] for number in numbers):
            sides.append(numbers[0])
            continue
        formula = formulas.find(Open(numbers)) if all(type(number) is int for number in numbers) else None
        if formula is None:
            return False
        sides.append(formula.at(everywhere))
    return bool(np.all(compare(*sides) == asked[0].answer))


class Proof:
    """Tells for one size after another whether the function is, at that size, the program that was opened."""

    def __init__(
        self,
        functions: Sequence[Function],
        ranges: Mapping[Open, Range],
        program: Opened,
        counted: Sequence[Counted] = (),
    ):
        self.functions = functions
        self.ranges = ranges
        self.bounds = [count.bound for count in counted]
        self.counted = [count.symbol for count in counted]
        self.text = self._text(program, list(ranges), self.counted)
        self.known = Bounded(KEPT)  # by sizes
        for recorded in zip(*[symbol.values for symbol in ranges]):
            self.known.get(recorded, lambda: True)

    def holds(self, sizes: Sequence[int], function: Function) -> bool:
        """Whether it is, given the function as it was recorded at these sizes: those of arguments, then those
        that depend on data."""
        symbols = [
            Open([*symbol.values, size])
            for symbol, size in zip([*self.ranges, *self.counted], sizes, strict=True)
        ]
        own, counted = symbols[: len(self.ranges)], symbols[len(self.ranges) :]
        try:
            with uncollected():
                merged = merged_functions([*self.functions, function], lambda k: "other sizes")
                again = opened(
                    merged, dict(zip(own, self.ranges.values())), list(map(Counted, counted, self.bounds))
                )
                return self._text(again, own, counted) == self.text
        except (TenfoldError, Different):
            return False

    def _text(self, program: Opened, own: Sequence[Open], counted: Sequence[Open]) -> str:
        """The program, and how the sizes of its results follow from the symbols."""
        names = {symbol: f"size {i}" for i, symbol in enumerate([*own, *counted])}
        bounds = [(0, bound) for bound in self.bounds]
        sizes = Sizes(dict(zip(names, [*self.ranges.values(), *bounds])), ())
        shapes = [
            [
                sizes.formula(extent).text(names) if isinstance(extent, Open) else str(extent)
                for extent in shape
            ]
            for shape in program.shapes
        ]
        return f"{print_flat(program.function, 'cpu')}\n{shapes}"
