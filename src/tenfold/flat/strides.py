"""Strides: how a tensor of some shape lies in linear memory, counted in elements."""

from __future__ import annotations

from collections.abc import Sequence

Strides = tuple[int, ...]
Layout = tuple[Strides, int]


def contiguous(shape: Sequence[int]) -> Strides:
    """Row-major strides."""
    strides = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        strides[i] = strides[i + 1] * max(shape[i + 1], 1)
    return tuple(strides)


def is_contiguous(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether these strides are row-major where it matters: in dimensions of more than one element."""
    return 0 in shape or all(
        extent == 1 or have == want
        for extent, have, want in zip(shape, strides, contiguous(shape), strict=True)
    )


# PyTorch's memory formats that are not row-major: the dimensions, slowest first.
FORMATS = {"channels_last": (0, 2, 3, 1), "channels_last_3d": (0, 2, 3, 4, 1)}


def follows(shape: Sequence[int], strides: Sequence[int], memory_format: str) -> bool:
    """Whether these strides are a format's where it matters."""
    order = FORMATS[memory_format]
    return len(shape) == len(order) and is_contiguous([shape[i] for i in order], [strides[i] for i in order])


def reshaped(shape: Strides, strides: Strides, target: Strides) -> Strides | None:
    """The strides with which `target` walks the same elements in the same order; None if there are none."""
    if 0 in shape:
        return strides if target == shape else contiguous(target)
    result: list[int] = []
    wanted = list(target)
    for count, stride in _runs(shape, strides):
        taken = 1
        while wanted and (taken < count or wanted[-1] == 1):
            result.append(taken * stride)
            taken *= wanted.pop()
        if taken != count:
            return None
    return tuple(reversed(result))


def _runs(shape: Strides, strides: Strides) -> list[tuple[int, int]]:
    """Runs of dimensions that lie in memory as one, the last first: how many elements, at what stride."""
    runs: list[tuple[int, int]] = []
    count, stride = 1, strides[-1] if strides else 1
    for axis in range(len(shape) - 1, -1, -1):
        count *= shape[axis]
        if axis and shape[axis - 1] != 1 and strides[axis - 1] != count * stride:
            runs.append((count, stride))
            count, stride = 1, strides[axis - 1]
    runs.append((count, stride))
    return runs
