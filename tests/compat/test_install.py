"""`install_as_torch`: code that says `import torch` runs on Tenfold, and gives what PyTorch gives."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import tenfold as tn

SCRIPTS = sorted((Path(__file__).parent.parent / "scripts").glob("*.py"))
MARK = "==== {} ===="
NUMBER = re.compile(r"[-+]?\d+\.\d+(?:e[-+]?\d+)?|[-+]?\d+")

RUN_ALL = f"""
import pathlib, runpy, sys
import tenfold
tenfold.install_as_torch()
for path in map(pathlib.Path, sys.argv[1:]):
    print({MARK!r}.format(path.stem))
    runpy.run_path(str(path), run_name="__main__")
    tenfold.set_default_dtype(tenfold.float32)
assert "torch._C" not in sys.modules
"""


def run(code: str, *arguments: str) -> str:
    command = [sys.executable, "-W", "ignore", "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def ours() -> dict[str, str]:
    """What each script prints on Tenfold, in a process of its own."""
    printed = run(RUN_ALL, *map(str, SCRIPTS))
    parts = re.split(r"==== (\w+) ====\n", printed)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


@pytest.mark.parametrize("script", SCRIPTS, ids=[each.stem for each in SCRIPTS])
def test_a_script_written_for_pytorch_prints_the_same(script, ours):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        runpy.run_path(str(script), run_name="__main__")
    torch.set_default_dtype(torch.float32)  # a script's settings are for itself
    torch.set_printoptions(profile="default", sci_mode=None)
    mine, theirs = [text.replace("tenfold.", "torch.") for text in (ours[script.stem], out.getvalue())]
    assert NUMBER.sub("#", mine) == NUMBER.sub("#", theirs)
    found = [[float(each) for each in NUMBER.findall(text)] for text in (mine, theirs)]
    np.testing.assert_allclose(*found, rtol=1e-5, atol=1e-6)


def test_it_is_refused_where_pytorch_is_in_use():
    with pytest.raises(tn.TenfoldError, match="PyTorch is imported already"):
        tn.install_as_torch()
    assert sys.modules["torch"] is torch


def test_modules_are_the_packages_own():
    run(
        """
import tenfold
tenfold.install_as_torch()
tenfold.install_as_torch()  # twice does no harm
import torch, torch.nn.functional as F, torch.backends.cudnn as cudnn, torch.utils.data.dataset
from torch.utils.data import DataLoader
from torch.nn.modules.conv import Conv2d
from torch._higher_order_ops import while_loop
from torch.cuda.amp import autocast
import torch.optim.lr_scheduler
assert F is tenfold.nn.functional and cudnn is tenfold.backends.cudnn and Conv2d is tenfold.nn.Conv2d
assert torch.utils.data.dataset.Dataset is tenfold.data.Dataset and DataLoader is tenfold.data.DataLoader
assert while_loop is tenfold.while_loop and torch.Tensor is tenfold.Tensor and torch.float is tenfold.float32
assert torch.__version__.startswith("2.") and torch.nn.__spec__.name == "tenfold.nn"
assert tuple(map(int, torch.__version__.partition("+")[0].split("."))) >= (2, 0, 0)
"""
    )


def test_a_module_that_is_not_there_is_said_so():
    run(
        """
import tenfold
tenfold.install_as_torch()
try:
    import torch.nonsense
except ModuleNotFoundError as error:
    assert str(error) == "No module named 'torch.nonsense'" and error.name == "torch.nonsense"
else:
    raise AssertionError
import importlib.util
for name in ("torch.nonsense", "torch.nn.nonsense", "torch.nn.attention.nonsense"):
    assert importlib.util.find_spec(name) is None, name
for name in ("torch.nn", "torch.nn.functional", "torch.nn.modules.conv", "torch.utils.data"):
    assert importlib.util.find_spec(name) is not None, name
try:
    import torch
    torch.no_such_name
except AttributeError as error:
    assert "no_such_name" in str(error)
"""
    )


def test_pytorch_is_there_again_after_uninstalling():
    run(
        """
