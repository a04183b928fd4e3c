"""libtenfold_rt: every one of its functions, called by ctypes with handles and numbers, against PyTorch."""

from __future__ import annotations

import ctypes
import math
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tenfold.capi import rt
from tenfold.command.demo import digits
from tests.capi.bridge import Bridge, built, nothing_left

TYPES = {"f64": ctypes.c_double, "i32": ctypes.c_int32, "bool": ctypes.c_int32, "text": ctypes.c_char_p}
CALLED: set[str] = set()


class Runtime:
    """The functions of libtenfold_rt without their prefix, taking Python's lists; what they give is freed."""

    def __init__(self, bridge: Bridge):
        made = built()
        compiler = shutil.which("gcc") or "cc"
        self.library = ctypes.CDLL(str(rt.add(made.include, made.lib, compiler)))
        self.rows = {each.name.removeprefix(rt.PREFIX): each for each in rt.functions()}
        self.bridge = bridge

    def __getattr__(self, name: str) -> Any:
        row = self.rows[name]
        function = getattr(self.library, row.name)
        argtypes: list[Any] = []
        for type in row.parameters.values():
            argtypes += (
                [ctypes.c_void_p, ctypes.c_int64] if type[0] == "[" else [TYPES.get(type, ctypes.c_int64)]
            )
        listed = row.result[0] == "["
        function.argtypes = [*argtypes, ctypes.c_void_p] if listed else argtypes
        returned = TYPES.get(row.result, ctypes.c_int64)
        element = ctypes.c_double if row.result == "[f64]" else ctypes.c_int64
        function.restype = ctypes.POINTER(element) if listed else None if row.result == "void" else returned
        CALLED.add(name)

        def call(*given: Any) -> Any:
            arguments: list[Any] = []
            for type, value in zip(row.parameters.values(), given, strict=True):
                if type[0] == "[":
                    ctype = ctypes.c_double if type == "[f64]" else ctypes.c_int64
                    arguments += [(ctype * max(len(value), 1))(*value), len(value)]
                else:
                    arguments.append(value)
            if not listed:
                result = function(*arguments)
                return self.keep(result) if row.result == "tensor" else result
            count = ctypes.c_int64(-7)
            found = function(*arguments, ctypes.byref(count))
            if not found:
                assert count.value == -1
                return None
            given = row.result in ("[tensor]", "[results]")
            return [self.keep(found[i]) if given else found[i] for i in range(count.value)]

        return call

    def keep(self, handle: int) -> int:
        if handle:
            self.bridge.keep(handle)
        return handle

    def make(self, values: Any) -> int:
        array = np.asarray(values, np.float64)
        return self.tensor_from_data(array.ravel().tolist(), array.shape)

    def array(self, handle: int) -> np.ndarray:
        return self.bridge.array(handle)

    @property
    def why(self) -> str:
        return self.bridge.tn_error_message().decode()


@pytest.fixture
def run() -> Iterator[Runtime]:
    bridge = Bridge()
    with nothing_left(bridge):
        yield Runtime(bridge)


def close(found: Any, wanted: Any) -> None:
    wanted = wanted.detach().numpy() if isinstance(wanted, torch.Tensor) else wanted
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


X = np.array([[0.5, -1.0, 2.0], [3.0, 0.25, -0.75]])
Y = np.array([[1.5, 2.0, -1.0], [0.5, 4.0, 1.0]])
SQUARE = np.array([[2.0, 1.0], [-1.0, 3.0]])
x, y, square = (torch.tensor(each, dtype=torch.float32) for each in (X, Y, SQUARE))


def test_the_library_tells_its_version(run: Runtime) -> None:
    assert run.available() == 1
    assert run.version().decode() == torch.__version__.split("+")[0]
    assert run.cuda_available() == int(torch.cuda.is_available())


def test_tensors_are_made(run: Runtime) -> None:
    for name, wanted in (("zeros", torch.zeros(2, 3)), ("ones", torch.ones(2, 3))):
        found = run.array(getattr(run, f"tensor_{name}")([2, 3]))
        assert found.dtype == np.float32
        close(found, wanted)
    for name in ("randn", "rand", "empty"):
        assert run.array(getattr(run, f"tensor_{name}")([4, 5])).shape == (4, 5)
    close(run.array(run.tensor_full([2], 7.5)), torch.full((2,), 7.5))
    close(run.array(run.make(X)), X)
    close(run.array(run.tensor_arange(0, 2, 0.5)), torch.arange(0, 2, 0.5))
    close(run.array(run.tensor_linspace(-1, 1, 5)), torch.linspace(-1, 1, 5))
    close(run.array(run.tensor_eye(3)), torch.eye(3))
    assert run.tensor_from_data([1.0, 2.0], [3]) == 0
    assert "shape" in run.why


