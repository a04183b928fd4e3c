"""`torch.ao.quantization` in eager mode: observers, `prepare` and `convert`.

A model is prepared, shown data, and converted. Converted layers pass `QuantizedTensor`s on: integers with a
scale and a zero point. A linear layer multiplies the integers and rounds once, as PyTorch's kernels do.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tenfold.base.errors import IndexOutOfRange, UnsupportedError, located
from tenfold.base.quantized_dtypes import (
    per_channel_affine,
    per_channel_symmetric,
    per_tensor_affine,
    per_tensor_symmetric,
    qint8,
    quint8,
)
from tenfold.nn.activation import ReLU, Sigmoid, Tanh
from tenfold.nn.convolution import _ConvNd
from tenfold.nn.dropout import Dropout
from tenfold.nn.linear import Identity, Linear
from tenfold.nn.module import Module
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten
from tenfold.tensor.interchange import from_numpy
from tenfold.tensor.quantized import QuantizedTensor, quantize_per_channel, quantize_per_tensor

__all__ = [
    "DeQuantStub", "FloatFunctional", "MinMaxObserver", "PerChannelMinMaxObserver", "QConfig", "QuantStub",
    "QuantWrapper", "convert", "default_observer", "default_qconfig", "default_weight_observer",
    "get_default_qconfig", "prepare", "quantize",
]  # fmt: skip

_EPS = float(np.finfo(np.float32).eps)


class MinMaxObserver(Module):
    """Records the smallest and the largest number that it sees, and derives the scale that covers them."""

    def __init__(
        self, dtype: Any = quint8, qscheme: Any = per_tensor_affine, reduce_range: bool = False,
        quant_min: int | None = None, quant_max: int | None = None, factory_kwargs: Any = None,
        eps: float = _EPS, is_dynamic: bool = False,
    ):  # fmt: skip
        super().__init__()
        _refuse_options(factory_kwargs=factory_kwargs, is_dynamic=is_dynamic)
        low, high = dtype.bounds
        if reduce_range:
            low, high = low // 2, high // 2
        self.dtype, self.qscheme, self.eps = dtype, qscheme, eps
        self.quant_min = low if quant_min is None else quant_min
        self.quant_max = high if quant_max is None else quant_max
        self.min_val: Any = None
        self.max_val: Any = None

    @classmethod
    def with_args(cls, **options: Any) -> Callable[..., MinMaxObserver]:
        return functools.partial(cls, **options)

    def forward(self, x: Tensor) -> Tensor:
        low, high = self._extremes(x.detach().float())
        self.min_val = low if self.min_val is None else np.minimum(self.min_val, low)
        self.max_val = high if self.max_val is None else np.maximum(self.max_val, high)
        return x

    def _extremes(self, x: Tensor) -> tuple[np.ndarray, np.ndarray]:
        return x.min().numpy(), x.max().numpy()

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """The scale and the zero point, one of each or one for each channel."""
        if self.min_val is None:
            return from_numpy(np.ones(1, np.float32)), from_numpy(np.zeros(1, np.int64))
        low = np.minimum(np.atleast_1d(self.min_val), np.float32(0))
        high = np.maximum(np.atleast_1d(self.max_val), np.float32(0))
        steps = np.float32(self.quant_max - self.quant_min)
        if self.qscheme in (per_tensor_symmetric, per_channel_symmetric):
            scale = np.maximum(np.maximum(-low, high) / (steps / np.float32(2)), np.float32(self.eps))
            middle = 128 if self.dtype is quint8 else 0
            return from_numpy(scale), from_numpy(np.full(scale.shape, middle, np.int64))
        scale = np.maximum((high - low) / steps, np.float32(self.eps))
        zero_point = np.clip(self.quant_min - np.round(low / scale), self.quant_min, self.quant_max)
        return from_numpy(scale), from_numpy(zero_point.astype(np.int64))


class PerChannelMinMaxObserver(MinMaxObserver):
    """Like `MinMaxObserver`, separately for each channel."""

    def __init__(
        self, ch_axis: int = 0, dtype: Any = quint8, qscheme: Any = per_channel_affine, **options: Any
    ):
        super().__init__(dtype, qscheme, **options)
        self.ch_axis = ch_axis

    def _extremes(self, x: Tensor) -> tuple[np.ndarray, np.ndarray]:
        if not -x.ndim <= self.ch_axis < x.ndim:
            raise IndexOutOfRange(f"ch_axis {self.ch_axis} is out of range for {x.ndim} dimensions")
        rest = tuple([axis for axis in range(x.ndim) if axis != self.ch_axis % x.ndim])
        return x.amin(rest).numpy(), x.amax(rest).numpy()


class QConfig(NamedTuple):
    """The observers of a layer: functions that make one for its results, and one for its weight."""

    activation: Callable[..., Any]
    weight: Callable[..., Any]


default_observer = MinMaxObserver.with_args(quant_min=0, quant_max=127)
default_weight_observer = MinMaxObserver.with_args(dtype=qint8, qscheme=per_tensor_symmetric)
default_per_channel_weight_observer = PerChannelMinMaxObserver.with_args(
    dtype=qint8, qscheme=per_channel_symmetric
)
default_qconfig = QConfig(default_observer, default_weight_observer)
default_per_channel_qconfig = QConfig(default_observer, default_per_channel_weight_observer)


def get_default_qconfig(backend: str = "x86", version: int = 0) -> QConfig:
    """Refused: PyTorch's default configurations use histogram observers, which Tenfold lacks."""
    raise UnsupportedError(
        "histogram observers are not there", help="use default_qconfig or default_per_channel_qconfig"
    )


