"""Kernels of our own: on NumPy arrays with the plain lowering's values, on a GPU with those of the CPU."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tenfold as tn
from tenfold.engines import numpy as tier0
from tenfold.flat.structured import CustomCall
from tenfold.mlir import stablehlo
from tenfold.mlir.triton import Writer
from tenfold.nn import functional
from tenfold.ops import row_attention, tile_kernels
from tenfold.ops.tile_absorbing import absorbed
from tenfold.ops.tile_kernels import TARGET
from tenfold.runtime.calls import record_call
from tenfold.trace.lower import lower

gpu = pytest.mark.skipif(not tn.cuda.is_available(), reason="there is no GPU here")
BF16 = tn.bfloat16


def random(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def norms(x, added, weight, bias, product):
    """A residual connection around two norms, in mixed precision, and its gradients."""
    sources = [each.detach().requires_grad_() for each in (x, added, weight, bias, product)]
    x, added, weight, bias, product = sources
    width = tuple(weight.shape)
    first = functional.layer_norm(x, width, weight, bias).to(BF16) @ product.to(BF16)
    total = x + first
    second = functional.layer_norm(total, width, weight, bias, 1e-3).to(BF16) @ product.to(BF16)
    loss = ((total + second) * added).sum()
    return loss, *tn.autograd.grad(loss, sources)


def losses(scores, target):
    scores = scores.detach().requires_grad_()
    loss = functional.cross_entropy(scores.to(BF16).float(), target, ignore_index=3)
    return loss, *tn.autograd.grad(loss, [scores])


def product_of_losses(first, second, target):
    """Two losses, each of which the gradient of the other needs."""
    sources = [each.detach().requires_grad_() for each in (first, second)]
    one, other = [functional.cross_entropy(each, target) for each in sources]
    loss = one * other
    return loss, *tn.autograd.grad(loss, sources)


def norms_of_both(x, added, product, bias):
    """Two norms of sums, each of which the weight of the other norm needs."""
    first, second = x + added @ product, (x @ product) + added
    normal = lambda total, other: functional.layer_norm(total, tuple(bias.shape), other[0] + bias, bias)
    return normal(first, second), normal(second, first)


def entropy_of_product(x, weight, target):
    x, weight = x.detach().requires_grad_(), weight.detach().requires_grad_()
    scores = x.to(BF16) @ weight.to(BF16)
    loss = functional.cross_entropy(scores.float(), target)
    return loss, *tn.autograd.grad(loss, [x, weight])


def activations(x, weight, bias):
    x, weight, bias = (each.detach().requires_grad_() for each in (x, weight, bias))
    with tn.autocast("cpu" if x.device.type == "cpu" else "cuda", dtype=BF16):
        hidden = functional.gelu(functional.linear(x, weight, bias), approximate="tanh")
        loss = (hidden.float() ** 2).sum()
    return loss, *tn.autograd.grad(loss, [x, weight, bias])


def vectors(x, weight, bias, linear, shift):
    """Residual connections of one row in half precision, without gradients."""
    x, weight, bias, linear, shift = (each.to(BF16) for each in (x, weight, bias, linear, shift))
    for _ in range(2):
        normal = functional.layer_norm(x, tuple(weight.shape), weight, bias)
        x = x + functional.linear(normal, linear, shift)
    return functional.layer_norm(x, tuple(weight.shape), weight, bias), x


def _linear(x, weight, bias):
    return functional.linear(x, weight, bias)


def decoding(x, weight, bias, joined, shift, wide, narrow, keys, values, position):
    """A layer of a transformer for one token, with a cache, in half precision."""
    halves = [each.to(BF16) for each in (x, weight, bias, joined, shift, wide, narrow, keys, values)]
    x, weight, bias, joined, shift, wide, narrow, keys, values = halves
    heads, width = keys.shape[1], x.shape[-1]
    size = width // heads
    normal = functional.layer_norm(x, (width,), weight, bias)
    query, key, value = [
        each.view(1, 1, heads, size).transpose(1, 2)
        for each in _linear(normal, joined, shift).split(width, dim=2)
    ]
    keys, values = keys.index_copy(2, position, key), values.index_copy(2, position, value)
    seen = (tn.arange(keys.shape[2], device=x.device) <= position).view(1, 1, 1, -1)
    mixed = functional.scaled_dot_product_attention(query, keys, values, seen)
    x = x + mixed.transpose(1, 2).reshape(1, 1, width) @ joined[:width].T
    normal = functional.layer_norm(x, (width,), weight, bias)
    x = x + functional.gelu(normal @ wide, approximate="tanh") @ narrow
    return x, keys, values


def rows(query, keys, values, mask):
    """Grouped heads of one row, masked by numbers, over keys that no power of two divides."""
    return (functional.scaled_dot_product_attention(query, keys, values, mask, enable_gqa=True),)


def pools(x, y):
    """Pools of images with overlapping windows, padded and with some of the end beside them."""
    x, y = (each.detach().to(BF16).requires_grad_() for each in (x, y))
    first = functional.max_pool2d(x, 3, 2, padding=(1, 0))
    second = functional.max_pool2d(y, (2, 3), (3, 2), ceil_mode=True)
    loss = (first.float() ** 2).sum() + (second.float() ** 3).sum()
    return first, second, *tn.autograd.grad(loss, [x, y])


def mixed(x, weight, addend):
    """A product whose addend is rounded to another half type first."""
    return (x.to(BF16) @ weight.to(BF16) + addend.to(tn.float16).to(BF16),)


TARGETS = np.array([0, 3, 1499, 700, 3], np.int64)
CASES = {
    "norms of rows": (norms, [random(3, 5, 96), random(3, 5, 96), random(96), random(96), random(96, 96)]),
    "norms of a power of two": (
        norms, [random(*shape) for shape in ((6, 128), (6, 128), (128,), (128,), (128, 128))],
    ),
    "cross entropy": (losses, [random(5, 1500) * 5, TARGETS]),
    "cross entropies that are multiplied": (
        product_of_losses, [random(5, 1500), random(5, 1500) + 1, TARGETS],
    ),
    "norms that need each other's sum": (
        norms_of_both, [random(6, 96), random(6, 96), random(96, 96), random(96)],
    ),
    "cross entropy of a product": (entropy_of_product, [random(5, 16), random(16, 1500), TARGETS]),
    "activations": (activations, [random(7, 40), random(1040, 40), random(1040)]),
    "norms of a vector": (vectors, [random(1, 1, 96), random(96), random(96), random(96, 96), random(96)]),
    "decoding": (decoding, [
        random(1, 1, 256), random(256), random(256), random(768, 256) * 0.02, random(768),
        random(256, 1024) * 0.02, random(1024, 256) * 0.02, random(1, 4, 100, 64), random(1, 4, 100, 64),
        np.array([37], np.int64),
    ]),
    "pools": (pools, [random(2, 5, 9, 12), random(1, 3, 10, 8)]),
    "two half types": (mixed, [random(1, 256), random(256, 256), random(1, 256)]),
    "rows of attention": (
        rows, [random(2, 6, 1, 24), random(2, 2, 77, 24), random(2, 2, 77, 40), random(2, 6, 1, 77)],
    ),
}  # fmt: skip
COUNTS = {
    "norms of rows": 4, "norms of a power of two": 4, "cross entropy": 1, "cross entropy of a product": 1,
    "activations": 2, "norms of a vector": 3, "decoding": 7, "rows of attention": 2, "two half types": 1,
    "pools": 4, "cross entropies that are multiplied": 3, "norms that need each other's sum": 2,
}  # fmt: skip


def close(found, expected):
    for ours, theirs in zip(found, expected, strict=True):
        ours, theirs = (np.asarray(each, np.float64) for each in (ours, theirs))
        assert np.linalg.norm(ours - theirs) <= 4e-3 * np.linalg.norm(theirs)


@pytest.fixture(autouse=True)
def small_activations(monkeypatch):
    monkeypatch.setattr(tile_kernels, "SMALLEST", 1)


@pytest.mark.parametrize("case", CASES)
def test_programs_by_kernels_give_what_the_plain_lowering_gives(case):
    function, arrays = CASES[case]
    trace = record_call(function, tuple([tn.tensor(each) for each in arrays]), {}, tn.Tensor).recording.trace
    tiled = absorbed(lower(trace, kind="triton"))
    calls = [op for op in tiled.ops if isinstance(op, CustomCall)]
    assert len(calls) == COUNTS[case] and all(op.call_target_name.startswith(TARGET) for op in calls)
    integers = iter([each for each in arrays if each.dtype == np.int64])
    leaves = [
        next(integers)
        if leaf.type.dtype is tn.int64
        else random(*leaf.type.shape).astype(leaf.type.dtype.numpy)
        for leaf in trace.leaves
    ]
    close(tier0.run(tiled, leaves), tier0.run(lower(trace), leaves))
    assert "tt.func" in stablehlo.emit(tiled).text()


@gpu
@pytest.mark.parametrize("case", CASES)
def test_a_gpu_gives_what_the_cpu_gives(case):
    give_the_same_on_a_gpu(*CASES[case])


def give_the_same_on_a_gpu(function, arrays):
    here, there = [tn.tensor(each) for each in arrays], [tn.tensor(each, device="cuda") for each in arrays]
    expected = [each.detach().float().numpy() for each in tn.compile(function)(*here)]
    close([each.detach().float().cpu().numpy() for each in tn.compile(function)(*there)], expected)


def masked(query, keys, values, seen):
    """Rows that attend to some of the keys."""
    return (functional.scaled_dot_product_attention(query, keys, values, seen > 0),)


def decoding_over(keys):
    """Arguments of `decoding` with so many keys, for which no lowering is remembered yet."""
    return [random(*[keys if size == 100 else size for size in each.shape]) if each.ndim == 4 else each
            for each in CASES["decoding"][1]]  # fmt: skip


def some_keys(*shape):
    """Of the last row none, of another one alone, of a third all."""
    seen = (np.random.default_rng(3).random(shape) > 0.9).astype(np.float32)
    seen[..., shape[-1] // 3 : shape[-1] * 3 // 4] = 0
    seen.reshape(-1, shape[-1])[:3] = [[0], [1], [0]]
    seen.reshape(-1, shape[-1])[0, -1] = 1
    return seen


SPARSE = {
    "in parts": (3200, masked, [
        random(3, 2, 1, 24), random(3, 2, 300, 24), random(3, 2, 300, 40), some_keys(3, 1, 1, 300),
    ]),
    "in turns": (1, masked, [
        random(3, 2, 1, 64), random(3, 2, 700, 64), random(3, 2, 700, 64), some_keys(3, 2, 1, 700),
    ]),
    "while decoding": (3200, decoding, decoding_over(300)),
    "while decoding in turns": (1, decoding, decoding_over(290)),
}  # fmt: skip


@pytest.fixture(params=SPARSE)
def sparse(request, monkeypatch):
    monkeypatch.setattr(row_attention, "LARGE", 1)
    programs, function, arrays = SPARSE[request.param]
    monkeypatch.setattr(row_attention, "MANY_PROGRAMS", programs)
    return function, arrays


def test_strips_that_a_mask_excludes_are_passed_over(sparse):
    function, arrays = sparse
    trace = record_call(function, tuple([tn.tensor(each) for each in arrays]), {}, tn.Tensor).recording.trace
    tiled = absorbed(lower(trace, kind="triton"))
    assert any(dict(op.backend_config).get("sparse") for op in tiled.ops if isinstance(op, CustomCall))
    left = list(arrays)
    fitting = lambda leaf: left.pop([each.shape for each in left].index(leaf.type.shape))
    generator = np.zeros(2, np.uint64)
    leaves = tuple([generator if leaf.type.dtype is tn.uint64 else fitting(leaf) for leaf in trace.leaves])
    close(tier0.run(tiled, leaves), tier0.run(lower(trace), leaves))
    assert "scf.if" in stablehlo.emit(tiled).text()


@gpu
def test_a_gpu_passes_over_strips_that_a_mask_excludes(sparse):
    give_the_same_on_a_gpu(*sparse)


def test_a_row_of_the_lowest_scores_is_a_row_of_equal_ones():
    lowest = np.full((5, 1500), np.finfo(np.float32).min, np.float32)
    function = lambda scores, target: functional.cross_entropy(scores, target, reduction="none")
    arguments = (tn.tensor(lowest), tn.tensor(TARGETS))
    trace = record_call(function, arguments, {}, tn.Tensor).recording.trace
    leaves = [TARGETS if leaf.type.dtype is tn.int64 else lowest for leaf in trace.leaves]
    (found,) = tier0.run(lower(trace, kind="triton"), leaves)
    np.testing.assert_allclose(found, np.full(5, np.log(1500.0)), rtol=1e-6)


@pytest.mark.parametrize(("value", "bits"), [(float("nan"), 0x7FC00000), (float("-inf"), 0xFF800000)])
def test_constants_that_are_no_numbers_are_written_by_their_bits(value, bits):
    writer = Writer()
    writer.full(value)
    (line,) = writer.lines
    assert f"0x{bits:08X} : f32" in line


def test_constants_are_written_with_all_digits_of_float32():
    writer = Writer()
    writer.full(1 / 768, 4)
    (line,) = writer.lines
    assert np.float32(re.search(r"dense<(.*?)>", line)[1]) == np.float32(1 / 768)
