"""Builds the documents as HTML pages and checks that every relative link and anchor in them leads somewhere.
`python -m tools.docs --out build/docs` writes one page for each document, README.md as index.html."""

from __future__ import annotations

import argparse
import html
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

PAGE = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
  :root {{ color-scheme: light dark; }}
  body {{ font: 17px/1.55 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }}
  nav {{ font-size: 0.9rem; margin-bottom: 2rem; }}
  nav a {{ margin-right: 1rem; }}
  pre, code {{ font: 0.85rem/1.45 ui-monospace, monospace; }}
  pre {{ padding: 0.8rem 1rem; overflow-x: auto; border: 1px solid #8886; border-radius: 6px; }}
  table {{ border-collapse: collapse; display: block; overflow-x: auto; }}
  th, td {{ border: 1px solid #8886; padding: 0.3rem 0.6rem; text-align: left; vertical-align: top; }}
  img {{ max-width: 100%; }}
</style>
<nav>{navigation}</nav>
<main>
{body}</main>
</html>
"""


class Document:
    """One Markdown file, parsed: its page's name, its title, and its headings' anchors."""

    def __init__(self, path: Path, root: Path):
        self.path = path
        name = path.relative_to(root)
        self.name = name.as_posix()
        inside = name.relative_to("docs") if name.parts[0] == "docs" else name
        self.page = Path("index.html") if self.name == "README.md" else inside.with_suffix(".html")
        self.tokens = parser().parse(with_generated(path.read_text(encoding="utf-8")))
        self.anchors: set[str] = set()
        self.title = inside.stem
        for heading, text in zip(self.tokens, self.tokens[1:]):
            if heading.type == "heading_open":
                if not self.anchors:
                    self.title = plain_text(text)
                heading.attrSet("id", self.new_anchor(plain_text(text)))

    def new_anchor(self, heading: str) -> str:
        """GitHub's anchor for a heading, numbered from the second of the same name on."""
        slug = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        anchor, repeats = slug, 0
        while anchor in self.anchors:
            repeats += 1
            anchor = f"{slug}-{repeats}"
        self.anchors.add(anchor)
        return anchor

    def links(self) -> Iterator[tuple[Token, str, int]]:
        """Each link or image, the attribute that holds its address, and its line."""
        for block in self.tokens:
            line = block.map[0] + 1 if block.map else 1
            for token in block.children or ():
                if token.type in ("softbreak", "hardbreak"):
                    line += 1
                elif token.type in ("link_open", "image"):
                    yield token, "href" if token.type == "link_open" else "src", line


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


def resolve_links(root: Path, out: Path, parsed: list[Document]) -> Iterator[str]:
    """Points every relative link at what it means; yields a message for each that leads nowhere."""
    by_path = {document.path.resolve(): document for document in parsed}
    for document in parsed:
        page_folder = (out / document.page).parent
        for token, attribute, line in document.links():
            address = urlsplit(str(token.attrGet(attribute)))
            if address.scheme or address.netloc:
                continue
            target = (
                (document.path.parent / unquote(address.path)).resolve()
                if address.path
                else document.path.resolve()
            )
            shown = unquote(address.geturl())
            if not target.exists():
                yield f"{document.name}:{line}: {shown}: there is no {os.path.relpath(target, root)}"
            elif address.fragment and target not in by_path:
                yield f"{document.name}:{line}: {shown}: an anchor in something that is not a document"
            elif address.fragment and unquote(address.fragment) not in by_path[target].anchors:
                yield f"{document.name}:{line}: {shown}: {by_path[target].name} has no such heading"
            else:
                built = out / by_path[target].page if target in by_path else target
                fragment = f"#{address.fragment}" if address.fragment else ""
                token.attrSet(attribute, Path(os.path.relpath(built, page_folder)).as_posix() + fragment)


def build(root: Path, out: Path) -> list[str]:
    """Writes the pages and returns what is wrong with the links."""
    root, out = root.resolve(), out.resolve()
    parsed = [Document(path, root) for path in documents(root)]
    broken = list(resolve_links(root, out, parsed))
    renderer = parser()
    pages: dict[Path, str] = {}
    for document in parsed:
        if document.page in pages:
            broken.append(f"{document.name}: makes the page {document.page}, as {pages[document.page]} does")
        pages[document.page] = document.name
        page = out / document.page
        page.parent.mkdir(parents=True, exist_ok=True)
        navigation = "\n".join(
            f'<a href="{os.path.relpath(out / other.page, page.parent)}">{html.escape(other.title)}</a>'
            for other in parsed
        )
        body = renderer.renderer.render(document.tokens, renderer.options, {})
        text = PAGE.format(title=html.escape(document.title), navigation=navigation, body=body)
        page.write_text(text, encoding="utf-8")
    return broken


def main(arguments: list[str] | None = None) -> int:
    options = argparse.ArgumentParser(prog="python -m tools.docs", description=__doc__)
    options.add_argument("--out", type=Path, default=ROOT / "build" / "docs", help="the folder for the pages")
    options.add_argument("--root", type=Path, default=ROOT, help="the project whose documents to build")
    chosen = options.parse_args(arguments)
    broken = build(chosen.root, chosen.out)
    for message in broken:
        print(message)
    print(f"docs: {len(documents(chosen.root))} pages in {chosen.out}, {len(broken) or 'no'} broken links")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
