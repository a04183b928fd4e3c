"""Every row of the op table on tensors that the devices of a mesh do not divide, with NaN or the largest
integers in their padding, beside the same calls on one device: values and gradients. The placements "sliced"
are of larger tensors that they divide, of which a call takes the first rows: XLA splits these unevenly.

    TENFOLD_CPU_DEVICES=4 python -m tests.distributed.uneven_rows --placements first
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np

import tenfold as tn
from tenfold.base import dtypes
from tenfold.base.errors import TenfoldError
from tenfold.distributed.device_mesh import init_device_mesh
from tenfold.distributed.tensor import Replicate, Shard, distribute_tensor
from tenfold.engines import sharded
from tenfold.ops.table import Row, all_rows
from tests.ops import generate, golden
from tests.ops.golden import Call

MESH = {
    "first": lambda: init_device_mesh("cpu", (3,)),
    "last": lambda: init_device_mesh("cpu", (3,)),
    "both": lambda: init_device_mesh("cpu", (2, 2)),
    "sliced": lambda: init_device_mesh("cpu", (3,)),
}
DTYPES = [dtypes.float32, dtypes.int64, dtypes.bool_, dtypes.complex64]
SAMPLES = 4


def spoiled(part: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """A part whose padding has what spoils any result that it gets into."""
    kind = part.dtype.kind
    filling: Any = np.nan
    if kind in "iu":
        filling = np.iinfo(part.dtype).max
    elif kind == "b":
        filling = True
    whole = np.full(shape, filling, part.dtype)
    whole[tuple([slice(extent) for extent in part.shape])] = part
    return whole


def placements(way: str, rank: int) -> list[Any]:
    if not rank:
        return [Replicate()] * (2 if way == "both" else 1)
    if way == "both":
        return [Shard(0), Shard(rank - 1)]
    return [Shard(rank - 1 if way == "last" else 0)]


def arguments(call: Call, way: str | None, mesh: Any, leaves: list[tn.Tensor]) -> tuple[Any, Any]:
    """The call's arguments, on a mesh if there is a way to place them; `leaves` gets those with gradients."""

    def converted(argument: Any, value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple([converted(argument, each) for each in value])
        found = golden.to_tenfold(argument, value)
        if not isinstance(found, tn.Tensor):
            return found
        rows = found.shape[0] if way == "sliced" and found.ndim else 0
        if rows:
            found = tn.cat([found, *[found[:1]] * (3 - rows % 3)])
        if way is not None:
            found = distribute_tensor(found, mesh, placements(way, found.ndim))
        if found.dtype.is_floating_point:
            leaves.append(found.requires_grad_())
        return found[:rows] if rows else found

    return call.arguments(converted)


def outcome(call: Call, way: str | None, mesh: Any) -> list[Any]:
    """The results of a call and the gradients of their sum of squares."""
    leaves: list[tn.Tensor] = []
    args, kwargs = arguments(call, way, mesh, leaves)
    results = golden.flattened(golden.function(call.row)(*args, **kwargs))
    gradients: list[Any] = []
    reached = [
        each
        for each in results
        if isinstance(each, tn.Tensor) and each.requires_grad and each.dtype.is_floating_point
    ]
    if reached:
        weights = [tn.arange(1.0, each.numel() + 1).reshape(each.shape).cos() for each in reached]
        total = sum(
            [(each * weight.to(each.dtype)).sum() for each, weight in zip(reached, weights, strict=True)]
        )
        gradients = [each for each in tn.autograd.grad(total, leaves, allow_unused=True) if each is not None]
    found = [each.detach() for each in [*results, *gradients] if isinstance(each, tn.Tensor)]
    tn.eval(*found)
    return [each.numpy() for each in found]


def compare(row: Row, way: str, mesh: Any) -> tuple[int, list[str]]:
    compared, wrong = 0, []
    for dtype in DTYPES:
        for number, sample in generate.for_dtype(row, dtype)[:SAMPLES]:
            call = Call(row, number, sample, dtype)
            try:
                tn.manual_seed(0)
                expected = outcome(call, None, mesh)
            except (TenfoldError, RuntimeError):
                continue
            try:
                tn.manual_seed(0)
                found = outcome(call, way, mesh)
            except (TenfoldError, RuntimeError) as error:
                wrong.append(f"{call}: {type(error).__name__}: {str(error).splitlines()[0]}")
                continue
            compared += 1
            for mine, theirs in zip(found, expected, strict=True):
                if way == "sliced" and mine.ndim:
                    mine = mine[: len(theirs)]  # a gradient has zeros for the rows that were left out
                rtol, atol = golden.usual_tolerance(mine.dtype.name)
                if mine.shape != theirs.shape or not golden.close(mine, theirs, 10 * rtol, 10 * atol).all():
                    wrong.append(f"{call}: {mine.tolist()}, on one device {theirs.tolist()}"[:400])
    return compared, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--last", type=int, default=None)
    parser.add_argument("--only")
    parser.add_argument("--dtypes", type=int, default=len(DTYPES), help="how many, float32 first")
    parser.add_argument("--placements", choices=list(MESH), default="first")
    options = parser.parse_args()
    sharded._filled_up = spoiled
    del DTYPES[options.dtypes :]
    mesh, total, bad = MESH[options.placements](), 0, 0
    rows = sorted(all_rows(), key=lambda row: row.qualified)[options.first : options.last]
    for i, row in enumerate(rows):
        if options.only and row.qualified != options.only and row.name != options.only:
            continue
        compared, wrong = compare(row, options.placements, mesh)
        total, bad = total + compared, bad + len(wrong)
        for each in wrong:
            print(f"{i + options.first} {row.qualified}: {each}", flush=True)
    print(f"{total} calls compared, {bad} wrong")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
