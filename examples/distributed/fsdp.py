"""Training with sharded parameters, as a PyTorch user writes it for torchrun: every process keeps a part of
each parameter, of its gradient and of Adam's state.

    tenfold launch --nproc-per-node 2 examples/distributed/fsdp.py
"""

import tenfold as torch
import tenfold.distributed as dist
import tenfold.nn as nn
import tenfold.nn.functional as F
from tenfold.distributed.fsdp import fully_shard
from tenfold.distributed.tensor import DTensor


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = nn.Sequential(*[Block(16) for _ in range(2)], nn.Linear(16, 4))
    for layer in model[:2]:
        fully_shard(layer)
    fully_shard(model)
    assert all(isinstance(each, DTensor) for each in model.parameters())

    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    torch.manual_seed(rank)  # each process has data of its own
    x, y = torch.randn(32, 16), torch.randint(0, 4, (32,))
    for step in range(5):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean, op=dist.ReduceOp.AVG)
        if rank == 0:
            print(f"step {step}: loss {mean.item():.4f}", flush=True)
    weight = model[0].up.weight
    print(f"rank {rank} has {tuple(weight.to_local().shape)} of {tuple(weight.shape)}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
