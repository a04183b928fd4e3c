"""Tenfold, JAX, PyTorch eager and torch.compile on a GPU, each in its best form and in a process of its own.
`python -m benchmarks.gpu` prints a table for each task: training GPT-2 124M in mixed precision (batch 16 x
1024), ResNet-50 and a Llama-style model, decoding GPT-2 with a cache of 1,024 tokens, and reading a prompt.
`--profile` tells where Tenfold's time goes instead."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.gpu import gpt2, jax_gpt2, llama, resnet50

CONTENDERS = ("tenfold", "tenfold-lazy", "tenfold-loop", "jax", "torch.compile", "pytorch")
TASKS = {
    "gpt2": "GPT-2 124M, autocast, fused AdamW, batch 16 x 1024, ms a step",
    "resnet50": "ResNet-50, autocast, channels last, batch 128, ms a step",
    "decode": "GPT-2 decoding, bf16, batch 1, cache of 1,024, ms a token",
    "decode-32": "GPT-2 decoding, bf16, batch 32, cache of 1,024, ms a token",
    "llama": "Llama-style 1.1B, autocast, checkpointed layers, batch 4 x 2048, ms a step",
    "prefill": "Llama-style 1.1B, bf16, a prompt of 2,048 tokens, ms",
}
EXAMPLE = "example:\n  python -m benchmarks.gpu --task gpt2 --only tenfold --only torch.compile --steps 20\n"


def contender(task: str, name: str) -> Callable[[], Any] | None:
    """The step to time; None if this contender has none for the task."""
    decodes = task.startswith("decode")
    batch = 32 if task == "decode-32" else 1
    if name == "jax":
        if task in ("resnet50", "llama", "prefill"):
            return None
        return jax_gpt2.decoding(batch, 1024) if decodes else jax_gpt2.training(16, 1024, "cudnn")
    if name == "tenfold-loop" and not decodes:
        return None
    wraps = _wraps(name, decodes or task == "prefill")
    if wraps is None:
        return None
    module, wrap = wraps
    if name == "tenfold-loop":
        return looping(batch)
    if decodes:
        return gpt2.decoding(module, batch, 1024, wrap)
    if task == "resnet50":
        return resnet50.training(module, 128, wrap)
    if task == "llama":
        return llama.training(module, 4, 2048, wrap)
    if task == "prefill":
        return llama.reading(module, 2048, wrap)
    return gpt2.training(module, 16, 1024, wrap)


def _wraps(name: str, decodes: bool) -> tuple[Any, Callable[..., Any]] | None:
    if name.startswith("tenfold"):
        import tenfold

        if name == "tenfold-lazy":
            return None if decodes else (tenfold, lambda step, losses=None: step)
        mode = "reduce-overhead" if decodes else None
        return tenfold, lambda step, losses=None: tenfold.compile(step, mode=mode)
    import torch

    torch.set_float32_matmul_precision("high")
    if name == "pytorch":
        return torch, lambda step, losses=None: step
    if decodes:
        return torch, lambda step: torch.compile(step, mode="reduce-overhead")

    def compiled(step: Any, losses: dict[str, Any]) -> Any:
        losses["loss"] = torch.compile(losses["loss"])
        return step

    return torch, compiled


def looping(batch: int) -> Callable[[], Any]:
    """900 tokens by one program."""
    import tenfold

    sys.path.insert(0, str(Path(__file__).parent.parent.parent / "examples" / "models"))
    from gpt2 import gpt2 as example  # type: ignore[import-not-found]

    model = example(vocabulary=gpt2.VOCABULARY, dropout=0.0).to(device="cuda", dtype=tenfold.bfloat16).eval()
    return lambda: tenfold.generation.generate(model, [[1, 2, 3]] * batch, LOOP)


LOOP = 900


def measure(task: str, name: str, steps: int) -> dict[str, Any]:
    """Seconds to the first result, and milliseconds a step, read after every few."""
    start = time.perf_counter()
    step = contender(task, name)
    if step is None:
        return {}
    read = lambda result: result.reshape(-1)[-1].item()
    values = [read(step())]
    first = time.perf_counter() - start
    group = 1 if name == "tenfold-loop" else 100 if task.startswith("decode") else 5
    values += [read(step()) for _ in range(1 if name == "tenfold-loop" else 9)]
    samples = []
    for _ in range(max(3, steps // 5)):
        start = time.perf_counter()
        for _ in range(group):
            result = step()
        values.append(read(result))
        samples.append((time.perf_counter() - start) / group * 1e3)
    if name == "tenfold-loop":
        samples = [each / LOOP for each in samples]
    return {
        "first": first, "ms": statistics.median(samples), "best": min(samples), "memory": _memory(name),
        "values": values,
    }  # fmt: skip


def profiled(task: str, rows: int) -> str:
    """Where Tenfold's time goes, in 10 steps, and what holds its memory."""
    import tenfold

    step = contender(task, "tenfold")
    assert step is not None
    for _ in range(3):
        step().cpu()
    with tenfold.profile() as taken:
        for _ in range(10):
            result = step()
        result.cpu()
    return f"{taken.key_averages().table(row_limit=rows)}\n{taken.memory_table()}"


def _memory(name: str) -> float:
    """The most GiB that were in use."""
    if name.startswith("tenfold"):
        import tenfold

        return tenfold.cuda.max_memory_allocated() / 2**30
    if name == "jax":
        import jax

        return jax.devices()[0].memory_stats()["peak_bytes_in_use"] / 2**30
    import torch

    return torch.cuda.max_memory_allocated() / 2**30


def main() -> int:
    options = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu", description=__doc__, epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    options.add_argument("--task", action="append", choices=TASKS, help="one task; may be repeated")
    options.add_argument("--only", action="append", choices=CONTENDERS, help="one contender; may be repeated")
    options.add_argument("--steps", type=int, default=30, help="steps that are timed")
    options.add_argument("--profile", action="store_true", help="profile Tenfold, in this process")
    options.add_argument("--rows", type=int, default=40, help="rows of a profile (default: %(default)s)")
    options.add_argument("--here", nargs=2, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.here:
        task, name = chosen.here
        print(json.dumps(measure(task, name, chosen.steps)))
        return 0
    if chosen.profile:
        for task in chosen.task or TASKS:
            print(f"{TASKS[task]}\n{profiled(task, chosen.rows)}", flush=True)
        return 0
    settings = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    for task in chosen.task or TASKS:
        print(f"{TASKS[task]}\n{'':16}{'first':>10}{'ms':>10}{'best':>9}{'GiB':>8}   values")
        for name in chosen.only or CONTENDERS:
            command = [sys.executable, "-m", "benchmarks.gpu", "--here", task, name]
            done = subprocess.run(
                [*command, "--steps", str(chosen.steps)],
                env=settings,
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                print(f"{name:16} failed:\n{done.stderr[-1500:]}", flush=True)
                continue
            found = json.loads(done.stdout.splitlines()[-1])
            if found:
                values = " ".join(f"{each:.3f}" for each in (*found["values"][:3], found["values"][-1]))
                print(
                    f"{name:16}{found['first']:>8.1f} s{found['ms']:>10.3f}{found['best']:>9.3f}"
                    f"{found['memory']:>8.2f}   {values}",
                    flush=True,
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
