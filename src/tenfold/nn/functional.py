"""`tenfold.nn.functional`: the functions of `torch.nn.functional`, by the same names and signatures.

Functions that have the signature of their schema come from the op table: the rows of module "nn" by
`dispatch.install`, the others by name, just below. The wrappers after these add what a schema lacks:
`inplace=`, defaults, another order of arguments, and compositions of several ops.
"""

from __future__ import annotations

from typing import Any

from tenfold.base import unsupported
from tenfold.base.dtypes import DType
from tenfold.base.errors import ArgumentError, ShapeError, located, unknown_name
from tenfold.base.warning import warn
from tenfold.nn.functional_attention import multi_head_attention_forward as multi_head_attention_forward
from tenfold.nn.functional_bags import embedding_bag as embedding_bag
from tenfold.nn.functional_images import *  # noqa: F403
from tenfold.nn.functional_losses import (
    binary_cross_entropy as binary_cross_entropy,
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
    cross_entropy as cross_entropy,
    ctc_loss as ctc_loss,
    gaussian_nll_loss as gaussian_nll_loss,
    huber_loss as huber_loss,
    kl_div as kl_div,
    l1_loss as l1_loss,
    mse_loss as mse_loss,
    nll_loss as nll_loss,
    poisson_nll_loss as poisson_nll_loss,
    smooth_l1_loss as smooth_l1_loss,
)
from tenfold.nn.functional_margins import (
    cosine_embedding_loss as cosine_embedding_loss,
    hinge_embedding_loss as hinge_embedding_loss,
    margin_ranking_loss as margin_ranking_loss,
    multi_margin_loss as multi_margin_loss,
    multilabel_margin_loss as multilabel_margin_loss,
    multilabel_soft_margin_loss as multilabel_soft_margin_loss,
    soft_margin_loss as soft_margin_loss,
    triplet_margin_loss as triplet_margin_loss,
    triplet_margin_with_distance_loss as triplet_margin_with_distance_loss,
)
from tenfold.nn.functional_normalisation import (
    batch_norm as batch_norm,
    group_norm as group_norm,
    instance_norm as instance_norm,
    layer_norm as layer_norm,
    local_response_norm as local_response_norm,
    rms_norm as rms_norm,
)
from tenfold.nn.functional_parts import (
    _canonical_mask as _canonical_mask,
    _in_projection as _in_projection,
    _in_projection_packed as _in_projection_packed,
    _no_grad_embedding_renorm_ as _no_grad_embedding_renorm_,
    _none_or_dtype as _none_or_dtype,
    _verify_batch_size as _verify_batch_size,
)
from tenfold.nn.functional_products import *  # noqa: F403
from tenfold.nn.functional_windows import *  # noqa: F403
from tenfold.tensor import Tensor, dispatch, overriding
from tenfold.tensor.dispatch import aten
from tenfold.tensor.indexing import one_hot as one_hot
from tenfold.trace.context import context

bilinear = aten("bilinear")
channel_shuffle = aten("channel_shuffle")
cosine_similarity = aten("cosine_similarity")
hardshrink = aten("hardshrink")
native_channel_shuffle = aten("native_channel_shuffle")
pairwise_distance = aten("pairwise_distance")
pdist = aten("pdist")
pixel_shuffle = aten("pixel_shuffle")
pixel_unshuffle = aten("pixel_unshuffle")
prelu = aten("prelu")


def _put(result: Tensor, input: Tensor, inplace: bool) -> Tensor:
    """The result, or on request the input with the result written into it."""
    if not inplace:
        return result
    input.assign(result.current())
    return input


# Activations


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(input, 0)

    F.relu(tn.tensor([-1.0, 2.0]))  # [0.0, 2.0]
    """
    return _put(aten("relu")(input), input, inplace)


def relu_(input: Tensor) -> Tensor:
    """Writes `relu` of the input into the input

    F.relu_(tn.tensor([-1.0, 2.0]))  # [0.0, 2.0]
    """
    return relu(input, inplace=True)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(input, 0), 6)

    F.relu6(tn.tensor([-1.0, 3.0, 8.0]))  # [0.0, 3.0, 6.0]
    """
    return _put(aten("relu6")(input), input, inplace)


