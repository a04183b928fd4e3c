"""A progress bar for loops that train, compile or build: a line that a terminal rewrites, a display that a
notebook updates, or lines now and then in a log. It says when XLA compiles, so a long first step explains
itself. `TENFOLD_PROGRESS=off` draws nothing, `TENFOLD_PROGRESS=plain` always writes lines.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sized
from typing import Any, Generic, Protocol, TextIO, TypeVar

from tenfold.base.errors import ArgumentError
from tenfold.base.forking import forkable
from tenfold.base.late import on_first_use

with on_first_use(__name__):
    import shutil


T = TypeVar("T")
REDRAW = 0.1  # seconds between two drawings
TICK = 0.25  # seconds after which a line is drawn again although nothing advanced
QUIET = 30.0  # seconds after which a log gets a line, and one for each tenth before that
NOTED = 0.5  # seconds after which a compilation is mentioned
WIDTH = 24  # characters of the bar itself
_compiling: dict[int, float] = {}  # by thread, since when
_drawing = forkable(threading.RLock())


@contextlib.contextmanager
def compiling() -> Iterator[None]:
    """A block in which this thread compiles a program."""
    thread = threading.get_ident()
    _compiling[thread] = time.monotonic()
    try:
        yield
    finally:
        del _compiling[thread]


class Surface(Protocol):
    """Where a bar is drawn."""

    every: float = REDRAW  # seconds between two drawings

    def due(self, bar: Progress[Any], seconds: float) -> bool:
        """Whether the bar is to be drawn, this many seconds after the last drawing."""
        return seconds >= self.every

    def draw(self, bar: Progress[Any], ended: bool) -> None: ...

    def clear(self) -> None:
        """Make room for text that is not the bar's."""


