"""How tensors lie in memory, compared with NumPy's strides."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tenfold.flat.strides import contiguous, is_contiguous, reshaped

SHAPES = [(), (1,), (5,), (2, 3), (2, 3, 4), (1, 3, 1), (2, 1, 4), (0, 3), (3, 0, 2)]


def in_elements(array: np.ndarray) -> tuple[int, ...]:
    return tuple(stride // array.itemsize for stride in array.strides)


@pytest.mark.parametrize("shape", SHAPES)
def test_row_major_strides_are_pytorchs(shape):
    assert contiguous(shape) == torch.empty(shape).stride()
    if 0 not in shape:
        assert contiguous(shape) == in_elements(np.zeros(shape))


def random_view(random: np.random.Generator) -> np.ndarray:
    """A view of some memory: permuted, stepped over, stretched."""
    array = np.arange(48).reshape(random.permutation([2, 2, 3, 4]))
    if random.random() < 0.3:
        array = array.reshape(4, 12)
    array = array.transpose(random.permutation(array.ndim))
    if random.random() < 0.5:
        array = array[
            (slice(None, None, int(random.integers(1, 3))),) * int(random.integers(0, array.ndim + 1))
        ]
    if random.random() < 0.3:
        array = array[None]
    if random.random() < 0.2:
        array = np.broadcast_to(array[:1], (3, *array.shape[1:]))
    return array


def factored(count: int, random: np.random.Generator) -> tuple[int, ...]:
    """A random shape of so many elements."""
    shape = []
    while count > 1:
        extent = int(random.choice([n for n in range(2, count + 1) if count % n == 0]))
        shape.append(extent)
        count //= extent
    for _ in range(int(random.integers(0, 3))):
        shape.insert(int(random.integers(0, len(shape) + 1)), 1)
    return tuple(shape)


def test_contiguity_is_numpys():
    random = np.random.default_rng(0)
    found = [is_contiguous((view := random_view(random)).shape, in_elements(view)) for _ in range(300)]
    random = np.random.default_rng(0)
    assert found == [random_view(random).flags.c_contiguous for _ in range(300)]
    assert 20 < sum(found) < 280
    assert is_contiguous((0, 3), (7, 9)) and is_contiguous((), ())


def test_reshaping_without_a_copy_is_numpys():
    random = np.random.default_rng(1)
    possible = impossible = 0
    for _ in range(1000):
        view = random_view(random)
        target = view.shape if random.random() < 0.1 else factored(view.size, random)
        try:
            expected = view.view()
            expected.shape = target
        except AttributeError:
            impossible += 1
            assert reshaped(view.shape, in_elements(view), target) is None, (view.shape, view.strides, target)
            continue
        possible += 1
        strides = reshaped(view.shape, in_elements(view), target)
        assert strides is not None, (view.shape, in_elements(view), target)
        walked = np.lib.stride_tricks.as_strided(view, target, [s * view.itemsize for s in strides])
        assert np.array_equal(walked, view.reshape(target))
    assert min(possible, impossible) > 200


@pytest.mark.parametrize(
    ("shape", "strides", "target"),
    [
        ((2, 3), (3, 1), (6,)),
        ((2, 3), (1, 2), (6,)),
        ((2, 3), (3, 1), (3, 1, 2)),
        ((4, 1, 3), (3, 7, 1), (2, 6)),
        ((3, 4), (0, 1), (3, 2, 2)),
        ((3, 4), (0, 1), (12,)),
        ((1, 1), (5, 9), (1,)),
        ((), (), (1, 1)),
        ((2, 2, 3), (12, 3, 1), (2, 6)),
    ],
)
def test_strides_of_a_reshaped_view_are_pytorchs(shape, strides, target):
    base = torch.arange(100).as_strided(shape, strides)
    try:
        expected = base.view(target).stride()
    except RuntimeError:
        expected = None
    assert reshaped(shape, strides, target) == expected


def test_empty_views_take_any_shape():
    assert reshaped((0, 3), (3, 1), (0, 3)) == (3, 1)
    assert reshaped((0, 3), (3, 1), (5, 0)) == contiguous((5, 0))
