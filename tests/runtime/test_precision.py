"""How precise float32 products are on GPUs: PyTorch's switches decide what the program asks of XLA."""

from __future__ import annotations

import pytest

import tenfold as tn
from tenfold.base.devices import Device
from tenfold.engines import xla
from tenfold.mlir import stablehlo
from tenfold.runtime.calls import record_call
from tenfold.trace.lower import lower

HIGHEST = "HIGHEST"


@pytest.fixture(autouse=True)
def defaults():
    yield
    tn.set_float32_matmul_precision("highest")
    tn.backends.cudnn.allow_tf32 = True


def text(function, *args, device="cuda"):
    """The StableHLO that a device's compiler is given."""
    trace = record_call(function, args, {}, tn.Tensor).recording.trace
    return stablehlo.emit(lower(trace), exact=xla.exact(Device(device))).text()


def product(dtype=tn.float32):
    return text(lambda x: x @ x, tn.ones(4, 4, dtype=dtype))


def test_products_keep_all_bits_unless_they_need_not():
    assert HIGHEST in product()
    for precision in ("high", "medium"):
        tn.set_float32_matmul_precision(precision)
        assert HIGHEST not in product()
    tn.set_float32_matmul_precision("highest")
    assert HIGHEST in product()


def test_the_switch_of_the_backend_is_the_same_one():
    tn.backends.cuda.matmul.allow_tf32 = True
    assert tn.get_float32_matmul_precision() == "high"
    assert tn.backends.cuda.matmul.fp32_precision == "tf32"
    assert HIGHEST not in product()
    tn.backends.cuda.matmul.fp32_precision = "ieee"
    assert not tn.backends.cuda.matmul.allow_tf32
    assert HIGHEST in product()
    with pytest.raises(tn.ArgumentError):
        tn.backends.cuda.matmul.fp32_precision = "fp4"


def test_convolutions_may_round_unless_cudnn_may_not():
    convolve = lambda x, w: tn.nn.functional.conv2d(x, w)
    arguments = tn.ones(2, 16, 8, 8), tn.ones(16, 16, 3, 3)
    assert HIGHEST not in text(convolve, *arguments)
    tn.backends.cudnn.allow_tf32 = False
    assert HIGHEST in text(convolve, *arguments)


def test_other_dtypes_and_the_cpu_are_not_asked():
    assert HIGHEST not in product(tn.bfloat16)
    assert HIGHEST not in text(lambda x: x @ x, tn.ones(4, 4), device="cpu")


def test_products_in_a_loop_keep_all_bits_too():
    def loop(x):
        return tn.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x @ x), (0, x))[1]

    assert HIGHEST in text(loop, tn.ones(4, 4))


def test_a_compiled_function_is_compiled_anew_for_another_precision():
    step = tn.compile(lambda x: x @ x)
    step(tn.ones(4, 4))
    tn.set_float32_matmul_precision("high")
    step(tn.ones(4, 4))
    assert "precision changed" in step.guards()
