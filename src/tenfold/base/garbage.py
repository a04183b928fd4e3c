"""Work during which nothing becomes garbage."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Without the garbage collector: for what makes thousands of objects that all stay in use, as a program
    that is built."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """The same for what stays to the end, as all that an import makes: the collector then takes it for old,
    and does not look through it once more as it does with what is new."""
    with uncollected():
        try:
            yield
        finally:
            if not gc.get_freeze_count():  # what the user froze stays so
                gc.freeze()
                gc.unfreeze()
