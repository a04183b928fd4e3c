"""Ops on tensors of open size in the words that IREE knows."""

from __future__ import annotations

import pytest

import tenfold as tn

pytest.importorskip("iree.compiler")


@pytest.mark.parametrize("start", [0, 1, 4])
def test_a_part_of_open_size_is_written_into_a_tensor(start):
    def function(x, part):
        return tn.slice_scatter(x, part, 1, start, start + 4)

    given = (tn.ones(3, 8), tn.zeros(3, 4))
    dynamic = {0: {0: "n"}, 1: {0: "n"}}
    exported = tn.export(function, given, dialect="stablehlo", dynamic=dynamic)
    assert "dynamic_update_slice" in exported.text()
    run = tn.load_vmfb(exported.build())
    for count in (2, 5):
        x, part = tn.arange(count * 8.0).view(count, 8), -tn.arange(count * 4.0).view(count, 4)
        assert run(x, part).tolist() == function(x, part).tolist()
