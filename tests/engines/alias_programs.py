"""Random programs of views, views of views and writes through them, on PyTorch and on Tenfold at once."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

import tenfold as tn

SHAPES = [(4, 4), (6,), (2, 3, 4), (8,), (3, 5)]


class Step(NamedTuple):
    name: str
    apply: Callable[[Any], Any]


def views(x: torch.Tensor, draw: random.Random) -> Step:
    """A view of a tensor of one dimension or more."""
    dim = draw.randrange(x.dim())
    other = draw.randrange(x.dim())
    extent = x.shape[dim]
    start = draw.randrange(extent + 1)
    stop, step = draw.randrange(start, extent + 1), draw.choice([1, 1, 2, 3])
    index = (slice(None),) * dim + (slice(start, stop, step),)
    steps = [
        Step(f"[{start}:{stop}:{step}] in {dim}", lambda t: t[index]),
        Step(f"transpose {dim} {other}", lambda t: t.transpose(dim, other)),
        Step(f"unsqueeze {dim}", lambda t: t.unsqueeze(dim)),
        Step(f"movedim {dim}", lambda t: t.movedim(dim, 0)),
        Step("squeeze", lambda t: t.squeeze()),
    ]
    if extent:
        place, size = draw.randrange(extent), draw.randrange(1, extent + 1)
        length, part = draw.randrange(extent - place + 1), draw.randrange(-(-extent // size))
        steps += [
            Step(f"select {dim} {place}", lambda t: t.select(dim, place)),
            Step(f"unfold {dim} {size} {step}", lambda t: t.unfold(dim, size, step)),
            Step(f"narrow {dim} {place} {length}", lambda t: t.narrow(dim, place, length)),
            Step(f"split {size} {dim}, {part}", lambda t: t.split(size, dim)[part]),
        ]
    if dim != other:
        offset = draw.randrange(-1, 2)
        steps.append(Step(f"diagonal {offset} {dim} {other}", lambda t: t.diagonal(offset, dim, other)))
    if x.is_contiguous():
        steps.append(Step("view", lambda t: t.view(-1)))
        if x.numel() >= 4:
            steps.append(Step("as_strided", lambda t: t.as_strided((2, 2), (1, 2))))
    return draw.choice(steps)


def writes(draw: random.Random) -> Step:
    number = draw.choice([2.0, 3.0, -1.0, 0.5])
    return draw.choice(
        [
            Step(f"add_ {number}", lambda t: t.add_(number)),
            Step(f"mul_ {number}", lambda t: t.mul_(number)),
            Step(f"fill_ {number}", lambda t: t.fill_(number)),
            Step("neg_", lambda t: t.neg_()),
            Step("clamp_", lambda t: t.clamp_(-5, 5)),
            Step("masked_fill_", lambda t: t.masked_fill_(t > 1, number)),
            Step("copy_", lambda t: t.copy_(t * 2 + 1)),
            Step("cumsum_", lambda t: t.cumsum_(0) if t.dim() else t.zero_()),
            Step("setitem", lambda t: t.__setitem__(..., number)),
        ]
    )


def overlaps(x: torch.Tensor) -> bool:
    """Whether elements share memory, in which case PyTorch leaves open what a write does."""
    places = torch.arange(1000).as_strided(x.size(), x.stride(), x.storage_offset())
    return places.unique().numel() != x.numel()


def difference(seed: int) -> str | None:
    """What one program does that PyTorch does not; None if they agree on every tensor."""
    draw = random.Random(seed)
    shape = draw.choice(SHAPES)
    count = int(torch.tensor(shape).prod())
    theirs, ours = (
        [torch.arange(float(count)).reshape(shape).clone()],
        [tn.arange(float(count)).reshape(shape)],
    )
    ours[0] = ours[0].clone()
    told = [f"x0 = {shape}"]
    for _ in range(draw.randrange(2, 9)):
        which = draw.randrange(len(theirs))
        if draw.random() < 0.55 and theirs[which].dim():
            step = views(theirs[which], draw)
            theirs.append(step.apply(theirs[which]))
            ours.append(step.apply(ours[which]))
            told.append(f"x{len(ours) - 1} = x{which} {step.name}")
        elif not overlaps(theirs[which]):
            step = writes(draw)
            step.apply(theirs[which])
            step.apply(ours[which])
            told.append(f"x{which} {step.name}")
        if draw.random() < 0.25:
            ours[-1].tolist()
    for place, (one, other) in enumerate(zip(theirs, ours, strict=True)):
        if one.tolist() != other.tolist():
            return "; ".join([*told, f"x{place} is {other.tolist()}, not {one.tolist()}"])
    return None
