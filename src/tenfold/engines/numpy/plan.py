"""A FlatIR function as a list of steps, made once and kept with the function, and the loop that runs them.

Values have numbered slots, first those of the parameters. An intermediate is freed by the last step that
reads it, unless all of them are small. Composites dissolve into their bodies. What follows from constants
alone is computed here, and what two ops compute alike is computed once. A short plan that runs again and
again is written out as a Python function, without the loop.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from tenfold.base.errors import OutOfMemory, TenfoldError, UnsupportedError
from tenfold.engines.numpy.kernels import KERNELS, Array, Kernel
from tenfold.flat.composite import Composite
from tenfold.flat.data_ops import BroadcastInDim, Constant, Iota, Reshape, Slice, Transpose
from tenfold.flat.elementwise import Elementwise
from tenfold.flat.ir import Function, Op, Value
from tenfold.flat.structured import Check

# A kernel, the slot of its operand (or what takes several from all slots), the slot of its result (or those
# of several), the slots to be freed.
Step = tuple[Kernel, Any, int | tuple[int, ...], tuple[int, ...]]
Raw = tuple[Kernel, tuple[int, ...], tuple[int, ...]]  # a kernel, the slots of its operands and results
Slots = dict[Value, int]  # where the values of a function are


class Plan:
    """The steps of a function. `slots` has the constants, whose memory is `taken`, and None for what is
    computed. `raw` says of each step what it was made from."""

    __slots__ = ("arity", "left", "raw", "results", "slots", "steps", "taken", "written_out")

    def __init__(
        self, arity: int, slots: list[Array | None], raw: Sequence[Raw], results: Sequence[int], frees: bool
    ):
        """No step is taken that nothing needs. With `frees`, every slot that is no result is freed at its
        last use."""
        self.arity = arity
        self.slots = slots
        self.results = tuple(results)
        self.raw: list[Raw] = []
        self.steps: list[Step] = []
        used = {place for place, slot in enumerate(slots) if slot is not None}
        used.update(results)
        for kernel, operands, outs in reversed(raw):
            if used.isdisjoint(outs):
                continue
            freed = tuple([place for place in dict.fromkeys(operands) if place not in used])
            used.update(freed)
            given = operands[0] if len(operands) == 1 else _taking(operands)
            self.steps.append((kernel, given, outs[0] if len(outs) == 1 else outs, freed if frees else ()))
            self.raw.append((kernel, operands, outs))
        self.raw.reverse()
        self.steps.reverse()
        self.taken = {id(memory_of(slot)) for slot in slots if slot is not None}
        self.written_out: Callable[[Sequence[Array]], list[Array]] | None = None
        self.left = 0 if frees or len(self.raw) > SHORT else WARM  # runs until it is written out

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        """The results; they may share memory with the arrays and with each other."""
        if self.written_out is not None:
            return self.written_out(arrays)
        self.left -= 1
        if not self.left:
            self.written_out = _written_out(self)
        slots: list[Any] = self.slots.copy()
        slots[: self.arity] = arrays
        if type(arrays) is list:
            arrays.clear()  # it handed them over: what is not used again can be freed, or written over
        for kernel, operands, result, freed in self.steps:
            given = (slots[operands],) if type(operands) is int else operands(slots)
            for place in freed:
                slots[place] = None
            if type(result) is int:
                slots[result] = kernel(*given)  # as `kernels.call` does
            else:
                for place, each in zip(result, kernel(*given)):  # type: ignore[arg-type]
                    slots[place] = each
        return [slots[place] for place in self.results]


SHORT = 16  # steps that are written out
WARM = 8  # runs, after which that takes less time than it saves


def _written_out(plan: Plan) -> Callable[[Sequence[Array]], list[Array]]:
    constants = {place: slot for place, slot in enumerate(plan.slots) if slot is not None}
    wiring = tuple([(operands, outs) for _, operands, outs in plan.raw])
    write = _writer(plan.arity, tuple(constants), wiring, plan.results)
    return write(*constants.values(), *[kernel for kernel, _, _ in plan.raw])


@functools.lru_cache(1000)
def _writer(
    arity: int, constants: tuple[int, ...], wiring: Sequence[tuple[Any, Any]], results: tuple[int, ...]
) -> Callable[..., Callable[[Sequence[Array]], list[Array]]]:
    """Makes the function that runs such steps, of the constants and the kernels."""

    def names(places: Iterable[int]) -> str:
        return "".join([f"v{place}, " for place in places])

    steps = [
        f"  {names(outs) if len(outs) > 1 else f'v{outs[0]}'} = kernel{i}({names(operands)})\n"
        for i, (operands, outs) in enumerate(wiring)
    ]
    code = (
        f"def write({names(constants)}{''.join([f'kernel{i}, ' for i in range(len(wiring))])}):\n"
        " def run(arrays):\n"
        f"  {names(range(arity)) or '()'} = arrays\n"
        f"{''.join(steps)}"
        f"  return [{names(results)}]\n"
        " return run\n"
    )
    scope: dict[str, Any] = {}
    exec(code, scope)
    return scope["write"]


def plan(function: Function) -> Plan:
    """The plan of a function: the one that was made before, or a new one."""
    found = function.plan
    if found is None:
        found = function.plan = Builder(function).finished(function.results)
    return found


def direct(function: Function) -> Kernel | None:
    """What computes a function's only result from arrays for its parameters, if one kernel does whose other
    operands are constants; None where it takes a plan."""
    if len(function.results) != 1:
        return None
    (result,) = function.results
    if result.op is None:
        return None
    array = _folded(result)
    if array is not None:
        return None if function.params else lambda: array
    op = result.op
    if type(op) in (Composite, Check) or len(op.results) > 1:
        return None
    operands = op.operands
    arity = len(function.params)
    if operands[:arity] != function.params:
        return None
    kernel = kernel_of(op)
    if len(operands) == arity:
        return kernel
    constants = [_folded(operand) for operand in operands[arity:]]
    if any(each is None for each in constants):
        return None
    return lambda *arrays: kernel(*arrays, *constants)


def _folded(value: Value) -> Array | None:
    """The array of a value that follows from constants alone, which nobody may write over."""
    op = value.op
    if type(op) is Constant:
        constant: Array = op.__dict__["value"][...]  # a view owns no memory
        return constant
    if not isinstance(op, FOLDED) or value.type.numel * value.type.dtype.itemsize > SMALL:
        return None
    operands = [_folded(operand) for operand in op.operands]
    if any(each is None for each in operands):
        return None
    with np.errstate(all="ignore"):
        folded: Array = kernel_of(op)(*operands)[...]
    return folded


def run(function: Function, arrays: Sequence[Array]) -> list[Array]:
    """The function's results on these arrays, which are only read."""
    made = plan(function)
    with np.errstate(all="ignore"):
        return run_plan(made, tuple(arrays))


