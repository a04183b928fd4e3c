"""Compiled Purple against its peers: small classics against Scheme compilers, training against PyTorch eager
and a C++
libtorch program, and one tensor op against the same call in C. A peer that is not installed is left out."""

from __future__ import annotations

import functools
import itertools
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.harness import OURS, ROOT, Benchmark, Sample
from benchmarks.purple_classics import CLASSICS, SCHEME
from benchmarks.purple_long import in_files, pieces
from tenfold.capi.build import build as build_libtenfold
from tenfold.capi.locate import find_libtorch
from tenfold.purple.build import RUNTIME, STRICT, build_program, find_compiler
from tenfold.purple.emit_c import compile_program
from tenfold.purple.interpret import expand_program


def native(text: str, folder: Path, name: str = "ours") -> str:
    program = str(folder / name)
    build_program(expand_program(text, f"{name}.purple"), program)
    return program


def process(*command: str, folder: Path | None = None) -> Sample:
    """Seconds of processor time that a program takes from its start to its end: what else the machine does
    counts for little."""

    def spent() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    def sample() -> float:
        start = spent()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder)
        return spent() - start

    return sample


def printed(*command: str) -> Sample:
    """The seconds that a program prints."""
    return lambda: float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def classic(name: str) -> Callable[[Path], Mapping[str, Sample]]:
    def contenders(folder: Path) -> Mapping[str, Sample]:
        text = CLASSICS[name]
        found = {OURS: process(native(text, folder))}
        source = folder / "program.scm"
        source.write_text(SCHEME + text, encoding="utf-8")
        if shutil.which("csc"):
            command = [
                "csc",
                "-O2",
                str(source),
                "-o",
                str(folder / "chicken"),
            ]  # at -O3 its sieve counts wrong
            subprocess.run(command, check=True, capture_output=True)
            found["Chicken"] = process(str(folder / "chicken"))
        if shutil.which("guile"):
            compiled = str(folder / "program.go")
            compile_it = f'(compile-file "{source}" #:output-file "{compiled}")'
            subprocess.run(["guile", "--no-auto-compile", "-c", compile_it], check=True, capture_output=True)
            found["Guile"] = process("guile", "--no-auto-compile", "-c", f'(load-compiled "{compiled}")')
        if shutil.which("chezscheme"):
            compiled = str(folder / "program.so")
            compile_it = f'(optimize-level 2) (compile-file "{source}" "{compiled}")'
            subprocess.run(["chezscheme", "-q"], input=compile_it, check=True, capture_output=True, text=True)
            found["Chez"] = process("chezscheme", "--program", compiled)
        return found

    return contenders


# Training: layers, activation, batch, steps to warm up, steps to time.
MODELS = {"xor": ((2, 8, 2), "tanh", 4, 100, 1000), "mlp": ((784, 512, 512, 10), "relu", 128, 3, 20)}


def training(name: str) -> Callable[[Path], Mapping[str, Sample]]:
    sizes, activation, batch, warm, steps = MODELS[name]

    def contenders(folder: Path) -> Mapping[str, Sample]:
        layers = f" ({activation}) ".join(f"(linear {a} {b})" for a, b in itertools.pairwise(sizes))
        text = f"""
(define model (sequential {layers}))
(define x (tensor-randn {batch} {sizes[0]}))
(define y (tensor-randint 0 {sizes[-1]} (list {batch})))
(define opt (adam model :lr 0.001))
(define (step)
  (zero-grad opt)
  (let ((loss (cross-entropy (forward model x) y))) (backward loss) (optimizer-step opt)))
(dotimes (i {warm}) (step))
(define start (clock))
(dotimes (i {steps}) (step))
(print (/ (- (clock) start) {steps}))"""
        script = folder / "train.py"
        script.write_text(
            PYTORCH.format(
                sizes=sizes,
                name=activation.capitalize().replace("Relu", "ReLU"),
                batch=batch,
                warm=warm,
                steps=steps,
            )
        )
        return {
            OURS: printed(native(text, folder)),
            "PyTorch": printed(sys.executable, str(script)),
            "C++": printed(
                cplusplus(
                    folder,
                    CPLUSPLUS
                    % (activation, warm, steps, batch, sizes[0], sizes[-1], batch, layer_lines(sizes)),
                )
            ),
        }

    return contenders


# Functional training: sizes of a dense network, batch, steps to warm up, steps to time.
FUNCTIONAL = {"small": ((4, 8, 3), 120, 200, 5000), "mlp": ((784, 128, 10), 64, 50, 1000)}


