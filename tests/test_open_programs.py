"""Random programs whose sizes are open agree with PyTorch at every size, whatever lies in the padding."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import tenfold as tn
from tenfold.compiler import mark_dynamic
from tenfold.engines import xla
from tenfold.engines.numpy.plan import run as on_tier_0
from tenfold.runtime import evaluate, executables, lazy_sizes, tiers
from tenfold.runtime.background import background
from tests.ops import golden
from tests.random_programs.general import DTYPES, STEPS, kind_of
from tests.random_programs.programs import Use, agree, apply

N = None  # an open size
SHAPES = ((N, 4), (4,), (N, 1), (), (2, N, 4), (N,), (N, N), (3, 4), (N, 3))
SIZES = (7, 12, 5, 16)


class OpenProgram(NamedTuple):
    """Steps over inputs of open shapes, the same at all sizes."""

    dtypes: list[str]
    shapes: list[tuple[int | None, ...]]
    seed: int
    uses: list[Use]

    def inputs(self, size: int) -> list[np.ndarray]:
        rng = np.random.default_rng(self.seed)
        found = []
        for dtype, shape in zip(self.dtypes, self.shapes, strict=True):
            extents = [size if each is N else each for each in shape]
            numbers = rng.normal(0, 1, extents) if dtype[0] == "f" else rng.integers(0, 5, extents)
            found.append(np.asarray(numbers).astype(dtype))
        return found

    def run(self, lib: Any, pool: list[Any]) -> list[Any]:
        for use in self.uses:
            apply(lib, pool, use)
        return pool

    def __repr__(self) -> str:
        lines = [f"x{i} = {each}" for i, each in enumerate(zip(self.dtypes, self.shapes))]
        for i, use in enumerate(self.uses, len(self.shapes)):
            arguments = [*[f"x{place}" for place in use.places], str(use.number)]
            lines.append(f"x{i} = {use.step.name}({', '.join(arguments)})")
        return "\n".join(["", *lines])


@st.composite
def open_programs(draw: Any, length: int = 12) -> OpenProgram:
    """A program, grown while PyTorch runs it at two sizes: steps that it refuses at either are left out."""
    dtypes = [draw(st.sampled_from(DTYPES)) for _ in range(3)]
    shapes = [draw(st.sampled_from(SHAPES)) for _ in range(3)]
    program = OpenProgram(dtypes, shapes, draw(st.integers(0, 2**32 - 1)), [])
    pools = [[torch.from_numpy(each) for each in program.inputs(size)] for size in SIZES]
    for _ in range(3 * length):
        step = draw(st.sampled_from(STEPS))
        places = tuple(draw(st.integers(0, len(pools[0]) - 1)) for _ in range(step.operands))
        use = Use(step, places, draw(st.integers(0, 3)))
        if kind_of(pools[0][places[0]]) not in step.kinds:
            continue
        trial = copy.deepcopy(pools)  # in which views are views
        try:
            made = [apply(torch, pool, use) for pool in trial]
        except (RuntimeError, IndexError, TypeError):
            continue
        if any(each.numel() > 5000 or each.ndim > 4 or each.is_complex() for each in made):
            continue
        pools = trial
        program.uses.append(use)
        if len(program.uses) == length:
            break
    return program


def hostile(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    return np.full(shape, np.nan if dtype.kind == "f" else np.array(77777).astype(dtype), dtype)


def interpreted(function: Any, device: Any, donated: Any, packing: Any) -> Any:
    """In the place of an executable: tier 0, which compiles nothing."""

    def call(buffers: Any, held: list[Any]) -> tuple[list[Any], None]:
        results = on_tier_0(function, [np.array(xla.fetch(each)) for each in buffers])
        return [xla.put(np.array(each), device) for each in results], None

    found = lambda buffers, held: call(buffers, held)
    found.checks = ()
    return found


def check(program: OpenProgram) -> bool:
    """Compare at all sizes; whether the program could be open."""
    compiled = tn.compile(lambda *inputs: program.run(tn, [each.clone() for each in inputs]), dynamic=None)
    for size in SIZES:
        inputs = program.inputs(size)
        expected = program.run(torch, [torch.from_numpy(each.copy()) for each in inputs])
        tensors = [tn.tensor(each) for each in inputs]
        for tensor, shape in zip(tensors, program.shapes, strict=True):
            for axis, extent in enumerate(shape):
                if extent is N:
                    mark_dynamic(tensor, axis, min=5, max=16)
        if not any(N in shape for shape in program.shapes):
            return False
        try:
            results = compiled(*tensors)
        except UserWarning:
            return False
        for i, (ours, theirs) in enumerate(zip(results, expected, strict=True)):
            name = f"x{i} at size {size}"
            assert tuple(ours.shape) == tuple(theirs.shape), name
            found, reference = ours.numpy(), golden.to_numpy(theirs)
            assert agree(found, reference), f"{name}: {found} and PyTorch {reference}"
    return True


@pytest.fixture(scope="module", autouse=True)
def padding():
    patch = pytest.MonkeyPatch()
    patch.setattr(evaluate, "blank", hostile)
    yield patch
    patch.undo()


each_program = settings(
    max_examples=12,
    deadline=None,
    phases=[
        Phase.generate
    ],  # to shrink a program takes minutes; it prints itself, and the wrong step is named
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
counts = SimpleNamespace(open=0, closed=0, lazy=0)


@pytest.mark.filterwarnings("error:compile. sizes stay closed:UserWarning")
@settings(each_program, max_examples=20)
@given(open_programs())
def test_open_programs_agree_with_pytorch(program):
    patch = pytest.MonkeyPatch()
    patch.setattr(executables, "build_function", interpreted)
    try:
        done = check(program)
    finally:
        patch.undo()
    counts.open += done
    counts.closed += not done


def test_most_programs_can_be_open():
    assert counts.open > counts.closed


@pytest.mark.filterwarnings("error:compile. sizes stay closed:UserWarning")
@settings(each_program, max_examples=3)
@given(open_programs())
def test_open_programs_on_xla_agree_with_pytorch(program):
    check(program)


def lazily(program: OpenProgram) -> None:
    """Compare a lazy loop over sizes: tier 0 runs the first, the others are open where they can be."""
    for size in (*SIZES, 9, 14):
        inputs = program.inputs(size)
        expected = program.run(torch, [torch.from_numpy(each.copy()) for each in inputs])
        results = program.run(tn, [tn.tensor(each) for each in inputs])
        tn.eval(*results)
        background.wait()
        for i, (ours, theirs) in enumerate(zip(results, expected, strict=True)):
            reference = golden.to_numpy(theirs)
            scale = np.abs(reference.astype(np.float64)).max(initial=1.0)
            close = golden.close(ours.numpy(), reference, 1e-4, 1e-5 * scale)
            assert close.all(), f"x{i} at size {size}: {ours.numpy()} and PyTorch {reference}"


@pytest.mark.usefixtures("on_all_tiers")
@settings(each_program, max_examples=10)
@given(open_programs())
def test_lazy_loops_over_sizes_agree_with_pytorch(program):
    patch = pytest.MonkeyPatch()
    patch.setattr(executables, "build_function", interpreted)
    patch.setattr(executables, "build_in_background", lambda *_: "")
    patch.setattr(lazy_sizes, "_families", type(lazy_sizes._families)())
    for name in ("SMALL", "PATIENCE"):
        patch.setattr(tiers, name, 0)
    try:
        lazily(program)
        served = any(each.programs for each in lazy_sizes._families.values())
    finally:
        patch.undo()
    counts.lazy += served


def test_lazy_loops_find_open_programs():
    assert counts.lazy


def chosen(x: Any, mask: Any, shape: tuple[int | None, ...]) -> Any:
    """What a mask chooses along each open dimension."""
    for axis, extent in enumerate(shape):
        x = x[(slice(None),) * axis + (mask,)] if extent is N else x
    return x


@settings(each_program, max_examples=6)
@given(open_programs())
def test_programs_on_what_a_mask_chooses_agree_with_pytorch(program):
    """Results are right whatever the size that depends on data, or it is refused by name."""
    if not any(N in shape for shape in program.shapes):
        return
    patch = pytest.MonkeyPatch()
    patch.setattr(executables, "build_function", interpreted)
    inputs = program.inputs(max(SIZES))

    def run(lib: Any, mask: Any, given: Any) -> list[Any]:
        return program.run(lib, [chosen(x, mask, shape) for x, shape in zip(given, program.shapes)])

    compiled = tn.compile(lambda mask, *given: run(tn, mask, given), fullgraph=True)
    try:
        for size in SIZES:
            mask = np.random.default_rng(size).permutation(max(SIZES)) < size
            expected = run(torch, torch.from_numpy(mask), [torch.from_numpy(each.copy()) for each in inputs])
            results = compiled(tn.tensor(mask), *[tn.tensor(each) for each in inputs])
            for ours, theirs in zip(results, expected, strict=True):
                assert tuple(ours.shape) == tuple(theirs.shape)
                assert agree(ours.numpy(), golden.to_numpy(theirs))
    except tn.UnsupportedError as error:
        assert "depends on data" in error.message
    finally:
        patch.undo()


@pytest.mark.slow
@pytest.mark.filterwarnings("error:compile. sizes stay closed:UserWarning")
@settings(each_program, max_examples=2000)
@given(open_programs(25))
def test_two_thousand_open_programs_agree_with_pytorch(program):
    patch = pytest.MonkeyPatch()
    patch.setattr(executables, "build_function", interpreted)
    try:
        check(program)
    finally:
        patch.undo()
