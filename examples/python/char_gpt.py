"""A GPT over characters, trained on this project's own documents, which then writes in their manner."""

import argparse
import time
from pathlib import Path

import numpy as np
from rich.progress import track

import tenfold as torch
import tenfold.nn.functional as F
from tenfold import nn

ROOT = Path(__file__).parent.parent.parent


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.attention = nn.Linear(width, 3 * width)
        self.projection = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        qkv = self.attention(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.projection(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, letters, context, width, layers, heads):
        super().__init__()
        self.token = nn.Embedding(letters, width)
        self.position = nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, letters, bias=False)

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1])
        return self.head(self.norm(self.blocks(self.token(tokens) + self.position(places))))


def main() -> float:
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="example: python examples/python/char_gpt.py --steps 300 --prompt Lowering",
    )
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--context", type=int, default=64)
    parser.add_argument("--width", type=int, default=96)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--prompt", default="A tensor")
    parser.add_argument("--letters", type=int, default=200, help="how many letters to write")
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    documents = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    text = "".join(path.read_text(encoding="utf-8") for path in documents)
    alphabet = sorted(set(text + options.prompt))
    code = {letter: number for number, letter in enumerate(alphabet)}
    corpus = np.array([code[letter] for letter in text])
    print(f"{len(corpus):,} characters, {len(alphabet)} of them different")

    model = GPT(len(alphabet), options.context, options.width, options.layers, options.heads)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr, weight_decay=0.1)
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters")

    @torch.compile
    def step(tokens, following):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(tokens).flatten(0, 1), following.flatten())
        loss.backward()
        optimizer.step()
        return loss

    choose = np.random.default_rng(options.seed)
    losses = []
    start = time.perf_counter()
    for number in track(range(options.steps), "training"):
        starts = choose.integers(0, len(corpus) - options.context, options.batch_size)
        windows = torch.tensor(corpus[starts[:, None] + np.arange(options.context + 1)])
        losses.append(step(windows[:, :-1], windows[:, 1:]).item())
        if number % 100 == 99:
            print(f"step {number + 1:4d}  loss {np.mean(losses[-100:]):.3f}")
    print(f"{options.steps / (time.perf_counter() - start):.1f} steps/s")

    @torch.compile
    def next_letter(tokens, last):
        with torch.no_grad():
            scores = model(tokens)[0].index_select(0, last)
        return torch.multinomial((scores / 0.7).softmax(-1), 1)

    # The window keeps its size, so that one program writes every letter; what is behind `last` is not seen.
    written = [code[letter] for letter in options.prompt]
    for _ in range(options.letters):
        window = written[-options.context :]
        padded = window + [0] * (options.context - len(window))
        written.append(next_letter(torch.tensor([padded]), torch.tensor([len(window) - 1])).item())
    print("".join(alphabet[token] for token in written))

    final = float(np.mean(losses[-20:]))
    print(f"loss {losses[0]:.3f} at first, {final:.3f} over the last 20 steps")
    return final


if __name__ == "__main__":
    main()
