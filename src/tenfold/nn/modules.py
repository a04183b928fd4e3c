"""`nn.modules`: the files in which layers lie, under the names by which PyTorch has them."""

from tenfold.nn import (
    activation,
    adaptive,
    containers,
    convolution,
    distance,
    dropout,
    embedding,
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
    "flatten", "fold", "instancenorm", "linear", "loss", "module", "normalization", "padding",
    "pixelshuffle", "pooling", "rnn", "sparse", "transformer", "upsampling", "utils",
]  # fmt: skip
