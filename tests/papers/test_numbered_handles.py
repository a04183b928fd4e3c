"""The functions of the paper on handles that are numbers: each category has those that it names."""

from __future__ import annotations

import pytest

from tenfold.capi import rt

CATEGORIES = {
    "library": "available version cuda_available",
    "creation": "zeros ones randn rand full from_data arange linspace eye empty",
    "arithmetic": "add sub mul div pow neg abs sqrt exp log add_scalar mul_scalar",
    "activations": "relu sigmoid tanh leaky_relu gelu softmax log_softmax",
    "linear algebra": "matmul dot transpose t norm det inverse svd eig",
    "reductions": "sum sum_dim mean mean_dim max max_dim min min_dim argmax argmin std var",
    "shapes": "ndim numel shape reshape view permute squeeze squeeze_dim unsqueeze flatten contiguous",
    "networks": "conv2d max_pool2d avg_pool2d batch_norm layer_norm dropout linear embedding",
    "losses": "mse_loss cross_entropy binary_cross_entropy nll_loss",
    "autograd": "set_requires_grad requires_grad grad backward zero_grad detach",
    "devices": "cuda cpu is_cuda device to_stream clone",
    "streams": "stream_create sync query free",
}


@pytest.mark.parametrize("category", CATEGORIES)
def test_a_category_is_whole(category: str) -> None:
    declared = {each.name for each in rt.functions()}
    wanted = CATEGORIES[category].split()
    missing = [
        name for name in wanted if not any(each.endswith(f"_{name}") or each == name for each in declared)
    ]
    assert not missing


def test_there_are_more_than_a_hundred() -> None:
    assert sum(f"{each.name}(" in rt.header() for each in rt.functions()) > 100
