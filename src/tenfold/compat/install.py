"""`install_as_torch`: code that says `import torch` gets Tenfold.

A finder answers for `torch` and what lies in it: `torch.nn.functional` is `tenfold.nn.functional`, the
module itself. PyTorch, if it is installed too, is not touched; it can be imported again after
`uninstall_as_torch`."""

from __future__ import annotations

import dis
import importlib
import importlib.machinery
import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Iterator, MutableSequence
from multiprocessing import spawn
from types import FrameType, ModuleType
from typing import Any

from tenfold import version
from tenfold.base import absent, package
from tenfold.base.errors import TraceError, located
from tenfold.base.late import load_all
from tenfold.compat.private.torch_version import TorchVersion

VERSION = TorchVersion(f"{version.pytorch}+tenfold")

# Each has a file of its own in PyTorch.
DISTRIBUTIONS = """
    bernoulli beta binomial categorical cauchy chi2 continuous_bernoulli dirichlet
    exp_family exponential fishersnedecor gamma generalized_pareto geometric gumbel half_cauchy half_normal
    independent inverse_gamma kumaraswamy laplace lkj_cholesky log_normal logistic_normal
    lowrank_multivariate_normal mixture_same_family multinomial multivariate_normal negative_binomial normal
    one_hot_categorical pareto poisson studentT transformed_distribution
    uniform von_mises weibull wishart
"""

# Modules that lie elsewhere here than in PyTorch.
ELSEWHERE = {
    **{f"functorch{name}": "tenfold.compat.private.functorch" for name in ("", ".experimental")},
    "functorch.experimental.control_flow": "tenfold.compat.private.higher_order",
    "torch.__future__": "tenfold.compat.private.future",
    "torch._C": "tenfold.compat.private.c_extension",
    "torch._VF": "tenfold",
    "torch.accelerator.memory": "tenfold.accelerator",
    "torch._C._nn": "tenfold.compat.private.c_extension",
    "torch._dynamo": "tenfold.compat.private.dynamo",
    **{
        f"torch._higher_order_ops{name}": "tenfold.compat.private.higher_order"
        for name in ("", ".associative_scan", ".cond", ".map", ".scan", ".while_loop")
    },
    "torch._jit_internal": "tenfold.jit",
    "torch._tensor": "tenfold.tensor",
    "torch.autograd.anomaly_mode": "tenfold.autograd",
    "torch.autograd.grad_mode": "tenfold.autograd.grad_mode",
    "torch.autograd.gradcheck": "tenfold.autograd.checking",
    "torch.autograd.variable": "tenfold.autograd",
    "torch.autograd.profiler": "tenfold.profiler",
    **{
        f"torch.cpu.amp{name}": "tenfold.compat.private.cpu_amp"
        for name in ("", ".autocast_mode", ".grad_scaler")
    },
    "torch.cuda.amp.common": "tenfold.cuda.amp",
    "torch.cuda.amp.autocast_mode": "tenfold.cuda.amp",
    "torch.cuda.amp.grad_scaler": "tenfold.cuda.amp",
    "torch.amp.grad_scaler": "tenfold.amp",
    "torch.export": "tenfold.compat.export",
    "torch.export.dynamic_shapes": "tenfold.compat.export.dimensions",
    "torch.export.exported_program": "tenfold.compat.export.programs",
    "torch.export.graph_signature": "tenfold.compat.export.signature",
    "torch.functional": "tenfold",
    "torch.fx._symbolic_trace": "tenfold.fx.tracer",
    "torch.fx.experimental.proxy_tensor": "tenfold.compat.export.proxy_tensor",
    "torch.nn._reduction": "tenfold.compat.private.reduction",
    "torch.nn.attention.bias": "tenfold.nn.causal_bias",
    "torch.nn.modules.linear_cross_entropy": "tenfold.nn.linear_loss",
    "torch.nn.modules.linear_cross_entropy_options": "tenfold.nn.linear_loss",
    "torch.nn.attention.flex_attention": "tenfold.nn.flex_attention",
    **{f"torch.multiprocessing.{name}": "tenfold.multiprocessing" for name in ("pool", "queue", "spawn")},
    "torch.onnx.symbolic_helper": "tenfold.onnx",
    "torch.ao.nn.quantized": "tenfold.nn.quantization",
    "torch.ao.quantization": "tenfold.nn.quantization",
    "torch.nn.quantized": "tenfold.nn.quantization",
    "torch.quantization": "tenfold.nn.quantization",
    "torch.serialization": "tenfold.serialize",
    "torch._utils": "tenfold.compat.private.utilities",
    "torch.torch_version": "tenfold.compat.private.torch_version",
    "torch.utils._foreach_utils": "tenfold.optim.conventions",
    "torch.__config__": "tenfold.compat.private.build_configuration",
    "torch.classes": "tenfold.compat.private.script_classes",
    "torch.cuda.random": "tenfold.cuda",
    "torch.signal.windows.windows": "tenfold.signal.windows",
    "torch.utils.flop_counter": "tenfold.compat.flop_counter",
    "torch.utils._python_dispatch": "tenfold.compat.private.python_dispatch",
    "torch.utils.data._utils": "tenfold.data",
    "torch.utils.data._utils.worker": "tenfold.data",
    "torch.utils.data.backward_compatibility": "tenfold.data",
    "torch.utils.data.dataloader": "tenfold.data.dataloader",
    "torch.utils.data.distributed": "tenfold.data.distributed",
    "torch.utils.dlpack": "tenfold",
    "torch.utils.model_zoo": "tenfold.hub",
    "torch.utils.pytree": "tenfold.utils._pytree",
    "torch.utils.serialization": "tenfold.serialize",
    "torch.utils.serialization.config": "tenfold.serialize",
    **{f"torch.distributions.{name}": "tenfold.distributions" for name in DISTRIBUTIONS.split()},
    **{
        f"torch.distributions.relaxed_{name}": "tenfold.distributions.relaxed"
        for name in ("bernoulli", "categorical")
    },
    **{
        f"torch.optim.{name}": "tenfold.optim"
        for name in (
            *("_adafactor", "_muon", "adadelta", "adagrad", "adamax", "adamw", "asgd", "nadam", "radam"),
            *("rmsprop", "rprop"),
        )
    },
}

