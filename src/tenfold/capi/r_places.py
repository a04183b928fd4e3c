"""Which arguments and results are dimensions or positions, which R counts from 1."""

from __future__ import annotations

from collections.abc import Mapping

from tenfold.ops.schema import Argument, Schema

__all__ = ["counts_from_one", "result_places"]

_DIMENSIONS = {
    "dim", "dims", "dim0", "dim1", "dim2", "start_dim", "end_dim", "axis", "axis0", "axis1", "source",
    "destination", "dims_self", "dims_other",
}  # fmt: skip
# Whole numbers and tensors that are positions, by what the operator's name starts with.
_NUMBERS = {
    "select": ("index",),
    "narrow": ("start",),
    "slice": ("start",),
    "embedding": ("padding_idx",),
    "nll_loss": ("ignore_index",),
    "cross_entropy_loss": ("ignore_index",),
}
_TENSORS = {
    "nll_loss": ("target",),
    "cross_entropy_loss": ("target",),
    "multi_margin_loss": ("target",),
    "one_hot": ("self",),
    "embedding_bag": ("offsets",),
    "_embedding_bag": ("offsets",),
    "narrow": ("start",),
}
# What pooling calls indices are offsets into a window's plane, given back to unpooling as they are.
_OFFSETS = ("max_pool", "max_unpool", "fractional_max", "adaptive_max", "segment_reduce")
_RESULTS = {
    "argmax": (0,), "argmin": (0,), "argsort": (0,), "argwhere": (0,), "nonzero": (0,), "multinomial": (0,),
    "randperm": (0,), "tril_indices": (0,), "triu_indices": (0,), "_unique": (1,), "_unique2": (1,),
    "unique_dim": (1,), "unique_consecutive": (1,), "nonzero_static": (0,), "nonzero_numpy": (0,),
}  # fmt: skip


def counts_from_one(schema: Schema, argument: Argument) -> bool:
    """Whether an argument is a dimension or a position, or a tensor of positions."""
    name, kind = argument.name, argument.type.kind
    if kind == "int":
        return name in _DIMENSIONS or _listed(_NUMBERS, schema.name, name)
    if kind != "Tensor":
        return False
    named = name in ("index", "indices") and not schema.name.startswith(_OFFSETS)
    return named or _listed(_TENSORS, schema.name, name)


def result_places(schema: Schema) -> tuple[int, ...]:
    """Which results are tensors of positions."""
    if schema.name in _RESULTS:
        return _RESULTS[schema.name]
    if schema.name.startswith(_OFFSETS):
        return ()
    return tuple(i for i, each in enumerate(schema.returns) if each.name == "indices")


def _listed(table: Mapping[str, tuple[str, ...]], operator: str, name: str) -> bool:
    return any(operator.startswith(start) and name in names for start, names in table.items())
