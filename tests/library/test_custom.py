"""Ops whose kernels are Python functions: their values, gradients, batches, compiled programs and errors."""

import os
import subprocess
import sys

import numpy as np
import pytest

import tenfold as tn
from tenfold.base.errors import ArgumentError, EngineError, GradientError, UnsupportedError
from tenfold.ops.table import OTHERS
from tenfold.runtime.executables import counting_compiles


@pytest.fixture
def cube():
    @tn.library.custom_op("mylib::cube", mutates_args=())
    def cube(x: np.ndarray, scale: float = 1.0) -> np.ndarray:
        return (x**3 * scale).astype(x.dtype)

    @cube.register_fake
    def _(x, scale):
        return tn.empty_like(x)

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.scale = inputs[1]

    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * 3 * x**2 * ctx.scale, None

    cube.register_autograd(backward, setup_context=setup_context)
    yield cube
    del OTHERS["mylib"]["cube"]


def test_a_kernel_on_arrays_runs_when_a_value_is_needed():
    calls = []

    @tn.library.custom_op("mylib::counted", mutates_args=())
    def counted(x: np.ndarray) -> np.ndarray:
        calls.append(x.shape)
        return x + 1

    counted.register_fake(lambda x: tn.empty_like(x))
    y = counted(tn.ones(3)) * 2
    assert not calls
    assert y.tolist() == [4, 4, 4] and calls == [(3,)]


def test_it_is_reached_by_its_namespace_and_takes_plain_arguments(cube):
    x = tn.tensor([1.0, 2.0])
    assert tn.ops.mylib.cube(x, scale=2.0).tolist() == [2, 16]
    assert tn.ops.mylib.cube.default(x).tolist() == cube(x).tolist() == [1, 8]


def test_the_registered_gradient_is_used_by_every_derivative(cube):
    x = tn.tensor([1.0, 2.0], requires_grad=True)
    cube(x, 2.0).sum().backward()
    assert x.grad.tolist() == [6, 24]
    assert tn.func.grad(lambda x: cube(x).sum())(tn.tensor([1.0, 2.0])).tolist() == [3, 12]
    assert tn.func.vmap(tn.func.grad(cube))(tn.tensor([1.0, 2.0])).tolist() == [3, 12]
    _, moved = tn.func.jvp(cube, (tn.tensor([2.0]),), (tn.tensor([1.0]),))
    assert moved.tolist() == [12]
    twice = tn.func.grad(tn.func.grad(cube))(tn.tensor(2.0))
    assert twice.item() == 12


def test_without_a_rule_vmap_calls_the_kernel_for_each_element(cube):
    x = tn.arange(6.0).reshape(3, 2)
    assert tn.func.vmap(cube)(x).tolist() == (x**3).tolist()
    assert tn.func.vmap(cube, in_dims=1, out_dims=1)(x).tolist() == (x**3).tolist()


def test_a_registered_vmap_gets_the_whole_batch(cube):
    seen = []

    @cube.register_vmap
    def batched(info, in_dims, x, scale):
        seen.append((info.batch_size, in_dims, scale))
        return cube(x, scale), in_dims[0]

    x = tn.arange(6.0).reshape(3, 2)
    assert tn.func.vmap(lambda x: cube(x, 2.0))(x).tolist() == (2 * x**3).tolist()
    assert seen == [(3, (0, None), 2.0)]


def test_it_compiles_with_what_is_around_it(cube):
    step = tn.compile(lambda x: (cube(x.tanh()) * 2).sum())
    x = tn.tensor([0.5, 1.0])
    expected = (np.tanh([0.5, 1.0]) ** 3 * 2).sum()
    assert step(x).item() == pytest.approx(expected, rel=1e-6)
    other = tn.tensor([1.0, 1.5])
    with counting_compiles() as compiles:
        step(other).item()
    assert compiles == 0


def test_a_gradient_step_compiles_through_it(cube):
    w = tn.nn.Parameter(tn.tensor([1.0, 2.0]))
    optimizer = tn.optim.SGD([w], lr=0.1)

    @tn.compile
    def step():
        optimizer.zero_grad()
        loss = cube(w).sum()
        loss.backward()
        optimizer.step()
        return loss

    assert step().item() == 9
    np.testing.assert_allclose(w.detach().numpy(), [0.7, 0.8], rtol=1e-6)


def test_a_kernel_on_tensors_may_use_tensors():
    @tn.library.custom_op("mylib::halved", mutates_args=())
    def halved(x: tn.Tensor) -> tn.Tensor:
        return tn.from_numpy(x.numpy() / 2)

    tn.library.register_fake("mylib::halved", lambda x: tn.empty_like(x))
    assert halved(tn.ones(2)).tolist() == [0.5, 0.5]


def test_several_results_and_lists_of_tensors():
    @tn.library.custom_op("mylib::extremes", mutates_args=())
    def extremes(xs: list[np.ndarray], k: int) -> tuple[np.ndarray, np.ndarray]:
        return np.maximum(*xs) + k, np.minimum(*xs)

    extremes.register_fake(lambda xs, k: (tn.empty_like(xs[0]), tn.empty_like(xs[0])))
    most, least = extremes([tn.tensor([1.0, 5.0]), tn.tensor([2.0, 3.0])], 1)
    assert most.tolist() == [3, 6] and least.tolist() == [1, 3]


