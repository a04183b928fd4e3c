"""`module_context`: what belongs to its block, and where it may stand."""

from __future__ import annotations

import threading

import pytest

import tenfold as tn
from tenfold.mlir import module_context


def test_an_empty_block_is_printed_while_it_is_open():
    with module_context() as module:
        assert "func.func @main() {\n    return" in str(module)
        kept = tn.ones(2)
    assert kept.shape == (2,)


def test_ops_are_refused_where_another_block_or_thread_records():
    refused = []

    def elsewhere(build):
        try:
            build()
        except tn.TraceError as error:
            refused.append(str(error).splitlines()[0])

    with module_context() as module:
        x = tn.ones(2)
        for build in (lambda: module.aten.tanh(x), lambda: module.aten.size.int(x, 0)):
            thread = threading.Thread(target=elsewhere, args=(build,))
            thread.start()
            thread.join()
        with module_context():
            y = tn.zeros(2)
            elsewhere(lambda: module.aten.exp(y))
    elsewhere(lambda: module.aten.exp(y))
    assert [("another block or thread" in line, "has ended" in line) for line in refused] == [
        (True, False)
    ] * 3 + [(False, True)]


def test_a_block_inside_another_builds_its_own_module():
    with module_context() as outer:
        x = tn.ones(2)
        with module_context() as inner:
            y = tn.zeros(3).exp()
        with pytest.raises(tn.TraceError, match="the module around"), module_context():
            x.tanh()
        z = x.tanh()
    assert "exp" in str(inner) and "exp" not in str(outer) and "tanh" in str(outer)
    assert y.tolist() == [1, 1, 1] and z.shape == (2,)


def test_a_block_inside_a_compiled_function_is_refused():
    def function(x):
        with module_context():
            return x + 1

    with pytest.raises(tn.TraceError, match="inside something else"):
        tn.compile(function)(tn.ones(2))
