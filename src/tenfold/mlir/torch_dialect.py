"""Modules of the torch dialect, through torch-mlir's bindings (loaded on first use), and its own ways down
from there: to StableHLO, linalg and TOSA. How a program is written in the dialect: `torch_emitter.py`."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import re
import subprocess
import threading
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from tenfold.base.errors import (
    ArgumentError,
    EngineError,
    FormatError,
    MissingEngine,
    UnsupportedError,
    did_you_mean,
)
from tenfold.base.forking import forkable
from tenfold.base.package import install_command
from tenfold.mlir.interrupts import once, pass_on
from tenfold.mlir.torch_emitter import Emitter
from tenfold.mlir.torch_sizes import Symbols
from tenfold.ops.callee import OpCall
from tenfold.trace.collect import Trace
from tenfold.trace.graph import Node, Value

TITLE = "==== Torch IR ===="
EXTRA = "torch-dialect"  # of this package, which brings torch-mlir
SINCE = 20261001  # torch-mlir's versions are dates
# Twice, because the ops that its last step makes of lists are ones that its first takes apart.
PREPARE = ",".join(["torchdynamo-export-to-torch-backend-pipeline{extra-library=}"] * 2)
# torch-mlir's own ways down, by the dialect where they end.
PIPELINES = {
    "stablehlo": f"builtin.module({PREPARE},torch-backend-to-stablehlo-backend-pipeline)",
    "linalg": f"builtin.module({PREPARE},torch-backend-to-linalg-on-tensors-backend-pipeline)",
    "tosa": f"builtin.module({PREPARE},torch-backend-to-tosa-backend-pipeline)",
}
# The name of an op whose condition alone ends it, as bytecode has it.
LOOP = b"prim.Loop"
# What stands after a module whose resources were all too long to print.
NOTHING_KEPT = "\n{-#\n\n#-}\n"
_lock = forkable(threading.RLock())


@once
def bindings() -> SimpleNamespace:
    """torch-mlir's MLIR bindings. Only the extension modules are loaded, and of those few."""
    from importlib import metadata

    try:
        release = metadata.version("torch-mlir")
        from torch_mlir import ir
        from torch_mlir._mlir_libs import _torchMlir
    except metadata.PackageNotFoundError:
        raise MissingEngine(
            "the torch dialect needs torch-mlir, which is not installed", help=install_command(EXTRA)
        ) from None
    except ImportError as error:
        raise MissingEngine(
            f"the torch dialect needs torch-mlir, which cannot be imported ({error})",
            help=install_command(EXTRA),
        ) from None
    number = re.match(r"\d+", release)
    if number is None or int(number.group()) < SINCE:
        raise MissingEngine(
            f"torch-mlir {release} is not one that this Tenfold knows ({SINCE} and later)",
            help=f"{install_command(EXTRA)} --upgrade",
        )
    return SimpleNamespace(ir=ir, register=_torchMlir.register_dialect, library=_torchMlir.__file__)


def new_context() -> Any:
    """A context with the torch dialect. Each module has its own, since the data of its resources stays as
    long as the context does."""
    b = bindings()
    context = b.ir.Context()
    b.register(context)
    return context


# What an emitted function takes, and which of the program's outputs it gives.
Interface = tuple[list[Value], list[tuple[int, int]]]


