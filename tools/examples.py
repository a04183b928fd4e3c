"""Runs the Python blocks of a document, in order and in one namespace, and compares what each prints with the
```text block that follows it; and looks up what a document quotes from the sources, a block under the comment
`not run: as it stands in FILE`. `python -m tools.examples README.md` says where they differ."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.docs import parser

ROOT = Path(__file__).parent.parent
QUOTED = re.compile(r"<!-- not run: as it stands in (\S+) -->")


@dataclass(frozen=True)
class Example:
    """A block of code and, where the document shows one, its output."""

    path: Path
    line: int  # of the code's first line, counted from 1
    code: str
    output: str | None


class UncheckedOutput(ValueError):
    """A ```text block that no code comes before: in a document, text is what a program printed."""


def examples(path: Path) -> Iterator[Example]:
    pending: Example | None = None
    for token in parser().parse(path.read_text(encoding="utf-8")):
        if token.type != "fence" or token.map is None:
            continue
        language, line = token.info.strip(), token.map[0] + 2
        if language == "text":
            if pending is None:
                raise UncheckedOutput(f"{path.name}:{line - 1}: output without a Python block before it")
            yield Example(pending.path, pending.line, pending.code, token.content)
            pending = None
        else:
            if pending:
                yield pending
            pending = Example(path, line, token.content, None) if language == "python" else None
    if pending:
        yield pending


def run(example: Example, namespace: dict[str, object]) -> str:
    """What the block prints. Its lines are the document's own, so an error points into the document. An error
    prints as Python would print its last lines, but only where the document shows an output to compare."""
    code = compile("\n" * (example.line - 1) + example.code, str(example.path), "exec")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            exec(code, namespace)
        except Exception as error:
            if example.output is None:
                raise
            print("".join(traceback.format_exception_only(error)), end="")
    return printed.getvalue()


def differences(path: Path) -> Iterator[str]:
    """A message for each block that prints something else than the document says; `...` matches anything."""
    namespace: dict[str, object] = {"__name__": "__main__", "__file__": str(path)}
    checker = doctest.OutputChecker()
    for example in examples(path):
        printed = run(example, namespace)
        if example.output is not None and not checker.check_output(example.output, printed, doctest.ELLIPSIS):
            shown = doctest.Example(example.code, example.output)
            flags = doctest.ELLIPSIS | doctest.REPORT_NDIFF
            yield f"{path.name}:{example.line}: {checker.output_difference(shown, printed, flags)}"


def misquoted(path: Path, root: Path = ROOT) -> Iterator[str]:
    """A message for each quoted block of which a paragraph does not stand in the file that is named."""
    source = ""
    for token in parser().parse(path.read_text(encoding="utf-8")):
        if token.type == "fence" and source and token.map is not None:
            text = (root / source).read_text(encoding="utf-8")
            for paragraph in re.split(r"\n\s*\n", token.content.strip("\n")):
                if paragraph.strip("\n") not in text:
                    first = paragraph.strip("\n").partition("\n")[0]
                    yield f"{path.name}:{token.map[0] + 1}: this does not stand in {source}: {first}"
        if token.type in ("fence", "inline"):
            found = QUOTED.search(token.content)
            source = found[1] if found else ""


def main(arguments: list[str]) -> int:
    if not arguments:
        print("usage: python -m tools.examples FILE.md ...", file=sys.stderr)
        return 2
    paths = [Path(name).resolve() for name in arguments]
    found = [message for path in paths for message in (*misquoted(path), *differences(path))]
    for message in found:
        print(message)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
