"""Arguments that fit together, for operators that take nothing else: by the operator's name, then by the
argument's."""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["FITTING"]


def ramp(*shape: int) -> torch.Tensor:
    return torch.linspace(-0.9, 0.9, torch.Size(shape).numel()).reshape(shape)


def _labels() -> dict[str, Any]:
    log_probs, targets = ramp(5, 2, 4).log_softmax(2), torch.tensor([[1, 2], [3, 1]])
    lengths = {"input_lengths": [5, 4], "target_lengths": [2, 1]}
    loss, log_alpha = torch.ops.aten._ctc_loss(log_probs, targets, *lengths.values())
    given = {"grad": torch.ones(2), "log_probs": log_probs, "targets": targets, **lengths, "blank": 0}
    return {**given, "neg_log_likelihood": loss, "log_alpha": log_alpha}


def _attention() -> dict[str, Any]:
    query, key, value = ramp(1, 2, 3, 4), ramp(1, 2, 5, 4) * 2, ramp(1, 2, 5, 4).flip(2)
    out, logsumexp = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(query, key, value)
    given = {"grad_out": ramp(1, 2, 3, 4), "query": query, "key": key, "value": value}
    kept = {"out": out.contiguous(), "logsumexp": logsumexp.contiguous()}
    return {**given, **kept, "dropout_p": 0.0, "is_causal": False}


def _grid(*places: int) -> dict[str, Any]:
    settings = {"interpolation_mode": 0, "padding_mode": 0, "align_corners": False}
    inside, rank = [place + 1 for place in places], len(places)
    given = {"grad_output": ramp(1, 2, *places), "input": ramp(1, 2, *inside), "grid": ramp(1, *places, rank)}
    return {**given, **settings, "output_mask": [True, True]}


def _recurrent(gates: int) -> dict[str, Any]:
    hidden = ramp(1, 2, 2)
    return {
        "input": ramp(4, 2, 3),
        "data": ramp(5, 3),
        "batch_sizes": torch.tensor([2, 2, 1]),
        "hx": [hidden, hidden * 2] if gates == 4 else hidden,
        "params": [ramp(gates * 2, 3), ramp(gates * 2, 2)],
        "has_biases": False,
        "num_layers": 1,
        "dropout": 0.0,
        "train": False,
        "bidirectional": False,
        "batch_first": False,
    }


def _norm(**sizes: Any) -> dict[str, Any]:
    x, weight = ramp(2, 4), ramp(4)
    saved = {"mean": x.mean(1, keepdim=True), "rstd": x.std(1, keepdim=True)}
    given = {"grad_out": ramp(2, 4).flip(0), "input": x, **saved, "weight": weight, "bias": weight}
    return {**given, **sizes, "output_mask": [True, True, True]}


def _cell(gates: int) -> dict[str, Any]:
    state, rows = ramp(2, 3), ramp(2, gates * 3)
    biases = {"input_bias": ramp(gates * 3), "hidden_bias": ramp(gates * 3) * 2}
    kept = {"grad_hy": ramp(2, 3), "grad_cy": ramp(2, 3), "hx": state, "cx": state, "cy": state * 2}
    return {**kept, **biases, "input_gates": rows, "hidden_gates": rows * 2}


def _step(**settings: float) -> dict[str, Any]:
    tensors = lambda: [ramp(2, 2) + 1, ramp(3) + 1]
    lists = (
        "self",
        "grads",
        "momentum_buffer_list",
        "exp_avgs",
        "exp_avg_sqs",
        "max_exp_avg_sqs",
        "state_sums",
    )
    counts = [torch.tensor(2.0), torch.tensor(3.0)]
    common = {"weight_decay": 0.1, "eps": 1e-6, "maximize": False, "amsgrad": False, "lr_decay": 0.1}
    moments = {"beta1": 0.9, "beta2": 0.99, "momentum": 0.9, "dampening": 0.1, "nesterov": False}
    rest = {**common, **moments, "is_first_step": False, "state_steps": counts, "out": tensors(), **settings}
    return {**{name: tensors() for name in lists}, **rest}


def _sobol() -> dict[str, Any]:
    state = torch.ops.aten._sobol_engine_initialize_state_(torch.zeros(2, 30, dtype=torch.int64), 2)
    drawn = {"quasi": torch.tensor([5, 7]), "n": 3, "sobolstate": state, "num_generated": 4, "dtype": 6}
    return {**drawn, "dimension": 2}