@located
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """min(max(input, min_val), max_val)

    F.hardtanh(tn.tensor([-3.0, 0.5, 3.0]))  # [-1.0, 0.5, 1.0]
    """
    if min_val > max_val:
        raise ArgumentError(f"min_val {min_val} is greater than max_val {max_val}")
    return _put(aten("hardtanh")(input, min_val, max_val), input, inplace)


def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """Writes `hardtanh` of the input into the input

    F.hardtanh_(tn.tensor([-1.0, 2.0]))  # [-1.0, 1.0]
    """
    return _put(aten("hardtanh")(input, min_val, max_val), input, True)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """input where it is positive, and alpha * (exp(input) - 1) elsewhere

    F.elu(tn.tensor([-1.0, 0.0, 2.0]))  # [-0.6321, 0.0, 2.0]
    """
    return _put(aten("elu")(input, alpha), input, inplace)


def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """Writes `elu` of the input into the input

    F.elu_(tn.tensor([-1.0, 2.0]))  # [-0.6321, 2.0]
    """
    return elu(input, alpha, inplace=True)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """`elu` scaled, with the constants that keep mean 0 and variance 1

    F.selu(tn.tensor([-1.0, 0.0, 1.0]))  # [-1.1113, 0.0, 1.0507]
    """
    return _put(aten("selu")(input), input, inplace)


def selu_(input: Tensor) -> Tensor:
    """Writes `selu` of the input into the input

    F.selu_(tn.tensor([-1.0, 2.0]))  # [-1.1113, 2.1014]
    """
    return selu(input, inplace=True)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """max(input, 0) + min(0, alpha * (exp(input / alpha) - 1))

    F.celu(tn.tensor([-1.0, 0.0, 2.0]))  # [-0.6321, 0.0, 2.0]
    """
    return _put(aten("celu")(input, alpha), input, inplace)


def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """Writes `celu` of the input into the input

    F.celu_(tn.tensor([-1.0, 2.0]))  # [-0.6321, 2.0]
    """
    return celu(input, alpha, inplace=True)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """input * sigmoid(input)

    F.silu(tn.tensor([-1.0, 0.0, 1.0]))  # [-0.2689, 0.0, 0.7311]
    """
    return _put(aten("silu")(input), input, inplace)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """input * tanh(softplus(input))

    F.mish(tn.tensor([-1.0, 0.0, 1.0]))  # [-0.3034, 0.0, 0.8651]
    """
    return _put(aten("mish")(input), input, inplace)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """input * relu6(input + 3) / 6

    F.hardswish(tn.tensor([-4.0, 0.0, 4.0]))  # [0.0, 0.0, 4.0]
    """
    return _put(aten("hardswish")(input), input, inplace)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """relu6(input + 3) / 6

    F.hardsigmoid(tn.tensor([-4.0, 0.0, 4.0]))  # [0.0, 0.5, 1.0]
    """
    return _put(aten("hardsigmoid")(input), input, inplace)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """input where it is positive, and negative_slope * input elsewhere

    F.leaky_relu(tn.tensor([-1.0, 2.0]), 0.1)  # [-0.1, 2.0]
    """
    return _put(aten("leaky_relu")(input, negative_slope), input, inplace)


def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """Writes `leaky_relu` of the input into the input

    F.leaky_relu_(tn.tensor([-1.0, 2.0]), 0.1)  # [-0.1, 2.0]
    """
    return leaky_relu(input, negative_slope, inplace=True)


def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """leaky_relu with a slope drawn between the bounds in training, and their mean otherwise

    F.rrelu(tn.tensor([-1.0, 2.0]))  # [-0.2292, 2.0]
    """
    return _put(aten("rrelu")(input, lower, upper, training), input, inplace)


def rrelu_(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False) -> Tensor:
    """Writes `rrelu` of the input into the input

    F.rrelu_(tn.tensor([-1.0, 2.0]))  # [-0.2292, 2.0]
    """
    return rrelu(input, lower, upper, training, inplace=True)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """input where it exceeds the threshold, and `value` elsewhere

    F.threshold(tn.tensor([0.0, 1.0]), 0.5, 9.0)  # [9.0, 1.0]
    """
    return _put(aten("threshold")(input, threshold, value), input, inplace)


def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """Writes `threshold` of the input into the input

    F.threshold_(tn.tensor([-1.0, 2.0]), 0.5, 9.0)  # [9.0, 2.0]
    """
    return _put(aten("threshold")(input, threshold, value), input, True)


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-input))

    F.sigmoid(tn.tensor([-1.0, 0.0, 1.0]))  # [0.2689, 0.5, 0.7311]
    """
    return input.sigmoid()


def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent, (exp(input) - exp(-input)) / (exp(input) + exp(-input))

    F.tanh(tn.tensor([-1.0, 0.0, 1.0]))  # [-0.7616, 0.0, 0.7616]
    """
    return input.tanh()


def tanhshrink(input: Tensor) -> Tensor:
    """input - tanh(input)

    F.tanhshrink(tn.tensor([-1.0, 0.0, 1.0]))  # [-0.2384, 0.0, 0.2384]
    """
    return input - input.tanh()


def softsign(input: Tensor) -> Tensor:
    """input / (|input| + 1)

    F.softsign(tn.tensor([-1.0, 0.0, 1.0]))  # [-0.5, 0.0, 0.5]
    """
    return input / (input.abs() + 1)


# Softmax and its like. Without a dimension PyTorch takes 0 or 1, by the rank, and warns.


def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None
) -> Tensor:
    """exp(input) / sum(exp(input)) along a dimension

    F.softmax(tn.zeros(1, 2), -1)  # [[0.5, 0.5]]
    """
    if dim is None:
        dim = _implicit_dim("softmax", input)
    return input.softmax(dim, dtype=dtype)


def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None
) -> Tensor:
    """exp(-input) / sum(exp(-input)) along a dimension

    F.softmin(tn.zeros(1, 2), -1)  # [[0.5, 0.5]]
    """
    if dim is None:
        dim = _implicit_dim("softmin", input)
    return (-input).softmax(dim, dtype=dtype)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None
) -> Tensor:
    """input - log(sum(exp(input))) along a dimension

    F.log_softmax(tn.zeros(1, 2), -1)  # [[-0.6931, -0.6931]]
    """
    if dim is None:
        dim = _implicit_dim("log_softmax", input)
    return input.log_softmax(dim, dtype=dtype)


def _implicit_dim(name: str, input: Tensor) -> int:
    dim = 0 if input.ndim in (0, 1, 3) else 1
    warn(f"{name} without dim is deprecated: pass dim={dim}")
    return dim


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """Draws from the Gumbel-softmax distribution; `hard` makes it one-hot, with the soft draw's gradient

    F.gumbel_softmax(tn.zeros(2, 3), hard=True).sum(-1)  # [1.0, 1.0]
    """
    if eps != 1e-10:
        warn("gumbel_softmax: eps is deprecated and has no effect")
    waited = aten("exponential")(logits)
    soft = ((logits - waited.log()) / tau).softmax(dim)
    if not hard:
        return soft
    largest = soft.argmax(dim, keepdim=True)
    return aten("zeros_like")(soft).scatter(dim, largest, 1.0) - soft.detach() + soft


# Dropout


@located
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes elements with probability p and divides the others by 1 - p; the input itself if not training

    F.dropout(tn.ones(2, 3)).shape  # [2, 3]
    """
    return _dropped("dropout", input, p, training, inplace)


@located
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Sets elements to a SELU's negative saturation with probability p, keeping mean and variance

    F.alpha_dropout(tn.ones(2, 3)).shape  # [2, 3]
    """
    return _dropped("alpha_dropout", input, p, training, inplace)


@located
def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Alpha dropout of whole channels

    Input and output (N, C, *).

        F.feature_alpha_dropout(tn.ones(2, 3, 8)).shape  # [2, 3, 8]
    """
    return _dropped("feature_alpha_dropout", input, p, training, inplace)


@located
def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes whole channels with probability p and divides the others by 1 - p

    Input and output (N, C, L) or (C, L).

        F.dropout1d(tn.ones(2, 3, 8)).shape  # [2, 3, 8]
    """
    if input.ndim not in (2, 3):
        raise ShapeError(f"takes 2 or 3 dimensions, not {input.ndim}")
    return _dropped("feature_dropout", input, p, training, inplace, batched=input.ndim == 3)


@located
def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes whole channels with probability p and divides the others by 1 - p

    Input and output (N, C, H, W). Three dimensions are taken as (N, C, L).

        F.dropout2d(tn.ones(2, 3, 8, 8)).shape  # [2, 3, 8, 8]
    """
    if input.ndim == 3:
        warn("dropout2d takes three dimensions as (N, C, L): use dropout1d")
    elif input.ndim != 4:
        warn(f"dropout2d of {input.ndim} dimensions is deprecated: use dropout")
    return _dropped("feature_dropout", input, p, training, inplace)


@located
def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes whole channels with probability p and divides the others by 1 - p

    Input and output (N, C, D, H, W) or (C, D, H, W).

        F.dropout3d(tn.ones(2, 3, 8, 8, 8)).shape  # [2, 3, 8, 8, 8]
    """
    if input.ndim not in (4, 5):
        warn(f"dropout3d of {input.ndim} dimensions is deprecated: use dropout")
    return _dropped("feature_dropout", input, p, training, inplace, batched=input.ndim == 5)


def _dropped(
    name: str, input: Tensor, p: float, training: bool, inplace: bool, batched: bool = True
) -> Tensor:
    if not 0 <= p <= 1:
        raise ArgumentError(f"{p} is not a probability", help="p lies between 0 and 1")
    if not training or p == 0 or not input.numel():
        return input
    if batched:
        return _put(aten(name)(input, p, True), input, inplace)
    return _put(aten(name)(input.unsqueeze(0), p, True).squeeze(0), input, inplace)


# Tables of vectors, and their lengths


@located
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of weight at the indices in input

    With max_norm, rows of weight that are longer are first scaled down to it, in place. The row of
    padding_idx gets no gradient.

    Input (*) of indices, weight (V, D), output (*, D).

        F.embedding(tn.tensor([1, 0]), tn.tensor([[0.0, 1.0], [2.0, 3.0]]))  # [[2.0, 3.0], [0.0, 1.0]]
    """
    if weight.ndim != 2:
        raise ShapeError(f"weight is a matrix with a row for each index, not {weight._value.type}")
    count = weight.shape[0]
    if padding_idx is None:
        padding_idx = -1
    elif not -count <= padding_idx < max(count, 1):
        raise ArgumentError(f"padding_idx {padding_idx} is none of the {count} rows of weight")
    elif padding_idx < 0:
        padding_idx += count
    if max_norm is not None:
        _no_grad_embedding_renorm_(weight, input, max_norm, norm_type)
    if sparse and context.grad_enabled and weight.requires_grad:
        from tenfold.sparse.embedding import lookup  # few need sparse tensors, which take long to import

        return lookup(weight, input, padding_idx, scale_grad_by_freq)
    return aten("embedding")(weight, input, padding_idx, scale_grad_by_freq, sparse)


def normalize(
    input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    """input / max(‖input‖, eps), with the p-norm along a dimension

    F.normalize(tn.tensor([[3.0, 4.0]]))  # [[0.6, 0.8]]
    """
    length = input.norm(p, dim, keepdim=True).clamp_min(eps)
    return aten("div")(input, length, out=out)


dispatch.fill("nn", globals())
overriding.publish(globals(), "tenfold.nn.functional")


def __getattr__(name: str) -> Any:
    refused = unsupported.function("torch.nn.functional", name)
    if refused is not None:
        return refused
    raise unknown_name("tenfold.nn.functional", name, globals())