def run_plan(made: Any, arrays: Sequence[Array]) -> list[Array]:
    """Run a plan; its results are arrays in row-major order, each in memory of its own."""
    try:
        taken = made.taken.union([id(memory_of(array)) for array in arrays])
        return [_own(each, taken) for each in made(arrays)]
    except MemoryError as error:
        raise OutOfMemory(f"out of memory: {error}", help="use smaller tensors, or free some") from None


def _own(result: Array, taken: set[int]) -> Array:
    """The result, or a copy if it looks at memory that is `taken`, or is a small part of what it looks at."""
    result = np.asarray(result, order="C")
    memory = memory_of(result)
    if id(memory) in taken or memory.nbytes > 2 * result.nbytes + 4096:
        return result.copy()
    taken.add(id(memory))
    return result


def memory_of(array: Array) -> Array:
    """The array that the memory of a view belongs to."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


ENGINE = "numpy"  # by which composites name a body for tier 0
SMALL = 1 << 14  # bytes that are no matter
FOLDED = (Elementwise, BroadcastInDim, Iota, Reshape, Slice, Transpose)  # of constants

KEPT = "kernel of tier 0"  # the attribute, no field of any op, that an op keeps its kernel in


class Builder:
    """What makes a plan of one function, or of several one after the other."""

    def __init__(self, function: Function | None = None):
        self.places: Slots = {}
        self.constants: dict[int, Array] = {}
        self.steps: list[Raw] = []
        self.known: dict[tuple[Kernel, tuple[int, ...]], tuple[int, ...]] = {}  # where results are
        self.spread: dict[int, int] = {}  # of a broadcast slot, the one that NumPy broadcasts alike by itself
        self.bytes = 0  # of all results
        self.count = 0
        self.arity = 0
        if function is not None:
            self.parameters(function.params)
            self.ops(function.ops, self.places)

    def parameters(self, params: Sequence[Value]) -> None:
        for param in params:
            self.places[param] = self.slot()
        self.arity = self.count

    def slot(self) -> int:
        self.count += 1
        return self.count - 1

    def constant(self, array: Array) -> int:
        place = self.slot()
        self.constants[place] = array
        return place

    def ops(self, ops: Iterable[Op], places: Slots, source: Any = None) -> None:
        """Add the steps of these ops; `places` says where values are, and learns where results will be.
        `source` is the user's line that they are of, None where they say so themselves."""
        for op in ops:
            kind = type(op)
            if kind is Constant:
                places[op.result] = self.constant(op.__dict__["value"])
            elif kind is Composite:
                self.inline(op, places, source)
            else:
                operands = tuple([places[operand] for operand in op.operands])
                places.update(zip(op.results, self.step(op, operands, source), strict=True))

    def step(self, op: Op, operands: tuple[int, ...], source: Any) -> tuple[int, ...]:
        """Add the step of an op, unless its results are there already; gives where they are."""
        kernel = kernel_of(op, source)
        if type(kernel) is np.ufunc and not self.spread.keys().isdisjoint(operands):
            operands = self.narrowed(op, operands)
        results = self.known.get((kernel, operands))
        if results is not None:
            return results
        size = sum([result.type.numel * result.type.dtype.itemsize for result in op.results])
        if size <= SMALL and isinstance(op, FOLDED) and all(place in self.constants for place in operands):
            with np.errstate(all="ignore"):
                results = (self.constant(kernel(*[self.constants[place] for place in operands])),)
        else:
            self.bytes += size
            results = tuple([self.slot() for _ in op.results])
            self.steps.append((kernel, operands, results))
        self.known[kernel, operands] = results
        if type(op) in SPREADING and _spreads(op):
            self.spread[results[0]] = self.spread.get(operands[0], operands[0])
        return results

    def narrowed(self, op: Op, operands: tuple[int, ...]) -> tuple[int, ...]:
        """The operands of a function of NumPy's without broadcasts that it does itself: of all but one."""
        if not op.result.rank or all(place in self.spread for place in operands):
            return operands
        return tuple([self.spread.get(place, place) for place in operands])

    def inline(self, op: Any, places: Slots, source: Any) -> None:
        """Add the steps of a composite's body, or of that for this engine."""
        body = op.elsewhere.get(ENGINE, op.body)
        inner = {param: places[operand] for param, operand in zip(body.params, op.operands, strict=True)}
        self.ops(body.ops, inner, source or op.source)
        for result, value in zip(op.results, body.results, strict=True):
            places[result] = inner[value]

    def finished(self, results: Sequence[Value]) -> Plan:
        return self.closed([self.places[result] for result in results])

    def closed(self, results: Sequence[int]) -> Plan:
        """The plan that gives these slots."""
        slots: list[Array | None] = [None] * self.count
        for place, constant in self.constants.items():
            slots[place] = constant
        return Plan(self.arity, slots, self.steps, results, self.bytes > SMALL)


