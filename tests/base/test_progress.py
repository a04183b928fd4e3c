"""The progress bar: on a terminal, in a notebook, in a log, and while something is compiled."""

from __future__ import annotations

import io
import itertools
import re
import sys
import time
from types import SimpleNamespace

import pytest

import tenfold as tn
from tenfold.base import progress
from tenfold.engines import xla


class Screen(io.StringIO):
    """A terminal: `shown` is what a reader sees of its lines."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True

    @property
    def shown(self) -> list[str]:
        return [re.split("\r\x1b\\[K", line)[-1] for line in self.getvalue().split("\n")]


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Draw at every step, by a clock that goes on a millisecond each time it is read."""
    readings = itertools.count()
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: next(readings) / 1000))
    monkeypatch.delenv("TENFOLD_PROGRESS", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "TICK", 60.0)
    monkeypatch.setattr(progress.Line, "every", 0.0)


def test_a_terminal_has_one_line_that_is_rewritten():
    screen = Screen()
    for i in (bar := tn.progress([1, 2, 3, 4], "training", file=screen)):
        bar.report(loss=tn.tensor(0.5) * i)
    assert screen.getvalue().count("\n") == 1
    assert re.fullmatch(r"training  ━{24}  100%  4/4  \d+/s  0:00  loss 2", screen.shown[0])
    assert " 50%  2/4" in screen.getvalue()


def test_speeds_are_written_without_exponents():
    log = io.StringIO()
    with tn.progress(total=9000, file=log) as bar:
        bar.advance(9000)
    assert re.search(r" \d{1,3}(,\d{3})+/s", log.getvalue())


def test_no_speed_is_told_where_the_clock_has_not_moved(monkeypatch):
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: 0.0))
    log = io.StringIO()
    with tn.progress(total=3, file=log) as bar:
        bar.advance(3)
    assert "3/3" in log.getvalue() and "/s" not in log.getvalue()


def test_a_terminal_without_unicode_has_a_bar_of_ascii():
    screen = Screen()
    screen.encoding = "ascii"
    list(tn.progress(range(2), file=screen))
    assert screen.getvalue().isascii()


def test_a_line_is_cut_to_the_width_of_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    screen = Screen()
    list(tn.progress(range(2), "x" * 100, file=screen))
    assert max(len(line) for line in screen.shown) == 39


def test_a_log_has_whole_lines_and_few():
    log = io.StringIO()
    for _ in (bar := tn.progress(range(1000), "training", file=log)):
        bar.report(loss=0.25)
    lines = log.getvalue().splitlines()
    assert len(lines) == 10 and lines[-1].startswith("training: 100% 1,000/1,000, ")
    assert "\r" not in log.getvalue() and "\x1b" not in log.getvalue()
    assert lines[4].startswith("training: 50% 500/1,000, ") and lines[4].endswith("left, loss 0.25")


def test_the_end_of_a_log_is_told_once():
    log = io.StringIO()
    list(tn.progress(range(8), "epoch", file=log))
    lines = log.getvalue().splitlines()
    assert len(lines) == 8 and "left" not in lines[-1]
    assert [line.split()[1] for line in lines[-2:]] == ["88%", "100%"]


def test_a_reported_tensor_is_read_only_when_it_is_drawn(monkeypatch):
    monkeypatch.setattr(progress.Line, "every", 1000.0)
    for file, drawings in (
        (Screen(), 1),
        (io.StringIO(), 10),
    ):  # a log has a line for each tenth
        read = []
        value = SimpleNamespace(item=lambda read=read: read.append(1) or 1.0)
        for _ in (bar := tn.progress(range(50), file=file)):
            bar.report(loss=value)
        assert len(read) == drawings


def test_a_log_has_a_line_after_a_silence(monkeypatch):
    log = io.StringIO()
    with tn.progress(description="building", file=log) as bar:
        bar.advance()
        monkeypatch.setattr(progress, "QUIET", 0.0)
        bar.advance()
        monkeypatch.setattr(progress, "QUIET", 30.0)
        bar.advance()
    assert [line.split(",")[0] for line in log.getvalue().splitlines()] == ["building: 2", "building: 3"]


