"""The documents' links lead somewhere and their examples print what they say. The checkers themselves are
tried on small documents with known faults."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.docs import broken_links, documents
from tools.examples import UncheckedOutput, differences, misquoted

ROOT = Path(__file__).parent.parent


# Documents whose examples need libtenfold, which takes minutes to build.
SLOW = ("language.md",)


def marked(document: Path):
    name = document.relative_to(ROOT).as_posix()
    return pytest.param(document, id=name, marks=[pytest.mark.slow] if document.name in SLOW else [])


@pytest.mark.parametrize("document", [marked(each) for each in documents(ROOT)])
def test_examples_print_what_the_document_says(document):
    command = [sys.executable, "-m", "tools.examples", str(document)]
    environment = {name: value for name, value in os.environ.items() if name != "TENFOLD_TIER"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_link_of_the_documents_leads_somewhere():
    assert broken_links(ROOT) == []


@pytest.fixture
def write(tmp_path):
    """Writes the documents of a small project and returns its root."""

    def write_files(**files: str) -> Path:
        (tmp_path / "docs").mkdir()
        for name, text in files.items():
            folder = tmp_path if name.isupper() else tmp_path / "docs"
            (folder / f"{name}.md").write_text(text, encoding="utf-8")
        return tmp_path

    return write_files


def test_links_between_documents_are_found(write):
    root = write(
        README="# Ten `fold`\n\nSee [the design](docs/design.md#the-two-irs), [the rows](docs/design.md).\n",
        design="# Design\n\n## The two IRs\n\n[up](../README.md#ten-fold) [here](#design)\n\n| a |\n|---|\n",
    )
    assert broken_links(root) == []


def test_broken_links_are_reported_with_their_place(write):
    root = write(
        README="# A\n\n[one](docs/gone.md)\n[two](docs/design.md#no) [three](LICENSE#a)\n\n![four](x.png)\n",
        design="# A\n\n# A\n\n[fine](#a-1) [five](#a-2) [elsewhere](https://example.org/x.md#y)\n",
    )
    (root / "LICENSE").write_text("")
    assert broken_links(root) == [
        "README.md:3: docs/gone.md: there is no docs/gone.md",
        "README.md:4: docs/design.md#no: docs/design.md has no such heading",
        "README.md:4: LICENSE#a: an anchor in something that is not a document",
        "README.md:6: x.png: there is no x.png",
        "docs/design.md:5: #a-2: docs/design.md has no such heading",
    ]


def test_a_project_without_documents_has_no_links(tmp_path):
    assert broken_links(tmp_path) == []


EXAMPLE = """# Title

```python
x = 2
```
Some prose, then the names above again:
```python
print(x + 2)
print(1 / 3)
```
prints
```text
4
0.333...
```
"""


def test_blocks_share_their_names_and_dots_stand_for_anything(write):
    root = write(README=EXAMPLE)
    assert list(differences(root / "README.md")) == []


def test_an_output_that_differs_is_reported_with_its_place(write):
    root = write(README=EXAMPLE.replace("4\n", "5\n"))
    (message,) = differences(root / "README.md")
    assert message.startswith("README.md:8: ")
    assert "- 5" in message and "+ 4" in message


def test_a_missing_output_is_a_difference(write):
    root = write(README="```python\nx = 1\n```\n```text\n1\n```\n")
    assert len(list(differences(root / "README.md"))) == 1


def test_an_error_is_an_output_where_the_document_shows_it(write):
    root = write(README="```python\nint('a')\n```\n```text\nValueError: invalid literal ... 'a'\n```\n")
    assert list(differences(root / "README.md")) == []


def test_an_error_that_the_document_does_not_show_points_into_the_document(write):
    root = write(README="# Title\n\n```python\nx = 1\nint('a')\n```\n")
    with pytest.raises(ValueError) as caught:
        list(differences(root / "README.md"))
    assert caught.traceback[-1].path == root / "README.md"
    assert caught.traceback[-1].lineno + 1 == 5


def test_output_without_code_is_refused(write):
    root = write(README="```sh\nls\n```\n```text\nREADME.md\n```\n")
    with pytest.raises(UncheckedOutput, match="README.md:4"):
        list(differences(root / "README.md"))


def test_a_block_that_is_not_as_in_the_sources_is_reported(tmp_path):
    (tmp_path / "rows.py").write_text(
        "def one():\n    return 1\n\n\nother = 2\n\n\ndef two():\n    return 2\n"
    )
    quote = "<!-- not run: as it stands in rows.py -->\n```py\n{}\n```\n"
    path = tmp_path / "A.md"
    path.write_text(quote.format("def one():\n    return 1\n\n\ndef two():\n    return 2"))
    assert list(misquoted(path, tmp_path)) == []
    path.write_text("# A\n\n" + quote.format("def two():\n    return 3"))
    assert list(misquoted(path, tmp_path)) == ["A.md:4: this does not stand in rows.py: def two():"]
