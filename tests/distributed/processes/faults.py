"""One of two processes does what it should not; the other must raise an error that names it."""

import os
import signal
import sys
import time
from datetime import timedelta

import tenfold as tn
import tenfold.distributed as dist
from tenfold.distributed.device_mesh import init_device_mesh
from tenfold.distributed.tensor import Shard, distribute_tensor

what, who = sys.argv[1], int(sys.argv[2])
dist.init_process_group("gloo", timeout=timedelta(seconds=8 if what == "sleep" else 60))
x, y = tn.ones(4), tn.ones(5)
dist.all_reduce(x)
dist.all_reduce(y)  # what differs later is known by then: gloo would end a process that receives it
start = time.monotonic()
try:
    if dist.get_rank() == who:
        if what == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if what == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        if what == "sleep":
            time.sleep(20)
            sys.exit(0)
        if what == "differ":
            x = tn.ones(5)
        if what == "elsewhere":  # on other devices, where nobody else comes
            mesh = init_device_mesh("cpu", (4,))
            distribute_tensor(tn.ones(8), mesh, [Shard(0)]).sum().item()
    dist.all_reduce(x)
except dist.DistributedError as error:
    print(f"noticed after {time.monotonic() - start:.0f} s: {error.message}", flush=True)
    sys.exit(7)
