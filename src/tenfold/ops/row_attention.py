"""Attention of single rows of queries over many keys, as when a model generates text with a cache.

On a GPU a kernel of our own reads the keys and values once and never stores the scores. Many programs share
the keys of a row, each with a part of them; then a second kernel joins what they found. A row of the cache
that the same program writes is written by the kernel, which has it at hand (`ops/tile_absorbing.py`).
"""

from __future__ import annotations

import math
from typing import Any

from tenfold import flat
from tenfold.base import dtypes
from tenfold.flat import TensorType, Value
from tenfold.ops.tile_kernels import LIMIT, LOWEST, block_of, call, kernel

DTYPES = (dtypes.float32, dtypes.bfloat16, dtypes.float16)
WIDEST = 256  # elements of a key or a value
ELEMENTS = 8192  # of keys that a program looks at together
PROGRAMS = 3200  # that keep a GPU busy: they wait for memory most of the time
MANY_PROGRAMS = 6400  # of which some have nothing to do
FEWEST = 64  # keys of a program
AHEAD = 2  # strips of keys
WARPS = 8
LARGE = 1 << 22  # elements of keys and values, of which it takes less time to ask a mask first


@kernel
def attend(
    k, query, key, value, *others,
    keys, width, value_width, group, parts, strip, ahead, turns, scale,
    mask=None, sparse=False, every=0, writes=(),
):  # fmt: skip
    """One row of queries and one of the `parts` of its keys, `turns` times strips of them, of which so many
    are read `ahead` of their use: the values, weighted by exponentials of the scores above the largest; the
    sum of those exponentials; the largest score.

    A mask is "added" to the scores or "excludes" where it is zero; `every` so many rows have a row of it.
    Strips that a `sparse` mask excludes are passed over, which takes less time if there are many strips.
    `writes` names what a row is written to first, "key" or "value"; the operand that has its number, which
    nothing is written to if it is outside; and how many heads share a number. The next operand is the row.
    The last results are what is written to.
    """
    operands = (query, key, value, *others)
    new = {name: (place, heads) for name, place, heads in writes}
    written = dict(zip(new, operands[len(operands) - len(new) :], strict=True))
    masked = others[0] if mask else None
    out, *sums = others[2 * len(new) + bool(mask) :]
    program = k.program()
    row = k.quotient(program, parts)
    part = program - row * parts
    head = k.quotient(row, group)
    columns, value_columns = k.range(block_of(width, 16)), k.range(block_of(value_width, 16))
    inside = None if columns.shape[0] == width else columns < width
    value_inside = None if value_columns.shape[0] == value_width else value_columns < value_width
    asked = k.load(query, columns + row * width, inside) * scale
    mask_row = k.quotient(row, every) * keys if mask else None

    def numbered(name):
        """The number of the new row."""
        place, heads = new[name]
        return k.to_int32(k.load(operands[place], k.quotient(head, heads)))

    def updated(name, ref, lanes, lanes_inside, size, places, there, positions):
        """A strip of the keys or of the values, with the row that is new."""
        filled = k.column(there) if lanes_inside is None else k.both(k.column(there), k.row(lanes_inside))
        strip_of_cache = k.load(ref, places, filled)
        if name not in new:
            return strip_of_cache
        place, number = new[name][0], numbered(name)
        fresh = k.load(operands[place + 1], lanes + head * size, lanes_inside)
        here = k.both(positions == number, there)
        first = row == head * group
        stored = k.both(k.column(k.both(here, first)), filled)
        k.store(written[name], places, k.row(fresh), stored)
        return k.where(k.column(here), k.row(fresh), strip_of_cache)

    def read(first):
        """A strip of keys and one of values, where they are, and what the mask says."""
        positions = k.range(strip) + first
        there = positions < keys
        decides = None if masked is None else k.load(masked, positions + mask_row, there)
        at = k.column(positions + head * keys)
        seen = updated("key", key, columns, inside, width, at * width + k.row(columns), there, positions)
        places = at * value_width + k.row(value_columns)
        heard = updated("value", value, value_columns, value_inside, value_width, places, there, positions)
        return there, seen, heard, decides

    def first_of(i, j):
        """The first key of a strip of a turn."""
        return (part * turns + i) * (strip * ahead) + j * strip

    def needed(i):
        """Whether any key of a turn is attended to, or is new."""
        most = k.full(0.0, strip)
        for j in range(ahead):
            positions = k.range(strip) + first_of(i, j)
            most = k.maximum(most, k.load(masked, positions + mask_row, positions < keys))
            for name in new:
                most = k.where(positions == numbered(name), 1.0, most)
        return k.max(most) > 0.0

    def turn(i, most, total, weighted):
        """Every place in a strip has a largest score and sums of its own until the end."""
        for there, seen, heard, decides in [read(first_of(i, j)) for j in range(ahead)]:
            scores = k.sum(seen * k.row(asked), axis=1)
            if mask == "added":
                scores = scores + decides
            elif mask == "excludes":
                scores = k.where(decides == 0.0, float("-inf"), scores)
            scores = k.where(there, scores, float("-inf"))
            now = k.maximum(most, scores)
            finite = k.maximum(now, LOWEST)  # -inf less -inf is no number
            powers, shrunk = k.exp(scores - finite), k.exp(most - finite)
            weighted = weighted * k.column(shrunk) + heard * k.column(powers)
            most, total = now, total * shrunk + powers
        return most, total, weighted

    def needed_turn(i, *carry):
        return k.when(needed(i), lambda: turn(i, *carry), carry) if sparse else turn(i, *carry)

    def attended():
        """The largest score of the part, the sum of exponentials, and the weighted values."""
        carry = [k.full(float("-inf"), strip), k.full(0.0, strip), k.full(0.0, strip, lanes)]
        most, total, weighted = turn(0, *carry) if turns == 1 else k.loop(turns, carry, needed_turn)
        top = k.max(most)
        shares = k.exp(most - k.maximum(top, LOWEST))
        return top, k.sum(total * shares), k.sum(weighted * k.column(shares), axis=0)

    lanes = value_columns.shape[0]
    if sparse and turns == 1:
        nothing = [k.full(float("-inf")), k.full(0.0), k.full(0.0, lanes)]
        top, total, weighted = k.when(needed(0), attended, nothing)
    else:
        top, total, weighted = attended()
    places = value_columns + program * value_width
    if parts == 1:
        weighted = weighted / k.where(top == float("-inf"), 1.0, total)
    else:
        k.store(sums[0], program, total)
        k.store(sums[1], program, top)
    k.store(out, places, weighted, value_inside)


