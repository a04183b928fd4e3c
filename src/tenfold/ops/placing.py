"""Elements put at, and picked from, places of a flattened image: how pools with indices go back and forth.

`put` and `pick` are each other's gradients. Places count row by row over the spatial dimensions.
"""

from __future__ import annotations

import math

from tenfold import flat
from tenfold.base import dtypes
from tenfold.flat import Value

Ints = tuple[int, ...]


def _of_pick(cotangent, result, x, places, dims):
    return put(cotangent, places, x.shape[x.rank - dims :]), None


@flat.differentiated(_of_pick)
def pick(x, places, dims):
    """The elements of x at these places of its last `dims` dimensions."""
    lead = x.shape[: x.rank - dims]
    if not places.numel:
        return flat.full(places.shape, 0, x.dtype)
    numbers = flat.GatherDimensions((), (0,), (0,), 1)
    found = flat.gather(
        flat.reshape(x, (-1,)), _linear(places, lead, math.prod(x.shape[x.rank - dims :])), numbers, (1,)
    )
    return flat.reshape(found, places.shape)


def _of_put(cotangent, result, x, places, shape):
    return pick(cotangent, places, len(shape)), None


@flat.differentiated(_of_put)
def put(x, places, shape):
    """Zeros of this spatial shape with the elements of x added at their places."""
    lead = x.shape[: x.rank - len(shape)]
    return place(x, places, lead, shape, "add")


def place(x: Value, places: Value, lead: Ints, shape: Ints, combine: str) -> Value:
    """Zeros of this spatial shape with the elements of x set, or added, at their places."""
    if combine == "add" and x.dtype in (dtypes.float16, dtypes.bfloat16):
        wide = place(flat.convert(x, dtypes.float32), places, lead, shape, combine)
        return flat.convert(wide, x.dtype)
    size = math.prod(lead) * math.prod(shape)
    if not x.numel or not size:
        return flat.full((*lead, *shape), 0, x.dtype)
    zeros = flat.full((size,), 0, x.dtype)
    numbers = flat.ScatterDimensions((), (0,), (0,), 1)
    found = flat.scatter(
        zeros, _linear(places, lead, math.prod(shape)), flat.reshape(x, (-1,)), numbers, combine
    )
    return flat.reshape(found, (*lead, *shape))


def _linear(places: Value, lead: Ints, size: int) -> Value:
    """Places in each image as places in all of them, one component each."""
    count = math.prod(lead)
    images = flat.iota((count, 1), 0, dtypes.int64) * size
    found = flat.reshape(flat.convert(places, dtypes.int64), (count, -1)) + images
    return flat.reshape(found, (-1, 1))
