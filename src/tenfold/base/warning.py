"""Warnings that point at the user's line, however deep in the package they arise."""

from __future__ import annotations

import warnings
from typing import Any

from tenfold.base.source import capture

_shown: dict[Any, Any] = {}  # what Python remembers so as to show a warning once for each line


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    where = capture()
    if where is None:
        warnings.warn(message, category, stacklevel=2)
    else:
        warnings.warn_explicit(message, category, where.filename, where.line, registry=_shown)
