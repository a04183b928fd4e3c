"""Dimensions whose size is open until a program runs: their names, and what is demanded of them."""

from __future__ import annotations

from tenfold.base.errors import ArgumentError


class Dim:
    """A dimension of any size from `min` to `max` that is a multiple of `multiple`. Dimensions of one name
    have one size.

        batch = tenfold.Dim("batch", max=64)
        tenfold.export(model, (x,), dynamic={0: {0: batch}})
    """

    __slots__ = ("max", "min", "multiple", "name")

    def __init__(self, name: str, *, min: int = 1, max: int | None = None, multiple: int = 1):
        if not isinstance(name, str) or not name.isidentifier():
            raise ArgumentError(f"Dim: the name of a dimension is an identifier, not {name!r}")
        for what, number in (("min", min), ("max", max), ("multiple", multiple)):
            if not (type(number) is int and number >= 1) and not (what == "max" and number is None):
                raise ArgumentError(f"Dim: {what} of {name} is a positive number, not {number!r}")
        first = -(-min // multiple) * multiple
        if max is not None and first > max:
            demands = f"from {min} to {max}" + (f" and a multiple of {multiple}" if multiple > 1 else "")
            raise ArgumentError(f"Dim: no size of {name} is {demands}: the constraints contradict each other")
        self.name, self.min, self.max, self.multiple = name, first, max, multiple

    def admits(self, size: int) -> bool:
        return self.min <= size <= (size if self.max is None else self.max) and size % self.multiple == 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dim) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    @property
    def constraints(self) -> dict[str, int | None]:
        """The arguments that it was made with, its name aside."""
        return {"min": self.min, "max": self.max, "multiple": self.multiple}

    @property
    def demands(self) -> str:
        """What is demanded of its size, in words."""
        words = f"at least {self.min}" if self.max is None else f"from {self.min} to {self.max}"
        return words + (f" and a multiple of {self.multiple}" if self.multiple > 1 else "")

    def __repr__(self) -> str:
        options = [f"min={self.min}"] if self.min > 1 else []
        options += [f"max={self.max}"] if self.max is not None else []
        options += [f"multiple={self.multiple}"] if self.multiple > 1 else []
        return f"Dim({', '.join([repr(self.name), *options])})"