def functional(name: str) -> Callable[[Path], Mapping[str, Sample]]:
    """The processor time of a step of `gradient-descent`, interpreted and compiled."""
    (inputs, hidden, outputs), batch, warm, steps = FUNCTIONAL[name]

    def contenders(folder: Path) -> Mapping[str, Sample]:
        text = f"""
(define (dense t) (lambda (theta) (+ (tensor-matmul t (first theta)) (second theta))))
(define (network t) (lambda (theta) ((dense (tensor-relu ((dense t) theta))) (cddr theta))))
(define (loss xs labels) (lambda (theta) (cross-entropy ((network xs) theta) labels)))
(define (weights inputs outputs) (* (tensor-randn inputs outputs) (sqrt (/ 2.0 inputs))))
(define (layer inputs outputs) (list (weights inputs outputs) (tensor-zeros (list outputs))))
(define start (append (layer {inputs} {hidden}) (layer {hidden} {outputs})))
(define xs (tensor-randn {batch} {inputs}))
(define ys (tensor-randint 0 {outputs} (list {batch})))
(gradient-descent (loss xs ys) start :rate 0.2 :steps (string->number (car (command-line))))"""
        script = folder / "functional.purple"
        script.write_text(text, encoding="utf-8")
        interpreted = (sys.executable, "-m", "tenfold.purple", str(script))
        return {
            OURS: each_step(warm, steps, *interpreted),
            "Purple, compiled": each_step(warm, steps, native(text, folder)),
        }

    return contenders


def each_step(warm: int, steps: int, *command: str) -> Sample:
    """The processor time of one of `steps`: what they add to a program that is told how many to take."""
    short, long = process(*command, str(warm)), process(*command, str(warm + steps))
    return lambda: (long() - short()) / steps


PYTORCH = """
import time, torch
sizes = {sizes}
layers = [m for a, b in zip(sizes, sizes[1:]) for m in (torch.nn.Linear(a, b), torch.nn.{name}())][:-1]
model = torch.nn.Sequential(*layers)
x, y = torch.randn({batch}, sizes[0]), torch.randint(0, sizes[-1], ({batch},))
optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
def step():
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
for _ in range({warm}):
    step()
start = time.perf_counter()
for _ in range({steps}):
    step()
print((time.perf_counter() - start) / {steps})
"""
CPLUSPLUS = """
#include <torch/torch.h>
#include <chrono>
#include <cstdio>
#define ACTIVATION torch::%s
constexpr int WARM = %d, STEPS = %d;
int main() {
    auto x = torch::randn({%d, %d}), y = torch::randint(0, %d, {%d}, torch::kLong);
    std::vector<torch::nn::Linear> layers{%s};
    std::vector<torch::Tensor> parameters;
    for (auto &layer : layers)
        for (auto &p : layer->parameters()) parameters.push_back(p);
    torch::optim::Adam optimizer(parameters, 0.001);
    auto step = [&] {
        optimizer.zero_grad();
        auto h = x;
        for (size_t i = 0; i < layers.size(); i++) {
            h = layers[i](h);
            if (i + 1 < layers.size()) h = ACTIVATION(h);
        }
        torch::nn::functional::cross_entropy(h, y).backward();
        optimizer.step();
    };
    for (int i = 0; i < WARM; i++) step();
    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < STEPS; i++) step();
    std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    std::printf("%%.9f\\n", taken.count() / STEPS);
}
"""


def layer_lines(sizes: tuple[int, ...]) -> str:
    return ", ".join(f"torch::nn::Linear({a}, {b})" for a, b in itertools.pairwise(sizes))


