"""The site: its op reference, its navigation, and the whole of it built by MkDocs."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from markdown import Markdown

from tenfold.ops.table import TABLE
from tools import classes, explained, performance, reference, site
from tools.docs import slug

ROOT = Path(__file__).parent.parent


def page(source):
    return SimpleNamespace(file=SimpleNamespace(src_uri=source), meta={})


def turned(text, source):
    return site.on_page_markdown(text, page(source), None, None)


def test_the_front_page_has_no_list_of_pages_beside_it():
    front, other = page("index.md"), page("sizes.md")
    for each in (front, other):
        site.on_page_markdown("Text.", each, None, None)
    assert front.meta == {"hide": ["navigation"]} and other.meta == {}


def test_links_mean_on_the_site_what_they_mean_in_the_repository():
    assert turned("[a](docs/tiers.md#x)", "index.md") == "[a](tiers.md#x)"
    assert turned("[a](../README.md)", "tiers.md") == "[a](index.md)"
    assert turned("[a](../explain.md)", "tutorials/pytorch.md") == "[a](../explain.md)"
    assert turned("[a](../examples/python/xor.py)", "tiers.md") == "a"
    assert turned("[a](https://x.org/b.md) [b](#c)", "tiers.md") == "[a](https://x.org/b.md) [b](#c)"
    assert turned("```sh\n[a](../README.md)\n```", "tiers.md") == "```sh\n[a](../README.md)\n```"


def test_documents_that_the_navigation_leaves_out_come_last():
    config = site.on_config(SimpleNamespace(nav=["index.md", {"Inside": ["architecture.md"]}]))
    assert "tiers.md" in config.nav[-1]["More"] and "architecture.md" not in config.nav[-1]["More"]


def test_an_op_is_described_with_its_stages(monkeypatch):
    monkeypatch.setenv("DOCS_HLO", "1")
    text = "\n".join(reference._op("tanh", TABLE["tanh"]))
    assert "aten::tanh(Tensor self) -> Tensor" in text
    assert "tn.tanh(tn.rand(" in text
    assert all(f'??? note "{title}"' in text for title in (*reference.STAGES, "Optimised HLO"))
    assert "stablehlo.tanh" in text and "torch.aten.tanh" in text
    assert "ROOT %tanh" in text and "metadata" not in text


@pytest.mark.parametrize("op", ["__and__", "_cast_Byte", "mH", "add"])
def test_the_index_of_ops_links_to_their_headings(op, monkeypatch):
    monkeypatch.setattr(reference, "_op", lambda op, rows: [])
    name = reference.family(TABLE[op][0])
    families = {name: {op: TABLE[op]}}
    markdown = Markdown(extensions=["tables", "toc"], extension_configs={"toc": {"slugify": slug}})
    address = re.search(rf'href="{name}.md#([^"]*)">{op}<', markdown.convert(reference._index(families)))
    assert f'<h2 id="{address[1]}">{op}</h2>' in markdown.convert(reference._family(name, families[name]))


def test_layers_functions_and_optimizers_are_described_from_their_docstrings():
    pages = classes.pages()
    assert pages["layers"].count("\n## ") > 150 and pages["functions"].count("\n## ") > 90
    norm = pages["layers"].partition("\n## GroupNorm\n")[2].partition("\n## ")[0]
    assert "nn.GroupNorm(num_groups, num_channels, eps=1e-05" in norm
    assert "Input and output (N, num\\_channels, \\*)." in norm
    assert "```python\nnn.GroupNorm(3, 6)(tn.ones(20, 6, 10, 10)).shape  # [20, 6, 10, 10]\n```" in norm
    pool = pages["functions"].partition("\n## max_pool1d\n")[2].partition("\n## ")[0]
    assert "F.max_pool1d(input, kernel_size, stride=None," in pool
    assert "(N, C, L)" in pool and "2d" not in pool
    assert "log_prob(tn.tensor(0.0))  # -0.9189\n```" in pages["distributions"]
    assert "activation=relu, custom_encoder=None" in pages["layers"]
    assert not any(" at 0x" in text for text in pages.values())
    assert "\n## Adam\n" in pages["optimizers"] and "tn.optim.lr_scheduler.StepLR(" in pages["optimizers"]


def test_every_op_has_a_family():
    families = {reference.family(rows[0]) for rows in TABLE.values()}
    assert 10 < len(families) < 100
    assert reference.family(TABLE["tanh"][0]) == "transcendental"


REPORT = {
    "machine": {"platform": "Linux", "cores": 2, "python": "3.11", "packages": {"jax": "1.0"}},
    "results": [
        {
            "name": "call",
            "title": "a call",
            "seconds": {"Tenfold": 0.001, "JAX": 0.002},
            "samples": {},
            "against": "JAX",
            "ratio": 0.5,
            "goal": 1.0,
            "also": [],
        }
    ],
}


def test_the_page_of_performance_shows_the_last_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(performance, "BENCH", tmp_path / "bench.json")
    monkeypatch.setattr(performance, "LONG", tmp_path / "long.json")
    assert "make bench" in performance.ratios() and "long_runs" in performance.memory()
    assert performance.pictures(tmp_path) == []
    performance.BENCH.write_text(json.dumps(REPORT))
    performance.LONG.write_text(json.dumps([{"title": "steps", "counts": [1, 2, 3], "memory": [9, 9, 9]}]))
    names = {each.name for each in performance.pictures(tmp_path)}
    assert names == {"bench-light.svg", "bench-dark.svg", "long-runs-light.svg", "long-runs-dark.svg"}
    assert "| `call` | a call | Tenfold 1 ms, JAX 2 ms | 0.50 x JAX |" in performance.ratios()
    assert 'src="pictures/long-runs-dark.svg#only-dark"' in performance.memory()


def test_the_picture_of_ratios_has_one_column_on_the_site(tmp_path, monkeypatch):
    monkeypatch.setattr(performance, "BENCH", tmp_path / "bench.json")
    monkeypatch.setattr(performance, "LONG", tmp_path / "long.json")
    performance.BENCH.write_text(json.dumps({**REPORT, "results": REPORT["results"] * 3}))
    monkeypatch.setattr("benchmarks.plot.ROWS", 2)
    picture = performance.pictures(tmp_path)[0].read_text(encoding="utf-8")
    assert 'width="648pt"' in picture  # two columns take 893


def test_the_page_of_an_example_is_part_of_the_document_on_explaining(tmp_path, monkeypatch):
    monkeypatch.setattr(explained, "PAGE", tmp_path / "explained.html")
    assert "make docs" in explained.frame()
    explained.PAGE.write_text("a page")
    assert 'src="explained.html"' in explained.frame()


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_and_searches_offline(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert done.returncode == 0 and not done.stderr, done.stdout + done.stderr
    assert {"index.html", "explain.html", "CONTRIBUTING.html"} <= {each.name for each in tmp_path.iterdir()}
    assert "softmax" in (tmp_path / "search" / "search_index.js").read_text(encoding="utf-8")
    fetched = 'src="http', 'rel="stylesheet" href="http'
    assert not any(each in (tmp_path / "index.html").read_text(encoding="utf-8") for each in fetched)
