"""`tenfold.library`: ops of your own, by the names that PyTorch has for them.

`custom_op` makes an op of a Python function on NumPy arrays or tensors; `register_fake`, `register_autograd`
and `register_vmap` define its types, its gradient and its batching. An op whose lowering is FlatIR needs none
of these: it is declared by `op`, like the package's own ops. `register_ffi_target` registers a C function
with XLA, which a lowering calls by `tenfold.flat.custom_call`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tenfold.base.errors import ArgumentError
from tenfold.library.custom import CustomOpDef
from tenfold.library.declared import FAKES, Library, define, impl, opcheck
from tenfold.library.schemas import infer_schema
from tenfold.ops import kernels
from tenfold.ops.kernels import register_foreign as register_ffi_target
from tenfold.ops.table import OTHERS, TABLE, Row, op

__all__ = [
    "CustomOpDef", "Library", "custom_op", "define", "impl", "infer_schema", "op", "opcheck",
    "register_autograd", "register_fake", "register_ffi_target", "register_kernel", "register_vmap",
]  # fmt: skip


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Sequence[str],
    device_types: Any = None,
    schema: str | None = None,
    tags: Sequence[Any] | None = None,
) -> Any:
    """Make an op of a function, whose annotations give the schema: `@custom_op("mylib::cube",
    mutates_args=())`.

    Parameters annotated `np.ndarray` get NumPy arrays, and those annotated `Tensor` get tensors. The function
    runs on the CPU when a value is needed; it is not traced. It is also available as
    `tenfold.ops.mylib.cube`. After a call, the tensors named by `mutates_args` hold what the function wrote
    to them; their autograd history does not change.
    """
    if "::" not in name or not all(part.isidentifier() for part in name.split("::")):
        raise ArgumentError(f"{name!r} is no name of an op", help='write "mylib::name"')

    def define(function: Callable[..., Any]) -> CustomOpDef:
        text = schema or infer_schema(function, mutates_args=mutates_args)
        made = CustomOpDef(name, function, f"{name}{text}")
        if name in FAKES:
            made.register_fake(FAKES[name])
        return made

    return define if fn is None else define(fn)


def register_fake(name: Any, func: Callable[..., Any] | None = None, /, **ignored: Any) -> Any:
    """See `CustomOpDef.register_fake`; the op is given by its name or as an object, and may be defined
    later."""
    if isinstance(name, str) and _is_own(name):
        register = lambda function: function  # its types follow from its lowering
    elif isinstance(name, str) and name not in kernels.PYTHON_KERNELS and not _has_lowering(name):
        register = lambda function: FAKES.setdefault(name, function)
    else:
        register = _defined(name).register_fake
    return register if func is None else register(func)


impl_abstract, register_kernel = register_fake, impl


def register_autograd(
    name: Any, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
) -> None:
    """See `CustomOpDef.register_autograd`. An op that is a row of the package has its gradient already."""
    if isinstance(name, str) and _is_own(name):
        return
    _defined(name).register_autograd(backward, setup_context=setup_context)


def register_vmap(name: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None) -> Any:
    """See `CustomOpDef.register_vmap`."""
    register = _defined(name).register_vmap
    return register if func is None else register(func)


def _defined(name: Any) -> CustomOpDef:
    if isinstance(name, CustomOpDef):
        return name
    kernel = kernels.PYTHON_KERNELS.get(name)
    if kernel is None:
        known = (
            "it has a lowering, from which these follow" if _has_lowering(name) else "custom_op defines one"
        )
        raise ArgumentError(f"no Python function was made an op called {name!r}", help=known)
    return kernel.__self__  # type: ignore[attr-defined]


def _is_own(name: str) -> bool:
    """Whether an op of another namespace than ATen's is a row of the package, as torchvision's are."""
    namespace, _, short = name.rpartition("::")
    return namespace in OTHERS and any(row.is_own for row in OTHERS[namespace].get(short, ()))


def _has_lowering(name: str) -> bool:
    namespace, _, short = name.rpartition("::")
    table: dict[str, list[Row]] = TABLE if namespace in ("", "aten") else OTHERS.get(namespace, {})
    return short in table