import tenfold, sys
tenfold.uninstall_as_torch()  # before it was installed: nothing
tenfold.install_as_torch()
import torch.nn
tenfold.uninstall_as_torch()
assert "torch" not in sys.modules and "torch.nn" not in sys.modules
import importlib.util
assert importlib.util.find_spec("torch").origin.endswith("torch/__init__.py")
assert tenfold.nn.Linear(2, 3)(tenfold.ones(2)).shape == (3,)
"""
    )


def test_a_module_that_someone_else_put_there_does_not_confuse_it():
    run(
        """
import tenfold, sys, types
tenfold.install_as_torch()
import torch
sys.modules["torch.extra"] = torch.extra = types.ModuleType("torch.extra")
torch.extra.__path__ = []
try:
    import torch.extra.inner
except ModuleNotFoundError as error:
    assert error.name == "torch.extra.inner"
else:
    raise AssertionError
"""
    )


def test_libraries_hear_of_pytorchs_version_while_tenfold_stands_in():
    run(
        """
import importlib.metadata, tenfold
tenfold.install_as_torch()
import torch
assert importlib.metadata.version("torch") == torch.__version__ == "2.13.0+tenfold"
assert importlib.metadata.distribution("torch").metadata["Name"] == "torch"
assert "torch" in importlib.metadata.packages_distributions()
tenfold.uninstall_as_torch()
assert "tenfold" not in importlib.metadata.version("torch")
"""
    )


def test_dtypes_and_types_read_as_pytorchs_while_tenfold_stands_in():
    run(
        """
import tenfold
assert str(tenfold.float32) == "tenfold.float32"
tenfold.install_as_torch()
import torch
assert str(torch.float32) == "torch.float32" and torch.ones(1).type() == "torch.FloatTensor"
assert repr(torch.ones(1, dtype=torch.float64)) == "tensor([1.], dtype=torch.float64)"
tenfold.uninstall_as_torch()
assert str(tenfold.float32) == "tenfold.float32"
"""
    )


IMPORTED = """
import tenfold
tenfold.install_as_torch()
import torch, torch._C, torch._dynamo, torch.fx, torch.hub, torch.library, torch.onnx, torch.overrides
import torch.multiprocessing, torch.nn.parallel, torch.profiler, torch.utils._pytree, torch.utils.hooks
import torch._dynamo.utils, torch.distributed.fsdp, torch.utils.cpp_extension, torch.ao.quantization
from torch.distributed import ProcessGroupMPI, ReduceOp
from torch.distributed.tensor import DTensor
from torch.distributed.fsdp import FullyShardedDataParallel
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops import scan, map
from torch.distributions.normal import Normal
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention
from torch.onnx.symbolic_helper import parse_args
from torch.utils.data.dataloader import _BaseDataLoaderIter
from torch.utils.data.distributed import DistributedSampler
assert torch.torch is torch and torch._dynamo.disable(len) is len
assert isinstance(iter(torch.utils.data.DataLoader([1])), _BaseDataLoaderIter)
assert not isinstance(torch.ones(1), (DTensor, torch.SymInt, torch.UntypedStorage))
assert torch.cuda.Stream and torch.cuda.Event and torch.compiler.allow_in_graph(len) is len
assert torch._C._nn.gelu(torch.zeros(2)).tolist() == [0.0, 0.0]
assert not isinstance(torch.nn.Linear(1, 1), FullyShardedDataParallel)
assert associative_scan(lambda a, b: a + b, torch.ones(3), 0).tolist() == [1.0, 2.0, 3.0]
class Wrapped(torch.nn.Module, DTensor): pass
try:
    ProcessGroupMPI("127.0.0.1", 29500)
except NotImplementedError as error:
    assert "torch.distributed.ProcessGroupMPI: of PyTorch's ways to run over many devices" in str(error)
else:
    raise AssertionError
print("found")
"""


def test_names_that_libraries_import_are_there():
    assert run(IMPORTED) == "found\n"


def test_a_module_that_is_named_as_its_function_does_not_take_its_place():
    run(
        """
