"""What each family of rows declares, known without loading it.

To install the functions and methods of an op takes no more of its rows than their doors. So what the
families declare is kept beside Python's bytecode, and a process that finds it there loads a family when one
of its names is first looked up. It holds, like bytecode, for the sources that it was made from: for all files
that rows may depend on, by size and time of change. Where there is none, all families are loaded at once, and
what they declare is kept unless Python is told to write no bytecode.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import sys
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Sequence, ValuesView
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tenfold.ops.table import Row

# The folders whose sources rows may depend on: those of the layers below, and the rows' own.
LAYERS = ("base", "flat", "ops", "ops/plain")
_CHANGED = "the sources of op {} have changed since this process began"
ATEN = "aten"
_MISSING: Any = object()


# Where Python finds the rows of a name: its function, by the module of it, "" for the package's, and its name
# there; whether there is a method, and one in place; the words of the fact `forms`.
Doors = tuple[tuple[str, str] | None, bool, bool, tuple[str, ...]]


def doors_of(rows: Sequence[Row]) -> Doors:
    function = next((row for row in rows if row.function), None)
    method = next((row for row in rows if row.method), None)
    forms = {
        form: None for row in rows for form in row.forms.split() if not (row.alias_of and form == "foreach")
    }
    return (
        (function.module or "", function.python_name) if function else None,
        method is not None and not method.module,
        any(row.inplace for row in rows),
        tuple(forms),
    )


# Of a name whose rows are not all declared yet: its families, its overloads in order, and its doors.
Late = tuple[tuple[str, ...], tuple[str, ...], Doors]


class Table(dict[str, "list[Row]"]):
    """The rows of a namespace by their names. The families of a name load when it is looked up, and all of
    them when the table is iterated over."""

    def __init__(self) -> None:
        super().__init__()
        self._late: dict[str, Late] = {}
        self._order: tuple[str, ...] = ()  # of the names that were known before they were declared
        self._declared: dict[str, dict[str, Row]] = {}  # of late names, the rows so far by overload

    def expect(self, names: dict[str, Late]) -> None:
        """Know what families declare that are not loaded yet."""
        self._late, self._order = names, tuple(names)

    def add(self, row: Row) -> bool:
        """Take in a row; whether nothing was known of it before."""
        late = self._late.get(row.name) if row.is_own else None
        if late is None:
            rows = self.setdefault(row.name, [])
            before = next((i for i, each in enumerate(rows) if each.overload == row.overload), None)
            if before is None:
                rows.append(row)
            elif row.is_own and rows[before].home == row.home and rows[before].scope is not row.scope:
                rows[before] = row  # the import of its family was interrupted, and is made again
            else:
                raise TypeError(f"op {row.qualified} is declared twice")
            return before is None
        _, overloads, _ = late
        if row.overload not in overloads:
            raise RuntimeError(_CHANGED.format(row.qualified))
        declared = self._declared.setdefault(row.name, {})
        declared[row.overload] = row
        if len(declared) == len(overloads):
            super().__setitem__(row.name, [declared[overload] for overload in overloads])
            self._late.pop(row.name, None)  # after that: another thread finds it in one place or the other
        return False

    def doors(self, name: str) -> Doors:
        late = self._late.get(name)
        return late[2] if late is not None else doors_of(self[name])

    def names(self) -> list[str]:
        """All names in order, without loading their rows."""
        late, declared = self._late, super().__contains__
        names = dict.fromkeys((*self._order, *list(super().__iter__())))
        return [name for name in names if name in late or declared(name)]

    def __missing__(self, name: str) -> list[Row]:
        late = self._late.get(name)
        if late is not None:
            _load(late[0])
        rows = super().get(name)
        if rows is None:
            if late is not None:
                raise RuntimeError(_CHANGED.format(name))
            raise KeyError(name)
        return rows

    def whole(self) -> Table:
        """The table with all families loaded that have rows in it."""
        for name in list(self._late):
            self.get(name)
        return self

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self._late or super().__contains__(name)

    def get(self, name: str, default: Any = None) -> Any:
        if name in self._late:
            self[name]
        return super().get(name, default)

    def setdefault(self, name: str, default: Any = None) -> Any:
        self.get(name)
        return super().setdefault(name, default)

    def pop(self, name: str, default: Any = _MISSING) -> Any:
        self.get(name)
        return super().pop(name) if default is _MISSING else super().pop(name, default)

    def __delitem__(self, name: str) -> None:
        self.pop(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.whole().names())

    def __len__(self) -> int:
        self.whole()
        return super().__len__()

    def __eq__(self, other: object) -> bool:
        self.whole()
        return super().__eq__(other)

    def keys(self) -> Any:
        return KeysView(self)

    def values(self) -> Any:
        return ValuesView(self)

    def items(self) -> Any:
        return ItemsView(self)


def _load(families: Iterable[str]) -> None:
    for family in families:
        getattr(sys.modules[__package__], family)


def recall(table: Table, others: dict[str, Table]) -> bool:
    """Fill the table of ATen's ops, and those of other namespaces, with what was kept; whether something was
    that holds for these sources."""
    path = _path()
    if path is None:
        return False
    try:
        with open(path, "rb") as file:
            sources, kept = marshal.loads(file.read())
    except (OSError, ValueError, EOFError, TypeError):
        return False
    if sources is None or sources != _sources():
        return False
    table.expect(kept.pop(ATEN))
    for namespace, names in kept.items():
        others.setdefault(namespace, Table()).expect(names)
    return True


@contextlib.contextmanager
def keeping(table: Table, others: dict[str, Table]) -> Iterator[None]:
    """A block that loads all families; what they declare is kept."""
    sources = _sources()
    yield
    path = _path()
    if path is None or sources is None or sys.dont_write_bytecode:
        return
    home = f"{__package__}."
    kept = {
        namespace: {
            name: (
                tuple(dict.fromkeys([row.home.removeprefix(home).partition(".")[0] for row in rows])),
                tuple([row.overload for row in rows]),
                doors_of(rows),
            )
            for name, rows in table.items()
        }
        for namespace, table in ((ATEN, table), *others.items())
    }
    unfinished = f"{path}.{os.getpid()}"
    with contextlib.suppress(OSError):  # as with bytecode: the folder may be another user's
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(unfinished, "wb") as file:
            file.write(marshal.dumps((sources, kept)))
        os.replace(unfinished, path)


def _path() -> str | None:
    """Where contents are kept: beside the bytecode of the package of families, for the same interpreter."""
    cached = getattr(sys.modules[__package__], "__cached__", None)
    if not cached:
        return None
    folder, name = os.path.split(cached)
    return os.path.join(folder, name.replace("__init__", "contents", 1).removesuffix(".pyc") + ".table")


def _sources() -> list[tuple[str, int, int]] | None:
    """All files that rows may depend on, with their sizes and the times of their last changes. None where
    none are to be seen: in an archive, and in a package of bytecode alone."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    found = []
    try:
        for layer in LAYERS:
            with os.scandir(os.path.join(package, layer)) as files:
                for file in files:
                    if file.name.endswith(".py"):
                        state = file.stat()
                        found.append((f"{layer}/{file.name}", state.st_size, state.st_mtime_ns))
    except OSError:
        return None
    return sorted(found) or None
