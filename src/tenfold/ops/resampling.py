"""Rows that resample images: upsample_nearest, linear, cubic and anti-aliased, and their gradients.

Dimensions are resampled one after the other, by the taps that `interpolation.py` gives.
"""

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, DTypeError, ShapeError
from tenfold.ops.interpolation import cubic, in_whole_numbers, linear, nearest, real_of, resample, smooth
from tenfold.ops.precision import widened
from tenfold.ops.samples import S, T
from tenfold.ops.table import op, written

AXES = ("d", "h", "w")


def resized(x, taps):
    """x with its last dimensions resampled: `taps(i, extent)` for the i-th of them."""

    @widened
    def along(x):
        for i, extent in enumerate(x.shape[2:]):
            x = resample(x, i + 2, taps(i, extent))
        return x

    return along(x)


def resized_bytes(x, taps):
    """`resized` for images of bytes: the last dimension first, and rounded after each."""
    for i, extent in reversed(list(enumerate(x.shape[2:]))):
        found = taps(i, extent)
        if found.weights is None:
            x = resample(x, i + 2, found)
            continue
        whole, bits = in_whole_numbers(found)
        total = resample(flat.convert(x, dtypes.int32), i + 2, whole)
        rounded = flat.shift_right(total + 2 ** (bits - 1), bits)
        x = flat.convert(flat.clamp(rounded, 0, 255), dtypes.uint8)
    return x


def spread_back(cotangent, taps, shape):
    """The gradient of `resized` in an input of this spatial shape."""

    @widened
    def along(x):
        for i, extent in enumerate(shape):
            x = resample(x, i + 2, taps(i, extent).turned(extent))
        return x

    return along(cotangent)


def check_images(x, dims, size):
    if x.rank != dims + 2 or 0 in x.shape[1:]:
        raise ShapeError(f"takes {dims + 2} dimensions, of which only the batch may be empty, not {x.type}")
    if len(size) != dims or min(size) < 1:
        raise ArgumentError(f"output_size {list(size)} must be {dims} positive numbers")


def _check_float(x, what):
    if not x.dtype.is_floating_point:
        raise DTypeError(f"{what} is not defined for {x.dtype.name}", help="convert to float first")


def from_factors(x, dims, output_size, factors):
    """The result's extents and the scales, of which exactly one is given."""
    if (output_size is None) == (factors is None):
        raise ArgumentError("give either output_size or scale_factors")
    if factors is None:
        return output_size, (None,) * dims
    if len(factors) != dims or x.rank != dims + 2:
        raise ArgumentError(f"{len(factors)} scale_factors do not fit {x.type}")
    return tuple([int(n * factor) for n, factor in zip(x.shape[2:], factors, strict=True)]), factors


def _float(*shape):
    # Half types are compared elsewhere: PyTorch rounds their weights, here they are those of float32.
    return T(*shape, dtype="float32")


