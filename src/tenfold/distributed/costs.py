"""What collectives cost: read from the program that XLA made, and predicted for a way to shard a model.

`docs/scaling.md` explains the predictions, and the tests compare the two.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")
_COMMENT = re.compile(r"/\*.*?\*/")
_OP = re.compile(rf"= ([^=\n]*?) ({'|'.join(KINDS)})(?:-start)?\((.*)$", re.MULTILINE)
_SHAPE = re.compile(r"\b(pred|[a-z]+\d+)[a-z0-9]*\[([\d,]*)\]")
_BITS = re.compile(r"\d+")


class Collective(NamedTuple):
    """A collective in a compiled program: its kind, the bytes of its results on one device, and over how many
    devices it goes."""

    kind: str
    bytes: int
    devices: int

    @property
    def sent(self) -> float:
        """The bytes that each device sends by the ring algorithm."""
        rest = (self.devices - 1) / self.devices
        if self.kind == "all-reduce":
            return 2 * rest * self.bytes
        if self.kind == "reduce-scatter":
            return (self.devices - 1) * self.bytes
        return self.bytes if self.kind == "collective-permute" else rest * self.bytes


def collectives(hlo: str, devices: int) -> list[Collective]:
    """The collectives in HLO text, as `show(stage="hlo")` gives it, of a program over so many devices."""
    found = []
    for result, kind, rest in _OP.findall(_COMMENT.sub("", hlo)):
        size = sum([_bytes(dtype, shape) for dtype, shape in _SHAPE.findall(result)])
        found.append(Collective(kind, size, _group_size(rest, devices)))
    return found


def _bytes(dtype: str, shape: str) -> int:
    bits = 8 if dtype == "pred" else int(_BITS.findall(dtype)[0])
    return math.prod([int(each) for each in shape.split(",") if each]) * bits // 8


def _group_size(rest: str, devices: int) -> int:
    listed = re.search(r"replica_groups=\{\{([\d,]+)\}", rest)
    if listed:
        return len(listed.group(1).split(","))
    iota = re.search(r"replica_groups=\[(\d+),(\d+)\]", rest)
    if iota:
        return int(iota.group(2))
    named = re.search(r"replica_groups=mesh\[(.*?)\](?:, device_ids=\S+)? \{(.*?)\}", rest)
    if named:
        sizes = dict(re.findall(r"'(\w+)'=(\d+)", named.group(1)))
        return math.prod([int(sizes[axis]) for axis in re.findall(r"'(\w+)'", named.group(2))])
    return devices


# Predictions for one training step, in float32: the bytes of all collectives' results on one device


def data_parallel(parameters: Sequence[int]) -> dict[str, int]:
    """Every device has every parameter (of so many bytes each), and its gradient is all-reduced."""
    return {"all-reduce": sum(parameters)}


def fully_sharded(parameters: Sequence[int], devices: int) -> dict[str, int]:
    """Each parameter is gathered once and kept for the backward pass. Its gradient is reduced and scattered:
    each device gets its part."""
    return {"all-gather": sum(parameters), "reduce-scatter": sum(parameters) // devices}


def hybrid_sharded(parameters: Sequence[int], devices: int) -> dict[str, int]:
    """As fully sharded over so many devices, in replicas of these: each device adds up its part of the
    gradients with those that have the same part."""
    part = sum(parameters) // devices
    return {"all-gather": sum(parameters), "reduce-scatter": part, "all-reduce": part}


def tensor_parallel(
    layers: int, tokens: int, width: int, projections: int = 3, itemsize: int = 4
) -> dict[str, int]:
    """Each block adds up two activations of `tokens` by `width` forward, after attention and after the MLP,
    and backward those of their inputs: one all-reduce each. That of attention carries a gradient for each of
    the `projections` that read the input, which XLA for GPUs adds up first: there it is one."""
    return {"all-reduce": (3 + projections) * layers * tokens * width * itemsize}
