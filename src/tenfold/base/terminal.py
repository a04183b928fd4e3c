"""The console that commands print to."""

from __future__ import annotations

from typing import NoReturn

from rich.console import Console


class Terminal(Console):
    """A console that leaves it to the command's end to deal with a reader that went away."""

    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError


console = Terminal(highlight=False, soft_wrap=True)
