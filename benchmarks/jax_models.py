"""The models of `models.py` in JAX, as a JAX user would write them: pure functions of a tree of weights, one
jitted training step that donates its state. Weights are taken by their names in PyTorch's state_dict, so that
all contenders train the same model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.models import BLOCKS, CHANNELS, HEADS, LAYERS

Weights = Mapping[str, Any]


def linear(w: Weights, name: str, x: Any) -> Any:
    return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]


def xor(w: Weights, x: Any) -> Any:
    return linear(w, "2", jnp.tanh(linear(w, "0", x)))


def mlp(w: Weights, x: Any) -> Any:
    return linear(w, "4", jax.nn.relu(linear(w, "2", jax.nn.relu(linear(w, "0", x)))))


def cnn(w: Weights, x: Any) -> Any:
    """In JAX's own layout, channels last; the kernels are turned once, when the weights are taken over."""

    def convolution(name: str, x: Any) -> Any:
        layout = ("NHWC", "HWIO", "NHWC")
        y = jax.lax.conv_general_dilated(x, w[f"{name}.weight"], (1, 1), "VALID", dimension_numbers=layout)
        return y + w[f"{name}.bias"]

    x = jax.nn.relu(convolution("0", x))
    x = jax.nn.relu(convolution("2", x))
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = x.reshape(x.shape[0], -1)
    return linear(w, "8", jax.nn.relu(linear(w, "6", x)))


def layer_norm(w: Weights, name: str, x: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * w[f"{name}.weight"] + w[f"{name}.bias"]


def gpt(w: Weights, tokens: Any) -> Any:
    x = w["tokens.weight"][tokens] + w["places"]
    batch, length, width = x.shape
    causal = jnp.tril(jnp.ones((length, length), bool))
    for i in range(LAYERS):
        block = f"blocks.{i}"
        mixed = linear(w, f"{block}.attention", layer_norm(w, f"{block}.before_attention", x))
        q, k, v = (each.reshape(batch, length, HEADS, -1) for each in jnp.split(mixed, 3, axis=-1))
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / jnp.sqrt(width // HEADS)
        weights = jax.nn.softmax(jnp.where(causal, scores, -jnp.inf), axis=-1)
        joined = jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(batch, length, width)
        x = x + linear(w, f"{block}.projection", joined)
        hidden = linear(w, f"{block}.mlp.0", layer_norm(w, f"{block}.before_mlp", x))
        x = x + linear(w, f"{block}.mlp.2", jax.nn.gelu(hidden, approximate=False))
    return (layer_norm(w, "norm", x) @ w["head.weight"].T).reshape(-1, w["head.weight"].shape[0])


def convolved(w: Weights, name: str, x: Any, stride: int = 1, padding: int = 0, groups: int = 1) -> Any:
    """In PyTorch's layout: channels before places."""
    strides, paddings = (stride, stride), [(padding, padding)] * 2
    y = jax.lax.conv_general_dilated(x, w[f"{name}.weight"], strides, paddings, feature_group_count=groups)
    bias = w.get(f"{name}.bias")
    return y if bias is None else y + bias[:, None, None]


def batch_norm(w: Weights, name: str, x: Any, eps: float = 1e-5) -> Any:
    mean = x.mean((0, 2, 3), keepdims=True)
    variance = ((x - mean) ** 2).mean((0, 2, 3), keepdims=True)
    scale, shift = w[f"{name}.weight"][:, None, None], w[f"{name}.bias"][:, None, None]
    return (x - mean) * jax.lax.rsqrt(variance + eps) * scale + shift


def convnext(w: Weights, x: Any) -> Any:
    x = convolved(w, "0", x, stride=4)
    for i in range(1, BLOCKS + 1):
        y = convolved(w, f"{i}.depthwise", x, padding=3, groups=CHANNELS).transpose(0, 2, 3, 1)
        y = jax.nn.gelu(linear(w, f"{i}.wide", layer_norm(w, f"{i}.norm", y)), approximate=False)
        x = x + linear(w, f"{i}.narrow", y).transpose(0, 3, 1, 2)
    return linear(w, f"{BLOCKS + 3}", x.mean((2, 3)))


def efficientnet(w: Weights, x: Any) -> Any:
    x = convolved(w, "0", x, stride=2, padding=1)
    for i in range(1, BLOCKS + 1):
        y = jax.nn.silu(batch_norm(w, f"{i}.first", convolved(w, f"{i}.expand", x)))
        y = convolved(w, f"{i}.depthwise", y, padding=1, groups=4 * CHANNELS)
        y = jax.nn.silu(batch_norm(w, f"{i}.second", y))
        scale = jax.nn.sigmoid(
            linear(w, f"{i}.excite", jax.nn.silu(linear(w, f"{i}.squeeze", y.mean((2, 3)))))
        )
        x = x + batch_norm(w, f"{i}.third", convolved(w, f"{i}.project", y * scale[:, :, None, None]))
    return linear(w, f"{BLOCKS + 3}", x.mean((2, 3)))


MODELS: dict[str, Callable[[Weights, Any], Any]] = {
    "xor": xor,
    "mlp": mlp,
    "cnn": cnn,
    "gpt": gpt,
    "convnext": convnext,
    "efficientnet": efficientnet,
}


def taken_over(name: str, weights: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """PyTorch's weights in the layout of the JAX model."""
    taken = {key: jnp.array(each) for key, each in weights.items()}
    if name == "cnn":
        for key in ("0.weight", "2.weight"):
            taken[key] = taken[key].transpose(2, 3, 1, 0)
        # Flattened, channels come last: the first dense layer reads its inputs in another order.
        dense = taken["6.weight"].reshape(128, 64, 12, 12)
        taken["6.weight"] = dense.transpose(0, 2, 3, 1).reshape(128, -1)
    return taken


def input_of(name: str, x: np.ndarray) -> Any:
    return jnp.array(x.transpose(0, 2, 3, 1) if name == "cnn" else x)


def training_step(model: Callable[[Weights, Any], Any], lr: float) -> Callable[[Any, Any, Any], Any]:
    """(state, x, y) -> (state, loss), with Adam as in its paper."""

    def loss_of(w: Weights, x: Any, y: Any) -> Any:
        chosen = jnp.take_along_axis(jax.nn.log_softmax(model(w, x)), y[:, None], 1)
        return -chosen.mean()

    def step(state: Any, x: Any, y: Any) -> Any:
        w, m, v, t = state
        loss, g = jax.value_and_grad(loss_of)(w, x, y)
        t = t + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
        scale = lr / (1 - 0.9**t)
        root = jnp.sqrt(1 - 0.999**t)
        w = jax.tree.map(lambda w, m, v: w - scale * m / (jnp.sqrt(v) / root + 1e-8), w, m, v)
        return (w, m, v, t), loss

    return jax.jit(step, donate_argnums=0)


def initial_state(weights: dict[str, Any]) -> Any:
    zeros = jax.tree.map(jnp.zeros_like, weights)
    return weights, zeros, jax.tree.map(jnp.zeros_like, weights), jnp.zeros((), jnp.float32)
