"""What all random programs share: steps over a pool of tensors, grown on PyTorch, then run on Tenfold.

Many programs run in step, so that what they evaluate at one point is one program to XLA, whose compile is the
most of what they cost. What a step returns joins the pool: of a write, the tensor that was written to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
import torch

import tenfold as tn
from tests.ops import golden


class Step(NamedTuple):
    """One op: how many tensors it takes, of which kinds, and the call, the same on either library."""

    name: str
    operands: int
    kinds: str  # of the first operand: f(loat), i(nt), b(ool), or any of them
    call: Callable[..., Any]


class Use(NamedTuple):
    """A step applied to places in the pool, with a small number for whatever it chooses (a dim, an index)."""

    step: Step
    places: tuple[int, ...]
    number: int = 0


class Program(NamedTuple):
    name: str  # which makes it again
    inputs: list[np.ndarray]
    uses: list[Use]
    evaluated: frozenset[int]  # the steps whose results are read before the next step is recorded
    expected: list[torch.Tensor]  # the pool on PyTorch, at the end
    exact: bool = False
    open_axes: frozenset[tuple[int, int]] = frozenset()  # inputs and their dimensions of open size

    def __repr__(self) -> str:
        lines = [f"x{i} = {each.dtype}{list(each.shape)}" for i, each in enumerate(self.inputs)]
        for i, use in enumerate(self.uses):
            arguments = [*[f"x{place}" for place in use.places], str(use.number)]
            read = "  # evaluated" if i in self.evaluated else ""
            lines.append(f"x{i + len(self.inputs)} = {use.step.name}({', '.join(arguments)}){read}")
        return "\n".join([self.name, *lines])


def apply(lib: Any, pool: list[Any], use: Use) -> Any:
    """Append what a step makes. Of PyTorch's results, those that are no views are laid out in order, as all
    of Tenfold's are (docs/differences.md): else `contiguous` and `reshape` copy on one side alone."""
    made = use.step.call(lib, use.number, *[pool[i] for i in use.places])
    if lib is torch and all(
        made.untyped_storage().data_ptr() != x.untyped_storage().data_ptr() for x in pool
    ):
        made = made.contiguous()
    pool.append(made)
    return made


def run(programs: Sequence[Program]) -> list[list[tn.Tensor]]:
    """Run programs in step; the pools at the end, evaluated."""
    pools = [[tn.tensor(each) for each in program.inputs] for program in programs]
    for i, uses in enumerate(zip_longest(*[program.uses for program in programs])):
        read = []
        for program, pool, use in zip(programs, pools, uses, strict=True):
            if use is not None:
                made = apply(tn, pool, use)
                read += [made] if i in program.evaluated else []
        if read:
            tn.eval(*read)
    tn.eval(*[tensor for pool in pools for tensor in pool])
    return pools


def run_compiled(programs: Sequence[Program]) -> list[list[tn.Tensor]]:
    """Run programs as one compiled function, at its second call."""
    whole = [program._replace(evaluated=frozenset()) for program in programs]

    def function(inputs: list[list[tn.Tensor]]) -> list[list[tn.Tensor]]:
        pools = [[each.clone() for each in tensors] for tensors in inputs]
        for program, pool in zip(whole, pools, strict=True):
            for use in program.uses:
                apply(tn, pool, use)
        return pools

    compiled = tn.compile(function, fullgraph=True)
    for _ in range(2):
        pools = compiled([[tn.tensor(each) for each in program.inputs] for program in whole])
    return pools


def difference(program: Program, pool: list[tn.Tensor]) -> str | None:
    """What a program does on Tenfold that it does not on PyTorch; None if all its tensors agree."""
    for i, (ours, theirs) in enumerate(zip(pool, program.expected, strict=True)):
        kind, reference_kind = (
            f"{ours.dtype.name}{list(ours.shape)}",
            f"{str(theirs.dtype)[6:]}{list(theirs.shape)}",
        )
        if kind != reference_kind:
            return f"{program!r}\nx{i} is {kind}, on PyTorch {reference_kind}"
        found, reference = ours.numpy(), golden.to_numpy(theirs)
        if not (np.array_equal(found, reference) if program.exact else agree(found, reference)):
            return f"{program!r}\nx{i} is {found}, on PyTorch {reference}"
    return None


def agree(found: np.ndarray, reference: np.ndarray) -> bool:
    """Whether results of float32 steps, each of condition about one, are the same but for rounding. Sums may
    cancel, so that is relative to the largest element that is finite."""
    sizes = np.abs(reference.astype(np.float64))
    scale = sizes.max(initial=1.0, where=np.isfinite(sizes))
    return bool(golden.close(found, reference, 1e-4, 1e-5 * scale).all())


def differences(
    programs: Sequence[Program], run: Callable[[Sequence[Program]], list[list[tn.Tensor]]] = run
) -> list[str]:
    """What differs from PyTorch. Where running them raises, each half runs by itself, down to the culprit."""
    try:
        pools = run(programs)
    except Exception as error:
        if len(programs) == 1:
            return [f"{programs[0]!r}\nraises {type(error).__name__}: {error}"]
        half = len(programs) // 2
        return differences(programs[:half], run) + differences(programs[half:], run)
    found = [difference(*each) for each in zip(programs, pools, strict=True)]
    return [each for each in found if each is not None]
