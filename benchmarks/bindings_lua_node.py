"""What one call costs from Lua and Node: the sum of two tensors of one element, beside C and Python's
PyTorch.

C frees every result at once. "Tenfold" is LuaJIT doing the same; "LuaJIT, collected" leaves the results to
its garbage collector, as programs do that say nothing about memory. Each sample is a process that prints
nanoseconds, of the processor's time: all are of one thread, but for what collectors do, and that is part of
what they cost.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.harness import OURS, ROOT, Benchmark, Sample
from tenfold.base.errors import MissingEngine
from tenfold.capi import bindings_lua, bindings_node
from tenfold.capi.build import build

C_PROGRAM = """
#include <stdio.h>
#include <tenfold.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(void) {
    const int64_t shape[] = {1};
    double best = 1e18;
    tn_set_threads(1);
    tn_tensor *x = tn_ones(shape, 1), *y = tn_ones(shape, 1);
    for (int round = 0; round < 10; ++round) {
        double start = now();
        for (int i = 0; i < 100000; ++i) tn_free(tn_add(x, y));
        double each = (now() - start) / 100000;
        if (each < best) best = each;
    }
    printf("%f\\n", best);
    tn_free(x);
    tn_free(y);
    return 0;
}
"""

LUA_PROGRAM = """
local ffi, tn = require("ffi"), require("tenfold")
ffi.cdef("typedef struct { long s, ns; } instant; int clock_gettime(int, instant *);")
local t = ffi.new("instant")
local function now()
  ffi.C.clock_gettime(2, t)
  return tonumber(t.s) * 1e9 + tonumber(t.ns)
end

tn.set_threads(1)
local x, y, best = tn.ones(1), tn.ones(1), math.huge
for round = 1, 10 do
  local start = now()
  for i = 1, 100000 do BODY end
  best = math.min(best, (now() - start) / 100000)
end
print(best)
"""

NODE_PROGRAM = """
const tn = require(process.argv[1])
tn.set_threads(1)
const [x, y] = [tn.ones(1), tn.ones(1)]
let best = Infinity
for (let round = 0; round < 10; round += 1) {
  const start = process.cpuUsage()
  for (let i = 0; i < 50000; i += 1) BODY
  const { user, system } = process.cpuUsage(start)
  best = Math.min(best, (1000 * (user + system)) / 50000)
}
console.log(best)
"""

PYTHON_PROGRAM = """
import time, torch
torch.set_num_threads(1)
x, y = torch.ones(1), torch.ones(1)
best = float("inf")
for _ in range(10):
    start = time.process_time_ns()
    for _ in range(100000):
        x + y
    best = min(best, (time.process_time_ns() - start) / 100000)
print(best)
"""


def add_of_one_element(folder: Path) -> Mapping[str, Sample]:
    rock, package = folder / "lua", folder / "node"
    shutil.copytree(ROOT / "bindings" / "lua", rock)
    bindings_lua.write(rock, build().library)
    shutil.copytree(ROOT / "bindings" / "node", package)
    bindings_node.write(package, build().library)
    _run([_found("npm"), "install", "--no-audit", "--no-fund"], cwd=package)
    settings = {"LUA_PATH": f"{rock}/?.lua;{rock}/?/init.lua;;"}

    def lua(body: str) -> Sample:
        return _printed([_found("luajit"), "-e", LUA_PROGRAM.replace("BODY", body)], settings)

    def node(body: str) -> Sample:
        return _printed([_found("node"), "-e", NODE_PROGRAM.replace("BODY", body), str(package)])

    return {
        OURS: lua("local z = x + y; z:free()"),
        "C": _printed([str(_compiled(folder))]),
        "LuaJIT, collected": lua("local z = x + y"),
        "Node": node("x.add(y).free()"),
        "Node, collected": node("x.add(y)"),
        "PyTorch": _printed([sys.executable, "-c", PYTHON_PROGRAM]),
    }


def _compiled(folder: Path) -> Path:
    source, program = folder / "add.c", folder / "add"
    source.write_text(C_PROGRAM, encoding="utf-8")
    flags = [*build().compile_flags, str(source), "-o", str(program), *build().link_flags]
    _run(["cc", "-O2", "-D_POSIX_C_SOURCE=200809L", *flags])
    return program


def _found(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise MissingEngine(
            f"this benchmark runs {name}, which is not installed", help=f"apt-get install {name}"
        )
    return path


def _run(command: Sequence[str], cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed: {done.stdout}{done.stderr}")
    return done.stdout


def _printed(command: Sequence[str], settings: Mapping[str, str] | None = None) -> Sample:
    """The nanoseconds that a program prints, as seconds."""
    return lambda: float(_run(command, env={**os.environ, **(settings or {})})) / 1e9


BENCHMARKS = (
    Benchmark(
        "bindings",
        "add of one element from LuaJIT, its result freed",
        "C",
        1.1,
        add_of_one_element,
        repeats=5,
    ),
)