COMBINED = ("add", "sub", "mul", "div")
MAPPED = (
    "neg", "abs", "exp", "relu", "sigmoid", "tanh", "t", "squeeze", "flatten", "contiguous", "clone",
)  # fmt: skip


@pytest.mark.parametrize("name", COMBINED)
def test_two_tensors_are_combined(run: Runtime, name: str) -> None:
    found = getattr(run, f"torchtensor_{name}")(run.make(X), run.make(Y))
    close(run.array(found), getattr(torch, name)(x, y))


@pytest.mark.parametrize("name", MAPPED)
def test_one_tensor_is_mapped(run: Runtime, name: str) -> None:
    wanted = {"t": x.T, "contiguous": x, "relu": x.relu()}.get(name)
    close(
        run.array(getattr(run, f"torchtensor_{name}")(run.make(X))),
        getattr(torch, name)(x) if wanted is None else wanted,
    )


def test_other_elementwise_functions(run: Runtime) -> None:
    positive, h = run.make(Y**2), run.make(X)
    close(run.array(run.torchtensor_sqrt(positive)), torch.sqrt(y**2))
    close(run.array(run.torchtensor_log(positive)), torch.log(y**2))
    close(run.array(run.torchtensor_pow(h, 3.0)), x**3)
    close(run.array(run.torchtensor_add_scalar(h, 2.5)), x + 2.5)
    close(run.array(run.torchtensor_mul_scalar(h, -2.0)), x * -2)
    close(run.array(run.torchtensor_leaky_relu(h, 0.2)), F.leaky_relu(x, 0.2))
    close(run.array(run.torchtensor_gelu(h)), F.gelu(x))
    close(run.array(run.torchtensor_softmax(h, 1)), x.softmax(1))
    close(run.array(run.torchtensor_log_softmax(h, 0)), x.log_softmax(0))


def test_linear_algebra(run: Runtime) -> None:
    h, s = run.make(X), run.make(SQUARE)
    close(run.array(run.torchtensor_matmul(s, h)), square @ x)
    close(run.array(run.torchtensor_dot(run.make([1, 2, 3]), run.make([4, 5, 6]))), 32)
    close(run.array(run.torchtensor_transpose(h, 0, 1)), x.T)
    close(run.torchtensor_norm(h), x.norm())
    close(run.torchtensor_det(s), torch.linalg.det(square))
    close(run.array(run.torchtensor_inverse(s)), torch.linalg.inv(square))
    close(run.array(run.torchtensor_svd(h)), torch.linalg.svdvals(x))
    close(
        np.sort_complex(run.array(run.torchtensor_eig(s))),
        np.sort_complex(torch.linalg.eigvals(square).numpy()),
    )


def test_reductions(run: Runtime) -> None:
    h = run.make(X)
    for name in ("sum", "mean", "max", "min", "std", "var"):
        close(getattr(run, f"torchtensor_{name}")(h), getattr(x, name)())
    for keep in (0, 1):
        for name in ("sum", "mean"):
            close(
                run.array(getattr(run, f"torchtensor_{name}_dim")(h, 1, keep)),
                getattr(x, name)(1, keepdim=bool(keep)),
            )
        for name in ("max", "min"):
            wanted = getattr(x, name)(0, keepdim=bool(keep))
            close(run.array(getattr(run, f"torchtensor_{name}_dim")(h, 0, keep)), wanted.values)
            close(run.array(getattr(run, f"torchtensor_arg{name}")(h, 0, keep)), wanted.indices)


