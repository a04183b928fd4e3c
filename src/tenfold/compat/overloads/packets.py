"""Namespaces, packets and overloads: the objects behind `tenfold.ops.aten.add.Tensor`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tenfold.base.dtypes import BY_NAME
from tenfold.base.errors import ArgumentError, TenfoldError, UnknownName, did_you_mean
from tenfold.base.layouts import channels_last, channels_last_3d, contiguous_format, preserve_format, strided
from tenfold.base.source import capture
from tenfold.compat.overloads.schemas import out_text, written_text
from tenfold.mlir.torch_types import SCALAR_TYPES
from tenfold.ops.contents import Table
from tenfold.ops.plain import PLAIN, PlainRow
from tenfold.ops.schema import Schema, parse
from tenfold.ops.table import OTHERS, TABLE, Row
from tenfold.tensor import dispatch


class Overload:
    """One schema, and what calls it."""

    def __init__(self, namespace: str, name: str, overload: str, call: Callable[..., Any], text: str):
        self.namespace = namespace
        self.__name__ = f"{name}.{overload or 'default'}"
        self.__qualname__ = self.__name__
        self._name = name
        self._overloadname = overload or "default"
        self._call = call
        self._text = text
        self.__doc__ = text
        self._overloadpacket: Any = None  # set by its packet

    @functools.cached_property
    def _schema(self) -> Schema:
        return parse(self._text)

    @property
    def overloadpacket(self) -> Any:
        return self._overloadpacket

    def name(self) -> str:
        """ATen's own name, such as "aten::add.Tensor"."""
        dotted = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"{self.namespace}::{self._name}{dotted}"

    def __deepcopy__(self, memo: Any) -> Any:
        return self  # as a function is

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._call(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Overload {self.namespace}.{self.__name__}>"

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"


class Packet:
    """The overloads of a name. Called itself, it chooses the one that fits."""

    def __init__(
        self,
        namespace: str,
        name: str,
        overloads: dict[str, Overload],
        call: Callable[..., Any],
        rows: Sequence[Row] = (),
    ):
        self.__name__ = self.__qualname__ = name
        self._namespace = namespace
        self._overloads = overloads
        for overload in overloads.values():
            overload._overloadpacket = self
        self._rows = {row.overload: row for row in rows}  # those that could write to an `out`
        self._call = call

    def overloads(self) -> list[str]:
        return [overload or "default" for overload in self._overloads]

    def __deepcopy__(self, memo: Any) -> Any:
        return self  # as a function is

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._call(*args, **kwargs)

    def __getattr__(self, overload: str) -> Overload:
        if overload.startswith("__"):  # as copy and pickle ask, before there is anything to look in
            raise AttributeError(overload)
        key = "" if overload == "default" else overload
        found = self._overloads.get(key)
        if found is None and overload.endswith("out"):
            found = self._out(key)
        if found is None:
            name = f"{self._namespace}::{self.__name__}"
            known = ", ".join(self.overloads())
            raise UnknownName(f"{name} has no overload {overload!r}", help=f"it has {known}").located(
                "", capture()
            )
        return found

    def _out(self, overload: str) -> Overload | None:
        """`add.out`: the overload of that name less `out`, or whichever fits, with its `out=` given."""
        stem = overload.removesuffix("out").removesuffix("_")
        if not self._rows or (stem not in self._rows and overload != "out"):
            return None
        call = self._call if overload == "out" else self._overloads[stem]

        def write(*args: Any, **kwargs: Any) -> Any:
            if kwargs.get("out") is None:
                raise ArgumentError("out= is missing", help="give the tensor to write to").located(
                    self.__name__, capture()
                )
            return call(*args, **kwargs)

        rows = list(self._rows.values())
        stated = [row for row in rows if row.out_overload == overload]
        usual = [self._rows[name] for name in (stem, "Tensor") if name in self._rows]
        text = out_text([*stated, *usual, *rows][0], overload)
        found = Overload(self._namespace, self.__name__, overload, write, text)
        found._overloadpacket = self
        return found

    def __dir__(self) -> list[str]:
        return self.overloads()

    def __str__(self) -> str:
        return f"{self._namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<Packet {self._namespace}.{self.__name__}: {', '.join(self.overloads())}>"


class Namespace:
    """The ops of a library, such as `aten`, by name."""

    def __init__(self, name: str, table: dict[str, list[Row]]):
        self._name = name
        self._table = table
        self._plain = PLAIN.get(name, {})

    def __getattr__(self, name: str) -> Packet:
        packet = self._packet(name)
        if packet is None:
            raise UnknownName(
                f"{self._name} has no op {name!r}", help=lambda: self._suggestion(name)
            ).located("", capture())
        if self._name in ("aten", "prim"):  # those of others may be declared anew
            setattr(self, name, packet)
        return packet

    def _suggestion(self, name: str) -> str | None:
        if dir(self):
            return did_you_mean(name, dir(self))
        return did_you_mean(self._name, [known for known in NAMESPACES if dir(NAMESPACES[known])])

    def _packet(self, name: str) -> Packet | None:
        rows, plain = self._table.get(name, []), self._plain.get(name, [])
        if rows or plain:
            overloads = {row.overload: self._overload(row) for row in rows}
            overloads |= {row.overload: self._plain_overload(row) for row in plain}
            return Packet(self._name, name, overloads, _chosen(name, rows, plain), rows)
        base = name.removesuffix("_")
        written = self._table.get(base, [])
        if name.endswith("_") and (_writes(written)):
            call = dispatch.inplace_method(base, written)
            overloads = {row.overload: self._written(name, row) for row in written}
            return Packet(self._name, name, overloads, call)
        return None

    def _overload(self, row: Row) -> Overload:
        call = _of_input(dispatch.function(row.name, [row]), row.schema)
        return Overload(self._name, row.name, row.overload, call, row.text)

    def _plain_overload(self, row: PlainRow) -> Overload:
        def call(*args: Any, **kwargs: Any) -> Any:
            args, kwargs = _plain_numbers(row.schema, args, kwargs)
            return row(*args, **kwargs)

        return Overload(self._name, row.name, row.overload, _located(row.name, call), row.text)

    def _written(self, name: str, row: Row) -> Overload:
        call = dispatch.inplace_method(row.name, [row])
        return Overload(self._name, name, row.overload, call, written_text(row.text, name))

    def __dir__(self) -> list[str]:
        inplace = [name + "_" for name, rows in self._table.items() if _writes(rows)]
        return sorted({*self._table, *self._plain, *inplace})

    def __repr__(self) -> str:
        return f"<Namespace {self._name}>"


def _writes(rows: Sequence[Row]) -> bool:
    """Whether ATen has overloads that write the result into the first argument."""
    return any(row.inplace or row.forms not in ("", "foreach") for row in rows)


def _chosen(name: str, rows: Sequence[Row], plain: Sequence[PlainRow]) -> Callable[..., Any]:
    """A call of a name: of the plain overload that fits, or of one of the table's."""
    tensors = _of_input(dispatch.function(name, rows), rows[0].schema) if rows else None

    def call(*args: Any, **kwargs: Any) -> Any:
        for row in plain:
            bound = row.bind(*_plain_numbers(row.schema, args, kwargs))
            if bound is not None:
                return _located(name, row.function)(*bound)
        if tensors is None:
            given = ", ".join([type(each).__name__ for each in (*args, *kwargs.values())])
            known = "; ".join([str(row.schema) for row in plain])
            raise ArgumentError(f"no overload takes ({given})", help=f"there is {known}").located(
                name, capture()
            )
        return tensors(*args, **kwargs)

    return call


def _of_input(function: Callable[..., Any], schema: Schema) -> Callable[..., Any]:
    """A function of tensors, whose `self`, as schemas call it, is `input` in Python; dtypes and layouts may
    be the numbers that ATen has for them."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if "self" in kwargs:
            kwargs["input"] = kwargs.pop("self")
        args, kwargs = _plain_numbers(schema, args, kwargs)
        return function(*args, **kwargs)

    return call


def _plain_numbers(
    schema: Schema, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call with dtypes, layouts and formats in place of the numbers that ATen has for
    them."""
    coded, places = _coded(schema)
    if not coded:
        return args, kwargs
    args = tuple([_decoded(base, arg) for base, arg in zip(places, args)]) + args[len(places) :]
    return args, {name: _decoded(coded.get(name), each) for name, each in kwargs.items()}


@functools.cache
def _coded(schema: Schema) -> tuple[dict[str, str], list[str | None]]:
    """The arguments that ATen takes as numbers: their types by name, and by position."""
    coded = {
        argument.name: argument.type.base for argument in schema.arguments if argument.type.base in _CODES
    }
    return coded, [coded.get(each.name) for each in schema.positional]


# ATen's numbers for dtypes, layouts and formats of memory.
_CODES: dict[str, dict[int, Any]] = {
    "ScalarType": {code: BY_NAME[name] for name, code in SCALAR_TYPES.items() if name in BY_NAME},
    "Layout": {0: strided},
    "MemoryFormat": {0: contiguous_format, 1: preserve_format, 2: channels_last, 3: channels_last_3d},
}


def _decoded(base: str | None, value: Any) -> Any:
    return _CODES[base].get(value, value) if base is not None and type(value) is int else value


def _located(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TenfoldError as error:
            raise error.located(name, capture()) from None

    return call


NAMESPACES = {
    "aten": Namespace("aten", TABLE),
    "prim": Namespace("prim", {}),
    # Whole, because their families declare plain ops too.
    **{name: Namespace(name, table.whole()) for name, table in OTHERS.items()},
}


def namespace(name: str) -> Namespace | None:
    """The ops of a library: PyTorch's own, or one that a package has declared or may still declare, as
    packages ask whether an extension is loaded by looking for its ops."""
    if name not in NAMESPACES and not name.startswith("__"):
        NAMESPACES[name] = Namespace(name, OTHERS.setdefault(name, Table()))
    return NAMESPACES.get(name)
