"""Convolutions, pools, resampling and patches of `tenfold.nn.functional` beside PyTorch's: values, gradients,
refusals."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.nn import functional_images, functional_windows
from tests.ops.golden import close, to_numpy

F = tn.nn.functional
DRAWS = np.random.default_rng(0)


def drawn(*shape: int, dtype: Any = np.float64) -> np.ndarray:
    return DRAWS.normal(size=shape).astype(dtype)


# In float64, so that what is compared is the formula and not its rounding.
ARRAYS: dict[str, np.ndarray] = {
    "line": drawn(2, 4, 9),
    "image": drawn(2, 4, 7, 6),
    "one": drawn(4, 7, 6),
    "volume": drawn(1, 2, 5, 4, 4),
    "deep": drawn(1, 20, 5, 5),
    "k1": drawn(6, 2, 3),
    "k2": drawn(6, 2, 3, 2),
    "k2full": drawn(6, 4, 3, 2),
    "k3": drawn(2, 2, 2, 3, 2),
    "own": drawn(8, 1, 3, 3),
    "owndeep": drawn(20, 1, 3, 3),
    "back": drawn(4, 3, 3, 2),
    "ktbc": drawn(2, 9, 3),
    "bias": drawn(6),
    "complexes": drawn(1, 2, 5, 5) + 1j * drawn(1, 2, 5, 5),
    "ck": drawn(3, 2, 2, 3) + 1j * drawn(3, 2, 2, 3),
    "tied": np.round(drawn(2, 2, 6, 6)),
    "columns": drawn(2, 12, 20),
    "grid": DRAWS.uniform(-1.5, 1.5, (2, 3, 4, 2)),
    "grid3": DRAWS.uniform(-1.5, 1.5, (1, 2, 2, 3, 3)),
    "theta": drawn(2, 2, 3),
    "theta3": drawn(1, 3, 4),
    "samples": DRAWS.uniform(0, 1, (2, 4, 2)),
    "samples3": DRAWS.uniform(0, 1, (1, 2, 3)),
}

FAMILIES = {
    "convolutions": """
conv1d(line, k1, bias, groups=2)
conv1d(line, k1, None, 2, 1, 2, 2)
conv1d(line, k1, padding="same", dilation=2, groups=2)
conv2d(image, k2full, bias)
conv2d(image, k2full, bias, stride=(2, 1), padding=(1, 2), dilation=(1, 2))
conv2d(image, k2, groups=2, stride=2)
conv2d(one, k2full, bias, padding="same")
conv2d(one, k2full, stride=2, padding="valid")
conv2d(image, own, groups=4, padding=1, stride=(2, 1))
conv2d(deep, owndeep, groups=20, dilation=2)
conv3d(volume, k3, None, (1, 2, 1), 1)
conv_transpose1d(line, k1[:4], None, 2, 1, 1, 2)
conv_transpose2d(image, back, None, (2, 3), (1, 0), (1, 2))
conv_transpose2d(one, back[:, :2], None, 1, 0, 0, 2, 2)
conv_transpose2d(image, own[:4], output_padding=(1, 0), groups=4, dilation=(2, 1))
conv_transpose3d(volume, k3, None, 2)
conv_tbc(line, ktbc, bias[:3], 1)
conv2d(complexes, ck, stride=2, padding=1)
conv_transpose2d(complexes, ck[:2])
""",
    "pools": """
