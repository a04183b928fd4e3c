"""The memory format of convolution weights, in two and in three dimensions."""

from __future__ import annotations

from typing import Any, TypeVar

from tenfold.nn.convolution import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from tenfold.nn.module import Module

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]

Converted = TypeVar("Converted", bound=Module)


def _convert(module: Converted, memory_format: Any, layers: tuple[type[Module], ...]) -> Converted:
    for layer in module.modules():
        if isinstance(layer, layers):
            layer.weight.data = layer.weight.detach().clone(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Converted, memory_format: Any) -> Converted:
    """Convert the weights of all two-dimensional convolutions in a module to a memory format."""
    return _convert(module, memory_format, (Conv2d, ConvTranspose2d))


def convert_conv3d_weight_memory_format(module: Converted, memory_format: Any) -> Converted:
    """Convert the weights of all three-dimensional convolutions in a module to a memory format."""
    return _convert(module, memory_format, (Conv3d, ConvTranspose3d))
