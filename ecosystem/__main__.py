"""`make ecosystem`: the table of packages and what works with them.

Into build/ecosystem/venv, an environment without PyTorch, go the packages of packages.txt without their
dependencies, and what they need besides PyTorch. Each program of `programs/` runs there by
`tenfold run --as-torch`, and beside it on the PyTorch of this environment: several times in one process, to
time it from the first line and warm. Then the numbers of both are compared."""

from __future__ import annotations

import argparse
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
SECONDS = ("seconds", "PyTorch's", "warm", "PyTorch's warm")
STAGES = ("imports", "builds", "trains", "generates", "saves, loads")
# How far numbers may differ, and whether by the largest of all of their kind.
TOLERANCE = {"output": 1e-5, "gradient": 1e-4, "tokens": 0.0}
EXAMPLE = "example:\n  python -m ecosystem gpt2 peft\n"
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
    *[Run(f"timm, architectures {part} of 4", "timm_architectures", [part]) for part in "1234"],
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


def execute(run: Run, engine: str) -> tuple[dict, dict[str, np.ndarray]]:
    """What a program reported, and its numbers."""
    out = BUILD / "results" / engine / run.name.replace(" ", "-").replace(",", "")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    program = [str(HERE / "repeated.py"), str(HERE / "programs" / f"{run.program}.py"), *run.arguments]
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
        paths = [HERE, BUILD / "for-pytorch"]
    environment = {**os.environ, "ECOSYSTEM_OUT": str(out), "ECOSYSTEM_ENGINE": engine,
                   "ECOSYSTEM_START": str(time.time()), "PYTHONPATH": os.pathsep.join(map(str, paths)),
                   "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}  # fmt: skip
    with open(out / "log.txt", "w", encoding="utf-8") as log:
        subprocess.run([*command, *program], env=environment, cwd=out, stdout=log, stderr=log, check=False)
    report = out / "results.json"
    results = json.loads(report.read_text()) if report.exists() else {"stages": {"imports": "did not start"}}
    arrays = out / "arrays.npz"
    return results, dict(np.load(arrays)) if arrays.exists() else {}


def group(name: str) -> str:
    """The kind of a number and the model or program that it belongs to, where a run has several."""
    return name.partition("/")[0] + name.rpartition(": ")[0]


def difference(ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray]) -> str:
    """ "equal", or the first number that differs by more than its kind may."""
    largest: dict[str, float] = {}
    for name, expected in theirs.items():
        size = float(np.abs(expected).max()) if expected.size else 0.0
        largest[group(name)] = max(largest.get(group(name), 0.0), size)
    for name, expected in theirs.items():
        kind = name.partition("/")[0]
        if name not in ours or ours[name].shape != expected.shape:
            return f"{name}: missing, or of another shape"
        if not expected.size:
            continue
        apart = float(np.abs(ours[name].astype(float) - expected.astype(float)).max())
        scale = max(1.0, largest[group(name)]) if kind == "output" else largest[group(name)]
        if not apart <= TOLERANCE[kind] * scale:  # so that NaN differs
            return f"{name}: {apart:.1e}"
    return "equal"


def main() -> int:
    options = argparse.ArgumentParser(
        prog="python -m ecosystem", description=__doc__, epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    options.add_argument("name", nargs="*", help="programs whose names contain this; all without one")
    options.add_argument("--list", action="store_true", help="print the names")
    given = options.parse_args()
    chosen = [run for run in RUNS if not given.name or any(word in run.name for word in given.name)]
    if given.list:
        print("\n".join([run.name for run in chosen]))
        return 0
    if not chosen:
        options.error(f"no program's name contains {' or '.join(given.name)}; --list prints all")
    prepare()
    table = Table("program", *STAGES, "compared with PyTorch", *SECONDS, box=None)
    failed = 0
    for run in chosen:
        ours, arrays = execute(run, "tenfold")
        theirs, expected = execute(run, "pytorch")
        stages = [ours["stages"].get(each, "") for each in STAGES]
        if any(isinstance(each, str) for each in theirs["stages"].values()):
            verdict = "PyTorch's run failed"
        else:
            verdict = difference(arrays, expected)
        failed += verdict != "equal" or any(isinstance(each, str) and each for each in stages)
        shown = ["yes" if each is True else str(each)[:60] or "-" for each in stages]
        timed = [
            (report.get("seconds", {}), which) for which in ("first", "warm") for report in (ours, theirs)
        ]
        seconds = [f"{times[which]:.2f}" if which in times else "-" for times, which in timed]
        table.add_row(run.name, *shown, verdict, *seconds)
        print(run.name, dict(zip(STAGES, shown)), verdict, dict(zip(SECONDS, seconds)), flush=True)
    Console(width=200).print(table)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
