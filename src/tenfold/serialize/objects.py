"""Objects of any class in PyTorch's archive. Python's pickle writes them, with PyTorch's names for what is
the package's own, so that PyTorch reads them. They are read only where the user trusts the file, or has named
the classes that it may hold."""

from __future__ import annotations

import io
import pickle
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold.base import dtypes
from tenfold.base.devices import Device
from tenfold.base.dtypes import DType
from tenfold.base.errors import ArgumentError, FormatError, UnsafePickle
from tenfold.base.size import Size
from tenfold.serialize import sparse
from tenfold.serialize.storages import (
    META,
    STORAGES,
    Placed,
    PlacedMeta,
    Places,
    Storage,
    attributes,
    finish_tensor,
    hosts,
    view_of,
)
from tenfold.serialize.unpickle import StorageKind
from tenfold.tensor import Tensor, leaf
from tenfold.tensor.parameter import Parameter

# Where classes and functions of the package are public, and what PyTorch calls those places.
PUBLIC = {
    "nn": "torch.nn", "nn.functional": "torch.nn.functional", "nn.init": "torch.nn.init",
    "optim": "torch.optim", "optim.lr_scheduler": "torch.optim.lr_scheduler", "data": "torch.utils.data",
    "distributions": "torch.distributions", "func": "torch.func", "amp": "torch.amp", "fx": "torch.fx",
}  # fmt: skip
_STORAGE_OF = {dtype: name for name, dtype in STORAGES.items()}


class Named:
    """Something of PyTorch's that a file names, and that need not exist here."""

    def __init__(self, module: str, name: str):
        self.module, self.name = module, name

    def __call__(self) -> None:
        raise TypeError(f"{self.module}.{self.name} is a name in a file")


_REBUILD = {each: Named("torch._utils", each) for each in ("_rebuild_tensor_v2", "_rebuild_tensor_v3")}
_PARAMETER = Named("torch._utils", "_rebuild_parameter")
_PARAMETER_WITH_STATE = Named("torch._utils", "_rebuild_parameter_with_state")
_META = Named("torch._utils", META)
_OF_TYPE = Named("torch._tensor", "_rebuild_from_type_v2")
_SPARSE = Named("torch._utils", sparse.REBUILD)
_LAYOUT = Named("torch.serialization", "_get_layout")
_HOOKS = Named("collections", "OrderedDict")


_PythonPickler: Any = pickle._Pickler  # the one whose methods can be overridden


