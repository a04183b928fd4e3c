"""What several expansions do, against PyTorch."""

from __future__ import annotations

import tenfold as tn
from tenfold.exporting.expansion_parts import reduced, widened


def test_half_types_alone_are_widened():
    wide = {dtype: widened(tn.ones(2, dtype=dtype)).dtype for dtype in (tn.float16, tn.bfloat16, tn.float64)}
    assert wide == {tn.float16: tn.float32, tn.bfloat16: tn.float32, tn.float64: tn.float64}


def test_a_loss_is_reduced_by_a_number():
    loss = tn.tensor([1.0, 3.0])
    assert [reduced(loss, number).tolist() for number in (0, 1, 2)] == [[1.0, 3.0], 2.0, 4.0]
