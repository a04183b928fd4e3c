"""What XLA makes of Tenfold's GPU programs, found out without a GPU: memory, kernels, and the bytes that each
reads and writes. Small kernels are bound by memory, so bytes tell which choice of a lowering is the better
one before a GPU is at hand to time it; matrix products and attention are bound by arithmetic.

`python -m benchmarks.gpu.offline` needs XLA's CUDA plugin (`pip install jax-cuda13-plugin jax-cuda13-pjrt`,
of jaxlib's version) and neither a driver nor CUDA's own libraries. Nothing is autotuned: the algorithm that a
library takes, and the workspace that it asks for, may differ on a device."""

from __future__ import annotations

import argparse
import math
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.gpu import gpt2, llama, resnet50
from benchmarks.gpu.__main__ import looping

# An H200 as XLA's compiler knows it (xla.GpuTargetConfigProto).
H200 = """
platform_name: "CUDA"
device_description_str: "NVIDIA H200"
dnn_version_info { major: 9 minor: 12 }
gpu_device_info {
  cuda_compute_capability { major: 9 }
  core_count: 132 fpus_per_core: 128 clock_rate_ghz: 1.98
  threads_per_warp: 32 threads_per_block_limit: 1024 threads_per_core_limit: 2048
  registers_per_core_limit: 65536 registers_per_block_limit: 65536
  shared_memory_per_block: 49152 shared_memory_per_block_optin: 232448 shared_memory_per_core: 233472
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  memory_bandwidth: 4800000000000 l2_cache_size: 62914560 device_memory_size: 149000000000
}
"""
LARGE = 100  # ops of the program that is looked at; those that prepare it have fewer
GIB = 1 << 30
SIZES = {
    "pred": 1,
    "s8": 1,
    "u8": 1,
    "bf16": 2,
    "f16": 2,
    "s32": 4,
    "u32": 4,
    "f32": 4,
    "s64": 8,
    "u64": 8,
    "f64": 8,
}
NO_KERNELS = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast"}


class Compiled(BaseException):
    """Ends the task once its program is compiled: there is nothing to run it on."""


@dataclass(frozen=True)
class Kernel:
    """A step of a compiled program: its name, kind, type, and the bytes of its operands and results."""

    name: str
    kind: str
    type: str
    traffic: int


def size_of(type: str) -> int:
    """The bytes of an HLO type; of a tuple those of all its parts."""
    return sum(
        SIZES.get(dtype, 0) * math.prod([int(each) for each in shape.split(",") if each])
        for dtype, shape in re.findall(r"(\w+)\[([\d,]*)\]", type)
    )


def kernels_of(hlo: str) -> list[Kernel]:
    """The kernels of a compiled module, in the order in which they run."""
    types: dict[str, str] = {}
    kernels = []
    start = _start(hlo)
    for line in hlo[start : hlo.index("\n}", start)].splitlines():
        match = re.match(r"\s+(?:ROOT )?%([\w.\-]+) = (\(.*?\)|\S+) ([\w\-]+)\((.*?)\)(?:,|$)", line)
        if match is None:
            continue
        name, type, op, operands = match.groups()
        types[name] = type
        if op not in NO_KERNELS:
            read = sum([size_of(types.get(each, "")) for each in re.findall(r"%([\w.\-]+)", operands)])
            target = re.search(r'custom_call_target="([^"]+)"', line)
            fusion = re.search(r"kind=(\w+)", line)
            kind = target[1] if target else f"fusion {fusion[1]}" if fusion else op
            kernels.append(Kernel(name, kind, type, size_of(type) + read))
    return kernels


def _start(hlo: str) -> int:
    """Where the program starts, or the body of its loop if it is one."""
    loop = re.search(r" while\(.*body=%([\w.\-]+)", hlo)
    return hlo.index(f"\n%{loop[1]} ") if loop else hlo.index("\nENTRY")


def report(hlo: str, memory: Any, rows: int) -> None:
    kernels = kernels_of(hlo)
    results = memory.output_size_in_bytes - memory.alias_size_in_bytes
    held = memory.argument_size_in_bytes + results + memory.temp_size_in_bytes
    total = sum([each.traffic for each in kernels])
    print(f"  memory {held / GIB:.2f} GiB, of it {memory.temp_size_in_bytes / GIB:.2f} for work")
    print(f"  {len(kernels)} kernels, {total / 1e9:.2f} GB read and written")
    for kind in sorted({each.kind for each in kernels}):
        same = [each.traffic for each in kernels if each.kind == kind]
        print(f"    {len(same):4} x {kind:32} {sum(same) / 1e9:8.2f} GB")
    for each in sorted(kernels, key=lambda each: -each.traffic)[:rows]:
        print(f"    {each.traffic / 1e6:9.1f} MB  {each.name:32} {each.kind:24} {each.type[:60]}")


