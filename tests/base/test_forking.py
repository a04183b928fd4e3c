"""A child of a fork gets every lock, and every module, whatever other threads did at the time."""

import gc
import os
import subprocess
import sys
import threading
import time

import pytest

from tenfold.base import forking
from tenfold.base.forking import Imports, forkable


def forked(call) -> str:
    """What a forked process writes, which has five seconds for it."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        threading.Timer(5, os._exit, (1,)).start()
        os.write(writer, str(call()).encode())
        os._exit(0)
    os.close(writer)
    said = os.read(reader, 1000).decode()
    os.waitpid(child, 0)
    os.close(reader)
    return said


@pytest.mark.parametrize("order", ["inner first", "outer first"])
def test_a_fork_waits_for_nested_locks_in_whichever_order_they_were_registered(order):
    inner, outer = threading.Lock(), threading.RLock()
    for lock in (inner, outer) if order == "inner first" else (outer, inner):
        forkable(lock)
    begun = threading.Event()

    def nest():
        with outer:
            begun.set()
            time.sleep(0.2)
            with inner:
                time.sleep(0.1)

    thread = threading.Thread(target=nest)
    thread.start()
    begun.wait()
    before = time.monotonic()
    assert forked(lambda: inner.acquire(timeout=0.1) and outer.acquire(timeout=0.1)) == "True"
    assert time.monotonic() - before < forking.PATIENCE
    thread.join()
    assert inner.acquire(timeout=0.1) and outer.acquire(timeout=0.1)


def test_a_lock_that_is_not_to_be_had_is_made_anew_in_the_child(monkeypatch):
    monkeypatch.setattr(forking, "PATIENCE", 0.1)
    lock, done = forkable(threading.Lock()), threading.Event()
    thread = threading.Thread(target=lambda: (lock.acquire(), done.wait(), lock.release()))
    thread.start()
    while not lock.locked():
        time.sleep(0.01)
    assert forked(lambda: lock.acquire(timeout=0.1)) == "True"
    assert lock.locked()
    done.set()
    thread.join()


def test_locks_go_with_what_they_belong_to():
    gc.collect()
    before = len(forking._locks)
    locks = [forkable(threading.Lock()) for _ in range(100)]
    assert len(forking._locks) == before + 100
    del locks
    assert len(forking._locks) == before


def test_a_fork_inside_an_import_waits_for_those_of_other_threads_alone():
    imports = forkable(Imports())
    with imports.under_way(), imports.under_way():
        assert imports.acquire(0.1)
        imports.release()
        imports._at_fork_reinit()
    go = threading.Event()

    def load():
        with imports.under_way():
            go.wait()

    thread = threading.Thread(target=load)
    thread.start()
    while not imports._threads:
        time.sleep(0.01)
    assert not imports.acquire(0.05)
    threading.Timer(0.05, go.set).start()
    assert imports.acquire(5)
    imports.release()
    thread.join()


FIRST_USE = """
import os, signal, sys, threading, time
import tenfold as tn

begun = threading.Event()

def trace(frame, event, arg):
    if frame.f_code.co_filename.endswith("fourier.py") and frame.f_code.co_name == "<module>":
        begun.set()
        time.sleep(0.3)

def use():
    sys.settrace(trace)
    tn.fft.fft(tn.ones(2))

thread = threading.Thread(target=use)
assert "tenfold.ops.fourier" not in sys.modules
thread.start()
begun.wait()
child = os.fork()
if not child:
    signal.alarm(10)
    print(tn.fft.fft(tn.ones(2)).dtype, flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
thread.join()
"""


def test_a_child_uses_what_another_thread_was_importing(tmp_path):
    variables = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path)}
    variables.pop("PYTHONDONTWRITEBYTECODE", None)

    def run(program: str) -> str:
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("import tenfold")  # keeps what families declare
    assert run(FIRST_USE) == "tenfold.complex64\n"
