"""Long runs: what is remembered has bounds, so that memory does not grow with every new program."""

import gc

import numpy as np
import pytest

import tenfold as tn
from tenfold.base.bounded import Generations
from tenfold.base.dtypes import float32
from tenfold.engines.numpy import programs as plans
from tenfold.flat import ir
from tenfold.flat.ir import TensorType
from tenfold.mlir import stablehlo
from tenfold.runtime import executables, runs
from tenfold.runtime.background import background


def test_types_that_nothing_refers_to_are_forgotten_and_others_stay_themselves(monkeypatch):
    monkeypatch.setattr(ir, "BOUND", 100)
    monkeypatch.setattr(TensorType, "_bound", 100)
    monkeypatch.setattr(TensorType, "_interned", {})  # whatever other tests have left
    held = [TensorType(float32, (777_000 + i, 3)) for i in range(50)]
    for i in range(1000):
        TensorType(float32, (888_000 + i, 3))
    assert sum(1 for _, shape in TensorType._interned if shape[:1] >= (888_000,)) < 500
    assert all(TensorType(float32, each.shape) is each for each in held)


@pytest.mark.usefixtures("collects_quickly")
@pytest.mark.usefixtures("on_xla")
def test_many_programs_leave_no_more_objects_than_the_caps_allow(monkeypatch):
    monkeypatch.setenv("TENFOLD_CACHE_DIR", "")
    monkeypatch.setattr(executables, "MAX_EXECUTABLES", 4)
    monkeypatch.setattr(Generations, "bound", 8)
    monkeypatch.setattr(stablehlo, "EMITTED", 5)

    def count(sizes: range) -> int:
        for n in sizes:
            (tn.ones(n, 3) * 2).tanh().sum().item()
        gc.collect()
        return len(gc.get_objects())

    count(range(100, 120))
    before = count(range(120, 135))
    assert count(range(135, 150)) - before < 15 * 20
    assert len(stablehlo.bindings().types) < 50


@pytest.mark.usefixtures("collects_quickly")
def test_programs_that_run_once_leave_no_more_objects_than_the_caps_allow(monkeypatch):
    monkeypatch.setattr(Generations, "bound", 8)
    monkeypatch.setattr(runs, "KEPT", 8)
    monkeypatch.setattr(plans._plans, "bound", 40)  # parts

    def count(sizes: range) -> int:
        for n in sizes:
            (tn.ones(n, 5) * 2).tanh().sum().item()
        background.wait()
        gc.collect()
        return len(gc.get_objects())

    count(range(100, 500))  # loads what is needed to compile, where nothing has been compiled before
    before = count(range(500, 900))
    assert count(range(900, 1300)) - before < 400 * 4  # types are among them, of which 10,000 are kept


@pytest.mark.usefixtures("collects_quickly")
def test_new_sizes_of_an_op_with_a_long_lowering_leave_few_functions(monkeypatch):
    monkeypatch.setattr(Generations, "bound", 64)
    monkeypatch.setattr(plans._plans, "bound", 4)

    def functions(sizes: range) -> int:
        for n in sizes:
            tn.tensor(np.ones(n, np.float32)).cumsum(0).tolist()
        gc.collect()
        return sum(type(held) is ir.Function for held in gc.get_objects())

    functions(range(1000, 1040))
    before = functions(range(1040, 1080))
    assert functions(range(1080, 1120)) - before < 20


def test_a_module_outlives_the_context_that_was_replaced(monkeypatch):
    monkeypatch.setattr(stablehlo, "EMITTED", 1)
    exported = tn.export(lambda x: x + 1, (tn.ones(3),), dialect="stablehlo")
    tn.export(lambda x: x + 2, (tn.ones(3),), dialect="stablehlo")
    tn.export(lambda x: x + 3, (tn.ones(3),), dialect="stablehlo")
    for data in (exported.portable(), exported.bytecode()):
        assert tn.load_stablehlo(data)(tn.ones(3)).tolist() == [2, 2, 2]


LOOPS = {
    "never read": lambda x, i: x * 0.5 + 1,
    "read now and then": lambda x, i: (x * 0.5 + 1, i % 7 or x.sum().item())[0],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LOOPS)
def test_a_million_iterations_recorded_lazily_take_no_more_memory_in_the_second_half(name):
    def memory() -> int:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * 4096

    x = tn.zeros(8).eval()
    with executables.counting_compiles() as compiles:
        for i in range(1_000_000):
            x = LOOPS[name](x, i)
            if i == 500_000:  # when all that is worth it has been compiled
                background.wait()
                before = memory()
        assert x.tolist() == [2] * 8
    assert memory() - before < 16 << 20
    assert compiles <= 3