max_pool1d(line, 2)
max_pool1d(line, 3, 2, 1, 1, True)
max_pool2d(image, 2)
max_pool2d(image, (3, 2), (1, 2), (1, 1), return_indices=True)
max_pool2d(one, 3, 2, 1, ceil_mode=True)
max_pool2d(image, 2, 1, 0, 2, False, True)
max_pool2d(tied, 3, 2)
max_pool2d(tied, 2, return_indices=True)
max_pool2d_with_indices(tied, 3, 1, 1)
max_pool3d(volume, 2, padding=1)
avg_pool1d(line, 3, 2, 1)
avg_pool2d(image, 2)
avg_pool2d(image, 3, 2, 1, True, False)
avg_pool2d(one, (3, 2), 1, (1, 0), divisor_override=5)
avg_pool3d(volume, 2, 1)
adaptive_avg_pool1d(line, 4)
adaptive_avg_pool2d(image, (3, None))
adaptive_avg_pool2d(one, 1)
adaptive_avg_pool2d(image, (9, 4))
adaptive_avg_pool3d(volume, (2, 3, None))
adaptive_max_pool1d(line, 4, True)
adaptive_max_pool2d(tied, (4, None))
adaptive_max_pool2d(image, 3, return_indices=True)
adaptive_max_pool3d(volume, 2)
adaptive_max_pool1d_with_indices(line, 4)
adaptive_max_pool2d_with_indices(image, 3)
adaptive_max_pool3d_with_indices(volume, 2)
max_pool1d_with_indices(line, 2)
max_pool3d_with_indices(volume, 2)
lp_pool1d(line.abs(), 2, 3)
lp_pool2d(image.abs(), 3.0, (2, 3), 1)
lp_pool2d(image, float("inf"), 2)
lp_pool3d(volume.abs(), 2, 2, 1, True)
fractional_max_pool2d(image, 2, (3, 4), _random_samples=samples)
fractional_max_pool2d(image, 2, output_ratio=(0.5, 0.7), return_indices=True, _random_samples=samples)
fractional_max_pool3d(volume, 2, 2, _random_samples=samples3)
fractional_max_pool2d_with_indices(image, 2, (3, 4), _random_samples=samples)
fractional_max_pool3d_with_indices(volume, 2, 2, _random_samples=samples3)
max_unpool1d(*max_pool1d(line, 2, return_indices=True), 2, output_size=(9,))
max_unpool2d(*max_pool2d(image, 2, return_indices=True), 2, output_size=(2, 4, 7, 6))
max_unpool2d(*max_pool2d(one, (2, 3), return_indices=True), (2, 3))
max_unpool3d(*max_pool3d(volume, 2, return_indices=True), 2)
""",
    "resampling": """
interpolate(line, 5)
interpolate(image, scale_factor=2)
interpolate(volume, (3, 5, 8), mode="nearest-exact")
interpolate(image, scale_factor=(1.7, 0.6), mode="nearest-exact")
interpolate(line, 12, mode="linear")
interpolate(image, scale_factor=1.7, mode="bilinear")
interpolate(image, scale_factor=1.7, mode="bilinear", recompute_scale_factor=True)
interpolate(image, (3, 9), mode="bilinear", align_corners=True)
interpolate(image, (3, 9), mode="bicubic")
interpolate(image, (9, 3), mode="bicubic", align_corners=True)
interpolate(volume, 6, mode="trilinear")
interpolate(image, (3, 4), mode="bilinear", antialias=True)
interpolate(image, (3, 9), mode="bicubic", antialias=True, align_corners=True)
interpolate(image, (3, 4), mode="lanczos", antialias=True)
interpolate(image, (3, 4), mode="area")
interpolate(image, scale_factor=0.5, mode="area")
upsample(image, (3, 3))
upsample_nearest(image, scale_factor=2)
upsample_bilinear(image, (9, 9))
unfold(image, (3, 2))
unfold(one, 2, 2, 1, (2, 3))
fold(columns, (5, 6), (2, 2))
fold(columns[0], (9, 7), (3, 2), 1, 1, (2, 2))
""",
    "grids": """