class TorchModule:
    """A module of the torch dialect; `functions` tells of those that were emitted from programs."""

    dialect = "torch"

    def __init__(
        self,
        module: Any,
        context: Any,
        functions: dict[str, Interface] | None = None,
        unfinished: bool = False,
    ):
        self.module = module
        self.context = context
        self.functions = functions or {}
        self.unfinished = unfinished  # still being built: it is printed as it is, not verified

    def text(self, locations: bool = False, whole: bool = False) -> str:
        """The module as text; of long literals only their types, unless `whole`."""
        limits = {} if whole else {"large_elements_limit": 32, "large_resource_limit": 64}
        with _lock:
            text = self.module.operation.get_asm(
                enable_debug_info=locations, assume_verified=self.unfinished, **limits
            )
        return text.replace(NOTHING_KEPT, "")

    def bytecode(self) -> bytes:
        with _lock:
            stream = io.BytesIO()
            self.module.operation.write_bytecode(stream)
            return stream.getvalue()

    def lowered(self, dialect: str) -> Lowered:
        """The module in "stablehlo", "linalg" or "tosa", by torch-mlir's own pipeline."""
        if dialect not in PIPELINES:
            raise ArgumentError(
                f"torch-mlir does not lower to {dialect!r}",
                help=did_you_mean(dialect, PIPELINES) or f"the dialects are {', '.join(PIPELINES)}",
            )
        bytecode = self.bytecode()
        if LOOP in bytecode:
            raise UnsupportedError(
                f"torch-mlir cannot lower this module to {dialect}: it would unroll its loop without end",
                help="export StableHLO, or give the torch dialect to IREE, which both have loops",
            )
        flags = [f"--pass-pipeline={PIPELINES[dialect]}", "--emit-bytecode"]
        done = subprocess.run([compiler(), *flags], input=bytecode, capture_output=True)
        if done.returncode:
            crashed = done.returncode < 0
            why = "its compiler crashed" if crashed else reason(done.stderr.decode(errors="replace"))
            raise UnsupportedError(
                f"torch-mlir cannot lower this module to {dialect}: {why}",
                help="export StableHLO, for which Tenfold has lowerings of its own",
            )
        return Lowered(done.stdout, dialect)

    def __str__(self) -> str:
        return self.text()


class Lowered:
    """What torch-mlir's pipelines made of a module. It is kept as bytecode: torch-mlir's Python bindings do
    not know all dialects that its compiler writes."""

    def __init__(self, bytecode: bytes, dialect: str):
        self._bytecode = bytecode
        self.dialect = dialect

    def text(self, locations: bool = False, whole: bool = False) -> str:
        flags = ["--mlir-print-debuginfo"] if locations else []
        if not whole:
            flags += ["--mlir-elide-elementsattrs-if-larger=32", "--mlir-elide-resource-strings-if-larger=64"]
        done = subprocess.run([compiler(), *flags], input=self._bytecode, capture_output=True)
        if done.returncode:
            raise EngineError(f"torch-mlir cannot print the module: {reason(done.stderr.decode())}")
        return done.stdout.decode().replace(NOTHING_KEPT, "")

    def bytecode(self) -> bytes:
        return self._bytecode

    def __str__(self) -> str:
        return self.text()


def compiler() -> str:
    """The path of torch-mlir-opt. Modules are lowered in a process of its own, because some passes crash."""
    program = os.path.join(os.path.dirname(bindings().library), "torch-mlir-opt")
    if not os.path.isfile(program):
        raise MissingEngine(
            "this torch-mlir comes without torch-mlir-opt, which lowers modules", help=install_command(EXTRA)
        )
    return program


def defines(qualified: str) -> bool:
    """Whether the dialect has an op of its own for an ATen overload."""
    with _lock:
        return _known().is_registered_operation(f"torch.aten.{qualified}")


def aten_ops() -> list[str]:
    """The qualified names of all ATen overloads that the dialect defines."""
    bindings()
    from torch_mlir.dialects import torch as generated

    names = [getattr(member, "OPERATION_NAME", "") for member in vars(generated).values()]
    return sorted({name.removeprefix("torch.aten.") for name in names if name.startswith("torch.aten.")})


@functools.cache
def operations() -> dict[str, type]:
    """The generated class of each op that the dialect defines, by the op's name, `torch.aten.add.int`."""
    ir = bindings().ir
    from torch_mlir.dialects import torch as generated

    classes = [member for member in vars(generated).values() if isinstance(member, type)]
    return {
        operation.OPERATION_NAME: operation
        for operation in classes
        if issubclass(operation, ir.OpView) and hasattr(operation, "OPERATION_NAME")
    }


