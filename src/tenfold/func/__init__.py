"""`tenfold.func`: composable transforms of functions, with PyTorch's names."""

from tenfold.base.errors import unknown_name
from tenfold.func.batching import vmap
from tenfold.func.derivatives import functionalize, grad, grad_and_value, jvp, linearize, value_and_grad, vjp
from tenfold.func.functions import applied
from tenfold.func.jacobians import hessian, jacfwd, jacrev
from tenfold.func.modules import functional_call, replace_all_batch_norm_modules_, stack_module_state
from tenfold.func.recorded import RecordedFunction
from tenfold.func.scans import associative_scan, map, scan
from tenfold.func.shard_map import shard_map

__all__ = [
    "associative_scan",
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "map",
    "replace_all_batch_norm_modules_",
    "scan",
    "shard_map",
    "stack_module_state",
    "value_and_grad",
    "vjp",
    "vmap",
]

RecordedFunction.apply = staticmethod(applied)


def __getattr__(name: str):
    raise unknown_name("tenfold.func", name, globals())
