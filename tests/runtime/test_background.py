"""The thread that compiles: jobs run in order, a failure is kept for who asks, and a fork starts anew."""

from __future__ import annotations

import os
import threading

from tenfold.runtime.background import Background


def test_jobs_run_one_after_the_other_in_their_order():
    worker, done = Background(), []
    for i in range(5):
        worker.submit(i, lambda i=i: done.append((i, threading.current_thread().name)))
    worker.wait()
    assert done == [(i, "tenfold-compile") for i in range(5)]


def test_a_job_is_known_until_it_is_done():
    worker, go = Background(), threading.Event()
    worker.submit("slow", go.wait)
    assert "slow" in worker
    go.set()
    worker.wait()
    assert "slow" not in worker


def test_a_job_that_fails_is_remembered_and_the_next_one_runs():
    worker, done = Background(), []

    def fail():
        raise ValueError("no memory")

    worker.submit("bad", fail)
    worker.submit("good", lambda: done.append(1))
    worker.wait()
    assert worker.failures == {"bad": "ValueError: no memory"} and "bad" in worker
    assert done == [1]


def test_waiting_for_nothing_returns():
    Background().wait()


def test_a_forked_process_has_a_worker_of_its_own():
    worker = Background()
    worker.submit("in the parent", lambda: None)
    worker.wait()
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        worker.leave()
        worker.submit("in the child", lambda: os.write(writer, b"done"))
        worker.wait()
        os._exit(0)
    os.close(writer)
    assert os.read(reader, 4) == b"done"
    os.waitpid(child, 0)
    os.close(reader)
