"""TorchScript files: modules that libtorch runs, through libtenfold."""

from __future__ import annotations

from typing import Any

from tenfold.base.errors import TenfoldError
from tenfold.purple import core
from tenfold.purple.errors import PurpleError
from tenfold.purple.prims.foreign_tensors import Crossing
from tenfold.purple.prims.registry import primitive, want_string
from tenfold.tensor import Tensor


class ScriptModule:
    """A procedure of tensors. What it holds itself is not trained when a program is interpreted."""

    purple_name = "module"

    def __init__(self, library: Any, handle: int):
        self.library, self.handle = library, handle

    def __call__(self, *inputs: Any) -> Tensor:
        from tenfold.capi.binding import handles

        crossing = Crossing(self.purple_name, core.Passed("tensor", True), inputs)
        passed = [crossing.passed(core.Passed("tensor", False), each) for each in inputs]
        forward = self.library.raw("tn_module_forward")
        return crossing.call(lambda *given: forward(self.handle, *handles(given)), passed)

    def __del__(self) -> None:
        self.library.tn_module_free(self.handle)


@primitive("jit-load")
def jit_load(path: Any) -> ScriptModule:
    from tenfold.engines import libtorch

    want_string("jit-load", path)
    library = libtorch.library()
    try:
        return ScriptModule(library, library.tn_module_load(path.encode("utf-8"), None))
    except TenfoldError as error:
        raise PurpleError(f"jit-load: {path}: {error.message.partition(chr(10))[0]}", "file") from None
