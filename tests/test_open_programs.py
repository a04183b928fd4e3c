"""Random programs whose sizes are open agree with PyTorch at every size, whatever lies in the padding. More:
`python -m tests.random_programs --engine open`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.runtime import executables, lazy_sizes, tiers
from tenfold.runtime.background import background
from tests.ops import golden
from tests.random_programs import open_sizes
from tests.random_programs.open_sizes import grow, hostile_padding, run_open
from tests.random_programs.programs import Program, agree, apply, difference, differences


@pytest.fixture(autouse=True)
def padding():
    with hostile_padding():
        yield


@pytest.fixture
def interpreted(monkeypatch):
    """Let tier 0 run open programs in the place of executables: nothing is compiled."""
    monkeypatch.setattr(executables, "build_function", open_sizes.interpreted)


def test_open_programs_agree_with_pytorch(interpreted, monkeypatch):
    monkeypatch.setattr(open_sizes, "counts", {"open": 0, "closed": 0})
    for seed in range(20):
        assert differences(grow(seed), run_open) == []
    assert open_sizes.counts["open"] > open_sizes.counts["closed"]


def test_open_programs_on_xla_agree_with_pytorch():
    for seed in range(3):
        assert differences(grow(seed), run_open) == []


def run(lib: Any, program: Program, inputs: Sequence[Any]) -> list[Any]:
    pool = list(inputs)
    for use in program.uses:
        apply(lib, pool, use)
    return pool


@pytest.mark.usefixtures("on_all_tiers", "interpreted")
def test_lazy_loops_over_sizes_agree_with_pytorch(monkeypatch):
    """Tier 0 runs the first sizes; the others are open where they can be."""
    monkeypatch.setattr(executables, "build_in_background", lambda *_: "")
    for name in ("SMALL", "PATIENCE"):
        monkeypatch.setattr(tiers, name, 0)
    served = 0
    for seed in range(10):
        monkeypatch.setattr(lazy_sizes, "_families", type(lazy_sizes._families)())
        for program in grow(seed, sizes=6):
            results = run(tn, program, [tn.tensor(array) for array in program.inputs])
            tn.eval(*results)
            background.wait()
            assert difference(program, results) is None
        served += any(family.programs for family in lazy_sizes._families.values())
    assert served


def chosen(x: Any, mask: Any, axes: Sequence[int]) -> Any:
    """What a mask chooses along each open dimension."""
    for axis in axes:
        x = x[(slice(None),) * axis + (mask,)]
    return x


@pytest.mark.parametrize("seed", range(6))
def test_programs_on_what_a_mask_chooses_agree_with_pytorch(seed, interpreted):
    """Results are right whatever the size that depends on data, or it is refused by name."""
    sizes = grow(seed)
    largest = max(sizes, key=lambda program: program.inputs[0].size)
    room = open_sizes.LARGEST

    def on_chosen(lib: Any, mask: Any, inputs: Sequence[Any]) -> list[Any]:
        axes = [sorted(axis for place, axis in largest.open_axes if place == i) for i in range(len(inputs))]
        return run(lib, largest, [chosen(x, mask, of) for x, of in zip(inputs, axes, strict=True)])

    compiled = tn.compile(lambda mask, *inputs: on_chosen(tn, mask, inputs), fullgraph=True)
    try:
        for size in (7, 12, 5, 16):
            mask = np.random.default_rng(size).permutation(room) < size
            given = [torch.from_numpy(array.copy()) for array in largest.inputs]
            expected = on_chosen(torch, torch.from_numpy(mask), given)
            results = compiled(tn.tensor(mask), *[tn.tensor(array) for array in largest.inputs])
            for ours, theirs in zip(results, expected, strict=True):
                assert tuple(ours.shape) == tuple(theirs.shape)
                assert agree(ours.numpy(), golden.to_numpy(theirs))
    except tn.UnsupportedError as error:
        assert "depends on data" in error.message
