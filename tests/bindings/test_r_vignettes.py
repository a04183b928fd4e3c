"""The vignettes of the R package: their code runs, and what they promise is TRUE."""

from __future__ import annotations

import re
from pathlib import Path

from tests.bindings.r_process import ROOT, evaluate

PAGES = sorted((ROOT / "bindings" / "r" / "vignettes").glob("*.Rmd"))
SUBJECTS = {
    "indexing",
    "autograd",
    "modules",
    "training",
    "data",
    "saving",
    "devices",
    "extending",
    "from-torch",
}


def test_there_is_a_page_for_each_subject() -> None:
    assert {page.stem for page in PAGES} >= SUBJECTS


def test_the_code_of_every_page_runs(tmp_path: Path) -> None:
    """Each in an environment of its own; a page is named when it is done."""
    parts = []
    for page in PAGES:
        chunks = re.findall(r"^```\{r[^}]*\}\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
        code = tmp_path / f"{page.stem}.R"
        code.write_text("\n".join(chunks), encoding="utf-8")
        parts.append(f"source('{code}', local = new.env(), echo = FALSE); cat('{page.stem}', 'done\\n')")
    printed = evaluate(tmp_path, "\n".join(parts))
    assert [page.stem for page in PAGES if f"{page.stem} done" not in printed] == []