class Progress(Generic[T]):
    """`for batch in tenfold.progress(loader, "epoch 1"):` draws how far the loop is, and how fast.

    `bar.report(loss=loss)` shows values beside it; a tensor is read only when it is drawn. Without items it
    is a block, `with tenfold.progress(description="building", total=3) as bar:`, that calls `bar.advance()`.
    """

    def __init__(
        self,
        items: Iterable[T] | None = None,
        description: str = "",
        *,
        total: int | None = None,
        file: TextIO | None = None,
    ):
        if total is not None and total < 0:
            raise ArgumentError(f"progress: a total of {total} steps cannot be reached")
        self.items, self.description = items, description
        self.total = _length(items) if total is None else total
        self.done = 0
        self.values: dict[str, str] = {}
        self._reported: dict[str, Any] = {}
        self._surface = surface(sys.stderr if file is None else file)
        self._ended = threading.Event()
        self._began = self._drawn = time.monotonic()

    def __iter__(self) -> Iterator[T]:
        if self.items is None:
            raise ArgumentError("progress: there is nothing to iterate over", help="give it the loop's items")
        with self:
            for item in self.items:
                yield item
                self.advance()

    def __len__(self) -> int:
        if self.total is None:
            raise ArgumentError("progress: how many items there are is not known")
        return self.total

    def __enter__(self) -> Progress[T]:
        self._began = self._drawn = time.monotonic()
        if self._surface is not None:
            threading.Thread(target=self._tick, name="tenfold-progress", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._surface is not None and not self._ended.is_set():
            self._ended.set()
            if self.done or self.total is not None:
                self._draw(ended=True)
            else:
                self._surface.clear()  # there was nothing to do

    def advance(self, steps: int = 1, description: str | None = None) -> None:
        """Count steps that are done."""
        self.done += steps
        self.description = self.description if description is None else description
        if self._surface is not None and self._surface.due(self, time.monotonic() - self._drawn):
            self._draw()

    def report(self, **values: Any) -> None:
        """Show values beside the bar. Tensors are read when it is next drawn, not at each call."""
        self._reported.update(values)

    def write(self, text: str, file: TextIO | None = None) -> None:
        """Print a line above the bar."""
        with _drawing:
            if self._surface is not None:
                self._surface.clear()
            print(text, file=file or sys.stdout, flush=True)
            self._drawn = 0.0

    def _draw(self, ended: bool = False) -> None:
        """Draw, in the thread of the loop: values that were reported are read."""
        self.values = {name: _number(value) for name, value in self._reported.items()}
        with _drawing:
            assert self._surface is not None
            self._surface.draw(self, ended)
            self._drawn = time.monotonic()

    def _tick(self) -> None:
        """Draw while the loop waits, for a compiler say. Nothing is read here."""
        assert self._surface is not None
        while not self._ended.wait(TICK):
            with _drawing:
                seconds = time.monotonic() - self._drawn
                if not self._ended.is_set() and seconds >= TICK and self._surface.due(self, seconds):
                    self._surface.draw(self, False)
                    self._drawn = time.monotonic()

    @property
    def fraction(self) -> float | None:
        """How much is done, from 0 to 1; None where the total is not known."""
        return None if self.total is None else min(self.done / self.total, 1.0) if self.total else 1.0

    def words(self, ended: bool) -> list[str]:
        """What there is to say: counts, speed, time, values, and whether something is compiled."""
        seconds = time.monotonic() - self._began
        said = [f"{self.done:,}" if self.total is None else f"{self.done:,}/{self.total:,}"]
        if self.done and seconds > 0:
            rate = self.done / seconds
            shown = f"{rate:,.0f}" if rate >= 1000 else f"{rate:.3g}"
            said.append(f"{shown}/s" if rate >= 1 else f"{1 / rate:.3g} s each")
        if ended or not self.done or self.total is None:
            said.append(clock(seconds))
        else:
            said.append(f"{clock(seconds / self.done * max(self.total - self.done, 0))} left")
        said += [f"{name} {value}" for name, value in self.values.items()]
        since = min(list(_compiling.values()), default=None)
        if since is not None and not ended and time.monotonic() - since >= NOTED:
            said.append(f"compiling {clock(time.monotonic() - since)}")
        return said


progress = Progress


class Line(Surface):
    """A terminal's line, which is rewritten."""

    def __init__(self, file: TextIO):
        self.file = file
        try:
            "━╸─".encode(file.encoding or "ascii")
            self.marks = "━╸─"
        except UnicodeEncodeError:
            self.marks = "=>-"

    def draw(self, bar: Progress[Any], ended: bool) -> None:
        said = [bar.description] if bar.description else []
        if bar.fraction is not None:
            said += [self._bar(bar.fraction), f"{bar.fraction:4.0%}"]
        line = "  ".join([*said, *bar.words(ended)])
        width = shutil.get_terminal_size().columns - 1
        self.file.write(f"\r\x1b[K{line[:width]}" + ("\n" if ended else ""))
        self.file.flush()

    def _bar(self, fraction: float) -> str:
        full, tip, rest = list(self.marks)
        count = int(fraction * WIDTH)
        return full * count + (tip + rest * (WIDTH - count - 1) if count < WIDTH else "")

    def clear(self) -> None:
        self.file.write("\r\x1b[K")
        self.file.flush()


class Log(Surface):
    """Whole lines, for what is read later: one for each tenth, and one after half a minute's silence. The
    last tenth's is the line of the end."""

    def __init__(self, file: TextIO):
        self.file = file
        self.tenth, self.said = 0, time.monotonic()

    def due(self, bar: Progress[Any], seconds: float) -> bool:
        if time.monotonic() - self.said >= QUIET:
            return True
        return self._tenths(bar) > self.tenth and bar.fraction != 1

    def _tenths(self, bar: Progress[Any]) -> int:
        return min(int((bar.fraction or 0) * 10), 9)

    def draw(self, bar: Progress[Any], ended: bool) -> None:
        self.tenth, self.said = self._tenths(bar), time.monotonic()
        share = "" if bar.fraction is None else f"{bar.fraction:.0%} "
        self.file.write(f"{bar.description or 'progress'}: {share}{', '.join(bar.words(ended))}\n")
        self.file.flush()

    def clear(self) -> None:
        pass


class Cell(Surface):
    """A notebook's output, which is replaced."""

    def __init__(self) -> None:
        self.handle: Any = None

    def draw(self, bar: Progress[Any], ended: bool) -> None:
        notebook = importlib.import_module("IPython.display")
        page = notebook.HTML(self._html(bar, ended))
        if self.handle is None:
            self.handle = notebook.display(page, display_id=True)
        else:
            self.handle.update(page)

    def _html(self, bar: Progress[Any], ended: bool) -> str:
        from html import escape

        share = "" if bar.fraction is None else f' value="{bar.fraction:.4f}"'
        if bar.fraction is None and ended:
            share = ' value="1"'
        said = escape("  ·  ".join(bar.words(ended)))
        name = escape(bar.description)
        style = "width:14em;vertical-align:middle"
        meter = f'<progress max="1"{share} aria-label="{name}" style="{style}"></progress>'
        return f'<div style="font:13px/1.6 system-ui,sans-serif">{name} {meter} {said}</div>'

    def clear(self) -> None:
        pass


def surface(file: TextIO) -> Surface | None:
    """What suits where the output goes: a notebook, a terminal, or a file."""
    wanted = os.environ.get("TENFOLD_PROGRESS", "")
    if wanted == "off":
        return None
    if wanted != "plain":
        if file is sys.stderr and _in_notebook():
            return Cell()
        if file.isatty() and os.environ.get("TERM") != "dumb":
            return Line(file)
    return Log(file)


def _in_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def _length(items: Any) -> int | None:
    """How many items there are; None where that is not known, as of a loader of an iterable data set."""
    try:
        return len(items) if isinstance(items, Sized) else None
    except (TypeError, NotImplementedError, ArgumentError):
        return None


def _number(value: Any) -> str:
    if isinstance(value, str):
        return value
    value = value.item() if hasattr(value, "item") else value
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def clock(seconds: float) -> str:
    """A length of time: 0:07, 12:34 or 1:02:03."""
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
