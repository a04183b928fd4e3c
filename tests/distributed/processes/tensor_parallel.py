"""A network as a program for torchrun writes it: plain tensors, of which each process has its own. Its layers
are split over processes, and fully sharded over others; or it is sharded over some and copied to others. It
runs on the package that is named, Tenfold or PyTorch, and prints losses and parameters.

    tenfold launch --nproc-per-node 4 tests/distributed/processes/tensor_parallel.py tenfold mixed
"""

import importlib
import os
import sys

import numpy as np

PACKAGE, WAY = sys.argv[1:3]
torch, dist, device_mesh, tensor, parallel, fsdp = (
    importlib.import_module(f"{PACKAGE}{name}")
    for name in (
        "",
        ".distributed",
        ".distributed.device_mesh",
        ".distributed.tensor",
        ".distributed.tensor.parallel",
        ".distributed.fsdp",
    )
)
nn, Shard, Replicate = torch.nn, tensor.Shard, tensor.Replicate


class Scale(nn.Module):
    def forward(self, h, table):
        return h * table


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.norm = nn.Embedding(12, 8), nn.LayerNorm(8)
        self.up, self.down, self.out = nn.Linear(8, 16), nn.Linear(16, 8), nn.Linear(8, 4)
        self.scale = Scale()
        self.register_buffer("table", torch.linspace(0.5, 1.5, 8))  # of positions: it has no batch

    def forward(self, index):
        h = self.emb(index)
        h = h + self.down(torch.tanh(self.up(self.norm(h))))
        return self.out(self.scale(h, self.table[: index.shape[1]].unsqueeze(1)))


PLAN = {
    "emb": parallel.RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
    "norm": parallel.SequenceParallel(),
    "up": parallel.ColwiseParallel(input_layouts=Shard(1)),
    "down": parallel.RowwiseParallel(output_layouts=Shard(1)),
    "scale": parallel.PrepareModuleInput(
        input_layouts=(Shard(1), Replicate()), desired_input_layouts=(Replicate(), Replicate())
    ),
    "out": parallel.ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
}


def built():
    net, numbers = Net(), np.random.default_rng(0)
    with torch.no_grad():
        for parameter in net.parameters():
            drawn = numbers.standard_normal(tuple(parameter.shape)).astype(np.float32)
            parameter.copy_(torch.tensor(drawn * 0.3))
    return net


def main():
    world, net, group = int(os.environ["WORLD_SIZE"]), built(), 0
    if WAY == "split":
        parallel.parallelize_module(net, device_mesh.init_device_mesh("cpu", (world,)), PLAN)
    elif WAY == "hybrid":
        mesh = device_mesh.init_device_mesh("cpu", (2, world // 2), mesh_dim_names=("copies", "parts"))
        fsdp.fully_shard(net, mesh=mesh)
        group = dist.get_rank()
    else:
        mesh = device_mesh.init_device_mesh("cpu", (world // 2, 2), mesh_dim_names=("rows", "layers"))
        parallel.parallelize_module(net, mesh["layers"], PLAN)
        fsdp.fully_shard(net, mesh=mesh["rows"])
        group = mesh["rows"].get_local_rank()
    optimizer, losses = torch.optim.SGD(net.parameters(), lr=0.1), []
    for step in range(3):
        index = torch.tensor(np.random.default_rng(10 * step + group).integers(0, 12, (4, 6)))
        output = net(index)
        loss = (output * torch.arange(4.0)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    sums = [parameter.detach().full_tensor().double().square().sum().item() for parameter in net.parameters()]
    numbers = " ".join(f"{number:.4f}" for number in [*losses, *sums])
    parts = [tuple(parameter.to_local().shape) for parameter in net.parameters()]
    print(f"rank {dist.get_rank()}: {tuple(output.shape)} {parts} {numbers}\n", end="", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
