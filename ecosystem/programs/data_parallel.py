"""Data-parallel training in two processes, launched by torchrun on PyTorch and by `tenfold launch` here."""

import numpy as np
from stages import compare, stage

with stage("imports"):
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader, TensorDataset
    from torch.utils.data.distributed import DistributedSampler

random = np.random.RandomState(0)
dist.init_process_group(backend="gloo")
first = dist.get_rank() == 0

model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
with torch.no_grad():
    for parameter in model.parameters():
        parameter.copy_(torch.tensor(random.randn(*parameter.shape).astype("float32") * 0.3))
model = DistributedDataParallel(model)
samples = TensorDataset(
    torch.tensor(random.randn(32, 4).astype("float32")), torch.tensor(random.randn(32, 1).astype("float32"))
)
sampler = DistributedSampler(samples, shuffle=False)
loader = DataLoader(samples, batch_size=4, sampler=sampler)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for epoch in range(2):
    sampler.set_epoch(epoch)
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        total = loss.detach().clone()
        dist.all_reduce(total)
        losses.append(total.item() / dist.get_world_size())
if first:
    with stage("trains"):
        compare("losses", np.array(losses))
        for name, parameter in model.module.named_parameters():
            compare(name, parameter)
dist.barrier()
dist.destroy_process_group()
