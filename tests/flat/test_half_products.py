"""Rounding moved into products: where it may be, and that nothing else changes."""

from __future__ import annotations

import numpy as np

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.devices import Device
from tenfold.engines import xla
from tenfold.flat.elementwise import Convert
from tenfold.flat.half_products import narrowed
from tenfold.flat.ir import Function, TensorType, Value
from tenfold.flat.structured import DotGeneral
from tenfold.mlir import stablehlo

CPU = Device("cpu")
BF16 = dtypes.bfloat16


def product(again: bool) -> Function:
    """x @ w + bias, rounded once; `again`: the product is used a second time."""
    x, w, bias = (Value(TensorType(BF16, shape)) for shape in ((6, 8), (8, 4), (4,)))
    wide = flat.dot_general(x, w, ((1,), (0,)), ((), ()), dtypes.float32)
    total = flat.reshape(wide, (2, 3, 4)) + flat.convert(bias, dtypes.float32)
    results = [flat.convert(total, BF16)]
    if again:
        results.append(wide * 2.0)
    return Function([x, w, bias], results)


def dots(function: Function) -> list[dtypes.DType]:
    return [op.dtype for op in function.ops if isinstance(op, DotGeneral)]


def test_a_product_is_rounded_where_it_is_made():
    before = product(again=False)
    after = narrowed(before)
    assert dots(before) == [dtypes.float32] and dots(after) == [BF16]
    assert not any(isinstance(op, Convert) for op in after.ops)
    generator = np.random.default_rng(0)
    arrays = [generator.normal(size=each.shape).astype(BF16.numpy) for each in before.params]
    buffers = [xla.put(each, CPU) for each in arrays]
    found = [xla.compile(stablehlo.emit(each), CPU)(buffers)[0] for each in (before, after)]
    ours, theirs = (xla.fetch(each).astype(np.float32) for each in found)
    np.testing.assert_allclose(ours, theirs, rtol=2**-6, atol=2**-6)


def test_a_product_that_is_used_in_float32_stays():
    function = product(again=True)
    assert narrowed(function) is function
