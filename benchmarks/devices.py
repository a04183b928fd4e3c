"""Several devices and processes: what a mesh of one device costs beside none, and what two processes take to
add up a tensor beside PyTorch's gloo."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.harness import OURS, Benchmark, Sample, printed_seconds
from benchmarks.models import TASKS, training_step

ALONE, GLOO = "Tenfold without a mesh", "PyTorch"


def _mesh_of_one(folder: Path) -> Mapping[str, Sample]:
    import tenfold as tn
    from tenfold.distributed.device_mesh import init_device_mesh
    from tenfold.distributed.fsdp import fully_shard
    from tenfold.distributed.tensor import Shard, distribute_tensor

    task = TASKS["mlp"]
    mesh = init_device_mesh("cpu", (1,))

    def contender(is_on_mesh: bool) -> Sample:
        tn.manual_seed(0)
        model = task.build(tn)
        x, y = (tn.tensor(each) for each in task.batch())
        if is_on_mesh:
            fully_shard(model, mesh=mesh)
            x, y = (distribute_tensor(each, mesh, [Shard(0)]) for each in (x, y))
        step = tn.compile(training_step(tn, model, task.lr))
        return _processor_time(lambda: step(x, y).item())

    return {OURS: contender(True), ALONE: contender(False)}


def _processor_time(run: Callable[[], object], runs: int = 20) -> Sample:
    """Seconds of the processor that a call takes, whatever else the machine does."""

    def sample() -> float:
        start = time.process_time()
        for _ in range(runs):
            run()
        return (time.process_time() - start) / runs

    return sample


def _all_reduce(folder: Path) -> Mapping[str, Sample]:
    launch = ["-m", "tenfold", "launch", "--nproc-per-node", "2", "-m", "benchmarks.all_reduce"]
    return {OURS: printed_seconds([*launch, "tenfold"]), GLOO: printed_seconds([*launch, "torch"])}


BENCHMARKS = (
    Benchmark("mesh", "processor time of an MLP's step on a mesh of one", ALONE, 1.03, _mesh_of_one),
    Benchmark("all-reduce", "all_reduce of 64 MB, two processes", GLOO, 1.5, _all_reduce, repeats=3),
)
