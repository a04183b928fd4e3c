"""The primitives of `names.py` for the interpreter, by family. Each is a Python function on Purple's
values.
"""

from __future__ import annotations

from tenfold.purple.prims import (
    characters,
    control,
    data,
    foreign,
    numbers,
    records,
    scripts,
    tables,
    tensors,
)

FAMILIES = (numbers, data, characters, tables, control, records, foreign, tensors, scripts)