@kernel
def join(k, weighted, totals, largest, out, *, value_width, parts):
    """What `attend` found for the parts of a row, as one."""
    row, numbers, columns = k.program(), k.range(parts), k.range(block_of(value_width, 16))
    inside = None if columns.shape[0] == value_width else columns < value_width
    most = k.load(largest, numbers + row * parts)
    top = k.max(most)
    shares = k.exp(most - k.maximum(top, LOWEST))
    total = k.sum(shares * k.load(totals, numbers + row * parts))
    places = k.column((numbers + row * parts) * value_width) + k.row(columns)
    filled = None if inside is None else k.row(inside)
    found = k.sum(k.load(weighted, places, filled) * k.column(shares), axis=0)
    found = found / k.where(top == float("-inf"), 1.0, total)
    k.store(out, columns + row * value_width, found, inside)


def fits(query: Value, key: Value, value: Value) -> bool:
    """Whether `attend` takes these: batches of matrices of one float dtype."""
    return (
        query.dtype in DTYPES
        and 0 < query.shape[-1] <= WIDEST
        and 0 < value.shape[-1] <= WIDEST
        and query.numel > 0
        and 0 < max(key.numel, value.numel) < LIMIT
    )


def on_gpu(query: Value, key: Value, value: Value, mask: Value | None, scale: float) -> tuple[Value]:
    """The attention of rows (…, group, width) over keys (…, keys, width); a mask broadcasts to the scores."""
    *leading, group, width = query.shape
    keys, value_width = value.shape[-2:]
    rows = math.prod(leading) * group
    strip = max(16, min(block_of(keys, 16), ELEMENTS // block_of(max(width, value_width), 16)))
    excludes = mask is not None and mask.dtype is dtypes.bool_
    sparse = excludes and key.numel + value.numel >= LARGE
    wanted = min(-(-(MANY_PROGRAMS if sparse else PROGRAMS) // rows), -(-keys // FEWEST))
    parts = 1 << (wanted.bit_length() - 1)
    strip = min(strip, max(FEWEST, block_of(-(-keys // parts), 16)))
    ahead = min(AHEAD, -(-keys // (parts * strip)))
    turns = -(-keys // (parts * strip * ahead))
    options: dict[str, Any] = {
        "keys": keys, "width": width, "value_width": value_width, "group": group,
        "parts": parts, "strip": strip, "ahead": ahead, "turns": turns, "scale": float(scale),
    }  # fmt: skip
    inputs = [flat.convert(each, dtypes.float32) for each in (query, key, value)]
    if mask is not None:
        options["mask"], options["sparse"] = "excludes" if excludes else "added", sparse
        mask, options["every"] = _rows_of(mask, (*leading, group), keys)
        inputs.append(flat.convert(mask, dtypes.float32))
    number = TensorType(dtypes.float32, (rows, parts))
    found = TensorType(dtypes.float32, (*leading, group, *([parts] if parts > 1 else []), value_width))
    results = [found] if parts == 1 else [found, number, number]
    warps = WARPS if strip * block_of(width, 16) > ELEMENTS // 2 else 4
    out = call(attend, inputs, results, rows * parts, warps, **options)
    if parts > 1:
        joined = TensorType(dtypes.float32, (*leading, group, value_width))
        out = call(join, out, [joined], rows, 4, value_width=value_width, parts=parts)
    return (flat.convert(out[0], query.dtype),)


def _rows_of(mask: Value, rows: tuple[int, ...], keys: int) -> tuple[Value, int]:
    """A mask as rows of all keys, and how many rows of queries share one."""
    shape = (1,) * (len(rows) + 1 - mask.rank) + mask.shape
    mask = flat.broadcast_to(flat.reshape(mask, shape), (*shape[:-1], keys))
    own = [size for size, each in zip(shape[:-1], rows, strict=True) if size == each]
    if shape[:-1] != (*own, *[1] * (len(rows) - len(own))):
        mask, own = flat.broadcast_to(mask, (*rows, keys)), list(rows)
    return mask, math.prod(rows) // max(1, math.prod(own))