import tenfold
tenfold.install_as_torch()
import torch._higher_order_ops.while_loop
from torch._higher_order_ops.while_loop import while_loop
assert torch._higher_order_ops.while_loop is while_loop is tenfold.while_loop
"""
    )


OTHERS = """
import tenfold
tenfold.install_as_torch()
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm, _NormBase
from torch.nn.modules.conv import _ConvNd
from torch.nn.modules.instancenorm import _InstanceNorm
from torch.nn.modules.normalization import LayerNorm
from torch.nn.modules.utils import _pair, _triple
from torch.optim.adamw import AdamW
from torch.optim.lr_scheduler import LambdaLR, _LRScheduler
from torch.serialization import load
from torch.types import Number, _size
from torch.utils.data._utils.collate import default_collate
from torch.utils.data.dataloader import DataLoader
from torch.utils.dlpack import from_dlpack, to_dlpack
assert (_pair(3), _triple([1, 2, 3])) == ((3, 3), (1, 2, 3))
assert isinstance(nn.Conv2d(1, 1, 1), _ConvNd) and isinstance(nn.ConvTranspose1d(1, 1, 1), _ConvNd)
assert issubclass(_BatchNorm, _NormBase) and issubclass(LambdaLR, _LRScheduler)
print("found")
"""


def test_modules_lie_where_other_packages_look_for_them():
    assert run(OTHERS) == "found\n"


def test_private_names_are_imported_and_refused_only_when_they_are_used():
    run(
        """
import tenfold
tenfold.install_as_torch()
import torch
from torch.optim.optimizer import _some_helper
from torch import _another
assert not hasattr(torch, "_another") and not hasattr(torch.optim.optimizer, "_some_helper")
try:
    _some_helper(1)
except torch.UnsupportedError as error:
    assert "torch.optim.optimizer._some_helper" in str(error)
else:
    raise AssertionError
@_another
def decorated():
    return 1
try:
    decorated()
except torch.UnsupportedError:
    pass
else:
    raise AssertionError
"""
    )


def test_names_that_libraries_reach_through_modules_are_there():
    run(
        """
import tenfold
tenfold.install_as_torch()
import torch, functorch, torch.distributed.rpc
assert torch.distributions.normal.Normal is torch.distributions.Normal
assert functorch.vmap is torch.func.vmap
assert "USE_MKL=OFF" in torch.__config__.show()
assert not torch.distributed.rpc.is_available()
assert not hasattr(torch.ops.some_extension, "op")
from torch.autograd.gradcheck import gradcheck
assert torch.autograd.gradcheck is gradcheck and torch.autograd.gradgradcheck is not gradcheck
assert torch.utils.deterministic.fill_uninitialized_memory
assert not torch.profiler.itt.is_available()
lent = torch.utils.dlpack.to_dlpack(torch.ones(2, 3)[:, 1:])
assert torch.utils.dlpack.from_dlpack(lent).sum().item() == 4
import torch._dynamo as dynamo
with dynamo.config.patch({"verbose": True}, error_on_recompile=True):
    assert dynamo.config.verbose and dynamo.config.error_on_recompile
assert not dynamo.config.verbose and not hasattr(dynamo.config, "error_on_recompile")
assert dynamo.config.patch("verbose", True)(lambda: dynamo.config.verbose)()
torch._check(True)
for wrong in (torch.tensor(True), "true", 1):
    try:
        torch._check(wrong)
    except TypeError:
        continue
    raise AssertionError(wrong)
try:
    torch._check_with(ValueError, False, lambda: "no")
except ValueError as error:
    assert str(error) == "no"
