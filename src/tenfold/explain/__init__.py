"""A program at all its stages, side by side: what came from what, what it costs, and a page that shows it.

`tenfold.explain(f, *args)` is this package called as a function: PyTorch has no such name, and one name for
both is what users type. The parts: `explanation.py` (the data), `stages.py` (text of each stage, and which
ops each line came from), `costs.py` and `memory.py` (what it costs), `html.py` (the page).
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from tenfold.explain.explanation import Explanation, explain_call, explain_trace

__all__ = ["Explanation", "explain_call", "explain_trace"]


class _Callable(ModuleType):
    def __call__(self, function: Any, *args: Any, **kwargs: Any) -> Explanation:
        """Explain a function's program on these arguments: see `Explanation`."""
        return explain_call(function, args, kwargs)


sys.modules[__name__].__class__ = _Callable
