"""Records a function for export: once, or at several sizes that are merged where dimensions are open."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tenfold.base.dim import Dim
from tenfold.base.errors import ArgumentError, TenfoldError, UnsupportedError
from tenfold.exporting.dimensions import SymbolicType
from tenfold.exporting.expansions import FOR_LOWERING, FOR_OPEN_STABLEHLO, FOR_TORCH
from tenfold.exporting.merging import merged_programs
from tenfold.exporting.rewriting import Expansions, rewritten
from tenfold.flat.ir import TensorType
from tenfold.flat.sizes import Formulas, Open, OpenType, other_at
from tenfold.mlir.torch_emitter import is_state
from tenfold.ops.callee import OpCall
from tenfold.ops.table import exact
from tenfold.runtime import evaluate
from tenfold.runtime.plan import memory_of
from tenfold.tensor import Tensor
from tenfold.tensor.dynamic import OpenDims
from tenfold.trace.collect import Trace
from tenfold.trace.control import ControlNode
from tenfold.trace.graph import Node, Value
from tenfold.trace.record import Recording

# At how many sizes a program is recorded, and how far apart they are, besides the smallest, the largest and
# the example's own.
FAR = (0, 1, 2, 3, 5, 20, 39, 46, 130, 263)
# Sizes below are left to the recording at the smallest: ops on sizes of 1 broadcast.
LEAST = 11

# Which ops are expanded on the way to a dialect.
EXPANSIONS: dict[str, Expansions] = {
    "stablehlo": FOR_OPEN_STABLEHLO,  # which is for open sizes alone
    "torch": FOR_TORCH,
    "linalg": FOR_LOWERING,
    "tosa": FOR_LOWERING,
    "fx": {},  # whose calls Tenfold runs itself
}
# Records on tensors. Where a mapping is given, numbers that come from tensors may be sizes; it says what they
# are taken for, by their places.
Record = Callable[..., Recording]


class Recordings:
    """`program` is what was recorded, its leaves in order: all arguments, used or not, then tensors from
    outside. `programs` are the recordings that it was merged from: the first `common` at sizes as they
    usually are, the rest at the example's, the smallest and the largest. `first` is the first as it came.

    `dims` are the open dimensions, bounded by the largest size that was recorded: beyond it nothing is known.
    `members` names a model's tensors, by their holders' identities, as they are after it was recorded.
    `holders` are what holds each tensor from outside; of those that the function made itself, None: they are
    literals of the program. `outputs` are the places of those that were recorded which the program has: what
    it writes to tensors that it made itself is not among them. After these the program has as outputs
    `numbers` that come from tensors and are sizes in it, if such may be sizes (`sized`).
    """

    def __init__(
        self,
        record: Record,
        stand_ins: Sequence[Tensor],
        open: OpenDims,
        members: Callable[[], dict[int, str]],
        dialect: str,
        sized: bool = False,
    ):
        self.sized = sized
        self.numbers: list[str] = []
        first = self._choose_sizes(record, stand_ins, open)
        self.common = min(len(FAR), len(self.sizes))
        tensors = [_stand_ins(stand_ins, open, sizes) for sizes in self.sizes]
        recorded = [
            first if first is not None and not i else self._record(record, inputs, sizes)
            for i, (inputs, sizes) in enumerate(zip(tensors, self.sizes))
        ]
        self.first = recorded[0]
        whole = [arranged(recording, inputs) for recording, inputs in zip(recorded, tensors)]
        holders = [_outside(recording) for recording in recorded]
        self.members = members()
        writes = [recording.outside_writes for recording in recorded]
        if len(recorded) == 1 and any(id(holder) not in self.members for holder in (*holders[0], *writes[0])):
            # What the function makes itself is made anew when it is called again.
            again = self._record(record, tensors[0], {})
            holders.append(_outside(again))
            writes.append(again.outside_writes)
        differing = _differing(holders)
        self._require_outputs(whole)
        filled = self._filled(whole, [len(stand_ins) + i for i in differing])
        self.outputs = self._chosen_outputs(whole[0], writes, dialect)
        numbers = range(len(whole[0].outputs) - len(self.numbers), len(whole[0].outputs))
        expansions = EXPANSIONS[dialect] if open or dialect != "stablehlo" else {}
        self.programs = [
            rewritten(
                program,
                {program.leaves[i]: number for i, number in filled.items()},
                [*self.outputs, *numbers],
                expansions,
            )
            for program in whole
        ]
        self.program = merged_programs(self.programs, self.described) if self.dims else self.programs[0]
        if open and dialect == "stablehlo":  # which is made of the common recordings alone
            self._require_numbers()
        by_leaf = dict(zip(whole[0].leaves[len(stand_ins) :], holders[0]))
        own = {whole[0].leaves[len(stand_ins) + i] for i in differing}
        outside = self.programs[0].leaves[len(stand_ins) :]
        self.holders = [None if leaf in own else by_leaf[leaf] for leaf in outside]

    def _choose_sizes(self, record: Record, stand_ins: Sequence[Tensor], open: OpenDims) -> Recording | None:
        """Choose the sizes to record at, and the open dimensions; the recording at the first of them, where
        one was made to learn which numbers from tensors are sizes."""
        dims = {dim.name: dim for several in open.values() for dim in several.values()}
        self.sizes: list[dict[str, int]] = _chosen(dims, stand_ins, open) if open else [{}]
        first: Recording | None = None
        if self.sized:
            first = self._record(record, _stand_ins(stand_ins, open, self.sizes[0]), self.sizes[0])
            numbers = _numbers(first, dims)
            if numbers:
                self.numbers, dims = list(numbers), {**dims, **numbers}
                examples = {name: count.size for name, count in zip(numbers, first.counts)}
                self.sizes = _chosen(dims, stand_ins, open, examples)
                first = None
        self.dims = {
            name: Dim(name, min=dim.min, max=max(size[name] for size in self.sizes), multiple=dim.multiple)
            if dim.max is None
            else dim
            for name, dim in dims.items()
        }
        return first

    def _chosen_outputs(self, program: Trace, writes: Sequence[Sequence[object]], dialect: str) -> list[int]:
        """Which outputs of a recording the program has: `writes` are the tensors that several recordings
        wrote to."""
        inside = {len(self.first.returned) + i for i in _differing(writes)}
        if any(node.path for node in program.nodes):  # a program with gradients stays as it is
            inside = set()
        outputs = program.outputs[: len(program.outputs) - len(self.numbers)]
        return [
            i
            for i, output in enumerate(outputs)
            # The torch dialect's random ops have no state.
            if i not in inside and not (dialect != "stablehlo" and is_state(program, *output))
        ]

    def _record(self, record: Record, tensors: Sequence[Tensor], sizes: Mapping[str, int]) -> Recording:
        taken = {i: sizes[name] for i, name in enumerate(self.numbers)} if self.sized else None
        if not sizes:
            return record(tensors, taken)
        try:
            return record(tensors, taken)
        except TenfoldError as error:
            if self.numbers:
                raise type(error)(
                    f"at {_words(sizes)} the program fails: {error.message}",
                    help="say what the numbers that come from tensors can be: torch._check(n <= …)",
                ).located(error.op, error.source, error.operands) from None
            bounds = ", ".join(f"Dim({name!r}, min=…)" for name in sizes)
            raise type(error)(
                f"at {_words(sizes)} the program fails: {error.message}",
                help="either a size is written into the program, or two dimensions are equal and need one "
                f"name, or not every size will do: {bounds}",
            ).located(error.op, error.source, error.operands) from None

    def _require_outputs(self, programs: Sequence[Trace]) -> None:
        """Refuse a program that gives more or fewer tensors at some sizes, as the pieces of a chunk."""
        counts = [len(program.outputs) for program in programs]
        k = next((k for k, count in enumerate(counts) if count != counts[0]), None)
        if k is not None:
            raise UnsupportedError(
                f"the program gives {counts[0]} tensors at {self.described(0)} and {counts[k]} at "
                f"{self.described(k)}",
                help="say which sizes it is for, as Dim('n', min=…), or export once for each",
            )

    def _filled(self, programs: Sequence[Trace], places: Sequence[int]) -> dict[int, float]:
        """Of tensors that the function makes itself those that hold one number all over, with it. Others must
        hold the same at all sizes."""
        filled = {}
        for place in places:
            leaves = [program.leaves[place] for program in programs]
            arrays = [evaluate.computed_array(leaf) for leaf in leaves]
            first = arrays[0]
            if first.size > 1 and leaves[0].type.dtype.kind in ("float", "int", "bool"):
                number = first.ravel()[0]
                # By their bytes: 0.0 equals -0.0 and is another number.
                if all(array.tobytes() == number.tobytes() * array.size for array in arrays):
                    item = number.item()
                    filled[place] = exact(item) if type(item) is float else item
                    continue
            for k, (leaf, array) in enumerate(zip(leaves, arrays)):
                if leaf.type is not leaves[0].type or array.tobytes() != first.tobytes():
                    raise UnsupportedError(
                        f"a tensor made of Python's numbers is {leaves[0].type} at {self.described(0)}, and "
                        f"{leaf.type} or other numbers at {self.described(k)}",
                        help="make it from shapes with arange, full and their like",
                    ).located("tensor", leaf.made_at)
        return filled

    def _require_numbers(self) -> None:
        """Refuse a program in which a number is at the smallest, the largest or the example's size another
        than its formula gives."""
        symbols = list(self.symbols())
        for node in _nodes(self.program):
            callee = node.callee
            arguments = callee.arguments if isinstance(callee, OpCall) else ()
            starts = list(node.starts.values()) if isinstance(node, ControlNode) else []
            for number in _open_numbers(
                (arguments, starts, [result_type.shape for result_type in callee.result_types])
            ):
                k = other_at(number, symbols, self.common)
                if k is not None:
                    bounds = ", ".join(f"Dim({name!r}, min=…, max=…)" for name in self.dims)
                    raise UnsupportedError(
                        f"a number is {number.values[k]} at {self.described(k)}, which follows from the size "
                        "in another way than at most other sizes",
                        help=f"say which sizes the program is for: {bounds}",
                    ).located(callee.name, node.source)

    def described(self, k: int) -> str:
        """At which sizes a recording was made, in words."""
        return _words(self.sizes[k])

    def symbols(self, common: bool = False) -> dict[Open, Dim]:
        """The open sizes of the arguments: by what they are in each recording, or in the common ones."""
        sizes = self.sizes[: self.common] if common else self.sizes
        return {Open(size[name] for size in sizes): dim for name, dim in self.dims.items()}

    def named(self, type: Any) -> TensorType | SymbolicType:
        """A type of the program with the names of its open sizes, or how they follow from those."""
        if not isinstance(type, OpenType):
            return type
        symbols = self.symbols()
        formulas, names = Formulas(symbols), {size: dim.name for size, dim in symbols.items()}
        extents: list[int | str] = []
        for extent in type.shape:
            formula = formulas.find(extent) if isinstance(extent, Open) else None
            extents.append(formula.text(names) if formula else "?" if isinstance(extent, Open) else extent)
        return SymbolicType(type.dtype, extents)


def _numbers(recording: Recording, dims: Mapping[str, Dim]) -> dict[str, Dim]:
    """The numbers that come from tensors and are sizes in a recording, by names of their own."""
    names = (name for i in itertools.count() if (name := f"u{i}") not in dims)
    return {
        name: Dim(name, min=count.least, max=count.bound if count.bounded else None)
        for name, count in zip(names, recording.counts)
    }


def _differing(rows: Sequence[Sequence[object]]) -> list[int]:
    """The places where the rows do not all hold the same object."""
    return [i for i, column in enumerate(zip(*rows)) if any(holder is not column[0] for holder in column)]


def _outside(recording: Recording) -> list[Any]:
    """What holds each tensor from outside: its memory, where it is all of it."""
    return [memory_of(source) for source in recording.inputs if type(source) is not int]


def arranged(recorded: Recording, stand_ins: Sequence[Tensor]) -> Trace:
    """The program with its leaves in order: all arguments, used or not, then those from outside."""
    program = recorded.trace
    used = {source: leaf for source, leaf in zip(recorded.inputs, program.leaves) if type(source) is int}
    arguments = [
        used[i] if i in used else Value(tensor.current().type, tensor.current().device)
        for i, tensor in enumerate(stand_ins)
    ]
    outside = [leaf for source, leaf in zip(recorded.inputs, program.leaves) if type(source) is not int]
    leaves = arguments + outside
    places = {leaf: i for i, leaf in enumerate(leaves)}
    outputs = [
        (place, index) if place >= 0 else (-1 - places[program.leaves[-1 - place]], 0)
        for place, index in program.outputs
    ]
    return Trace(program.nodes, leaves, outputs, program.key, program.device)


def _stand_ins(tensors: Sequence[Tensor], open: OpenDims, sizes: Mapping[str, int]) -> list[Tensor]:
    """Tensors without data in the place of all arguments, their open dimensions of these sizes."""
    return [_of_size(tensor, open.get(i, {}), sizes) for i, tensor in enumerate(tensors)]


def _of_size(tensor: Tensor, open: Mapping[int, Dim], sizes: Mapping[str, int]) -> Tensor:
    """A tensor without data in the place of an argument, its open dimensions of these sizes."""
    if not sizes:
        return tensor
    value = tensor.current()
    shape = [sizes[open[axis].name] if axis in open else size for axis, size in enumerate(value.type.shape)]
    stand_in = Value(TensorType(value.type.dtype, tuple(shape)), value.device)
    stand_in.source = value.made_at
    return Tensor(stand_in)


def _chosen(
    dims: Mapping[str, Dim], stand_ins: Sequence[Tensor], open: OpenDims, numbers: Mapping[str, int] = {}
) -> list[dict[str, int]]:
    """The sizes to record at, `numbers` that come from tensors among them."""
    example = dict(numbers)
    fixed: set[int] = set()
    for i, tensor in enumerate(stand_ins):
        for axis, extent in enumerate(tensor.shape):
            if axis in open.get(i, {}):
                example[open[i][axis].name] = extent
            else:
                fixed.add(extent)
    several = [_near(dim, example[name], i, fixed) for i, (name, dim) in enumerate(dims.items())]
    sizes = [dict(zip(dims, row)) for row in zip(*several)]
    smallest = {name: dim.min for name, dim in dims.items()}
    largest = {name: dim.max or max(near) for (name, dim), near in zip(dims.items(), several)}
    for edge in (example, smallest, largest):
        if edge not in sizes:
            sizes.append(edge)
    return sizes


def _near(dim: Dim, example: int, place: int, fixed: set[int]) -> list[int]:
    """Common sizes of a dimension: neighbours, which differ modulo every stride, and others far away, which
    tell formulas apart; in an order of their own, and none that something else has, which ops could take for
    the same."""
    step = dim.multiple
    start = max(dim.min, -(-max(example, LEAST + 16 * place) // step) * step)
    if dim.max is not None and start + FAR[-1] * step > dim.max:
        start = max(dim.min, (dim.max // step - FAR[-1]) * step)
    last = start + 2 * FAR[-1] * step if dim.max is None else dim.max
    sizes = range(start, last + 1, step)
    if len(sizes) < 2:
        raise ArgumentError(f"{dim.name} can only be {start}: it is not open", help="leave it out of dynamic")
    apart = [size for size in sizes[: 2 * FAR[-1]] if size > 1 and size not in fixed]
    usable = apart if len(apart) > 1 else list(sizes)
    chosen = [usable[far] for far in FAR if far < len(usable)]
    random.Random(place).shuffle(chosen)
    return [chosen[k % len(chosen)] for k in range(len(FAR))]


def _nodes(program: Trace) -> Iterator[Node]:
    """The nodes of a program, and of those inside its choices and loops."""
    for node in program.nodes:
        yield node
        for part in node.parts if isinstance(node, ControlNode) else ():
            yield from _nodes(part.trace)


def _open_numbers(tree: Any) -> Iterator[Open]:
    if isinstance(tree, (tuple, list)):
        for branch in tree:
            yield from _open_numbers(branch)
    elif isinstance(tree, Open):
        yield tree


def _words(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {size}" for name, size in sizes.items())
