"""Activations: functions of each element, and the softmaxes. Their formulas are those of `nn.functional`."""

from __future__ import annotations

from typing import Any

from tenfold.base.errors import ShapeError
from tenfold.base.source import capture
from tenfold.base.warning import warn
from tenfold.nn import functional as F
from tenfold.nn import init
from tenfold.nn.module import Module
from tenfold.nn.parameter import new_parameter
from tenfold.tensor import Tensor


class _Plain(Module):
    """A function of the input alone."""

    _function: str

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, self._function)(input)


class _Inplace(Module):
    """A function that may be written into its input."""

    _function: str

    def __init__(self, inplace: bool = False):
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, self._function)(input, inplace=self.inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class _Along(Module):
    """A function along a dimension."""

    _function: str

    def __init__(self, dim: int | None = None):
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, self._function)(input, self.dim, _stacklevel=5)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Sigmoid(_Plain):
    """1 / (1 + exp(-x))"""

    _function = "sigmoid"


class Tanh(_Plain):
    """The hyperbolic tangent."""

    _function = "tanh"


class LogSigmoid(_Plain):
    """log(1 / (1 + exp(-x)))"""

    _function = "logsigmoid"


class Softsign(_Plain):
    """x / (1 + |x|)"""

    _function = "softsign"


class Tanhshrink(_Plain):
    """x - tanh(x)"""

    _function = "tanhshrink"


class ReLU(_Inplace):
    """max(0, x)

    nn.ReLU()(tn.tensor([-1.0, 2.0]))  # [0., 2.]
    """

    _function = "relu"


class SELU(_Inplace):
    """scale·(max(0, x) + min(0, α·(exp(x) - 1))), with constants that keep mean 0 and variance 1"""

    _function = "selu"


class SiLU(_Inplace):
    """x·sigmoid(x)"""

    _function = "silu"


class Mish(_Inplace):
    """x·tanh(softplus(x))"""

    _function = "mish"


class Hardswish(_Inplace):
    """x·relu6(x + 3) / 6"""

    _function = "hardswish"
    extra_repr = Module.extra_repr


class Hardsigmoid(_Inplace):
    """relu6(x + 3) / 6"""

    _function = "hardsigmoid"
    extra_repr = Module.extra_repr


class Softmax(_Along):
    """exp(x) / sum(exp(x)) along `dim`

    nn.Softmax(dim=-1)(tn.zeros(1, 2))  # [[0.5, 0.5]]
    """

    _function = "softmax"


class Softmin(_Along):
    """exp(-x) / sum(exp(-x)) along `dim`"""

    _function = "softmin"


class LogSoftmax(_Along):
    """x - log(sum(exp(x))) along `dim`"""

    _function = "log_softmax"


class Softmax2d(Module):
    """Softmax over the channels of (N, C, H, W) or (C, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in (3, 4):
            raise ShapeError(f"takes 3 or 4 dimensions, not {input.ndim}").located("Softmax2d", capture())
        return F.softmax(input, -3)


class Hardtanh(Module):
    """min(max(x, min_val), max_val)"""

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ):
        super().__init__()
        for name, value in (("min_val", min_value), ("max_val", max_value)):
            if value is not None:
                warn(f"{name}ue is deprecated: use {name}", FutureWarning)
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        self.inplace = inplace
        if self.min_val >= self.max_val:
            raise ShapeError(f"min_val {self.min_val} is not less than max_val {self.max_val}").located(
                "Hardtanh", capture()
            )

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}{_inplace(self)}"


class ReLU6(Hardtanh):
    """min(max(0, x), 6)"""

    def __init__(self, inplace: bool = False):
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class _Exponential(Module):
    """A function that is exponential, by a factor α, where its input is negative."""

    _function: str

    def __init__(self, alpha: float = 1.0, inplace: bool = False):
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, self._function)(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}{_inplace(self)}"


class ELU(_Exponential):
    """x where it is positive, else α·(exp(x) - 1)"""

    _function = "elu"


class CELU(_Exponential):
    """max(0, x) + min(0, α·(exp(x / α) - 1))"""

    _function = "celu"


class LeakyReLU(Module):
    """x, scaled by negative_slope where it is negative"""

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False):
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}{_inplace(self)}"


class RReLU(Module):
    """LeakyReLU whose slopes are drawn between the bounds in training, and are their mean otherwise"""

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False):
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}{_inplace(self)}"


class PReLU(Module):
    """x, scaled by a trained slope where it is negative: one slope, or one for each channel (dimension 1)"""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None):
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = new_parameter((num_parameters,), init, dtype, device)

    def reset_parameters(self) -> None:
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class GELU(Module):
    """x·Φ(x), Φ being the distribution function of the normal; approximate="tanh" is near it and cheaper"""

    def __init__(self, approximate: str = "none"):
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class GLU(Module):
    """a·sigmoid(b), where a and b are the halves of the input along `dim`"""

    def __init__(self, dim: int = -1):
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Hardshrink(Module):
    """x, but 0 within ±lambd"""

    def __init__(self, lambd: float = 0.5):
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Softshrink(Module):
    """x moved towards 0 by lambd, and 0 within ±lambd"""

    def __init__(self, lambd: float = 0.5):
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Softplus(Module):
    """log(1 + exp(β·x)) / β, and x itself where β·x is above the threshold"""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0):
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class Threshold(Module):
    """x where it is above the threshold, else `value`"""

    def __init__(self, threshold: float, value: float, inplace: bool = False):
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return f"threshold={self.threshold}, value={self.value}{_inplace(self)}"


def _inplace(module: Any) -> str:
    return ", inplace=True" if module.inplace else ""
