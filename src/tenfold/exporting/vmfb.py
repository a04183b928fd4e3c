"""Programs compiled by IREE to `.vmfb` files, run on tensors again."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from tenfold.base import files
from tenfold.base.dim import Dim
from tenfold.base.errors import ArgumentError, FormatError, located
from tenfold.exporting import untrusted, vmfb_process
from tenfold.exporting.dimensions import SymbolicType, check, read_type
from tenfold.exporting.stablehlo_files import require_no_gradient
from tenfold.flat.ir import TensorType
from tenfold.tensor.interchange import as_tensor, tensor


class BuiltModule:
    """A `.vmfb` that is called like a function: tensors in, a tensor or a tuple of them out.

    `inputs` and `outputs` are the types of what its `main` takes and gives, as `f32[n,3]`. Files that other
    programs made do not tell them: then they are None, and IREE alone checks what it is given.
    """

    def __init__(self, data: bytes, target: str = "cpu"):
        from tenfold.engines import iree

        iree.runtime()  # before the file is tried: where IREE is missing, that is what is wrong
        alone = not untrusted.loadable(data, target)
        self._executable = vmfb_process.Apart(data, target) if alone else iree.Executable(data, target)
        about = self._executable.about
        self.inputs: tuple[SymbolicType, ...] | None = None
        self.outputs: tuple[SymbolicType, ...] | None = None
        self.parameters: tuple[str, ...] = ()
        self.dimensions: dict[str, Dim] = {}
        if about:
            try:
                self.inputs, self.outputs = (
                    tuple(map(read_type, about[name])) for name in ("inputs", "outputs")
                )
                self.parameters = tuple(map(str, about["parameters"]))
                self.dimensions = {name: Dim(name, **rest) for name, rest in about["dimensions"].items()}
            except (KeyError, TypeError, AttributeError) as error:
                raise FormatError(
                    f"what the file tells of its function is damaged: {error}", help="build it again"
                ) from None

    @located
    def __call__(self, *arguments: Any) -> Any:
        tensors = [as_tensor(argument) for argument in arguments]
        require_no_gradient(tensors)
        if self.inputs is not None:
            self._check([tensor.current().type for tensor in tensors])
        results = self._executable([tensor.detach().cpu().numpy() for tensor in tensors])
        if self.outputs is not None:  # from the torch dialect unsigned integers come without their sign
            wanted = [output.dtype.numpy for output in self.outputs]
            if [each.itemsize for each in results] != [np.dtype(each).itemsize for each in wanted]:
                raise FormatError(
                    "the module gives other results than the file tells of them", help="build it again"
                )
            results = [result.view(dtype) for result, dtype in zip(results, wanted, strict=True)]
        given_back = tuple([tensor(result) for result in results])
        return given_back[0] if len(given_back) == 1 else given_back

    def _check(self, types: list[TensorType]) -> None:
        assert self.inputs is not None
        if len(types) != len(self.inputs):
            raise ArgumentError(
                f"the module takes {len(self.inputs)} tensors, not {len(types)}",
                help=f"after its arguments it takes {', '.join(self.parameters)}"
                if self.parameters
                else None,
            )
        check(self.inputs, types, self.dimensions)

    def __repr__(self) -> str:
        if self.inputs is None or self.outputs is None:
            return "<BuiltModule of unknown types>"
        takes, gives = (", ".join(map(str, types)) for types in (self.inputs, self.outputs))
        return f"<BuiltModule: ({takes}) -> ({gives})>"


@located
def load_vmfb(source: str | os.PathLike[str] | bytes, target: str = "cpu") -> BuiltModule:
    """A program that IREE compiled, from a `.vmfb` file or from the bytes of one.

    run = tenfold.load_vmfb("model.vmfb")
    run(x)
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        return BuiltModule(bytes(source), target)
    return BuiltModule(files.contents(source, ".vmfb file"), target)