SPREADING = (BroadcastInDim, Reshape)


def _spreads(op: Any) -> bool:
    """Whether an op's operand stands for its result where an array of the result's shape is beside it."""
    rank, operand = op.result.rank, op.x
    if operand.numel == 1 and operand.rank <= rank:
        return True
    return type(op) is BroadcastInDim and op.broadcast_dimensions == tuple(range(rank - operand.rank, rank))


def _taking(places: tuple[int, ...]) -> Callable[[list[Array]], tuple[Array, ...]]:
    """What takes the arrays at these places, none or several."""
    return itemgetter(*places) if places else lambda slots: ()


VIEWS = (BroadcastInDim, Reshape, Slice, Transpose)  # which stay arrays whatever their rank


def _zero_dimensional(kernel: Kernel, dtype: np.dtype[Any]) -> Kernel:
    """A kernel that gives an array where NumPy gives a scalar. In the body of a reduction it is called on
    larger arrays."""
    empty, general = np.empty, lambda *arrays: np.asarray(kernel(*arrays))
    if type(kernel) is np.ufunc and kernel.nout == 1:
        if kernel.nin == 1:
            return lambda x: general(x) if x.ndim else kernel(x, out=empty((), dtype))
        if kernel.nin == 2:
            return lambda x, y: general(x, y) if x.ndim or y.ndim else kernel(x, y, out=empty((), dtype))
    return general


def kernel_of(op: Op, source: Any = None) -> Kernel:
    """The kernel of an op. Copies of an op share it, except a check, which knows the user's line. NumPy's
    scalars, where a kernel gives them, become arrays."""
    if type(op) is Check:
        return KERNELS[Check](op.replace({}, source))
    pattern = op.pattern
    known = pattern.__dict__.get(KEPT)
    if known is not None:
        return known
    rule = KERNELS.get(type(op))
    if rule is None:
        raise UnsupportedError(
            f"the NumPy engine does not know {op.name}", help="tn.set_engine('xla') runs it"
        ).located("", op.source)
    try:
        kernel = rule(op)
    except TenfoldError as error:
        raise error.located("", op.source) from None
    if len(op.results) == 1 and not op.result.rank and type(op) not in VIEWS:
        kernel = _zero_dimensional(kernel, op.result.dtype.numpy)
    pattern.__dict__[KEPT] = kernel
    return kernel
