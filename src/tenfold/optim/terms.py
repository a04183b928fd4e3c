"""What optimizers are written with: terms of an update, in which elements have the parameter's precision and
numbers are float64; and what constructors check of options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenfold import flat
from tenfold.base import dtypes
from tenfold.optim.optimizer import OptionError
from tenfold.tensor import Tensor

State = dict[str, flat.Value]


def widened(x: flat.Value) -> flat.Value:
    return flat.convert(x, dtypes.float32) if x.dtype.itemsize < 4 and x.dtype.is_floating_point else x


def times(x: flat.Value, number: flat.Value) -> flat.Value:
    """x times a float64 number, in x's own dtype."""
    return x * flat.convert(number, x.dtype)


def plus(x: flat.Value, number: flat.Value) -> flat.Value:
    return x + flat.convert(number, x.dtype)


def over(x: flat.Value, number: flat.Value) -> flat.Value:
    return x / flat.convert(number, x.dtype)


def toward(start: flat.Value, end: flat.Value, weight: flat.Value) -> flat.Value:
    """The point between two, `weight` of the way."""
    return start + times(end - start, weight)


def squares_mixed(average: flat.Value, new: flat.Value, decay: flat.Value) -> flat.Value:
    """The average of squares, of which `decay` stays, with one more square."""
    kept, part = times(average, decay), times(new, 1 - decay)
    return _sum_of_product(part, new, kept) if new.dtype is dtypes.float32 else kept + part * new


def _in_double(x: flat.Value, y: flat.Value, z: flat.Value) -> flat.Value:
    x, y, z = [flat.convert(each, dtypes.float64) for each in (x, y, z)]
    return flat.convert(z + x * y, dtypes.float32)


@flat.differentiated(lambda ct, result, x, y, z: (ct * y, ct * x, ct), elsewhere={"numpy": _in_double})
def _sum_of_product(x: flat.Value, y: flat.Value, z: flat.Value) -> flat.Value:
    """z + x y, rounded once: XLA fuses the two, as PyTorch's kernels do; NumPy has no such function."""
    return z + x * y


def counted(state: State) -> tuple[flat.Value, flat.Value]:
    """The next step's number, and the same in float64."""
    step = state["step"] + 1
    return step, flat.convert(step, dtypes.float64)


def with_decay(grad: flat.Value, param: flat.Value, options: Any) -> flat.Value:
    """The gradient of a loss with weight decay as a penalty; untouched where there is none."""
    decay = options.weight_decay
    if not options.decays:
        return grad
    return flat.where(flat.ne(decay, 0), grad + times(param, decay), grad)


def shrunk(param: flat.Value, options: Any) -> flat.Value:
    """The parameter after weight decay that is no part of the gradient."""
    if not options.decays:
        return param
    return times(param, 1 - options.lr * options.weight_decay)


def directed(grad: flat.Value, options: Any) -> flat.Value:
    return -grad if options.maximize else grad


# What constructors check


def require(holds: bool, message: str) -> None:
    if not holds:
        raise OptionError(message)


def require_options(lr: Any, **numbers: Any) -> None:
    """An lr that is one number, not negative; and other numbers that are not negative."""
    if isinstance(lr, Tensor):
        require(lr.numel() == 1, f"lr is one number, not a tensor of {lr.numel()}")
    else:
        require(lr >= 0, f"lr must not be negative: {lr}")
    for name, number in numbers.items():
        require(isinstance(number, Tensor) or number >= 0, f"{name} must not be negative: {number}")


def require_betas(betas: Sequence[Any]) -> None:
    for i, beta in enumerate(betas):
        require(isinstance(beta, Tensor) or 0 <= beta < 1, f"betas[{i}] must lie in [0, 1): {beta}")
