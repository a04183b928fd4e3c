"""Ops by the names that TorchScript and ATen's own passes give them: operators as methods, indices without
None, images resampled by the name of a mode, and the functional form of `resize_`."""

import math

from tenfold import flat
from tenfold.base.errors import ArgumentError, ShapeError, UnsupportedError
from tenfold.ops.bitwise import left_shift, right_shift
from tenfold.ops.fake_quantize import fake_quantize_whole
from tenfold.ops.indexing import At, index, index_put, lone_mask_or_places, masks_as_places
from tenfold.ops.promote import common
from tenfold.ops.samples import S, T
from tenfold.ops.table import find, op

# Operators


def _operator(name, sign, build):
    @op(
        f"{name}.Scalar(Tensor self, Scalar other) -> Tensor",
        f"{name}.Tensor(Tensor self, Tensor other) -> Tensor",
        promote=common,
        function=False,
        method=False,
        meaning=f"self {sign} other",
    )
    def operate(x, y):
        return build(x, y)


_operator("__and__", "&", flat.logical_and)
_operator("__or__", "|", flat.logical_or)
_operator("__xor__", "^", flat.logical_xor)
_operator("__lshift__", "<<", left_shift)
_operator("__rshift__", ">>", right_shift)


# Indices without None


def _read_samples():
    return [S(T(4, 3), (At(5, size=4),)), S(T(4, 3), (At(2, 1, size=4), At(4, size=3, low=-3)))]


def _put_samples():
    return [
        S(T(4, 3), (At(1, size=4),), T(1, 3)),
        S(T(4, 3), (At(1, size=4), At(1, size=3)), T()),
        S(T(4, 3), (At(5, size=4),), T(5, 3), True),
    ]


@op(
    "index.Tensor_hacked_twin(Tensor self, Tensor[] indices) -> Tensor",
    function=False,
    method=False,
    prepare=masks_as_places,
    samples=_read_samples,
)
def index_twin(x, indices):
    """self[indices[0], indices[1], …]"""
    return index(x, indices)


@op(
    "index_put.hacked_twin(Tensor self, Tensor[] indices, Tensor values, bool accumulate=False) -> Tensor",
    function=False,
    method=False,
    prepare=lone_mask_or_places,
    samples=_put_samples,
    autocast="cuda: widest",
    forms="function_",
    torch_dialect="put_from_start",
)
@op(
    "_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
    "_unsafe_index_put.hacked_twin(Tensor self, Tensor[] indices, Tensor values, bool accumulate=False) "
    "-> Tensor",
    method=False,
    prepare=lone_mask_or_places,
    samples=_put_samples,
    torch_dialect="put_from_start",
)
def index_put_twin(x, indices, values, accumulate):
    """`index_put`, whose indices are checked all the same"""
    return index_put(x, indices, values, accumulate)


@op(
    "_index_put_impl(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False, "
    "bool unsafe=False) -> Tensor",
    function=False,
    method=False,
    prepare=lone_mask_or_places,
    samples=_put_samples,
    forms="aten_",
)
def index_put_impl(x, indices, values, accumulate, unsafe):
    """`index_put`, whose indices are checked all the same"""
    return index_put(x, indices, values, accumulate)


# Images

_MODES = {
    "nearest": "upsample_nearest{}d.vec",
    "nearest-exact": "_upsample_nearest_exact{}d.vec",
    "linear": "upsample_linear1d.vec",
    "bilinear": "upsample_bilinear2d.vec",
    "bicubic": "upsample_bicubic2d.vec",
    "trilinear": "upsample_trilinear3d.vec",
    "area": "adaptive_avg_pool{}d",
}
_DIMS = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}


@op(
    "__interpolate.size_list_scale_list(Tensor input, int[]? size=None, float[]? scale_factor=None, "
    "str mode='nearest', bool? align_corners=None, bool? recompute_scale_factor=None, "
    "bool antialias=False) -> Tensor",
    function=False,
    method=False,
    samples=lambda: [
        S(T(2, 3, 4, dtype="float32"), (6,)),
        S(T(2, 3, 4, dtype="float32"), (6,), None, "linear", True),
        S(T(1, 2, 4, 5, dtype="float32"), None, (2.0, 2.0)),
        S(T(1, 2, 4, 5, dtype="float32"), (3, 7), None, "bilinear", False),
        S(T(1, 2, 4, 5, dtype="float32"), None, (1.5, 2.5), "bilinear", False, True),
        S(T(1, 2, 6, 4, dtype="float32"), (3, 2), None, "area"),
    ],
)
def interpolate(x, size, scale_factor, mode, align_corners, recompute, antialias):
    """Images resampled to a size, or by factors, in a way that is named"""
    dims = x.rank - 2
    if mode not in _MODES or _DIMS.get(mode, dims) != dims or not 1 <= dims <= 3:
        raise UnsupportedError(f"mode {mode!r} does not take {x.type}", help=f"modes are {', '.join(_MODES)}")
    if (size is None) == (scale_factor is None):
        raise ArgumentError("give either size or scale_factor")
    for given in (size, scale_factor):
        if given is not None and len(given) != dims:
            raise ShapeError(f"{list(given)} is not one number for each of {dims} dimensions")
    if scale_factor is not None and (recompute or mode == "area"):
        size = tuple([int(n * factor) for n, factor in zip(x.shape[2:], scale_factor, strict=True)])
        scale_factor = None
    row = find(f"_upsample_{mode}2d_aa.vec" if antialias else _MODES[mode].format(dims))
    if mode == "area":
        return row.lowering(x, size)
    corners = () if mode.startswith("nearest") else (bool(align_corners),)
    return row.lowering(x, size, *corners, scale_factor)


# Memory


@op(
    "resize(Tensor self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor",
    function=False,
    method=False,
    samples=lambda: [S(T(3, 4), (2, 5)), S(T(3, 4), (4, 3)), S(T(6), ()), S(T(2, 3), (0, 2))],
    needs="new_size",
)
def resize(x, size):
    """The first elements of x in another shape, and zeros where it has no more"""
    wanted = math.prod(size)
    line = flat.reshape(x, (x.numel,))
    if wanted > x.numel:
        line = flat.concatenate([line, flat.full((wanted - x.numel,), 0, x.dtype)], 0)
    return flat.reshape(flat.slice_dim(line, 0, 0, wanted), size)


@op(
    "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, "
    "Tensor fake_quant_enabled, int quant_min, int quant_max) -> (Tensor output, Tensor mask)",
    method=False,
    samples=lambda: [
        S(
            T(3 + enabled, 4),
            T(1, dtype="float32", low=0.5, high=1),
            T(1, dtype="int32", low=0, high=3),
            T(1, dtype="int64", low=enabled, high=enabled + 1),
            -8,
            7,
        )
        for enabled in (0, 1)
    ],
)
def fake_quantize_if_enabled(x, scale, zero_point, enabled, low, high):
    """`fake_quantize` and where nothing was clamped, or x itself if it is not enabled"""
    rounded, mask = fake_quantize_whole(x, scale, zero_point, low, high)
    on = flat.broadcast_to(flat.ne(flat.reshape(enabled, ()), 0), x.shape)
    return flat.where(on, rounded, x), flat.logical_or(mask, flat.invert(on))
