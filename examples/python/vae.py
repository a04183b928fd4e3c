"""A variational autoencoder of the 8×8 digits: what it makes up, and what it makes of given ones.

The picture it saves shows four rows of digits that it made up, then two of test digits, each above what the
autoencoder gives back.
"""

import argparse
import time

import numpy as np
from rich.progress import track

import tenfold as torch
import tenfold.nn.functional as F
from tenfold import nn
from tenfold.command.demo import digits, picture
from tenfold.data import DataLoader, TensorDataset

COLUMNS = 16


class VAE(nn.Module):
    def __init__(self, hidden=256, latent=8):
        super().__init__()
        self.latent = latent
        self.encoder = nn.Sequential(nn.Flatten(), nn.Linear(64, hidden), nn.ReLU())
        self.mean = nn.Linear(hidden, latent)
        self.logvar = nn.Linear(hidden, latent)
        self.decoder = nn.Sequential(
            nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, 64), nn.Unflatten(1, (1, 8, 8))
        )

    def forward(self, x):
        hidden = self.encoder(x)
        mean, logvar = self.mean(hidden), self.logvar(hidden)
        z = mean + torch.randn_like(mean) * (logvar / 2).exp()
        return self.decoder(z), mean, logvar


def loss_of(model, images):
    """The negative evidence lower bound for each image: what is lost of it, and what its code costs."""
    logits, mean, logvar = model(images)
    lost = F.binary_cross_entropy_with_logits(logits, images, reduction="sum")
    cost = -0.5 * (1 + logvar - mean.pow(2) - logvar.exp()).sum()
    return (lost + cost) / len(images)


def main() -> float:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog="example: python examples/python/vae.py --epochs 50 --picture vae.png"
    )
    parser.add_argument("--epochs", type=int, default=80)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--latent", type=int, default=8)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--picture", default="vae.png", help="where the picture goes")
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    train, test = digits.load()
    loader = DataLoader(
        TensorDataset(train.images), batch_size=options.batch_size, shuffle=True, drop_last=True
    )
    model = VAE(latent=options.latent)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.lr)

    @torch.compile
    def step(images):
        optimizer.zero_grad()
        loss = loss_of(model, images)
        loss.backward()
        optimizer.step()
        return loss

    losses = []
    start = time.perf_counter()
    for _ in track(range(options.epochs), "training"):
        losses += [step(images) for (images,) in loader]
    losses = [loss.item() for loss in losses]
    print(f"{len(losses)} steps in {time.perf_counter() - start:.1f} s, loss {losses[0]:.2f} at first")

    with torch.no_grad():
        loss = loss_of(model, test.images).item()
        drawn = model.decoder(torch.randn(4 * COLUMNS, options.latent)).sigmoid()
        given = test.images[:COLUMNS]
        back = model.decoder(model.mean(model.encoder(given))).sigmoid()
    rows = np.concatenate([drawn.numpy(), given.numpy(), back.numpy()])
    picture.gallery(options.picture, rows[:, 0], COLUMNS)
    print(f"samples and reconstructions: see {options.picture}")
    print(f"loss {loss:.2f} for each test digit")
    return loss


if __name__ == "__main__":
    main()
