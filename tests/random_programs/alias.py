"""Random programs of views, views of views and writes through them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from tests.random_programs.programs import Program, Step, Use, apply

SHAPES = [(4, 4), (6,), (2, 3, 4), (8,), (3, 5)]


def grow(seed: int) -> Program:
    """A program, grown while PyTorch runs it. It writes only where PyTorch says what a write does."""
    draw = random.Random(seed)
    shape = draw.choice(SHAPES)
    inputs = [np.arange(math.prod(shape), dtype=np.float32).reshape(shape)]
    pool = [torch.from_numpy(inputs[0].copy())]
    uses: list[Use] = []
    for _ in range(draw.randrange(2, 9)):
        which = draw.randrange(len(pool))
        if draw.random() < 0.55 and pool[which].dim():
            name, call = view(pool[which], draw)
        elif not overlaps(pool[which]):
            name, call = write(draw)
        else:
            continue
        uses.append(Use(on_one(name, call), (which,)))
        apply(torch, pool, uses[-1])
    evaluated = frozenset(i for i in range(len(uses)) if draw.random() < 0.25)
    return Program(f"alias program {seed}", inputs, uses, evaluated, pool, exact=True)


Action = tuple[str, Callable[[Any], Any]]


def on_one(name: str, call: Callable[[Any], Any]) -> Step:
    return Step(name, 1, "f", lambda lib, n, x: call(x))


def view(x: torch.Tensor, draw: random.Random) -> Action:
    """A view of a tensor of one dimension or more."""
    dim = draw.randrange(x.dim())
    other = draw.randrange(x.dim())
    extent = x.shape[dim]
    start = draw.randrange(extent + 1)
    stop, step = draw.randrange(start, extent + 1), draw.choice([1, 1, 2, 3])
    index = (slice(None),) * dim + (slice(start, stop, step),)
    steps = [
        (f"[{start}:{stop}:{step}] in {dim}", lambda t: t[index]),
        (f"transpose {dim} {other}", lambda t: t.transpose(dim, other)),
        (f"unsqueeze {dim}", lambda t: t.unsqueeze(dim)),
        (f"movedim {dim}", lambda t: t.movedim(dim, 0)),
        ("squeeze", lambda t: t.squeeze()),
    ]
    if extent:
        place, size = draw.randrange(extent), draw.randrange(1, extent + 1)
        length, part = draw.randrange(extent - place + 1), draw.randrange(-(-extent // size))
        steps += [
            (f"select {dim} {place}", lambda t: t.select(dim, place)),
            (f"unfold {dim} {size} {step}", lambda t: t.unfold(dim, size, step)),
            (f"narrow {dim} {place} {length}", lambda t: t.narrow(dim, place, length)),
            (f"split {size} {dim}, {part}", lambda t: t.split(size, dim)[part]),
        ]
    if dim != other:
        offset = draw.randrange(-1, 2)
        steps.append((f"diagonal {offset} {dim} {other}", lambda t: t.diagonal(offset, dim, other)))
    if x.is_contiguous():
        steps.append(("view", lambda t: t.view(-1)))
        if x.numel() >= 4:
            steps.append(("as_strided", lambda t: t.as_strided((2, 2), (1, 2))))
    return draw.choice(steps)


def write(draw: random.Random) -> Action:
    number = draw.choice([2.0, 3.0, -1.0, 0.5])
    return draw.choice(
        [
            (f"add_ {number}", lambda t: t.add_(number)),
            (f"mul_ {number}", lambda t: t.mul_(number)),
            (f"fill_ {number}", lambda t: t.fill_(number)),
            ("neg_", lambda t: t.neg_()),
            ("clamp_", lambda t: t.clamp_(-5, 5)),
            ("masked_fill_", lambda t: t.masked_fill_(t > 1, number)),
            ("copy_", lambda t: t.copy_(t * 2 + 1)),
            ("cumsum_", lambda t: t.cumsum_(0) if t.dim() else t.zero_()),
            ("setitem", lambda t: assign(t, number)),
        ]
    )


def assign(x: Any, number: float) -> Any:
    x[...] = number
    return x


def overlaps(x: torch.Tensor) -> bool:
    """Whether elements share memory, in which case PyTorch leaves open what a write does."""
    places = torch.arange(1000).as_strided(x.size(), x.stride(), x.storage_offset())
    return places.unique().numel() != x.numel()