@contextlib.contextmanager
def building(context: Any, block: Any = None) -> Iterator[Any]:
    """A block in which ops are made by hand, at the end of an MLIR block if one is given."""
    ir = bindings().ir
    with _lock, context, ir.Location.unknown():
        point = ir.InsertionPoint(block) if block is not None else contextlib.nullcontext()
        with point:
            yield ir


@functools.cache
def _known() -> Any:
    return new_context()


def read(text: str | bytes) -> TorchModule:
    """A module from its text or bytecode, verified."""
    b = bindings()
    with _lock:
        context = new_context()
        with context, b.ir.Location.unknown():
            try:
                module = b.ir.Module.parse(text)
            except Exception as error:
                pass_on(error)
                raise FormatError(f"torch-mlir cannot read this module: {reason(str(error))}") from None
    return TorchModule(module, context)


def emit(
    program: Trace,
    *,
    name: str = "main",
    literals: dict[Value, np.ndarray] | None = None,
    value_tensors: bool = True,
    kept: Sequence[Value] = (),
    symbols: Symbols | None = None,
    numbers: int = 0,
    annotated: bool = True,
) -> TorchModule:
    """A module with one function: the program.

    Its leaves are the function's arguments, those in `literals` aside, whose data goes into the module, and
    those that its outputs do not need, unless they are to be `kept`. Tensors are values, `!torch.vtensor`, or
    with `value_tensors=False` `!torch.tensor`. A generator's state is neither taken nor given: the dialect's
    random ops have none. Of a program with open sizes `symbols` are those of its inputs, and then so many
    `numbers` that are sizes, which its last outputs tell; the function does not give these. What is demanded
    of the symbols is part of the module if it is `annotated`, which torch-mlir's own pipelines do not take.
    """
    return emit_all(
        {name: program},
        literals=literals,
        value_tensors=value_tensors,
        kept=kept,
        symbols=symbols,
        numbers=numbers,
        annotated=annotated,
    )


def emit_all(
    programs: dict[str, Trace],
    *,
    literals: dict[Value, np.ndarray] | None = None,
    value_tensors: bool = True,
    kept: Sequence[Value] = (),
    symbols: Symbols | None = None,
    numbers: int = 0,
    annotated: bool = True,
) -> TorchModule:
    """A module with one function for each program, by their names."""
    b = bindings()
    functions = {}
    with _lock:
        context = new_context()
        with context, b.ir.Location.unknown():
            module = b.ir.Module.create()
            for name, program in programs.items():
                emitter = Emitter(b.ir, context, value_tensors, symbols, annotated)
                functions[name] = emitter.function(module, name, program, literals or {}, kept, numbers)
            require_verified(module, [node for program in programs.values() for node in program.nodes])
    return TorchModule(module, context, functions)


def require_verified(module: Any, nodes: Sequence[Node]) -> None:
    """Refuse a module, emitted from these nodes, that does not verify."""
    try:
        module.operation.verify()
    except Exception as error:
        pass_on(error)
        raise _refused(str(error), nodes) from None


def _refused(told: str, nodes: Sequence[Node]) -> UnsupportedError:
    """The error for a module that does not verify: the dialect is stricter than ATen in places."""
    error = UnsupportedError(
        f"torch-mlir refuses this op: {reason(told)}", help="emit StableHLO, from Tenfold's own lowerings"
    )
    for node in nodes:
        if isinstance(node.callee, OpCall) and f"'torch.aten.{node.callee.row.qualified}'" in told:
            return error.located(node.callee.name, node.source)
    return error


def reason(told: str) -> str:
    """The first line of MLIR's diagnostics that says something: headings end in a colon. The op that follows
    is left out, but for an ATen op that was passed through under its name."""
    passed = re.search(r'"torch\.operator".*?name = "torch\.(\w+\.[\w.]+)"', told)
    if passed is not None:
        return f"it has no lowering of {passed.group(1)}"
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    said = [line for line in lines if not line.endswith(":")] or lines or ["it does not say why"]
    return re.sub(r"^.*?error: (\S+:\d+:\d+: )?", "", said[0]).partition(": %")[0]
