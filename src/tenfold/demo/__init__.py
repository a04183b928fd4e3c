"""What `tenfold demo` does: a small program shown at every stage; a network trained to read digits, with its speed
recorded lazily and compiled; and the same program in a second process, which finds it compiled."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from tenfold import nn, no_grad, ones, randperm
from tenfold.demo import digits, picture
from tenfold.optim import AdamW
from tenfold.program import compile, show
from tenfold.random import manual_seed
from tenfold.runtime.evaluate import counting_compiles
from tenfold.tensor import Tensor

EPOCHS, BATCH = 30, 64


def run(console: Console, path: Path) -> None:
    """The whole demonstration; the picture it makes goes to `path`."""
    console.rule("a program at every stage")
    console.print(show(layer, ones(2, 3), ones(3, 3)), markup=False)
    console.rule("reading handwritten digits")
    _learn_digits(console, path)
    _second_start(console)


def layer(x: Tensor, w: Tensor) -> Tensor:
    """The program that is shown."""
    return (x @ w).tanh()


class Reader:
    """A network of two layers that learns to read digits."""

    def __init__(self) -> None:
        manual_seed(0)
        self.model = nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
        self.optimizer = AdamW(self.model.parameters(), lr=3e-3)

    def step(self, images: Tensor, labels: Tensor) -> Tensor:
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(images), labels)
        loss.backward()
        self.optimizer.step()
        return loss

    def read(self, images: Tensor) -> Tensor:
        with no_grad():
            return self.model(images).argmax(1)


def _learn_digits(console: Console, path: Path) -> None:
    train, test = digits.load()
    reader = Reader()
    step = compile(reader.step)
    losses = []
    start = time.perf_counter()
    with counting_compiles() as compiles:
        for _ in track(range(EPOCHS), "training", console=console, transient=True):
            order = randperm(len(train.labels))
            for batch in order.split(BATCH)[:-1]:
                losses.append(step(train.images[batch], train.labels[batch]))
        curve = [loss.item() for loss in losses]
        read = reader.read(test.images).numpy()
    seconds = time.perf_counter() - start
    labels = test.labels.numpy()
    console.print(
        f"read {(read == labels).mean():.1%} of {len(labels)} digits that it never saw, after {len(curve)} steps "
        f"in {seconds:.1f} s; XLA compiled {int(compiles)} programs"
    )
    wrong = (read != labels).nonzero()[0]
    captions = [f"{labels[each]}>{read[each]}" for each in wrong]
    misread = picture.grid(test.images.numpy()[wrong, 0], columns=8, captions=captions)
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.save(path, picture.stack(picture.curve(curve), misread))
    console.print(f"the loss, and the {len(wrong)} digits it misread: {path}")
    batch = train.images[:BATCH].eval(), train.labels[:BATCH].eval()
    lazy = Reader()
    table = Table("a training step", "first call", "calls per second after", box=None, pad_edge=False)
    table.add_row("recorded lazily", *_timed(lambda: lazy.step(*batch).item()))
    table.add_row("tenfold.compile", *_timed(lambda: step(*batch).item()))
    console.print(table)
