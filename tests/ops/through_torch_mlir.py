"""Rows by another road: emitted in the torch dialect, lowered to StableHLO by torch-mlir, and run on XLA.

Many calls share a process of torch-mlir's compiler and a compilation of XLA's. Where one of them brings the
process or the compilation down, halves are tried until it stands alone.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from tenfold.base import dtypes
from tenfold.base.devices import Device
from tenfold.base.errors import TenfoldError, UnsupportedError
from tenfold.engines import xla
from tenfold.mlir import portable, stablehlo, torch_dialect
from tenfold.ops.table import Row
from tenfold.runtime import evaluate
from tenfold.tensor import Tensor
from tenfold.trace.collect import Trace, collect
from tenfold.trace.graph import Value
from tests.ops import generate, golden
from tests.ops.generate import Edges
from tests.ops.golden import Call

SEPARATOR = "// -----"
PATIENCE = 10  # seconds
TOGETHER = 4  # modules that it is given at a time
Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


class Recorded(NamedTuple):
    """A call of a row that was recorded: its results, and the program that computes them."""

    row: Row
    call: Call
    results: list[Tensor]
    program: Trace


def recorded(row: Row, count: int) -> list[Recorded]:
    """The first calls of a row that record something; of other dtypes where those for floats do not."""
    found: list[Recorded] = []
    for dtype in (dtypes.float32, dtypes.int64, dtypes.complex64, dtypes.bool_):
        for number, sample in generate.for_dtype(row, dtype):
            if len(found) == count:
                return found
            if any(isinstance(each, Edges) for each in sample.args):
                continue  # at the edges it is arithmetic that is tested
            call = Call(row, number, sample, dtype)
            try:
                results = [each for each in golden.flattened(call.ours()) if isinstance(each, Tensor)]
            except (TenfoldError, RuntimeError, ValueError, IndexError, TypeError):
                continue  # what is refused is the business of the comparison with PyTorch
            values = [each.current() for each in results]
            if values and all(each.node is not None for each in values):
                found.append(Recorded(row, call, results, collect(values)[0]))
    return found


def by_halves(
    items: Sequence[Item], attempt: Callable[[Sequence[Item]], list[Outcome] | None]
) -> list[Outcome | None]:
    """What `attempt` makes of each; of an item that makes it give up, None."""
    if not items:
        return []
    done = attempt(items)
    if done is not None:
        return list(done)
    if len(items) == 1:
        return [None]
    middle = len(items) // 2
    return by_halves(items[:middle], attempt) + by_halves(items[middle:], attempt)


def lowered(texts: Sequence[str]) -> list[str | None]:
    """Modules of the torch dialect as StableHLO; None for those that torch-mlir cannot lower."""
    pipeline = f"--pass-pipeline={torch_dialect.PIPELINES['stablehlo']}"
    command = [torch_dialect.compiler(), "--split-input-file", pipeline]

    def attempt(some: Sequence[str]) -> list[str | None] | None:
        whole = f"\n{SEPARATOR}\n".join(some)
        try:
            done = subprocess.run(command, input=whole, capture_output=True, text=True, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            return None
        if done.returncode < 0:
            return None
        parts = done.stdout.split(SEPARATOR)
        assert len(parts) == len(some), done.stderr[:2000]
        return [part if part.strip() else None for part in parts]

    chunks = [texts[i : i + TOGETHER] for i in range(0, len(texts), TOGETHER)]
    return [each for chunk in chunks for each in by_halves(chunk, attempt)]


def run(modules: Sequence[tuple[str, list[np.ndarray]]]) -> list[list[np.ndarray] | None]:
    """The results of StableHLO functions, each a module's `f0`, `f1`, … in order, on arrays; None where XLA
    refuses."""

    def attempt(some: Sequence[tuple[str, list[np.ndarray]]]) -> list[list[np.ndarray] | None] | None:
        device = Device("cpu")
        try:
            joined, counts = join([text for text, _ in some])
            executable = xla.compile(stablehlo.Module(joined, portable._signature(joined)[1]), device)
            results = executable([xla.put(array, device) for _, arrays in some for array in arrays])
        except (TenfoldError, stablehlo.bindings().ir.MLIRError):
            return None
        remaining = iter([np.asarray(xla.fetch(each)) for each in results])
        return [[next(remaining) for _ in range(count)] for count in counts]

    return by_halves(modules, attempt)


def join(texts: Sequence[str]) -> tuple[Any, list[int]]:
    """One module with all functions of the texts, and a `main` that calls them in order; how many results
    each has."""
    b = stablehlo.bindings()
    ir = b.ir
    with b.context, b.unknown:
        whole = ir.Module.create()
        called = []
        for text in texts:
            part = ir.Module.parse(text)
            for op in part.body.operations:
                with ir.InsertionPoint(whole.body):
                    copy = op.operation.clone()
                copy.attributes["sym_visibility"] = ir.StringAttr.get("private")
                called.append((copy.attributes["sym_name"].value, copy.attributes["function_type"].value))
        takes = [each for _, type in called for each in type.inputs]
        gives = [each for _, type in called for each in type.results]
        attributes = {
            "sym_name": ir.StringAttr.get("main"),
            "function_type": ir.TypeAttr.get(ir.FunctionType.get(takes, gives)),
        }
        with ir.InsertionPoint(whole.body):
            main = ir.Operation.create("func.func", attributes=attributes, regions=1)
        block = main.regions[0].blocks.append(*takes)
        arguments, results = iter(block.arguments), []
        with ir.InsertionPoint(block):
            for name, type in called:
                operands = [next(arguments) for _ in type.inputs]
                callee = {"callee": ir.FlatSymbolRefAttr.get(name)}
                results += ir.Operation.create("func.call", list(type.results), operands, callee).results
            ir.Operation.create("func.return", operands=results)
        whole.operation.verify()
    return whole, [len(list(type.results)) for _, type in called]


def emitted(calls: Sequence[Recorded]) -> list[tuple[int, str, list[Value]]]:
    """For each call that the dialect accepts: its place, the text of a module whose function bears a name of
    its own, and what that takes."""
    texts = []
    for i, each in enumerate(calls):
        try:
            module = torch_dialect.emit(each.program, name=f"f{i}")
        except UnsupportedError:
            continue  # as of a dimension of a tensor without any, which PyTorch allows
        texts.append((i, module.text(whole=True), module.functions[f"f{i}"][0]))
    return texts


def computed(calls: Sequence[Recorded]) -> list[list[np.ndarray] | None]:
    """The results of calls through torch-mlir; None for those that do not get through."""
    modules = emitted(calls)
    down = lowered([text for _, text, _ in modules])
    through = [(i, text, leaves) for (i, _, leaves), text in zip(modules, down) if text is not None]
    ran = run([(text, [evaluate.computed_array(leaf) for leaf in leaves]) for _, text, leaves in through])
    results: list[list[np.ndarray] | None] = [None] * len(calls)
    for (i, _, _), found in zip(through, ran):
        results[i] = found
    return results
