"""Operators that are parts of others, called by name, look at their arguments like those that call them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold.base.errors import TenfoldError
from tests.capi.bridge import Bridge

FLOAT32, INT64 = 6, 4


def test_parts_refuse_what_their_kernels_take_for_granted(tn: Bridge) -> None:
    x, one, rows = tn.tensor([[1.0, 2.0]]), tn.tensor([1.0]), tn.tensor(np.ones((3, 3)))
    whole, state = tn.tensor([1, 2], "int64"), tn.tensor(np.zeros((2, 30)), "int64")
    image, kernel = tn.tensor(np.ones((1, 1, 4, 4))), tn.tensor(np.ones((1, 1, 3, 3)))
    gates, bytes_, scales = (
        tn.tensor(np.ones((2, 6))),
        tn.tensor(np.ones((3, 2)), "uint8"),
        tn.tensor(np.ones(3)),
    )
    empty = tn.tensor(np.zeros((0, 2)), "int64")
    sgd = (0.1, 0.9, 0.1, 0.0, False, False, False)
    lstm = (False, [], 2, 2, 1, True, False, False, False)
    cases: list[tuple[str, str, tuple[Any, ...]]] = [
        ("_batch_norm_no_update", "running_mean and running_var", (x, None, None, None, None, 0.1, 0.1)),
        ("_batch_norm_with_update", "each channel", (x, None, None, one, one, 0.1, 0.1)),
        ("_cdist_backward", "each row of x1", (one, rows, rows, 1.0, one)),
        ("_cholesky_solve_helper", "A is square", (rows, x, False)),
        ("_compute_linear_combination", "a column for each entry", (rows, x)),
        ("_convert_indices_from_csr_to_coo", "begin with 0", (whole, whole)),
        ("_convert_indices_from_coo_to_csr", "rows of a matrix", (tn.tensor([7], "int64"), 2)),
        ("_cummax_helper", "shape of self", (rows, x, x, 0)),
        ("_cummin_helper", "dim is one of self's", (rows, rows, rows, -1)),
        ("_dyn_quant_matmul_4bit", "positive", (x, one, 0, 2, 1)),
        ("_dyn_quant_matmul_4bit", "what was packed", (x, one, 2, 2, 3)),
        ("_dyn_quant_pack_4bit_weight", "each block", (bytes_, scales, None, 4, 8, 3)),
        ("_foreach_copy", "all lists", ([x], [x, x])),
        ("_foreach_mul.ScalarList", "all lists", ([x], [])),
        ("_fused_sgd_", "a tensor for each weight", ([x, x], [x], [x], *sgd)),
        ("_fused_sgd", "its shape and its strides", ([x], [one], [x], *sgd)),
        ("_nested_compute_contiguous_strides_offsets", "at least one row", (empty,)),
        ("_nested_from_padded", "sizes of each tensor", (x, rows)),
        ("_nested_from_padded", "larger than it is", (rows, tn.tensor([[1], [2], [9]], "int64"))),
        ("_saturate_weight_to_fp16", "have memory", (tn.tensor([]),)),
        ("cat.out", "at least one tensor", ([], 0, x)),
        ("_jagged_to_padded_dense_forward", "at least one dimension", (x, [], [])),
        ("_sparse_compressed_tensor_with_dims", "two more dimensions", (2, -2, [], [], INT64)),
        ("rrelu_with_noise.out", "out has the shape", (x, x, 0.1, 0.2, True, None, one)),
        ("lu_unpack", "whichever are fewer", (rows, tn.tensor([], "int32"))),
        ("_convolution_double_backward", "that is convolved",
         (None, None, None, image, kernel, image, [], [1], [1], False, [0], 1, [True] * 3)),
        ("_neg_view", "has no kernel for a tensor that is quantized",
         (tn.call("quantize_per_tensor", x, 0.5, 0, 13),)),
        ("trapz.dx", "has no kernel for a tensor that is nested",
         (tn.call("_nested_tensor_from_tensor_list", [x, x]),)),
        ("index_copy", "in oneDNN's own form", (x, 0, whole, tn.call("to_mkldnn", x))),
        ("batch_norm_stats", "channels, and elements", (one, 0.1)),
        ("_new_zeros_with_same_feature_meta", "self_num_batch_dims", (x, x, -2)),
        ("_nnpack_spatial_convolution", "stride is positive", (image, kernel, None, [0, 0], [0, 1])),
        ("_nnpack_spatial_convolution", "no larger", (kernel, image, None, [0, 0], [1, 1])),
        ("_pad_packed_sequence", "add up to the data", (rows, tn.tensor([2], "int64"), False, 0, 3)),
        ("_pack_padded_sequence_backward", "do not grow", (rows, [2, 2, 3], whole, False)),
        ("_compute_linear_combination", "dtype of input", (rows, tn.tensor(np.ones((2, 3)), "int64"))),
        ("_pdist_backward", "each pair", (one, rows, 2.0, one)),
        ("_lazy_clone", "use aten::clone", (x,)),
        ("linalg_ldl_solve", "counted from one", (rows, tn.tensor([1, 9, 2], "int32"), rows)),
        ("linalg_lu_solve", "counted from one", (rows, tn.tensor([0, 1, 2], "int32"), rows)),
        ("matmul.out", "each row of a sparse self", (tn.call("to_sparse_csr", rows), scales, one)),
        ("triangular_solve", "each row of a sparse A", (x, tn.call("to_sparse_csr", rows))),
        ("_add_batch_dim", "a part of vmap", (x, 0, 1)),
        ("_remove_batch_dim", "a part of vmap", (x, 1, 1, -3)),
        ("_sobol_engine_draw", "no more than 2", (whole, 1 << 40, state, 2, 0, FLOAT32)),
        ("_sobol_engine_initialize_state_", "dimension is 1 to", (state, -1)),
        ("_sobol_engine_scramble_", "30 x 30", (state, state, 2)),
        ("_thnn_differentiable_gru_cell_backward", "sets of gates", (rows, gates, gates, rows, None, None)),
        ("_transform_bias_rescale_qkv", "each of the heads", (tn.tensor(np.ones((1, 2, 6))), one, 0)),
        ("_weight_norm_interface_backward", "saved_norms", (rows, rows, scales, one, 0)),
        ("choose_qparams_optimized", "ratio 0 to 1", (one, 1, 4, float("inf"), 4)),
        ("choose_qparams_optimized", "no infinities", (tn.tensor([float("inf")]), 1, 4, 0.5, 4)),
        ("fbgemm_pack_gemm_matrix_fp16", "an object's address", (rows,)),
        ("mkldnn_rnn_layer", "weights fit", (tn.tensor(np.ones((1, 1, 2))), *[rows] * 4, one, one, *lstm)),
        ("quantized_lstm_cell", "hx has the state", (x, [x], *[x] * 8, 1, 1, 0, 0)),
        ("set_.source_Tensor", "has memory", (x, tn.call("_efficientzerotensor", [2, 2]))),
    ]  # fmt: skip
    for name, message, arguments in cases:
        with pytest.raises(TenfoldError, match=message):
            tn.call(name, *arguments)


def test_distances_between_no_rows_are_refused_a_gradient_only(tn: Bridge) -> None:
    none = tn.tensor(np.zeros((0, 3)))
    assert tn.array(tn.call("pdist", none, 2.0)).shape == (0,)
    tn.tn_set_requires_grad(none, True)
    with pytest.raises(TenfoldError, match="at least one row where a gradient is taken"):
        tn.call("pdist", none, 2.0)


def test_typed_functions_refuse_tensors_in_a_form_of_their_own(tn: Bridge) -> None:
    x = tn.tensor([[1.0, 2.0]])
    quantized = tn.call("quantize_per_tensor", x, 0.5, 0, 13)
    assert tn.typed("tn_relu", quantized) is None
    assert "self is quantized: call the operator by its name" in tn.tn_error_message().decode()
    assert tn.array(tn.call("dequantize.self", tn.call("relu", quantized))).tolist() == [[1.0, 2.0]]
