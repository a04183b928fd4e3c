"""Tenfold: PyTorch's names on lazy tensors, compiled as whole programs.

Most functions come from the op table, by `dispatch.install`; those whose Python signature is not their
schema's are imported here by name.
"""
# ruff: noqa: E402, for imports that follow what they need

from typing import TYPE_CHECKING, Any

from tenfold.base import loading as _loading  # noqa: F401, the time at which the rest begins to load
from tenfold.base.garbage import kept as _kept

with _kept():  # looking for garbage there would take a tenth of the time
    import numpy as _numpy  # noqa: F401, first of all: from deep inside our own imports it takes longer to load

    from tenfold import autograd, fft, functional, linalg, mlir, ops, special
    from tenfold.base import absent, dtypes, errors, unsupported
    from tenfold.compat import names
    from tenfold.compat.names import sparse as sparse_names
    from tenfold.tensor import dispatch, indexing, methods, operators, overriding, subclasses

from tenfold.autograd import is_grad_enabled
from tenfold.autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from tenfold.base.devices import Device as device, get_default_device, set_default_device
from tenfold.base.dtypes import DType as dtype, finfo, get_default_dtype, iinfo, set_default_dtype
from tenfold.base.errors import (
    ArgumentError,
    CacheWarning,
    DeviceError,
    DTypeError,
    EngineError,
    FormatError,
    GradientError,
    IndexOutOfRange,
    MissingEngine,
    OutOfMemory,
    OutOfMemory as OutOfMemoryError,
    ShapeError,
    TenfoldError,
    TraceError,
    UnknownName,
    UnsupportedError,
)
from tenfold.base.formatting import get_printoptions, set_printoptions
from tenfold.base.layouts import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    jagged,
    layout,
    legacy_contiguous_format,
    memory_format,
    preserve_format,
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
)
from tenfold.base.progress import progress
from tenfold.base.size import Size
from tenfold.random import Generator, fork_rng, get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from tenfold.runtime.evaluate import get_engine, set_engine
from tenfold.runtime.runs import explain_runs
from tenfold.tensor import Tensor
from tenfold.tensor.registry import TENSOR_METHOD_REGISTRY as TENSOR_METHOD_REGISTRY
from tenfold.version import release as _release

if TYPE_CHECKING:
    from tenfold import amp, data, func, nn, optim, testing, utils
    from tenfold.amp.autocast_mode import (
        autocast,
        clear_autocast_cache,
        get_autocast_dtype,
        is_autocast_cache_enabled,
        is_autocast_enabled,
        set_autocast_cache_enabled,
        set_autocast_dtype,
        set_autocast_enabled,
    )
    from tenfold.compiler import compile, show
    from tenfold.exporting import Dim, export, load_stablehlo, load_vmfb
    from tenfold.func import vmap
    from tenfold.func.control_flow import cond, while_loop
    from tenfold.serialize import load, save

__version__ = _release

_namespaces: dict = {
    "": globals(),
    "special": special.__dict__,
    "linalg": linalg.__dict__,
    "fft": fft.__dict__,
}
with _kept():
    dispatch.install(_namespaces)
    operators.install()
    functional.install()
    indexing.install()
    methods.install()
    unsupported.install(Tensor)
    sparse_names.install(Tensor)
    subclasses.install()

from tenfold.functional import (
    _assert as _assert,
    atleast_1d,
    atleast_2d,
    atleast_3d,
    block_diag,
    broadcast_shapes,
    broadcast_tensors,
    can_cast,
    cartesian_prod,
    cdist,
    chain_matmul,
    einsum,
    eval_ as eval,
    is_complex,
    is_floating_point,
    is_same_size,
    is_signed,
    is_tensor,
    meshgrid,
    norm,
    numel,
    promote_types,
    result_type,
    split,
    tensordot,
    unique,
    unique_consecutive,
    unravel_index,
)
from tenfold.tensor.indexing import nonzero
from tenfold.tensor.interchange import as_tensor, asarray, from_dlpack, from_numpy, frombuffer, tensor
from tenfold.tensor.methods import empty_permuted, empty_strided, from_file, lu

nonzero = overriding.heeding(nonzero)
overriding.publish(globals(), "tenfold.functional")
overriding.publish(globals(), "tenfold.tensor.interchange", overriding.seen_by_modes)
# PyTorch's other names for products, which take sparse tensors there.
dsmm, hsmm, spmm, saddmm = [
    dispatch.function(each, dispatch.rows_of(each)) for each in ("mm", "mm", "mm", "addmm")
]
inf, nan, pi, e, newaxis = float("inf"), float("nan"), 3.141592653589793, 2.718281828459045, None
# Last, because among the dtypes' names are Python's own: float, int and bool.
globals().update(dtypes.BY_NAME)

# Packages that are loaded when they are first asked for, as are the modules of `names.MODULE_OF`.
_PACKAGES = (
    "accelerator", "amp", "backends", "compiler", "cpu", "cuda", "data", "distributed", "distributions",
    "explain", "func", "futures", "fx", "generation", "hub", "jit", "library", "masked", "multiprocessing",
    "nn", "onnx", "optim", "overrides", "profiler", "quasirandom", "return_types", "serialize", "signal",
    "sparse", "storage", "testing", "types", "utils", "version",
)  # fmt: skip

