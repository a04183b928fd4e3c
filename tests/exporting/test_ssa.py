"""SSA values of a module under construction."""

from __future__ import annotations

import pytest

import tenfold as tn
from tenfold.mlir import module_context


def test_operators_on_values_build_ops():
    with module_context() as module:
        n = module.aten.size.int(tn.ones(2), 0)
        ops = [value.op for value in (3 / n, 7 // n, 7 % n, n**2, n == 2, n != 2, n / 2 < 1)]
        with pytest.raises(tn.TraceError, match="has no value while"):
            n in [n + 1]  # noqa: B015
        with pytest.raises(tn.ArgumentError, match="64 bits, too few for 1180591620717411303424"):
            n + 2**70
    names = ["div.int", "floordiv.int", "remainder.int", "pow.int_float", "eq.int", "ne.int", "lt.float_int"]
    assert ops == [f"torch.aten.{name}" for name in names]
