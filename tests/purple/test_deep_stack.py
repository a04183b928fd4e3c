"""Work on a deep stack: it recurses far, its errors come back, and it can be interrupted."""

import os
import signal
import threading

import pytest

from tenfold.purple.deep_stack import with_deep_stack


def depth(n: int) -> int:
    return 0 if n == 0 else 1 + depth(n - 1)


def test_recursion_goes_deep_and_may_ask_for_more_room_inside():
    assert with_deep_stack(lambda: with_deep_stack(lambda: depth(100_000), frames=300_000)) == 100_000


def test_an_error_reaches_whoever_asked():
    with pytest.raises(ZeroDivisionError):
        with_deep_stack(lambda: 1 // 0)


def test_an_interruption_from_the_keyboard_ends_a_loop():
    def forever() -> None:
        while True:
            pass

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
    try:
        threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            with_deep_stack(forever)
    finally:
        signal.signal(signal.SIGINT, before)
