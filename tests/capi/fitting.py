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


BAGS = {"weight": ramp(4, 3), "indices": torch.tensor([0, 3, 1]), "offsets": torch.tensor([0, 2])}
WEIGHTS = {"v": ramp(3, 2), "g": ramp(3, 1) + 2, "dim": 0}
FOURIER = {"normalization": 0, "forward": True, "onesided": True, "last_dim_size": 4}
WAVES = torch.complex(ramp(2, 3), ramp(2, 3))

FITTING: dict[str, dict[str, Any]] = {
    "_ctc_loss_backward": _labels(),
    "_embedding_bag": BAGS,
    "_embedding_bag_forward_only": BAGS,
    "_fft_c2c": {**FOURIER, "self": WAVES, "dim": [0, 1], "out": torch.zeros_like(WAVES)},
    "_fft_c2r": {**FOURIER, "self": WAVES, "dim": [0, 1], "out": torch.zeros(2, 4)},
    "_fft_r2c": {**FOURIER, "self": ramp(2, 4), "dim": [0, 1], "out": torch.zeros_like(WAVES)},
    "_scaled_dot_product_flash_attention_for_cpu_backward": _attention(),
    "_weight_norm": WEIGHTS,
    "_weight_norm_interface": WEIGHTS,
    "embedding_bag": {**BAGS, "scale_grad_by_freq": False, "mode": 0, "sparse": False, "padding_idx": None}
    | {"per_sample_weights": None, "include_last_offset": False},
    "grid_sampler_2d_backward": _grid(3, 2),
    "grid_sampler_3d_backward": _grid(3, 2, 2),
    "gru": _recurrent(3),
    "lstm": _recurrent(4),
    "native_group_norm_backward": _norm(N=2, C=4, HxW=1, group=1),
    "native_layer_norm_backward": _norm(normalized_shape=[4]),
    "rnn_relu": _recurrent(1),
    "rnn_tanh": _recurrent(1),
    "unfold_backward": {"grad_in": ramp(3, 2), "input_sizes": [4], "dim": 0, "size": 2, "step": 1},
}
