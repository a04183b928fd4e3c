"""The page as a file: nothing in it can be taken for markup, and nothing is fetched."""

import base64
import gzip
import html
import json
import re

import tenfold as tn
from tenfold.explain.html import frame, page

HOSTILE = "</script><img src=x onerror=alert(1)> \" ' & <!-- \u2028 \u2029 {{data}} ${1} \x00"


def data_of(text):
    packed = re.search(r'id="data">([A-Za-z0-9+/=]*)</script>', text)
    return json.loads(gzip.decompress(base64.b64decode(packed[1])))


def test_hostile_text_stays_data():
    empty = {"title": HOSTILE, "nodes": [], "ops": [], "stages": []}
    text = page(HOSTILE, [empty])
    assert html.escape(HOSTILE) in text
    assert HOSTILE not in text and "<img src=x" not in text
    assert text.count("</script>") == 2
    assert data_of(text)["title"] == HOSTILE


def test_the_page_names_no_other_place():
    text = re.sub('id="data">[^<]*', "", tn.explain(lambda x: x + 1, tn.ones(2)).html())
    links = set(re.findall(r"(?:https?:)?//[\w.]+", re.sub(r"(?m)^\s*//.*|  // .*", "", text)))
    assert links <= {"http://www.w3.org"}  # the namespace of SVG
    assert "default-src 'none'" in text


def test_every_stage_is_in_the_data():
    explanation = tn.explain(lambda x: (x @ x).tanh(), tn.ones(2, 2))
    (program,) = data_of(explanation.html())["programs"]
    titles = [stage["title"] for stage in program["stages"]]
    assert titles == ["Source", "Trace", "FlatIR", "StableHLO", "Torch dialect", "Optimised HLO"]
    for stage, kept in zip(explanation.stages, program["stages"], strict=True):
        assert kept["lines"].split("\n") == list(stage.lines)


def test_long_literals_do_not_make_long_pages():
    numbers = list(map(float, range(400_000)))
    text = tn.explain(lambda x: x + tn.tensor(numbers), tn.ones(400_000)).html()
    assert len(text) < 400_000


def test_a_notebook_shows_the_page_apart():
    explanation = tn.explain(lambda x: x + 1, tn.ones(2))
    shown = explanation._repr_html_()
    assert shown.startswith("<iframe srcdoc=") and 'sandbox="allow-scripts"' in shown
    assert html.unescape(re.search(r'srcdoc="([^"]*)"', shown)[1]) == explanation.html()
    assert frame('"><b>').count("<b>") == 0


def test_the_page_is_saved_as_utf8(tmp_path):
    tn.explain(lambda x: x + 1, tn.ones(2)).save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")
