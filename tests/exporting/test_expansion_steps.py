"""Expansions in several steps, called as functions and compared with PyTorch's ops. That exported programs
contain them, each on its row's samples, is tested in test_expansions.py."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import tenfold as tn
from tenfold.exporting import expansion_steps as steps
from tenfold.tensor.dispatch import aten


@pytest.fixture(autouse=True)
def _interpreted(choose_tier):
    """These programs are small and differ in each case."""
    choose_tier("numpy")


def numbers(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def ours(tensor: torch.Tensor | None) -> tn.Tensor | None:
    return None if tensor is None else tn.tensor(tensor.numpy())


def require_equal(found: tn.Tensor, expected: torch.Tensor, rtol: float = 2e-5) -> None:
    array = expected.numpy()
    assert (found.numpy().dtype, found.shape) == (array.dtype, tuple(array.shape))
    np.testing.assert_allclose(found.numpy(), array, rtol=rtol, atol=rtol)


LAYERS = {
    "lstm": steps.lstm_by_steps,
    "gru": steps.gru_by_steps,
    "rnn_relu": steps.rnn_relu_by_steps,
    "rnn_tanh": steps.rnn_tanh_by_steps,
}


@pytest.mark.parametrize("biases, layers, both_ways, batch_first", [
    (True, 1, False, False), (False, 2, False, True), (True, 2, True, True), (False, 1, True, False),
])  # fmt: skip
@pytest.mark.parametrize("kind", LAYERS)
def test_recurrent_layers_step_by_step(kind, biases, layers, both_ways, batch_first):
    module = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}.get(kind, torch.nn.RNN)(
        3, 4, layers, bias=biases, bidirectional=both_ways, batch_first=batch_first
    )
    parameters = [parameter.detach() for parameter in module.parameters()]
    starts = [numbers(layers * (1 + both_ways), 2, 4) for _ in range(2 if kind == "lstm" else 1)]
    x = numbers(2, 5, 3) if batch_first else numbers(5, 2, 3)
    settings = (biases, layers, 0.0, False, both_ways, batch_first)
    op = getattr(torch.ops.aten, kind)
    expected = op.input(x, starts if kind == "lstm" else starts[0], parameters, *settings)
    given = [ours(start) for start in starts]
    states = given if kind == "lstm" else given[0]
    results = LAYERS[kind](ours(x), states, [ours(each) for each in parameters], *settings)
    for one, two in zip(results, expected, strict=True):
        require_equal(one, two)


@pytest.mark.parametrize("options", [
    {}, {"is_causal": True}, {"scale": 0.3}, {"attn_mask": "bool"}, {"attn_mask": "float"},
    {"enable_gqa": True}, {"enable_gqa": True, "is_causal": True},
], ids=str)  # fmt: skip
def test_attention(options):
    options = dict(options)
    heads = 2 if options.get("enable_gqa") else 4
    query, key, value = numbers(1, 4, 3, 5), numbers(1, heads, 6, 5), numbers(1, heads, 6, 2)
    mask = options.pop("attn_mask", None)
    if mask is not None:
        mask = numbers(3, 6) > -0.5 if mask == "bool" else numbers(3, 6)
    expected = F.scaled_dot_product_attention(query, key, value, mask, **options)
    given = {"dropout_p": 0.0, "is_causal": False, "scale": None, "enable_gqa": False, **options}
    (found,) = steps.attention(ours(query), ours(key), ours(value), ours(mask), **given)
    require_equal(found, expected)


def test_a_query_that_may_attend_to_nothing_gets_zeros():
    x, mask = tn.ones(1, 2, 3), tn.tensor([[True, False], [False, False]])
    (found,) = steps.attention(x, x, x, mask, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False)
    assert found.tolist() == [[[1, 1, 1], [0, 0, 0]]]


@pytest.mark.parametrize("count", [0, 1, 2, 5, 8])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_running_folds(dim, count):
    x = numbers(count, 3) if dim == 0 else numbers(3, count)
    require_equal(*steps.running(ours(x), dim, aten("add")).view(1, *x.shape), x.cumsum(dim))
    if count:
        for name, found in (("cummax", "maximum"), ("cummin", "minimum")):
            results = steps.running_extreme(ours(x), dim, aten(found))
            for one, two in zip(results, getattr(torch, name)(x, dim), strict=True):
                require_equal(one, two)


def test_running_folds_of_other_dtypes():
    whole = torch.tensor([3, 200, 255], dtype=torch.uint8)
    assert steps.running(ours(whole), 0, aten("add")).tolist() == whole.cumsum(0).tolist()
    assert steps.running(ours(whole), 0, aten("add")).dtype is tn.int64
    narrow = steps.running(ours(whole), 0, aten("add"), tn.int16)
    assert (narrow.dtype, narrow.tolist()) == (tn.int16, [3, 203, 458])
    half = torch.full((3000,), 1.0, dtype=torch.float16)
    assert steps.running(ours(half), 0, aten("add"))[-1].item() == 3000  # in float16 it would stop at 2048
    assert steps.running(tn.tensor(2.0), 0, aten("add")).item() == 2


def test_the_last_place_of_an_extreme_and_of_a_nan():
    for values in ([2.0, 2.0, 1.0, 2.0], [1.0, math.nan, 5.0, math.nan], [-0.0, 0.0]):
        x = torch.tensor(values)
        extreme, place = steps.running_extreme(ours(x), 0, aten("maximum"))
        np.testing.assert_array_equal(extreme.numpy(), x.cummax(0).values.numpy())
        assert place.tolist() == x.cummax(0).indices.tolist()
    extreme, place = steps.running_extreme(tn.tensor(7), 0, aten("maximum"))
    assert (extreme.item(), place.item(), place.dtype) == (7, 0, tn.int64)


@pytest.mark.parametrize("padding", ["same", "valid"])
@pytest.mark.parametrize("kernel, dilation", [((3, 3), (1, 1)), ((2, 4), (1, 1)), ((4, 3), (1, 2))])
def test_convolutions_padded_by_a_word(kernel, dilation, padding):
    x, weight, bias = numbers(1, 2, 9, 8), numbers(4, 1, *kernel), numbers(4)
    (found,) = steps.padded_convolution(ours(x), ours(weight), ours(bias), (1, 1), padding, dilation, 2)
    require_equal(found, F.conv2d(x, weight, bias, 1, padding, dilation, 2))


def test_dimensions_are_squeezed_and_moved():
    x = numbers(1, 3, 1, 2)
    for dims in ((0, 2), (-2, 0), (1,), ()):
        require_equal(*steps.squeeze_each(ours(x), dims), x.squeeze(dims) if dims else x)
    assert steps.squeeze_each(tn.tensor(1.0), (0,))[0].shape == ()
    for source, destination in (((0,), (-1,)), ((1, 3), (0, 1)), ((-1, 0), (0, 2))):
        require_equal(*steps.permuted(ours(x), source, destination), x.movedim(source, destination))
    assert steps.permuted(tn.tensor(1.0), (0,), (-1,))[0].shape == ()
    for start in (-2, 1):
        require_equal(*steps.narrow_from_start(ours(x), 1, start, 2), x.narrow(1, start, 2))


@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_losses_that_bend(reduction):
    # Differences on either side of the bend, and on it.
    x, y = torch.tensor([0.0, 0.25, 0.5, 2.0, -3.0]), torch.zeros(5)
    word = ("none", "mean", "sum")[reduction]
    for bend in (0.5, 1.0):
        found = steps.huber(ours(x), ours(y), reduction, bend)
        require_equal(*found, F.huber_loss(x, y, reduction=word, delta=bend))
        found = steps.smooth_l1(ours(x), ours(y), reduction, bend)
        require_equal(*found, F.smooth_l1_loss(x, y, reduction=word, beta=bend))
    require_equal(
        *steps.smooth_l1(ours(x), ours(y), reduction, 0), F.smooth_l1_loss(x, y, reduction=word, beta=0)
    )


def test_deviations_and_means():
    x = numbers(2, 3, 4)
    for options in ({}, {"correction": 0.0}, {"unbiased": False}, {"keepdim": True}):
        for dim in (None, (0, 2), (1,)):
            for one, two in zip(steps.deviation_and_mean(ours(x), dim, **options), std_mean(x, dim, options)):
                require_equal(one, two)


def std_mean(x: torch.Tensor, dim: tuple[int, ...] | None, options: dict) -> tuple[torch.Tensor, ...]:
    options = dict(options)
    less = options.pop("correction", 1.0 if options.pop("unbiased", True) else 0.0)
    return torch.std_mean(x, dim, correction=less, **options)


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_layers_that_normalise_by_batches(training, affine):
    x, mean, var = numbers(4, 3, 2), numbers(3), numbers(3).abs()
    weight, bias = (numbers(3), numbers(3)) if affine else (None, None)
    given = [ours(each) for each in (x, weight, bias, mean, var)]
    expected = torch.native_batch_norm(x, weight, bias, mean, var, training, 0.1, 1e-5)  # writes statistics
    results = steps.batch_norm_by_parts(*given, training, 0.1, 1e-5)
    for one, two in zip(results, (*expected, mean, var), strict=True):
        require_equal(one, two)


def test_products_with_logarithms():
    x, y = torch.tensor([0.0, 2.0, 0.0, 3.0]), torch.tensor([0.0, 5.0, math.nan, 0.5])
    np.testing.assert_allclose(steps.times_log(ours(x), ours(y))[0].numpy(), torch.xlogy(x, y), rtol=1e-6)
    expected = torch.special.xlog1py(x, y)
    np.testing.assert_allclose(steps.times_log1p(ours(x), ours(y))[0].numpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(steps.times_log(2, ours(y))[0].numpy(), torch.xlogy(2, y), rtol=1e-6)
    assert steps.times_log(tn.tensor([1, 0]), 3)[0].dtype is tn.float32


def test_products_of_bytes_are_taken_modulo_256():
    for dtype in (torch.uint8, torch.int8):
        x, y = (torch.arange(90, 102).view(shape).to(dtype) for shape in ((3, 4), (4, 3)))
        require_equal(*steps.product_of_bytes(aten("mm"), ours(x), ours(y)), x @ y)
    x = numbers(2, 2)
    require_equal(*steps.product_of_bytes(aten("mm"), ours(x), ours(x)), x @ x)


def test_a_number_becomes_a_tensor_of_the_dtype_in_which_both_are_computed():
    found = [steps.full_tensor(number, tn.ones(2, dtype=tn.int16)) for number in (3, 2.5, True)]
    assert [(each.dtype, each.item()) for each in found] == [
        (tn.int16, 3),
        (tn.float32, 2.5),
        (tn.int16, 1),
    ]


def test_digits_are_kept_at_the_ends_of_the_range():
    x = tn.tensor([-math.inf, -30.0, -2.0, -1.0, 0.0, 0.5, 1.0, 1.001, 2.0, 5.0, 6.0, 9.0, 27.0, math.nan])
    for dtype, rtol in ((tn.float32, 2e-6), (tn.float64, 1e-14)):
        (found,) = steps.erfc_by_erf(x.to(dtype))
        expected = np.array([math.erfc(each) for each in x.tolist()])
        tiny = tn.finfo(dtype).tiny
        np.testing.assert_allclose(found.numpy(), expected, rtol=rtol, atol=tiny)
    large = tn.tensor([1e30, 3e-30, 0.0, math.inf, -3.0])
    (found,) = steps.hypot_of_parts(large, tn.tensor([1e30, 4e-30, 0.0, math.nan, 4.0]))
    np.testing.assert_allclose(found.numpy(), [2**0.5 * 1e30, 5e-30, 0, math.inf, 5], rtol=1e-6)


@pytest.mark.parametrize("accumulate", [False, True])
def test_indices_that_count_from_the_end_are_written(accumulate):
    x = numbers(3, 4)
    for indices in ([[0, -1], [-2, 1]], [None, [-1, 0]], [[True, False, True], None]):
        tensors = [None if index is None else torch.tensor(index) for index in indices]
        values = torch.tensor(5.0)
        kept = [each for each in tensors if each is not None]
        if indices[0] is None:
            expected = x.index_put([torch.arange(3)[:, None], kept[0]], values, accumulate)
        else:
            expected = x.index_put(kept, values, accumulate)
        (found,) = steps.put_from_start(ours(x), [ours(each) for each in tensors], ours(values), accumulate)
        require_equal(found, expected)


def test_activations_with_thresholds():
    x = torch.tensor([-2.0, -0.5, -0.0, 0.5, 2.0, math.nan])
    np.testing.assert_array_equal(steps.shrunk(ours(x), 0.5)[0].numpy(), F.softshrink(x, 0.5).numpy())
    for shape in ((4, 3, 2), (4, 3), (3,)):
        x = numbers(*shape)
        slopes = numbers(3) if len(shape) > 1 else numbers(1)
        require_equal(*steps.leaky(ours(x), ours(slopes)), F.prelu(x, slopes))
