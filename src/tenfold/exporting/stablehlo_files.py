"""StableHLO modules from files, run on XLA."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from tenfold.base import files
from tenfold.base.devices import Device
from tenfold.base.dim import Dim
from tenfold.base.errors import ArgumentError, FormatError, GradientError, ShapeError, located
from tenfold.engines import xla
from tenfold.exporting import untrusted
from tenfold.exporting.dimensions import SymbolicType, check, read_type
from tenfold.flat.ir import TensorType
from tenfold.flat.sizes import Open, OpenType
from tenfold.mlir import portable, stablehlo
from tenfold.tensor import Tensor
from tenfold.tensor.interchange import as_tensor
from tenfold.trace.context import context
from tenfold.trace.graph import Value


class LoadedModule:
    """A StableHLO module that is called like a function: tensors in, a tensor or a tuple of them out.

    `inputs` and `outputs` are the types of what its `main` takes and gives; sizes that are open are "?" in
    them, and `dimensions` what is demanded of them, if it was exported here. A module with open sizes is
    compiled once for each that it is called with. It has no gradient.
    """

    def __init__(self, module: stablehlo.Module, ours: bool = False):
        self.module = module
        self._compile = xla.compile if ours else untrusted.compiled
        self._refined = portable.refined if ours else untrusted.refined
        self.inputs, self.outputs = portable.signature(module)
        self.dimensions: dict[str, Dim] = {}
        self._named: list[SymbolicType] | None = None  # the types of the inputs by the names of their sizes
        told = portable.description(module)
        if told is not None:
            try:
                self._named = [read_type(text) for text in told[0]]
                self.dimensions = {name: Dim(name, **demands) for name, demands in told[1].items()}
                if [type.rank for type in self._named] != [type.rank for type in self.inputs]:
                    raise TypeError(f"it takes {self.inputs}, not {self._named}")
            except (TypeError, ArgumentError) as error:
                raise FormatError(
                    f"what the module tells of its sizes is damaged: {error}", help="export it again"
                ) from None
        self._executables: dict[Any, tuple[xla.Executable, list[Any]]] = {}

    @located
    def __call__(self, *arguments: Any) -> Any:
        tensors = [as_tensor(argument) for argument in arguments]
        require_no_gradient(tensors)
        types = [tensor.current().type for tensor in tensors]
        self._check(types)
        device = tensors[0].device.resolved if tensors else Device("cpu")
        key = (device, *[actual for actual, type in zip(types, self.inputs) if isinstance(type, OpenType)])
        compiled = self._executables.get(key)
        if compiled is None:
            module = self.module if len(key) == 1 else self._refined(self.module, types)
            outputs = portable.signature(module)[1]
            compiled = self._executables[key] = (self._compile(module, device), outputs)
        executable, outputs = compiled
        buffers = executable([tensor.to(device)._buffer() for tensor in tensors])
        results = tuple(
            [
                Tensor(Value(type, device, buffer=buffer))
                for type, buffer in zip(outputs, buffers, strict=True)
            ]
        )
        return results[0] if len(results) == 1 else results

    def _check(self, types: list[TensorType]) -> None:
        if len(types) != len(self.inputs):
            raise ArgumentError(f"the module takes {len(self.inputs)} tensors, not {len(types)}")
        for i, (actual, expected) in enumerate(zip(types, self.inputs, strict=True)):
            fits = actual is expected
            if isinstance(expected, OpenType):
                fits = actual.dtype is expected.dtype and actual.rank == expected.rank
                fits = fits and all(
                    isinstance(extent, Open) or extent == size
                    for extent, size in zip(expected.shape, actual.shape)
                )
            if not fits:
                raise ShapeError(f"argument {i} of the module is {expected}, not {actual}")
        if self._named is not None:
            check(self._named, types, self.dimensions)

    def text(self) -> str:
        """The module as text; of long constants only their types."""
        return self.module.text()

    def __repr__(self) -> str:
        takes, gives = (", ".join(map(str, types)) for types in (self.inputs, self.outputs))
        return f"<LoadedModule: ({takes}) -> ({gives})>"


def require_no_gradient(tensors: Sequence[Tensor]) -> None:
    """Refuse tensors whose gradients a file's results would lose."""
    for i, tensor in enumerate(tensors):
        if context.grad_enabled and tensor.requires_grad:
            raise GradientError(
                f"argument {i} requires gradients, and none flow through a program that was loaded",
                help="call it under tenfold.no_grad(), or give it x.detach()",
            )


@located
def load_stablehlo(source: str | os.PathLike[str] | bytes) -> LoadedModule:
    """A StableHLO module from a file, or from the bytes of one: a portable artifact, bytecode or text.

        run = tenfold.load_stablehlo("model.stablehlo")
        run(x)

    The module may only compute: one that calls other functions of the host than LAPACK's, talks to other
    devices or calls itself is refused, and hints that would give an argument's memory away are ignored. A
    file that this user did not write with Tenfold is read and compiled in a process of its own first.
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        return LoadedModule(*untrusted.read(bytes(source)))
    return LoadedModule(*untrusted.read(files.contents(source, "StableHLO file")))