"""
    )


def _pytorchs_modules() -> dict[str, list[str]]:
    """The modules of PyTorch's package and what each offers: its `__all__`, or the functions and classes that
    it defines. They are read from the sources, since importing all would take a minute."""
    root = Path(torch.__file__).parent
    modules = {}
    for path in sorted(root.rglob("*.py")):
        *folders, last = path.relative_to(root).with_suffix("").parts
        if {"testing", "include", "bin", "tensorboard"} & set(folders) or last == "__main__":
            continue
        name = ".".join(["torch", *folders, *([] if last == "__init__" else [last])])
        modules[name] = [] if re.search(r"\._|distributed|\.onnx|\.ao\b", name) else _offered(path)
    return modules


def _offered(path: Path) -> list[str]:
    body = ast.parse(path.read_text(encoding="utf-8")).body
    for statement in body:
        match statement:
            case ast.Assign([ast.Name("__all__")], ast.List(names)):
                return [name.value for name in names if isinstance(name, ast.Constant)]
    defined = [node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return [name for name in defined if not name.startswith("_")]


IMPORT_ALL = """
import importlib, json, sys
import tenfold
tenfold.install_as_torch()
for module, names in json.load(sys.stdin).items():
    parent, _, last = module.rpartition(".")
    try:
        exec(f"from {parent} import {last}" if parent else "import torch", {})
        importlib.import_module(module)
    except Exception as error:
        print(module, repr(error)[:80])
        continue
    for name in names:
        try:
            exec(f"from {module} import {name}", {})
        except Exception as error:
            print(module, name, repr(error)[:80])
"""


def test_every_module_and_public_name_of_pytorchs_can_be_imported():
    command = [sys.executable, "-W", "ignore", "-c", IMPORT_ALL]
    modules = json.dumps(_pytorchs_modules())
    done = subprocess.run(command, input=modules, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("", 0), done.stderr


def test_a_name_that_is_not_there_is_refused_at_use_and_denied_to_questions():
    run(
        """
import tenfold
tenfold.install_as_torch()
import torch
from torch.cuda import MemPool
assert not hasattr(torch.cuda, "MemPool") and getattr(torch.cuda, "MemPool", None) is None
for make in (lambda: MemPool(), lambda: torch.cuda.MemPool()):
    try:
        make()
    except tenfold.UnsupportedError as error:
        assert "torch.cuda.MemPool" in str(error)
    else:
        raise AssertionError
try:
    torch.cuda.MemPoool
except AttributeError:
    pass
"""
    )


def test_questions_to_pytorchs_workings_are_answered():
    run(
        """
import tenfold
tenfold.install_as_torch()
import torch
from torch.fx.experimental.proxy_tensor import get_proxy_mode
from torch._guards import detect_fake_mode
from torch._subclasses.fake_tensor import FakeTensor, is_fake
x = torch.ones(2)
assert get_proxy_mode() is None and detect_fake_mode([x]) is None and not is_fake(x)
assert not isinstance(x, FakeTensor) and not torch._C._functorch.is_batchedtensor(x)
assert not torch._C._are_functorch_transforms_active()
active = []
torch.vmap(lambda row: active.append(torch._C._are_functorch_transforms_active()) or row)(x)
assert active == [True]
"""
    )


def test_programs_find_all_optimizers_and_layers_in_the_dicts_of_their_modules():
    found = run(
        "import tenfold; tenfold.install_as_torch(); import torch\n"
        "def kinds(module, base):\n"
        "    return [name for name, value in module.__dict__.items()"
        " if isinstance(value, type) and issubclass(value, base)]\n"
        "print({'Adam', 'SGD', 'LBFGS'} <= {*kinds(torch.optim, torch.optim.Optimizer)})\n"
        "print({'Linear', 'Conv2d', 'LSTM'} <= {*kinds(torch.nn, torch.nn.Module)})"
    )
    assert found.split() == ["True", "True"]


FUNCTORCH = """
import tenfold
tenfold.install_as_torch()
import functorch
from functorch.experimental import functionalize, replace_all_batch_norm_modules_
from torch.fx.experimental.proxy_tensor import make_fx

assert functionalize is functorch.functionalize and make_fx is functorch.make_fx
assert replace_all_batch_norm_modules_ is functorch.replace_all_batch_norm_modules_
try:
    import functorch.nothing
except ImportError:
    print("lacking")
"""


def test_names_of_functorch_are_found_where_programs_look_for_them():
    assert run(FUNCTORCH) == "lacking\n"
