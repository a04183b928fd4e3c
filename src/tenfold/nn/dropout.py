"""Dropout: in training, elements or whole channels set to zero at random."""

from __future__ import annotations

from tenfold.base.errors import ArgumentError
from tenfold.nn import functional as F
from tenfold.nn.module import Module, in_layer
from tenfold.tensor import Tensor


class _DropoutNd(Module):
    _function: str

    @in_layer
    def __init__(self, p: float = 0.5, inplace: bool = False):
        super().__init__()
        if not 0 <= p <= 1:
            raise ArgumentError(f"{p} is not a probability", help="p lies between 0 and 1")
        self.p = p
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, self._function)(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """In training, each element is zero with probability p and otherwise divided by 1 - p

    layer = nn.Dropout(0.2)
    layer.eval()(tn.ones(3))  # [1., 1., 1.]
    """

    _function = "dropout"


class Dropout1d(_DropoutNd):
    """In training, zeroes each channel with probability p and divides the others by 1 - p

    Input and output (N, C, L) or (C, L).

        nn.Dropout1d(0.5)(tn.ones(2, 3, 8)).shape  # [2, 3, 8]
    """

    _function = "dropout1d"


class Dropout2d(_DropoutNd):
    """In training, zeroes each channel with probability p and divides the others by 1 - p

    Input and output (N, C, H, W).

        nn.Dropout2d(0.5)(tn.ones(2, 3, 8, 8)).shape  # [2, 3, 8, 8]
    """

    _function = "dropout2d"


class Dropout3d(_DropoutNd):
    """In training, zeroes each channel with probability p and divides the others by 1 - p

    Input and output (N, C, D, H, W) or (C, D, H, W).

        nn.Dropout3d(0.5)(tn.ones(2, 3, 8, 8, 8)).shape  # [2, 3, 8, 8, 8]
    """

    _function = "dropout3d"


class AlphaDropout(_DropoutNd):
    """Dropout for SELU: sets elements to its negative saturation and keeps mean and variance

    Input and output (*).

        nn.AlphaDropout(0.5)(tn.ones(2, 3)).shape  # [2, 3]
    """

    _function = "alpha_dropout"

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """AlphaDropout of whole channels

    Input and output (N, C, *).

        nn.FeatureAlphaDropout(0.5)(tn.ones(2, 3, 8)).shape  # [2, 3, 8]
    """

    _function = "feature_alpha_dropout"

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training)
