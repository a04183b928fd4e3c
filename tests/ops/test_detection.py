"""torchvision's ops against their definitions, written out as loops over elements."""

import math

import numpy as np
import pytest
import torch

import tenfold as tn

RANDOM = np.random.RandomState(0)
IMAGES = RANDOM.randn(2, 4, 7, 6).astype("float32")
REGIONS = np.array(
    [[0, 1.3, 0.7, 5.1, 6.2], [1, 0, 0, 2.4, 3.3], [1, -2, 3, 4.6, 9.5], [0, 3, 3, 3.1, 3.1]], "float32"
)


def sample(image, y, x):
    """An element between elements, as roi_align takes it."""
    height, width = image.shape
    if not (-1 <= y <= height and -1 <= x <= width):
        return 0.0
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    low, left = int(y), int(x)
    high, right = min(low + 1, height - 1), min(left + 1, width - 1)
    up, by = y - low, x - left
    return (
        image[low, left] * (1 - up) * (1 - by)
        + image[low, right] * (1 - up) * by
        + image[high, left] * up * (1 - by)
        + image[high, right] * up * by
    )


def aligned_bins(scale, bins, ratio, shift, least, channel):
    result = np.zeros((len(REGIONS), IMAGES.shape[1] if channel is None else channel, bins, bins))
    for k, (image, *corners) in enumerate(REGIONS):
        left, top, right, bottom = [each * scale - shift for each in corners]
        height, width = max(bottom - top, least), max(right - left, least)
        down = ratio if ratio > 0 else math.ceil(height / bins)
        across = ratio if ratio > 0 else math.ceil(width / bins)
        for c, i, j in np.ndindex(*result.shape[1:]):
            source = c if channel is None else (c * bins + i) * bins + j
            ys = [top + (i + (a + 0.5) / down) * height / bins for a in range(down)]
            xs = [left + (j + (a + 0.5) / across) * width / bins for a in range(across)]
            found = [sample(IMAGES[int(image), source], y, x) for y in ys for x in xs]
            result[k, c, i, j] = sum(found) / max(len(found), 1)
    return result


@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize("ratio", [2, -1])
def test_roi_align(ratio, aligned):
    found = tn.ops.torchvision.roi_align(tn.tensor(IMAGES), tn.tensor(REGIONS), 0.8, 2, 2, ratio, aligned)
    shift, least = (0.5, -math.inf) if aligned else (0, 1)
    expected = aligned_bins(0.8, 2, ratio, shift, least, None)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("box", [[-30, -30, 10, 10], [-200.3, -5, 321.7, 90.2], [-1e4, 0, 1e4, 4]])
def test_a_bin_larger_than_the_image_counts_all_of_its_samples(box):
    left, top, right, bottom = box
    image = RANDOM.randn(10, 9).astype("float32")
    down, across = math.ceil((bottom - top) / 2), math.ceil((right - left) / 2)
    expected = np.zeros((2, 2))
    for i, j in np.ndindex(2, 2):
        ys = [top + (i + (a + 0.5) / down) * (bottom - top) / 2 for a in range(down)]
        xs = [left + (j + (a + 0.5) / across) * (right - left) / 2 for a in range(across)]
        inside = [x for x in xs if -1 <= x <= 9]
        expected[i, j] = sum(sample(image, y, x) for y in ys for x in inside) / (down * across)
    images, regions = tn.tensor(image[None, None], requires_grad=True), tn.tensor([[0.0, *box]])
    found = tn.ops.torchvision.roi_align(images, regions, 1.0, 2, 2, 0, False)
    np.testing.assert_allclose(found[0, 0].detach().numpy(), expected, rtol=1e-4, atol=1e-5)
    found.sum().backward()
    assert (images.grad * images).sum().item() == pytest.approx(found.sum().item(), rel=1e-4, abs=1e-6)


def test_ps_roi_align():
    regions = tn.tensor(REGIONS)
    found, channels = tn.ops.torchvision.ps_roi_align(tn.tensor(IMAGES), regions, 0.8, 2, 2, 2)
    expected = aligned_bins(0.8, 2, 2, 0.5, -math.inf, 1)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-5)
    assert channels[0, 0].tolist() == [[0, 1], [2, 3]]


def whole_bins(start, end, bins, size, extra, last):
    extent = max(end - start + extra, 1)
    clip = lambda value: min(max(value, 0), last)
    return [
        (clip(math.floor(i * extent / bins) + start), clip(math.ceil((i + 1) * extent / bins) + start))
        for i in range(bins)
    ]


def away(value):
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


