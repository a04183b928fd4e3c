"""The page in docs/explain.md: what `tenfold explain` writes about an example, when the site is built."""

from __future__ import annotations

from tools.docs import ROOT

PAGE = ROOT / "build" / "explained.html"


def frame() -> str:
    """The page inside of the document, and a link to it."""
    if not PAGE.exists():
        return "*These documents were built without the page of an example: `make docs` makes it.*"
    return (
        f'<iframe class="explained" src="{PAGE.name}" title="A training step at every stage" loading="lazy">'
        f'</iframe>\n\nThis is the page of examples/python/xor.py: <a href="{PAGE.name}">open it</a> to see '
        "more stages side by side."
    )
