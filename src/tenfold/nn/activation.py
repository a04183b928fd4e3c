"""Activations: functions of each element, and the softmaxes. Their formulas are those of `nn.functional`."""

from __future__ import annotations

from typing import Any

from tenfold.base.errors import ShapeError
from tenfold.base.source import capture
from tenfold.base.warning import warn
from tenfold.nn import functional as F, init
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
    """1 / (1 + exp(-x))

    Input and output (*).

        nn.Sigmoid()(tn.tensor([-1.0, 0.0, 1.0]))  # [0.2689, 0.5, 0.7311]
    """

    _function = "sigmoid"


class Tanh(_Plain):
    """The hyperbolic tangent, (exp(x) - exp(-x)) / (exp(x) + exp(-x))

    Input and output (*).

        nn.Tanh()(tn.tensor([-1.0, 0.0, 1.0]))  # [-0.7616, 0.0, 0.7616]
    """

    _function = "tanh"


class LogSigmoid(_Plain):
    """log(1 / (1 + exp(-x)))

    Input and output (*).

        nn.LogSigmoid()(tn.tensor([0.0, 1.0]))  # [-0.6931, -0.3133]
    """

    _function = "logsigmoid"


class Softsign(_Plain):
    """x / (1 + |x|)

    Input and output (*).

        nn.Softsign()(tn.tensor([-1.0, 0.0, 1.0]))  # [-0.5, 0.0, 0.5]
    """

    _function = "softsign"


class Tanhshrink(_Plain):
    """x - tanh(x)

    Input and output (*).

        nn.Tanhshrink()(tn.tensor([-1.0, 0.0, 1.0]))  # [-0.2384, 0.0, 0.2384]
    """

    _function = "tanhshrink"


class ReLU(_Inplace):
    """max(0, x)

    nn.ReLU()(tn.tensor([-1.0, 2.0]))  # [0., 2.]
    """

    _function = "relu"


class SELU(_Inplace):
    """scale·(max(0, x) + min(0, α·(exp(x) - 1))), with constants that keep mean 0 and variance 1

    Input and output (*).

        nn.SELU()(tn.tensor([-1.0, 0.0, 1.0]))  # [-1.1113, 0.0, 1.0507]
    """

    _function = "selu"


class SiLU(_Inplace):
    """x·sigmoid(x)

    Input and output (*).

        nn.SiLU()(tn.tensor([-1.0, 0.0, 1.0]))  # [-0.2689, 0.0, 0.7311]
    """

    _function = "silu"


class Mish(_Inplace):
    """x·tanh(softplus(x))

    Input and output (*).

        nn.Mish()(tn.tensor([-1.0, 0.0, 1.0]))  # [-0.3034, 0.0, 0.8651]
    """

    _function = "mish"


class Hardswish(_Inplace):
    """x·relu6(x + 3) / 6

    Input and output (*).

        nn.Hardswish()(tn.tensor([-4.0, 0.0, 4.0]))  # [0.0, 0.0, 4.0]
    """

    _function = "hardswish"
    extra_repr = Module.extra_repr


class Hardsigmoid(_Inplace):
    """relu6(x + 3) / 6

    Input and output (*).

        nn.Hardsigmoid()(tn.tensor([-4.0, 0.0, 4.0]))  # [0.0, 0.5, 1.0]
    """

    _function = "hardsigmoid"
    extra_repr = Module.extra_repr


class Softmax(_Along):
    """exp(x) / sum(exp(x)) along `dim`

    nn.Softmax(dim=-1)(tn.zeros(1, 2))  # [[0.5, 0.5]]
    """

    _function = "softmax"


class Softmin(_Along):
    """exp(-x) / sum(exp(-x)) along `dim`

    Input and output (*).

        nn.Softmin(dim=-1)(tn.zeros(1, 2))  # [[0.5, 0.5]]
    """

    _function = "softmin"


class LogSoftmax(_Along):
    """x - log(sum(exp(x))) along `dim`

    Input and output (*).

        nn.LogSoftmax(dim=-1)(tn.zeros(1, 2))  # [[-0.6931, -0.6931]]
    """

    _function = "log_softmax"


