"""TENFOLD_LOG: what is written, in real processes, and what a wrong topic is told."""

import os
import subprocess
import sys

import pytest

from tenfold.base import log

PROGRAM = """
import tenfold as tn

@tn.compile
def twice(x):
    return x * 2

twice(tn.ones(3)).eval()
print((tn.ones(300, 300) @ tn.ones(300, 300)).sum().item())
"""


def run(topics: str, **more: str) -> str:
    environment = {**os.environ, "TENFOLD_LOG": topics, "TENFOLD_TIER": "", **more}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_every_topic_is_written_with_its_time(tmp_path):
    text = run("all", TENFOLD_CACHE_DIR=str(tmp_path))
    assert "recorded twice: 1 nodes" in text
    lines = {line.split()[3]: line for line in text.splitlines() if line.startswith("tenfold ")}
    assert {"trace", "compile", "cache", "tiers"} <= set(lines)
    assert " ms " in lines["compile"] or " s " in lines["compile"]


def test_nothing_is_written_unasked():
    assert run("") == ""


def test_topics_are_chosen_by_name():
    assert log.chosen("compile, tiers") == {"compile", "tiers"}
    assert log.chosen("all") == set(log.TOPICS)
    assert log.chosen("") == frozenset()


def test_a_topic_that_is_none_is_told():
    with pytest.warns(UserWarning, match="there is no topic 'tier'.*tiers"):
        assert log.chosen("tier,trace") == {"trace"}
