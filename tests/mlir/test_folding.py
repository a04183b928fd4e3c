"""Modules whose constants XLA would fold for long are compiled without its constant folding."""

from __future__ import annotations

import pytest

import tenfold as tn
from tenfold import flat
from tenfold.base import dtypes
from tenfold.flat.ir import Function, TensorType, Value
from tenfold.mlir import portable, stablehlo

LONG = "tensor<8000000xf32>"
IOTA = f"%x = stablehlo.iota dim = 0 : {LONG}"
SUM = f"""%zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sum = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [0]
    : ({LONG}, tensor<f32>) -> tensor<f32>"""
OF_X = SUM.replace("%a", "%x")
HELPER = f"func.func private @f(%a: {LONG}) -> tensor<f32> {{ {SUM} return %sum : tensor<f32> }}"
LOOP = f"""%n = stablehlo.constant dense<3.0> : tensor<f32>
  %0:2 = stablehlo.while(%s = %n, %a = %x) : tensor<f32>, {LONG}
    cond {{ %more = stablehlo.compare LT, %s, %n : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1> }}
    do {{ {SUM} BODY stablehlo.return %sum, NEXT : tensor<f32>, {LONG} }}"""
KEPT = LOOP.replace("BODY", "").replace("NEXT", "%a")
CHANGED = LOOP.replace("BODY", f"%b = stablehlo.add %a, %y : {LONG}").replace("NEXT", "%b")
CALL = f"call @f(%x) : ({LONG}) -> tensor<f32> return %sum : tensor<f32>"
SCATTER = """module { func.func @main() -> tensor<3x3xf64> {
  %x = stablehlo.constant dense<2.5> : tensor<3x3xf64> %none = stablehlo.constant dense<0.5> : tensor<2x0xf64>
  %start = stablehlo.constant dense<1.5> : tensor<f64>
  %0 = "stablehlo.select_and_scatter"(%x, %none, %start) (
    { ^bb0(%l: tensor<f64>, %r: tensor<f64>):
      %s = stablehlo.compare GE, %l, %r : (tensor<f64>, tensor<f64>) -> tensor<i1>
      stablehlo.return %s : tensor<i1> },
    { ^bb0(%l: tensor<f64>, %r: tensor<f64>):
      %s = stablehlo.add %l, %r : tensor<f64> stablehlo.return %s : tensor<f64> })
    {window_dimensions = array<i64: 2, 2147483648>, window_strides = array<i64: 3, 1>,
     padding = dense<[[1, 2], [1, 0]]> : tensor<2x2xi64>}
    : (tensor<3x3xf64>, tensor<2x0xf64>, tensor<f64>) -> tensor<3x3xf64>
  return %0 : tensor<3x3xf64> } }"""


def main(body: str, takes: str = "", more: str = "") -> str:
    return f"module {{ func.func @main({takes}) -> tensor<f32> {{ {body} }} {more} }}"


SLOW = {
    "a sum": main(f"{IOTA} {OF_X} return %sum : tensor<f32>"),
    "what follows from constants": main(
        f"{IOTA.replace('%x', '%y')} %x = stablehlo.tanh %y : {LONG} {OF_X} return %sum : tensor<f32>"
    ),
    "a function": main(f"{IOTA} %sum = {CALL}", more=HELPER),
    "a loop": main(f"{IOTA} {KEPT} return %0#0 : tensor<f32>"),
    "a window": SCATTER,
    "a window whose length is the least integer": SCATTER.replace("2147483648", "9223372036854775808"),
}
QUICK = {
    "a sum": main(f"{OF_X} return %sum : tensor<f32>", f"%x: {LONG}"),
    "a few elements": main(f"{IOTA} {OF_X} return %sum : tensor<f32>").replace("8000000", "8000"),
    "a function": main(f"%sum = {CALL}", f"%x: {LONG}", HELPER),
    "a loop": main(f"{IOTA} {CHANGED} return %0#0 : tensor<f32>", f"%y: {LONG}"),
}


@pytest.mark.parametrize("what", SLOW)
def test_reductions_of_many_constants_are_not_folded(what):
    assert portable.read(SLOW[what].encode()).slow_to_fold


@pytest.mark.parametrize("what", QUICK)
def test_others_are(what):
    assert not portable.read(QUICK[what].encode()).slow_to_fold


def test_windows_that_are_larger_than_memory_keep_no_compiler_busy(monkeypatch):
    monkeypatch.setenv("TENFOLD_COMPILE_SECONDS", "20")
    assert tn.load_stablehlo(SCATTER.encode())().tolist() == [[1.5] * 3] * 3


@pytest.mark.parametrize("given", [True, False])
def test_programs_of_ones_own_are_looked_at_likewise(given):
    param = Value(TensorType(dtypes.float32, (8_000_000,)))
    x = param if given else flat.iota((8_000_000,), 0, dtypes.float32)
    assert stablehlo.emit(Function([param], [flat.sum(x, (0,))])).slow_to_fold is not given


def test_a_sum_over_a_range_is_exact_without_folding():
    summed = tn.compile(lambda x: x + tn.arange(3_000_000).sum())
    assert summed(tn.zeros(1, dtype=tn.int64)).tolist() == [4499998500000]