# The instructions by which a program names an attribute, as it does not where it asks by `hasattr`.
_NAMING = [dis.opmap[name] for name in ("IMPORT_FROM", "LOAD_ATTR", "LOAD_METHOD") if name in dis.opmap]

# Why a name of PyTorch's own workings is not there.
_private = absent.MODULES["torch._C"]


class _Torch(ModuleType):
    """The module `torch`: all that the package has, under PyTorch's version."""

    __version__ = VERSION
    __path__: MutableSequence[str] = []

    def __getattr__(self, name: str) -> Any:
        if name == "torch":
            return self
        if f"torch.{name}" in ELSEWHERE:
            return importlib.import_module(f"torch.{name}")
        try:
            value = getattr(sys.modules["tenfold"], name)
        except AttributeError:
            found = _lacking("torch", name, sys._getframe(1))
            if found is None:
                raise
            return found
        if isinstance(value, ModuleType) and value.__name__ == f"tenfold.{name}":
            return importlib.import_module(f"torch.{name}")
        return value

    def __dir__(self) -> list[str]:
        return dir(sys.modules["tenfold"])


class _Distribution(importlib.metadata.Distribution):
    """What an installed PyTorch would tell of itself to `importlib.metadata`."""

    def read_text(self, filename: str) -> str | None:
        texts = {
            "METADATA": f"Metadata-Version: 2.1\nName: torch\nVersion: {VERSION}\n",
            "top_level.txt": "torch\n",
        }
        return texts.get(filename)

    def locate_file(self, path: Any) -> Any:
        return os.path.join(os.path.dirname(__file__), path)


class _Finder:
    """Finds `torch` and its modules for Python's import statement, and its version for
    `importlib.metadata`."""

    def find_spec(
        self, name: str, path: Any = None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] == "functorch":  # PyTorch's package holds it too
            known = name in ELSEWHERE
            return importlib.machinery.ModuleSpec(name, self, is_package=True) if known else None  # type: ignore[arg-type]
        if name != "torch" and (not name.startswith("torch.") or not self._has(name)):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]

    def _has(self, name: str) -> bool:
        ours = _ours(name)
        return (ours is not None and _exists(ours)) or absent.reason_of(name) is not None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return _Torch(spec.name) if spec.name == "torch" else None

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        if name == "torch":
            return
        ours = _ours(name)
        if ours is not None and _exists(ours):
            # Python takes what stands in sys.modules when a module has been run: this one, as it is.
            found = sys.modules[name] = importlib.import_module(ours)
            _reserve(name, found)
            load_all(found)  # programs also read a module's __dict__
            _complete(name, found)
            if not hasattr(found, "__path__"):
                found.__path__ = []  # PyTorch may have modules in what is a file here
        else:
            sys.modules[name] = absent.AbsentModule.of(name)

    def find_distributions(self, context: Any = None) -> Iterator[importlib.metadata.Distribution]:
        if getattr(context, "name", None) in (None, "torch"):
            yield _Distribution()


