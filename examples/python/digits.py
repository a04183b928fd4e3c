"""Handwritten digits of 8×8 pixels, read by a multilayer perceptron or by a convolutional network.

Saves a picture of the loss and of the digits that were misread, each with what it is and what it was taken
for.
"""

import argparse
import time

from rich.progress import track

import tenfold as torch
import tenfold.nn.functional as F
from tenfold import nn
from tenfold.command.demo import digits, picture
from tenfold.data import DataLoader, TensorDataset


class MLP(nn.Module):
    def __init__(self, hidden=256):
        super().__init__()
        self.fc1 = nn.Linear(64, hidden)
        self.fc2 = nn.Linear(hidden, 10)
        self.dropout = nn.Dropout(0.2)

    def forward(self, x):
        x = F.relu(self.fc1(x.flatten(1)))
        return self.fc2(self.dropout(x))


class CNN(nn.Module):
    def __init__(self, channels=16):
        super().__init__()
        self.conv1 = nn.Conv2d(1, channels, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, 2 * channels, 3, padding=1)
        self.norm2 = nn.BatchNorm2d(2 * channels)
        self.fc = nn.Linear(2 * channels * 4, 10)
        self.dropout = nn.Dropout(0.2)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm1(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.norm2(self.conv2(x))), 2)
        return self.fc(self.dropout(x.flatten(1)))


def main() -> float:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog="example: python examples/python/digits.py --model cnn --epochs 20"
    )
    parser.add_argument("--model", choices=["mlp", "cnn"], default="mlp")
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--picture", default="digits.png", help="where the picture goes")
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    train, test = digits.load()
    loader = DataLoader(TensorDataset(*train), batch_size=options.batch_size, shuffle=True, drop_last=True)
    model = MLP() if options.model == "mlp" else CNN()
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.epochs)
    print(f"{options.model}: {sum(p.numel() for p in model.parameters()):,} parameters")

    @torch.compile
    def step(images, labels):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss

    @torch.compile
    def read(images):
        with torch.no_grad():
            return model(images).argmax(1)

    losses = []
    start = time.perf_counter()
    model.train()
    for _ in track(range(options.epochs), "training"):
        losses += [step(images, labels) for images, labels in loader]
        scheduler.step()
    losses = [loss.item() for loss in losses]
    seconds = time.perf_counter() - start
    print(
        f"{len(losses)} steps in {seconds:.1f} s, loss {losses[0]:.3f} at first and {losses[-1]:.3f} at last"
    )

    model.eval()
    answers, labels = read(test.images).numpy(), test.labels.numpy()
    wrong = (answers != labels).nonzero()[0]
    captions = [f"{labels[each]}, read {answers[each]}" for each in wrong]
    picture.learning(options.picture, losses, test.images.numpy()[wrong, 0], captions)
    print(f"{len(wrong)} of {len(labels)} test digits misread: see {options.picture}")

    accuracy = float((answers == labels).mean())
    print(f"test accuracy {accuracy:.1%}")
    return accuracy


if __name__ == "__main__":
    main()
