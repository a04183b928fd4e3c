"""Adafactor: of a matrix of squared gradients it keeps the averages of rows and columns alone."""

from __future__ import annotations

from typing import Any

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import DTypeError
from tenfold.flat import Value
from tenfold.optim.terms import State, counted, directed, require, require_options, shrunk, times, toward
from tenfold.optim.update import Updating
from tenfold.tensor import Tensor


class Adafactor(Updating):
    """Adafactor: steps relative to a parameter's size, with memory for a row and a column only

    The average of squared gradients of a matrix is estimated from its row and column means. `d` bounds how
    large a step may be.

    One step from 1, where the gradient is 1:

        w = tn.ones(2, requires_grad=True)
        optimizer = tn.optim.Adafactor([w], lr=0.1)
        w.sum().backward()
        optimizer.step()
        w.detach()  # [0.9, 0.9]
    """

    elementwise = False
    numbers = ("lr", "beta2_decay", "eps", "d", "weight_decay")
    flags = ("maximize", "default_eps")

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ):
        require_options(lr, weight_decay=weight_decay)
        require(beta2_decay <= 0, f"beta2_decay must not be positive: {beta2_decay}")
        require(eps[0] is None or eps[0] >= 0, f"eps[0] must not be negative: {eps[0]}")
        require(eps[1] >= 0, f"eps[1] must not be negative: {eps[1]}")
        require(d >= 1, f"d must be at least 1: {d}")
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def decided(self, group: dict[str, Any]) -> tuple[Any, ...]:
        return group["maximize"], group["eps"][0] is None

    def initial(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        shape = tuple(param.shape)
        if param.dtype.is_complex:
            raise DTypeError("Adafactor has no steps for complex parameters", help="use Adam")
        if len(shape) < 2:
            return {"step": 0, "variance": (0,)}
        rows, columns = (*shape[:-1], 1), (*shape[:-2], 1, shape[-1])
        return {"step": 0, "row_var": (0, rows), "col_var": (0, columns)}

    @staticmethod
    def update(param: Value, grad: Value, state: State, options: Any) -> tuple[Value, State]:
        step, t = counted(state)
        grad = directed(grad, options)
        eps1, eps2 = options.eps
        if options.default_eps:
            eps1 = flat.constant(float(dtypes.finfo(param.dtype).eps), dtypes.float64)
        weight = flat.power(t, options.beta2_decay)
        size = flat.convert(_size(param), dtypes.float64)
        relative = flat.maximum(eps2, size) * flat.minimum(options.lr, 1 / flat.sqrt(t))
        param = shrunk(param, options)
        new = {**state, "step": step}
        if "variance" in state:
            estimate = new["variance"] = toward(state["variance"], grad * grad, weight)
        else:
            rows = new["row_var"] = toward(state["row_var"], _mean_square(grad, -1), weight)
            columns = new["col_var"] = toward(state["col_var"], _mean_square(grad, -2), weight)
            mean = flat.sum(rows, -2, True) / float(rows.shape[-2])
            estimate = rows * columns / flat.maximum(mean, flat.convert(eps1, mean.dtype))
        change = grad * flat.rsqrt(flat.maximum(estimate, flat.convert(eps1 * eps1, estimate.dtype)))
        bound = flat.maximum(flat.convert(_size(change), dtypes.float64) / options.d, 1)
        return param - times(change, relative / bound), new


def _size(x: Value) -> Value:
    """The root of the mean of squares."""
    return flat.sqrt(flat.sum(x * x) / float(max(x.numel, 1)))


def _mean_square(x: Value, dim: int) -> Value:
    return flat.sum(x * x, dim, True) / float(x.shape[dim])
