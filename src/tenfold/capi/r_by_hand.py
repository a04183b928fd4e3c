"""What the R package's own sources in bindings/r define: the generated operators leave that to them."""

from __future__ import annotations

import functools
import re
from pathlib import Path

__all__ = ["SOURCES", "changed_signatures", "functionals"]

SOURCES = Path(__file__).resolve().parents[3] / "bindings" / "r"
DEFINED = re.compile(r"^torch_(\w+) <- function\(([^()]*)\)", re.MULTILINE)


@functools.cache
def changed_signatures() -> dict[str, str]:
    """Operators that R calls in another way than their schemas have it: their arguments in R, by name."""
    text = (SOURCES / "R" / "changed_operators.R").read_text(encoding="utf-8")
    return {name: " ".join(arguments.split()) for name, arguments in DEFINED.findall(text)}


@functools.cache
def functionals() -> frozenset[str]:
    """The functions of neural networks that are written by hand: NAME of each nnf_NAME."""
    texts = [path.read_text(encoding="utf-8") for path in sorted((SOURCES / "R").glob("*.R"))]
    return frozenset(name for text in texts for name in re.findall(r"^nnf_(\w+) <-", text, re.MULTILINE))
