"""Layers that learn the number of their input features from the first input they see."""

from __future__ import annotations

from typing import Any

from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError
from tenfold.nn.convolution import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    _ConvNd,
)
from tenfold.nn.linear import Linear
from tenfold.nn.module import Module, in_layer
from tenfold.nn.normalisation import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    _NormBase,
)
from tenfold.nn.parameter import UninitializedBuffer, UninitializedParameter, filled
from tenfold.tensor import Tensor
from tenfold.trace.context import outside


class LazyModuleMixin(Module):
    """A module whose parameters get their shapes when it is first called; then it becomes `cls_to_become`."""

    cls_to_become: type[Module] | None = None

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._await_input()

    def _await_input(self) -> None:
        self._initialize_hook = self.register_forward_pre_hook(_initialize, with_kwargs=True)

    def has_uninitialized_params(self) -> bool:
        """Whether some parameter or buffer still has no shape."""
        held = [*self._parameters.values(), *self._buffers.values()]
        return any(isinstance(each, (UninitializedParameter, UninitializedBuffer)) for each in held)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Set the shapes of the parameters from these inputs."""
        raise NotImplementedError(f"{type(self).__name__} defines no initialize_parameters")


def _initialize(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    with outside():  # also where a function is recorded: this happens once
        module.initialize_parameters(*args, **kwargs)
    if module.has_uninitialized_params():
        raise ArgumentError(
            f"initialize_parameters of {type(module).__name__} left parameters without shapes"
        )
    # Unnoticed: nothing that is recorded depends on this hook.
    dict.pop(module._forward_pre_hooks, module._initialize_hook.id)
    del module._initialize_hook
    if module.cls_to_become is not None:
        module.__class__ = module.cls_to_become


class LazyLinear(LazyModuleMixin, Linear):
    """A Linear whose in_features is the last extent of its first input

    nn.LazyLinear(5)(tn.ones(2, 3)).shape  # [2, 5]
    """

    cls_to_become = Linear
    weight: UninitializedParameter

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None):
        Linear.__init__(self, 0, 0, False)
        self._await_input()
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        if self.has_uninitialized_params():
            self.in_features = input.shape[-1]
            self.weight.materialize((self.out_features, self.in_features))
            if self.bias is not None:
                self.bias.materialize((self.out_features,))
        self.reset_parameters()


class _LazyConvolution(LazyModuleMixin, _ConvNd):
    """A convolution whose in_channels are those of its first input."""

    def _wait(self, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        self._await_input()
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    @in_layer
    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        if self.has_uninitialized_params():
            if input.ndim not in (self._rank + 1, self._rank + 2):
                raise ArgumentError(
                    f"takes {self._rank + 1} or {self._rank + 2} dimensions, not {input.ndim}"
                )
            self.in_channels = input.shape[-self._rank - 1]
            self._check()
            first, second = self.out_channels, self.in_channels
            if self.transposed:
                first, second = second, first
            weight: Any = self.weight
            weight.materialize((first, second // self.groups, *self.kernel_size))
            bias: Any = self.bias
            if bias is not None:
                bias.materialize((self.out_channels,))
        self.reset_parameters()


class _LazyForward(_LazyConvolution):
    @in_layer
    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ):
        self._set_up(
            0, 0, kernel_size, stride, padding, dilation, 0, groups, False, padding_mode, None, None
        )  # fmt: skip
        self._wait(out_channels, bias, device, dtype)


class _LazyTranspose(_LazyConvolution):
    _transposed = True

    @in_layer
    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ):
        if padding_mode != "zeros":
            raise ArgumentError(f"a transposed convolution pads with zeros only, not {padding_mode!r}")
        self._set_up(
            0, 0, kernel_size, stride, padding, dilation, output_padding, groups, False, padding_mode, None,
            None,
        )  # fmt: skip
        self._wait(out_channels, bias, device, dtype)


class LazyConv1d(_LazyForward, Conv1d):
    """A Conv1d that takes in_channels from its first input

    Input (N, C, L), output (N, out_channels, Lout).

        nn.LazyConv1d(4, 3)(tn.ones(2, 3, 8)).shape  # [2, 4, 6]
    """

    cls_to_become = Conv1d


class LazyConv2d(_LazyForward, Conv2d):
    """A Conv2d that takes in_channels from its first input

    Input (N, C, H, W), output (N, out_channels, Hout, Wout).

        nn.LazyConv2d(4, 3)(tn.ones(2, 3, 8, 8)).shape  # [2, 4, 6, 6]
    """

    cls_to_become = Conv2d


class LazyConv3d(_LazyForward, Conv3d):
    """A Conv3d that takes in_channels from its first input

    Input (N, C, D, H, W), output (N, out_channels, Dout, Hout, Wout).

        nn.LazyConv3d(4, 3)(tn.ones(2, 3, 8, 8, 8)).shape  # [2, 4, 6, 6, 6]
    """

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyTranspose, ConvTranspose1d):
    """A ConvTranspose1d that takes in_channels from its first input

    Input (N, C, L), output (N, out_channels, Lout).

        nn.LazyConvTranspose1d(4, 3)(tn.ones(2, 3, 8)).shape  # [2, 4, 10]
    """

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyTranspose, ConvTranspose2d):
    """A ConvTranspose2d that takes in_channels from its first input

    Input (N, C, H, W), output (N, out_channels, Hout, Wout).

        nn.LazyConvTranspose2d(4, 3)(tn.ones(2, 3, 8, 8)).shape  # [2, 4, 10, 10]
    """

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyTranspose, ConvTranspose3d):
    """A ConvTranspose3d that takes in_channels from its first input

    Input (N, C, D, H, W), output (N, out_channels, Dout, Hout, Wout).

        nn.LazyConvTranspose3d(4, 3)(tn.ones(2, 3, 8, 8, 8)).shape  # [2, 4, 10, 10, 10]
    """

    cls_to_become = ConvTranspose3d


class _LazyNorm(LazyModuleMixin, _NormBase):
    """A normalisation whose num_features are the channels of its first input."""

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ):
        _NormBase.__init__(self, 0, eps, momentum, False, False)
        self._await_input()
        self.affine = affine
        self.track_running_stats = track_running_stats
        place = {"device": device, "dtype": dtype}
        if affine:
            self.weight = UninitializedParameter(**place)
            if bias:
                self.bias = UninitializedParameter(**place)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(**place)
            self.running_var = UninitializedBuffer(**place)
            self.num_batches_tracked = filled((), 0, dtypes.int64, device)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        if self.has_uninitialized_params():
            self._check_input_dim(input)
            self.num_features = input.shape[1]
            for held in (self.weight, self.bias, self.running_mean, self.running_var):
                if held is not None:
                    held.materialize((self.num_features,))
        self.reset_parameters()


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d):
    """A BatchNorm1d that takes num_features from its first input

    Input and output (N, C, L).

        nn.LazyBatchNorm1d()(tn.ones(2, 3, 8)).shape  # [2, 3, 8]
    """

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d):
    """A BatchNorm2d that takes num_features from its first input

    Input and output (N, C, H, W).

        nn.LazyBatchNorm2d()(tn.ones(2, 3, 8, 8)).shape  # [2, 3, 8, 8]
    """

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d):
    """A BatchNorm3d that takes num_features from its first input

    Input and output (N, C, D, H, W).

        nn.LazyBatchNorm3d()(tn.ones(2, 3, 8, 8, 8)).shape  # [2, 3, 8, 8, 8]
    """

    cls_to_become = BatchNorm3d


class LazyInstanceNorm1d(_LazyNorm, InstanceNorm1d):
    """An InstanceNorm1d that takes num_features from its first input

    Input and output (N, C, L).

        nn.LazyInstanceNorm1d()(tn.ones(2, 3, 8)).shape  # [2, 3, 8]
    """

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNorm, InstanceNorm2d):
    """An InstanceNorm2d that takes num_features from its first input

    Input and output (N, C, H, W).

        nn.LazyInstanceNorm2d()(tn.ones(2, 3, 8, 8)).shape  # [2, 3, 8, 8]
    """

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNorm, InstanceNorm3d):
    """An InstanceNorm3d that takes num_features from its first input

    Input and output (N, C, D, H, W).

        nn.LazyInstanceNorm3d()(tn.ones(2, 3, 8, 8, 8)).shape  # [2, 3, 8, 8, 8]
    """

    cls_to_become = InstanceNorm3d
