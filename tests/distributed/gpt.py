"""A small GPT, trained in each way to shard it: by `eight_devices/training.py`, and by two processes."""

import functools

import numpy as np

import tenfold as tn
from tenfold import nn
from tenfold.distributed.device_mesh import init_device_mesh
from tenfold.distributed.fsdp import fully_shard
from tenfold.distributed.fsdp.fully_shard import bytes_of, whole_bytes
from tenfold.distributed.tensor import Replicate, Shard, distribute_module, distribute_tensor
from tenfold.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

VOCABULARY, WIDTH, HEADS, LAYERS, LENGTH, BATCH = 64, 32, 8, 4, 8, 16
F = nn.functional


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.q, self.k, self.v = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.proj = nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        batch, length, _ = x.shape
        h = self.ln1(x)
        q, k, v = (
            each(h).view(batch, length, HEADS, -1).transpose(1, 2) for each in (self.q, self.k, self.v)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.down(F.gelu(self.up(self.ln2(x))))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
        self.ln, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, index):
        x = self.tokens(index) + self.places(tn.arange(index.shape[1], device=index.device))
        for each in self.blocks:
            x = each(x)
        return self.head(self.ln(x))


def plan():
    columns = {f"blocks.*.{name}": ColwiseParallel() for name in ("q", "k", "v", "up")}
    return columns | {f"blocks.*.{name}": RowwiseParallel() for name in ("proj", "down")}


def shard_fully(model, mesh):
    for each in model.blocks:
        fully_shard(each, mesh=mesh)
    fully_shard(model, mesh=mesh)


def prepared(way, model, platform="cpu", devices=8):
    """The mesh that the model is put on, and how a batch is placed there. A way such as "2x4" is mixed: fully
    sharded over two, tensor parallel over four."""
    if way == "data":
        mesh = init_device_mesh(platform, (devices,))
        distribute_module(model, mesh)
        return mesh, [Shard(0)]
    if way == "fully sharded":
        mesh = init_device_mesh(platform, (devices,))
        shard_fully(model, mesh)
        return mesh, [Shard(0)]
    if way == "tensor":
        mesh = init_device_mesh(platform, (devices,), mesh_dim_names=("model",))
        parallelize_module(model, mesh, plan())
        return mesh, [Replicate()]
    shape = [int(size) for size in way.split("x")]
    mesh = init_device_mesh(platform, shape, mesh_dim_names=("data", "model"))
    parallelize_module(model, mesh["model"], plan())
    shard_fully(model, mesh["data"])
    return mesh, [Shard(0), Replicate()]


@functools.cache
def train(way=None, steps=20, platform="cpu", devices=8):
    """Losses, parameters after the last step, and the share of parameters and state that a device holds."""
    tn.manual_seed(0)
    model = GPT().to(platform)
    mesh, placements = (None, None) if way is None else prepared(way, model, platform, devices)
    # Plain SGD: Adam would make a large step of the sign of a rounding error.
    optimizer = tn.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        loss.backward()
        optimizer.step()
        return loss

    step = tn.compile(step)
    losses = []
    for i in range(steps):
        data = np.random.default_rng(i).integers(0, VOCABULARY, (BATCH, LENGTH + 1))
        x, y = tn.from_numpy(data[:, :-1].copy()), tn.from_numpy(data[:, 1:].copy())
        if mesh is None:
            x, y = x.to(platform), y.to(platform)
        else:
            x, y = (distribute_tensor(each, mesh, placements) for each in (x, y))
        losses.append(step(x, y).item())
    state = [*model.parameters(), *[each for kept in optimizer.state.values() for each in kept.values()]]
    share = None if mesh is None else bytes_of(state) / whole_bytes(state)
    whole = [each.detach() if mesh is None else each.detach().full_tensor() for each in model.parameters()]
    return losses, [each.cpu().numpy() for each in whole], share


def compare(way, **options):
    """Train in a way and on one device."""
    losses, parameters, share = train(way, **options)
    expected_losses, expected, _ = train(platform=options.get("platform", "cpu"))
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-5)
    for mine, theirs in zip(parameters, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-3, atol=2e-6)
    assert losses[-1] < losses[0]
    return share
