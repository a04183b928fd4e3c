"""The docstrings of functions that come from the table: what each computes, its schemas, and an example.

The shapes in the example are what the lowering infers, so a docstring is written when it is read:
`Docstring` is a text that waits until then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tenfold.base.devices import Device
from tenfold.base.dtypes import BY_NAME
from tenfold.base.errors import TenfoldError
from tenfold.base.late import on_first_use
from tenfold.flat.ir import TensorType
from tenfold.ops.samples import Matrices, S, T
from tenfold.ops.schema import MISSING, Argument
from tenfold.ops.table import Row
from tenfold.tensor.tensor import Tensor
from tenfold.trace.graph import Value

with on_first_use(__name__):
    from tenfold.ops.signatures import overloads


__all__ = ["Docstring", "example", "signatures", "written"]


class Docstring(str):
    """A docstring that is written when it is read. `help` and editors ask for `expandtabs` or its text."""

    _write: Callable[[], str]
    _text: str | None

    def __new__(cls, write: Callable[[], str]) -> Docstring:
        docstring = super().__new__(cls, "")
        docstring._write, docstring._text = write, None
        return docstring

    def __str__(self) -> str:
        if self._text is None:
            self._text = self._write()
        return self._text

    def __repr__(self) -> str:
        return repr(str(self))

    def __contains__(self, part: object) -> bool:
        return isinstance(part, str) and part in str(self)

    def __eq__(self, other: object) -> bool:
        return str(self) == other

    def __hash__(self) -> int:
        return hash(str(self))

    def __bool__(self) -> bool:
        return True

    def __len__(self) -> int:
        return len(str(self))

    def expandtabs(self, *args: Any, **kwargs: Any) -> str:
        return str(self).expandtabs(*args, **kwargs)

    def strip(self, *args: Any) -> str:
        return str(self).strip(*args)

    def split(self, *args: Any, **kwargs: Any) -> list[str]:
        return str(self).split(*args, **kwargs)

    def splitlines(self, *args: Any, **kwargs: Any) -> list[str]:
        return str(self).splitlines(*args, **kwargs)

    def partition(self, separator: str, /) -> tuple[str, str, str]:
        return str(self).partition(separator)


MODULES = {None: "tn", "nn": "tn.nn.functional"}


def written(call: Callable[..., Any], name: str, rows: Sequence[Row], *, method: bool) -> str:
    """The docstring of a function: meaning, signatures, schemas, an example with its shapes."""
    lines = [*(meanings(rows) or [f"`{name}`, an op of yours without a docstring."]), ""]
    lines += [f"    {name}{signature}" for signature in signatures(rows, method=method)]
    lines += ["", "Schemas:", *[f"    {row.namespace}::{row.text.rpartition('::')[2]}" for row in rows]]
    shown = example(call, name, rows, method=method)
    if shown is not None:
        code, shapes = shown
        lines += ["", "Example:", "    >>> import tenfold as tn", f"    >>> {code}  # {shapes}"]
    return "\n".join(lines)


def meanings(rows: Sequence[Row]) -> list[str]:
    """What the overloads of an op compute, each text once."""
    return list(dict.fromkeys(row.doc for row in rows if row.doc))


def signatures(rows: Sequence[Row], *, method: bool) -> list[str]:
    """The Python signatures of some rows, as people read them."""
    return [_plain(overload) for overload in overloads(rows, method=method)]


def _plain(signature: str) -> str:
    """A signature without the underscores that stubs need."""
    for word in ("_Number", "_int", "_float", "_bool", "_str", "_complex", "_DType", "_Device", "_Sequence",
                 "_Generator", "_type", "_Any"):  # fmt: skip
        signature = signature.replace(f" {word}", f" {word[1:]}").replace(f"[{word}", f"[{word[1:]}")
        signature = signature.replace(f"*{word}", f"*{word[1:]}")
    return signature.replace("DType | type[Any]", "dtype").replace("Device | str | int", "device")


def example(
    call: Callable[..., Any], name: str, rows: Sequence[Row], *, method: bool
) -> tuple[str, str] | None:
    """A call that runs, and the types of what goes in and comes out; None where none is found.

    The call is tried on tensors without data, so nothing is computed. An op that draws random numbers is not
    tried: it would change the generator's state.
    """
    module = rows[0].module
    address = MODULES.get(module, f"tn.{module}")
    for row in rows:
        for sample in [] if row.host or row.random else _samples(row):
            texts = [_text(arg) for arg in sample.args]
            words = [f"{key}={_text(value)}" for key, value in sample.kwargs.items()]
            try:
                values = [_value(arg) for arg in sample.args]
                keywords = {key: _value(keyword) for key, keyword in sample.kwargs.items()}
                result = call(*values, **keywords)
            except (TenfoldError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
                continue
            argument_types = [
                _type_of(tensor) for value in (*values, *keywords.values()) for tensor in _tensors(value)
            ]
            receiver, *others = texts if method else [address, *texts]
            text = f"{receiver}.{name}({', '.join([*others, *words])})"
            return text, f"{', '.join(argument_types)} -> {_type_of(result)}" if argument_types else _type_of(
                result
            )
    return None


def _samples(row: Row) -> list[S]:
    """Calls to try: the row's own samples, then arguments that follow from the schema."""
    own = row.samples() if row.samples else []
    own = [sample for sample in own if all(0 not in tensor.shape for tensor in _shapes(sample))]
    own.sort(key=lambda sample: max([len(tensor.shape) for tensor in _shapes(sample)], default=0) > 3)
    arguments = [a for a in row.schema.positional if a.default is MISSING]
    guesses = [S(*[_guess(a, rank, None) for a in arguments]) for rank in (2, 1, 3, 4)]
    guesses += [S(*[_guess(a, 2, dtype) for a in arguments]) for dtype in ("int64", "complex64")]
    return [sample for sample in (*own[:4], *guesses) if isinstance(sample, S)]


