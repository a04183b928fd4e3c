"""Training that is killed once, in a step or in a save, and goes on from its last checkpoint."""

import os
import signal
import sys
from pathlib import Path

import tenfold as tn
import tenfold.distributed as dist
import tenfold.distributed.checkpoint as dcp
from tenfold import nn
from tenfold.distributed.checkpoint import writing
from tenfold.distributed.fsdp import fully_shard

what, folder = sys.argv[1], Path(sys.argv[2])
dist.init_process_group("gloo")
first = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
dies = dist.get_rank() == 1 and first


def die(*anything):
    os.kill(os.getpid(), signal.SIGKILL)


tn.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))
fully_shard(model)
optimizer = tn.optim.Adam(model.parameters(), lr=0.01)
progress = {"step": 0}
state = {"model": model, "optimizer": optimizer, "progress": progress}
if (folder / "index.json").exists():
    dcp.load(state, checkpoint_id=folder)
for step in range(progress["step"], 6):
    x = tn.randn(4, 4, generator=tn.Generator().manual_seed(10 * step + dist.get_rank()))
    optimizer.zero_grad()
    model(x).square().mean().backward()
    if what == "step" and step == 3 and dies:
        die()
    optimizer.step()
    progress["step"] = step + 1
    if what == "save" and step == 3 and dies:
        writing.Contents.write = die
    dcp.save(state, checkpoint_id=folder)
total = sum(each.full_tensor().abs().sum().item() for each in model.parameters())
if dist.get_rank() == 0:
    print(f"total {total:.6f} after restart {os.environ['TORCHELASTIC_RESTART_COUNT']}", flush=True)
dist.destroy_process_group()
