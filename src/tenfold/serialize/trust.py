"""What the user trusts: files that may contain any object, and classes that any file may contain."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tenfold.base.threads import handed_on

_VARIABLE = "TENFOLD_TRUST_FILES"


class _Trust(threading.local):
    """How many blocks that trust files this thread is in. Others, which may load other files, are not."""

    depth = 0


_trust = handed_on(_Trust())
_safe: list[Any] = []


@contextmanager
def trusting_files() -> Iterator[None]:
    """A `with` block in which `load(file, weights_only=False)` reads any object, which may run any code, and
    `load_vmfb` runs machine code in this process. Use it only for files that you trust like your own
    programs.

    ```python
    with tenfold.serialize.trusting_files():
        model = tenfold.load("model.pt", weights_only=False)
    ```
    """
    _trust.depth += 1
    try:
        yield
    finally:
        _trust.depth -= 1


def trusted() -> bool:
    return _trust.depth > 0 or os.environ.get(_VARIABLE) == "1"


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Allow files to contain these classes and functions, each as it is or paired with the name that files
    use."""
    _safe.extend(safe_globals)


def get_safe_globals() -> list[Any]:
    """The classes and functions that `add_safe_globals` named."""
    return list(_safe)


def clear_safe_globals() -> None:
    """Stop trusting the classes and functions that `add_safe_globals` named."""
    _safe.clear()


class safe_globals:
    """A `with` block in which files may contain these classes and functions."""

    def __init__(self, safe_globals: list[Any]):
        self.added = safe_globals

    def __enter__(self) -> None:
        self.before = list(_safe)
        _safe.extend(self.added)

    def __exit__(self, *error: Any) -> None:
        _safe[:] = self.before


def allowed() -> dict[str, Any]:
    """The classes and functions that were declared safe, by the names that files have for them."""
    found: dict[str, Any] = {}
    for each in _safe:
        if isinstance(each, tuple):
            found[each[1]] = each[0]
        else:
            found[f"{each.__module__}.{each.__qualname__}"] = each
    return found
