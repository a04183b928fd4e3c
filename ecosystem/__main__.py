"""`make ecosystem`: the table of packages and what works with them.

Into build/ecosystem/venv, an environment without PyTorch, go the packages of packages.txt without their
dependencies, and what they need besides PyTorch. Each program of `programs/` runs there by
`tenfold run --as-torch`, and beside it on the PyTorch of this environment; then their numbers are
compared."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
BUILD = HERE.parent / "build" / "ecosystem"
SITE = BUILD / "venv" / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
STAGES = ("imports", "builds", "trains", "generates", "saves, loads")
# How far numbers may differ, and whether by the largest of all of their kind.
TOLERANCE = {"output": 1e-5, "gradient": 1e-4, "tokens": 0.0}
TIMM = "resnet18 convnext_atto mobilenetv3_small_050 efficientnet_b0 vit_tiny_patch16_224 regnetx_002"


@dataclass
class Run:
    """One program with its argument, by the name that the table has for it."""

    name: str
    program: str
    arguments: list[str] = field(default_factory=list)
    processes: int = 1


RUNS = [
    *[Run(f"transformers {kind}", "transformers_models", [kind]) for kind in ("gpt2", "llama", "bert")],
    Run("transformers Trainer, pipeline", "transformers_trainer"),
    *[Run(f"timm {kind}", "timm_models", [kind]) for kind in TIMM.split()],
    Run("timm, 52 architectures", "timm_architectures"),
    Run("PyTorch's examples, nanoGPT", "pytorch_examples"),
    Run("vit-pytorch, einops", "vit_and_einops"),
    Run("peft LoRA", "peft_lora"),
    Run("accelerate, torchmetrics, safetensors", "loops"),
    Run("lightning", "lightning_loop"),
    Run("diffusers", "diffusers_unet"),
    Run("data-parallel launch", "data_parallel", processes=2),
]


def prepare() -> None:
    """Make the environment without PyTorch, if it is not there or its lists have changed."""
    stamp = BUILD / "installed.txt"
    wanted = "".join([(HERE / name).read_text() for name in ("packages.txt", "needed.txt")])
    if stamp.exists() and stamp.read_text() == wanted:
        return
    print("installing the packages of ecosystem/packages.txt, without PyTorch", flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", BUILD / "venv"], check=True)
    pip = [
        BUILD / "venv" / "bin" / "python",
        "-m",
        "pip",
        "--quiet",
        "--disable-pip-version-check",
        "install",
    ]
    subprocess.run([*pip, "--no-deps", "-r", HERE / "packages.txt"], check=True)
    subprocess.run(
        [*pip, "-r", HERE / "needed.txt", "numpy", "ml_dtypes", "jaxlib>=0.10,<0.12", "rich"], check=True
    )
    stamp.write_text(wanted)
    others = BUILD / "for-pytorch"
    shutil.rmtree(others, ignore_errors=True)
    others.mkdir()
    for each in SITE.iterdir():
        if not each.name.lower().startswith(("numpy", "ml_dtypes", "jaxlib", "rich")):
            (others / each.name).symlink_to(each)


def execute(run: Run, engine: str) -> tuple[dict, dict[str, np.ndarray], float]:
    """What a program reported, its numbers, and the seconds from its first line to its last."""
    out = BUILD / "results" / engine / run.name.replace(" ", "-").replace(",", "")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    program = [str(HERE / "programs" / f"{run.program}.py"), *run.arguments]
    if engine == "tenfold":
        command = [
            str(BUILD / "venv" / "bin" / "python"),
            "-W",
            "ignore",
            "-m",
            "tenfold",
            *(["run"] if run.processes == 1 else ["launch", "--nproc-per-node", str(run.processes)]),
            "--as-torch",
        ]
        paths = [HERE.parent / "src", HERE]
    else:
        launch = ["-m", "torch.distributed.run", "--nproc-per-node", str(run.processes)]
        command = [sys.executable, "-W", "ignore", *(launch if run.processes > 1 else [])]
        command += [str(HERE / "on_pytorch.py")]
        paths = [HERE, BUILD / "for-pytorch"]
    environment = {**os.environ, "ECOSYSTEM_OUT": str(out), "PYTHONPATH": os.pathsep.join(map(str, paths)),
                   "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}  # fmt: skip
    start = time.perf_counter()
    with open(out / "log.txt", "w", encoding="utf-8") as log:
        subprocess.run([*command, *program], env=environment, cwd=out, stdout=log, stderr=log, check=False)
    seconds = time.perf_counter() - start
    report = out / "results.json"
    results = json.loads(report.read_text()) if report.exists() else {"stages": {"imports": "did not start"}}
    arrays = out / "arrays.npz"
    return results, dict(np.load(arrays)) if arrays.exists() else {}, seconds


def difference(ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray]) -> str:
    """ "equal", or the first number that differs by more than its kind may."""
    largest: dict[str, float] = {}
    for name, expected in theirs.items():
        kind = name.partition("/")[0]
        size = float(np.abs(expected).max()) if expected.size else 0.0
        largest[kind] = max(largest.get(kind, 0.0), size)
    for name, expected in theirs.items():
        kind = name.partition("/")[0]
        if name not in ours or ours[name].shape != expected.shape:
            return f"{name}: missing, or of another shape"
        apart = (
            float(np.abs(ours[name].astype(float) - expected.astype(float)).max()) if expected.size else 0.0
        )
        scale = max(1.0, largest[kind]) if kind == "output" else largest[kind]
        if apart > TOLERANCE[kind] * scale:
            return f"{name}: {apart:.1e}"
    return "equal"


def main(only: list[str]) -> int:
    prepare()
    table = Table("program", *STAGES, "compared with PyTorch", "seconds", "PyTorch's", box=None)
    failed = 0
    for run in RUNS:
        if only and not any(word in run.name for word in only):
            continue
        ours, arrays, seconds = execute(run, "tenfold")
        theirs, expected, reference = execute(run, "pytorch")
        stages = [ours["stages"].get(each, "") for each in STAGES]
        if any(isinstance(each, str) for each in theirs["stages"].values()):
            verdict = "PyTorch's run failed"
        else:
            verdict = difference(arrays, expected)
        failed += verdict != "equal" or any(isinstance(each, str) and each for each in stages)
        shown = ["yes" if each is True else str(each)[:60] or "-" for each in stages]
        table.add_row(run.name, *shown, verdict, f"{seconds:.0f}", f"{reference:.0f}")
        print(run.name, dict(zip(STAGES, shown)), verdict, flush=True)
    Console(width=200).print(table)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
