"""XLA's compiled programs, read from their text: instructions, the ops that each fuses, the user's lines, and
what each must compute and move."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

_BITS = {"pred": 8, "s4": 4, "u4": 4, "bf16": 16, "c64": 64, "c128": 128}
_ARRAY = re.compile(r"(\w+)\[([\d,]*)\]")
_LINE = re.compile(r'source_file="([^"]*)" source_line=(\d+)')
# In a program on a mesh names say it (see `location` in mlir/stablehlo.py): "train.py:8/tanh;train.py:9/add".
_NAMED_LINE = re.compile(r'[";]([^";]*):(\d+)/\w+(?=[";])')
_HEAD = re.compile(r"^(?:ENTRY )?%?([\w.\-]+) .*\{$")
_NAME = re.compile(r"%([\w.\-]+)")
_CALLS = re.compile(r"\b(?:calls|to_apply|body|condition)=%?([\w.\-]+)")
_CONTRACTED = re.compile(r"lhs_contracting_dim(?:ension)?s\W+([\d,\" ]+)")
_LABELS = re.compile(r"dim_labels=(\w+)_(\w+)->(\w+)")
_ALIASED = re.compile(r"\{(\d*)\}: \((\d+),")

# Names for other memory, which take none of their own and no time.
FREE = frozenset(
    ("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "iota", "after-all", "partition-id")
)
# Those that move data and compute nothing.
MOVES = FREE | frozenset(
    (
        "broadcast", "reshape", "transpose", "copy", "slice", "dynamic-slice", "dynamic-update-slice",
        "gather", "concatenate", "pad", "reverse", "convert", "fusion", "while", "call",
        "conditional", "custom-call", "copy-start", "copy-done", "rng-get-and-update-state", "opt-barrier",
    )
)  # fmt: skip


@dataclass
class Instruction:
    """One instruction of a compiled program."""

    name: str
    opcode: str
    arrays: list[tuple[str, tuple[int, ...]]]  # dtype and shape of its results
    operands: list[str]
    attributes: str
    calls: list[str]
    lines: list[str]
    flops: float = 0.0
    bytes: float = 0.0
    fused: list[str] = field(default_factory=list)  # the opcodes inside a fusion

    @property
    def size(self) -> int:
        """The bytes of its results."""
        return sum(math.prod(shape) * width(dtype) for dtype, shape in self.arrays)

    @property
    def numel(self) -> int:
        return math.prod(self.arrays[0][1]) if self.arrays else 0


def width(dtype: str) -> int:
    """The bytes of an element."""
    bits = _BITS.get(dtype) or int(
        re.sub(r"^\D+(\d+).*", r"\1", dtype) or 0 if re.search(r"\d", dtype) else 0
    )
    return max(1, bits // 8) if bits else 0


class Program:
    """A compiled program, read from its text."""

    def __init__(self, text: str):
        self.computations: dict[str, dict[str, Instruction]] = {}
        self.entry = ""
        self.aliased = {
            int(result or 0): int(param) for result, param in _ALIASED.findall(text.split("\n")[0])
        }
        body: dict[str, Instruction] = {}
        for line in text.splitlines()[1:]:
            head = _HEAD.match(line)
            if head and " = " not in line:
                body = self.computations.setdefault(head[1], {})
                if line.startswith("ENTRY"):
                    self.entry = head[1]
            elif " = " in line:
                instruction = _instruction(line)
                if instruction is not None:
                    body[instruction.name] = instruction
        for body in self.computations.values():
            for instruction in body.values():
                self._weigh(instruction, body)

    def instructions(self) -> dict[str, Instruction]:
        """Those that run by themselves: all that are not inside a fusion or a reduction."""
        inner = {
            name
            for body in self.computations.values()
            for each in body.values()
            if each.opcode not in ("while", "call", "conditional")
            for name in each.calls
        }
        return {
            name: each
            for key, body in self.computations.items()
            if key not in inner
            for name, each in body.items()
        }

    def _weigh(self, instruction: Instruction, body: dict[str, Instruction]) -> None:
        """Count what it computes, what it reads and writes, and which lines and ops it stands for."""
        operands = [body[operand] for operand in instruction.operands if operand in body]
        instruction.flops = flops(instruction, operands)
        if instruction.opcode in FREE or instruction.opcode in ("while", "call", "conditional"):
            return
        instruction.bytes = instruction.size + sum(operand.size for operand in operands)
        if instruction.opcode != "fusion":
            return
        for name in instruction.calls:
            inside = list(self.computations.get(name, {}).values())
            instruction.fused += [each.opcode for each in inside if each.opcode not in FREE]
            by_name = {each.name: each for each in inside}
            instruction.flops += sum(each.flops or _inner_flops(each, by_name) for each in inside)
            found = [line for each in inside for line in each.lines]
            instruction.lines = list(dict.fromkeys([*instruction.lines, *found]))
            if inside and inside[-1].opcode == "dynamic-update-slice":  # which writes a part, in place
                update = by_name.get(inside[-1].operands[1])
                instruction.bytes -= 2 * instruction.size - 2 * (update.size if update else 0)


def _inner_flops(instruction: Instruction, body: dict[str, Instruction]) -> float:
    return flops(instruction, [body[operand] for operand in instruction.operands if operand in body])


def flops(instruction: Instruction, operands: Sequence[Instruction]) -> float:
    """The additions, multiplications and the like that an instruction takes."""
    opcode = instruction.opcode
    if opcode == "dot" or (opcode == "custom-call" and "$gemm" in instruction.attributes):
        return _product(instruction, operands)
    if opcode == "custom-call" and "$lt$matmul" in instruction.attributes:
        return _product(instruction, operands)
    if opcode == "convolution" or (opcode == "custom-call" and "__cudnn$conv" in instruction.attributes):
        return _convolution(instruction, operands)
    if opcode == "custom-call" and "__cudnn$fmha" in instruction.attributes:
        return _attention(instruction, operands)
    if opcode in ("reduce", "reduce-window"):
        return float(operands[0].numel) if operands else 0.0
    return 0.0 if opcode in MOVES else float(instruction.numel)


def _product(instruction: Instruction, operands: Sequence[Instruction]) -> float:
    found = _CONTRACTED.search(instruction.attributes)
    if not operands or not operands[0].arrays or found is None:
        return 0.0
    shape = operands[0].arrays[0][1]
    places = [int(each) for each in re.findall(r"\d+", found[1])]
    return 2.0 * instruction.numel * math.prod(shape[place] for place in places if place < len(shape))


def _convolution(instruction: Instruction, operands: Sequence[Instruction]) -> float:
    labels = _LABELS.search(instruction.attributes)
    if labels is None or len(operands) < 2:
        return 0.0
    if "convBackwardInput" in instruction.attributes:
        kernel, output = operands[1], operands[0]
    elif "convBackwardFilter" in instruction.attributes:
        kernel, output = instruction, operands[1]
    else:
        kernel, output = operands[1], instruction
    channels = kernel.arrays[0][1][labels[2].index("o")] if kernel.arrays else 1
    return 2.0 * output.numel * kernel.numel / max(1, channels)


def _attention(instruction: Instruction, operands: Sequence[Instruction]) -> float:
    shapes = [operand.arrays[0][1] for operand in operands[:2] if operand.arrays]
    if len(shapes) < 2 or len(shapes[0]) != 4:
        return 0.0
    lengths = sorted(shapes[0][1:3])[-1] * sorted(shapes[1][1:3])[-1]
    heads = shapes[0][0] * sorted(shapes[0][1:3])[0]
    products = 5 if "Backward" in instruction.attributes else 2
    causal = 0.5 if '"mask_type":"CAUSAL"' in instruction.attributes else 1.0
    return 2.0 * products * causal * heads * lengths * shapes[0][3]


def _instruction(line: str) -> Instruction | None:
    left, _, right = line.strip().partition(" = ")
    name = left.removeprefix("ROOT ").lstrip("%")
    end = _closing(right, 0) + 1 if right.startswith("(") else right.find(" ")
    kind, rest = right[:end], right[end:].lstrip()
    start = rest.find("(")
    if start < 0:
        return None
    close = _closing(rest, start)
    arrays = [
        (dtype, tuple(int(each) for each in shape.split(",") if each))
        for dtype, shape in _ARRAY.findall(kind)
    ]
    attributes = rest[close + 1 :]
    places = _LINE.findall(attributes) or _NAMED_LINE.findall(attributes)
    lines = [f"{file}:{number}" for file, number in dict.fromkeys(places)]
    operands = _NAME.findall(rest[start : close + 1])
    return Instruction(name, rest[:start], arrays, operands, attributes, _CALLS.findall(attributes), lines)


def _closing(text: str, start: int) -> int:
    """Where the bracket at `start` closes."""
    depth = 0
    for i in range(start, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if not depth:
            return i
    return len(text)