class Writer(_PythonPickler):
    """One pickle, and the tensors whose memory it refers to."""

    def __init__(self) -> None:
        self.stream = io.BytesIO()
        super().__init__(self.stream, 2)
        self.storages: list[Tensor] = []
        self._keys: dict[int, int] = {}
        self._held: list[Any] = []  # what was written must not be freed: others are known by their identity

    def written(self, obj: Any) -> tuple[bytes, list[np.ndarray]]:
        """The pickle, and the data of its storages."""
        try:
            self.dump(obj)
        except RecursionError:
            raise ArgumentError("the data cannot be saved: it is nested too deep") from None
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            raise ArgumentError(
                f"a {type(obj).__module__}.{type(obj).__qualname__} cannot be saved: {error}",
                help="save what its state_dict() returns, and load that with load_state_dict()",
            ) from None
        return self.stream.getvalue(), hosts(self.storages)

    def save(self, obj: Any, save_persistent_id: bool = True) -> Any:
        if isinstance(obj, Named):
            return self._global(obj.module, obj.name, obj)
        if isinstance(obj, DType):
            return self._global("torch", obj.name, obj)
        return super().save(obj, save_persistent_id)

    def save_global(self, obj: Any, name: str | None = None) -> Any:
        found = public_name(obj)
        return super().save_global(obj, name) if found is None else self._global(*found, obj)

    def _global(self, module: str, name: str, obj: Any) -> None:
        known = self.memo.get(id(obj))
        if known is not None:
            self.write(self.get(known[0]))
            return
        self.write(b"c%s\n%s\n" % (module.encode(), name.encode()))
        self.memoize(obj)

    def persistent_id(self, obj: Any) -> Any:
        if not isinstance(obj, _Saved):
            return None
        typed = _STORAGE_OF.get(obj.dtype)
        kind = Named("torch", typed) if typed else Named("torch.storage", "UntypedStorage")
        self._held.append(kind)
        size = obj.count if typed else obj.count * obj.dtype.itemsize
        return ("storage", kind, str(obj.key), obj.location, size)

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Tensor):
            self._held.append(obj)
            return self._tensor(obj)
        if isinstance(obj, Device):
            return Named("torch", "device"), (obj.type, *(() if obj.index is None else (obj.index,)))
        if isinstance(obj, Size):
            return Named("torch", "Size"), (tuple(obj),)
        kind = type(obj)
        if isinstance(obj, dict) and kind.__module__.startswith("tenfold.") and public_name(kind) is None:
            return (
                _HOOKS,
                (),
                None,
                None,
                iter(obj.items()),
            )  # a dictionary of our own making, as hooks are in
        return NotImplemented

    def _tensor(self, obj: Tensor) -> tuple[Any, ...]:
        if obj.layout != "strided":
            layout, arguments = sparse.described(obj)
            parts = [each.detach() if isinstance(each, Tensor) else each for each in arguments]
            return _SPARSE, (_Made(_LAYOUT, (layout,)), tuple(parts))
        typed = obj.dtype in _STORAGE_OF
        parameter, held = isinstance(obj, Parameter), attributes(obj)
        follows = obj.requires_grad and not parameter
        made: tuple[Any, ...]
        if obj.device.type == "meta":
            made = _META, (obj.dtype, tuple(obj.shape), tuple(obj.stride()), follows)
        else:
            saved, offset, strides = self._place(obj)
            args = [saved, offset, tuple(obj.shape), strides, follows, _Empty()]
            rebuild = _REBUILD["_rebuild_tensor_v2" if typed else "_rebuild_tensor_v3"]
            made = rebuild, tuple(args if typed else [*args, obj.dtype])
        if type(obj) is Tensor and not held:
            return made
        if type(obj) is Parameter:
            given = (_Made(*made), obj.requires_grad, _Empty())
            return (_PARAMETER_WITH_STATE, (*given, held)) if held else (_PARAMETER, given)
        return _OF_TYPE, (made[0], type(obj), made[1], held)

    def _place(self, tensor: Tensor) -> tuple[_Saved, int, tuple[int, ...]]:
        """Where a tensor lies: tensors that share memory refer to one storage."""
        alias = tensor.share()
        if any(step.row.recodes for step in alias.steps):
            alias = tensor.detach().clone().share()
            self._held.append(alias)
        key = self._keys.get(id(alias.storage))
        if key is None:
            key = self._keys[id(alias.storage)] = len(self.storages)
            self._held.append(alias.storage)
            self.storages.append(Tensor(alias.storage.current()))
        count = alias.storage.current().type.numel
        place = str(tensor.device.resolved)
        return _Saved(key, tensor.dtype, place, count), alias.offset, tuple(alias.strides)


class _Saved:
    """A storage that a pickle refers to."""

    def __init__(self, key: int, dtype: DType, location: str, count: int):
        self.key, self.dtype, self.location, self.count = key, dtype, location, count