class QuantStub(Identity):
    """Marks where the input of a model is quantized. It is the identity until the model is converted."""

    def __init__(self, qconfig: QConfig | None = None):
        super().__init__()
        if qconfig is not None:
            self.qconfig = qconfig


class DeQuantStub(Identity):
    """Marks where the result of a model is dequantized. It is the identity until the model is converted."""

    def __init__(self, qconfig: Any = None):
        super().__init__()


class QuantWrapper(Module):
    """A model with its input quantized and its result dequantized."""

    def __init__(self, module: Module):
        super().__init__()
        self.quant, self.dequant, self.module = QuantStub(), DeQuantStub(), module
        self.train(module.training)

    def forward(self, x: Any) -> Any:
        return self.dequant(self.module(self.quant(x)))


class FloatFunctional(Module):
    """Operations as a layer, so that their results can be observed."""

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        return x + y

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        return x * y

    add_scalar, mul_scalar = add, mul

    def cat(self, x: Any, dim: int = 0) -> Tensor:
        return aten("cat")(x, dim)

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        return aten("relu")(x + y)

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        return x @ y


# Converted layers


class Quantize(Module):
    """Quantizes floating-point numbers to integers with a scale and a zero point."""

    def __init__(self, scale: Tensor, zero_point: Tensor, dtype: Any):
        super().__init__()
        self.register_buffer("scale", scale)
        self.register_buffer("zero_point", zero_point)
        self.dtype = dtype

    def forward(self, x: Tensor) -> QuantizedTensor:
        return quantize_per_tensor(x, self.scale, self.zero_point, self.dtype)


class DeQuantize(Module):
    """Converts quantized integers back to floating-point numbers."""

    def forward(self, x: QuantizedTensor) -> Tensor:
        return x.dequantize()


class QuantizedReLU(Module):
    """max(x, 0) on integers, where 0 is the zero point."""

    def forward(self, x: Any) -> Any:
        if isinstance(x, Tensor):
            return x.relu()
        return QuantizedTensor(x.int_repr().clamp_min(x.q_zero_point()), x._scale, x._zero_point)


class QuantizedBounded(Module):
    """tanh or sigmoid, whose results have the scale of their range."""

    def __init__(self, activation: Module, scale: float, zero_point: int):
        super().__init__()
        self.activation, self.scale, self.zero_point = activation, scale, zero_point

    def forward(self, x: Any) -> Any:
        if isinstance(x, Tensor):
            return self.activation(x)
        return quantize_per_tensor(self.activation(x.dequantize()), self.scale, self.zero_point, quint8)


class QuantizedLinear(Module):
    """A linear layer on integers: products are summed exactly, then scaled and rounded once."""

    def __init__(
        self, weight: QuantizedTensor, bias: Tensor | None, scale: float, zero_point: int, dtype: Any
    ):
        super().__init__()
        self._is_per_channel = weight.qscheme() == per_channel_affine
        if self._is_per_channel and (axis := weight.q_per_channel_axis()) != 0:
            raise UnsupportedError(
                f"the weight of a quantized Linear has no scales along dimension {axis}",
                help="observe the weight with ch_axis=0, one scale for each output",
            )
        if self._is_per_channel:
            scales, zeros = weight.q_per_channel_scales(), weight.q_per_channel_zero_points()
        else:
            scales = from_numpy(np.full(1, weight.q_scale()))
            zeros = from_numpy(np.full(1, weight.q_zero_point(), np.int64))
        self.register_buffer("scale", from_numpy(np.array(scale, np.float32)))
        self.register_buffer("zero_point", from_numpy(np.array(zero_point, np.int64)))
        self.register_buffer("_weight", weight.int_repr())
        self.register_buffer("_weight_scales", scales)
        self.register_buffer("_weight_zero_points", zeros)
        self._bias, self.dtype = bias, dtype

    def weight(self) -> QuantizedTensor:
        if self._is_per_channel:
            return QuantizedTensor(self._weight, self._weight_scales, self._weight_zero_points, 0)
        return QuantizedTensor(self._weight, self._weight_scales.item(), self._weight_zero_points.item())

    def bias(self) -> Tensor | None:
        return self._bias

    def forward(self, x: QuantizedTensor) -> QuantizedTensor:
        scale, zero_point = self.scale.item(), self.zero_point.item()
        inputs = x.int_repr().double() - x.q_zero_point()
        weights = self._weight.double() - self._weight_zero_points.reshape((-1, 1))
        total = inputs @ weights.T
        factor = self._weight_scales.float() * x.q_scale()
        if self._bias is not None:
            total = total + (self._bias.detach() / factor).round()
        steps = (total.float() * (factor / scale)).round() + zero_point
        low, high = self.dtype.bounds
        integers = steps.clamp(low, high).to(self.dtype.storage)
        return QuantizedTensor(integers, scale, zero_point)


