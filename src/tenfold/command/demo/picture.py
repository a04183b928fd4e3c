"""Pictures of what was learnt, by matplotlib, which the extra `demo` installs: the loss over the steps, and
small images with captions. Images are grey: arrays from 0 (black) to 1 (white)."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np

from tenfold.base.errors import MissingEngine
from tenfold.base.package import install_command

INK, LINE, SOFT, GRID = "#1c2130", "#4451d8", "#5b6478", "#dfe2ea"
MARGIN = 0.16  # inches around a picture
COLUMNS = 8  # images in a row
PAGE = 8.0  # inches, the width of a picture


def require() -> None:
    """Say at once what is missing, before any work is done for a picture."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingEngine(
            "pictures need matplotlib, which is not installed", help=install_command("demo")
        ) from None


def learning(
    path: str | PathLike[str],
    losses: Sequence[float],
    images: np.ndarray,
    captions: Sequence[str],
    title: str = "What it misread",
) -> None:
    """The loss at each step with its running mean, above images of shape (n, h, w), each with a caption."""
    rows = max(1, -(-len(images) // COLUMNS))
    figure = _figure(3.4 + 1.25 * rows)
    upper, lower = figure.subfigures(2, 1, height_ratios=[3.2, 0.45 + 1.25 * rows])
    axes = upper.subplots()
    steps = np.arange(1, len(losses) + 1)
    axes.plot(steps, losses, color=LINE, alpha=0.28, linewidth=1, label="each step")
    width = max(1, len(losses) // 30)
    mean = np.convolve(losses, np.ones(width) / width, mode="valid")
    axes.plot(steps[width - 1 :], mean, color=LINE, linewidth=2, label=f"mean of {width} steps")
    axes.set(xlim=(1, max(len(losses), 2)))
    axes.set_xlabel("step", fontsize=9.5, color=SOFT)
    axes.set_title("Loss", fontsize=11, color=INK, loc="left", pad=10)
    if min(losses) > 0 and max(losses) > 20 * min(losses):
        axes.set_yscale("log")
    _plain(axes)
    axes.legend(frameon=False, fontsize=9, loc="upper right", labelcolor=SOFT)
    lower.suptitle(title if len(images) else "It misread nothing", fontsize=11, color=INK, x=0.012, ha="left")
    _show(lower, images, captions, rows)
    _save(figure, path)


def gallery(path: str | PathLike[str], images: np.ndarray, columns: int = COLUMNS) -> None:
    """Images of shape (n, h, w) in rows."""
    rows = max(1, -(-len(images) // columns))
    figure = _figure(PAGE * rows / columns)
    _show(figure, images, (), rows, columns)
    _save(figure, path)


def _figure(height: float) -> Any:
    require()
    from matplotlib.figure import Figure  # and not pyplot, which would look for a screen
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    margins = ConstrainedLayoutEngine(w_pad=MARGIN / 2, h_pad=MARGIN / 2, wspace=0, hspace=0)
    return Figure(figsize=(PAGE, height), dpi=120, facecolor="white", layout=margins)


def _show(
    figure: Any, images: np.ndarray, captions: Sequence[str], rows: int, columns: int = COLUMNS
) -> None:
    places = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in places:
        axes.set_axis_off()
    for axes, image in zip(places, images, strict=False):
        axes.imshow(image, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    for axes, caption in zip(places, captions, strict=False):
        axes.set_title(caption, fontsize=9, color=INK, pad=3)


def _plain(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GRID)
    axes.tick_params(which="both", colors=SOFT, labelsize=9, length=0)
    axes.grid(color=GRID, linewidth=0.6)


def _save(figure: Any, path: str | PathLike[str]) -> None:
    figure.savefig(path, format="png", metadata={"Software": "Tenfold"})
