"""`nn.modules`: the layers under the names of PyTorch's files. Each file offers every layer, since some
lie in other files here."""

import sys
from typing import Any

from tenfold.nn import (
    activation,
    adaptive,
    containers,
    convolution,
    distance,
    dropout,
    embedding,
    lazy,
    linear,
    loss,
    module,
    normalisation,
    padding,
    pooling,
    recurrent,
    shuffling,
    sizes,
    transformer,
)

batchnorm = instancenorm = normalization = normalisation
channelshuffle = flatten = fold = pixelshuffle = upsampling = shuffling
container, conv, rnn, sparse, utils = containers, convolution, recurrent, embedding, sizes

__all__ = [
    "activation", "adaptive", "batchnorm", "channelshuffle", "container", "conv", "distance", "dropout",
    "flatten", "fold", "instancenorm", "lazy", "linear", "loss", "module", "normalization", "padding",
    "pixelshuffle", "pooling", "rnn", "sparse", "transformer", "upsampling", "utils",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    return getattr(sys.modules[__package__], name)


def _layer(name: str) -> Any:
    """A layer that lies in another file in PyTorch, as `nn.modules.activation.MultiheadAttention`."""
    if name.startswith("_"):
        raise AttributeError(name)
    return __getattr__(name)


for _file in __all__:
    vars(globals()[_file]).setdefault("__getattr__", _layer)
