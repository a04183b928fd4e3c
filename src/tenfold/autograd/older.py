"""Names of `torch.autograd` that older scripts use: `Variable`, and the search for anomalies."""

from __future__ import annotations

from typing import Any

from tenfold.errors import ArgumentError, UnsupportedError
from tenfold.source import capture
from tenfold.tensor import Tensor


class _Kind(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)

    def __call__(cls, data: Any, requires_grad: bool = False, volatile: bool = False) -> Tensor:
        if not isinstance(data, Tensor):
            raise ArgumentError(f"takes a Tensor, not {type(data).__name__}").located("Variable", capture())
        return data.detach().requires_grad_(requires_grad)


class Variable(metaclass=_Kind):
    """A tensor: `Variable(x, requires_grad=True)` shares the data of x, and collects gradients."""


class set_detect_anomaly:
    """Refused if it is to be on: an error names the user's line anyway, but NaN is not looked for."""

    def __init__(self, mode: bool, check_nan: bool = True):
        if mode:
            raise UnsupportedError(
                "gradients are computed as one program, in which NaN is not looked for",
                help="an error names the user's line anyway; look for NaN with tenfold.isnan(x.grad).any()",
            ).located("set_detect_anomaly", capture())

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None: ...


def detect_anomaly(check_nan: bool = True) -> set_detect_anomaly:
    """`set_detect_anomaly(True)`."""
    return set_detect_anomaly(True, check_nan)
