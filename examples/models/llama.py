"""A model of Llama's kind: rotary positions, grouped heads, RMS norm, SwiGLU; with the parameter names of
Hugging Face's checkpoints.

```python
model = llama_1b()
model.load_state_dict(torch.load("model.safetensors"))
text = tenfold.generation.generate(model, tokens, 50, temperature=0.8, top_p=0.9, seed=1)
```
"""

import tenfold as torch
import tenfold.nn.functional as F
from tenfold import nn


def rotations(positions, size, base):
    """Cosines and sines by which a head's pairs of numbers turn at each position: (n, 1, length, size)."""
    rates = base ** (-torch.arange(0, size, 2, device=positions.device).float() / size)
    angles = positions[:, None, :, None].float() * rates
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos(), angles.sin()


def rotated(x, cosines, sines):
    first, second = x.float().chunk(2, dim=-1)
    turned = torch.cat((-second, first), dim=-1)
    return (x.float() * cosines + turned * sines).to(x.dtype)


class Attention(nn.Module):
    def __init__(self, width, heads, shared_heads):
        super().__init__()
        self.size = width // heads
        self.q_proj = nn.Linear(width, heads * self.size, bias=False)
        self.k_proj = nn.Linear(width, shared_heads * self.size, bias=False)
        self.v_proj = nn.Linear(width, shared_heads * self.size, bias=False)
        self.o_proj = nn.Linear(heads * self.size, width, bias=False)

    def forward(self, x, turns, cache=None, positions=None):
        count, length, _ = x.shape
        split = lambda part: part.view(count, length, -1, self.size).transpose(1, 2)
        query, key, value = split(self.q_proj(x)), split(self.k_proj(x)), split(self.v_proj(x))
        query, key = rotated(query, *turns), rotated(key, *turns)
        seen = None
        if cache is not None:
            rows = torch.arange(count, device=x.device)[:, None]
            for stored, new in zip(cache, (key, value), strict=True):
                stored[rows, :, positions] = new.transpose(1, 2)
            key, value = cache
            places = torch.arange(key.shape[2], device=x.device)
            seen = places <= positions[:, None, :, None]
        y = F.scaled_dot_product_attention(
            query, key, value, seen, is_causal=cache is None, enable_gqa=key.shape[1] != query.shape[1]
        )
        return self.o_proj(y.transpose(1, 2).reshape(count, length, -1))


class MLP(nn.Module):
    """SwiGLU: silu(gate(x)) · up(x), projected back."""

    def __init__(self, width, hidden):
        super().__init__()
        self.gate_proj = nn.Linear(width, hidden, bias=False)
        self.up_proj = nn.Linear(width, hidden, bias=False)
        self.down_proj = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, width, hidden, heads, shared_heads, eps):
        super().__init__()
        self.self_attn = Attention(width, heads, shared_heads)
        self.mlp = MLP(width, hidden)
        self.input_layernorm = nn.RMSNorm(width, eps=eps)
        self.post_attention_layernorm = nn.RMSNorm(width, eps=eps)

    def forward(self, x, turns, cache=None, positions=None):
        x = x + self.self_attn(self.input_layernorm(x), turns, cache, positions)
        return x + self.mlp(self.post_attention_layernorm(x))


class Transformer(nn.Module):
    def __init__(self, vocabulary, width, hidden, layers, heads, shared_heads, eps, base):
        super().__init__()
        self.size, self.base = width // heads, base
        self.embed_tokens = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList([Layer(width, hidden, heads, shared_heads, eps) for _ in range(layers)])
        self.norm = nn.RMSNorm(width, eps=eps)
        nn.init.normal_(self.embed_tokens.weight, std=0.02)

    def forward(self, tokens, cache=None, positions=None):
        if positions is None:
            positions = torch.arange(tokens.shape[1], device=tokens.device)[None]
        turns = rotations(positions, self.size, self.base)
        x = self.embed_tokens(tokens)
        for i, layer in enumerate(self.layers):
            x = layer(x, turns, None if cache is None else cache[i], positions)
        return self.norm(x)


class Llama(nn.Module):
    """Tokens of shape (n, length) to scores of the one that follows each, (n, length, vocabulary)."""

    def __init__(
        self, vocabulary=32000, context=2048, width=2048, hidden=5632, layers=22, heads=32, shared_heads=4,
        eps=1e-5, base=10000.0,
    ):  # fmt: skip
        super().__init__()
        self.context, self.shared_heads = context, shared_heads
        self.model = Transformer(vocabulary, width, hidden, layers, heads, shared_heads, eps, base)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)

    def make_cache(self, count, length):
        """Room for the keys and values of so many tokens: a tuple of both for each layer."""
        weight = self.lm_head.weight
        shape = (count, self.shared_heads, length, self.model.size)
        empty = lambda: torch.zeros(shape, dtype=weight.dtype, device=weight.device)
        return [(empty(), empty()) for _ in self.model.layers]

    def forward(self, tokens, cache=None, positions=None, last=None):
        """With a cache, `tokens` stand at `positions`, and those before them are read from the cache. With
        `last`, only the token at that place of each row gets scores."""
        x = self.model(tokens, cache, positions)
        if last is not None:
            x = x[torch.arange(x.shape[0], device=x.device), last][:, None]
        return self.lm_head(x)


def llama_1b(**options):
    """The sizes of TinyLlama 1.1B."""
    return Llama(**options)
