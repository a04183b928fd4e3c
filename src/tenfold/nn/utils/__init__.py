"""`tenfold.nn.utils`: what is done to modules and parameters as a whole. Most submodules load when used."""

from typing import TYPE_CHECKING

from tenfold.base.late import late_names
from tenfold.nn.utils.spectral_norm import remove_spectral_norm, spectral_norm
from tenfold.nn.utils.weight_norm import remove_weight_norm, weight_norm

if TYPE_CHECKING:
    from tenfold.nn.utils import parametrizations, parametrize, prune, rnn, stateless
    from tenfold.nn.utils.clip_grad import (
        clip_grad_norm,
        clip_grad_norm_,
        clip_grad_value_,
        clip_grads_with_norm_,
        get_total_norm,
    )
    from tenfold.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters
    from tenfold.nn.utils.fusion import (
        fuse_conv_bn_eval,
        fuse_conv_bn_weights,
        fuse_linear_bn_eval,
        fuse_linear_bn_weights,
    )
    from tenfold.nn.utils.init import skip_init
    from tenfold.nn.utils.memory_format import (
        convert_conv2d_weight_memory_format,
        convert_conv3d_weight_memory_format,
    )

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "convert_conv2d_weight_memory_format",
    "convert_conv3d_weight_memory_format",
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
    "get_total_norm",
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "prune",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "skip_init",
    "spectral_norm",
    "stateless",
    "vector_to_parameters",
    "weight_norm",
]

__getattr__, __dir__ = late_names(
    __name__,
    {
        "clip_grad": (
            "clip_grad_norm",
            "clip_grad_norm_",
            "clip_grad_value_",
            "clip_grads_with_norm_",
            "get_total_norm",
        ),
        "convert_parameters": ("parameters_to_vector", "vector_to_parameters"),
        "fusion": (
            "fuse_conv_bn_eval",
            "fuse_conv_bn_weights",
            "fuse_linear_bn_eval",
            "fuse_linear_bn_weights",
        ),
        "init": ("skip_init",),
        "memory_format": ("convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"),
        "parametrizations": (),
        "parametrize": (),
        "prune": (),
        "rnn": (),
        "stateless": (),
    },
)
