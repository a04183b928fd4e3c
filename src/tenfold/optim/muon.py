"""Muon: the momentum of a matrix, made nearly orthogonal, is the step."""

from __future__ import annotations

import math
from typing import Any

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import DTypeError
from tenfold.flat import Value
from tenfold.optim.terms import State, require, require_options, shrunk, times, toward
from tenfold.optim.update import Updating
from tenfold.tensor import Tensor

ADJUSTMENTS = (None, "original", "match_rms_adamw")


class Muon(Updating):
    """Muon: orthogonalized momentum, w ← w - lr·U f(S) Vᵀ, where U S Vᵀ is an average of gradients

    f brings singular values near 1: a polynomial a s + b s³ + c s⁵ of `ns_coefficients`, applied `ns_steps`
    times in bfloat16. It is for weights of hidden layers, which are matrices; others need another optimizer.

    One step:

        w = tn.ones(2, 3, requires_grad=True)
        optimizer = tn.optim.Muon([w], lr=0.1)
        w.sum().backward()
        optimizer.step()
    """

    elementwise = False
    numbers = ("lr", "weight_decay", "momentum", "ns_coefficients", "eps")
    flags = ("nesterov", "ns_steps", "adjust_lr_fn")

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ):
        require_options(lr, momentum=momentum, weight_decay=weight_decay)
        require(adjust_lr_fn in ADJUSTMENTS, f"adjust_lr_fn is one of {ADJUSTMENTS}, not {adjust_lr_fn!r}")
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for param in group["params"]:
                require(param.ndim == 2, f"Muon is for matrices, not for a parameter of {list(param.shape)}")

    def initial(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        if param.dtype.is_complex:
            raise DTypeError("Muon has no steps for complex parameters", help="use Adam")
        require(group["ns_steps"] < 100, f"ns_steps must be less than 100: {group['ns_steps']}")
        require(len(group["ns_coefficients"]) == 3, "ns_coefficients are three numbers")
        return {"momentum_buffer": (0,)}

    @staticmethod
    def update(param: Value, grad: Value, state: State, options: Any) -> tuple[Value, State]:
        momentum = options.momentum
        average = toward(state["momentum_buffer"], grad, 1 - momentum)
        direction = toward(grad, average, momentum) if options.nesterov else average
        turned = flat.convert(_orthogonal(direction, options), param.dtype)
        step = options.lr * _scale(param.shape, options.adjust_lr_fn)
        return shrunk(param, options) - times(turned, step), {"momentum_buffer": average}


def _scale(shape: tuple[int, ...], adjustment: str | None) -> float:
    """What keeps the size of a step's elements the same for matrices of all shapes."""
    rows, columns = shape
    if adjustment == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, columns))
    return math.sqrt(max(1, rows / columns))


def _orthogonal(matrix: Value, options: Any) -> Value:
    """The matrix with singular values near 1, by steps of Newton and Schulz; each is rounded to bfloat16."""
    tall = matrix.shape[0] > matrix.shape[1]
    x = _rounded(flat.transpose(matrix, (1, 0)) if tall else matrix)
    a, b, c = (flat.convert(ns_coefficient, dtypes.float32) for ns_coefficient in options.ns_coefficients)
    size = _rounded(flat.sqrt(flat.sum(x * x)))
    x = _rounded(x / flat.maximum(size, _rounded(flat.convert(options.eps, dtypes.float32))))
    for _ in range(options.ns_steps):
        gram = _rounded(flat.dot_general(x, x, ((1,), (1,))))
        change = _rounded(gram * b + flat.dot_general(gram, gram, ((1,), (0,))) * c)
        x = _rounded(x * a + flat.dot_general(change, x, ((1,), (0,))))
    return flat.transpose(x, (1, 0)) if tall else x


def _rounded(x: Value) -> Value:
    """In the precision of bfloat16, to go on with in float32."""
    return flat.convert(flat.convert(x, dtypes.bfloat16), dtypes.float32)
