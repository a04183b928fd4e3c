"""Shapes, offsets and numbers that kernels take to fit together are errors where they do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold.base.errors import TenfoldError
from tests.capi.bridge import Bridge, Handle


def zeros(tn: Bridge, *shape: int) -> Handle:
    return tn.tensor(np.zeros(shape))


def test_gradients_of_norms_and_views_have_the_shapes_of_what_was_computed(tn: Bridge) -> None:
    x, one = zeros(tn, 2, 4), zeros(tn, 1)
    images, more = zeros(tn, 1, 1, 2, 2), zeros(tn, 1, 2, 2, 2)
    cases: list[tuple[str, str, tuple[Any, ...]]] = [
        (
            "native_group_norm_backward",
            "each group of each input",
            (x, x, one, one, None, 2, 4, 1, 2, [True] * 3),
        ),
        ("native_group_norm_backward", "multiple of group", (x, x, one, one, None, 2, 4, 1, 3, [True] * 3)),
        (
            "native_layer_norm_backward",
            "shape of input",
            (one, x, [4], one, one, None, None, [True] * 3),
        ),
        ("native_layer_norm_backward", "each layer", (x, x, [4], one, one, None, None, [True] * 3)),
        ("unfold_backward", "what was unfolded", (one, [4], 0, 2, 1)),
        ("unfold_backward", "step is positive", (one, [4], 0, 2, 0)),
        ("replication_pad2d_backward", "channels of self", (more, images, [0, 0, 0, 0])),
        ("reflection_pad1d_backward", "channels of self", (zeros(tn, 2, 3), zeros(tn, 1, 3), [0, 0])),
        (
            "grid_sampler_3d_backward",
            "places of grid",
            (*[zeros(tn, 1, 4, 2, 3, 3)] * 3, 0, 0, False, [True, True]),
        ),
    ]
    for name, message, arguments in cases:
        with pytest.raises(TenfoldError, match=message):
            tn.call(name, *arguments)


def test_bags_lie_in_their_indices(tn: Bridge) -> None:
    weight, indices = zeros(tn, 3, 2), tn.tensor([0, 2], "int64")

    def bag(
        indices: Handle, offsets: list[int], *, mode: int = 0, weights: Any = None, last: bool = False
    ) -> Handle:
        starts = tn.tensor(offsets, "int64")
        return tn.call("_embedding_bag", weight, indices, starts, False, mode, False, weights, last)

    assert tn.array(bag(indices, [0, 1])).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    cases: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
        ("one dimension", (tn.tensor([[0, 1]], "int64"), [0]), {}),
        ("mode is", (indices, [0]), {"mode": 3}),
        ("shape of indices", (indices, [0]), {"weights": zeros(tn, 5)}),
        ("the last one", (indices, []), {"last": True}),
        ("rows of weight", (tn.tensor([3], "int64"), [0]), {}),
        ("outside of indices", (indices, [0, 9, 1]), {}),
        ("do not fall", (indices, [0, 2, 1]), {}),
    ]
    for message, arguments, options in cases:
        with pytest.raises(TenfoldError, match=message):
            bag(*arguments, **options)


def test_images_are_scaled_to_the_size_that_is_given(tn: Bridge) -> None:
    image = zeros(tn, 1, 1, 2, 2)
    assert tn.array(tn.call("upsample_bilinear2d", image, [5, 5], False, 2.5, 2.5)).shape == (1, 1, 5, 5)
    for name, scale in (("upsample_bilinear2d", 1e-300), ("_upsample_bilinear2d_aa", 0.5)):
        with pytest.raises(TenfoldError, match="all of output_size"):
            tn.call(name, image, [2, 3], False, None, scale)


def test_numbers_that_a_kernel_divides_by_or_goes_on_from_are_errors(tn: Bridge) -> None:
    with pytest.raises(TenfoldError, match="positive"):
        tn.call("native_channel_shuffle", zeros(tn, 1, 2, 2, 2), 0)
    with pytest.raises(TenfoldError, match="less than the largest"):
        tn.call("random_.from", zeros(tn, 1), (1 << 63) - 1, None)


def test_a_copy_of_what_is_yet_to_be_conjugated_has_its_memory_alone(tn: Bridge) -> None:
    many = tn.call("complex", zeros(tn, 8), zeros(tn, 8))
    conjugated = tn.call("slice.Tensor", tn.call("_conj", many), 0, 0, 1)
    assert tn.array(tn.call("_reshape_alias_copy", conjugated, [1], [1])).tolist() == [0j]
    with pytest.raises(TenfoldError, match="memory of self"):
        tn.call("_reshape_alias_copy", conjugated, [8], [1])


def test_zeros_that_have_no_memory_are_zeros_to_every_kernel(tn: Bridge) -> None:
    nothing, ones = tn.call("_efficientzerotensor", [2, 2]), tn.tensor([1.0, 1.0])
    assert tn.array(tn.call("median.dim", nothing, 1)).tolist() == [0.0, 0.0]
    assert tn.array(tn.call("_pdist_forward", nothing, 2.0)).tolist() == [0.0]
    assert tn.array(tn.call("_weight_norm_interface", nothing, ones, 1)).shape == (2, 2)


def test_weights_of_recurrent_layers_fit(tn: Bridge) -> None:
    steps, hidden = zeros(tn, 5, 1, 3), zeros(tn, 1, 1, 2)
    weights = [zeros(tn, 8, 3), zeros(tn, 8, 2)]
    settings = (False, 1, 0.0, False, False, False)
    assert tn.array(tn.call("lstm.input", steps, [hidden, hidden], weights, *settings)).shape == (5, 1, 2)
    cases: list[tuple[str, list[Handle], list[Handle], tuple[Any, ...]]] = [
        ("of its cells", [hidden], weights, settings),
        ("each layer, each direction", [hidden, zeros(tn, 1, 3, 2)], weights, settings),
        ("each layer and each direction", [hidden, hidden], weights[:1], settings),
        ("fit the input", [hidden, hidden], [zeros(tn, 8, 4), weights[1]], settings),
        ("positive number", [hidden, hidden], weights, (False, -1, 0.0, False, False, False)),
    ]
    for message, states, given, options in cases:
        with pytest.raises(TenfoldError, match=message):
            tn.call("lstm.input", steps, states, given, *options)
    packed, sizes = zeros(tn, 3, 3), tn.tensor([9, 1], "int64")
    with pytest.raises(TenfoldError, match="do not grow"):
        tn.call("lstm.data", packed, sizes, [hidden, hidden], weights, False, 1, 0.0, False, False)


def test_what_is_written_has_the_dtype_that_the_kernel_writes(tn: Bridge) -> None:
    flags = tn.tensor([True], "bool")
    with pytest.raises(TenfoldError, match="the dtype of self"):
        tn.call("_logcumsumexp.out", zeros(tn, 1000), 0, flags)


def test_keys_without_heads_are_an_error_where_heads_are_shared(tn: Bridge) -> None:
    query, none = zeros(tn, 1, 2, 1, 2), zeros(tn, 1, 0, 1, 2)
    with pytest.raises(TenfoldError, match="have heads"):
        tn.call("scaled_dot_product_attention", query, none, none, None, 0.0, False, None, True)
