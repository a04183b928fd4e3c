"""Data parallel training, as a PyTorch user writes it for torchrun: every process has the model, and a part
of the data.

    tenfold launch --nproc-per-node 2 examples/distributed/ddp.py
"""

import argparse
import os

import tenfold as torch
import tenfold.distributed as dist
import tenfold.nn as nn
import tenfold.nn.functional as F
from tenfold.data import DataLoader, DistributedSampler, TensorDataset
from tenfold.nn.parallel import DistributedDataParallel as DDP


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(8, 32)
        self.out = nn.Linear(32, 1)

    def forward(self, x):
        return self.out(F.relu(self.hidden(x)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=16)
    options = parser.parse_args()

    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(int(os.environ.get("SEED", 1)) + rank)  # DDP starts all from rank 0's parameters

    generator = torch.Generator().manual_seed(0)
    x = torch.randn(256, 8, generator=generator)
    y = x.sum(1, keepdim=True)
    dataset = TensorDataset(x, y)
    sampler = DistributedSampler(dataset, shuffle=True)
    loader = DataLoader(dataset, batch_size=options.batch_size, sampler=sampler)

    model = DDP(Net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(options.epochs):
        sampler.set_epoch(epoch)
        total = torch.zeros(())
        for data, target in loader:
            optimizer.zero_grad()
            loss = F.mse_loss(model(data), target)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        dist.all_reduce(total)
        if rank == 0:
            print(f"epoch {epoch}: loss {total.item() / len(loader) / world_size:.4f}", flush=True)
    norms = [None] * world_size
    dist.all_gather_object(norms, sum(each.square().sum().item() for each in model.parameters()))
    assert len(set(norms)) == 1, norms
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
