"""Memory that runs out at any point of a training step through libtenfold: an error, and nothing is left."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.base.errors import OutOfMemory, TenfoldError
from tests.capi.bridge import Bridge, handles, nothing_left


def one_step(tn: Bridge) -> None:
    """A leaf, a scope, a loss, its gradient, a step, the state saved; whatever happens, all is freed."""
    objects: list[tuple[Any, int]] = []
    try:
        x = tn.tensor(np.ones((4, 3)), requires_grad=True)
        optimizer = tn.tn_optimizer_adam(*handles([x]), 0.1)
        objects.append((tn.tn_optimizer_free, optimizer))
        scope = tn.tn_no_grad_begin()
        try:
            target = tn.call("mul.Scalar", x, 2.0)
        finally:
            tn.tn_scope_end(scope)
        loss = tn.keep(tn.tn_loss(b"mse_loss", x, target))
        tn.tn_backward(loss)
        tn.tn_optimizer_step(optimizer)
        state = tn.tn_optimizer_state(optimizer)
        objects.append((tn.tn_value_free, state))
        tn.tn_optimizer_set_state(optimizer, state)
    finally:
        for free, handle in reversed(objects):
            free(handle)
        tn.close()


def test_a_failing_allocation_anywhere_leaves_nothing() -> None:
    tn = Bridge()
    one_step(tn)
    start = tn.tn_debug_allocations()
    one_step(tn)
    points = tn.tn_debug_allocations() - start
    assert points > 5
    failures = 0
    for point in range(1, points + 1):
        with nothing_left(tn):
            tn.tn_debug_fail_allocation(point)
            try:
                one_step(tn)
            except TenfoldError as error:
                failures += 1
                assert isinstance(error, OutOfMemory), error
            finally:
                tn.tn_debug_fail_allocation(0)
    assert failures == points
    with nothing_left(tn):
        one_step(tn)  # the library goes on