def _ours(name: str) -> str | None:
    """What a module of `torch` is called here; what it lies in is imported before it, and may call another
    module of ours so. None if it lies in a module that is not ours."""
    if name in ELSEWHERE:
        return ELSEWHERE[name]
    parent, _, last = name.rpartition(".")
    inside = "tenfold" if parent == "torch" else sys.modules[parent].__name__
    if inside.partition(".")[0] != "tenfold":
        return None
    known = vars(sys.modules[inside]).get(last)
    if isinstance(known, ModuleType) and known.__name__.startswith("tenfold."):
        return known.__name__
    return f"{inside}.{last}"


def _reserve(name: str, module: ModuleType) -> None:
    """Put into place the modules that lie in this one in PyTorch and elsewhere here. Those whose names are
    functions of it, as `while_loop` is, would take the functions' place were they imported; the others are
    its attributes, as in `torch.distributions.normal.Normal`."""
    for inner, target in ELSEWHERE.items():
        parent, _, last = inner.rpartition(".")
        if parent != name:
            continue
        own = vars(module).get(last)
        if own is None and last in vars(module).get("__all__", ()):
            own = getattr(module, last)  # one that is loaded when it is used
        if callable(own):
            if inner not in sys.modules:
                sys.modules[inner] = importlib.import_module(target)
                _complete(inner, sys.modules[inner])
        elif target == module.__name__:
            vars(module).setdefault(last, module)


def _complete(name: str, module: ModuleType) -> None:
    """Let a module that is here in part be asked for PyTorch's other names: libraries import names that a
    program never uses, and each says why it is not there when it is used."""
    names = vars(module).setdefault("__completed__", [])  # of PyTorch's modules that this one is
    names.append(name)
    if len(names) > 1:
        return
    reason = absent.reason_of(name)
    own = vars(module).get("__getattr__")

    def other(asked: str) -> Any:
        if own is None and reason is not None and not asked.startswith("__"):
            return absent.absent_name(name, asked, reason)
        try:
            if own is None:
                raise AttributeError(f"module {name!r} has no attribute {asked!r}")
            return own(asked)
        except AttributeError:
            frame = sys._getframe(1)
            for each in names:
                found = _lacking(each, asked, frame)
                if found is not None:
                    return found
            raise

    vars(module)["__getattr__"] = other


def _lacking(module: str, name: str, frame: FrameType) -> Any:
    """What stands for a name of PyTorch's that a module of ours lacks, where the program says
    `module.name` or `from module import name`: a module that lies elsewhere here, or a name that says why it
    is absent when it is used. Libraries import names that a program may never use, some of PyTorch's own
    workings; `hasattr`, by which they ask what there is, is told the truth. None if PyTorch has no such name
    either."""
    instruction = frame.f_code.co_code[frame.f_lasti] if frame.f_lasti >= 0 else None
    if f"{module}.{name}" in absent.NAMES and instruction in _NAMING:
        return absent.absent_name(module, name, absent.NAMES[f"{module}.{name}"])
    if f"{module}.{name}" in ELSEWHERE and instruction in _NAMING:
        return importlib.import_module(f"{module}.{name}")
    if instruction != dis.opmap["IMPORT_FROM"]:
        return None
    if _finder.find_spec(f"{module}.{name}") is not None:
        return importlib.import_module(f"{module}.{name}")
    if name.startswith("_") and not name.startswith("__"):
        return absent.absent_name(module, name, _private)
    return None


def _exists(name: str) -> bool:
    try:
        return name in sys.modules or importlib.util.find_spec(name) is not None
    except (ModuleNotFoundError, ValueError):  # what it lies in is no package, or no module that was imported
        return False


_finder = _Finder()


class _AsTorch:
    """What a process that is spawned reads before it imports the program: there, too, torch is Tenfold."""

    def __reduce__(self) -> tuple[Any, ...]:
        return install_as_torch, ()


def _prepared(name: str) -> dict[str, Any]:
    """What Python tells a process that it spawns, and what it is to install."""
    return {**_preparation(name), "as_torch": _AsTorch()}


_preparation = spawn.get_preparation_data


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
    package.shown = "torch"
    vars(spawn)["get_preparation_data"] = _prepared
    if loaded is None:
        spec = importlib.machinery.ModuleSpec("torch", _finder, is_package=True)  # type: ignore[arg-type]
        sys.modules["torch"] = importlib.util.module_from_spec(spec)


def uninstall_as_torch() -> None:
    """Let `import torch` mean PyTorch again; modules that have Tenfold under that name keep it."""
    if _finder not in sys.meta_path:
        return
    sys.meta_path.remove(_finder)
    package.shown = "tenfold"
    vars(spawn)["get_preparation_data"] = _preparation
    for name in [module for module in sys.modules if module == "torch" or module.startswith("torch.")]:
        del sys.modules[name]