# The names imported above, for type checkers; then the op table's, for `import *`.
__all__ = [
    "ArgumentError",
    "CacheWarning",
    "DTypeError",
    "DeviceError",
    "Dim",
    "EngineError",
    "FormatError",
    "Generator",
    "GradientError",
    "IndexOutOfRange",
    "MissingEngine",
    "OutOfMemory",
    "OutOfMemoryError",
    "ShapeError",
    "Size",
    "TenfoldError",
    "Tensor",
    "TraceError",
    "UnknownName",
    "UnsupportedError",
    "amp",
    "as_tensor",
    "asarray",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "autocast",
    "autograd",
    "block_diag",
    "broadcast_shapes",
    "broadcast_tensors",
    "can_cast",
    "cartesian_prod",
    "cdist",
    "chain_matmul",
    "channels_last",
    "channels_last_3d",
    "clear_autocast_cache",
    "compile",
    "cond",
    "contiguous_format",
    "data",
    "device",
    "dtype",
    "dtypes",
    "einsum",
    "empty_permuted",
    "empty_strided",
    "enable_grad",
    "errors",
    "eval",
    "explain_runs",
    "export",
    "fft",
    "finfo",
    "fork_rng",
    "from_dlpack",
    "from_file",
    "from_numpy",
    "frombuffer",
    "func",
    "functional",
    "get_autocast_dtype",
    "get_default_device",
    "get_default_dtype",
    "get_engine",
    "get_printoptions",
    "get_rng_state",
    "iinfo",
    "indexing",
    "inference_mode",
    "initial_seed",
    "is_autocast_cache_enabled",
    "is_autocast_enabled",
    "is_complex",
    "is_floating_point",
    "is_grad_enabled",
    "is_same_size",
    "is_signed",
    "is_tensor",
    "jagged",
    "layout",
    "legacy_contiguous_format",
    "linalg",
    "load",
    "load_stablehlo",
    "load_vmfb",
    "lu",
    "manual_seed",
    "memory_format",
    "meshgrid",
    "nn",
    "no_grad",
    "nonzero",
    "norm",
    "numel",
    "ops",
    "optim",
    "preserve_format",
    "progress",
    "promote_types",
    "random",
    "result_type",
    "save",
    "seed",
    "set_autocast_cache_enabled",
    "set_autocast_dtype",
    "set_autocast_enabled",
    "set_default_device",
    "set_default_dtype",
    "set_engine",
    "set_grad_enabled",
    "set_printoptions",
    "set_rng_state",
    "show",
    "sparse_bsc",
    "sparse_bsr",
    "sparse_coo",
    "sparse_csc",
    "sparse_csr",
    "special",
    "split",
    "strided",
    "tensor",
    "tensordot",
    "testing",
    "unique",
    "unique_consecutive",
    "unravel_index",
    "utils",
    "vmap",
    "while_loop",
]  # fmt: skip
__all__ += sorted({each for each in globals() if not each.startswith("_")}.difference(__all__))
for _each in ("TYPE_CHECKING", "Any"):
    __all__.remove(_each)


def _module_context(*, value_tensors: bool = True):
    """See `tenfold.exporting.module_context`, which this loads."""
    from tenfold.exporting import module_context

    return module_context(value_tensors=value_tensors)


mlir.module_context = _module_context


_family = vars(ops)["__getattr__"]


def _namespace(name: str):
    """`tenfold.ops.aten` and the like: the ops by their schemas' names, loaded when first asked for."""
    import importlib.machinery

    if name in ops.FAMILIES:
        return _family(name)
    if importlib.machinery.PathFinder.find_spec(name, ops.__path__):
        return importlib.import_module(f"{ops.__name__}.{name}")
    from tenfold.compat.overloads import namespace
    from tenfold.compat.overloads.loading import load_library

    found = load_library if name == "load_library" else namespace(name)
    if found is None:
        raise errors.unknown_name("tenfold.ops", name, vars(ops))
    vars(ops)[name] = found
    return found


vars(ops)["__getattr__"] = _namespace


def __getattr__(name: str):
    import importlib

    found: Any
    if name in _PACKAGES:
        with _kept():
            found = importlib.import_module(f"tenfold.{name}")
    elif name in names.MODULE_OF:
        found = getattr(importlib.import_module(f"tenfold.{names.MODULE_OF[name]}"), name)
    elif name in unsupported.FUNCTIONS:
        found = unsupported.refusing(name, unsupported.FUNCTIONS[name])
    elif name in absent.CLASSES:
        found = absent.absent_name("torch", name, absent.CLASSES[name])
    elif place := importlib.import_module("tenfold.compat.install").ELSEWHERE.get(f"torch.{name}"):
        found = importlib.import_module(place)
    elif f"torch.{name}" in absent.MODULES:
        found = absent.AbsentModule.of(f"torch.{name}")
    else:
        raise errors.unknown_name("tenfold", name, [*globals(), *_PACKAGES, *names.MODULE_OF])
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_PACKAGES, *names.MODULE_OF})
