"""Tier 0: FlatIR run at once on NumPy arrays, without a compiler.

`plan.py` turns a function into a list of steps and runs it, `table.py` has the kernel of each FlatIR op, and
the other files have the kernels, by what they do. The semantics are StableHLO's. Nothing here needs jaxlib.
"""

from tenfold.engines.numpy import table as _table  # noqa: F401
from tenfold.engines.numpy.plan import Plan, plan, run

__all__ = ["Plan", "plan", "run"]