class Softmax2d(Module):
    """Softmax over the channels of images

    Input and output (N, C, H, W) or (C, H, W).

        nn.Softmax2d()(tn.zeros(1, 2, 1, 1))  # [[[[0.5]], [[0.5]]]]
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in (3, 4):
            raise ShapeError(f"takes 3 or 4 dimensions, not {input.ndim}").located("Softmax2d", capture())
        return F.softmax(input, -3)


class Hardtanh(Module):
    """min(max(x, min_val), max_val)

    Input and output (*).

        nn.Hardtanh()(tn.tensor([-3.0, 0.5, 3.0]))  # [-1.0, 0.5, 1.0]
    """

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
    """min(max(0, x), 6)

    Input and output (*).

        nn.ReLU6()(tn.tensor([-1.0, 3.0, 8.0]))  # [0.0, 3.0, 6.0]
    """

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
    """x where it is positive, and α·(exp(x) - 1) elsewhere

    Input and output (*).

        nn.ELU()(tn.tensor([-1.0, 0.0, 2.0]))  # [-0.6321, 0.0, 2.0]
    """

    _function = "elu"


class CELU(_Exponential):
    """max(0, x) + min(0, α·(exp(x / α) - 1))

    Input and output (*).

        nn.CELU()(tn.tensor([-1.0, 0.0, 2.0]))  # [-0.6321, 0.0, 2.0]
    """

    _function = "celu"


class LeakyReLU(Module):
    """x where it is positive, and negative_slope·x elsewhere

    Input and output (*).

        nn.LeakyReLU(0.1)(tn.tensor([-1.0, 2.0]))  # [-0.1, 2.0]
    """

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False):
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}{_inplace(self)}"


class RReLU(Module):
    """LeakyReLU with slopes drawn between the bounds in training, and their mean in evaluation

    Input and output (*).

        nn.RReLU().eval()(tn.tensor([-1.0, 2.0]))  # [-0.2292, 2.0]
    """

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
    """x where it is positive, and a·x elsewhere; the slope `a` is learned, for all or for each channel

    Input and output (N, num_parameters, *), or (*) with one slope.

        nn.PReLU()(tn.tensor([-4.0, 2.0]))  # [-1.0, 2.0]
    """

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
    """x·Φ(x), where Φ is the normal distribution function; approximate="tanh" is close to it and cheaper

    Input and output (*).

        nn.GELU()(tn.tensor([-1.0, 0.0, 1.0]))  # [-0.1587, 0.0, 0.8413]
    """

    def __init__(self, approximate: str = "none"):
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class GLU(Module):
    """a·sigmoid(b), where a and b are the halves of the input along `dim`

    Input (*, 2n, *), output (*, n, *).

        nn.GLU()(tn.tensor([2.0, 4.0, 0.0, 0.0]))  # [1.0, 2.0]
    """

    def __init__(self, dim: int = -1):
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Hardshrink(Module):
    """x outside of ±lambd, and 0 within

    Input and output (*).

        nn.Hardshrink()(tn.tensor([-1.0, 0.25, 1.0]))  # [-1.0, 0.0, 1.0]
    """

    def __init__(self, lambd: float = 0.5):
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Softshrink(Module):
    """x moved towards 0 by lambd, and 0 within ±lambd

    Input and output (*).

        nn.Softshrink()(tn.tensor([-1.0, 0.25, 1.0]))  # [-0.5, 0.0, 0.5]
    """

    def __init__(self, lambd: float = 0.5):
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Softplus(Module):
    """log(1 + exp(β·x)) / β, and x itself where β·x exceeds the threshold

    Input and output (*).

        nn.Softplus()(tn.tensor([-1.0, 0.0, 1.0]))  # [0.3133, 0.6931, 1.3133]
    """

    def __init__(self, beta: float = 1.0, threshold: float = 20.0):
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class Threshold(Module):
    """x where it exceeds the threshold, and `value` elsewhere

    Input and output (*).

        nn.Threshold(0.5, 9.0)(tn.tensor([0.0, 1.0]))  # [9.0, 1.0]
    """

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