_NUMBERS = {"int": 1, "float": 0.5, "Scalar": 2, "bool": True}


def _guess(argument: Argument, rank: int, dtype: str | None) -> Any:
    kind = argument.type.kind
    if kind == "Tensor":
        dtype = "int64" if argument.name in ("index", "indices", "target") else dtype
        one = T(*(2, 3, 4, 5)[:rank], dtype=dtype, low=0, high=2)
        return [one, one] if argument.type.is_list else one
    value = 0 if argument.name.startswith(("dim", "axis")) else _NUMBERS.get(kind)
    return [value] if argument.type.is_list else value


def _shapes(sample: S) -> list[T]:
    return [t for value in (*sample.args, *sample.kwargs.values()) for t in _tensors(value)]


def _tensors(value: Any) -> list[Any]:
    several = value if isinstance(value, (list, tuple)) else [value]
    return [element for element in several if isinstance(element, (T, Tensor))]


def _text(value: Any) -> str:
    """An argument as a user writes it."""
    if isinstance(value, T):
        shape = ", ".join(map(str, value.shape))
        if value.dtype is None:
            if isinstance(value, Matrices) and value.positive:
                return f"tn.eye({value.shape[-1]})"
            return f"tn.rand({shape})" if value.shape else "tn.rand(())"
        if value.dtype.startswith(("int", "uint")):
            low, high = int(value.low or 0), int(2 if value.high is None else value.high)
            size = f"({shape}{',' * (len(value.shape) == 1)})"
            return f"tn.randint({low}, {max(high, low + 1)}, {size}, dtype=tn.{value.dtype})"
        return f"tn.ones(({shape}{',' * (len(value.shape) == 1)}), dtype=tn.{value.dtype})"
    if isinstance(value, (list, tuple)):
        parts = [_text(element) for element in value]
        inside = ", ".join(map(str, parts))
        return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' * (len(parts) == 1)})"
    name = getattr(value, "name", None)
    return f"tn.{name}" if name in BY_NAME and value is BY_NAME[name] else repr(value)


def _value(value: Any) -> Any:
    """A tensor of the sample's type, without data."""
    if isinstance(value, T):
        shape = (value.shape[-1],) * 2 if isinstance(value, Matrices) and value.positive else value.shape
        type_ = TensorType(BY_NAME[value.dtype or "float32"], tuple(shape))
        return Tensor(Value(type_, Device("cpu").resolved))
    return type(value)([_value(element) for element in value]) if isinstance(value, (list, tuple)) else value


def _type_of(result: Any) -> str:
    if isinstance(result, Tensor):
        return str(result.current().type)
    if isinstance(result, (tuple, list)):
        return f"({', '.join(map(_type_of, result))})"
    return type(result).__name__
