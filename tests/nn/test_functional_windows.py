"""Convolutions, pools, resampling and patches of `tenfold.nn.functional` beside PyTorch's: values, gradients to
the second order, refusals."""

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
lp_pool1d(line.abs(), 2, 3)
lp_pool2d(image.abs(), 3.0, (2, 3), 1)
lp_pool2d(image, float("inf"), 2)
lp_pool3d(volume.abs(), 2, 2, 1, True)
fractional_max_pool2d(image, 2, (3, 4), _random_samples=samples)
fractional_max_pool2d(image, 2, output_ratio=(0.5, 0.7), return_indices=True, _random_samples=samples)
fractional_max_pool3d(volume, 2, 2, _random_samples=samples3)
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
    leaves = {name: xp.tensor(arrays[name]).requires_grad_() for name in names_in(call)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = eval(call, vars(xp.nn.functional) | leaves)
    return list(result) if isinstance(result, tuple) else [result], list(leaves.values())


def weighted(xp: Any, x: Any) -> Any:
    """A real number that depends on every element of x in another way."""
    weights = np.cos(np.arange(x.numel()) + 1).reshape(tuple(x.shape))
    product = x * xp.tensor(weights)
    return (product.real + 2 * product.imag).sum() if x.is_complex() else product.sum()


def with_gradients(call: str, xp: Any) -> list[Any]:
    """A call's results, and their gradients by all tensors in it, for some calls to the second order."""
    results, leaves = evaluated(call, xp)
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


@pytest.mark.parametrize("family", CALLS)
def test_values_and_gradients_are_pytorchs(family):
    ours = [with_gradients(call, tn) for call in CALLS[family]]
    tn.eval(*[each for results in ours for each in results])
    differences = []
    for call, found in zip(CALLS[family], ours, strict=True):
        golden = with_gradients(call, torch)
        assert len(found) == len(golden), call
        differences += [difference(call, a, b) for a, b in zip(found, golden, strict=True)]
    assert [each for each in differences if each] == []


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
