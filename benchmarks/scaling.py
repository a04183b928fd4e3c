"""The bytes of collectives in compiled training steps beside the cost model, and the model carried to 1,024
GPUs.

    python -m benchmarks.scaling
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Mapping
from typing import Any

WIDTH, TOKENS, LAYERS = 64, 128, 2
DEVICES = (1, 2, 4, 8)
PARAMETERS, GPUS = 7e9, 1024
SPEED = 50e9  # bytes a second each way between machines


def _model() -> Any:
    from tenfold import nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x: Any) -> Any:
            return x + self.down(nn.functional.gelu(self.up(x)))

    return nn.Sequential(*[Block() for _ in range(LAYERS)])


def _found(way: str, devices: int) -> tuple[Mapping[str, int], list[int]]:
    """The bytes of each kind of collective that a device gets in a step, by the HLO; and of parameters."""
    import tenfold as tn
    from tenfold.distributed import costs
    from tenfold.distributed.device_mesh import init_device_mesh
    from tenfold.distributed.fsdp import fully_shard
    from tenfold.distributed.tensor import Replicate, Shard, distribute_module, distribute_tensor
    from tenfold.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh, model = init_device_mesh("cpu", (devices,), mesh_dim_names=("all",)), _model()
    parameters = [each.numel() * 4 for each in model.parameters()]
    if way == "data parallel":
        distribute_module(model, mesh)
    elif way == "fully sharded":
        fully_shard(model, mesh=mesh)
    else:
        parallelize_module(model, mesh, {"*.up": ColwiseParallel(), "*.down": RowwiseParallel()})
    rows = Replicate() if way == "tensor parallel" else Shard(0)

    def step(x: Any) -> Any:
        model(x).square().mean().backward()
        return [each.grad for each in model.parameters()]

    x = distribute_tensor(tn.ones(TOKENS, WIDTH), mesh, [rows])
    found: Counter[str] = Counter()
    for each in costs.collectives(tn.show(step, x, stage="hlo"), devices):
        found[each.kind] += each.bytes
    return found, parameters


def _predicted(way: str, parameters: list[int], devices: int) -> Mapping[str, int]:
    from tenfold.distributed import costs

    if devices == 1:
        return {}
    if way == "data parallel":
        return costs.data_parallel(parameters)
    if way == "fully sharded":
        return costs.fully_sharded(parameters, devices)
    # An MLP is half of a block: one all-reduce forward, one backward; the first one's input has no gradient.
    return {"all-reduce": (2 * LAYERS - 1) * TOKENS * WIDTH * 4}


def _sent(collectives: Mapping[str, int], devices: int) -> float:
    from tenfold.distributed import costs

    return math.fsum(costs.Collective(kind, size, devices).sent for kind, size in collectives.items())


def main() -> None:
    os.environ.setdefault("TENFOLD_CPU_DEVICES", str(max(DEVICES)))
    from tenfold.distributed import costs

    print("way              devices  collectives in the HLO, bytes                     the model says")
    for way in ("data parallel", "fully sharded", "tensor parallel"):
        for devices in DEVICES:
            found, parameters = _found(way, devices)
            predicted = _predicted(way, parameters, devices)
            text = ", ".join(f"{kind} {size:,}" for kind, size in sorted(found.items())) or "none"
            verdict = "the same" if dict(found) == dict(predicted) else f"{dict(predicted)}"
            print(f"{way:16} {devices:7}  {text:48}  {verdict}")
    whole = int(4 * PARAMETERS)
    print(f"\nA GPT of {PARAMETERS:.0e} parameters in float32 on {GPUS:,} GPUs, a step:")
    for way, predicted in (
        ("data parallel", costs.data_parallel([whole])),
        ("fully sharded", costs.fully_sharded([whole], GPUS)),
    ):
        sent = _sent(predicted, GPUS)
        print(f"{way}: each sends {sent / 1e9:.1f} GB, {sent / SPEED:.2f} s at {SPEED / 1e9:.0f} GB/s")
    part = _sent(costs.fully_sharded([whole // 8], GPUS // 8), GPUS // 8)
    print(f"fully sharded over {GPUS // 8} machines, layers split over the 8 GPUs of each:")
    print(f"  {part / 1e9:.1f} GB between machines, {part / SPEED:.2f} s")
    state = 4 * whole
    print(f"parameters, gradients and Adam's state: {state / 1e9:.0f} GB")
    print(f"  {state / GPUS / 1e6:.0f} MB on each when fully sharded")


if __name__ == "__main__":
    main()
