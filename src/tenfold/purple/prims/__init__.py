"""The primitives of `names.py` for the interpreter, by family. Each is a Python function on Purple's
values.
"""

from __future__ import annotations

from tenfold.purple.prims import (
    bytevectors,
    characters,
    control,
    data,
    foreign,
    numbers,
    ports,
    records,
    scripts,
    tables,
    tensors,
)

FAMILIES = (
    numbers,
    data,
    characters,
    bytevectors,
    tables,
    ports,
    control,
    records,
    foreign,
    tensors,
    scripts,
)