def test_shapes(run: Runtime) -> None:
    h = run.make(X)
    assert (run.torchtensor_ndim(h), run.torchtensor_numel(h), run.torchtensor_shape(h)) == (2, 6, [2, 3])
    assert run.torchtensor_shape(run.torchtensor_reshape(run.make([1.0]), [])) == []
    close(run.array(run.torchtensor_reshape(h, [3, -1])), x.reshape(3, 2))
    close(run.array(run.torchtensor_view(h, [6])), x.view(6))
    close(run.array(run.torchtensor_permute(h, [1, 0])), x.permute(1, 0))
    tall = run.torchtensor_unsqueeze(h, 1)
    assert run.torchtensor_shape(tall) == [2, 1, 3]
    assert run.torchtensor_shape(run.torchtensor_squeeze_dim(tall, 1)) == [2, 3]


def test_parts_and_joining(run: Runtime) -> None:
    h, other = run.make(X), run.make(Y)
    close(run.array(run.torchtensor_slice(h, 1, 0, 3, 2)), x[:, ::2])
    close(run.array(run.torchtensor_index_select(h, 1, run.make([2, 0]))), x[:, [2, 0]])
    places = [[0, 1, 1], [1, 0, 0]]
    close(run.array(run.torchtensor_gather(h, 0, run.make(places))), x.gather(0, torch.tensor(places)))
    close(run.array(run.torchtensor_cat([h, other], 1)), torch.cat([x, y], 1))
    close(run.array(run.torchtensor_stack([h, other], 0)), torch.stack([x, y]))
    for found, wanted in zip(run.torchtensor_chunk(h, 2, 1), x.chunk(2, 1), strict=True):
        close(run.array(found), wanted)


def test_neural_networks(run: Runtime) -> None:
    rng = np.random.default_rng(0)
    image, kernel, bias = (
        rng.standard_normal(s).astype(np.float32) for s in ((2, 3, 8, 8), (4, 3, 3, 3), (4,))
    )
    i, k, b = (torch.tensor(each) for each in (image, kernel, bias))
    h, w, c = (run.make(each) for each in (image, kernel, bias))
    close(run.array(run.nn_conv2d(h, w, c, [2, 1], [1, 0], [1, 1], 1)), F.conv2d(i, k, b, (2, 1), (1, 0)))
    close(run.array(run.nn_conv2d(h, w, 0, [1, 1], [0, 0], [2, 2], 1)), F.conv2d(i, k, dilation=2))
    close(run.array(run.nn_max_pool2d(h, [2, 2], [], [0, 0])), F.max_pool2d(i, 2))
    close(run.array(run.nn_avg_pool2d(h, [3, 3], [2, 2], [1, 1])), F.avg_pool2d(i, 3, 2, 1))
    mean, spread = np.zeros(3), np.ones(3)
    m, v = run.make(mean), run.make(spread)
    close(
        run.array(run.nn_batch_norm(h, m, v, 0, 0, 1, 0.1, 1e-5)),
        F.batch_norm(i, tm := torch.zeros(3), torch.ones(3), training=True),
    )
    close(run.array(m), tm)
    gain = run.make(np.arange(8) / 8)
    close(
        run.array(run.nn_layer_norm(h, [8], gain, 0, 1e-5)),
        F.layer_norm(i, (8,), torch.arange(8) / 8),
    )
    close(run.array(run.nn_dropout(h, 0.5, 0)), i)
    dropped = run.array(run.nn_dropout(h, 0.5, 1))
    assert 0.3 < (dropped == 0).mean() < 0.7
    close(run.array(run.nn_linear(run.make(X), run.make(Y), 0)), x @ y.T)
    close(
        run.array(run.nn_embedding(run.make([1, 0, 1]), run.make(X))), F.embedding(torch.tensor([1, 0, 1]), x)
    )


def test_losses_are_numbers(run: Runtime) -> None:
    h = run.make(X)
    close(run.nn_mse_loss(h, run.make(Y)), F.mse_loss(x, y))
    close(run.nn_cross_entropy(h, run.make([2, 0])), F.cross_entropy(x, torch.tensor([2, 0])))
    close(
        run.nn_cross_entropy(h, run.make(np.full((2, 3), 1 / 3))),
        F.cross_entropy(x, torch.full((2, 3), 1 / 3)),
    )
    half = run.torchtensor_sigmoid(h)
    close(
        run.nn_binary_cross_entropy(half, run.make(X > 0)),
        F.binary_cross_entropy(x.sigmoid(), (x > 0).float()),
    )
    logs = run.torchtensor_log_softmax(h, 1)
    close(run.nn_nll_loss(logs, run.make([2, 0])), F.nll_loss(x.log_softmax(1), torch.tensor([2, 0])))