@pytest.mark.parametrize("name", ["roi_pool", "ps_roi_pool"])
def test_pools_of_whole_elements(name):
    scale, bins = 0.8, 2
    images = tn.tensor(IMAGES, requires_grad=True)
    found, places = getattr(tn.ops.torchvision, name)(images, tn.tensor(REGIONS), scale, bins, bins)
    found.sum().backward()
    gradient = np.zeros_like(IMAGES)
    for k, (image, *corners) in enumerate(REGIONS):
        left, top, right, bottom = [away(each * scale) for each in corners]
        extra, less = (1, 0) if name == "roi_pool" else (0, 1)
        rows = whole_bins(top, bottom, bins, 7, extra, 7 - less)
        columns = whole_bins(left, right, bins, 6, extra, 6 - less)
        for c, i, j in np.ndindex(*found.shape[1:]):
            source = c if name == "roi_pool" else (c * bins + i) * bins + j
            window = IMAGES[int(image), source][slice(*rows[i]), slice(*columns[j])]
            if not window.size:
                assert found[k, c, i, j].item() == 0
            elif name == "roi_pool":
                place = int(places[k, c, i, j])
                assert found[k, c, i, j].item() == window.max() == IMAGES[int(image), c].ravel()[place]
                gradient[int(image), c].reshape(-1)[place] += 1
            else:
                assert found[k, c, i, j].item() == pytest.approx(window.mean(), abs=1e-5)
                part = gradient[int(image), source][slice(*rows[i]), slice(*columns[j])]
                part += 1 / window.size
    np.testing.assert_allclose(images.grad.numpy(), gradient, atol=1e-5)


def test_a_backward_op_is_the_gradient():
    images, regions = tn.tensor(IMAGES, requires_grad=True), tn.tensor(REGIONS)
    tn.ops.torchvision.roi_align(images, regions, 0.8, 2, 2, 2, True).sum().backward()
    again = tn.ops.torchvision._roi_align_backward(
        tn.ones(4, 4, 2, 2), regions, 0.8, 2, 2, 2, 4, 7, 6, 2, True
    )
    np.testing.assert_allclose(images.grad.numpy(), again.numpy(), rtol=1e-6)


def test_deform_conv2d_without_offsets_is_a_convolution():
    weight, bias = RANDOM.randn(6, 2, 3, 3).astype("float32"), RANDOM.randn(6).astype("float32")
    offset, mask = np.zeros((2, 36, 4, 3), "float32"), np.ones((2, 18, 4, 3), "float32")
    given = [tn.tensor(each, requires_grad=True) for each in (IMAGES, weight, offset, mask, bias)]
    found = tn.ops.torchvision.deform_conv2d(*given, 2, 2, 1, 1, 1, 1, 2, 2, True)
    theirs = [torch.tensor(each, requires_grad=True) for each in (IMAGES, weight, bias)]
    expected = torch.nn.functional.conv2d(*theirs, stride=2, padding=1, groups=2)
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=1e-4, atol=1e-5)
    (found**2).sum().backward()
    (expected**2).sum().backward()
    for ours, reference in zip((given[0], given[1], given[4]), theirs, strict=True):
        np.testing.assert_allclose(ours.grad.numpy(), reference.grad.numpy(), rtol=1e-4, atol=1e-4)


def test_deform_conv2d_moves_and_weighs():
    image = np.arange(16, dtype="float32").reshape(1, 1, 4, 4)
    offset = np.zeros((1, 2, 4, 4), "float32")
    offset[0, 0], offset[0, 1] = 0.5, 1.0  # half a row down, a column to the right
    mask = np.full((1, 1, 4, 4), 2.0, "float32")
    parts = [tn.tensor(each) for each in (image, np.ones((1, 1, 1, 1), "float32"), offset, mask)]
    found = tn.ops.torchvision.deform_conv2d(*parts, tn.zeros(1), 1, 1, 0, 0, 1, 1, 1, 1, True)
    padded = np.pad(image[0, 0], ((0, 1), (0, 1)))
    expected = padded[:-1, 1:] + padded[1:, 1:]
    np.testing.assert_allclose(found[0, 0].numpy(), expected)


def test_nms_keeps_the_best_of_those_that_overlap():
    boxes = tn.tensor([[0.0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30], [0, 0, 10, 9.5]])
    scores = tn.tensor([0.9, 0.8, 0.7, 0.95])
    assert tn.ops.torchvision.nms(boxes, scores, 0.5).tolist() == [3, 2]
    assert tn.ops.torchvision.nms(boxes, scores, 0.99).tolist() == [3, 0, 1, 2]
    assert tn.ops.torchvision.nms(tn.zeros(0, 4), tn.zeros(0), 0.5).tolist() == []


def test_nms_compares_with_the_threshold_in_64_bits():
    boxes = tn.tensor([[0.0, 0, 10, 10], [0, 0, 10, 1]])  # 0.1 in 32 bits is more than 0.1
    assert tn.ops.torchvision.nms(boxes, tn.tensor([0.9, 0.8]), 0.1).tolist() == [0]
