"""Adam for sparse gradients: it touches the rows that a gradient stores, and no others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenfold.autograd.grad_mode import enable_grad, no_grad
from tenfold.optim.optimizer import Optimizer, OptionError
from tenfold.optim.terms import require, require_betas, require_options
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten


class SparseAdam(Optimizer):
    """Adam for sparse gradients: only elements that the gradient stores, and their averages, change

    One step:

        table = tn.nn.Embedding(3, 2, sparse=True)
        optimizer = tn.optim.SparseAdam(table.parameters(), lr=0.1)
        table(tn.tensor([1])).sum().backward()
        optimizer.step()
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ):
        require(eps > 0 and (isinstance(lr, Tensor) or lr > 0), "lr and eps must be above 0")
        require_options(lr)
        require_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        for group in self.param_groups:
            if any(param.is_sparse for param in group["params"]):
                raise OptionError("SparseAdam updates dense parameters", help="their gradients are sparse")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters that have gradients; `closure` computes the loss and the gradients first."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with no_grad():
            for group in self.param_groups:
                for param in group["params"]:
                    if param.grad is None:
                        continue
                    if not param.grad.is_sparse:
                        raise OptionError("SparseAdam takes sparse gradients", help="use Adam for dense ones")
                    self._update(param, param.grad.coalesce(), group)
        return loss

    def _update(self, param: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        state = self.state[param]
        if not state:
            state["step"] = 0
            state["exp_avg"], state["exp_avg_sq"] = aten("zeros_like")(param), aten("zeros_like")(param)
        state["step"] += 1
        rows, values = tuple(gradient.indices().unbind(0)), gradient.values()
        if not values.numel():
            return
        values = -values if group["maximize"] else values
        beta1, beta2 = group["betas"]
        average, square = state["exp_avg"][rows], state["exp_avg_sq"][rows]
        average = average + (values - average) * (1 - beta1)
        square = square + (values * values - square) * (1 - beta2)
        state["exp_avg"].index_put_(rows, average)
        state["exp_avg_sq"].index_put_(rows, square)
        count = state["step"]
        size = group["lr"] * (1 - beta2**count) ** 0.5 / (1 - beta1**count)
        param.index_put_(rows, param[rows] - size * average / (square.sqrt() + group["eps"]))
