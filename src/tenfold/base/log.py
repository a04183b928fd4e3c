"""What happens inside, as it happens: `TENFOLD_LOG=trace,compile,cache,tiers` writes a line for each event to
standard error, with how long it took. Nothing is logged otherwise, and asking costs one look at a set."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator

from tenfold.base.errors import did_you_mean
from tenfold.base.warning import warn

TOPICS = {
    "trace": "functions that are recorded",
    "compile": "programs that XLA compiles",
    "cache": "programs looked up and stored on disk",
    "tiers": "where programs run, and why",
}
_began = time.perf_counter()


def chosen(text: str) -> frozenset[str]:
    """The topics that a setting names; "all" is every one. Of what is no topic a warning tells."""
    named = [each.strip() for each in text.split(",") if each.strip()]
    for each in named:
        if each not in TOPICS and each != "all":
            hint = did_you_mean(each, list(TOPICS)) or f"the topics are {', '.join(TOPICS)}, all"
            warn(f"TENFOLD_LOG: there is no topic {each!r}; {hint}")
    return frozenset(TOPICS if "all" in named else set(named) & set(TOPICS))


topics = chosen(os.environ.get("TENFOLD_LOG", ""))


def write(topic: str, message: str, seconds: float | None = None) -> None:
    """Write one line, if its topic was asked for: since when, the topic, how long it took, what happened."""
    if topic in topics:
        took = "" if seconds is None else _text(seconds)
        since = time.perf_counter() - _began
        print(f"tenfold {since:9.3f} s  {topic:<8}{took:>10}  {message}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def timed(topic: str, message: str) -> Iterator[None]:
    """A block that is one event; not one if it raises."""
    start = time.perf_counter()
    yield
    write(topic, message, time.perf_counter() - start)


def _text(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.1f} ms"
