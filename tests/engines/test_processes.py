"""XLA and the process it lives in: interrupted while it compiles, and left behind by a fork."""

from __future__ import annotations

import subprocess
import sys

import pytest

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


FORKED_BESIDE_A_THREAD = """
import os, threading, time
import tenfold as tn
x = tn.ones(3).eval()
ended = False

def compute():
    size = 20
    while not ended:
        size += 1
        (tn.ones(size, 20) @ tn.ones(20, 20)).tanh().sum().item()

thread = threading.Thread(target=compute)
thread.start()
for i in range(6):
    time.sleep(0.03 * i)
    child = os.fork()
    if child == 0:
        try:
            print((x * 5).sum().item(), flush=True)
        except tn.TenfoldError as error:
            print(error.message, flush=True)
        os._exit(0)
    end = time.monotonic() + 20
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if time.monotonic() > end:
            os.kill(child, 9)
            print("hangs", flush=True)
        time.sleep(0.01)
ended = True
thread.join()
"""

ALARMED = """
import signal, sys
import tenfold as tn

class Late(Exception):
    pass

def ring(*_):
    raise Late

signal.signal(signal.SIGALRM, ring)
x = tn.ones(3, 3)
size = 3
try:
    signal.setitimer(signal.ITIMER_REAL, float(sys.argv[1]))
    tn.linalg.det(x + tn.eye(3)).item()
    while True:
        size += 1
        (tn.ones(size) * 2).sum().item()
except Late:
    print("late")
assert abs(tn.linalg.det(x + tn.eye(3)).item() - 4) < 1e-4
run = tn.load_stablehlo(tn.export(lambda x: x + 1, (x,), dialect="stablehlo").portable())
assert run(x).sum().item() == 18
"""

ALARMED_AGAIN_AND_AGAIN = """
import random, signal
import tenfold as tn

class Late(Exception):
    pass

rung = 0

def ring(*_):
    global rung
    rung += 1
    raise Late

signal.signal(signal.SIGALRM, ring)
chance = random.Random(0)
tn.ones(2).add(1).tolist()
size = 3
state = tn.zeros(5)
for _ in range(100):
    try:
        signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.0005, 0.02))
        before = rung
        while rung == before:
            size += 1
            state.add_(1)
            (tn.ones(size) * 2).sum().item()
            state.tolist()
        print("lost what the handler raised")
    except Late:
        pass
assert len(set(state.tolist())) == 1
print("only late")
"""


def run(program: str, *arguments: str) -> str:
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_program_interrupted_while_it_compiles_ends_well():
    assert run(INTERRUPTED) == "interrupted\n"


def test_a_forked_process_says_that_it_cannot_compute():
    refusal = "a process forked from one that has used XLA cannot compute"
    assert run(FORKED).splitlines() == [refusal, refusal, refusal, "[1.0, 1.0, 1.0]"]


def test_a_process_forked_while_a_thread_computes_says_it_too():
    refusal = "a process forked from one that has used XLA cannot compute"
    assert run(FORKED_BESIDE_A_THREAD).splitlines() == [refusal] * 6


@pytest.mark.parametrize("delay", [0.02, 0.1, 0.2, 0.3, 0.5])
def test_a_handler_that_raises_during_first_use_leaves_the_engine_whole(delay, monkeypatch):
    monkeypatch.setenv("TENFOLD_CACHE_DIR", "")
    assert run(ALARMED, str(delay)) == "late\n"


def test_what_a_handler_raises_is_never_taken_for_an_error_of_the_engines():
    assert run(ALARMED_AGAIN_AND_AGAIN) == "only late\n"
