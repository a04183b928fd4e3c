"""SSA values of a module under construction: operands and results of ops made by hand that are not
tensors of a known type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.base.errors import TraceError
from tenfold.base.source import capture

if TYPE_CHECKING:
    from tenfold.exporting.building import Builder

__all__ = ["SSAValue"]


class SSAValue:
    """A value of a module under construction. Printing it shows the op that makes it; operators on numbers
    build the dialect's ops, `n * 2` a `torch.aten.mul.int`."""

    __slots__ = ("builder", "mlir")

    def __init__(self, builder: Builder, mlir: Any):
        self.builder = builder
        self.mlir = mlir  # the value of torch-mlir's own bindings

    @property
    def type(self) -> str:
        """The type, as the dialect writes it: `!torch.int`."""
        return str(self.mlir.type)

    @property
    def op(self) -> str | None:
        """The name of the op that makes the value; None of an argument of a function or region."""
        owner = self.mlir.owner
        return str(owner.name) if hasattr(owner, "results") else None

    @property
    def uses(self) -> list[str]:
        """The names of the ops that use the value so far."""
        return [str(use.owner.name) for use in self.mlir.uses]

    def __str__(self) -> str:
        return self.builder.shown(self.mlir)

    def __repr__(self) -> str:
        return f"<SSAValue {self}>"

    def _call(self, name: str, *operands: Any) -> Any:
        return self.builder.op(f"aten.{name}", *operands)

    def __add__(self, other: Any) -> Any:
        return self._call("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return self._call("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return self._call("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self._call("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return self._call("mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return self._call("mul", other, self)

    def __truediv__(self, other: Any) -> Any:
        return self._call("div", self, other)

    def __floordiv__(self, other: Any) -> Any:
        return self._call("floordiv", self, other)

    def __mod__(self, other: Any) -> Any:
        return self._call("remainder", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._call("div", other, self)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._call("floordiv", other, self)

    def __rmod__(self, other: Any) -> Any:
        return self._call("remainder", other, self)

    def __pow__(self, other: Any) -> Any:
        return self._call("pow", self, other)

    def __rpow__(self, other: Any) -> Any:
        return self._call("pow", other, self)

    def __neg__(self) -> Any:
        return self._call("neg", self)

    def __lt__(self, other: Any) -> Any:
        return self._call("lt", self, other)

    def __le__(self, other: Any) -> Any:
        return self._call("le", self, other)

    def __gt__(self, other: Any) -> Any:
        return self._call("gt", self, other)

    def __ge__(self, other: Any) -> Any:
        return self._call("ge", self, other)

    def __eq__(self, other: object) -> Any:
        return self._call("eq", self, other)

    def __ne__(self, other: object) -> Any:
        return self._call("ne", self, other)

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise TraceError(
            f"a {self.type} of a module has no value while the module is built",
            help="build the choice: module.if_(condition, on_true, on_false)",
        ).located("bool", capture())