def compile_only() -> Any:
    """A device that programs can be compiled for and not run on."""
    from tenfold.engines import xla

    xc, path = xla.jaxlib().xc, xla.find_cuda_plugin()
    if path is None:
        raise SystemExit("this needs: pip install jax-cuda13-plugin jax-cuda13-pjrt, of jaxlib's version")
    plugin = xc.load_pjrt_plugin_dynamically("cuda", path)
    if not xc.pjrt_plugin_initialized("cuda"):
        xc.initialize_pjrt_plugin("cuda")
    topology = xc.make_c_api_device_topology(plugin, "h200", target_config=H200, topology="1x1x1")
    return topology._make_compile_only_devices()[0]


def intercept(device: Any, options: list[tuple[str, Any]], done: Callable[[str, Any], None]) -> None:
    """Let the CPU stand in for CUDA where a task prepares its tensors, and hand what XLA makes of its first
    large program to `done`."""
    from tenfold.engines import xla

    cpu, plain = xla.client("cpu"), xla.compile
    xla.started["cuda"] = SimpleNamespace(  # type: ignore[assignment]
        platform="cuda", client=cpu.client, devices=cpu.devices, device=lambda index: cpu.devices[0]
    )

    def compile(module: Any, place: Any) -> Any:
        if place.type != "cuda" or module.text().count("\n") < LARGE:
            return plain(module, place)
        xc = xla.jaxlib().xc
        settings = xc.CompileOptions()
        settings.device_assignment = xc.DeviceAssignment.create(np.array([[0]], np.int32))
        settings.env_option_overrides = [
            *xla.overrides("cuda", module), ("xla_gpu_autotune_level", 0), *options,
        ]  # fmt: skip
        made = device.client.compile(module.module, xc.DeviceList((device,)), settings)
        done(made.hlo_modules()[0].to_string(), made.get_compiled_memory_stats())
        raise Compiled

    xla.compile = compile  # type: ignore[assignment]


def task_of(name: str, batch: int | None) -> Callable[[], Any]:
    import tenfold

    wrap = lambda step, losses=None: tenfold.compile(step)
    if name == "resnet50":
        return resnet50.training(tenfold, batch or 128, wrap)
    if name == "llama":
        return llama.training(tenfold, batch or 4, 2048, wrap)
    if name == "prefill":
        return llama.reading(tenfold, 2048, wrap)
    if name == "loop":
        return looping(batch or 1)
    if name == "decode":
        return gpt2.decoding(tenfold, batch or 1, 1024, wrap)
    return gpt2.training(tenfold, batch or 16, 1024, wrap)


def option(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    return name, {"true": True, "false": False}.get(value, int(value) if value.isdigit() else value)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu.offline", description=__doc__)
    parser.add_argument(
        "--task", choices=("gpt2", "resnet50", "decode", "loop", "llama", "prefill"), default="gpt2"
    )
    parser.add_argument(
        "--layers", type=int, default=gpt2.LAYERS, help="of a transformer; fewer compile sooner"
    )
    parser.add_argument("--batch", type=int, help="by default as in benchmarks.gpu")
    parser.add_argument("--rows", type=int, default=20, help="kernels to list, those of most traffic first")
    parser.add_argument("--option", type=option, action="append", default=[], help="XLA's: name=value")
    parser.add_argument("--hlo", help="a file for the compiled module")
    given = parser.parse_args()
    gpt2.LAYERS = llama.LAYERS = given.layers
    os.environ["TENFOLD_CACHE_DIR"] = ""  # what the CPU stands in for is not for other runs

    def done(hlo: str, memory: Any) -> None:
        print(f"{given.task}, compiled for an H200:")
        report(hlo, memory, given.rows)
        if given.hlo:
            with open(given.hlo, "w") as file:
                file.write(hlo)

    intercept(compile_only(), given.option, done)
    try:
        task_of(given.task, given.batch)()
    except Compiled:
        return
    raise SystemExit("the task has no program that is large enough to look at")


if __name__ == "__main__":
    main()
