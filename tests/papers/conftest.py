"""What tests of the papers share."""

from __future__ import annotations


def lines(text: str) -> list[str]:
    """The lines of a listing that are not empty."""
    return [each for each in text.splitlines() if each.strip()]
