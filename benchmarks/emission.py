"""From a model to a module of the torch dialect, beside torch-mlir's own importer, which exports with PyTorch
first; both write the weights beside the module as resources. `python -m benchmarks.emission tenfold resnet50`
is the process that the start-up benchmarks start: it prints how many literals its module has."""

from __future__ import annotations

import itertools
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.harness import OURS, ROOT, Benchmark, Sample, first_line

PEER = "torch-mlir"
# Of each model its file among the examples, its function there, and how many tensors it reads.
MODELS = {"resnet50": ("resnet", "resnet50", 267), "gpt2": ("gpt2", "gpt2", 148)}


def source(file: str, package: str) -> ModuleType:
    """An example model's file as a module, on `tenfold` or `torch`: it is PyTorch code but for the name."""
    path = ROOT / "examples" / "models" / f"{file}.py"
    text = re.sub(r"^(import|from) tenfold\b", rf"\1 {package}", path.read_text("utf-8"), flags=re.MULTILINE)
    found = ModuleType(f"{package}_{file}")
    exec(compile(text, str(path), "exec"), vars(found))
    return found


def example(name: str, package: Any, batch: int) -> Any:
    """An input of the model: images or tokens."""
    if name == "gpt2":
        return package.zeros(batch, 64, dtype=package.int64)
    return package.zeros(batch, 3, 224, 224)


def ours(name: str) -> Callable[[int], Any]:
    """Takes the size of a batch, gives the module."""
    import tenfold as tn

    file, function, _ = MODELS[name]
    model = getattr(source(file, "tenfold"), function)().eval()
    tn.eval(*model.state_dict().values())
    return lambda batch: tn.export(model, (example(name, tn, batch),), parameters="literals").module.module


def peer(name: str) -> Callable[[int], Any]:
    import torch
    from torch_mlir import fx

    file, function, _ = MODELS[name]
    model = getattr(source(file, "torch"), function)().eval()
    return lambda batch: fx.export_and_import(model, example(name, torch, batch))


def literals(module: Any) -> int:
    """How many literals the module's function has."""
    (function,) = module.body.operations
    return sum(
        op.operation.name == "torch.vtensor.literal" for op in function.regions[0].blocks[0].operations
    )


def emission(name: str) -> Callable[[Path], Mapping[str, Sample]]:
    """A new size of batch each time: so nothing that is remembered of the last module helps with the next."""

    def contenders(folder: Path) -> Mapping[str, Sample]:
        found = {}
        for contender, emit in ((OURS, ours(name)), (PEER, peer(name))):
            found[contender] = _timed(emit, itertools.count(2), MODELS[name][2])
        return found

    return contenders


def _timed(emit: Callable[[int], Any], batches: Iterator[int], least: int) -> Sample:
    def sample() -> float:
        start = time.perf_counter()
        module = emit(next(batches))
        seconds = time.perf_counter() - start
        if literals(module) < least:
            raise RuntimeError(f"the module has {literals(module)} literals, not {least}")
        return seconds

    return sample


def start_to_module(name: str) -> Callable[[Path], Mapping[str, Sample]]:
    """From the start of a process to the module: imports and the model's weights included."""

    def contenders(folder: Path) -> Mapping[str, Sample]:
        arguments = ["-m", "benchmarks.emission"]
        count = MODELS[name][2]
        expected = {"tenfold": count, "torch": count + (name == "gpt2")}  # whose mask is a literal, too
        return {
            contender: first_line([*arguments, package, name], dict, expected[package])
            for contender, package in ((OURS, "tenfold"), (PEER, "torch"))
        }

    return contenders


BENCHMARKS = (
    Benchmark(
        "emit-resnet50", "ResNet-50 to the torch dialect", PEER, 1 / 20, emission("resnet50"), repeats=2
    ),
    Benchmark("emit-gpt2", "GPT-2 to the torch dialect", PEER, 1 / 20, emission("gpt2"), repeats=2),
    Benchmark(
        "emit-start",
        "start to the torch dialect, ResNet-50",
        PEER,
        1 / 5,
        start_to_module("resnet50"),
        repeats=1,
    ),
    Benchmark(
        "emit-start-gpt2",
        "start to the torch dialect, GPT-2",
        PEER,
        1 / 5,
        start_to_module("gpt2"),
        repeats=1,
    ),
)


if __name__ == "__main__":
    package, model_name = sys.argv[1:]
    made = {"tenfold": ours, "torch": peer}[package](model_name)(2)
    print(literals(made), flush=True)
