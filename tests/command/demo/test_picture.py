"""Pictures: what is drawn, read back from the files, and what is said without matplotlib."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from tenfold.base.errors import MissingEngine
from tenfold.command.demo import picture

image = pytest.importorskip("matplotlib.image")


def test_images_are_drawn_in_their_places(tmp_path):
    images = np.zeros((4, 8, 8))
    images[3] = 1  # the last of two rows is white
    picture.gallery(tmp_path / "a.png", images, columns=2)
    pixels = image.imread(tmp_path / "a.png")[..., 0]
    height, width = pixels.shape
    assert pixels[height // 4, width // 4] == 0
    assert pixels[3 * height // 4, 3 * width // 4] == 1
    assert pixels[3 * height // 4, width // 4] == 0


@pytest.mark.parametrize("losses", [[3.0, 2.0, 1.0] * 40, [1.0], [2.0, 2.0], [1.0, 0.0]])
@pytest.mark.parametrize("count", [0, 9])
def test_a_curve_stands_above_the_images(tmp_path, losses, count):
    captions = [f"{each}, read 8" for each in range(count)]
    picture.learning(tmp_path / "a.png", losses, np.random.default_rng(0).random((count, 8, 8)), captions)
    pixels = image.imread(tmp_path / "a.png")
    assert pixels.shape[1] == 960
    upper = pixels[: pixels.shape[0] // 2]
    blue = (upper[..., 2] > 0.7) & (upper[..., 0] < 0.5)
    assert blue.any()


def test_what_is_missing_is_said_with_its_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingEngine, match="matplotlib") as caught:
        picture.require()
    assert "pip install" in caught.value.help and "[demo]" in caught.value.help