def _declare(name, dims, method, meaning, exact=False, corners=True):
    """The rows of one way of resampling: `method(extent, count, align_corners, scale, real)` gives taps, and
    `meaning` says what the i-th result along a dimension is."""
    step = "the old size over the new, or 1 / scale" + (
        ", or (old - 1) / (new - 1) with align_corners" if corners else ""
    )
    meaning = f"Along each dimension, {meaning}; step is {step}."
    size, image = (7, 6, 9)[:dims], (3, 4, 5)[-dims:]
    weighs_bytes = dims == 2 and not exact
    aligned = "bool align_corners, " if corners else ""
    autocast = "" if name.endswith("_aa") else "cuda: float32"
    # On each side of a place, libtorch looks at so many others.
    sides = {"_upsample_bilinear2d_aa": 1, "_upsample_bicubic2d_aa": 2, "_upsample_lanczos2d_aa": 3}.get(
        name, 0
    )
    needs = f"scales_of_sizes<{sides}>"
    names = [f"scales_{axis}" for axis in AXES[-dims:]] if dims > 1 else ["scales"]
    scales = ", ".join(f"float? {each}=None" for each in names)

    def taps(size, align, scales, real):
        return lambda i, extent: method(extent, size[i], align, scales[i], real)

    def split(arguments):
        return arguments if corners else (False, *arguments)

    def check(x):
        if not exact:
            _check_float(x, name)

    def plain():
        drawn = T if exact else _float
        calls = []
        for mode in [(False,), (True,)] if corners else [()]:
            for extents in (size, image, (2,) * dims, tuple([2 * n for n in image]), (1,) * dims):
                calls.append(S(drawn(2, 3, *image), extents, *mode))
            calls.append(S(T(1, 2, *image, dtype="float64"), size, *mode, *(1.6,) * dims))
            calls.append(S(T(0, 2, *image, dtype="float32"), size, *mode))
            if weighs_bytes:
                pictures = T(2, 3, 9, 8, dtype="uint8", low=0, high=256)
                calls += [S(pictures, extents, *mode) for extents in ((5, 6), (13, 15), (4, 8))]
        return calls

    def by_factor():
        drawn = T if exact else _float
        return [
            S(drawn(2, 3, *image), *rest)
            for mode in ([(False,), (True,)] if corners else [()])
            for rest in (
                (size, *mode, None),
                (None, *mode, (1.7, 0.6, 2.0)[:dims]),
                (None, *mode, (2.0,) * dims),
            )
        ]

    def back():
        return [
            S(_float(2, 3, *extents), extents, (2, 3, *image), *mode)
            for mode in ([(False,), (True,)] if corners else [()])
            for extents in (size, (2,) * dims)
        ]

    @op(
        f"{name}(Tensor self, SymInt[{dims}] output_size, {aligned}{scales}) -> Tensor",
        method=False,
        function=False,
        module="nn",
        samples=plain,
        autocast=autocast,
        needs=needs,
        late=written if exact else None,
        meaning=meaning,
        torch_dialect=f"resampled({name}, self, output_size, align_corners, {', '.join(names)})"
        if method is linear
        else "",
    )
    def upsample(x, size, *rest):
        align, *scales = split(rest)
        of_bytes = weighs_bytes and x.dtype is dtypes.uint8
        if not of_bytes:
            check(x)
        check_images(x, dims, size)
        return (resized_bytes if of_bytes else resized)(x, taps(size, align, scales, real_of(x.dtype)))

    @op(
        f"{name}.vec(Tensor input, SymInt[]? output_size, {aligned}float[]? scale_factors) -> Tensor",
        method=False,
        function=False,
        module="nn",
        samples=by_factor,
        autocast=autocast,
        meaning=meaning,
        torch_dialect=f"resampled_by_factor({name}, input, output_size, align_corners, scale_factors)"
        if method is linear
        else "",
    )
    def upsample_by_factor(x, size, *rest):
        align, factors = split(rest)
        size, scales = from_factors(x, dims, size, factors)
        return upsample(x, size, *((align,) if corners else ()), *scales)

    @op(
        f"{name}_backward(Tensor grad_output, SymInt[{dims}] output_size, SymInt[{dims + 2}] input_size, "
        f"{aligned}{scales}) -> Tensor",
        method=False,
        function=False,
        module="nn",
        samples=back,
        needs=needs,
        late=written,
        meaning=f"Each element of grad_output, weighted as in `{name}`, added to what it was read from.",
    )
    def upsample_backward(cotangent, size, input_size, *rest):
        align, *scales = split(rest)
        check(cotangent)
        check_images(cotangent, dims, size)
        if len(input_size) != dims + 2 or cotangent.shape != (*input_size[:2], *size):
            raise ShapeError(
                f"{cotangent.type} is not {list(input_size)} resampled to {list(size)}",
                help="input_size has the batch and channels of grad_output",
            )
        return spread_back(cotangent, taps(size, align, scales, real_of(cotangent.dtype)), input_size[2:])


def _smooth(name):
    return lambda *arguments: smooth(name, *arguments)


for _dims in (1, 2, 3):
    _declare(
        f"upsample_nearest{_dims}d",
        _dims,
        lambda extent, count, align, scale, real: nearest(extent, count, scale, 0.0),
        "the element at floor(i · step)",
        exact=True,
        corners=False,
    )
    _declare(
        f"_upsample_nearest_exact{_dims}d",
        _dims,
        lambda extent, count, align, scale, real: nearest(extent, count, scale, 0.5),
        "the element at floor((i + 1/2) · step)",
        exact=True,
        corners=False,
    )
_PLACE = "(i + 1/2) · step - 1/2 (i · step with align_corners)"
_LINEAR = f"the two elements around {_PLACE}, weighted by nearness"
_declare("upsample_linear1d", 1, linear, _LINEAR)
_declare("upsample_bilinear2d", 2, linear, _LINEAR)
_declare("upsample_trilinear3d", 3, linear, _LINEAR)
_declare(
    "upsample_bicubic2d", 2, cubic, f"the four elements around {_PLACE}, weighted by a cubic kernel, a = -3/4"
)
for _name, _kernel in {
    "bilinear": "triangle",
    "bicubic": "cubic kernel",
    "lanczos": "Lanczos kernel",
}.items():
    _under = f"all elements under a {_kernel} around (i + 1/2) · step - 1/2, widened by a step above 1"
    _declare(f"_upsample_{_name}2d_aa", 2, _smooth(_name), _under)
