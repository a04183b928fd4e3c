"""What `tenfold demo` does: a small program shown at every stage; a network trained to read digits; its speed
recorded lazily and compiled; and the same step in a second process, which finds it compiled."""

from __future__ import annotations

import builtins
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from tenfold import nn, no_grad, ones
from tenfold.base.errors import ArgumentError
from tenfold.base.progress import progress
from tenfold.command.demo import digits, picture
from tenfold.compiler import compile, show
from tenfold.data import DataLoader, TensorDataset
from tenfold.optim import AdamW
from tenfold.tensor import Tensor
from tenfold.tensor.generators import manual_seed

EPOCHS, BATCH = 30, 64
PROGRAM = """\
def layer(x, w):  # layer.py
    return (x @ w).tanh()
"""
NEXT = (
    ("tenfold explain FILE.py --open", "every stage of your program side by side, in the browser"),
    ("tenfold run --as-torch train.py", "run a program that was written for PyTorch, as it is"),
    ("tenfold ops softmax", "look an operator up: its schema, its lowering, the engines that run it"),
)


def run(console: Console, path: Path) -> None:
    """The whole demonstration; the picture it makes goes to `path`."""
    picture.require()
    try:  # before the work, not after it
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    except OSError as error:
        raise ArgumentError(
            f"the picture cannot be written to {path}: {error.strerror}",
            help="say where with --picture FILE.png",
        ) from None
    console.rule("a program at every stage")
    console.print(PROGRAM, markup=False)
    console.print(show(shown_program(), ones(2, 3), ones(3, 3)), markup=False)
    console.rule("reading handwritten digits")
    _learn_digits(console, path)
    console.rule("how fast")
    _time_steps(console)
    _first_loss(console)
    console.rule("what to try next")
    for command, what in NEXT:
        console.print(f"  [bold]{command}[/bold]\n      {what}", highlight=False)


def shown_program() -> Callable[[Tensor, Tensor], Tensor]:
    """The function in PROGRAM, whose lines the stages name as those of a user's file."""
    names: dict[str, Any] = {}
    exec(builtins.compile(PROGRAM, "layer.py", "exec"), names)
    return names["layer"]


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
    batches: DataLoader[Any] = DataLoader(
        TensorDataset(*train), batch_size=BATCH, shuffle=True, drop_last=True
    )
    start = time.perf_counter()
    losses: list[Tensor] = []
    for _ in (bar := progress(range(EPOCHS), "training")):
        losses += [step(images, labels) for images, labels in batches]
        bar.report(loss=losses[-1])
    read = reader.read(test.images).numpy()
    seconds = time.perf_counter() - start
    meant = test.labels.numpy()
    console.print(
        f"read {(read == meant).mean():.1%} of {len(meant)} digits it had never seen, after {len(losses)} "
        f"steps in {seconds:.1f} s, compiling included"
    )
    wrong = (read != meant).nonzero()[0]
    captions = [f"{meant[each]}, read {read[each]}" for each in wrong]
    picture.learning(path, [loss.item() for loss in losses], test.images.numpy()[wrong, 0], captions)
    console.print(f"its loss, and the {len(wrong)} digits it misread: {path}")


def _time_steps(console: Console) -> None:
    train, _ = digits.load()
    batch = train.images[:BATCH].eval(), train.labels[:BATCH].eval()
    for how, step in (("recorded lazily", Reader().step), ("tenfold.compile", compile(Reader().step))):
        console.print(f"{how}: {1 / _median_time(step, batch):,.0f} training steps a second")


def _median_time(step: Callable[..., Tensor], batch: tuple[Tensor, ...], repeats: int = 200) -> float:
    for _ in range(3):  # the first step makes the optimizer's state: that is another program than the rest
        step(*batch).item()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        step(*batch).item()
        times.append(time.perf_counter() - start)
    return sorted(times)[repeats // 2]


START = """
import time
start = time.perf_counter()
from tenfold.command.demo import BATCH, Reader, digits
train, _ = digits.load()
Reader().step(train.images[:BATCH], train.labels[:BATCH]).item()
print(time.perf_counter() - start)
"""


def _first_loss(console: Console) -> None:
    """The same step in new processes: the first runs at once, without a compiler; the others have it compiled
    first, by XLA, and then find it on disk."""
    with tempfile.TemporaryDirectory() as folder:
        seconds = []
        for tier in ("", "xla", "xla"):
            done = subprocess.run(
                [sys.executable, "-c", START],
                env={**os.environ, "TENFOLD_CACHE_DIR": folder, "TENFOLD_TIER": tier},
                capture_output=True,
                text=True,
                check=True,
            )
            seconds.append(float(done.stdout))
    at_once, compiled, found = seconds
    console.print(
        f"a new process, import to first loss: {at_once:.2f} s; by XLA {compiled:.2f} s compiling, "
        f"{found:.2f} s when the program is on disk"
    )
