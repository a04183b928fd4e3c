"""How ops are written in other ops on the way to a dialect that lacks them, read from the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tenfold.exporting import expansion_gathers, expansion_steps
from tenfold.exporting.rewriting import Expansions
from tenfold.ops.table import Row, all_rows
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten

Expansion = Callable[..., Sequence[Tensor]]

# The functions that a row may name besides ATen's.
STEPS: dict[str, Callable[..., Any]] = {
    name: function
    for module in (expansion_steps, expansion_gathers)
    for name, function in vars(module).items()
    if not name.startswith("_") and getattr(function, "__module__", "") == module.__name__
}


class _Words(dict[str, Any]):
    """What the names in a row's expression mean: its arguments, else longer steps, else ATen's functions."""

    def __missing__(self, name: str) -> Any:
        return STEPS[name] if name in STEPS else aten(name)


def _expression(text: str) -> Expansion:
    """An expression of a row; one that is a function takes the arguments by their names."""
    code = compile(text, f"<expansion {text}>", "eval")

    def expansion(**arguments: Any) -> Sequence[Tensor]:
        result = eval(code, {"__builtins__": {}}, _Words(arguments))
        if not isinstance(result, Tensor) and callable(result):
            result = result(**arguments)
        return [result] if isinstance(result, Tensor) else list(result)

    return expansion


def _by_first_name(row: Row) -> Expansion:
    """An alias, written by the first name of its op."""
    positional = [argument.name for argument in row.schema.positional]

    def expansion(**arguments: Any) -> Sequence[Tensor]:
        named = {name: value for name, value in arguments.items() if name not in positional}
        ordered = [arguments[name] for name in positional if name in arguments]
        result = aten(row.alias_of or "")(*ordered, **named)
        return [result] if isinstance(result, Tensor) else list(result)

    return expansion


def _stated(fact: str) -> dict[str, Expansion]:
    """The expansions that rows state as this fact, by the ops' names."""
    texts = {row.qualified: getattr(row, fact) for row in all_rows()}
    return {name: _expression(text) for name, text in texts.items() if text not in ("", "own name")}


def _aliases() -> dict[str, Expansion]:
    plain = [row for row in all_rows() if row.alias_of and not (row.torch_dialect or row.host)]
    return {row.qualified: _by_first_name(row) for row in plain}


# For the torch dialect, which lacks these ops or means something else by their names; for what torch-mlir
# lowers it to; and for StableHLO where sizes are open.
FOR_TORCH: Expansions = {**_aliases(), **_stated("torch_dialect")}
FOR_LOWERING: Expansions = {**FOR_TORCH, **_stated("torch_lowering")}
FOR_OPEN_STABLEHLO: Expansions = _stated("open_stablehlo")
