"""Which tests examine a file: those that `make check` and `make mutants` run.

Tests mirror the sources: src/tenfold/A/B.py is examined by tests/A/test_B.py and, where that does not exist,
by all of tests/A. A file of the op table is also examined by the generated tests of the rows it declares. A
module at the top, src/tenfold/B.py, is examined by tests/test_B.py or else by the test files that name it; a
helper or a conftest.py of the tests by its folder.
`python -m tools.affected --since main` prints the arguments for pytest, one on each line.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
# The tests that are generated from the rows, each named by its row.
GENERATED = ("tests/ops/test_rows.py", "tests/ops/test_magnitudes.py")
# Folders whose tests build libtenfold first, which takes minutes.
BUILT = ("capi", "bindings")
ROW = re.compile(r"""["'](\w[\w{}]*(?:\.\w+)?)\([^"']*(?:\) *->|["']\s*\n)""")


@dataclass(frozen=True)
class Selection:
    """Tests to run together: paths, and the keyword that selects among them."""

    paths: tuple[str, ...]
    keyword: str = ""

    def arguments(self) -> list[str]:
        return [*self.paths, *(["-k", self.keyword] if self.keyword else [])]


def selections(source: Path, root: Path = ROOT) -> list[Selection]:
    """The tests of a source file, the nearest first: its rows', its mirror's, its folder's."""
    inside = source.relative_to(root / "src" / "tenfold")
    found = []
    if inside.parts[0] == "ops" and (keywords := _keywords(declared(source.read_text()))):
        found.append(Selection(GENERATED, " or ".join(keywords)))
    mirror = root / "tests" / inside.parent / f"test_{inside.stem}.py"
    folder = next(each for each in [mirror.parent, *mirror.parents] if each.is_dir())
    if mirror.exists():
        found.append(Selection((str(mirror.relative_to(root)),)))
    if folder != root / "tests":
        found.append(Selection((str(folder.relative_to(root)),)))
    elif not mirror.exists():
        found.append(Selection(tuple(naming(inside.stem, root)) or ("tests/test_import.py",)))
    return found


def naming(module: str, root: Path = ROOT) -> list[str]:
    """The test files that name a module at the top of the package."""
    name = re.compile(rf"\b(?:tenfold|tn)\.{module}\b|^from tenfold import [^\n]*\b{module}\b", re.MULTILINE)
    files = sorted((root / "tests").rglob("test_*.py"))
    return [str(each.relative_to(root)) for each in files if name.search(each.read_text())]


def around(helper: Path, root: Path = ROOT) -> list[str]:
    """The tests of the nearest folder that has some; at the top those that are in no folder."""
    folder = next(each for each in helper.parents if any(each.glob("test_*.py")) or each == root / "tests")
    found = sorted(folder.glob("test_*.py")) if folder == root / "tests" else [folder]
    return [str(each.relative_to(root)) for each in found]


def declared(text: str) -> list[str]:
    """The rows that a file of the op table declares, by their schemas; in f-strings as they stand there."""
    return list(dict.fromkeys(ROW.findall(text)))


def _keywords(rows: list[str]) -> list[str]:
    """What selects the generated tests of rows, which end on a row's name. Of names that an f-string makes it
    is how they begin, if that says something."""
    beginnings = [row.partition("{") for row in rows]
    return [start if brace else f"{start}]" for start, brace, _ in beginnings if not brace or len(start) > 4]


def changed(since: str, root: Path = ROOT) -> list[Path]:
    """The files that differ from where this branch left another one, new ones included."""
    base = _git(root, "merge-base", "HEAD", since)[0]
    names = _git(root, "diff", "--name-only", "--diff-filter=d", base)
    return [root / each for each in names + _git(root, "ls-files", "--others", "--exclude-standard")]


def _git(root: Path, *arguments: str) -> list[str]:
    return subprocess.run(
        ["git", *arguments], cwd=root, check=True, capture_output=True, text=True
    ).stdout.splitlines()


def affected(files: list[Path], root: Path = ROOT) -> list[str]:
    """The tests of files that have changed: the files themselves, where they are tests, or the nearest."""
    found: dict[str, None] = {}
    for path in files:
        inside = path.relative_to(root)
        if inside.parts[0] == "tests":
            is_test = inside.name.startswith("test_") and inside.suffix == ".py"
            found.update(dict.fromkeys([str(inside)] if is_test else around(path, root)))
        elif inside.parts[:2] == ("src", "tenfold") and inside.suffix == ".py":
            for each in [s for s in selections(path, root) if not s.keyword][:1]:
                found.update(dict.fromkeys(each.paths))
    return [each for each in found if Path(each).parts[1] not in BUILT]


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Print the tests of what has changed.",
        epilog="example: pytest $(python -m tools.affected)",
    )
    parser.add_argument(
        "--since", default="main", help="the branch or commit to compare with (default: main)"
    )
    for each in affected(changed(parser.parse_args().since)):
        print(each)


if __name__ == "__main__":
    main()
