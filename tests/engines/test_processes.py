"""XLA and the process it lives in: interrupted while it compiles, and left behind by a fork."""

from __future__ import annotations

import subprocess
import sys

INTERRUPTED = """
import os, signal, threading
import tenfold as tn
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
tn.ones(2).add(1).tolist()
x = tn.ones(20, 20)
for _ in range(40):
    x = (x @ x).sort(-1).values.softmax(-1)
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    while True:  # a program each time
        x = x.sort(-1).values
        x.sum().item()
except KeyboardInterrupt:
    print("interrupted")
"""

FORKED = """
import os
import tenfold as tn
x = tn.ones(3).eval()
double = tn.compile(lambda x: x * 2)
double(double(x)).eval()
for compute in (lambda: (x * 5).sum().item(), lambda: double(x), lambda: x.cos().tolist(), x.tolist):
    child = os.fork()
    if child == 0:
        try:
            print(compute(), flush=True)
        except tn.TenfoldError as error:
            print(error.message, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


def run(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_program_interrupted_while_it_compiles_ends_well():
    assert run(INTERRUPTED) == "interrupted\n"


def test_a_forked_process_says_that_it_cannot_compute():
    refusal = "a process forked from one that has used XLA cannot compute"
    assert run(FORKED).splitlines() == [refusal, refusal, refusal, "[1.0, 1.0, 1.0]"]
