"""TorchScript files: modules that libtorch runs, through libtenfold, on copies of the arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

import tenfold
from tenfold.base.errors import TenfoldError
from tenfold.purple.errors import PurpleError
from tenfold.purple.prims.registry import primitive, want_string, wrong_type
from tenfold.tensor import Tensor


class ScriptModule:
    """A procedure of tensors. Gradients do not flow through it when a program is interpreted."""

    purple_name = "module"

    def __init__(self, library: Any, handle: int):
        self.library, self.handle = library, handle

    def __call__(self, *inputs: Any) -> Tensor:
        from tenfold.capi.binding import handles
        from tenfold.engines.libtorch_calls import Calls

        for each in inputs:
            if not isinstance(each, Tensor):
                wrong_type("module", "tensor", each)
        arrays = [np.ascontiguousarray(each.detach().numpy()).reshape(each.shape) for each in inputs]
        calls = Calls(self.library, tenfold.device("cpu"))
        try:
            given = handles([calls.wrap(array) for array in arrays])
            result = calls.own(self.library.tn_module_forward(self.handle, *given))
            return tenfold.from_numpy(calls.fetch(result))
        finally:
            calls.close()

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
