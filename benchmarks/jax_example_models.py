"""The models of `examples/models` in JAX, as a JAX user would write them, by the names of PyTorch's weights.
Batches are normalised by their own statistics, as in training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.jax_models import Weights, batch_norm, convolved, linear

Part = Mapping[str, Any]


def part(w: Weights, name: str) -> dict[str, Any]:
    """The weights under a name."""
    return {key[len(name) + 1 :]: value for key, value in w.items() if key.startswith(f"{name}.")}


def layer_norm(w: Weights, name: str, x: Any, eps: float = 1e-5) -> Any:
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + eps) * w[f"{name}.weight"] + w[f"{name}.bias"]


def pooled(x: Any, size: int, stride: int, padding: int) -> Any:
    window, strides = (1, 1, size, size), (1, 1, stride, stride)
    edges = [(0, 0)] * 2 + [(padding, padding)] * 2
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, strides, edges)


def resnet(w: Weights, x: Any) -> Any:
    x = pooled(jax.nn.relu(batch_norm(w, "bn1", convolved(w, "conv1", x, 2, 3))), 3, 2, 1)
    for stage, depth in enumerate((3, 4, 6, 3)):
        for place in range(depth):
            block = part(w, f"layer{stage + 1}.{place}")
            stride = 2 if stage and not place else 1
            y = jax.nn.relu(batch_norm(block, "bn1", convolved(block, "conv1", x)))
            y = jax.nn.relu(batch_norm(block, "bn2", convolved(block, "conv2", y, stride, 1)))
            y = batch_norm(block, "bn3", convolved(block, "conv3", y))
            if "downsample.0.weight" in block:
                x = batch_norm(block, "downsample.1", convolved(block, "downsample.0", x, stride))
            x = jax.nn.relu(x + y)
    return linear(w, "fc", x.mean((2, 3)))


# Of each block of MobileNetV3 large: the stride, and whether it is activated by hardswish, else by ReLU.
MOBILE = (
    *((1, False), (2, False), (1, False), (2, False), (1, False), (1, False), (2, True), (1, True)),
    *((1, True), (1, True), (1, True), (1, True), (2, True), (1, True), (1, True)),
)


def mobilenet_v3(w: Weights, x: Any) -> Any:
    def layer(w: Weights, name: str, x: Any, stride: int = 1, activation: Any = None) -> Any:
        kernel = w[f"{name}.0.weight"].shape
        groups = x.shape[1] // kernel[1]
        y = batch_norm(w, f"{name}.1", convolved(w, f"{name}.0", x, stride, kernel[2] // 2, groups), 1e-3)
        return y if activation is None else activation(y)

    x = layer(w, "features.0", x, 2, jax.nn.hard_swish)
    for i, (stride, swish) in enumerate(MOBILE):
        block = part(w, f"features.{i + 1}.block")
        activation = jax.nn.hard_swish if swish else jax.nn.relu
        layers = sorted({int(key.split(".")[0]) for key in block})
        y = x
        for place in layers:
            if f"{place}.fc1.weight" in block:
                scale = y.mean((2, 3), keepdims=True)
                scale = convolved(block, f"{place}.fc2", jax.nn.relu(convolved(block, f"{place}.fc1", scale)))
                y = y * jax.nn.hard_sigmoid(scale)
            elif place == layers[-1]:
                y = layer(block, f"{place}", y)
            else:
                wide = block[f"{place}.0.weight"].shape[2] > 1
                y = layer(block, f"{place}", y, stride if wide else 1, activation)
        x = x + y if stride == 1 and x.shape == y.shape else y
    x = layer(w, f"features.{len(MOBILE) + 1}", x, 1, jax.nn.hard_swish).mean((2, 3))
    return linear(w, "classifier.3", jax.nn.hard_swish(linear(w, "classifier.0", x)))


def unet(w: Weights, x: Any) -> Any:
    def twice(name: str, x: Any) -> Any:
        inner = part(w, name)
        for place in (0, 3):
            x = jax.nn.relu(batch_norm(inner, f"{place + 1}", convolved(inner, f"{place}", x, padding=1)))
        return x

    sizes = [twice("inc.double_conv", x)]
    for i in range(1, 5):
        sizes.append(twice(f"down{i}.maxpool_conv.1.double_conv", pooled(sizes[-1], 2, 2, 0)))
    x = sizes.pop()
    for i in range(1, 5):
        kernel, bias = w[f"up{i}.up.weight"], w[f"up{i}.up.bias"]
        tiles = jnp.einsum("nchw,cdij->ndhiwj", x, kernel)
        x = tiles.reshape(x.shape[0], -1, 2 * x.shape[2], 2 * x.shape[3]) + bias[:, None, None]
        x = twice(f"up{i}.conv.double_conv", jnp.concatenate([sizes.pop(), x], 1))
    return convolved(w, "outc.conv", x).transpose(0, 2, 3, 1).reshape(-1, bias_size(w, "outc.conv"))


def bias_size(w: Weights, name: str) -> int:
    return w[f"{name}.bias"].shape[0]


def attention(query: Any, key: Any, value: Any, *, causal: bool) -> Any:
    """Of heads that come third: (n, length, heads, size)."""
    length, size = query.shape[1], query.shape[3]
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) / jnp.sqrt(size)
    if causal:
        scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -jnp.inf)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, axis=-1), value)
    return mixed.reshape(*mixed.shape[:2], -1)


def split_heads(x: Any, heads: int) -> Any:
    return x.reshape(*x.shape[:2], heads, -1)


def vit(w: Weights, x: Any) -> Any:
    width, norm = w["class_token"].shape[-1], partial(layer_norm, eps=1e-6)
    patches = convolved(w, "conv_proj", x, stride=8).reshape(x.shape[0], width, -1).transpose(0, 2, 1)
    token = jnp.broadcast_to(w["class_token"], (x.shape[0], 1, width))
    x = jnp.concatenate([token, patches], 1) + w["encoder.pos_embedding"]
    for i in range(12):
        block = part(w, f"encoder.layers.encoder_layer_{i}")
        y = norm(block, "ln_1", x) @ block["self_attention.in_proj_weight"].T
        parts = jnp.split(y + block["self_attention.in_proj_bias"], 3, axis=-1)
        y = attention(*(split_heads(each, 4) for each in parts), causal=False)
        x = x + linear(block, "self_attention.out_proj", y)
        hidden = jax.nn.gelu(linear(block, "mlp.0", norm(block, "ln_2", x)), approximate=False)
        x = x + linear(block, "mlp.3", hidden)
    return linear(w, "heads.head", norm(w, "encoder.ln", x)[:, 0])


def gpt2(w: Weights, tokens: Any) -> Any:
    dense = lambda w, name, x: x @ w[f"{name}.weight"] + w[f"{name}.bias"]
    x = w["transformer.wte.weight"][tokens] + w["transformer.wpe.weight"][: tokens.shape[1]]
    for i in range(12):
        block = part(w, f"transformer.h.{i}")
        parts = jnp.split(dense(block, "attn.c_attn", layer_norm(block, "ln_1", x)), 3, axis=-1)
        x = x + dense(block, "attn.c_proj", attention(*[split_heads(each, 4) for each in parts], causal=True))
        hidden = jax.nn.gelu(dense(block, "mlp.c_fc", layer_norm(block, "ln_2", x)), approximate=True)
        x = x + dense(block, "mlp.c_proj", hidden)
    table = w["transformer.wte.weight"]
    return (layer_norm(w, "transformer.ln_f", x) @ table.T).reshape(-1, table.shape[0])


def llama(w: Weights, tokens: Any) -> Any:
    def norm(w: Weights, name: str, x: Any) -> Any:
        return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5) * w[f"{name}.weight"]

    def turned(x: Any) -> Any:
        size = x.shape[-1]
        rates = 10000.0 ** (-jnp.arange(0, size, 2) / size)
        angles = jnp.tile(jnp.arange(x.shape[1])[:, None, None] * rates, 2)
        first, second = jnp.split(x, 2, axis=-1)
        return x * jnp.cos(angles) + jnp.concatenate([-second, first], -1) * jnp.sin(angles)

    x = w["model.embed_tokens.weight"][tokens]
    for i in range(22):
        block = part(w, f"model.layers.{i}")
        y = norm(block, "input_layernorm", x)
        heads = {name: y @ block[f"self_attn.{name}_proj.weight"].T for name in "qkv"}
        query, key = turned(split_heads(heads["q"], 8)), turned(split_heads(heads["k"], 2))
        key, value = (jnp.repeat(each, 4, axis=2) for each in (key, split_heads(heads["v"], 2)))
        x = x + attention(query, key, value, causal=True) @ block["self_attn.o_proj.weight"].T
        y = norm(block, "post_attention_layernorm", x)
        gated = jax.nn.silu(y @ block["mlp.gate_proj.weight"].T) * (y @ block["mlp.up_proj.weight"].T)
        x = x + gated @ block["mlp.down_proj.weight"].T
    head = w["lm_head.weight"]
    return (norm(w, "model.norm", x) @ head.T).reshape(-1, head.shape[0])


def lstm_lm(w: Weights, tokens: Any) -> Any:
    x = w["encoder.weight"][tokens]
    for layer in range(2):
        input_weight, weight = w[f"rnn.weight_ih_l{layer}"], w[f"rnn.weight_hh_l{layer}"]
        bias = w[f"rnn.bias_ih_l{layer}"] + w[f"rnn.bias_hh_l{layer}"]

        def cell(state: Any, at_step: Any, weight: Any = weight) -> Any:
            hidden, memory = state
            gates = jnp.split(at_step + hidden @ weight.T, 4, axis=-1)
            let_in, forget, out = (jax.nn.sigmoid(gates[i]) for i in (0, 1, 3))
            memory = forget * memory + let_in * jnp.tanh(gates[2])
            hidden = out * jnp.tanh(memory)
            return (hidden, memory), hidden

        zeros = jnp.zeros((x.shape[1], weight.shape[1]))
        x = jax.lax.scan(cell, (zeros, zeros), x @ input_weight.T + bias)[1]
    return linear(w, "decoder", x).reshape(-1, bias_size(w, "decoder"))


MODELS: dict[str, Callable[[Weights, Any], Any]] = {
    "resnet": resnet,
    "mobilenet_v3": mobilenet_v3,
    "unet": unet,
    "vit": vit,
    "gpt2": gpt2,
    "llama": llama,
    "lstm_lm": lstm_lm,
}
BUFFERS = ("running_mean", "running_var", "num_batches_tracked")


def trained(name: str, weights: Mapping[str, Any]) -> dict[str, Any]:
    """The weights that are trained, by the names of the model itself."""
    tied = {"gpt2": "lm_head.weight"}.get(name)
    named = part(weights, "model")
    return {key: value for key, value in named.items() if not key.endswith(BUFFERS) and key != tied}