def cplusplus(folder: Path, text: str) -> str:
    libtorch = find_libtorch()
    source, program = folder / "train.cpp", str(folder / "cplusplus")
    source.write_text(text, encoding="utf-8")
    includes = [f"-I{path}" for path in libtorch.include]
    links = [f"-L{libtorch.lib}", "-ltorch", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{libtorch.lib}"]
    subprocess.run(["g++", "-std=c++20", "-O2", *includes, str(source), "-o", program, *links], check=True)
    return program


def one_tensor_op(folder: Path) -> Mapping[str, Sample]:
    """`(+ x y)` of one element, its result freed, against the same two calls in C."""
    programs = op_programs(folder)
    return {name: printed(program, "200000") for name, program in programs.items()}


def op_instructions(folder: Path) -> Mapping[str, Sample]:
    """The instructions of the same, as callgrind counts them: what a thousand more of them add."""
    programs = op_programs(folder)

    def counted(program: str, count: int) -> int:
        report = folder / "callgrind.out"
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={report}", program, str(count)]
        one_thread = {**os.environ, "OMP_NUM_THREADS": "1"}
        subprocess.run(command, check=True, capture_output=True, env=one_thread)
        found = re.search(r"^(?:totals|summary): (\d+)", report.read_text(), re.MULTILINE)
        assert found
        return int(found[1])

    @functools.cache  # the count is the same each time
    def each(program: str) -> float:
        return (counted(program, 2000) - counted(program, 1000)) / 1000

    return {name: functools.partial(each, program) for name, program in programs.items()}


def op_programs(folder: Path) -> Mapping[str, str]:
    """Programs that make as many calls as their argument says, and print the seconds of each."""
    text = """
(define (run x y n) (when (> n 0) (+ x y) (run x y (- n 1))))
(define x (tensor '(1.0)))
(define count (string->number (car (command-line))))
(run x x 1000)
(define start (clock))
(run x x count)
(print (/ (- (clock) start) count))"""
    source, direct = folder / "direct.c", str(folder / "direct")
    source.write_text(DIRECT, encoding="utf-8")
    built = build_libtenfold()
    flags = ["-O2", *built.compile_flags, str(source), "-o", direct, *built.link_flags]
    subprocess.run([find_compiler(), *flags], check=True)
    return {OURS: native(text, folder), "C": direct}


DIRECT = """
#include <stdio.h>
#include <stdlib.h>
#include <tenfold.h>
#include <time.h>
int main(int argc, char **argv) {
    long count = argc > 1 ? atol(argv[1]) : 1;
    float one = 1;
    int64_t size = 1;
    tn_tensor *x = tn_tensor_from_data(&one, TN_FLOAT32, &size, 1, NULL, 0);
    for (int i = 0; i < 1000; i++) tn_free(tn_add(x, x));
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (long i = 0; i < count; i++) tn_free(tn_add(x, x));
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%.12f\\n", ((end.tv_sec - start.tv_sec) + 1e-9 * (end.tv_nsec - start.tv_nsec)) / count);
    tn_free(x);
    return 0;
}
"""


def compiling(folder: Path) -> Mapping[str, Sample]:
    """All examples from text to C, against the C compiler on what comes out."""
    texts = {
        str(path): path.read_text(encoding="utf-8") for path in (ROOT / "examples/purple").glob("*.purple")
    }
    flags = [*STRICT, "-O2", *build_libtenfold().compile_flags, f"-I{RUNTIME}"]
    sources = []
    for path, text in texts.items():
        sources.append(folder / f"{Path(path).stem}.c")
        sources[-1].write_text(compile_program(expand_program(text, path)), encoding="utf-8")

    def ours() -> float:
        start = time.process_time()
        for path, text in texts.items():
            compile_program(expand_program(text, path))
        return time.process_time() - start

    command = [find_compiler(), *flags, "-c", *map(str, sources)]
    return {OURS: ours, "C compiler": process(*command, folder=folder)}


def building(folder: Path) -> Mapping[str, Sample]:
    """A file of 2,100 lines, which is another one each time, to a native program."""
    source, first = folder / "long.purple", itertools.count(step=100)

    def fresh() -> float:
        source.write_text("".join(pieces(2100, next(first))), encoding="utf-8")
        return native_build(source)()

    return {OURS: fresh, "goal": lambda: 5.0}


def rebuilding(folder: Path) -> Mapping[str, Sample]:
    """The same lines in fifty files, of which one has changed."""
    main, changed = in_files(folder, 2100, 50)
    text, number = changed.read_text(encoding="utf-8"), itertools.count(1000)
    native_build(main)()

    def again() -> float:
        changed.write_text(text.replace("(+ x 25)", f"(+ x {next(number)})"), encoding="utf-8")
        return native_build(main)()

    return {OURS: again, "goal": lambda: 1.0}


def native_build(source: Path) -> Sample:
    return process(sys.executable, "-m", "tenfold.purple", "build", str(source), "-o", f"{source}.out")


def rival() -> str | None:
    """The Scheme compiler to beat: Chicken where it is installed, else Guile; without both, no Lisps are
    timed."""
    return "Chicken" if shutil.which("csc") else "Guile" if shutil.which("guile") else None


BENCHMARKS = (
    *(
        Benchmark(
            f"purple-{name}", f"Purple, {name}", against, 1, classic(name), repeats=5, group="purple-lisps"
        )
        for name in CLASSICS
        if (against := rival())
    ),
    Benchmark(
        "purple-xor",
        "Purple, XOR training step",
        "PyTorch",
        0.4,
        training("xor"),
        repeats=5,
        also=(("C++", 1.1),),
    ),
    Benchmark(
        "purple-mlp",
        "Purple, MLP training step",
        "PyTorch",
        1,
        training("mlp"),
        repeats=5,
        also=(("C++", 1.1),),
    ),
    *(
        Benchmark(
            f"purple-functional-{name}",
            f"Purple interpreted, functional training step ({name})",
            "Purple, compiled",
            2,
            functional(name),
            repeats=3,
            group="purple-functional",
        )
        for name in FUNCTIONAL
    ),
    Benchmark("purple-compile", "Purple, its examples to C", "C compiler", 1, compiling, repeats=5),
    Benchmark("purple-build", "Purple, 2,100 lines built", "goal", 1, building, repeats=5),
    Benchmark(
        "purple-rebuild",
        "Purple, 2,100 lines in 50 files, one changed, built again",
        "goal",
        1,
        rebuilding,
        repeats=5,
    ),
    Benchmark("purple-op", "Purple, one tensor op", "C", 1.1, one_tensor_op, repeats=5),
    *(
        [
            Benchmark(
                "purple-op-instructions",
                "Purple, instructions of one tensor op",
                "C",
                1.1,
                op_instructions,
                repeats=1,
                unit="instructions",
            )
        ]
        if shutil.which("valgrind")
        else []
    ),
)
