"""The adding problem: an LSTM reads a sequence of numbers, two of them marked, and says at the end what the
marked ones add up to. Always to answer 1 has a mean squared error of 0.167; to do better it must remember."""

import argparse
import time

from rich.progress import track

import tenfold as torch
import tenfold.nn.functional as F
from tenfold import nn


class Adder(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.lstm = nn.LSTM(2, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x):
        _, (hidden, _) = self.lstm(x)
        return self.head(hidden[-1]).squeeze(-1)


def problems(count, length):
    """Sequences of shape (count, length, 2), of values and marks, and their answers, of shape (count,)."""
    values = torch.rand(count, length)
    places = torch.rand(count, length).argsort(1)[:, :2]  # two different ones in each row
    marks = torch.zeros(count, length).scatter(1, places, 1.0)
    return torch.stack([values, marks], -1), (values * marks).sum(1)


def main() -> float:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog="example: python examples/python/lstm.py --length 40 --steps 2000"
    )
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--length", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--hidden", type=int, default=32)
    parser.add_argument("--lr", type=float, default=1e-2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    model = Adder(options.hidden)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.lr)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.steps)

    @torch.compile
    def step():
        sequences, answers = problems(options.batch_size, options.length)  # new ones in every step
        optimizer.zero_grad()
        loss = F.mse_loss(model(sequences), answers)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    losses = []
    start = time.perf_counter()
    for number in track(range(options.steps), "training"):
        losses.append(step().item())
        scheduler.step()
        if number % 200 == 199:
            print(f"step {number + 1:4d}  mean squared error {sum(losses[-50:]) / 50:.4f}")
    print(f"{options.steps / (time.perf_counter() - start):.0f} steps/s")

    with torch.no_grad():
        sequences, answers = problems(1000, options.length)
        guesses = model(sequences)
        error = F.mse_loss(guesses, answers).item()
    for guess, answer in zip(guesses[:5].tolist(), answers[:5].tolist()):
        print(f"the answer is {answer:.3f}, the network says {guess:.3f}")
    print(f"mean squared error on 1,000 new sequences: {error:.4f}")
    return error


if __name__ == "__main__":
    main()
