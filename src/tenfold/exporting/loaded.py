"""StableHLO modules from files, run on XLA."""

from __future__ import annotations

import os
from typing import Any

from tenfold.devices import Device
from tenfold.engines import xla
from tenfold.errors import ArgumentError, FormatError, ShapeError, located
from tenfold.flat.graph import TensorType
from tenfold.interchange import as_tensor
from tenfold.mlir import portable, stablehlo
from tenfold.tensor import Tensor
from tenfold.trace.graph import Value


class LoadedModule:
    """A StableHLO module that is called like a function: tensors in, a tensor or a tuple of them out.

    `inputs` and `outputs` are the types of what its `main` takes and gives.
    """

    def __init__(self, module: stablehlo.Module):
        self.module = module
        self.inputs, self.outputs = portable.signature(module)
        self._executables: dict[Device, xla.Executable] = {}

    @located
    def __call__(self, *arguments: Any) -> Any:
        tensors = [as_tensor(each) for each in arguments]
        self._check([each.current().type for each in tensors])
        device = tensors[0].device.resolved if tensors else Device("cpu")
        executable = self._executables.get(device)
        if executable is None:
            executable = self._executables[device] = xla.compile(self.module, device)
        buffers = executable([each.to(device)._buffer() for each in tensors])
        results = tuple(
            [
                Tensor(Value(type, device, buffer=buffer))
                for type, buffer in zip(self.outputs, buffers, strict=True)
            ]
        )
        return results[0] if len(results) == 1 else results

    def _check(self, given: list[TensorType]) -> None:
        if len(given) != len(self.inputs):
            raise ArgumentError(f"the module takes {len(self.inputs)} tensors, not {len(given)}")
        for i, (found, expected) in enumerate(zip(given, self.inputs, strict=True)):
            if found is not expected:
                raise ShapeError(f"argument {i} of the module is {expected}, not {found}")

    def text(self) -> str:
        """The module as text; of long constants only their types."""
        return self.module.text()

    def __repr__(self) -> str:
        takes, gives = (", ".join(map(str, each)) for each in (self.inputs, self.outputs))
        return f"<LoadedModule: ({takes}) -> ({gives})>"


@located
def load_stablehlo(source: str | os.PathLike[str] | bytes) -> LoadedModule:
    """A StableHLO module from a file, or from the bytes of one: a portable artifact, bytecode or text.

    run = tenfold.load_stablehlo("model.stablehlo")
    run(x)
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        return LoadedModule(portable.read(bytes(source)))
    try:
        with open(source, "rb") as file:
            data = file.read()
    except OSError as error:
        raise FormatError(
            f"{os.fspath(source)} cannot be read: {error.strerror}", help="give the path of a StableHLO file"
        ) from None
    return LoadedModule(portable.read(data))
