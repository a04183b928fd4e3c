"""Pictures of what was learnt, as PNG files, with NumPy and zlib alone: a loss curve, and rows of small
images with captions. Images are grey: float arrays from 0 (black) to 1 (white)."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from os import PathLike

import numpy as np

# Each character is 3×5 pixels: five rows, one octal digit each.
GLYPHS = {
    "0": "75557", "1": "26227", "2": "71747", "3": "71717", "4": "55711", "5": "74717", "6": "74757",
    "7": "71111", "8": "75757", "9": "75717", ".": "00002", "-": "00700", ">": "42124", " ": "00000",
}  # fmt: skip


def save(path: str | PathLike[str], image: np.ndarray) -> None:
    """Write a grey image of shape (height, width) as a PNG file."""
    pixels = (np.clip(image, 0, 1) * 255).astype(np.uint8)
    height, width = pixels.shape
    # A PNG is its chunks: a header (8 bits, grey), the rows, each behind a filter byte (0: as it is), an end.
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels], 1)
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows.tobytes(), 9)),
        (b"IEND", b""),
    ]
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        for kind, content in chunks:
            file.write(struct.pack(">I", len(content)) + kind + content)
            file.write(struct.pack(">I", zlib.crc32(kind + content)))


def grid(images: np.ndarray, columns: int, captions: Sequence[str] = (), scale: int = 4) -> np.ndarray:
    """Small images of shape (n, h, w) in rows, each with its caption below."""
    count, height, width = images.shape
    room = 14 if captions else 0  # for a caption, which is written at twice its size
    tall, wide = height * scale + room + 8, width * scale + 8
    page = np.ones((max(1, -(-count // columns)) * tall, columns * wide))
    for place, image in enumerate(images):
        top, left = place // columns * tall + 4, place % columns * wide + 4
        page[top : top + height * scale, left : left + width * scale] = np.kron(
            image, np.ones((scale, scale))
        )
        if captions:
            write(page, captions[place], top + height * scale + 3, left)
    return page


def curve(values: Sequence[float], height: int = 160, width: int = 320) -> np.ndarray:
    """The values over their places, as a line between two axes that name the largest and the smallest."""
    page = np.ones((height, width))
    top, bottom, left, right = 8, height - 10, 60, width - 8
    page[top:bottom, left - 1] = page[bottom, left - 1 : right] = 0.6
    low, high = min(values), max(values)
    # As many points as there are columns, so that each column is one stroke from its point to the next.
    places = np.linspace(0, len(values) - 1, right - left)
    shares = (np.interp(places, np.arange(len(values)), values) - low) / ((high - low) or 1)
    points = (bottom - 3 - shares * (bottom - 3 - top)).astype(int)
    for column, (here, there) in enumerate(zip(points, [*points[1:], points[-1]])):
        page[min(here, there) : max(here, there) + 2, left + column] = 0
    write(page, f"{high:.3f}", top, 4)
    write(page, f"{low:.3f}", bottom - 12, 4)
    return page


def stack(*pages: np.ndarray) -> np.ndarray:
    """Pages below one another."""
    width = max(page.shape[1] for page in pages)
    return np.concatenate(
        [np.pad(page, ((0, 0), (0, width - page.shape[1])), constant_values=1) for page in pages]
    )


def write(page: np.ndarray, text: str, top: int, left: int) -> None:
    """Write digits, dots and arrows at twice their size, as far as the page goes."""
    for letter in text:
        rows = [[int(row) >> bit & 1 for bit in (2, 1, 0)] for row in GLYPHS[letter]]
        glyph = 1 - np.kron(np.array(rows), np.ones((2, 2)))
        room = page[top : top + 10, left : left + 6]
        room[:] = glyph[: room.shape[0], : room.shape[1]]
        left += 8
