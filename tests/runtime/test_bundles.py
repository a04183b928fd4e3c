"""Bundles of small inputs in `mode="reduce-overhead"`, which the CPU runs for these tests as a GPU does."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold import flat, nn
from tenfold.engines import xla
from tenfold.engines.xla import compiling
from tenfold.engines.xla.buffers import Shared
from tenfold.flat.ir import Function, TensorType, Value
from tenfold.runtime import reduced_overhead
from tenfold.runtime.bundles import ALIGNED, Bundled, bundles_of, taken_whole
from tenfold.trace.graph import Value as GraphValue

DEPTH = 6


@pytest.fixture(autouse=True)
def as_on_a_gpu():
    reduced_overhead.PLATFORMS.add("cpu")
    yield
    reduced_overhead.PLATFORMS.discard("cpu")


def model():
    tn.manual_seed(0)
    layers = [layer for _ in range(DEPTH) for layer in (nn.Linear(5, 5), nn.Tanh())]
    return nn.Sequential(*layers)


def most_arrays(net, monkeypatch):
    """The most arrays that a compiled module's second call passes to a program."""
    step = tn.compile(lambda x: net(x), mode="reduce-overhead")
    x = tn.randn(3, 5)
    with tn.no_grad():
        np.testing.assert_allclose(step(x).numpy(), net(x).numpy(), rtol=1e-5)
        counts = []
        run = compiling.Executable.__call__
        monkeypatch.setattr(
            compiling.Executable, "__call__",
            lambda program, buffers, held=None: counts.append(len(buffers)) or run(program, buffers, held),
        )  # fmt: skip
        step(tn.ones(3, 5))
    return max(counts)


def test_weights_travel_in_one_array(monkeypatch):
    net = nn.Sequential(*[nn.LayerNorm(5) for _ in range(DEPTH)])
    assert most_arrays(net, monkeypatch) == 3  # x, the weights and biases, the place of the result


def test_what_a_library_takes_travels_alone(monkeypatch):
    """XLA would copy the factors of products and their biases out of a bundle."""
    assert most_arrays(model(), monkeypatch) == 2 + 2 * DEPTH


def test_a_bias_is_known_through_conversions_and_shapes():
    x, weight, bias, addend = (Value(TensorType(dtype, shape)) for dtype, shape in (
        (tn.bfloat16, (2, 3)), (tn.bfloat16, (3, 4)), (tn.float32, (4,)), (tn.bfloat16, (2, 4)),
    ))  # fmt: skip
    product = flat.convert(flat.dot_general(x, weight, ((1,), (0,))), tn.float32)
    shifted = product + flat.broadcast_to(bias, (2, 4))
    results = [flat.convert(shifted, tn.bfloat16) * addend]
    assert taken_whole(Function([x, weight, bias, addend], results, "step")) == {x, weight, bias}


def test_weights_that_change_are_bundled_anew():
    net = model()
    step = tn.compile(net, mode="reduce-overhead")
    x = tn.randn(3, 5)
    optimizer = tn.optim.SGD(net.parameters(), lr=0.5)
    for _ in range(4):
        with tn.no_grad():
            np.testing.assert_allclose(step(x).numpy(), net(x).numpy(), rtol=1e-6)
        net(x).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    with tn.no_grad():
        net[0].bias.zero_()
        net[2].weight[1, 2] = 7.0
        np.testing.assert_allclose(step(x).numpy(), net(x).numpy(), rtol=1e-6)


def test_what_the_function_writes_stays_apart():
    counters = [tn.zeros(2) for _ in range(12)]
    weights = [tn.full((2,), float(i)) for i in range(12)]

    def update(x):
        for counter, weight in zip(counters, weights, strict=True):
            counter.add_(weight * x)
        return counters[-1] + 0

    step = tn.compile(update, mode="reduce-overhead")
    assert [step(tn.ones(2))[0].item() for _ in range(3)] == [11, 22, 33]
    assert counters[3].tolist() == [9, 9]


def test_parts_are_aligned_and_dtypes_apart():
    types = (
        [TensorType(tn.float32, (3,))] * 10
        + [TensorType(tn.bfloat16, (70,))] * 9
        + [TensorType(tn.int64, ())]
    )
    params = [Value(type) for type in types]
    bundles = bundles_of(params, range(len(params)))
    assert [bundle.type.dtype for bundle in bundles] == [tn.float32, tn.bfloat16]  # one number does not pay
    for bundle in bundles:
        assert all(start * bundle.type.dtype.itemsize % ALIGNED == 0 for start in bundle.starts)
    bundled = Bundled(Function(params, [params[0] * 2, params[-1]]), bundles)
    assert [param.type for param in bundled.function.params] == [types[-1], *[each.type for each in bundles]]


def test_a_model_of_equal_and_empty_parts():
    empty = [tn.zeros(0) for _ in range(5)]
    shared = tn.ones(4)
    others = [tn.full((4,), float(i)) for i in range(9)]
    step = tn.compile(
        lambda x: tn.cat([*empty, x, shared]) + sum(tn.cat([other, shared]) for other in others),
        mode="reduce-overhead",
    )
    for i in range(3):
        x = tn.full((4,), float(i))
        assert step(x).tolist() == [i + 36.0] * 4 + [10.0] * 4


def test_a_weight_that_another_library_writes_is_bundled_at_each_call():
    device = tn.zeros(4).current().device
    arrays = [xla.put(np.full(4, i, np.float32), device) for i in range(12)]
    weights = [
        tn.Tensor(GraphValue(TensorType(tn.float32, (4,)), device, None, 0, array)) for array in arrays
    ]
    step = tn.compile(lambda x: sum(weight * x for weight in weights), mode="reduce-overhead")
    x = tn.ones(4)
    for _ in range(3):
        assert step(x).tolist() == [66.0] * 4
    theirs = torch.from_dlpack(xla.to_dlpack(arrays[3]))
    assert arrays[3] in xla.shared and arrays[4] not in xla.shared
    for number in (103.0, 203.0):
        theirs.fill_(number)
        assert step(x).tolist() == [63.0 + number] * 4


def test_an_array_that_is_gone_is_shared_no_longer():
    shared = Shared()
    array, other = np.ones(3).view(Array), np.ones(3).view(Array)
    shared.note(array)
    assert array in shared and other not in shared
    del array
    assert not shared._known and shared.times == 1


class Array(np.ndarray):
    """An array that is known by its identity."""