def test_gradients(run: Runtime) -> None:
    h = run.make(X)
    assert run.autograd_requires_grad(h) == 0
    run.autograd_set_requires_grad(h, 1)
    assert run.autograd_requires_grad(h) == 1
    assert run.autograd_grad(h) == 0
    loss = run.torchtensor_dot(run.torchtensor_flatten(h), run.torchtensor_flatten(h))
    run.autograd_backward(loss)
    close(run.array(run.autograd_grad(h)), 2 * X)
    run.autograd_zero_grad(h)
    close(run.array(run.autograd_grad(h)), 0 * X)
    assert run.autograd_requires_grad(run.autograd_detach(loss)) == 0
    for _ in range(40):
        run.autograd_no_grad_begin()
    assert run.autograd_requires_grad(run.torchtensor_exp(h)) == 0
    for _ in range(40):
        run.autograd_no_grad_end()
    assert run.autograd_requires_grad(run.torchtensor_exp(h)) == 1
    run.autograd_no_grad_end()
    assert "scope" in run.why


def test_devices(run: Runtime) -> None:
    h = run.make(X)
    assert run.torchtensor_device(h) == -1 and run.torchtensor_is_cuda(h) == 0
    close(run.array(run.torchtensor_cpu(h)), X)
    if torch.cuda.is_available():
        on_gpu, stream = run.torchtensor_cuda(h, 0), run.stream_create(0)
        assert run.torchtensor_device(on_gpu) == 0 and run.torchtensor_is_cuda(on_gpu) == 1
        moved = run.torchtensor_to_stream(h, 0, stream)
        run.torchstream_sync(stream)
        assert run.torchstream_query(stream) == 1
        close(run.array(run.torchtensor_cpu(moved)), X)
        assert run.cuda_max_memory_allocated(0) >= run.cuda_memory_allocated(0) > 0
        run.cuda_empty_cache()
        run.torchstream_free(stream)
        return
    assert run.torchtensor_cuda(h, 0) == 0 and "CUDA" in run.why
    assert run.stream_create(0) == 0 and "CUDA" in run.why
    assert run.cuda_memory_allocated(0) == -1 and run.cuda_max_memory_allocated(0) == -1
    run.bridge.tn_error_clear()
    run.cuda_empty_cache()
    assert "CUDA" in run.why
    assert run.torchtensor_to_stream(h, 0, 0) == 0 and "stream is NULL" in run.why
    assert run.torchstream_query(0) == -1
    for function in (run.torchstream_sync, run.torchstream_free):
        function(0)


def test_numbers_have_siblings_that_gradients_flow_through(run: Runtime) -> None:
    square, other = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])
    classes = run.make([0.0, 1.0])
    for name in sorted(run.rows):
        if not name.endswith("_tensor") or run.rows[name].result != "tensor":
            continue
        plain = name.removesuffix("_tensor")
        x = run.make(square / 8)
        run.autograd_set_requires_grad(x, 1)
        rest = [] if len(run.rows[plain].parameters) == 1 else [run.make(other)]
        if plain == "nn_nll_loss":
            rest = [classes]
        found = getattr(run, name)(x, *rest)
        assert run.torchtensor_item(found) == pytest.approx(getattr(run, plain)(x, *rest)), name
        run.autograd_backward(found)
        assert run.autograd_grad(x) != 0, name


def test_elements_and_whole_decompositions_are_read_back(run: Runtime) -> None:
    matrix = np.array([[2.0, 1.0], [1.0, 3.0], [0.0, 1.0]])
    assert run.torchtensor_data(run.make(matrix)) == matrix.ravel().tolist()
    assert run.torchtensor_data(run.make(np.zeros((0,)))) == []
    u, s, v = (run.array(each) for each in run.torchtensor_svd_full(run.make(matrix)))
    np.testing.assert_allclose(u[:, :2] @ np.diag(s) @ v, matrix, atol=1e-5)
    values, vectors = run.torchtensor_eig_full(run.make(matrix[:2]))
    assert run.torchtensor_shape(values) == [2] and run.torchtensor_shape(vectors) == [2, 2]


