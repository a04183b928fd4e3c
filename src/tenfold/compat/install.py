"""`install_as_torch`: code that says `import torch` gets Tenfold.

A finder answers for `torch` and what lies in it: `torch.nn.functional` is `tenfold.nn.functional`, the
module itself. PyTorch, if it is installed too, is not touched; it can be imported again after
`uninstall_as_torch`."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import sys
from collections.abc import MutableSequence
from types import ModuleType
from typing import Any

from tenfold import version
from tenfold.base.errors import TraceError, located

# Modules that lie elsewhere here than in PyTorch.
ELSEWHERE = {
    "torch._higher_order_ops": "tenfold.func.control_flow",
    "torch._higher_order_ops.cond": "tenfold.func.control_flow",
    "torch._higher_order_ops.while_loop": "tenfold.func.control_flow",
    "torch.autograd.grad_mode": "tenfold.autograd.grad_mode",
    "torch.cuda.amp.autocast_mode": "tenfold.cuda.amp",
    "torch.cuda.amp.grad_scaler": "tenfold.cuda.amp",
    "torch.serialization": "tenfold.serialize",
    "torch.utils.data._utils": "tenfold.data",
    "torch.utils.data.dataloader": "tenfold.data",
    "torch.utils.dlpack": "tenfold",
    **{
        f"torch.optim.{name}": "tenfold.optim"
        for name in ("adadelta", "adagrad", "adamax", "adamw", "asgd", "nadam", "radam", "rmsprop", "rprop")
    },
}


class _Torch(ModuleType):
    """The module `torch`: all that the package has, under PyTorch's version."""

    __version__ = f"{version.pytorch}+tenfold"
    __path__: MutableSequence[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.modules["tenfold"], name)

    def __dir__(self) -> list[str]:
        return dir(sys.modules["tenfold"])


class _Finder:
    """Finds `torch` and its modules for Python's import statement."""

    def find_spec(
        self, name: str, path: Any = None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != "torch" and (not name.startswith("torch.") or not _exists(_ours(name))):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return _Torch(spec.name) if spec.name == "torch" else None

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        if name == "torch":
            return
        # Python takes what stands in sys.modules when a module has been run: this one, as it is.
        sys.modules[name] = importlib.import_module(_ours(name))


def _ours(name: str) -> str:
    """What a module of `torch` is called here; what it lies in is imported before it, and may call another
    module of ours so."""
    parent, _, last = name.rpartition(".")
    inside = "tenfold" if parent == "torch" else sys.modules[parent].__name__
    known = vars(sys.modules[inside]).get(last)
    if isinstance(known, ModuleType) and known.__name__.startswith("tenfold."):
        return known.__name__
    return ELSEWHERE.get(name, f"{inside}.{last}")


def _exists(name: str) -> bool:
    try:
        return name in sys.modules or importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # what it lies in is no package
        return False


_finder = _Finder()


@located
def install_as_torch() -> None:
    """Let `import torch` mean Tenfold in this process, from now on.

    It is refused where PyTorch was imported already: modules that have it would mix both.
    """
    loaded = sys.modules.get("torch")
    if loaded is not None and not isinstance(loaded, _Torch):
        raise TraceError(
            "PyTorch is imported already, and cannot be replaced where it is in use",
            help="call tenfold.install_as_torch() before anything imports torch",
        )
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    if loaded is None:
        spec = importlib.machinery.ModuleSpec("torch", _finder, is_package=True)  # type: ignore[arg-type]
        sys.modules["torch"] = importlib.util.module_from_spec(spec)


def uninstall_as_torch() -> None:
    """Let `import torch` mean PyTorch again; modules that have Tenfold under that name keep it."""
    if _finder not in sys.meta_path:
        return
    sys.meta_path.remove(_finder)
    for name in [each for each in sys.modules if each == "torch" or each.startswith("torch.")]:
        del sys.modules[name]
