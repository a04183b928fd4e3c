"""Linear layers: a product with a matrix of weights, of one input or of two; and one that does nothing."""

from __future__ import annotations

import math
from typing import Any

from tenfold.nn import functional as F, init
from tenfold.nn.module import Module
from tenfold.nn.parameter import new_parameter
from tenfold.tensor import Tensor


class Identity(Module):
    """y = x; arguments of the constructor are ignored

    Input and output (*).

        nn.Identity()(tn.ones(2, 3)).shape  # [2, 3]
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    """y = x Wᵀ + b

    Input (*, in_features), output (*, out_features). `weight` is (out_features, in_features) and `bias`
    (out_features); both start evenly spread over ±1/sqrt(in_features).

        layer = nn.Linear(20, 30)
        layer(tn.ones(128, 20)).shape  # [128, 30]
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ):
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = new_parameter((out_features, in_features), 0, dtype, device)
        if bias:
            self.bias = new_parameter((out_features,), 0, dtype, device)
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.in_features > 0:
            init.kaiming_uniform_(self.weight, a=math.sqrt(5))
            if self.bias is not None:
                bound = 1 / math.sqrt(self.in_features)
                init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"
        )


class NonDynamicallyQuantizableLinear(Linear):
    """A Linear under the name that attention prints its output projection by."""


class Bilinear(Module):
    """y = x1ᵀ A x2 + b, with one matrix A for each output

    Inputs (*, in1_features) and (*, in2_features), output (*, out_features). `weight` is (out_features,
    in1_features, in2_features); it and `bias` start evenly spread over ±1/sqrt(in1_features).

    Inputs (*, in1_features) and (*, in2_features), output (*, out_features).

        nn.Bilinear(3, 4, 5)(tn.ones(2, 3), tn.ones(2, 4)).shape  # [2, 5]
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = new_parameter((out_features, in1_features, in2_features), 0, dtype, device)
        if bias:
            self.bias = new_parameter((out_features,), 0, dtype, device)
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = 1 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )
