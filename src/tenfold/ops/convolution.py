"""Convolution rows: forward, transposed and backward, in one to three spatial dimensions.

They check what PyTorch checks; the sums of products are in `sliding.py`.
"""

import functools

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, DTypeError, ShapeError, UnsupportedError
from tenfold.ops.samples import S, T
from tenfold.ops.sliding import Window, correlate, extents, fitted, spread, weigh
from tenfold.ops.spatial import each
from tenfold.ops.table import op


def slides(x, weight, stride, padding, dilation, groups):
    """The window of a convolution of x by weight."""
    count = weight.rank - 2
    if not 1 <= count <= 3 or x.rank != weight.rank:
        raise ShapeError(
            f"cannot convolve {x.type} by {weight.type}",
            help="both have a batch or output dimension, a channel dimension and 1 to 3 spatial ones",
        )
    if x.dtype is not weight.dtype:
        raise DTypeError(f"cannot convolve {x.type} by {weight.type}: their dtypes differ")
    if x.dtype.kind == "bool" or (x.dtype.itemsize == 1 and x.dtype.kind == "float"):
        raise DTypeError(f"convolution is not defined for {x.dtype.name}")
    if groups < 1:
        raise ArgumentError(f"there must be at least one group, not {groups}")
    if weight.shape[0] < groups or weight.shape[0] % groups:
        raise ShapeError(f"dimension 0 of the weight {weight.type} does not divide into {groups} groups")
    if 0 in weight.shape[2:]:
        raise ShapeError(f"the kernel of {weight.type} is empty")
    if 0 in x.shape[2:]:
        raise ShapeError(f"only the batch or the channels of {x.type} may be empty")
    ones = (1,) * count
    pairs = tuple([(p, p) for p in each(padding, count, "padding", 0)])
    dilation, stride = each(dilation, count, "dilation", 1), each(stride, count, "stride", 1)
    return Window(stride, pairs, dilation, groups, ones)


def with_bias(result, bias):
    if bias is None:
        return result
    if bias.shape != (result.shape[1],):
        raise ShapeError(f"the bias {bias.type} must have one element for each of {result.shape[1]} channels")
    if bias.dtype is not result.dtype:
        raise DTypeError(f"the bias {bias.type} must have the dtype of the input, {result.dtype.name}")
    return result + flat.reshape(bias, (-1, *(1 for _ in result.shape[2:])))


def forward(x, weight, bias, window):
    if x.shape[1] != weight.shape[1] * window.groups:
        raise ShapeError(
            f"cannot convolve {x.type} by {weight.type}: the input has {x.shape[1]} channels, "
            f"the weight takes {weight.shape[1] * window.groups}",
            help="the input's channels are the weight's times groups",
        )
    if min(extents(x.shape[2:], weight.shape[2:], window)) < 1:
        raise ShapeError(f"the kernel of {weight.type} is larger than the padded input {x.type}")
    return with_bias(correlate(x, weight, window), bias)


def transposed_extents(shape, kernel, window, output_padding):
    """The spatial shape of a transposed convolution's result."""
    found = []
    for n, k, s, (low, high), d, more in zip(
        shape, kernel, window.strides, window.padding, window.dilation, output_padding, strict=True
    ):
        if more >= max(s, d):
            raise ArgumentError(f"output_padding {more} must be smaller than the stride or the dilation")
        found.append((n - 1) * s + (k - 1) * d + 1 - low - high + more)
    return tuple(found)


def transposed(x, weight, bias, window, output_padding):
    if x.shape[1] != weight.shape[0]:
        raise ShapeError(
            f"cannot convolve {x.type} by {weight.type}: the input has {x.shape[1]} channels, "
            f"the weight takes {weight.shape[0]}"
        )
    output_padding = each(output_padding, x.rank - 2, "output_padding", 0)
    shape = transposed_extents(x.shape[2:], weight.shape[2:], window, output_padding)
    if min(shape) < 1:
        raise ShapeError(f"the result would be of spatial shape {list(shape)}")
    return with_bias(spread(x, weight, window, shape), bias)


def batched(x, count, rule):
    """Apply `rule` to x with a batch dimension, which it may lack."""
    if x.rank not in (count + 1, count + 2):
        raise ShapeError(f"takes {count + 1} (unbatched) or {count + 2} dimensions, not {x.type}")
    if x.rank == count + 2:
        return rule(x)
    return flat.squeeze(rule(flat.unsqueeze(x, 0)), 0)


SHAPES = (6, 5, 4)
KERNEL = (2, 3, 1)


def _samples(dims, *, transpose=False):
    image, kernel = SHAPES[:dims], KERNEL[:dims]
    one = lambda *numbers: numbers[:dims]
    far = {"stride": one(2, 1, 2), "padding": one(1, 0, 1), "dilation": one(2, 1, 2)}
    more = {"output_padding": one(1, 0, 1)} if transpose else {}
    samples = [
        S(T(2, 2, *image), T(2, 3, *kernel) if transpose else T(3, 2, *kernel), T(3)),
        S(T(2, *image), T(2, 2, *kernel), None, **far, **more),
        S(T(2, 4, *image), T(4, 2, *kernel), T(4), groups=2, **far),
        S(T(2, 2, *image), T(2, 1, *kernel), T(2), groups=2, **far, **more),
        S(T(0, 2, *image), T(2, 2, *kernel), T(2)),
        S(T(1, 36, *image), T(36, 2, *kernel), groups=18, padding=one(1, 1, 1)),
    ]
    if not transpose:
        samples.append(S(T(2, 2, *image), T(6, 1, *kernel), groups=2))
    if dims < 3:
        samples.append(S(T(2, 1, *image), T(1, 1, *(9,) * dims), padding=one(4, 4)))
    return samples


def _padding_samples(dims):
    image, kernel = SHAPES[:dims], KERNEL[:dims]
    return [
        S(T(2, 2, *image), T(3, 2, *kernel), T(3), padding="same"),
        S(T(4, *image), T(4, 2, *kernel), None, (1,) * dims, "same", (2,) * dims, 2),
        S(T(2, 2, *image), T(2, 2, *kernel), T(2), (2,) * dims, "valid"),
        S(T(2, 2, *image), T(2, 2, *kernel), T(2), (2,) * dims, "same"),
    ]


def _declare(dims):
    """The rows conv{dims}d and conv_transpose{dims}d."""

    @op(
        f"conv{dims}d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[{dims}] stride=1, "
        f"SymInt[{dims}] padding=0, SymInt[{dims}] dilation=1, SymInt groups=1) -> Tensor",
        method=False,
        samples=lambda: _samples(dims),
        autocast="lower",
        flops="convolution",
        grad_fn="ConvolutionBackward0",
    )
    def conv(x, weight, bias, stride, padding, dilation, groups):
        """Sums of products of a kernel with the windows of the input, plus a bias for each channel."""
        return batched(
            x,
            dims,
            lambda x: forward(x, weight, bias, slides(x, weight, stride, padding, dilation, groups)),
        )

    @op(
        f"conv{dims}d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[{dims}] stride=1, "
        f'str padding="valid", SymInt[{dims}] dilation=1, SymInt groups=1) -> Tensor',
        method=False,
        samples=lambda: _padding_samples(dims),
        autocast="lower",
        flops="convolution",
        grad_fn="ConvolutionBackward0",
        torch_dialect="padded_convolution",
    )
    def conv_padding(x, weight, bias, stride, padding, dilation, groups):
        """A convolution padded by nothing ("valid") or so that the result has the input's extent ("same")."""
        return batched(
            x, dims, lambda x: _convolution_mode(x, weight, bias, stride, padding, dilation, groups)
        )

    @op(
        f"conv_transpose{dims}d{'.input' if dims > 1 else ''}(Tensor input, Tensor weight, "
        f"Tensor? bias=None, SymInt[{dims}] stride=1, SymInt[{dims}] padding=0, "
        f"SymInt[{dims}] output_padding=0, SymInt groups=1, SymInt[{dims}] dilation=1) -> Tensor",
        method=False,
        samples=lambda: _samples(dims, transpose=True),
        autocast="lower",
        flops="convolution",
        grad_fn="ConvolutionBackward0",
    )
    def conv_transpose(x, weight, bias, stride, padding, output_padding, groups, dilation):
        """A transposed convolution: the gradient of a convolution by its input."""
        return batched(
            x,
            dims,
            lambda x: transposed(
                x, weight, bias, slides(x, weight, stride, padding, dilation, groups), output_padding
            ),
        )


for _dims in (1, 2, 3):
    _declare(_dims)


@op(
    "_convolution_mode(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, str padding, "
    "SymInt[] dilation, SymInt groups) -> Tensor",
    method=False,
    samples=lambda: [
        S(T(2, 4, 7, 6), T(4, 2, 3, 2), T(4), (1, 1), "same", (1, 2), 2),
        S(T(2, 4, 7), T(4, 4, 3), None, (2,), "valid", (1,), 1),
    ],
    autocast="lower",
    flops="convolution",
)
def _convolution_mode(x, weight, bias, stride, padding, dilation, groups):
    """A convolution whose padding has a name: "valid" is none; "same" adds as many zeros as keep the size,
    the odd one at the end, and takes strides of 1."""
    if padding not in ("same", "valid"):
        raise ArgumentError(f"no padding {padding!r}", help='use "same", "valid" or numbers')
    window = slides(x, weight, stride, (0,), dilation, groups)
    if padding == "same":
        if max(window.strides) > 1:
            raise ArgumentError('padding="same" is for strides of 1', help="pad by numbers")
        added = [d * (k - 1) for d, k in zip(window.dilation, weight.shape[2:], strict=True)]
        window = window._replace(padding=tuple([(total // 2, total - total // 2) for total in added]))
    return forward(x, weight, bias, window)


PLAIN = ((1, 2), (1, 0), (2, 1))  # stride, padding, dilation


def _all():
    none = (0, 0)
    return [
        S(T(2, 4, 7, 6), T(4, 2, 3, 2), T(4), *PLAIN, False, none, 2),
        S(T(2, 4, 7, 6), T(4, 2, 3, 2), T(4), *PLAIN, True, (1, 1), 2),
        S(T(2, 4, 7, 6), T(4, 4, 3, 2), None, (1,), (0,), (1,), False, (0,), 1),
        S(T(2, 4, 7), T(4, 4, 3), None, (2,), (1,), (1,), True, (1,), 1),
    ]


def _all_and(*more):
    return lambda: [S(*sample.args, *more) for sample in _all()]


@op(
    "convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, "
    "SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor",
    method=False,
    samples=_all,
    autocast="lower",
    flops="convolution",
)
def convolution(x, weight, bias, stride, padding, dilation, is_transposed, output_padding, groups):
    """A convolution, or its transpose."""
    window = slides(x, weight, stride, padding, dilation, groups)
    if is_transposed:
        return transposed(x, weight, bias, window, output_padding)
    return forward(x, weight, bias, window)


_CONVOLUTION = (
    "(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, "
    "bool transposed, {} output_padding, SymInt groups, bool benchmark, bool deterministic, "
    "bool cudnn_enabled"
)


@op(
    "_convolution" + _CONVOLUTION.format("SymInt[]") + ", bool allow_tf32) -> Tensor",
    method=False,
    samples=_all_and(False, False, False, False),
    autocast="lower",
    flops="convolution",
)
@op(
    "_convolution.deprecated" + _CONVOLUTION.format("int[]") + ") -> Tensor",
    method=False,
    samples=_all_and(False, False, False),
    autocast="lower",
    flops="convolution",
)
def _convolution(*arguments):
    """`convolution`; what chooses a library's algorithm changes nothing."""
    return convolution(*arguments[:9])


def all_wanted(output_mask):
    if not all(output_mask):
        raise UnsupportedError(
            f"output_mask {list(output_mask)} leaves out a result",
            help="ask for all results: one that is not used is not computed",
        )


@op(
    "convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, "
    "SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, "
    "SymInt groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    method=False,
    function=False,
    samples=lambda: [
        S(T(2, 4, 5, 3), T(2, 4, 7, 6), T(4, 2, 3, 2), (4,), *PLAIN, False, (0, 0), 2, (True,) * 3),
        S(T(2, 4, 10, 13), T(2, 4, 7, 6), T(4, 2, 3, 2), (4,), *PLAIN, True, (1, 1), 2, (True,) * 3),
        S(T(2, 4, 5), T(2, 4, 7), T(4, 4, 3), (4,), (1,), (0,), (1,), False, (0,), 1, (True,) * 3),
    ],
)
def convolution_backward(
    cotangent, x, weight, bias_sizes, stride, padding, dilation, is_transposed, output_padding, groups, wanted
):
    """The gradients of `convolution` in its input, weight and bias."""
    all_wanted(wanted)
    window, taps = slides(x, weight, stride, padding, dilation, groups), weight.shape[2:]
    if is_transposed:
        more = each(output_padding, x.rank - 2, "output_padding", 0)
        expected = (weight.shape[1] * groups, *transposed_extents(x.shape[2:], taps, window, more))
    else:
        expected = (weight.shape[0], *extents(x.shape[2:], taps, window))
    if cotangent.shape != (x.shape[0], *expected):
        raise ShapeError(f"grad_output {cotangent.type} is not of the result's shape {list(expected)}")
    return (*backward(cotangent, x, weight, window, is_transposed), _of_bias(cotangent))


def backward(cotangent, x, weight, window, is_transposed):
    """The gradients of a convolution, or its transpose, in its input and its weight."""
    x, weight, taps = flat.conj(x), flat.conj(weight), weight.shape[2:]
    if is_transposed:
        exact = fitted(window, cotangent.shape[2:], taps, x.shape[2:])
        return correlate(cotangent, weight, exact), weigh(cotangent, x, window, taps)
    return spread(cotangent, weight, window, x.shape[2:]), weigh(x, cotangent, window, taps)


def _of_bias(cotangent):
    return flat.sum(cotangent, (0, *range(2, cotangent.rank)))


@op(
    "conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor",
    method=False,
    samples=lambda: [S(T(5, 1, 3), T(2, 3, 4), T(4), 1), S(T(5, 1, 3), T(3, 3, 4), T(4))],
    autocast="lower",
)
def conv_tbc(x, weight, bias, pad):
    """A convolution along the first of (time, batch, channels) by a kernel of (time, inputs, outputs)."""
    if x.rank != 3 or weight.rank != 3 or bias.shape != weight.shape[2:]:
        raise ShapeError(
            f"takes three dimensions of input and weight and one of bias, not {x.type}, "
            f"{weight.type} and {bias.type}"
        )
    if not x.dtype is weight.dtype is bias.dtype:
        raise DTypeError(f"the dtypes of {x.type}, {weight.type} and {bias.type} differ")
    taps, times = weight.shape[0], x.shape[0] + 2 * pad - weight.shape[0] + 1
    if times < 0 or x.shape[2] != weight.shape[1]:
        raise ShapeError(f"the kernel {weight.type} does not fit {x.type} padded by {pad}")
    wide = dtypes.float32 if x.dtype.is_floating_point and x.dtype.itemsize < 4 else x.dtype
    padded = flat.pad(flat.convert(x, wide), (pad, 0, 0), (pad, 0, 0))
    total = flat.broadcast_to(bias, (times, x.shape[1], weight.shape[2]))
    for tap in range(taps):
        kernel = flat.squeeze(flat.slice_dim(flat.convert(weight, wide), 0, tap, tap + 1), 0)
        product = flat.dot_general(flat.slice_dim(padded, 0, tap, tap + times), kernel, ((2,), (0,)))
        # PyTorch rounds after each tap.
        total = flat.convert(flat.convert(total, wide) + product, x.dtype)
    return total


@op(
    "conv_tbc_backward(Tensor self, Tensor input, Tensor weight, Tensor bias, int pad)"
    " -> (Tensor, Tensor, Tensor)",
    method=False,
    function=False,
    samples=lambda: [S(T(6, 1, 4), T(5, 1, 3), T(2, 3, 4), T(4), 1)],
)
def conv_tbc_backward(cotangent, x, weight, bias, pad):
    """The gradients of `conv_tbc` in its input, weight and bias."""
    if {cotangent.rank, x.rank, weight.rank} != {3} or bias.shape != weight.shape[2:]:
        raise ShapeError(f"{cotangent.type} is no gradient of {x.type} convolved by {weight.type}")
    taps, times = weight.shape[0], x.shape[0] + 2 * pad - weight.shape[0] + 1
    if cotangent.shape != (times, x.shape[1], weight.shape[2]):
        raise ShapeError(f"{cotangent.type} is no gradient of {x.type} convolved by {weight.type}")
    padded = flat.pad(x, (pad, 0, 0), (pad, 0, 0))
    of_x, of_weight = [], []
    for tap in range(taps):
        kernel = flat.squeeze(flat.slice_dim(weight, 0, tap, tap + 1), 0)
        back = flat.dot_general(cotangent, kernel, ((2,), (1,)))
        of_x.append(flat.pad(back, (tap, 0, 0), (taps - 1 - tap, 0, 0)))
        part = flat.slice_dim(padded, 0, tap, tap + times)
        of_weight.append(flat.unsqueeze(flat.dot_general(part, cotangent, ((0, 1), (0, 1))), 0))
    whole = functools.reduce(flat.add, of_x)
    return (
        flat.slice_dim(whole, 0, pad, pad + x.shape[0]),
        flat.concatenate(of_weight, 0),
        flat.sum(cotangent, (0, 1)),
    )
