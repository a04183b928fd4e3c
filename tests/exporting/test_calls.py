"""One call of an op by hand: what the verifier takes and refuses."""

from __future__ import annotations

import pytest

import tenfold as tn
from tenfold.mlir import module_context


def test_what_the_verifier_refuses_is_refused_at_once():
    with module_context() as module:
        x = tn.ones(2)
        with pytest.raises(tn.ArgumentError, match=r"operand 1 must be Torch IntType, not !torch.str"):
            module.aten.add.int(1, "a")
        with pytest.raises(tn.ArgumentError, match="no overload takes these operands"):
            module.aten.add("a", 2.5)
        with pytest.raises(tn.ArgumentError, match="may be of several types"):
            module.prim.unchecked_cast(x)
        with pytest.raises(AttributeError, match="has no op torch.aten.ad.int"):
            module.aten.ad.int(1, 2)
        with pytest.raises(tn.ArgumentError, match="regions, not 0"):
            module.prim.If(True, results=["int"])
        kept = x + 1
    assert "torch.aten.add.int" not in str(module) and kept.shape == (2,)
