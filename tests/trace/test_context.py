"""The context of a thread: what follows from its settings, and blocks outside of a recording."""

from __future__ import annotations

import threading

from tenfold.trace.context import Context, context, outside


def test_ops_are_recorded_quickly_unless_somebody_looks_at_their_arguments():
    for name, value in (("autocast", print), ("level", object()), ("modes", (1,)), ("asked", [])):
        own = Context()
        assert own.quick and own.plain
        setattr(own, name, value)
        assert not own.quick and not own.plain


def test_a_recorder_follows_quick_nodes():
    own = Context()
    own.recorder = object()
    assert own.quick and not own.plain


def test_compiled_functions_depend_on_modes_of_gradients_and_precision():
    own = Context()
    own.grad_enabled, own.inference, own.precision, own.modes = False, True, ("cpu",), (1,)
    own.watcher = watcher = object()
    assert own.state == (False, True, ("cpu",), (1,), watcher)


def test_each_thread_has_its_own():
    own = Context()
    own.grad_enabled = False
    seen = []
    thread = threading.Thread(target=lambda: seen.append((own.grad_enabled, own.state)))
    thread.start()
    thread.join()
    assert seen == [(True, (True, False, None, (), None))]


def test_a_block_outside_has_another_recorder_until_it_ends():
    inner, around = object(), object()
    before, context.recorder = context.recorder, inner
    try:
        for recorder in (None, around):
            try:
                with outside(recorder):
                    assert context.recorder is recorder
                    raise KeyError
            except KeyError:
                assert context.recorder is inner
    finally:
        context.recorder = before
