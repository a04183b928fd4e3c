"""Expansions that compute places, called as functions and compared with PyTorch's ops. That exported programs
contain them, each on its row's samples, is tested in test_expansions.py."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import tenfold as tn
from tenfold.exporting.expansion_gathers import (
    adaptive_largest,
    adaptive_mean,
    columns_by_slices,
    entropy_by_gather,
    gathered_by_strides,
    in_a_batch,
    likelihood_by_gather,
    resampled,
    resampled_by_factor,
    scattered_by_strides,
    scattered_on_diagonal,
)
from tenfold.tensor.dispatch import aten


@pytest.fixture(autouse=True)
def _interpreted(choose_tier):
    """These programs are small and differ in each case."""
    choose_tier("numpy")


def numbers(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=torch.float64).to(
        dtype
    )


def ours(tensor: torch.Tensor) -> tn.Tensor:
    if tensor.dtype is torch.float16:
        return tn.tensor(tensor.numpy())
    return tn.tensor(tensor.tolist(), dtype=getattr(tn, str(tensor.dtype).removeprefix("torch."))).view(
        tensor.shape
    )


def require_equal(found: tn.Tensor, expected: torch.Tensor, rtol: float = 1e-5) -> None:
    assert (str(found.dtype).split(".")[-1], tuple(found.shape)) == (
        str(expected.dtype).split(".")[-1],
        tuple(expected.shape),
    )
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=rtol, atol=rtol)


STRIDES = [
    ((2, 3), (1, 2), 0),
    ((2, 3), (3, 1), 0),
    ((2, 3), (3, 1), 4),
    ((3, 2), (1, 4), 1),
    ((4,), (0,), 3),
    ((), (), 5),
    ((2, 0), (1, 1), 2),
    ((2, 2, 2), (4, 1, 2), None),
]


@pytest.mark.parametrize("size, stride, offset", STRIDES)
def test_memory_is_read_by_strides(size, stride, offset):
    x = numbers(3, 4)
    (found,) = gathered_by_strides(ours(x), size, stride, offset)
    require_equal(found, torch.as_strided(x, size, stride, offset or 0))


@pytest.mark.parametrize("size, stride, offset", STRIDES[:4] + STRIDES[5:])
def test_memory_is_written_by_strides(size, stride, offset):
    x, values = numbers(3, 4), numbers(*size)
    (found,) = scattered_by_strides(ours(x), ours(values), size, stride, offset)
    require_equal(found, torch.as_strided_scatter(x, values, size, stride, offset))


@pytest.mark.parametrize("offset, dims", [(0, (0, 1)), (1, (0, 1)), (-2, (0, 1)), (1, (1, 2)), (9, (0, 2))])
def test_diagonals_are_written(offset, dims):
    x = numbers(3, 4, 2)
    values = numbers(*x.diagonal(offset, *dims).shape)
    (found,) = scattered_on_diagonal(ours(x), ours(values), offset, *dims)
    require_equal(found, torch.diagonal_scatter(x, values, offset, *dims))


TARGETS = [  # shapes of scores, and classes, of which -100 counts for nothing
    ((4, 3), [0, 2, -100, 1]),
    ((2, 3, 2), [[0, 2], [-100, 1]]),
    ((3,), 1),
    ((3,), -100),
]


@pytest.mark.parametrize("reduction", [0, 1, 2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape, target", TARGETS)
def test_likelihoods_of_classes_and_what_they_are_divided_by(shape, target, weighted, reduction):
    scores, classes = numbers(*shape).log_softmax(-1 if len(shape) == 1 else 1), torch.tensor(target)
    weight = torch.tensor([0.5, 2.0, 3.0]) if weighted else None
    expected = (
        torch.ops.aten.nll_loss2d_forward(scores[..., None], classes[..., None], weight, reduction, -100)
        if len(shape) == 3
        else torch.ops.aten.nll_loss_forward(scores, classes, weight, reduction, -100)
    )
    given = (ours(scores), ours(classes), None if weight is None else ours(weight))
    loss, total = likelihood_by_gather(*given, reduction, -100)
    require_equal(loss, expected[0].squeeze(-1) if len(shape) == 3 and reduction == 0 else expected[0])
    if reduction:
        require_equal(total, expected[1])


def test_a_likelihood_of_half_floats_is_added_up_in_full_ones():
    scores = torch.full((4096, 1), -0.75, dtype=torch.float16)
    loss, total = likelihood_by_gather(ours(scores), tn.zeros(4096, dtype=tn.int64), None, 2, -100)
    assert (loss.dtype, loss.item(), total.item()) == (tn.float16, 3072.0, 4096.0)


@pytest.mark.parametrize("shape", [(0, 3), (2, 3, 0)])
def test_a_likelihood_of_nothing_is_nothing(shape):
    target = tn.zeros(shape[0], *shape[2:], dtype=tn.int64)
    loss, total = likelihood_by_gather(tn.zeros(*shape), target, None, 2, -100)
    assert (loss.item(), total.item()) == (0, 0)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape, target", [*TARGETS, ((4, 3), None), ((3,), None), ((2, 3, 2), None)])
def test_entropies_of_classes_and_of_chances(shape, target, weighted, reduction, smoothing):
    scores = numbers(*shape)
    goal = numbers(*shape).softmax(0 if len(shape) == 1 else 1) if target is None else torch.tensor(target)
    weight = torch.tensor([0.5, 2.0, 3.0]) if weighted else None
    options = {"reduction": reduction, "label_smoothing": smoothing}
    expected = F.cross_entropy(scores, goal, weight, **options)
    number = ("none", "mean", "sum").index(reduction)
    given = (ours(scores), ours(goal), None if weight is None else ours(weight))
    (found,) = entropy_by_gather(*given, number, -100, smoothing)
    if target is None and reduction == "mean":  # PyTorch divides by the batch, and not by the chances
        expected = F.cross_entropy(scores, goal, weight, reduction="none", label_smoothing=smoothing).mean()
    require_equal(found, expected)


@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize("extents, counts", [
    ((7,), (3,)), ((6,), (3,)), ((2,), (5,)), ((5,), (1,)),
    ((5, 7), (3, 2)), ((4, 6), (2, 3)), ((3, 5), (3, 4)), ((2, 3), (5, 7)), ((10, 4), (7, 3)),
])  # fmt: skip
def test_adaptive_pools(batch, extents, counts):
    x, dims = numbers(*batch, 3, *extents), len(counts)
    mean = getattr(F, f"adaptive_avg_pool{dims}d")(x, counts)
    (found,) = adaptive_mean(aten(f"adaptive_avg_pool{dims}d"), ours(x), counts)
    require_equal(found, mean)
    largest = getattr(F, f"adaptive_max_pool{dims}d")(x, counts, return_indices=True)
    for one, expected in zip(adaptive_largest(aten(f"adaptive_max_pool{dims}d"), ours(x), counts), largest):
        require_equal(one, expected)


def test_the_first_of_equal_elements_and_a_nan_are_the_largest():
    x = torch.tensor([[[2.0, 5.0, 5.0, 1.0, float("nan"), 7.0, 0.0]]])
    expected = F.adaptive_max_pool1d(x, 3, return_indices=True)
    for one, two in zip(adaptive_largest(aten("adaptive_max_pool1d"), ours(x), (3,)), expected):
        require_equal(one, two)


def test_half_floats_are_pooled_in_full_ones():
    x = torch.full((1, 1, 5001), 30.0, dtype=torch.float16)
    (found,) = adaptive_mean(aten("adaptive_avg_pool1d"), ours(x), (2,))
    assert (found.dtype, found.tolist()) == (tn.float16, [[[30.0, 30.0]]])


@pytest.mark.parametrize("shape", [(3, 6), (2, 3, 6)])
def test_an_image_in_no_batch_is_pooled_as_a_batch_of_one(shape):
    asked = []

    def pool(x, width):
        asked.append(x.ndim)
        return F.max_pool1d(torch.tensor(x.tolist()), width, return_indices=True)

    results = in_a_batch(pool, 1, ours(numbers(*shape)), 2)
    assert asked == [3]
    assert [tuple(each.shape) for each in results] == [(*shape[:-1], 3)] * 2


@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize("kernel, dilation, padding, stride", [
    ((2, 3), (1, 1), (0, 0), (1, 1)),
    ((2, 2), (2, 1), (1, 0), (1, 2)),
    ((3, 1), (1, 3), (0, 2), (2, 3)),
    ((1, 1), (1, 1), (1, 1), (3, 2)),
])  # fmt: skip
def test_patches_are_columns(batch, kernel, dilation, padding, stride):
    x = numbers(*batch, 3, 6, 5)
    (found,) = columns_by_slices(ours(x), kernel, dilation, padding, stride)
    require_equal(found, F.unfold(x, kernel, dilation, padding, stride))


IMAGES = [("linear", 1, (5,)), ("bilinear", 2, (3, 4)), ("trilinear", 3, (2, 3, 2))]


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("mode, dims, image", IMAGES)
def test_images_are_resampled_to_sizes(mode, dims, image, align):
    x = numbers(2, 2, *image)
    resample = aten(f"upsample_{mode}{dims}d")
    for sizes in itertools.islice(itertools.product((1, 4, 7), repeat=dims), 1, 9):
        (found,) = resampled(resample, ours(x), sizes, align, *[None] * dims)
        require_equal(found, F.interpolate(x, sizes, mode=mode, align_corners=align))


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("factors", [(1.7, 0.6), (1.0, 2.5), (0.35, 3.0)])
def test_images_are_resampled_by_factors(factors, align):
    x = numbers(2, 2, 3, 4)
    resample = aten("upsample_bilinear2d")
    (found,) = resampled_by_factor(resample, ours(x), None, align, factors)
    require_equal(found, torch.ops.aten.upsample_bilinear2d.vec(x, None, align, factors))
    (found,) = resampled_by_factor(resample, ours(x), (5, 3), align, None)
    require_equal(found, torch.ops.aten.upsample_bilinear2d.vec(x, (5, 3), align, None))


@pytest.mark.parametrize("dtype, rtol", [(torch.float16, 2e-3), (torch.float64, 1e-12)])
def test_images_are_resampled_in_their_dtype_or_a_wider_one(dtype, rtol):
    x = numbers(1, 1, 5, dtype=dtype)
    (found,) = resampled(aten("upsample_linear1d"), ours(x), (8,), False, None)
    require_equal(found, F.interpolate(x, 8, mode="linear"), rtol)


def test_images_of_bytes_are_left_to_the_op_which_rounds_in_between():
    x = tn.tensor([[[0, 255, 7, 90]]], dtype=tn.uint8).view(1, 1, 2, 2)
    resample = aten("upsample_bilinear2d")
    (found,) = resampled(resample, x, (3, 5), False, None, None)
    assert found.dtype is tn.uint8
    assert found.tolist() == resample(x, (3, 5), False, None, None).tolist()