def test_a_loop_that_waits_for_a_compiler_says_so(monkeypatch):
    monkeypatch.setattr(progress, "TICK", 0.01)
    monkeypatch.setattr(progress, "NOTED", 0.0)
    screen = Screen()
    with tn.progress(description="first step", total=2, file=screen) as bar, progress.compiling():
        end = time.monotonic() + 30
        while "compiling 0:0" not in screen.getvalue() and time.monotonic() < end:
            time.sleep(0.01)
        bar.advance()
    assert "first step" in screen.getvalue() and "compiling 0:0" in screen.getvalue()
    assert "compiling" not in screen.shown[0]


def test_xla_tells_that_it_compiles(monkeypatch):
    seen = []
    monkeypatch.setattr(xla, "compile", seeing(xla.compile, seen))
    monkeypatch.setenv("TENFOLD_CACHE_DIR", "")
    tn.compile(lambda x: x.cosh() * 3)(tn.ones(7, 3)).eval()
    assert seen and set(seen) == {1}


def seeing(compile, seen):
    def compiled(*arguments):
        seen.append(len(progress._compiling))
        return compile(*arguments)

    return compiled


def test_a_notebook_has_one_display_that_is_updated(monkeypatch):
    shown, updated = [], []

    def display(page, display_id):
        shown.append(page)
        return SimpleNamespace(update=updated.append)

    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(HTML=str, display=display))
    monkeypatch.setattr(progress.Cell, "every", 0.0)
    list(tn.progress(range(3), "<b>epoch</b>"))
    assert len(shown) == 1 and len(updated) == 3
    assert 'value="1.0000"' in updated[-1] and "3/3" in updated[-1]
    assert "&lt;b&gt;epoch" in updated[-1] and "<b>" not in updated[-1]


def test_items_without_a_length_are_counted():
    log = io.StringIO()
    assert list(tn.progress((i for i in range(3)), file=log)) == [0, 1, 2]
    assert re.fullmatch(r"progress: 3, \S+/s, 0:00\n", log.getvalue())


class Stream(tn.data.IterableDataset):
    def __iter__(self):
        return iter(range(4))


def test_a_loader_whose_data_set_has_no_length_is_counted():
    log = io.StringIO()
    assert len(list(tn.progress(tn.data.DataLoader(Stream(), 2), file=log))) == 2
    assert log.getvalue().startswith("progress: 2, ")


def test_a_block_in_which_nothing_was_to_do_leaves_nothing():
    log, screen = io.StringIO(), Screen()
    for file in (log, screen):
        with tn.progress(description="building", file=file):
            pass
    assert log.getvalue() == "" and screen.shown == [""]


def test_text_is_written_above_the_bar(capsys):
    screen = Screen()
    for i in (bar := tn.progress(range(2), file=screen)):
        bar.write(f"step {i}")
    assert capsys.readouterr().out == "step 0\nstep 1\n"


def test_it_can_be_switched_off(monkeypatch):
    monkeypatch.setenv("TENFOLD_PROGRESS", "off")
    screen = Screen()
    assert list(tn.progress(range(3), file=screen)) == [0, 1, 2]
    assert screen.getvalue() == ""


def test_an_error_in_the_loop_leaves_the_bar_where_it_was():
    screen = Screen()
    with pytest.raises(ZeroDivisionError):
        for i in tn.progress(range(4), file=screen):
            1 / (2 - i)
    assert screen.shown[0].split()[2] == "2/4"


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: tn.progress(total=-1), "cannot be reached"),
        (lambda: list(tn.progress(total=3)), "nothing to iterate over"),
        (lambda: len(tn.progress(iter([]))), "is not known"),
    ],
)
def test_wrong_uses_are_errors(call, told):
    with pytest.raises(tn.ArgumentError, match=told):
        call()
