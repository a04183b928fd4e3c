"""XOR, the smallest problem that needs a hidden layer: a network of two layers learns it in no time."""

import argparse

import tenfold as torch
from tenfold import nn


def main() -> float:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog="example: python examples/python/xor.py --steps 500"
    )
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    inputs = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    targets = torch.tensor([[0.0], [1.0], [1.0], [0.0]])
    model = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    loss_of = nn.BCEWithLogitsLoss()

    @torch.compile
    def step(inputs, targets):
        optimizer.zero_grad()
        loss = loss_of(model(inputs), targets)
        loss.backward()
        optimizer.step()
        return loss

    for number in range(options.steps):
        loss = step(inputs, targets)
        if number % 100 == 0:
            print(f"step {number:4d}  loss {loss.item():.4f}")

    with torch.no_grad():
        answers = model(inputs).sigmoid()
    for (a, b), answer in zip(inputs.tolist(), answers.flatten().tolist()):
        print(f"{a:.0f} xor {b:.0f} = {answer:.3f}")
    print(f"final loss {loss.item():.4f}")
    return loss.item()


if __name__ == "__main__":
    main()