def test_without_a_fake_the_kernel_runs_at_once_and_its_result_may_have_any_shape():
    @tn.library.custom_op("mylib::positive", mutates_args=())
    def positive(x: np.ndarray) -> np.ndarray:
        return x[x > 0]

    assert positive(tn.tensor([1.0, -1.0, 3.0])).tolist() == [1, 3]


def test_a_gradient_without_a_fake_says_what_is_missing():
    @tn.library.custom_op("mylib::lonely", mutates_args=())
    def lonely(x: np.ndarray) -> np.ndarray:
        return x

    lonely.register_autograd(lambda ctx, gradient: gradient)
    with pytest.raises(ArgumentError, match="mylib::lonely has a gradient.*no register_fake"):
        lonely(tn.ones(2))


def test_a_fake_and_a_gradient_are_registered_by_the_name_of_the_op():
    @tn.library.custom_op("mylib::tripled", mutates_args=())
    def tripled(x: np.ndarray) -> np.ndarray:
        return x * 3

    tn.library.register_fake("mylib::tripled", lambda x: tn.empty_like(x))
    tn.library.register_autograd("mylib::tripled", lambda ctx, gradient: gradient * 3)
    x = tn.ones(2, requires_grad=True)
    tripled(x).sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_what_a_kernel_raises_is_told_with_its_line():
    @tn.library.custom_op("mylib::broken", mutates_args=())
    def broken(x: np.ndarray) -> np.ndarray:
        raise ValueError("no such luck")

    broken.register_fake(lambda x: tn.empty_like(x))
    with pytest.raises(
        EngineError, match=r"mylib::broken raised ValueError at .*test_custom.py:\d+: no such luck"
    ):
        broken(tn.ones(2)).eval()
    assert (tn.ones(2) + 1).tolist() == [2, 2]


def test_a_kernel_that_breaks_its_promise_is_an_error():
    @tn.library.custom_op("mylib::liar", mutates_args=())
    def liar(x: np.ndarray) -> np.ndarray:
        return x[:1]

    liar.register_fake(lambda x: tn.empty_like(x))
    with pytest.raises(EngineError, match=r"it gave float32\[1\], where register_fake says float32\[2\]"):
        liar(tn.ones(2)).eval()


def test_wrong_definitions_are_refused_with_a_way_out():
    with pytest.raises(ArgumentError, match="'cube' is no name of an op"):
        tn.library.custom_op("cube", lambda x: x, mutates_args=())
    with pytest.raises(ArgumentError, match="'x' has no annotation"):
        tn.library.custom_op("mylib::bare", lambda x: x, mutates_args=())
    with pytest.raises(ArgumentError, match="no Python function was made an op called 'mylib::absent'"):
        tn.library.register_autograd("mylib::absent", lambda ctx, gradient: gradient)


def test_a_kernel_without_a_gradient_stops_a_derivative_with_an_error():
    @tn.library.custom_op("mylib::flat", mutates_args=())
    def constant(x: np.ndarray) -> np.ndarray:
        return x

    constant.register_fake(lambda x: tn.empty_like(x))
    with pytest.raises((UnsupportedError, GradientError), match="has no gradient"):
        tn.func.grad(lambda x: constant(x).sum())(tn.ones(2)).eval()


def test_a_schema_is_inferred_as_pytorch_infers_it():
    import torch

    def ours(
        x: tn.Tensor, dims: list[int], y: tn.Tensor | None = None, *, scale: float = 2.0
    ) -> tn.Tensor: ...

    def theirs(
        x: torch.Tensor, dims: list[int], y: torch.Tensor | None = None, *, scale: float = 2.0
    ) -> torch.Tensor: ...

    assert tn.library.infer_schema(ours) == torch.library.infer_schema(theirs, mutates_args=())


def test_a_stored_executable_finds_the_kernel_again_in_another_process(tmp_path):
    program = """
import numpy as np, tenfold as tn
from tenfold.runtime.executables import counting_compiles
@tn.library.custom_op("mylib::first", mutates_args=())
def first(x: np.ndarray) -> np.ndarray: return x + {number}
@tn.library.custom_op("mylib::second", mutates_args=())
def second(x: np.ndarray) -> np.ndarray: return x * 10
for each in ({order}): each.register_fake(lambda x: tn.empty_like(x))
with counting_compiles() as compiles: print(second(first(tn.ones(2))).tolist(), end=" ")
print(compiles)
"""
    environment = {**os.environ, "TENFOLD_CACHE_DIR": str(tmp_path)}
    printed = [
        subprocess.run(
            [sys.executable, "-c", program.format(number=number, order=order)],
            env=environment, capture_output=True, text=True, check=True,
        ).stdout.strip()
        for number, order in ((1, "first, second"), (2, "second, first"))
    ]  # fmt: skip
    assert printed == ["[20.0, 20.0] 1 compiles", "[30.0, 30.0] 0 compiles"]


def test_the_torch_dialect_has_it_as_an_operator_of_its_own(cube):
    text = str(tn.export(cube, (tn.ones(2),), dialect="torch"))
    assert 'torch.operator "torch.mylib.cube"' in text
