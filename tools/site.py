"""MkDocs' hooks: README and the other documents of the root become pages, links out of docs/ become text,
marks are filled in, pictures of benchmarks are drawn, the page of an example is put in, and the references
are written: of ops from the table, of layers and optimizers from docstrings. Nothing of it is kept in the
repository.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tools import classes, explained, performance, reference
from tools.docs import ROOT, with_generated

# README.md is the front page; a link `[text](address)` of Markdown, code aside.
FRONT = "index.md"
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)")


def on_config(config: Any) -> Any:
    """Put documents that the navigation does not name at its end, so that none is lost."""
    listed = set(_paths(config.nav))
    others = sorted(path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md"))
    more = [each for each in others if each not in listed]
    if more:
        config.nav.append({"More": more})
    return config


def _paths(nav: Any) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    return [path for each in (nav.values() if isinstance(nav, dict) else nav) for path in _paths(each)]


def on_files(files: Any, config: Any) -> Any:
    """Add what does not lie in docs/: the root's documents, and the op reference."""
    from mkdocs.structure.files import File

    for path in sorted(ROOT.glob("*.md")):
        name = FRONT if path.name == "README.md" else path.name
        files.append(File.generated(config, name, content=path.read_text(encoding="utf-8")))
    for path in performance.pictures(ROOT / "build" / performance.FOLDER):
        name = f"{performance.FOLDER}/{path.name}"
        files.append(File.generated(config, name, content=path.read_bytes()))
    if explained.PAGE.exists():
        files.append(File.generated(config, explained.PAGE.name, content=explained.PAGE.read_bytes()))
    for name, text in reference.pages().items():
        files.append(File.generated(config, f"ops/{name}.md", content=text))
    for name, text in classes.pages().items():
        files.append(File.generated(config, f"nn/{name}.md", content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Fill in what is generated, and turn links as GitHub reads them into the site's."""
    source = page.file.src_uri
    if source.startswith(("ops/", "nn/")):
        return markdown
    if source == FRONT:
        page.meta["hide"] = ["navigation"]  # it is the only page of its tab
    root_document = (ROOT / ("README.md" if source == FRONT else source)).exists()
    folder = ROOT if root_document else (ROOT / "docs" / source).parent
    here = Path() if root_document else Path(source).parent

    def turned(link: re.Match[str]) -> str:
        text, address = link.groups()
        if re.match(r"[a-z]+:|#", address):
            return link[0]
        path, _, anchor = address.partition("#")
        target = (folder / path).resolve()
        inside = _page(target)
        if inside is None:
            return text  # a file of the repository, which the site does not have
        up = Path(*[".."] * len(here.parts)) / inside
        return f"[{text}]({up.as_posix()}{'#' + anchor if anchor else ''})"

    parts = re.split(r"(^```.*?^```$)", with_generated(markdown), flags=re.DOTALL | re.MULTILINE)
    return "".join(part if part.startswith("```") else LINK.sub(turned, part) for part in parts)


def _page(target: Path) -> Path | None:
    """The page of a document, by its place in the site; None for any other file."""
    if target.suffix != ".md" or not target.is_relative_to(ROOT):
        return None
    if target.parent == ROOT:
        return Path(FRONT if target.name == "README.md" else target.name)
    return target.relative_to(ROOT / "docs") if target.is_relative_to(ROOT / "docs") else None