def _lstm_layer() -> dict[str, Any]:
    weights = {"weight0": ramp(8, 3), "weight1": ramp(8, 2), "weight2": ramp(8), "weight3": ramp(8) * 2}
    flags = {
        "reverse": False,
        "has_biases": True,
        "bidirectional": False,
        "batch_first": False,
        "train": False,
    }
    sizes: dict[str, Any] = {"batch_sizes": [], "mode": 2, "hidden_size": 2, "num_layers": 1}
    return {"input": ramp(4, 2, 3), **weights, "hx_": ramp(1, 2, 2), "cx_": ramp(1, 2, 2), **sizes, **flags}


def _convolution() -> dict[str, Any]:
    image, weight = ramp(1, 2, 3, 3), ramp(3, 2, 2, 2)
    gradients = {"ggI": image.flip(1), "ggW": weight.flip(0), "ggb": ramp(3), "gO": ramp(1, 3, 2, 2)}
    lists = {"stride": [1, 1], "padding": [0, 0], "dilation": [1, 1], "output_padding": [0, 0]}
    given = {"weight": weight, "self": image, "transposed": False, "groups": 1, "output_mask": [True] * 3}
    return {**gradients, **lists, **given}


def _batches() -> dict[str, Any]:
    x, channels = ramp(2, 3, 4), ramp(3) + 2
    statistics = {"running_mean": ramp(3), "running_var": channels, "save_mean": ramp(3)}
    kept = {
        "save_var_transform": channels,
        "impl_index": 0,
        "reservedSpace": torch.zeros(0, dtype=torch.uint8),
    }
    flags = {"train": True, "training": True, "eps": 0.1, "momentum": 0.1, "output_mask": [True] * 3}
    given = {
        "input": x,
        "grad_output": x.flip(0),
        "grad_out": x.flip(0),
        "weight": channels,
        "bias": channels,
    }
    kept |= {"save_invstd": channels, "save_var": channels, "update": True, "reserve": kept["reservedSpace"]}
    return {**given, **statistics, **kept, **flags}


BAGS = {"weight": ramp(4, 3), "indices": torch.tensor([0, 3, 1]), "offsets": torch.tensor([0, 2])}
WEIGHTS = {"v": ramp(3, 2), "g": ramp(3, 1) + 2, "dim": 0}
FOURIER = {"normalization": 0, "forward": True, "onesided": True, "last_dim_size": 4}
WAVES = torch.complex(ramp(2, 3), ramp(2, 3))

OFFSETS = {"offsets": [torch.tensor([0, 2, 5])]}
STEPS = {"batch_sizes": torch.tensor([2, 2, 1]), "batch_first": False}
SOBOL = _sobol()
PACKED = {"block_size": 4, "in_features": 4, "out_features": 3}
BYTES = {"weights": torch.full((3, 2), 0x37, dtype=torch.uint8), "scales_zeros": ramp(3) + 1, "bias": ramp(3)}
DISTANCES = {"x1": ramp(2, 3, 4), "x2": ramp(5, 4) * 2, "p": 2.0, "cdist": ramp(2, 3, 5) + 2}

