"""Memos with a bound."""

from __future__ import annotations

import sys
import threading

from tenfold.base.bounded import Bounded, Generations


def test_the_least_recently_used_result_goes():
    memo = Bounded(10)
    for i in range(100):
        assert memo.get(i, lambda i=i: str(i)) == str(i)
        assert memo.get(0, lambda: "again") == "0"  # used in each round, so it stays
    assert len(memo) == 10
    assert memo.get(99, lambda: "again") == "99"
    assert memo.get(50, lambda: "again") == "again"


def test_results_may_weigh_more_or_less():
    memo = Bounded(10, len)
    for text in ("four", "threes", "no"):
        memo.get(text, lambda text=text: text)
    assert len(memo) == 2 and memo.total == 8  # "four" went


def test_threads_keep_the_weight_right():
    memo = Bounded(50)

    def use(offset):
        for i in range(2000):
            memo.get((i * offset) % 97, lambda: "result")

    threads = [threading.Thread(target=use, args=(offset,)) for offset in (1, 3, 5, 7)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert memo.total == len(memo) == 50


def test_what_is_asked_for_outlives_any_number_of_others():
    memo = Generations()
    memo.keep("hot", "result")
    for i in range(10 * Generations.bound):
        memo.keep(i, str(i))
        if i % 1000 == 0:
            assert (memo.get("hot") or memo.older("hot")) == "result"
    assert len(memo) <= Generations.bound
    assert memo.get(0) is None
    assert memo.older(0) is None


def test_nothing_is_left_after_clear():
    memo = Generations()
    for i in range(Generations.bound + 1):
        memo.keep(i, str(i))
    memo.clear()
    assert memo.get(0) is None
    assert memo.older(0) is None


def test_heavy_results_leave_room_for_fewer():
    memo = Generations(len)
    for i in range(1000):
        memo.keep(i, "x" * 100)
    assert len(memo) <= -(-Generations.bound // 100)
    assert memo.older(999 - len(memo)) and not memo.older(0)
