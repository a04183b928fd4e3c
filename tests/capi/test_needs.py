"""What libtorch's kernels take for granted is checked before they are called, by name and typed alike."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from tenfold.base.errors import TenfoldError
from tenfold.capi import needs
from tenfold.capi.binding import Device, Scalar
from tenfold.capi.locate import NEWEST, find_libtorch
from tests.capi.bridge import Bridge, Handle
from tests.capi.odd_tensors import odd_tensors

INT64, FLOAT32 = 4, 6


OLDER = {"aten::align_tensors", "aten::align_to.ellipsis_idx"}  # which the newest has no more


@pytest.mark.skipif(not find_libtorch().version.startswith(NEWEST), reason="older ones lack some")
def test_what_has_needs_is_an_operator(tn: Bridge) -> None:
    for name in sorted(needs.needs_of(find_libtorch().schemas).keys() - OLDER):
        assert tn.tn_find(name.encode())


def test_arguments_that_a_kernel_would_divide_by_or_not_find_are_errors_by_name(tn: Bridge) -> None:
    x, one, empty = tn.tensor([[1.0, 2.0]]), tn.tensor([1.0]), tn.tensor([])
    images, whole = tn.tensor([[[[1.0, 2.0], [3.0, 4.0]]]]), tn.tensor([1] * 40, "int64")
    smallest, far = tn.tensor([-(1 << 63)], "int64"), tn.tensor([[[[1 << 20]]]], "int64")
    grad, target = tn.tensor([[[[1.0]]]]), tn.tensor([9], "int64")
    grid = tn.tensor([[[[float("nan"), 0.0]]]])
    sparse = tn.call("to_sparse_csr", x)
    four, empty_labels = tn.tensor([1.0, 2.0, 3.0, 4.0]), tn.tensor([], "int64")

    def offsets(*starts: int) -> Handle:
        return tn.tensor(list(starts), "int64")

    def backward_of_labels(lengths: list[int], *, log_alpha: int = 1, blank: int = 0) -> tuple[Any, ...]:
        log_probs, alpha = tn.tensor(np.zeros((3, 1, 4))), tn.tensor(np.zeros((1, 3, log_alpha)))
        return one, log_probs, offsets(0), [3], lengths, one, alpha, blank

    cases: list[tuple[str, str, tuple[Any, ...]]] = [
        ("native_group_norm", "group is a positive number", (x, None, None, 1, 2, 1, 0, 0.1)),
        ("native_group_norm", "N x C x HxW", (x, None, None, 1 << 40, 1 << 40, 1, 1, 0.1)),
        ("native_group_norm", "each channel", (x, one, None, 1, 2, 1, 1, 0.1)),
        ("native_batch_norm", "running_mean", (x, None, None, None, None, False, 0.1, 0.1)),
        ("native_batch_norm", "each channel", (x, one, None, None, None, True, 0.1, 0.1)),
        ("native_batch_norm", "out of range", (one, None, None, None, None, True, 0.1, 0.1)),
        ("_native_batch_norm_legit.no_stats", "training is true", (x, None, None, False, 0.1, 0.1)),
        ("_native_batch_norm_legit_no_training", "each channel", (x, None, None, one, one, 0.1, 0.1)),
        ("range.step", "step", (0, 1, 0.5, INT64)),
        ("arange.start_step", "64 bits", (1 << 62, -(1 << 62) - 1, -1, INT64)),
        ("arange.start_out", "64 bits", (1 << 62, -(1 << 62) - 1, -1, whole)),
        ("arange.start_step", "step must be nonzero", (0, 1, 0.1, INT64)),
        ("arange.start_out", "step must be nonzero", (0, -3, -0.5, whole)),
        ("_fft_c2c", "out of range", (x, [1 << 40], 0, True)),
        ("_stack", "at least one tensor", ([], 0)),
        ("_weight_norm_interface", "dimensions", (empty, empty, 3)),
        ("_weight_norm_interface", "each entry", (x, empty, 0)),
        ("copy", "strides", (sparse, x)),
        ("_fft_c2c", "out of range", (x, [-1], 0, True)),
        ("_fft_c2r", "half of it", (x, [1], 0, 5)),
        ("gelu_backward", "grad_output has the shape", (tn.call("expand", one, [2, 2]), x)),
        ("_log_softmax_backward_data", "grad_output has the shape", (x, one, 0, FLOAT32)),
        (
            "_adaptive_avg_pool2d_backward",
            "channels of self",
            (images, tn.call("tile", images, [1, 2, 1, 1])),
        ),
        ("native_batch_norm_backward", "shape of input", (x, images, *[None] * 5, True, 0.1, [True] * 3)),
        ("native_batch_norm_backward", "saved statistics", (x, x, *[None] * 5, True, 0.1, [True] * 3)),
        ("embedding_dense_backward", "less than num_weights", (x, tn.tensor([3], "int64"), 3, -1, True)),
        ("smooth_l1_loss_backward", "beta", (whole, whole, whole, 0, 0.5)),
        ("div.Tensor_mode", "divided by -1", (smallest, tn.call("neg", whole), "trunc")),
        ("div.Scalar_mode", "divided by -1", (smallest, -1, "trunc")),
        ("linalg_matrix_power", "absolute value", (tn.tensor([[1.0]]), -(1 << 63))),
        ("adaptive_max_pool2d_backward", "what was pooled", (grad, images, far)),
        (
            "max_pool2d_with_indices_backward",
            "what was pooled",
            (grad, images, [2, 2], [2, 2], [0, 0], [1, 1], False, far),
        ),
        ("nll_loss_backward", "classes of self", (one, x, target, None, 0, -100, one)),
        ("ctc_loss.IntList", "labels of log_probs", (tn.tensor([[[0.1, 0.2]]]), target, [1], [1])),
        ("ctc_loss.IntList", "lie in targets", (tn.tensor([[[0.1, 0.2]]]), empty_labels, [1], [1 << 62])),
        ("_ctc_loss_backward", "lie in targets", backward_of_labels([1_000_000], log_alpha=2_000_001)),
        ("_ctc_loss_backward", "log_alpha was computed", backward_of_labels([1 << 62])),
        ("_ctc_loss_backward", "blank", backward_of_labels([0], blank=10**9)),
        ("_ctc_loss_backward", "blank", backward_of_labels([0], blank=-1)),
        ("segment_reduce", "outside of data", (four, "sum", None, None, offsets(0, 10**10), 0, True)),
        ("segment_reduce", "not negative", (four, "sum", None, None, offsets(-1, 2), 0, True)),
        ("segment_reduce", "do not fall", (four, "sum", None, None, offsets(0, 3, 2), 0, True)),
        ("segment_reduce", "before axis", (four, "sum", None, None, tn.tensor([[0, 1]], "int64"), 0)),
        ("_segment_reduce_backward", "outside of data", (one, one, four, "sum", None, offsets(0, 9))),
        ("_segment_reduce_backward", "each segment", (one, one, four, "sum", None, offsets(0, 1, 2))),
        ("resize_", "not negative", (empty, [0, -1, 0])),
        ("resize.out", "keeps its dimensions", (x, [2, 3, 3], None, sparse)),
        ("resize_as_", "keeps its dimensions", (sparse, images)),
        ("grid_sampler_2d_backward", "no NaNs", (grad, images, grid, 0, 1, False, [True, True])),
        ("_reshape_alias", "memory of self", (x, [2, 3], [3, 1])),
        ("_pdist_forward", "contiguous matrix", (one, 2.0)),
        ("_chunk_cat", "dimension of each tensor", ([one, one], 1, 2)),
        ("_scaled_dot_product_flash_attention_for_cpu", "one shape", (images, images, x)),
        ("linalg_eigvals", "no NaNs", (tn.tensor([[1.0, float("nan")], [float("inf"), 1.0]]),)),
    ]
    for name, message, arguments in cases:
        with pytest.raises(TenfoldError, match=message):
            tn.call(name, *arguments)


def test_what_fits_is_computed(tn: Bridge) -> None:
    smallest, ones = tn.tensor([-(1 << 63), 4], "int64"), tn.tensor([1, -1], "int64")
    assert tn.array(tn.call("div.Tensor_mode", smallest, ones, "trunc")).tolist() == [-(1 << 63), -4]
    data, offsets = tn.tensor([1.0, 2.0, 3.0, 4.0]), tn.tensor([0, 1, 1, 4], "int64")
    sums = tn.call("segment_reduce", data, "sum", None, None, offsets)
    assert tn.array(sums).tolist() == [1.0, 0.0, 9.0]


def test_a_size_that_is_refused_is_not_kept(tn: Bridge) -> None:
    x = tn.tensor([])
    with pytest.raises(TenfoldError, match="overflow"):
        tn.call("as_strided_", x, [-1, -1, 3], [1, 0, 0])
    assert tn.array(x).shape == (0,)


def test_the_median_of_a_repeated_element_is_that_element(tn: Bridge) -> None:
    repeated = tn.call("expand", tn.call("slice.Tensor", tn.tensor([5.0, 6.0, 7.0]), 0, 0, 1), [3])
    assert tn.array(tn.call("median.dim", repeated, 0)) == 5.0
    results = (ctypes.c_void_p * 2)()
    tn.typed("tn_median_dim", repeated, ctypes.c_int64(0), False, results)
    assert tn.array(tn.keep(results[0])) == 5.0
    tn.tn_free(results[1])


def test_an_elementwise_operator_may_write_into_what_it_reads(tn: Bridge) -> None:
    x = tn.tensor([1.0, 2.0])
    tn.typed("tn_add_out", x, x, x)
    assert tn.array(x).tolist() == [2.0, 4.0]
    tn.call("mul.out", x, x, x)
    assert tn.array(x).tolist() == [4.0, 16.0]


def test_other_operators_crash_nothing_where_they_write_into_what_they_read(tn: Bridge) -> None:
    def operands() -> tuple[Handle, Handle]:
        return tn.tensor(np.ones((3, 1700))), tn.tensor(np.ones((1700, 3)))

    left, right = operands()
    tn.typed("tn_mm_out", left, right, left)
    assert tn.array(left).shape == (3, 3)
    left, right = operands()
    tn.call("mm.out", left, right, left)
    assert tn.array(left).shape == (3, 3)
    one, wider = tn.tensor([1.0]), tn.tensor([1.0] * 1700)
    tn.typed("tn_add_out", one, wider, one)
    assert tn.array(one).shape == (1700,)


def test_such_arguments_are_errors_of_typed_functions_too(tn: Bridge) -> None:
    x, count = ctypes.c_void_p(tn.tensor([[1.0, 2.0]])), ctypes.c_int64
    none, results = ctypes.c_void_p(), (ctypes.c_void_p * 3)()
    half, whole = ctypes.c_double(0.5), ctypes.c_int32(INT64)
    odd = [tn.keep(each) for each in odd_tensors(tn.lib)]
    undefined = ctypes.c_void_p(next(each for each in odd if not tn.tn_tensor_is_defined(each)))
    cases: list[tuple[str, tuple[Any, ...]]] = [
        ("tn_native_group_norm", (x, none, none, count(1), count(2), count(1), count(0), half, results)),
        ("tn_native_batch_norm", (x, none, none, none, none, False, half, half, results)),
        (
            "tn_range_step_with",
            (Scalar.of(0), Scalar.of(1), Scalar.of(0.5), ctypes.byref(whole), none, none, none),
        ),
        ("tn__stack", (none, count(0), count(0))),
        ("tn_copy", (undefined, x, False)),
    ]
    for name, arguments in cases:
        tn.tn_error_clear()
        tn.typed(name, *arguments)
        assert tn.tn_error_code() == 1, (name, tn.tn_error_message())


def test_an_undefined_tensor_is_none_where_none_may_be_and_an_error_elsewhere(tn: Bridge) -> None:
    odd = [tn.keep(each) for each in odd_tensors(tn.lib)]
    undefined = next(each for each in odd if not tn.tn_tensor_is_defined(each))
    x = tn.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert tn.array(tn.call("linear", x, x, undefined)).tolist() == [[5.0, 11.0], [11.0, 25.0]]
    for name, arguments in [("copy", (undefined, x)), ("cat", ([x, undefined], 0))]:
        with pytest.raises(TenfoldError, match="was given an undefined tensor"):
            tn.call(name, *arguments)


def test_memory_that_is_yet_to_be_conjugated_is_not_handed_out(tn: Bridge) -> None:
    conjugated = tn.call("_conj", tn.call("complex", tn.tensor([1.0]), tn.tensor([2.0])))
    with pytest.raises(TenfoldError, match="tn_resolve_conj"):
        tn.tn_tensor_to_dlpack(conjugated)
    moved = tn.keep(tn.tn_to_device(conjugated, Device(0, -1), False))
    assert tn.array(moved).tolist() == [1 - 2j]
