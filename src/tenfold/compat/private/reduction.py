"""`torch.nn._reduction`: the numbers by which ATen's losses name their reductions."""

from __future__ import annotations

import warnings

from tenfold.base.errors import ArgumentError

NUMBERS = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    if reduction not in NUMBERS:
        raise ArgumentError(f"{reduction} is not a valid value for reduction")
    return NUMBERS[reduction]


def legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """The reduction that the older arguments of losses mean."""
    averaged, reduced = size_average is None or size_average, reduce is None or reduce
    reduction = "none" if not reduced else "mean" if averaged else "sum"
    if emit_warning:
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
            stacklevel=2,
        )
    return reduction


def legacy_get_enum(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> int:
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
