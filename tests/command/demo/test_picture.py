"""Pictures: what a PNG reader finds in the files, and where things are drawn."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from tenfold.command.demo import picture


def read(path: Path) -> np.ndarray:
    """The pixels of a grey PNG of 8 bits without filters, its checksums verified."""
    content = path.read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, place = {}, 8
    while place < len(content):
        length, kind = struct.unpack(">I4s", content[place : place + 8])
        body = content[place + 8 : place + 8 + length]
        (checksum,) = struct.unpack(">I", content[place + 8 + length : place + 12 + length])
        assert checksum == zlib.crc32(kind + body)
        chunks[kind] = body
        place += 12 + length
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    width, height, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert rest == [8, 0, 0, 0, 0]
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, width + 1)
    assert (rows[:, 0] == 0).all()
    return rows[:, 1:]


def test_a_saved_image_is_read_back(tmp_path):
    image = np.linspace(-0.5, 1.5, 12).reshape(3, 4)
    picture.save(tmp_path / "a.png", image)
    np.testing.assert_array_equal(read(tmp_path / "a.png"), (image.clip(0, 1) * 255).astype(np.uint8))


def test_a_grid_shows_each_image_in_its_place():
    images = np.random.default_rng(0).random((5, 8, 8))
    page = picture.grid(images, columns=3, scale=2)
    assert page.shape == (2 * 24, 3 * 24)
    np.testing.assert_array_equal(page[28:44:2, 28:44:2], images[4])
    assert (page[24:, 48:] == 1).all()  # no sixth image


def test_a_caption_stands_below_its_image():
    plain = picture.grid(np.ones((1, 8, 8)), columns=1, captions=[" "])
    written = picture.grid(np.ones((1, 8, 8)), columns=1, captions=["3>8"])
    changed = np.argwhere(plain != written)
    assert len(changed) and changed[:, 0].min() >= 4 + 8 * 4


def test_a_grid_of_nothing_is_an_empty_page():
    assert (picture.grid(np.zeros((0, 8, 8)), columns=2) == 1).all()


@pytest.mark.parametrize("values", [[3.0, 2.0, 1.0], [1.0], [2.0, 2.0]], ids=["falling", "one", "flat"])
def test_a_curve_falls_where_its_values_do(values):
    page = picture.curve(values)[:, 60:312]
    heights = [np.flatnonzero(column == 0).mean() for column in page.T]
    assert len(heights) == 252
    assert (np.diff(heights) >= 0).all()
    assert (heights[-1] > heights[0] + 100) == (values[0] > values[-1])


def test_pages_below_one_another_are_as_wide_as_the_widest():
    page = picture.stack(np.zeros((2, 3)), np.zeros((1, 5)))
    np.testing.assert_array_equal(page, [[0, 0, 0, 1, 1], [0, 0, 0, 1, 1], [0, 0, 0, 0, 0]])