# From one to the other

_OBSERVED = (QuantStub, Linear)
_REFUSED = (FloatFunctional, _ConvNd)


@located
def prepare(
    model: Module, inplace: bool = False, allow_list: Any = None, observer_non_leaf_module_list: Any = None,
    prepare_custom_config_dict: Any = None,
) -> Module:  # fmt: skip
    """Insert observers into a model: its stubs and linear layers observe their results, by the `qconfig` of
    the layer or of a module around it."""
    _refuse_options(
        allow_list=allow_list,
        observer_non_leaf_module_list=observer_non_leaf_module_list,
        prepare_custom_config_dict=prepare_custom_config_dict,
    )
    _refuse_layers(model, None)
    model = model if inplace else copy.deepcopy(model)
    _observe(model, None)
    return model


def _refuse_options(**options: Any) -> None:
    """Refuse the options of PyTorch that are not there, unless they ask for nothing."""
    for name, value in options.items():
        if value not in (None, False, {}):
            raise UnsupportedError(f"quantization has no option {name}", help=f"leave {name} out")


def _refuse_layers(module: Module, inherited: QConfig | None, path: str = "") -> None:
    """Refuse a model with layers that a `qconfig` covers and that do not compute with integers."""
    qconfig = getattr(module, "qconfig", inherited)
    if qconfig is not None and isinstance(module, _REFUSED):
        name = type(module).__name__
        raise UnsupportedError(
            f"{name} has no quantized form" + (f": the model has one at {path!r}" if path else ""),
            help=f"set qconfig = None on the {name} and keep it outside of QuantStub and DeQuantStub",
        )
    for name, child in module.named_children():
        _refuse_layers(child, qconfig, f"{path}.{name}" if path else name)


def _observe(module: Module, inherited: QConfig | None) -> None:
    qconfig = getattr(module, "qconfig", inherited)
    if qconfig is not None and isinstance(module, _OBSERVED):
        module.qconfig = qconfig
        observer = module.activation_post_process = qconfig.activation()
        module._observing = module.register_forward_hook(lambda layer, given, result: observer(result))
    for name, child in module.named_children():
        if name != "activation_post_process":
            _observe(child, qconfig)


@located
def convert(
    module: Module, mapping: Any = None, inplace: bool = False, remove_qconfig: bool = True,
    is_reference: bool = False, convert_custom_config_dict: Any = None,
    use_precomputed_fake_quant: bool = False,
) -> Module:  # fmt: skip
    """Convert the prepared layers of a model to integers, with the scales that their observers found."""
    _refuse_options(
        mapping=mapping,
        is_reference=is_reference,
        convert_custom_config_dict=convert_custom_config_dict,
        use_precomputed_fake_quant=use_precomputed_fake_quant,
    )
    _refuse_layers(module, None)
    module = module if inplace else copy.deepcopy(module)
    _convert_children(module)
    if remove_qconfig:
        for layer in module.modules():
            vars(layer).pop("qconfig", None)
    return module


def _convert_children(module: Module) -> None:
    for name, child in list(module.named_children()):
        if name != "activation_post_process":
            _convert_children(child)
            setattr(module, name, _converted(child))


def _converted(layer: Any) -> Module:
    if isinstance(layer, DeQuantStub):
        return DeQuantize()
    if isinstance(layer, ReLU):
        return QuantizedReLU()
    if isinstance(layer, Tanh):
        return QuantizedBounded(layer, 2 / 256, 128)
    if isinstance(layer, Sigmoid):
        return QuantizedBounded(layer, 1 / 256, 0)
    if isinstance(layer, Dropout):
        return Identity()
    observer = getattr(layer, "activation_post_process", None)
    if observer is None:
        return layer
    scale, zero_point = observer.calculate_qparams()
    if isinstance(layer, QuantStub):
        return Quantize(scale, zero_point, observer.dtype)
    weights = layer.qconfig.weight()
    weights(layer.weight)
    steps, zeros = weights.calculate_qparams()
    held = layer.weight.detach()
    if isinstance(weights, PerChannelMinMaxObserver):
        weight = quantize_per_channel(held, steps, zeros, weights.ch_axis % held.ndim, weights.dtype)
    else:
        weight = quantize_per_tensor(held, steps, zeros, weights.dtype)
    return QuantizedLinear(weight, layer.bias, float(scale.item()), int(zero_point.item()), observer.dtype)


@located
def quantize(
    model: Module, run_fn: Callable[..., Any], run_args: Any, mapping: Any = None, inplace: bool = False
) -> Module:
    """Prepare a model, run it on data by `run_fn(model, *run_args)`, and convert it."""
    _refuse_options(mapping=mapping)
    model = prepare(model.eval() if inplace else copy.deepcopy(model).eval(), inplace=True)
    run_fn(model, *run_args)
    return convert(model, inplace=True)
