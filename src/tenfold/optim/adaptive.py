"""Optimizers whose steps follow the sizes and signs of past gradients: Adagrad, Adadelta, RMSprop, Rprop."""

from __future__ import annotations

from typing import Any

from tenfold import flat
from tenfold.flat import Value
from tenfold.optim.terms import (
    State,
    counted,
    directed,
    plus,
    require,
    require_options,
    squares_mixed,
    times,
    toward,
    with_decay,
)
from tenfold.optim.update import Updating
from tenfold.tensor import Tensor


class Adagrad(Updating):
    """Adagrad: w ← w - lr·g / (√s + eps), where s is the sum of all squared gradients

    lr shrinks as lr / (1 + lr_decay·t).

    One step from 1, where the gradient is 1:

        w = tn.ones(2, requires_grad=True)
        optimizer = tn.optim.Adagrad([w], lr=0.1)
        w.sum().backward()
        optimizer.step()
        w.detach()  # [0.9, 0.9]
    """

    numbers = ("lr", "lr_decay", "eps", "weight_decay")
    takes_sparse = True
    flags = ("maximize",)

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ):
        require_options(
            lr,
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            eps=eps,
        )
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        counters: dict[str, Tensor] = {}
        for group in self.param_groups:
            for param in group["params"]:
                self.begin(param, group, counters)

    def initial(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": 0, "sum": (group["initial_accumulator_value"],)}

    @staticmethod
    def update(param: Value, grad: Value, state: State, options: Any) -> tuple[Value, State]:
        step, t = counted(state)
        grad = with_decay(directed(grad, options), param, options)
        total = state["sum"] + grad * grad
        size = options.lr / (1 + (t - 1) * options.lr_decay)
        return param - times(grad, size) / plus(flat.sqrt(total), options.eps), {"step": step, "sum": total}


class Adadelta(Updating):
    """Adadelta: w ← w - lr·Δ, where Δ = g·√(u + eps) / √(v + eps)

    v is an average of squared gradients and u of squared Δ, in which rho of the old average stays.

    One step from 1, where the gradient is 1:

        w = tn.ones(2, requires_grad=True)
        optimizer = tn.optim.Adadelta([w])
        w.sum().backward()
        optimizer.step()
        w.detach()  # [0.9968, 0.9968]
    """

    numbers = ("lr", "rho", "eps", "weight_decay")
    flags = ("maximize",)

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ):
        require_options(lr, eps=eps, weight_decay=weight_decay)
        require(0 <= rho <= 1, f"rho must lie in [0, 1]: {rho}")
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def initial(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": 0, "square_avg": (0,), "acc_delta": (0,)}

    @staticmethod
    def update(param: Value, grad: Value, state: State, options: Any) -> tuple[Value, State]:
        step, _ = counted(state)
        grad = with_decay(directed(grad, options), param, options)
        mixed = lambda average, new: squares_mixed(average, new, options.rho)
        square = mixed(state["square_avg"], grad)
        root = lambda average: flat.sqrt(plus(average, options.eps))
        change = root(state["acc_delta"]) / root(square) * grad
        new = {"step": step, "square_avg": square, "acc_delta": mixed(state["acc_delta"], change)}
        return param - times(change, options.lr), new


class RMSprop(Updating):
    """RMSprop: w ← w - lr·g / (√v + eps), where v ← alpha·v + (1 - alpha)·g²

    `centered` subtracts the square of the average gradient from v; momentum works on the steps.

    One step from 1, where the gradient is 1:

        w = tn.ones(2, requires_grad=True)
        optimizer = tn.optim.RMSprop([w], lr=0.1)
        w.sum().backward()
        optimizer.step()
        w.detach()  # [0.0, 0.0]
    """

    numbers = ("lr", "momentum", "alpha", "eps", "weight_decay")
    flags = ("centered", "maximize")

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ):
        require_options(lr, eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def initial(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        start: dict[str, Any] = {"step": 0, "square_avg": (0,)}
        if group["momentum"] > 0:
            start["momentum_buffer"] = (0,)
        if group["centered"]:
            start["grad_avg"] = (0,)
        return start

    @staticmethod
    def update(param: Value, grad: Value, state: State, options: Any) -> tuple[Value, State]:
        step, _ = counted(state)
        grad = with_decay(directed(grad, options), param, options)
        square = squares_mixed(state["square_avg"], grad, options.alpha)
        new = {**state, "step": step, "square_avg": square}
        spread = square
        if options.centered:
            mean = new["grad_avg"] = toward(state["grad_avg"], grad, 1 - options.alpha)
            spread = square - mean * mean
        deviation = plus(flat.sqrt(spread), options.eps)
        if "momentum_buffer" not in state:
            return param - times(grad, options.lr) / deviation, new
        buffer = times(state["momentum_buffer"], options.momentum) + grad / deviation
        return param - times(buffer, options.lr), {**new, "momentum_buffer": buffer}


class Rprop(Updating):
    """Resilient backpropagation: steps by the sign of the gradient, w ← w - s·sign(g)

    The step size s of an element grows by etas[1] while the sign stays, and shrinks by etas[0] when it
    changes.

    One step from 1, where the gradient is 1:

        w = tn.ones(2, requires_grad=True)
        optimizer = tn.optim.Rprop([w], lr=0.1)
        w.sum().backward()
        optimizer.step()
        w.detach()  # [0.9, 0.9]
    """

    numbers = ("lr", "etas", "step_sizes")
    flags = ("maximize",)

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ):
        require_options(lr)
        require(0 < etas[0] < 1 < etas[1], f"etas are a factor below 1 and one above, not {etas}")
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def initial(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        if self.state.get(param):
            return {"step": 0, "prev": (0,), "step_size": (0,)}
        return {"step": 0, "prev": (0,), "step_size": (float(group["lr"]),)}

    @staticmethod
    def update(param: Value, grad: Value, state: State, options: Any) -> tuple[Value, State]:
        step, _ = counted(state)
        grad = directed(grad, options)
        shrink, grow, least, most = (
            flat.convert(each, param.dtype) for each in (*options.etas, *options.step_sizes)
        )
        agreement = grad * state["prev"]
        factor = flat.where(agreement > 0, grow, flat.where(agreement < 0, shrink, 1))
        size = flat.clamp(state["step_size"] * factor, least, most)
        grad = flat.where(agreement < 0, 0, grad)
        return param - flat.sign(grad) * size, {"step": step, "prev": grad, "step_size": size}
