"""What a node of the Trace calls: an ATen op on given arguments (`OpCall`), or a `Program`, which is a FlatIR
function with a name. Both are interned, so that a node's callee is compared and hashed by its `id`."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tenfold import flat
from tenfold.base.bounded import Bounded
from tenfold.flat.ir import in_order

if TYPE_CHECKING:
    from tenfold.ops.table import Row

Numbers = tuple[int | float, ...]


class Callee:
    """A FlatIR function (`fragment`) on inputs of given types, and what follows from it."""

    __slots__ = (
        *("_reached", "backward", "fragment", "id", "plans"),
        *("result_types", "skeleton", "small", "types", "weight", "work"),
    )
    _ids = itertools.count(1)

    name: str  # in printed traces and in error messages
    random: bool  # takes a generator's state and returns the next one
    differentiable: bool | tuple[bool, ...]  # whether gradients flow to the results

    def __init__(self, types: tuple[flat.TensorType, ...], fragment: flat.Function):
        self.types = types
        self.fragment = fragment
        self.result_types = tuple([result.type for result in fragment.results])
        self.id = next(Callee._ids)
        self._reached: tuple[int, ...] | None = None
        self.backward: dict[Any, Any] = {}  # memo of trace/gradient.py
        self.plans: dict[Any, Any] = {}  # memo of engines/numpy/programs.py
        self.small: Any = None  # memo of runtime/small.py
        self.skeleton: tuple[Skeleton, tuple[int, ...]] | None = None  # memo of trace/skeleton.py
        self.work: Any = None  # memo of runtime/runs.py
        self.weight = 0  # memo of `weight`

    @property
    def qualified(self) -> str:
        """The full name: of an op with its overload, as "add.Tensor"."""
        return self.name

    @property
    def loose(self) -> tuple[Callee, Numbers]:
        """The callee that takes this one's Python numbers as inputs after the tensors, and the numbers."""
        return self, ()

    @property
    def flows(self) -> tuple[bool, ...]:
        """For each result, whether gradients flow to it."""
        flows = self.differentiable
        return flows if isinstance(flows, tuple) else (flows,) * len(self.result_types)

    @property
    def reached(self) -> tuple[int, ...]:
        """For each result the inputs that its gradient may flow to, as the bits of a number."""
        if self._reached is None:
            bits = reach(self.fragment)
            self._reached = tuple([bit if flow else 0 for bit, flow in zip(bits, self.flows, strict=True)])
        return self._reached


def weight(callee: Any) -> int:
    """What a callee takes of the room of a table of callees. Most lower to a few ops, some to hundreds."""
    if not isinstance(callee, Callee):
        return 1
    if not callee.weight:
        ops = callee.fragment.ops
        callee.weight = (
            1 + sum([len(op.body.ops) if isinstance(op, flat.Composite) else 1 for op in ops]) // 8
        )
    return callee.weight


class OpCall(Callee):
    """An overload of ATen on inputs of given types. In its `arguments` SLOTs stand for the tensors."""

    __slots__ = ("_loose", "arguments", "row")

    def __init__(
        self, row: Row, types: tuple[flat.TensorType, ...], arguments: tuple, fragment: flat.Function
    ):
        super().__init__(types, fragment)
        self.row = row
        self.arguments = arguments
        self._loose: tuple[OpCall, Numbers] | None = None

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.row.python_name

    @property
    def qualified(self) -> str:
        return self.row.qualified

    @property
    def random(self) -> bool:  # type: ignore[override]
        return self.row.random

    @property
    def differentiable(self) -> bool | tuple[bool, ...]:  # type: ignore[override]
        return self.row.differentiable

    @property
    def loose(self) -> tuple[OpCall, Numbers]:
        """Itself and no numbers where there are none, or where the lowering must know them."""
        if self._loose is None:
            self._loose = self.row.loosen(self)
        return self._loose


class Program(Callee):
    """A FlatIR function that is no op of ATen's: a gradient, a batched or compiled function, an optimizer's
    step. `takes` says which of the values offered in a call are its inputs; `reached` is given where its
    maker knows more than the FlatIR tells."""

    __slots__ = ("name", "random", "takes")
    differentiable = True

    def __init__(
        self,
        function: flat.Function,
        *,
        random: bool = False,
        takes: Sequence[int] | None = None,
        reached: tuple[int, ...] | None = None,
    ):
        super().__init__(tuple([param.type for param in function.params]), function)
        self._reached = reached
        self.name = function.name
        self.random = random
        self.takes = tuple(range(len(function.params)) if takes is None else takes)

    @classmethod
    def trimmed(
        cls, name: str, params: Sequence[flat.Value], results: Sequence[flat.Value], *, random: bool = False
    ) -> Program:
        """The program on those parameters that the results depend on: no gradient flows to the others."""
        needed = {*results, *[operand for op in in_order(results) for operand in op.operands]}
        takes = [i for i, param in enumerate(params) if param in needed]
        return cls(flat.Function([params[i] for i in takes], results, name), random=random, takes=takes)


programs = Bounded(2048)  # by what they were made from


class Skeleton:
    """What callees have in common that differ in whole numbers alone. They share the object, which lives as
    long as one of them, or a program that is known by it."""

    __slots__ = ("__weakref__",)


_skeletons: weakref.WeakValueDictionary[Any, Skeleton] = weakref.WeakValueDictionary()


def skeleton_of_parts(parts: tuple[Any, ...]) -> Skeleton:
    """The skeleton of the callees that these parts describe."""
    return _skeletons.setdefault(parts, Skeleton())


def reach(function: flat.Function) -> tuple[int, ...]:
    """For each result the parameters that it depends on through floats alone, as the bits of a number.

    A float result that is the same whatever they are, as x ** 0, counts as depending on all of them, by zero;
    unless its gradient is stopped, as where PyTorch fills a result that it has made anew. Parameters without
    elements count likewise: a lowering may leave them out, as of a concatenation.
    """
    bits: dict[flat.Value, int] = {
        param: 1 << i for i, param in enumerate(function.params) if param.dtype.kind in ("float", "complex")
    }
    every = sum(bits.values())
    empty = sum([bit for param, bit in bits.items() if not param.type.numel])
    for op in function.ops:
        if isinstance(op, flat.Composite) and op.rule is flat.stopped:
            bits[op.result] = 0
            continue
        found = 0
        for operand in op.operands:
            found |= bits.get(operand, 0)
        if found:
            for result in op.results:
                if result.dtype.kind in ("float", "complex"):
                    bits[result] = found
    reached = [
        bits.get(each, every if each.dtype.kind in ("float", "complex") else 0) for each in function.results
    ]
    return tuple([bit | empty if bit else 0 for bit in reached])
