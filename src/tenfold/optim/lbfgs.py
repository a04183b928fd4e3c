"""L-BFGS: steps along the gradient, turned by what past steps have shown of the curvature.

Each decision of this method looks at numbers, so it runs on the host: a program computes the loss and the
gradient, and the vectors of the history are NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold.autograd.grad_mode import enable_grad, no_grad
from tenfold.base.devices import Device
from tenfold.base.dtypes import from_numpy
from tenfold.base.errors import ArgumentError
from tenfold.functional import eval_
from tenfold.optim.optimizer import Optimizer, OptionError
from tenfold.optim.terms import require_options
from tenfold.optim.wolfe import Point, strong_wolfe
from tenfold.tensor import Tensor, leaf


class LBFGS(Optimizer):
    """Limited-memory BFGS: up to `max_iter` quasi-Newton iterations a step, each of which calls the closure

    `line_search_fn="strong_wolfe"` searches for the length of each step, instead of using `lr`.

    One step:

        w = tn.ones(2, requires_grad=True)
        optimizer = tn.optim.LBFGS([w], line_search_fn="strong_wolfe")

        def closure():
            optimizer.zero_grad()
            loss = (w * w).sum()
            loss.backward()
            return loss

        optimizer.step(closure)  # the loss before the step
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ):
        require_options(lr)
        if line_search_fn not in (None, "strong_wolfe"):
            raise OptionError(f"line_search_fn is None or 'strong_wolfe', not {line_search_fn!r}")
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise OptionError(
                "LBFGS takes one group of parameters, since it moves all of them along one vector",
                help="use an optimizer for each group",
            )

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Move the parameters towards a minimum of the loss; `closure` computes it and its gradients."""
        if closure is None:
            raise ArgumentError(
                "LBFGS computes the loss several times in a step",
                help="pass a closure that does, with backward()",
            )
        with no_grad():
            return _Descent(self, closure).run()


class _Descent:
    """One step of the optimizer: the present point, the history, and how the next point is found."""

    def __init__(self, optimizer: LBFGS, closure: Callable[[], Any]):
        self.group = optimizer.param_groups[0]
        self.params: list[Tensor] = self.group["params"]
        self.state = optimizer.state[self.params[0]]
        self.closure = closure
        self.evaluations = 0
        self.state.setdefault("func_evals", 0)
        self.state.setdefault("n_iter", 0)
        self.directions = [_array(each) for each in self.state.get("old_dirs", [])]
        self.steps = [_array(each) for each in self.state.get("old_stps", [])]
        self.inverse_products = [float(each) for each in self.state.get("ro", [])]

    def evaluate(self) -> Point:
        """The loss and the gradient at the present point."""
        with enable_grad():
            self.loss = self.closure()
        self.evaluations += 1
        self.state["func_evals"] += 1
        gradients = [param.grad for param in self.params if param.grad is not None]
        eval_(*[value for value in (self.loss, *gradients) if isinstance(value, Tensor)])
        parts = [
            _flat(np.zeros(param.shape, param.dtype.numpy) if param.grad is None else param.grad._host())
            for param in self.params
        ]
        return Point(float(self.loss), np.concatenate(parts))

    def place(self) -> list[np.ndarray]:
        return [param._host() for param in self.params]

    def go(self, start: list[np.ndarray], length: float, direction: np.ndarray) -> None:
        """Move the parameters to `start + length · direction`."""
        offset = 0
        for param, origin in zip(self.params, start, strict=True):
            flat = _flat(origin)
            part = direction[offset : offset + flat.size]
            offset += flat.size
            moved = (flat + flat.dtype.type(length) * part.astype(flat.dtype)).view(origin.dtype)
            param.assign(leaf(moved.reshape(origin.shape), param.device, param.dtype).current())

    def run(self) -> Any:
        group, state = self.group, self.state
        rate = float(group["lr"])
        here = self.evaluate()
        first_loss = self.loss
        if np.abs(here.gradient).max(initial=0) <= group["tolerance_grad"]:
            return first_loss
        direction = _array(state["d"]) if "d" in state else -here.gradient
        length, scale = state.get("t"), state.get("H_diag", 1)
        before = _array(state["prev_flat_grad"]) if "prev_flat_grad" in state else here.gradient
        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                direction, scale = -here.gradient, 1.0
            else:
                scale = self.remember(here.gradient - before, direction * direction.dtype.type(length), scale)
                direction = self.turned(-here.gradient, scale)
            before, previous_loss = here.gradient, here.loss
            length = rate
            if state["n_iter"] == 1:
                length *= min(1.0, 1.0 / float(np.abs(here.gradient).sum()))
            slope = float(here.gradient.dot(direction))
            if slope > -group["tolerance_change"]:
                break
            start = self.place()
            if group["line_search_fn"] is not None:
                here, length = self.search(start, length, direction, here, slope)
                self.go(start, length, direction)
            else:
                self.go(start, length, direction)
                if iteration != group["max_iter"]:  # after the last one nobody asks
                    here = self.evaluate()
            if self.evaluations >= group["max_eval"] or self.settled(
                here, previous_loss, float(np.abs(direction * length).max())
            ):
                break
        state.update(
            d=_tensor(direction),
            t=length,
            old_dirs=[_tensor(each) for each in self.directions],
            old_stps=[_tensor(step) for step in self.steps],
            ro=list(self.inverse_products),
            H_diag=scale,
            prev_flat_grad=_tensor(before),
            prev_loss=previous_loss,
        )
        return first_loss

    def settled(self, here: Point, previous_loss: float, moved: float) -> bool:
        """Whether the gradient has vanished, or there is no progress any more."""
        least = self.group["tolerance_change"]
        flat = float(np.abs(here.gradient).max()) <= self.group["tolerance_grad"]
        return flat or moved <= least or abs(here.loss - previous_loss) < least

    def search(
        self, start: list[np.ndarray], length: float, direction: np.ndarray, here: Point, slope: float
    ) -> tuple[Point, float]:
        def at(trial: float) -> Point:
            self.go(start, trial, direction)
            return self.evaluate()

        left = self.group["max_eval"] - self.evaluations
        return strong_wolfe(at, length, direction, here, slope, left)

    def remember(self, change: np.ndarray, step: np.ndarray, scale: float) -> float:
        """Add a step and how the gradient changed by it to the history; the size of the inverse Hessian."""
        product = float(change.dot(step))
        if product <= 1e-10:
            return scale
        if len(self.directions) == self.group["history_size"]:
            for each in (self.directions, self.steps, self.inverse_products):
                del each[0]
        self.directions.append(change)
        self.steps.append(step)
        self.inverse_products.append(1.0 / product)
        return product / float(change.dot(change))

    def turned(self, vector: np.ndarray, scale: float) -> np.ndarray:
        """The inverse Hessian, as the history knows it, times a vector: the two loops of L-BFGS."""
        history = list(zip(self.directions, self.steps, self.inverse_products, strict=True))
        number = vector.dtype.type
        weights = []
        for change, step, inverse in reversed(history):
            weight = number(step.dot(vector) * inverse)
            vector = vector - weight * change
            weights.append(weight)
        vector = vector * number(scale)
        for (change, step, inverse), weight in zip(history, reversed(weights), strict=True):
            vector = vector + step * number(weight - change.dot(vector) * inverse)
        return vector


def _flat(array: np.ndarray) -> np.ndarray:
    """The numbers of an array, a complex one's as pairs."""
    flat = array.reshape(-1)
    if flat.dtype.kind == "c":
        return flat.view(flat.real.dtype)
    return flat if flat.dtype.kind == "f" else flat.astype(np.float32)


def _array(tensor: Tensor) -> np.ndarray:
    return tensor._host()


def _tensor(array: np.ndarray) -> Tensor:
    return leaf(array, Device("cpu"), from_numpy(array.dtype))
