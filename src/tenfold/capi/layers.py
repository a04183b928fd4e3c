"""The layers and losses of neural networks for languages over libtenfold, one row each: their options, their
parameters and the operator that they call. A binding makes a module of every row.

A size is an option's name, `a/b` for a quotient, or `a*n` for a number that stands n times or a list of n.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["LAYERS", "Layer", "described"]

REQUIRED = "required"


@dataclass(frozen=True)
class Layer:
    name: str
    operator: str
    options: dict[str, Any] = field(default_factory=dict)
    # The sizes of each parameter, and how it starts: uniform by its inputs, normal, ones or zeros.
    parameters: dict[str, list[str]] = field(default_factory=dict)
    start: dict[str, str] = field(default_factory=dict)
    buffers: dict[str, list[str]] = field(default_factory=dict)
    inputs: tuple[str, ...] = ("input",)
    # The operator's arguments by name: a parameter, a buffer, an option, `training` or a value.
    arguments: dict[str, Any] = field(default_factory=dict)


def _same(*names: str) -> dict[str, Any]:
    return {name: name for name in names}


def _convolution(rank: int) -> Layer:
    options = {"in_channels": REQUIRED, "out_channels": REQUIRED, "kernel_size": REQUIRED, "stride": 1}
    options |= {"padding": 0, "dilation": 1, "groups": 1, "bias": True}
    sizes = ["out_channels", "in_channels/groups", f"kernel_size*{rank}"]
    return Layer(
        f"Conv{rank}d",
        f"conv{rank}d",
        options,
        {"weight": sizes, "bias": ["out_channels"]},
        {"weight": "uniform", "bias": "uniform"},
        arguments={
            "weight": "weight",
            "bias": "bias",
            **{each: f"{each}*{rank}" for each in ("stride", "padding", "dilation")},
            "groups": "groups",
        },
    )


def _batch_norm(rank: int) -> Layer:
    size = ["num_features"]
    return Layer(
        f"BatchNorm{rank}d",
        "batch_norm",
        {"num_features": REQUIRED, "eps": 1e-5, "momentum": 0.1},
        {"weight": size, "bias": size},
        {"weight": "ones", "bias": "zeros", "running_mean": "zeros", "running_var": "ones"},
        {"running_mean": size, "running_var": size},
        arguments={
            **_same("weight", "bias", "running_mean", "running_var", "training", "momentum", "eps"),
            "cudnn_enabled": True,
        },
    )


def _pooling(kind: str, rank: int) -> Layer:
    options = {"kernel_size": REQUIRED, "stride": None, "padding": 0}
    sizes = {option: f"{option}*{rank}" for option in options}
    operator = f"{kind}_pool{rank}d"
    return Layer(f"{kind.capitalize()}Pool{rank}d", operator, options, inputs=("self",), arguments=sizes)


def _activation(name: str, operator: str, **options: Any) -> Layer:
    return Layer(name, operator, options, inputs=("self",), arguments=_same(*options))


def _loss(name: str, operator: str, **options: Any) -> Layer:
    options = {"reduction": "mean", **options}
    return Layer(name, operator, options, inputs=("self", "target"), arguments=_same(*options))


LAYERS = (
    Layer(
        "Linear",
        "linear",
        {"in_features": REQUIRED, "out_features": REQUIRED, "bias": True},
        {"weight": ["out_features", "in_features"], "bias": ["out_features"]},
        {"weight": "uniform", "bias": "uniform"},
        arguments=_same("weight", "bias"),
    ),
    *(_convolution(rank) for rank in (1, 2, 3)),
    *(_batch_norm(rank) for rank in (1, 2, 3)),
    *(_pooling(kind, rank) for kind in ("max", "avg") for rank in (1, 2, 3)),
    Layer(
        "Embedding",
        "embedding",
        {"num_embeddings": REQUIRED, "embedding_dim": REQUIRED},
        {"weight": ["num_embeddings", "embedding_dim"]},
        {"weight": "normal"},
        inputs=("indices",),
        arguments=_same("weight"),
    ),
    Layer(
        "LayerNorm",
        "layer_norm",
        {"normalized_shape": REQUIRED, "eps": 1e-5},
        {"weight": ["normalized_shape*"], "bias": ["normalized_shape*"]},
        {"weight": "ones", "bias": "zeros"},
        arguments={"normalized_shape": "normalized_shape*", **_same("weight", "bias", "eps")},
    ),
    Layer(
        "GroupNorm",
        "group_norm",
        {"num_groups": REQUIRED, "num_channels": REQUIRED, "eps": 1e-5},
        {"weight": ["num_channels"], "bias": ["num_channels"]},
        {"weight": "ones", "bias": "zeros"},
        arguments=_same("num_groups", "weight", "bias", "eps"),
    ),
    Layer("Dropout", "dropout", {"p": 0.5}, arguments={"p": "p", "train": "training"}),
    Layer("Flatten", "flatten", {"start_dim": 1, "end_dim": -1}, inputs=("self",),
          arguments=_same("start_dim", "end_dim")),
    *(
        _activation(name, operator)
        for name, operator in {
            "ReLU": "relu", "ReLU6": "relu6", "SELU": "selu", "SiLU": "silu", "Mish": "mish",
            "Sigmoid": "sigmoid", "LogSigmoid": "log_sigmoid", "Tanh": "tanh", "Hardswish": "hardswish",
            "Hardsigmoid": "hardsigmoid",
        }.items()
    ),
    _activation("LeakyReLU", "leaky_relu", negative_slope=0.01),
    _activation("ELU", "elu", alpha=1.0),
    _activation("GELU", "gelu", approximate="none"),
    _activation("Softplus", "softplus", beta=1.0, threshold=20.0),
    _activation("Softmax", "softmax", dim=REQUIRED),
    _activation("LogSoftmax", "log_softmax", dim=REQUIRED),
    _loss("MSELoss", "mse_loss"),
    _loss("L1Loss", "l1_loss"),
    _loss("SmoothL1Loss", "smooth_l1_loss", beta=1.0),
    _loss("HuberLoss", "huber_loss", delta=1.0),
    _loss("CrossEntropyLoss", "cross_entropy_loss", ignore_index=-100, label_smoothing=0.0),
    _loss("NLLLoss", "nll_loss_nd", ignore_index=-100),
    _loss("BCELoss", "binary_cross_entropy"),
    _loss("BCEWithLogitsLoss", "binary_cross_entropy_with_logits"),
    _loss("KLDivLoss", "kl_div", log_target=False),
)  # fmt: skip


def described() -> dict[str, Any]:
    """The rows by their names, as plain values; the order of options is that in which they are given."""
    found = {}
    for layer in LAYERS:
        row = asdict(layer)
        options = [[name, default != REQUIRED, default if default != REQUIRED else None]
                   for name, default in row.pop("options").items()]  # fmt: skip
        found[row.pop("name")] = {**row, "options": options, "inputs": list(layer.inputs)}
    return found
