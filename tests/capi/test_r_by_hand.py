"""What is read from the R package's own sources."""

from __future__ import annotations

from tenfold.capi.r_by_hand import changed_signatures, functionals


def test_signatures_are_read_over_several_lines():
    changed = changed_signatures()
    assert changed["tensordot"] == "a, b, dims = 2"
    assert changed["arange"].startswith("start, end, step = NULL, dtype = NULL")
    assert changed["arange"].endswith("pin_memory = NULL, requires_grad = FALSE")


def test_functions_of_networks_that_are_written_by_hand_are_known():
    assert {"linear", "max_pool2d", "embedding"} <= functionals()
    assert "gelu" not in functionals()
