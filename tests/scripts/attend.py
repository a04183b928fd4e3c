"""A tiny transformer in its own words: attention, masks, mixed names of one thing, hooks, schedules."""

import copy
import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_default_dtype(torch.float32)
if torch.backends.mps.is_available():
    raise SystemExit("this script is for the CPU")


@dataclass
class Config:
    vocabulary: int = 11
    length: int = 5
    width: int = 16
    heads: int = 4
    layers: int = 1


class SelfAttention(nn.Module):
    bias: torch.Tensor

    def __init__(self, config: Config):
        super().__init__()
        assert config.width % config.heads == 0
        self.heads = config.heads
        self.qkv = nn.Linear(config.width, 3 * config.width)
        self.out = nn.Linear(config.width, config.width)
        mask = torch.tril(torch.ones(config.length, config.length)).view(1, 1, config.length, config.length)
        self.register_buffer("bias", mask, persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        B, T, C = x.size()
        q, k, v = self.qkv(x).split(C, dim=2)
        q, k, v = [each.view(B, T, self.heads, C // self.heads).transpose(1, 2) for each in (q, k, v)]
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        scores = scores.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        by_hand = F.softmax(scores, dim=-1) @ v
        if not torch.jit.is_scripting():
            fused = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            torch.testing.assert_close(by_hand, fused, rtol=1e-4, atol=1e-5)
        return self.out(by_hand.transpose(1, 2).contiguous().view(B, T, C))


class Block(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.first, self.second = nn.LayerNorm(config.width), nn.LayerNorm(config.width)
        self.attention = SelfAttention(config)
        self.mlp = nn.ModuleDict(
            {
                "up": nn.Linear(config.width, 32),
                "act": nn.GELU(approximate="tanh"),
                "down": nn.Linear(32, config.width),
            }
        )

    def forward(self, x):
        x = x + self.attention(self.first(x))
        m = self.mlp
        return x + m.down(m.act(m.up(self.second(x))))


class Transformer(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.config = config
        self.tokens = nn.Embedding(config.vocabulary, config.width)
        self.places = nn.Embedding(config.length, config.width)
        self.blocks = nn.ModuleList([Block(config) for _ in range(config.layers)])
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        self.apply(self._init_weights)

    def _init_weights(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            rng = np.random.default_rng(module.weight.numel())
            module.weight.data.copy_(torch.as_tensor(rng.normal(0, 0.1, module.weight.shape)))
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, tokens, targets=None):
        places = torch.arange(0, tokens.size(1), dtype=torch.long, device=tokens.device)
        x = self.tokens(tokens) + self.places(places)
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1), ignore_index=-1)
        return logits, loss


config = Config()
model = Transformer(config)
seen = []
handle = model.blocks[0].register_forward_hook(lambda module, args, output: seen.append(tuple(output.shape)))
decayed = [p for p in model.parameters() if p.dim() >= 2]
others = [p for p in model.parameters() if p.dim() < 2]
groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
optimizer = torch.optim.AdamW(groups, lr=1e-2, betas=(0.9, 0.95))
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 5))
data = torch.tensor(np.random.default_rng(7).integers(0, config.vocabulary, (8, config.length + 1)))
average = copy.deepcopy(model.state_dict())
for step in range(8):
    _, loss = model(data[:, :-1], data[:, 1:])
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    for name, value in model.state_dict().items():
        average[name].lerp_(value, 0.2)
    if step % 4 == 3:
        print(step, loss.item(), optimizer.param_groups[0]["lr"])
handle.remove()
print("hook", len(seen), seen[0])
print("average", sum(value.double().abs().sum().item() for value in average.values()))
model.eval()
with torch.inference_mode():
    tokens = data[:2, :2]
    while tokens.size(1) < config.length:
        logits, _ = model(tokens)
        values, _ = torch.topk(logits[:, -1, :], 3)
        logits = logits[:, -1, :].clone()
        logits[logits < values[:, [-1]]] = -float("inf")
        tokens = torch.cat((tokens, logits.softmax(-1).argmax(-1, keepdim=True)), dim=1)
print("written", tokens.tolist())
