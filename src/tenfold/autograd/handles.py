"""What hooks are removed by."""

from __future__ import annotations

import itertools
from typing import Any


class RemovableHandle:
    """Removes a hook: by `remove()`, or at the end of a `with` block."""

    _count = itertools.count()

    def __init__(self, hooks: dict[int, Any], hook: Any):
        self.id = next(RemovableHandle._count)
        self._hooks = hooks
        hooks[self.id] = hook

    def remove(self) -> None:
        self._hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *error: Any) -> None:
        self.remove()
