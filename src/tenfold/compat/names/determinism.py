"""Who asks for results that are the same bits whenever a program runs on a GPU: all such wishes together."""

from __future__ import annotations

from tenfold.runtime.compile import set_deterministic

_asked: set[str] = set()


def ask(who: str, wanted: bool) -> None:
    (_asked.add if wanted else _asked.discard)(who)
    set_deterministic(bool(_asked))
