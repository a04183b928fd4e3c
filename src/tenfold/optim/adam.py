"""Optimizers with averages of gradients and of their squares: Adam, AdamW, Adamax, NAdam, RAdam."""

from __future__ import annotations

from typing import Any

from tenfold import flat
from tenfold.base.errors import UnsupportedError
from tenfold.flat import Value
from tenfold.optim.terms import (
    State,
    counted,
    directed,
    over,
    plus,
    require_betas,
    require_options,
    shrunk,
    squares_mixed,
    times,
    toward,
    with_decay,
)
from tenfold.optim.update import Updating
from tenfold.tensor import Tensor

Betas = tuple[float | Tensor, float | Tensor]


def _decayed(param: Value, grad: Value, options: Any) -> tuple[Value, Value]:
    """Weight decay, of the parameter itself or as a part of the gradient."""
    if options.decoupled_weight_decay:
        return shrunk(param, options), grad
    return param, with_decay(grad, param, options)


def _averages(grad: Value, state: State, options: Any) -> tuple[Value, Value]:
    beta1, beta2 = options.betas
    average = toward(state["exp_avg"], grad, 1 - beta1)
    return average, squares_mixed(state["exp_avg_sq"], grad, beta2)


class Adam(Updating):
    """Adam: w ← w - lr·m̂ / (√v̂ + eps), with averages m of gradients and v of their squares

    m ← β₁·m + (1 - β₁)·g, v ← β₂·v + (1 - β₂)·g²; m̂ and v̂ are m and v corrected for their start at zero.
    `amsgrad` divides by the largest v so far; `decoupled_weight_decay` is what makes it AdamW.

    One step from 1, where the gradient is 1:

        w = tn.ones(2, requires_grad=True)
        optimizer = tn.optim.Adam([w], lr=0.1)
        w.sum().backward()
        optimizer.step()
        w.detach()  # [0.9, 0.9]
    """

    numbers = ("lr", "betas", "eps", "weight_decay")
    flags = ("amsgrad", "maximize", "decoupled_weight_decay")

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ):
        require_options(lr, eps=eps, weight_decay=weight_decay)
        require_betas(betas)
        if differentiable and any(isinstance(beta, Tensor) and beta.requires_grad for beta in betas):
            raise UnsupportedError(
                "Adam: no gradients reach betas", help="give them as numbers; gradients reach a tensor as lr"
            )
        defaults = {
            "lr": lr,
            "betas": tuple([float(beta) for beta in betas]),
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def initial(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        start: dict[str, Any] = {"step": 0, "exp_avg": (0,), "exp_avg_sq": (0,)}
        return {**start, "max_exp_avg_sq": (0,)} if group["amsgrad"] else start

    @staticmethod
    def update(param: Value, grad: Value, state: State, options: Any) -> tuple[Value, State]:
        step, t = counted(state)
        param, grad = _decayed(param, directed(grad, options), options)
        average, square = _averages(grad, state, options)
        beta1, beta2 = options.betas
        new = {**state, "step": step, "exp_avg": average, "exp_avg_sq": square}
        largest = square
        if options.amsgrad:
            largest = new["max_exp_avg_sq"] = flat.maximum(state["max_exp_avg_sq"], square)
        scale = flat.sqrt(1 - flat.power(beta2, t))
        deviation = plus(over(flat.sqrt(largest), scale), options.eps)
        size = options.lr / (1 - flat.power(beta1, t))
        return param - times(average, size) / deviation, new


class AdamW(Adam):
    """Adam with decoupled weight decay: w ← (1 - lr·weight_decay)·w before Adam's step

    One step from 1, where the gradient is 1:

        w = tn.ones(2, requires_grad=True)
        optimizer = tn.optim.AdamW([w], lr=0.1, weight_decay=0.01)
        w.sum().backward()
        optimizer.step()
        w.detach()  # [0.899, 0.899]
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ):
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:  # what Adam has stored is continued as AdamW
            group["decoupled_weight_decay"] = True


class Adamax(Updating):
    """Adam with the infinity norm: w ← w - lr·m̂ / u, where u ← max(β₂·u, |g| + eps)

    One step from 1, where the gradient is 1:

        w = tn.ones(2, requires_grad=True)
        optimizer = tn.optim.Adamax([w], lr=0.1)
        w.sum().backward()
        optimizer.step()
        w.detach()  # [0.9, 0.9]
    """

    numbers = ("lr", "betas", "eps", "weight_decay")
    flags = ("maximize",)

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 2e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ):
        require_options(lr, eps=eps, weight_decay=weight_decay)
        require_betas(betas)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def initial(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": 0, "exp_avg": (0,), "exp_inf": (0,)}

    @staticmethod
    def update(param: Value, grad: Value, state: State, options: Any) -> tuple[Value, State]:
        step, t = counted(state)
        beta1, beta2 = options.betas
        grad = with_decay(directed(grad, options), param, options)
        average = toward(state["exp_avg"], grad, 1 - beta1)
        largest = flat.maximum(times(state["exp_inf"], beta2), plus(flat.abs(grad), options.eps))
        size = options.lr / (1 - flat.power(beta1, t))
        new = {**state, "step": step, "exp_avg": average, "exp_inf": largest}
        return param - times(average, size) / largest, new


class NAdam(Updating):
    """Adam with Nesterov's momentum: the step combines m̂ with the present gradient

    One step from 1, where the gradient is 1:

        w = tn.ones(2, requires_grad=True)
        optimizer = tn.optim.NAdam([w], lr=0.1)
        w.sum().backward()
        optimizer.step()
        w.detach()  # [0.8944, 0.8944]
    """

    numbers = ("lr", "betas", "eps", "weight_decay", "momentum_decay")
    flags = ("maximize", "decoupled_weight_decay")

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 2e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ):
        require_options(lr, eps=eps, weight_decay=weight_decay, momentum_decay=momentum_decay)
        require_betas(betas)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def initial(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": 0, "mu_product": 1, "exp_avg": (0,), "exp_avg_sq": (0,)}

    @staticmethod
    def update(param: Value, grad: Value, state: State, options: Any) -> tuple[Value, State]:
        step, t = counted(state)
        beta1, beta2 = options.betas
        param, grad = _decayed(param, directed(grad, options), options)
        fading = lambda at: beta1 * (1 - 0.5 * flat.power(0.96, at * options.momentum_decay))
        momentum, next_momentum = fading(t), fading(t + 1)
        product = times(state["mu_product"], momentum)
        so_far = flat.convert(product, momentum.dtype)
        average, square = _averages(grad, state, options)
        deviation = plus(flat.sqrt(over(square, 1 - flat.power(beta2, t))), options.eps)
        param = param - times(grad, options.lr * (1 - momentum) / (1 - so_far)) / deviation
        param = param - times(average, options.lr * next_momentum / (1 - so_far * next_momentum)) / deviation
        new = {**state, "step": step, "mu_product": product, "exp_avg": average, "exp_avg_sq": square}
        return param, new


class RAdam(Updating):
    """Rectified Adam: takes adaptive steps only once the average of squares covers enough of them

    Before that it takes steps of lr·m̂. Later steps are Adam's, times a factor that grows towards 1.

    One step from 1, where the gradient is 1:

        w = tn.ones(2, requires_grad=True)
        optimizer = tn.optim.RAdam([w], lr=0.1)
        w.sum().backward()
        optimizer.step()
        w.detach()  # [0.9, 0.9]
    """

    numbers = ("lr", "betas", "eps", "weight_decay")
    flags = ("maximize", "decoupled_weight_decay")

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ):
        require_options(lr, eps=eps, weight_decay=weight_decay)
        require_betas(betas)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def initial(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": 0, "exp_avg": (0,), "exp_avg_sq": (0,)}

    @staticmethod
    def update(param: Value, grad: Value, state: State, options: Any) -> tuple[Value, State]:
        step, t = counted(state)
        beta1, beta2 = options.betas
        param, grad = _decayed(param, directed(grad, options), options)
        average, square = _averages(grad, state, options)
        power2 = flat.power(beta2, t)
        corrected = over(average, 1 - flat.power(beta1, t))
        longest = 2 / (1 - beta2) - 1  # the number of squares that an average over all time rests on
        length = longest - 2 * t * power2 / (1 - power2)
        rectifier = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
        adapted = flat.convert(flat.sqrt(1 - power2), param.dtype) / plus(flat.sqrt(square), options.eps)
        plain = times(corrected, options.lr)
        change = flat.where(length > 5, times(plain * adapted, flat.sqrt(rectifier)), plain)
        return param - change, {**state, "step": step, "exp_avg": average, "exp_avg_sq": square}
