"""The digits that come with Tenfold: what is in the file, and how it is split."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import tenfold as tn
from tenfold.command.demo import digits


def test_the_split_is_whole_and_fixed():
    train, test = digits.load()
    assert train.images.shape == (1437, 1, 8, 8) and test.images.shape == (360, 1, 8, 8)
    assert train.labels.shape == (1437,) and test.labels.shape == (360,)
    again, _ = digits.load()
    np.testing.assert_array_equal(train.images.numpy(), again.images.numpy())


def test_values_are_what_a_network_takes():
    for split in digits.load():
        assert split.images.dtype == tn.float32 and split.labels.dtype == tn.int64
        pixels = split.images.numpy()
        assert (pixels.min(), pixels.max()) == (0, 1)
        np.testing.assert_array_equal(pixels * 16, (pixels * 16).round())


def test_each_part_holds_every_digit_about_as_often():
    for split in digits.load():
        counts = np.bincount(split.labels.numpy(), minlength=10)
        assert len(counts) == 10
        assert counts.min() > 0.7 * counts.mean()


def test_no_image_is_in_both_parts():
    train, test = digits.load()
    seen = {image.tobytes() for image in train.images.numpy()}
    assert not [image for image in test.images.numpy() if image.tobytes() in seen]


def test_the_file_is_small_and_its_source_is_told():
    folder = Path(digits.__file__).parent
    assert (folder / "digits.npz").stat().st_size < 100_000
    told = (folder / "README.md").read_text()
    assert "Alpaydin" in told and "CC BY 4.0" in told