def test_failures_are_told_by_the_result(run: Runtime) -> None:
    h = run.make(X)
    assert run.torchtensor_matmul(h, h) == 0 and "mat1 and mat2" in run.why
    assert math.isnan(run.torchtensor_det(h)) and "square" in run.why
    assert math.isnan(run.torchtensor_sum(0)) and "NULL" in run.why
    assert run.torchtensor_ndim(0) == -1
    assert run.torchtensor_shape(0) is None
    assert run.torchtensor_chunk(h, -1, 0) is None and "chunk" in run.why
    uncounted = run.library.rt_torch_torchtensor_chunk(
        ctypes.c_int64(h), ctypes.c_int64(2), ctypes.c_int64(0), None
    )
    assert not uncounted and "count is NULL" in run.why
    assert run.autograd_requires_grad(0) == -1
    assert run.torchtensor_device(0) == -2 and run.torchtensor_is_cuda(0) == -1
    assert run.torchtensor_index_select(h, 0, 0) == 0
    run.library.rt_torch_torchtensor_free(ctypes.c_int64(0))
    CALLED.add("torchtensor_free")


def test_lists_belong_to_their_thread(run: Runtime) -> None:
    h, tall = run.make(X), run.make(np.zeros((4, 1, 1)))
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(run.torchtensor_shape(tall)))
    mine = run.torchtensor_shape(h)
    thread.start()
    thread.join()
    assert (mine, found[0]) == ([2, 3], [4, 1, 1])


def test_every_function_is_called_here(run: Runtime) -> None:
    CALLED.clear()
    for test in (
        test_the_library_tells_its_version,
        test_tensors_are_made,
        test_other_elementwise_functions,
        test_linear_algebra,
        test_reductions,
        test_shapes,
        test_parts_and_joining,
        test_neural_networks,
        test_losses_are_numbers,
        test_gradients,
        test_devices,
        test_failures_are_told_by_the_result,
    ):
        test(run)
    for name in COMBINED:
        test_two_tensors_are_combined(run, name)
    for name in MAPPED:
        test_one_tensor_is_mapped(run, name)
    test_numbers_have_siblings_that_gradients_flow_through(run)
    test_elements_and_whole_decompositions_are_read_back(run)
    further = {"torchtensor_item", "torchtensor_data", "torchtensor_svd_full", "torchtensor_eig_full"}
    assert len([name for name in run.rows if not name.endswith("_tensor") and name not in further]) == 104
    assert set(run.rows) == CALLED


def compiled(name: str, folder: Path) -> Path:
    """An example in C that is linked with libtenfold_rt alone."""
    made = built()
    source = Path(__file__).parents[2] / "examples" / "c" / f"{name}.c"
    strict = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
    command = ["cc", *strict, str(source), *made.compile_flags, *made.rt_link_flags, "-lm"]
    subprocess.run([*command, "-o", str(folder / name)], check=True)
    return folder / name


def test_a_network_learns_with_these_functions_alone(tmp_path: Path) -> None:
    program = compiled("09_rt_xor", tmp_path)
    printed = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    assert printed.splitlines()[-4:] == ["0 xor 0 = 0", "0 xor 1 = 1", "1 xor 0 = 1", "1 xor 1 = 0"]


def test_digits_are_read_with_these_functions_alone(tmp_path: Path) -> None:
    training, test = digits.load()
    pixels = np.concatenate([each.images.reshape(-1, 64).numpy() for each in (training, test)])
    labels = np.concatenate([each.labels.numpy() for each in (training, test)])
    np.savetxt(tmp_path / "digits.txt", np.column_stack([pixels, labels]), fmt="%g")
    program = compiled("11_rt_digits", tmp_path)
    command = [str(program), str(tmp_path / "digits.txt")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(r"([\d.]+) % of images", printed)
    assert found is not None and float(found[1]) > 90, printed


def test_shapes_are_known_without_libtorch(tmp_path: Path) -> None:
    made = built()
    path = str(rt.add(made.include, made.lib, shutil.which("gcc") or "cc"))
    printed = []
    for missing in ({}, {"TENFOLD_TORCH_LIBRARY": str(tmp_path / "missing.so")}):
        command = [sys.executable, "-m", "tests.capi.rt_shapes", path]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **missing})
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout.splitlines())
    (there, *with_torch), (absent, *without) = printed
    assert (there, absent) == ("1", "0")
    assert without == with_torch and len(without) > 80
