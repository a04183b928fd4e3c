"""GPT-2, with the parameter names and layouts of OpenAI's checkpoints as Hugging Face distributes them.

```python
model = gpt2()
model.load_state_dict(from_checkpoint(torch.load("pytorch_model.bin")))
scores = model(tokens)  # (n, length) to (n, length, 50257)
text = tenfold.generation.generate(model.eval(), tokens, 50, temperature=0.8, top_p=0.9, seed=1)
```
"""

import tenfold as torch
import tenfold.nn.functional as F
from tenfold import nn


class Conv1D(nn.Module):
    """A linear layer whose weight is stored as (inputs, outputs): GPT-2's checkpoints have it so."""

    def __init__(self, outputs, inputs):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs))
        nn.init.normal_(self.weight, std=0.02)

    def forward(self, x):
        return x @ self.weight + self.bias


class Attention(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.c_attn = Conv1D(3 * width, width)
        self.c_proj = Conv1D(width, width)
        self.resid_dropout = nn.Dropout(dropout)

    def forward(self, x, cache=None, positions=None):
        count, length, width = x.shape
        split = lambda part: part.view(count, length, self.heads, width // self.heads).transpose(1, 2)
        query, key, value = map(split, self.c_attn(x).split(width, dim=2))
        dropout = self.dropout if self.training else 0.0
        seen = None
        if cache is not None:
            rows = torch.arange(count, device=x.device)[:, None]
            for stored, new in zip(cache, (key, value), strict=True):
                stored[rows, :, positions] = new.transpose(1, 2)
            key, value = cache
            places = torch.arange(key.shape[2], device=x.device)
            seen = places <= positions[:, None, :, None]
        y = F.scaled_dot_product_attention(query, key, value, seen, dropout, is_causal=cache is None)
        return self.resid_dropout(self.c_proj(y.transpose(1, 2).reshape(count, length, width)))


class MLP(nn.Module):
    def __init__(self, width, dropout):
        super().__init__()
        self.c_fc = Conv1D(4 * width, width)
        self.c_proj = Conv1D(width, 4 * width)
        self.act = nn.GELU(approximate="tanh")
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.dropout(self.c_proj(self.act(self.c_fc(x))))


class Block(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = Attention(width, heads, dropout)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = MLP(width, dropout)

    def forward(self, x, cache=None, positions=None):
        x = x + self.attn(self.ln_1(x), cache, positions)
        return x + self.mlp(self.ln_2(x))


class Transformer(nn.Module):
    def __init__(self, vocabulary, context, width, layers, heads, dropout):
        super().__init__()
        self.wte = nn.Embedding(vocabulary, width)
        self.wpe = nn.Embedding(context, width)
        self.drop = nn.Dropout(dropout)
        self.h = nn.ModuleList([Block(width, heads, dropout) for _ in range(layers)])
        self.ln_f = nn.LayerNorm(width)
        nn.init.normal_(self.wte.weight, std=0.02)
        nn.init.normal_(self.wpe.weight, std=0.02)

    def forward(self, tokens, cache=None, positions=None):
        places = torch.arange(tokens.shape[1], device=tokens.device) if positions is None else positions
        x = self.drop(self.wte(tokens) + self.wpe(places))
        for i, block in enumerate(self.h):
            x = block(x, None if cache is None else cache[i], positions)
        return self.ln_f(x)


class GPT2(nn.Module):
    """Tokens of shape (n, length) to scores of the one that follows each, (n, length, vocabulary)."""

    def __init__(self, vocabulary=50257, context=1024, width=768, layers=12, heads=12, dropout=0.1):
        super().__init__()
        self.context, self.heads = context, heads
        self.transformer = Transformer(vocabulary, context, width, layers, heads, dropout)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        self.lm_head.weight = self.transformer.wte.weight  # one tensor under two names

    def make_cache(self, count, length):
        """Room for the keys and values of so many tokens: a tuple of both for each layer."""
        weight = self.lm_head.weight
        shape = (count, self.heads, length, weight.shape[1] // self.heads)
        empty = lambda: torch.zeros(shape, dtype=weight.dtype, device=weight.device)
        return [(empty(), empty()) for _ in self.transformer.h]

    def forward(self, tokens, cache=None, positions=None, last=None):
        """With a cache, `tokens` stand at `positions`, and those before them are read from the cache. With
        `last`, only the token at that place of each row gets scores."""
        x = self.transformer(tokens, cache, positions)
        if last is not None:
            x = x[torch.arange(x.shape[0], device=x.device), last][:, None]
        return self.lm_head(x)


def from_checkpoint(state):
    """The state of a checkpoint by this module's names. The files that were first released lack the prefix
    and the second name of the embedding, and hold the masks of the attention, which are no parameters."""
    masks = (".attn.bias", ".attn.masked_bias")
    kept = {key: each for key, each in state.items() if not key.endswith(masks)}
    if "wte.weight" in kept:
        kept = {f"transformer.{key}": each for key, each in kept.items()}
    return {"lm_head.weight": kept["transformer.wte.weight"], **kept}


def gpt2(**options):
    return GPT2(**options)


def gpt2_medium(**options):
    return GPT2(**{"width": 1024, "layers": 24, "heads": 16, **options})