grid_sample(image, grid, align_corners=False)
grid_sample(image, grid, "bilinear", "border", True)
grid_sample(image, grid, "bilinear", "reflection", False)
grid_sample(image, grid, "nearest", "reflection", True)
grid_sample(image, grid, "bicubic", "zeros", True)
grid_sample(image, grid, "bicubic", "border", False)
grid_sample(volume, grid3, "bilinear", "reflection", True)
grid_sample(volume, grid3, "nearest", "zeros", False)
affine_grid(theta, (2, 3, 4, 5), align_corners=True)
affine_grid(theta, (2, 3, 1, 5), align_corners=False)
affine_grid(theta3, (1, 3, 2, 4, 5), False)
""",
}
CALLS = {name: text.strip().splitlines() for name, text in FAMILIES.items()}
SECOND = (
    "conv2d(image, k2, groups=2, stride=2)",
    "conv_transpose2d(image, back, None, (2, 3), (1, 0), (1, 2))",
    "conv2d(image, own, groups=4, padding=1, stride=(2, 1))",
)


def names_in(call: str) -> list[str]:
    words = "".join(c if c.isalnum() or c == "_" else " " for c in call.partition("(")[2]).split()
    return [name for name in ARRAYS if name in words]


def evaluated(call: str, xp: Any, arrays: dict[str, np.ndarray] = ARRAYS) -> tuple[list[Any], list[Any]]:
    """A call's results, and the tensors in it."""
    leaves = {name: xp.tensor(arrays[name]) for name in names_in(call)}
    for name, leaf in leaves.items():
        leaf.requires_grad_(not name.startswith("samples"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = eval(call, vars(xp.nn.functional) | leaves)
    wrt = [leaf for leaf in leaves.values() if leaf.requires_grad]
    return list(result) if isinstance(result, tuple) else [result], wrt


def weighted(xp: Any, x: Any) -> Any:
    """A real number that depends on every element of x in another way."""
    weights = np.cos(np.arange(x.numel()) + 1).reshape(tuple(x.shape))
    product = x * xp.tensor(weights).to(x.real.dtype)
    return (product.real + 2 * product.imag).sum() if x.is_complex() else product.sum()


def with_gradients(call: str, xp: Any, arrays: dict[str, np.ndarray] = ARRAYS) -> list[Any]:
    """A call's results, and their gradients by all tensors in it, for some calls to the second order."""
    results, leaves = evaluated(call, xp, arrays)
    grads = xp.autograd.grad(weighted(xp, results[0]), leaves, allow_unused=True, create_graph=call in SECOND)
    found = [each for each in grads if each is not None]
    if call in SECOND:
        found += xp.autograd.grad(weighted(xp, sum((each**2).sum() for each in found)), leaves)
    return results + found


def difference(call: str, ours: Any, theirs: Any, rtol: float = 1e-7, atol: float = 1e-7) -> str | None:
    expected = str(theirs.dtype).removeprefix("torch.")
    if ours.dtype.name != expected or tuple(ours.shape) != tuple(theirs.shape):
        return f"{call}: {ours.dtype.name}{list(ours.shape)}, not {expected}{list(theirs.shape)}"
    wrong = ~close(ours.detach().numpy(), to_numpy(theirs), rtol, atol)
    return f"{call}: {int(wrong.sum())} of {wrong.size} differ" if wrong.any() else None


def compare(calls: list[str], arrays: dict[str, np.ndarray], rtol: float, atol: float) -> None:
    ours = [with_gradients(call, tn, arrays) for call in calls]
    tn.eval(*[each for results in ours for each in results])
    differences = []
    for call, found in zip(calls, ours, strict=True):
        golden = with_gradients(call, torch, arrays)
        assert len(found) == len(golden), call
        differences += [difference(call, a, b, rtol, atol) for a, b in zip(found, golden, strict=True)]
    assert [each for each in differences if each] == []


@pytest.mark.parametrize("family", CALLS)
def test_values_and_gradients_are_pytorchs(family):
    compare(CALLS[family], ARRAYS, 1e-7, 1e-7)


def test_convolutions_of_float32_take_other_ways_to_the_same_values_and_gradients():
    single = {n: a.astype(np.complex64 if a.dtype.kind == "c" else np.float32) for n, a in ARRAYS.items()}
    compare(CALLS["convolutions"], single, 1e-4, 1e-3)


def test_every_function_is_called_here_with_pytorchs_signature():
    names = [*functional_windows.__all__, *functional_images.__all__]
    called = " ".join(call for calls in CALLS.values() for call in calls)
    # Those with indices are called through return_indices.
    assert [name for name in names if name.removesuffix("_with_indices") + "(" not in called] == []
    for name in names:
        try:
            theirs = inspect.signature(getattr(torch.nn.functional, name))
        except ValueError:
            continue  # built in: its names are tried by the calls above
        described = lambda s: [(p.name, p.default, p.kind) for p in s.parameters.values()]
        assert described(inspect.signature(getattr(F, name))) == described(theirs), name


# What is special


def test_a_pool_of_nan_is_nan_and_its_place_the_last_one():
    x = drawn(1, 1, 4, 6, dtype=np.float32)
    x[0, 0, 0, 0] = x[0, 0, 1, 1] = x[0, 0, 2, 3] = np.nan
    x[0, 0, :2, 4:] = -np.inf
    for call in ("max_pool2d(x, 2, 2, 0, 1, False, True)", "max_pool2d(x, 3, 1, 1, 1, False, True)"):
        ours, theirs = (eval(call, vars(xp.nn.functional) | {"x": xp.tensor(x)}) for xp in (tn, torch))
        assert [difference(call, a, b) for a, b in zip(ours, theirs, strict=True)] == [None, None]


def test_a_pool_of_many_elements_is_folded_to_the_same():
    x = np.round(drawn(1, 2, 12, 12, dtype=np.float32) * 2)
    x[0, 0, 3, 3] = x[0, 0, 5, 2] = np.nan
    for call in ("max_pool2d(x, 9, 2, 4, 1, False, True)", "adaptive_max_pool2d(x, 1, True)"):
        ours, theirs = (eval(call, vars(xp.nn.functional) | {"x": xp.tensor(x)}) for xp in (tn, torch))
        assert [difference(call, a, b) for a, b in zip(ours, theirs, strict=True)] == [None, None]


HALF = """
conv2d(image, k2full, bias)
conv2d(image, own, groups=4, padding=1, stride=(2, 1))
conv_transpose2d(image, back, None, (2, 3), (1, 0), (1, 2))
avg_pool2d(image, 3, 2, 1, True, False)
adaptive_avg_pool2d(image, (3, 2))
max_pool2d(image, 3, 2)
interpolate(image, (3, 9), mode="bilinear")
interpolate(image, (3, 9), mode="bicubic", align_corners=True)
grid_sample(image, grid, "bilinear", "border", True)
fold(columns, (5, 6), (2, 2))
""".strip().splitlines()


def test_half_types_are_rounded_once():
    # PyTorch rounds the weights of interpolation to half precision; ours are nearer to the float64 result.
    for dtype, share in ((np.float16, 2e-3), (tn.bfloat16.numpy, 1.6e-2)):
        narrow = {name: array.astype(dtype) for name, array in ARRAYS.items() if array.dtype.kind == "f"}
        exact = {name: array.astype(np.float64) for name, array in narrow.items()}
        ours = [evaluated(call, tn, narrow)[0][0] for call in HALF]
        tn.eval(*ours)
        for call, found in zip(HALF, ours, strict=True):
            assert found.dtype.numpy == dtype
            expected = evaluated(call, torch, exact)[0][0].detach().numpy()
            assert close(found.detach().numpy(), expected, share, share).all(), call


def test_places_in_long_images_are_rounded_as_pytorchs():
    x = drawn(1, 1, 1021, dtype=np.float32) * 100
    for options in ({"size": 757}, {"scale_factor": 1.43}):
        ours, theirs = (
            xp.nn.functional.interpolate(xp.tensor(x), mode="linear", **options) for xp in (tn, torch)
        )
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6, atol=1e-4)


def test_empty_batches_stay_empty():
    empty = {name: ARRAYS[name][:0] for name in ("image", "line", "grid", "columns")}
    calls = [
        "conv2d(image, k2full, bias)",
        "conv_transpose2d(image, back)",
        "max_pool2d(image, 2)",
        "avg_pool2d(image, 2)",
        "adaptive_avg_pool2d(image, 2)",
        "adaptive_max_pool2d(image, 2)",
        "interpolate(image, 3)",
        "unfold(image, 2)",
        "fold(columns, (5, 6), (2, 2))",
    ]
    for call in calls:
        ours, theirs = (evaluated(call, xp, ARRAYS | empty)[0][0] for xp in (tn, torch))
        assert difference(call, ours, theirs) is None


def test_random_pools_draw_their_distances():
    tn.manual_seed(0)
    x = tn.tensor(ARRAYS["image"])
    first, second = (F.fractional_max_pool2d(x, 2, (5, 4)) for _ in range(2))
    assert first.tolist() != second.tolist()


REFUSED = [
    ("conv2d(image, drawn(6, 4, 9, 2))", "larger than the padded input"),
    ("conv2d(image, k2)", "4 channels, the weight takes 2"),
    ("conv2d(image, k2full, bias[:5])", "bias"),
    ("conv2d(image, k2full.float())", "dtypes differ"),
    ("conv2d(image, k2full, stride=0)", "stride"),
    ("conv2d(image, k2full, padding=-1)", "padding"),
    ("conv2d(image, k2full, padding='full')", "no padding 'full'"),
    ("conv2d(image, k2full, padding='same', stride=2)", "strides of 1"),
    ("conv2d(image, k2, groups=5)", "5 groups"),
    ("conv2d(line[0], k2full)", "unbatched"),
    ("conv_transpose2d(image, back, output_padding=1)", "output_padding 1 must be smaller"),
    ("conv_transpose2d(image, back, padding=9)", "spatial shape"),
    ("conv_tbc(line, k1, bias)", "bias|kernel"),
    ("max_pool2d(image, 2, 2, 2)", "more than half"),
    ("max_pool2d(image, 9)", "spatial shape"),
    ("max_pool2d(image, 0)", "kernel_size"),
    ("max_pool2d(image[:, :0], 2)", "only the batch may be empty"),
    ("max_pool2d(line[0], 2)", "dimensions"),
    ("avg_pool2d(image, 3, divisor_override=0)", "divisor_override is zero"),
    ("avg_pool2d(image, 3, 1, 2)", "more than half"),
    ("adaptive_avg_pool2d(image, (1, 2, 3))", "2 dimensions"),
    ("max_unpool2d(image, image.long(), 2, output_size=(99, 99))", "cannot be pooled"),
    ("max_unpool2d(image, image.long() + 999, 2).sum().item()", "outside"),
    ("fractional_max_pool2d(image, 2)", "output_size or an output_ratio"),
    ("fractional_max_pool2d(image, 6, 5)", "do not fit"),
    ("interpolate(image)", "either size or scale_factor"),
    ("interpolate(image, 3, 2)", "either size or scale_factor"),
    ("interpolate(image, 3, mode='linear')", "does not take 4 dimensions"),
    ("interpolate(image, 3, align_corners=True)", "align_corners"),
    ("interpolate(image, 3, mode='nearest', antialias=True)", "antialias"),
    ("grid_sample(image, grid, 'cubic')", "no mode 'cubic'"),
    ("grid_sample(image, grid[:1], align_corners=True)", "one batch"),
    ("affine_grid(theta, (2, 3, 4, 5, 6), True)", "do not fit"),
    ("unfold(image, 9)", "do not fit"),
    ("fold(columns, (5, 7), 2)", "are not columns"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_what_pytorch_refuses_is_refused_with_the_reason(call, message):
    def run(xp):
        names = {name: xp.tensor(array) for name, array in ARRAYS.items()}
        return eval(call, vars(xp.nn.functional) | names | {"drawn": lambda *shape: xp.zeros(shape).double()})

    with pytest.raises(Exception), warnings.catch_warnings():  # noqa: B017  # whatever PyTorch raises
        warnings.simplefilter("ignore")
        run(torch)
    with pytest.raises(tn.TenfoldError, match=message):
        run(tn)
