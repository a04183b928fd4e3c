"""The documents: which there are, what is generated in them, and whether every relative link and anchor leads
somewhere. `python -m tools.docs` checks the links; the site itself is made by MkDocs (`make docs`, with
`tools/site.py`)."""

from __future__ import annotations

import argparse
import importlib
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parent.parent
GENERATED = re.compile(r"^<!-- generated: ([\w.]+) -->$", re.MULTILINE)


class Document:
    """One Markdown file, parsed: its title, and its headings' anchors."""

    def __init__(self, path: Path, root: Path):
        self.path = path
        self.name = path.relative_to(root).as_posix()
        self.tokens = parser().parse(with_generated(path.read_text(encoding="utf-8")))
        self.anchors: set[str] = set()
        for heading, text in zip(self.tokens, self.tokens[1:]):
            if heading.type == "heading_open":
                self.new_anchor(plain_text(text))

    def new_anchor(self, heading: str) -> str:
        """GitHub's anchor for a heading, numbered from the second of the same name on."""
        anchor, repeats = slug(heading), 0
        while anchor in self.anchors:
            repeats += 1
            anchor = f"{slug(heading)}-{repeats}"
        self.anchors.add(anchor)
        return anchor

    def links(self) -> Iterator[tuple[str, int]]:
        """The address of each link or image, and its line."""
        for block in self.tokens:
            line = block.map[0] + 1 if block.map else 1
            for token in block.children or ():
                if token.type in ("softbreak", "hardbreak"):
                    line += 1
                elif token.type in ("link_open", "image"):
                    yield str(token.attrGet("href" if token.type == "link_open" else "src")), line


def slug(heading: str, separator: str = "-") -> str:
    """A heading as an anchor, in GitHub's manner. MkDocs calls this too: links mean the same there."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", separator)


def with_generated(text: str) -> str:
    """A document with what its marks `<!-- generated: MODULE.FUNCTION -->` stand for."""

    def made(mark: re.Match[str]) -> str:
        module, _, function = mark[1].rpartition(".")
        return str(getattr(importlib.import_module(module), function)())

    return GENERATED.sub(made, text)


def parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


def plain_text(inline: Token) -> str:
    """The words of a heading, without its markup."""
    return "".join(child.content for child in inline.children or ())


def documents(root: Path = ROOT) -> list[Path]:
    """The project's documents: those of its root folder, then docs/."""
    return [*sorted(root.glob("*.md")), *sorted((root / "docs").rglob("*.md"))]


def broken_links(root: Path = ROOT) -> list[str]:
    """A message for each relative link of the documents that leads nowhere."""
    root = root.resolve()
    parsed = [Document(path, root) for path in documents(root)]
    by_path = {document.path.resolve(): document for document in parsed}
    return [message for document in parsed for message in _broken(document, by_path, root)]


def _broken(document: Document, by_path: dict[Path, Document], root: Path) -> Iterator[str]:
    for link, line in document.links():
        address = urlsplit(link)
        if address.scheme or address.netloc:
            continue
        own = document.path.resolve()
        target = (own.parent / unquote(address.path)).resolve() if address.path else own
        shown = f"{document.name}:{line}: {unquote(address.geturl())}"
        if not target.exists():
            yield f"{shown}: there is no {os.path.relpath(target, root)}"
        elif address.fragment and target not in by_path:
            yield f"{shown}: an anchor in something that is not a document"
        elif address.fragment and unquote(address.fragment) not in by_path[target].anchors:
            yield f"{shown}: {by_path[target].name} has no such heading"


def main(arguments: list[str] | None = None) -> int:
    options = argparse.ArgumentParser(prog="python -m tools.docs", description=__doc__)
    options.add_argument("--root", type=Path, default=ROOT, help="the project whose documents to check")
    chosen = options.parse_args(arguments)
    broken = broken_links(chosen.root)
    for message in broken:
        print(message)
    print(f"docs: {len(documents(chosen.root))} documents, {len(broken) or 'no'} broken links")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
