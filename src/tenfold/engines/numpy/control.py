"""Kernels of control flow and of run-time checks."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.base.errors import TenfoldError
from tenfold.engines.numpy.kernels import Array, Kernel
from tenfold.engines.numpy.plan import plan


def while_loop(op: Any) -> Kernel:
    condition, body = plan(op.condition), plan(op.body)

    def kernel(*carry: Array) -> Any:
        state = list(carry)
        del carry
        while condition(tuple(state))[0]:
            state = body(state)
        return state if len(state) != 1 else state[0]

    return kernel


def case(op: Any) -> Kernel:
    """An index out of range takes the last branch."""
    branches = [plan(each) for each in op.branches]
    single = len(op.results) == 1

    def kernel(index: Array, *arguments: Array) -> Any:
        chosen = int(index)
        branch = branches[chosen if 0 <= chosen < len(branches) else -1]
        results = branch(arguments)
        return results[0] if single else results

    return kernel


def manual_computation(op: Any) -> Kernel:
    """Code for one device: there is one, which has all of everything."""
    body, single = plan(op.body), len(op.results) == 1

    def kernel(*inputs: Array) -> Any:
        results = body(inputs)
        return results[0] if single else results

    return kernel


def partition_id(op: Any) -> Kernel:
    return lambda: np.zeros((), np.uint32)


def check(op: Any) -> Kernel:
    """Raises the op's error at the user's line where its condition does not hold."""

    def kernel(x: Array, holds: Array) -> Array:
        if not holds:
            error = op.error(op.message)
            raise error.located("", op.source, []) if isinstance(error, TenfoldError) else error
        return x

    return kernel
