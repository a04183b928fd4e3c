"""The NumPy engine behind the Tensor: programs, gradients, training and random numbers, without jaxlib."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import EngineError, IndexOutOfRange
from tenfold.engines.numpy import programs
from tenfold.engines.numpy.plan import WARM, plan, run
from tenfold.flat.ir import Function, TensorType, Value


@pytest.fixture(autouse=True)
def _on_numpy() -> Iterator[None]:
    tn.set_engine("numpy")
    yield
    tn.set_engine("xla")


def on_both(function):
    """What a function gives on the NumPy engine and on XLA."""
    here = function()
    tn.set_engine("xla")
    return here, function()


def test_a_program_gives_what_it_gives_on_xla():
    def program():
        x = tn.arange(12.0).reshape(3, 4)
        return (x @ x.T).softmax(-1).cumsum(0).sort(-1).values.numpy()

    mine, theirs = on_both(program)
    np.testing.assert_allclose(mine, theirs, rtol=1e-6)


def test_nothing_is_compiled():
    from tenfold.runtime import executables

    with executables.counting_compiles() as compiles:
        (tn.ones(5, 7) * 3).sum().item()
    assert compiles == 0


@pytest.mark.parametrize(
    ("function", "scales", "rows", "plans"),
    [
        # All rounds of the first program have the same numbers: it is planned for these.
        ("sin", ((2.0, 2.0, 2.0), (5.0, 0.5, 7.0), (-0.5, 9.0, 6.0)), ((1, 1, 1), (1, 1, 0), (0, 0, 0)), 2),
        # They have others, so it is planned for all numbers.
        ("cos", ((2.0, 3.0, 4.0), (5.0, 0.5, 7.0), (-0.5, 9.0, 6.0)), ((0, 1, 0), (1, 1, 0), (0, 0, 0)), 1),
    ],
)
def test_one_plan_serves_all_programs_that_differ_in_numbers_alone(
    monkeypatch, function, scales, rows, plans
):
    planned = []
    plan = programs.planned
    monkeypatch.setattr(
        programs, "planned", lambda *given, **how: planned.append(given) or plan(*given, **how)
    )
    x = np.linspace(0.1, 1, 6, dtype="float32").reshape(2, 3)

    def gradient_of(lib, scales, rows):
        leaf = lib.tensor(x, requires_grad=True)
        terms = [getattr(leaf[row] * scale, function)().sum() for scale, row in zip(scales, rows)]
        sum(terms, lib.zeros(())).backward()
        return leaf.grad.numpy()

    for each in zip(scales, rows):
        np.testing.assert_allclose(gradient_of(tn, *each), gradient_of(torch, *each), rtol=1e-5, atol=1e-6)
    assert len(planned) == plans


def test_a_program_gives_the_same_each_time_it_runs_again():
    draws = np.random.default_rng(0)
    weights = draws.normal(size=(4, 3)).astype("float32")

    def gradient_of(lib, row):
        weight = lib.tensor(weights, requires_grad=True)
        chances = [((lib.tensor(row) * scale) @ weight).relu().softmax(-1) for scale in (0.5, 1.0, 2.0)]
        (lib.stack([each[1].log() for each in chances]) - 0.5).square().mean().backward()
        return weight.grad.numpy()

    for _ in range(programs.AGAIN + 3):
        row = draws.normal(size=4).astype("float32")
        np.testing.assert_allclose(gradient_of(tn, row), gradient_of(torch, row), rtol=1e-4, atol=1e-6)


def test_a_plan_leaves_broadcasts_to_numpy_where_it_does_the_same():
    x = flat.Value(TensorType(dtypes.float32, (2, 3)))
    column = flat.Value(TensorType(dtypes.float32, (2, 1)))
    function = Function([x, column], [(x - column) * 2, flat.broadcast_to(column, (2, 3)) * 1])
    data, other = np.arange(6, dtype="float32").reshape(2, 3), np.array([[1], [2]], "float32")
    less, spread = run(function, [data, other])
    np.testing.assert_array_equal(less, (data - other) * 2)
    np.testing.assert_array_equal(spread, np.broadcast_to(other, (2, 3)))
    assert len(plan(function).steps) == 4


@pytest.mark.parametrize("read", ("never", "some", "all"))
def test_a_gradient_is_the_same_whatever_of_its_path_has_been_read(read):
    draws = np.random.default_rng(0)
    weights, rows = draws.normal(size=(4, 3)).astype("float32"), draws.normal(size=(5, 4)).astype("float32")

    def gradient_of(lib):
        weight, kept = lib.tensor(weights, requires_grad=True), []
        for i, row in enumerate(rows):
            chances = (lib.tensor(row) @ weight).relu().softmax(-1)
            if read == "all" or (read == "some" and i % 2):
                assert chances[1].item() > 0
            kept.append(chances[i % 3].log())
        if read == "some":
            kept[0] = kept[0] * kept[1].item()
        lib.stack(kept).sum().backward()
        return weight.grad.numpy()

    np.testing.assert_allclose(gradient_of(tn), gradient_of(torch), rtol=1e-4, atol=1e-6)


def test_constants_and_what_two_ops_compute_alike_take_no_steps():
    x = Value(TensorType(dtypes.float32, (3,)))
    shifted = x - flat.full((3,), 2.0, dtypes.float32) * 3
    function = Function([x], [flat.exp(shifted) + flat.exp(shifted)])
    (result,) = run(function, [np.arange(3, dtype="float32")])
    np.testing.assert_allclose(result, 2 * np.exp(np.arange(3) - 6), rtol=1e-6)
    assert len(plan(function).steps) == 3  # a subtraction, one exponential, the sum


def test_a_plan_that_is_written_out_gives_what_its_steps_give():
    x, y = Value(TensorType(dtypes.float32, (2, 3))), Value(TensorType(dtypes.float32, (3,)))
    order, places = flat.top_k(x * y, 2)
    function = Function([x, y], [flat.exp(order) + 0.5, x, places, flat.full((2,), 7, dtypes.int32), order])
    constant = Function([], [flat.full((3,), 2.0, dtypes.float32)])
    draws = np.random.default_rng(0)
    for _ in range(WARM + 3):
        arrays = [draws.normal(size=(2, 3)).astype("float32"), draws.normal(size=3).astype("float32")]
        written = plan(function).written_out
        product = arrays[0] * arrays[1]
        top = -np.sort(-product, axis=1)[:, :2]
        found = run(function, arrays)
        for result, expected in zip(
            found, (np.exp(top) + 0.5, arrays[0], np.argsort(-product)[:, :2], 7, top)
        ):
            np.testing.assert_allclose(result, np.broadcast_to(expected, result.shape), rtol=1e-6)
        assert run(constant, [])[0].tolist() == [2.0, 2.0, 2.0]
    assert written is not None


def test_a_plan_that_frees_what_it_read_is_not_written_out():
    x = Value(TensorType(dtypes.float32, (100, 100)))
    function = Function([x], [flat.exp(flat.sin(x) * 2)])
    for _ in range(WARM + 3):
        run(function, [np.zeros((100, 100), "float32")])
    assert plan(function).written_out is None


def test_random_numbers_are_xlas():
    def draw():
        tn.manual_seed(3)
        return [
            tn.randn(5).numpy(),
            tn.randint(0, 1000, (7,)).numpy(),
            tn.rand(2, 3, dtype=tn.float64).numpy(),
        ]

    mine, theirs = on_both(draw)
    for a, b in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_training_takes_the_same_steps_as_on_xla():
    def train():
        tn.manual_seed(0)
        model = tn.nn.Sequential(tn.nn.Linear(4, 8), tn.nn.Tanh(), tn.nn.Linear(8, 1))
        optimizer = tn.optim.Adam(model.parameters(), lr=0.01)
        x = tn.randn(32, 4)
        losses = []
        for _ in range(20):
            optimizer.zero_grad()
            loss = ((model(x) - x.sum(1, keepdim=True)) ** 2).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    mine, theirs = on_both(train)
    np.testing.assert_allclose(mine, theirs, rtol=1e-4)


def test_a_convolutional_network_has_the_same_gradients_as_on_xla():
    def gradients():
        tn.manual_seed(1)
        first, second = tn.nn.Conv2d(4, 8, 3, padding=1, groups=2), tn.nn.ConvTranspose2d(8, 3, 2, stride=2)
        x = tn.randn(2, 4, 8, 8)
        tn.nn.functional.max_pool2d(second(first(x).relu()), 2).square().sum().backward()
        return [each.grad.numpy() for each in (*first.parameters(), *second.parameters())]

    mine, theirs = on_both(gradients)
    for a, b in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-4)


def test_values_pass_between_engines():
    x = tn.ones(3) * 2
    assert x.sum().item() == 6
    tn.set_engine("xla")
    y = x + 1
    assert y.sum().item() == 9
    tn.set_engine("numpy")
    assert (y * x).sum().item() == 18


def test_a_result_does_not_change_when_a_tensor_that_it_came_from_is_written():
    x = tn.zeros(4)
    x.eval()
    y = x.reshape(2, 2)
    kept = (y + 0).eval()
    x.add_(1)
    assert x.tolist() == [1, 1, 1, 1]
    assert kept.tolist() == [[0, 0], [0, 0]]
    assert y.tolist() == [[1, 1], [1, 1]]


def test_a_failed_check_raises_at_the_users_line():
    table, index = tn.ones(3, 2), tn.tensor([0, 5])
    with pytest.raises(IndexOutOfRange, match=r"test_numpy_programs\.py"):
        tn.nn.functional.embedding(index, table).numpy()


def test_compiled_functions_run_without_compiling():
    assert tn.compile(lambda x: (x * 2).sum())(tn.ones(3)).item() == 6


WITHOUT_JAXLIB = """
    import sys

    class Missing:
        def find_spec(self, name, path=None, target=None):
            if name.split(".")[0] in ("jaxlib", "jax", "scipy"):
                raise ImportError(f"{name} is not here")

    sys.meta_path.insert(0, Missing())
    import tenfold as tn

    tn.set_engine("numpy")
    tn.manual_seed(0)
    model = tn.nn.Sequential(tn.nn.Linear(3, 4), tn.nn.GELU(), tn.nn.Linear(4, 2))
    optimizer = tn.optim.AdamW(model.parameters())
    x, target = tn.randn(8, 3), tn.randint(0, 2, (8,))
    first = None
    for _ in range(10):
        optimizer.zero_grad()
        loss = tn.nn.functional.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        first = first or loss.item()
    assert loss.item() < first
    print(tn.func.vmap(tn.func.grad(lambda x: x.sin().sum()))(tn.ones(2, 3)))
    half = tn.ones(2, 2, dtype=tn.bfloat16)
    print(tn.tensor([3, 1, 2]).sort().values, half @ half)
    try:
        print(tn.linalg.svd(tn.eye(2)))
    except tn.TenfoldError as error:
        assert "pip install scipy" in str(error), error
    else:
        raise SystemExit("LAPACK without SciPy?")
"""


def test_programs_train_without_jaxlib():
    code = textwrap.dedent(WITHOUT_JAXLIB)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_ops_whose_kernels_are_python_functions_run():
    @tn.library.custom_op("tier0lib::doubled", mutates_args=())
    def doubled(x: np.ndarray) -> np.ndarray:
        if x.sum() < 0:
            raise ValueError("too small")
        return x * 2

    doubled.register_fake(lambda x: tn.empty_like(x))
    assert (doubled(tn.ones(3)) + 1).tolist() == [3, 3, 3]
    with pytest.raises(EngineError, match="too small"):
        doubled(-tn.ones(3)).eval()


def test_results_have_memory_of_their_own():
    array = np.arange(4.0)
    shared = tn.from_numpy(array)
    copied, turned = shared.clone(), shared.reshape(2, 2).clone()
    tn.eval(copied, turned)
    array[0] = 99
    assert copied.tolist() == [0, 1, 2, 3]
    assert turned.tolist() == [[0, 1], [2, 3]]


def test_writing_to_a_constants_array_does_not_change_the_next_one():
    first = tn.full((1,), 7.0).numpy()
    if first.flags.writeable:
        first[0] = 1
    assert tn.full((1,), 7.0).tolist() == [7]
