"""Commands of a command: each has a summary, an example and a function that runs it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

# Adds a command: its name, the function that runs it, a summary, and an example for its --help.
Command = Callable[[str, Any, str, str], argparse.ArgumentParser]


def adder(parser: argparse.ArgumentParser, metavar: str) -> Command:
    """What adds commands to a parser, one of which has to be given."""
    commands = parser.add_subparsers(required=True, metavar=metavar)

    def add(name: str, function: Any, summary: str, example: str) -> argparse.ArgumentParser:
        added = commands.add_parser(
            name,
            help=summary,
            description=summary,
            epilog=f"example:\n  {example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        added.set_defaults(command=function)
        return added

    return add
