"""Memory that programs give back is kept for the next run."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import resource
import tenfold as tn
from tenfold.runtime.background import background

step = tn.compile(lambda x: (x.sin().sort()[0].cumsum(1)).sum())
x = tn.ones(1024, 4096).eval()
for _ in range(4):
    step(x).item()
background.wait()  # for the optimised program, which needs memory of its own
for _ in range(2):
    step(x).item()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    step(x).item()
print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) // 5)
"""


def faults(**environment):
    """Pages that the system hands out at each run of a program that works in tens of megabytes."""
    clean = {"PATH": "/usr/bin:/bin", **environment}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=clean, capture_output=True, text=True, check=True
    )
    return int(done.stdout)


def test_runs_ask_the_system_for_no_fresh_pages():
    assert faults() < 200


def test_the_user_may_have_it_otherwise():
    assert faults(TENFOLD_KEEP_MEMORY="0") > 2000
    assert faults(MALLOC_TRIM_THRESHOLD_="100000") > 2000
