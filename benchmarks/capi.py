"""What libtenfold adds to libtorch: one `add` by `at::add` itself, by a typed call, by name and from Python,
and the start of a small program. `python -m benchmarks.capi` prints what memory that program takes, in C++
and in C."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.harness import OURS, Benchmark, Sample, statement

PEER = "at::add"

DIRECT = r"""
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ATen/ATen.h>

int main(int argc, char **argv) {
    int64_t size = std::atoi(argv[1]);
    at::Tensor a = size == 1 ? at::ones({1}) : at::ones({size, size}), b = a + a;
    if (argc > 2) return std::printf("%g\n", b.sum().item().toDouble()) < 0;
    for (int line; (line = std::getchar()) != EOF;) {
        auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < 20000; i++) at::Tensor c = at::add(a, b);
        std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
        std::printf("%.12g\n", passed.count() / 20000);
        std::fflush(stdout);
    }
}
"""

THROUGH = r"""
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <tenfold.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv) {
    int64_t size = atoi(argv[1]), shape[2];
    const char *how = argv[2];
    shape[0] = shape[1] = size;
    tn_tensor *a = tn_ones(shape, size == 1 ? 1 : 2), *b = tn_add(a, a);
    if (strcmp(how, "start") == 0) {
        tn_scalar total;
        tn_tensor *sum = tn_sum(b);
        if (tn_tensor_item(sum, &total) != TN_OK) return 1;
        return printf("%g\n", total.as.d) < 0;
    }
    const tn_op *op = tn_find("aten::add.Tensor");
    tn_stack *stack = tn_stack_new();
    (void)argc;
    while (getchar() != EOF) {
        double start = now();
        for (int i = 0; i < 20000; i++) {
            if (how[0] == 't') {
                tn_free(tn_add(a, b));
                continue;
            }
            tn_stack_push_tensor(stack, a);
            tn_stack_push_tensor(stack, b);
            if (how[0] == 'h' ? tn_call_op(op, stack) : tn_call("aten::add.Tensor", stack)) return 1;
            tn_free(tn_stack_pop_tensor(stack));
        }
        printf("%.12g\n", (now() - start) / 20000);
        fflush(stdout);
    }
    return 0;
}
"""


def programs(folder: Path) -> tuple[Path, Path]:
    """The same program in C++ over libtorch and in C over libtenfold."""
    from tenfold.capi import build

    library = build()
    (folder / "direct.cpp").write_text(DIRECT, encoding="utf-8")
    (folder / "through.c").write_text(THROUGH, encoding="utf-8")
    torch = library.libtorch
    include = [f"-isystem{each}" for each in torch.include]
    link = [f"-L{torch.lib}", "-ltorch", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{torch.lib}"]
    direct, through = folder / "direct", folder / "through"
    cpp = ["c++", "-std=c++20", "-O2", *include, str(folder / "direct.cpp"), "-o", str(direct), *link]
    c = ["cc", "-std=c99", "-O2", *library.compile_flags, str(folder / "through.c"), "-o", str(through)]
    for command in (cpp, [*c, *library.link_flags]):
        subprocess.run(command, check=True)
    return direct, through


def asked(*command: str | Path) -> Sample:
    """Seconds for one call, as a program that stays open tells for each line it is sent."""
    process = subprocess.Popen(
        [str(c) for c in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

    def sample() -> float:
        assert process.stdin and process.stdout
        process.stdin.write("\n")
        process.stdin.flush()
        return float(process.stdout.readline())

    return sample


def adding(size: int, ours: str) -> Callable[[Path], Mapping[str, Sample]]:
    """The contenders for an `add`; which of our roads has the goal is told by `ours`."""

    def contenders(folder: Path) -> Mapping[str, Sample]:
        import torch

        from tenfold.capi import build

        torch.set_num_threads(1)
        direct, through = programs(folder)
        shape = (1,) if size == 1 else (size, size)
        library = ctypes.CDLL(str(build().library))
        for name in ("tn_ones", "tn_add"):
            getattr(library, name).restype = ctypes.c_void_p
        library.tn_add.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        library.tn_free.argtypes = [ctypes.c_void_p]
        made = library.tn_ones((ctypes.c_int64 * 2)(*shape), ctypes.c_int64(len(shape)))
        roads = {
            "typed": asked(through, str(size), "typed"),
            "by handle": asked(through, str(size), "handle"),
            "by name": asked(through, str(size), "name"),
        }
        return {
            OURS: roads.pop(ours),
            PEER: asked(direct, str(size)),
            **roads,
            "ctypes": statement("free(add(x, x))", add=library.tn_add, free=library.tn_free, x=made),
            "torch.add": statement("add(x, x)", add=torch.add, x=torch.ones(*shape)),
        }

    return contenders


def started(*command: str | Path) -> Sample:
    """Seconds that a program takes from start to end."""

    def sample() -> float:
        start = time.perf_counter()
        subprocess.run([str(c) for c in command], check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - start

    return sample


def starting(folder: Path) -> Mapping[str, Sample]:
    direct, through = programs(folder)
    return {OURS: started(through, "64", "start"), PEER: started(direct, "64", "start")}


BENCHMARKS = (
    Benchmark("capi-add", "C ABI: add of one element, typed", PEER, 1.05, adding(1, "typed")),
    Benchmark("capi-add-64", "C ABI: add of 64x64, typed", PEER, 1.05, adding(64, "typed")),
    Benchmark("capi-call", "C ABI: add of one element, by handle", PEER, 1.15, adding(1, "by handle")),
    Benchmark("capi-call-64", "C ABI: add of 64x64, by handle", PEER, 1.15, adding(64, "by handle")),
    Benchmark("capi-start", "C ABI: a small program from start to end", PEER, 1.0, starting, repeats=9),
)


def peak(*command: str | Path) -> int:
    """The most memory, in KiB, that a program held; in a child of its own, since only the largest child is
    told."""
    code = (
        "import resource, subprocess, sys; "
        "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    arguments = [sys.executable, "-c", code, *(str(c) for c in command)]
    return int(subprocess.run(arguments, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        direct, through = programs(Path(folder))
        theirs = sorted(peak(direct, "64", "start") for _ in range(5))[2]
        ours = sorted(peak(through, "64", "start") for _ in range(5))[2]
    ratio = f"{ours / theirs:.3f} x"
    print(f"peak memory of a small program: C {ours / 1024:.1f} MiB, C++ {theirs / 1024:.1f} MiB, {ratio}")


if __name__ == "__main__":
    main()