class _Empty:
    """A tensor's hooks: none."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _HOOKS, ()


class _Made:
    """What a call gives, inside the arguments of another."""

    def __init__(self, function: Any, args: tuple[Any, ...]):
        self.call = (function, args)

    def __reduce__(self) -> tuple[Any, ...]:
        return self.call


Writer.dispatch = {**_PythonPickler.dispatch, types.FunctionType: Writer.save_global}


def public_name(obj: Any) -> tuple[str, str] | None:
    """PyTorch's module and name of a class or function that is the package's own."""
    name, module = getattr(obj, "__qualname__", ""), getattr(obj, "__module__", None) or ""
    if not module.startswith("tenfold"):
        return None
    for ours, theirs in PUBLIC.items():
        if getattr(sys.modules.get(f"tenfold.{ours}"), name, None) is obj:
            return theirs, name
    if getattr(sys.modules["tenfold"], name, None) is obj:
        return "torch", name
    layer = module.removeprefix("tenfold.nn.")  # a layer that is not public lies in a module of the same name
    return (f"torch.nn.modules.{layer}", name) if layer == "linear" else None


# Reading


class Reader(pickle.Unpickler):
    """Reads a pickle whose classes the user trusts: all of them, or those of `allowed`."""

    def __init__(
        self,
        contents: bytes,
        read: Callable[[Storage], np.ndarray],
        places: Places,
        allowed: dict[str, Any] | None,
    ):
        super().__init__(io.BytesIO(contents))
        self.read_storage, self.places, self.allowed = read, places, allowed
        self.bases: dict[str, Tensor] = {}
        self.builders: dict[str, Any] = {
            "torch._utils._rebuild_tensor_v2": self._tensor,
            "torch._utils._rebuild_tensor_v3": self._tensor,
            "torch._utils._rebuild_parameter": self._parameter,
            "torch._utils._rebuild_parameter_with_state": self._parameter,
            "torch._tensor._rebuild_from_type_v2": self._of_type,
            "torch._utils._rebuild_sparse_tensor": self._sparse,
            f"torch._utils.{META}": lambda *described: PlacedMeta(*described).finished(),
            "torch.serialization._get_layout": sparse.layout,
            "torch.device": Device,
            "torch.Size": Size,
            "torch.storage.UntypedStorage": StorageKind(None),
            "torch.UntypedStorage": StorageKind(None),
        }

    def find_class(self, module: str, name: str) -> Any:
        full = f"{module}.{name}"
        if full in self.builders:
            return self.builders[full]
        if module == "torch" and name in STORAGES:
            return StorageKind(STORAGES[name])
        if module == "torch" and name in dtypes.BY_NAME:
            return dtypes.BY_NAME[name]
        if self.allowed is not None and full in self.allowed:
            return self.allowed[full]
        of_torch = module.partition(".")[0] == "torch"
        if self.allowed is not None and full not in _PLAIN:
            found = ours(module, name) if of_torch else None
            # A class may have several names, as `torch.nn.Linear` and `torch.nn.modules.linear.Linear`.
            if found is None or not any(found is each for each in self.allowed.values()):
                raise UnsafePickle(
                    f"the file holds a {full[:100]}, which is not among the classes that were declared safe",
                    help="add it with torch.serialization.add_safe_globals, or trust the whole file",
                )
            return found
        return ours(module, name) if of_torch else super().find_class(module, name)

    def persistent_load(self, identity: Any) -> Storage:
        _, kind, key, location, size = identity[:5]
        return Storage(kind.dtype, key, location, size)

    def _tensor(
        self, storage: Any, offset: Any, shape: Any, strides: Any, requires_grad: Any = False,
        hooks: Any = None, *more: Any,
    ) -> Tensor:  # fmt: skip
        dtype = more[0] if more and isinstance(more[0], DType) else None
        metadata = next((each for each in more if isinstance(each, dict)), None)
        placed = Placed(storage, offset, tuple(shape), tuple(strides), requires_grad, dtype, metadata)
        base = self.bases.get(storage.key)
        if base is None:
            raw = self.read_storage(storage)[: storage.nbytes]
            whole = (raw != 0) if placed.dtype is dtypes.bool_ else raw.view(placed.dtype.numpy)
            base = leaf(whole, self.places.of(storage.location), placed.dtype)
            self.bases[storage.key] = base
        return finish_tensor(view_of(base, placed), placed, True)

    def _parameter(self, data: Tensor, requires_grad: bool, hooks: Any, state: Any = None) -> Parameter:
        made = Parameter(data, requires_grad)
        vars(made).update(state or {})
        return made

    def _sparse(self, layout: Any, arguments: Any) -> Tensor:
        return sparse.placed(layout, arguments, Tensor).finished(lambda part: part)

    def _of_type(self, func: Any, kind: Any, args: tuple[Any, ...], state: Any) -> Any:
        made = func(*args)
        if isinstance(kind, type) and issubclass(kind, Tensor) and type(made) is not kind:
            made = made.as_subclass(kind)
        vars(made).update(state if isinstance(state, dict) else {})
        return made


_PLAIN = frozenset(
    ["collections.OrderedDict", "collections.Counter", "builtins.set", "__builtin__.set", "_codecs.encode",
     "builtins.complex", "__builtin__.complex", "builtins.bytearray"]
)  # fmt: skip


def ours(module: str, name: str) -> Any:
    """What a name of PyTorch's is here: `torch.nn.modules.linear.Linear` is `tenfold.nn.Linear`."""
    holders = [sys.modules["tenfold"]]
    for part in module.split(".")[1:]:
        found = getattr(holders[-1], part, None)
        if isinstance(found, types.ModuleType):
            holders.append(found)
    for holder in reversed(holders):
        found = getattr(holder, name.split(".")[0], None)
        if found is not None:
            for part in name.split(".")[1:]:
                found = getattr(found, part)
            return found
    raise FormatError(f"the file holds a {module}.{name}, which Tenfold does not have")
