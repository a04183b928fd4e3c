"""The classes of what ops with several named results give: `torch.max(x, 0)` is a `return_types.max`. Each is
a named tuple; it is made when it is first asked for or returned."""

from __future__ import annotations

from typing import Any

from tenfold.base.errors import unknown_name
from tenfold.ops.table import TABLE
from tenfold.tensor.dispatch import return_type


def _fields(name: str) -> tuple[str, ...] | None:
    """The names of the results of an op, if it has several and all are named."""
    for row in TABLE.get(name, ()):
        fields = tuple(result.name for result in row.schema.returns)
        if len(fields) > 1 and all(fields):
            return fields
    return None


def pytree_register_structseq(cls: type) -> None:
    """Nothing to do: `tenfold.utils._pytree` flattens every named tuple."""


def __getattr__(name: str) -> Any:
    if name == "all_return_types":
        return [return_type(each, fields) for each in TABLE if (fields := _fields(each))]
    fields = _fields(name)
    if fields is None:
        raise unknown_name("tenfold.return_types", name, __dir__())
    return return_type(name, fields)


def __dir__() -> list[str]:
    return [name for name in TABLE if _fields(name)]