FITTING: dict[str, dict[str, Any]] = {
    "_batch_norm_impl_index_backward": _batches(),
    "_batch_norm_no_update": _batches(),
    "_batch_norm_with_update": _batches(),
    "_batch_norm_with_update_functional": _batches(),
    "_cdist_backward": {**DISTANCES, "grad": ramp(2, 3, 5)},
    "_cholesky_solve_helper": {"self": ramp(2, 3, 2), "A": ramp(2, 3, 3) + 2, "upper": False},
    "_compute_linear_combination": {
        "input": ramp(3, 2),
        "coefficients": ramp(2, 3),
        "out": torch.zeros(2, 2),
    },
    "_convert_indices_from_coo_to_csr": {"self": torch.tensor([0, 0, 2]), "size": 4}
    | {"out": torch.zeros(0, dtype=torch.int64)},
    "_convert_indices_from_csr_to_coo": {"crow_indices": torch.tensor([0, 2, 3])}
    | {"col_indices": torch.tensor([0, 1, 0]), "out": torch.zeros(0, dtype=torch.int64)},
    "_convolution_double_backward": _convolution(),
    "_ctc_loss_backward": _labels(),
    "_cummax_helper": {"self": ramp(2, 3), "dim": 1, "values": torch.zeros(2, 3)}
    | {"indices": torch.zeros(2, 3, dtype=torch.int64)},
    "_cummin_helper": {"self": ramp(2, 3), "dim": 0, "values": torch.zeros(2, 3)}
    | {"indices": torch.zeros(2, 3, dtype=torch.int64)},
    "_dyn_quant_matmul_4bit": {**PACKED, "inp": ramp(2, 4)}
    | {"packed_weights": torch.ops.aten._dyn_quant_pack_4bit_weight(*BYTES.values(), *PACKED.values())},
    "_dyn_quant_pack_4bit_weight": {**PACKED, **BYTES},
    "_embedding_bag": BAGS,
    "_embedding_bag_forward_only": BAGS,
    "_fft_c2c": {**FOURIER, "self": WAVES, "dim": [0, 1], "out": torch.zeros_like(WAVES)},
    "_fft_c2r": {**FOURIER, "self": WAVES, "dim": [0, 1], "out": torch.zeros(2, 4)},
    "_fft_r2c": {**FOURIER, "self": ramp(2, 4), "dim": [0, 1], "out": torch.zeros_like(WAVES)},
    "_fused_adagrad": _step(lr=0.1),
    "_fused_adagrad_": _step(lr=0.1),
    "_fused_adam": _step(lr=0.1),
    "_fused_adam_": _step(lr=0.1),
    "_fused_adamw": _step(lr=0.1),
    "_fused_adamw_": _step(lr=0.1, amsgrad=True),
    "_fused_sgd": _step(lr=0.1),
    "_fused_sgd_": _step(lr=0.1),
    "_native_batch_norm_legit": _batches(),
    "_jagged_to_padded_dense_forward": {"values": ramp(5, 3), "max_lengths": [3], **OFFSETS},
    "_nested_compute_contiguous_strides_offsets": {"nested_size": torch.tensor([[2, 3], [4, 3]])},
    "_nested_from_padded": {"padded": ramp(2, 4, 3), "fuse_transform_0213": False}
    | {"cpu_nested_shape_example": torch.tensor([[2, 3], [4, 3]])},
    "_nnpack_spatial_convolution": {"input": ramp(1, 2, 5, 5), "weight": ramp(3, 2, 3, 3), "bias": ramp(3)}
    | {"padding": [1, 1], "stride": [1, 1]},
    "_pack_padded_sequence_backward": {"grad": ramp(5, 2), "input_size": [3, 2, 2], **STEPS},
    "_pad_packed_sequence": {"data": ramp(5, 2), "padding_value": 0.5, "total_length": 4, **STEPS},
    "_padded_dense_to_jagged_forward": {"dense": ramp(2, 3, 3), "total_L": 5, **OFFSETS},
    "_pdist_backward": {"grad": ramp(3), "self": ramp(3, 4), "p": 2.0, "pdist": ramp(3) + 2},
    "_scaled_dot_product_flash_attention_for_cpu_backward": _attention(),
    "_sobol_engine_draw": SOBOL,
    "_sobol_engine_ff_": {**SOBOL, "self": torch.tensor([5, 7])},
    "_sobol_engine_initialize_state_": {**SOBOL, "self": torch.zeros(2, 30, dtype=torch.int64)},
    "_sobol_engine_scramble_": {**SOBOL, "self": SOBOL["sobolstate"]}
    | {"ltm": torch.ones(2, 30, 30, dtype=torch.int64)},
    "_sparse_compressed_tensor_with_dims": {"nnz": 2, "dense_dim": 0, "size": [2, 3], "blocksize": []}
    | {"index_dtype": 4, "layout": 2},
    "_thnn_differentiable_gru_cell_backward": _cell(3),
    "_thnn_differentiable_lstm_cell_backward": _cell(4),
    "_transform_bias_rescale_qkv": {"qkv": ramp(2, 3, 12), "qkv_bias": ramp(12), "num_heads": 2},
    "_weight_norm": WEIGHTS,
    "_weight_norm_interface": WEIGHTS,
    "_weight_norm_interface_backward": {"grad_w": ramp(3, 2), "saved_v": ramp(3, 2), "saved_g": ramp(3, 1)}
    | {"saved_norms": ramp(3) + 2, "dim": 0},
    "batch_norm_backward": _batches(),
    "choose_qparams_optimized": {"input": ramp(20), "numel": 20, "n_bins": 10, "ratio": 0.2, "bit_width": 4},
    "embedding_bag": {**BAGS, "scale_grad_by_freq": False, "mode": 0, "sparse": False, "padding_idx": None}
    | {"per_sample_weights": None, "include_last_offset": False},
    "grid_sampler_2d_backward": _grid(3, 2),
    "grid_sampler_3d_backward": _grid(3, 2, 2),
    "gru": _recurrent(3),
    "lstm": _recurrent(4),
    "mkldnn_rnn_layer": _lstm_layer(),
    "native_batch_norm": _batches(),
    "native_batch_norm_backward": _batches(),
    "native_group_norm_backward": _norm(N=2, C=4, HxW=1, group=1),
    "native_layer_norm_backward": _norm(normalized_shape=[4]),
    "rnn_relu": _recurrent(1),
    "rnn_tanh": _recurrent(1),
    "unfold_backward": {"grad_in": ramp(3, 2), "input_sizes": [4], "dim": 0, "size": 2, "step": 1},
}
