"""Small parameters updated as one.

Each loop of a program takes XLA a while to compile and a little to start, however small the tensor it runs
over; and an update is several loops for every parameter. The parameters of a tiny model, laid end to end,
need no more of them than one does. The result is the same: an update joined here is elementwise.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenfold import flat
from tenfold.optim.optimizer import COUNTERS

# Bytes of a parameter that is worth joining to others. Of larger ones a joined update takes longer: it waits
# for the last gradient, and XLA computes it anew for each part.
SMALL = 128

Places = Sequence[tuple[str, int]]  # what a parameter's state is called, and which of the tensors it is


def bunches(
    params: Sequence[flat.Value], kept: Sequence[flat.Value], names: Sequence[Places]
) -> list[list[int]]:
    """Which parameters are updated together: small ones of one dtype, with the same kinds of state."""
    found: dict[object, list[int]] = {}
    for i, (param, places) in enumerate(zip(params, names, strict=True)):
        state = {name: kept[place] for name, place in places if name not in COUNTERS}
        small = param.numel * param.dtype.itemsize <= SMALL and not param.dtype.is_complex
        if small and all(each.shape == param.shape for each in state.values()):
            dtypes = tuple([(name, each.dtype) for name, each in state.items()])
            counters = tuple([place for place in places if place[0] in COUNTERS])
            found.setdefault((param.dtype, dtypes, counters), []).append(i)
        else:
            found[i] = [i]
    return list(found.values())


def joined(values: Sequence[flat.Value]) -> flat.Value:
    """The elements of all as one vector; a single one stays as it is."""
    if len(values) == 1:
        return values[0]
    return flat.concatenate([flat.reshape(value, (value.numel,)) for value in values], 0)


def parted(whole: flat.Value, like: Sequence[flat.Value]) -> list[flat.Value]:
    """What was joined, in the shapes of these."""
    if len(like) == 1:
        return [whole]
    parts, start = [], 0
    for each in like:
        part = flat.slice(whole, (start,), (start + each.numel,))
        parts.append(flat.reshape(part, each.shape))
        start += each.numel
    return parts
