"""Gradient descent, plain and with momentum, and its average over time: SGD and ASGD."""

from __future__ import annotations

from typing import Any

from tenfold import flat
from tenfold.base import dtypes
from tenfold.flat import Value
from tenfold.optim.terms import State, counted, directed, require, require_options, times, with_decay
from tenfold.optim.update import Updating
from tenfold.tensor import Tensor


class SGD(Updating):
    """Gradient descent: w ← w - lr·g, with momentum w ← w - lr·b where b ← momentum·b + (1 - dampening)·g

    weight_decay·w is added to g. Whether there is momentum is fixed when a step is recorded; its value is
    read whenever the step runs.

    One step from 1, where the gradient is 1:

        w = tn.ones(2, requires_grad=True)
        optimizer = tn.optim.SGD([w], lr=0.1, momentum=0.9)
        w.sum().backward()
        optimizer.step()
        w.detach()  # [0.9, 0.9]
    """

    numbers = ("lr", "momentum", "dampening", "weight_decay")
    takes_sparse = True
    flags = ("nesterov", "maximize")

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ):
        require_options(lr, momentum=momentum, weight_decay=weight_decay)
        require(
            not nesterov or (momentum > 0 and dampening == 0),
            "nesterov needs a momentum, and no dampening",
        )
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    def initial(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        if not group["momentum"]:
            return {}
        if not group["dampening"]:
            return {"momentum_buffer": (0,)}
        # The first gradient is not dampened: the buffer alone does not tell whether it has been seen.
        started = self.state[param].get("momentum_buffer") is not None
        return {"_started": int(started), "momentum_buffer": (0,)}

    @staticmethod
    def update(param: Value, grad: Value, state: State, options: Any) -> tuple[Value, State]:
        grad = with_decay(directed(grad, options), param, options)
        if "momentum_buffer" not in state:
            return param - times(grad, options.lr), state
        buffer = times(state["momentum_buffer"], options.momentum)
        if "_started" in state:
            started = flat.ne(state["_started"], 0)
            buffer = flat.where(started, buffer + times(grad, 1 - options.dampening), grad)
            state = {**state, "_started": flat.full_like(state["_started"], 1)}
        else:
            buffer = buffer + grad
        step = grad + times(buffer, options.momentum) if options.nesterov else buffer
        return param - times(step, options.lr), {**state, "momentum_buffer": buffer}


class ASGD(Updating):
    """Averaged gradient descent: steps that shrink over time, and the average of the parameters

    w ← (1 - lambd·η)·w - η·g, where η = lr / (1 + lambd·lr·t)^alpha. `state[w]["ax"]` is the average of w
    after the first t0 steps.

    One step from 1, where the gradient is 1:

        w = tn.ones(2, requires_grad=True)
        optimizer = tn.optim.ASGD([w], lr=0.1)
        w.sum().backward()
        optimizer.step()
        w.detach()  # [0.9, 0.9]
    """

    numbers = ("lr", "lambd", "alpha", "t0", "weight_decay")
    flags = ("maximize",)

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ):
        require_options(lr, weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def initial(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        if self.state.get(param):
            return {"step": 0, "eta": 0, "mu": 1, "ax": (0,)}
        return {"step": 0, "eta": float(group["lr"]), "mu": 1, "ax": (0,)}

    @staticmethod
    def update(param: Value, grad: Value, state: State, options: Any) -> tuple[Value, State]:
        step, t = counted(state)
        grad = with_decay(directed(grad, options), param, options)
        eta, mu = (flat.convert(state[name], dtypes.float64) for name in ("eta", "mu"))
        param = times(param, 1 - options.lambd * eta) - times(grad, eta)
        average = state["ax"] + times(param - state["ax"], mu)
        new = {
            "step": step,
            "eta": options.lr / flat.power(1 + options.lambd * options.lr * t, options.alpha),
            "mu": 1 / flat.maximum(t - options.t0, 1),
            "ax": flat.where(flat.eq(mu, 1), param, average),
        }
        return param, {
            **new,
            "eta": flat.convert(new["eta"], step.dtype),
            "mu": flat.convert(new["mu"], step.dtype),
        }
