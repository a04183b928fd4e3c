"""In a virtual environment that has never seen PyTorch: models to the torch dialect, StableHLO and linalg,
and to results on XLA and IREE."""

from __future__ import annotations

import os
import site
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
# What an installation of tenfold[torch-dialect,iree] brings.
PACKAGES = ("numpy", "numpy.libs", "ml_dtypes", "jaxlib", "torch_mlir", "iree", "rich", "scipy", "scipy.libs")
ABSENT = ("torch", "jax", "functorch", "torchgen")


@pytest.fixture(scope="module")
def python(tmp_path_factory) -> str:
    """The interpreter of a new virtual environment that has these packages and no other."""
    folder = tmp_path_factory.mktemp("without")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (packages,) = (folder / "lib").glob("python*/site-packages")
    here = Path(next(each for each in site.getsitepackages() if Path(each, "torch").is_dir()))
    names = [name for name in PACKAGES if (here / name).exists()]
    metadata = [
        each.name
        for each in here.glob("*.dist-info")
        if each.name.startswith(("torch_mlir-", "iree_base_", "jaxlib-", "numpy-", "rich-"))
    ]
    for name in [*names, *metadata, "markdown_it", "mdurl", "pygments"]:
        (packages / name).symlink_to(here / name)
    (packages / "tenfold.pth").write_text(str(ROOT / "src"))
    return str(folder / "bin" / "python")


def run(python: str, code: str, tmp_path: Path) -> str:
    settings = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    settings["TENFOLD_CACHE_DIR"] = ""
    done = subprocess.run(
        [python, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=settings, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("package", ABSENT)
def test_pytorch_cannot_be_imported_there(python, package, tmp_path):
    code = f"import importlib.util; print(importlib.util.find_spec({package!r}))"
    assert run(python, code, tmp_path) == "None\n"


BLOCK = """
from tenfold.mlir import module_context
from tenfold import nn, ones
with module_context() as module:
    x = ones(10); lin = nn.Linear(10, 10); y = lin(x)
print(module)
"""


def test_a_block_prints_its_module(python, tmp_path):
    printed = run(python, BLOCK, tmp_path)
    assert "torch.aten.linear" in printed and printed.count("torch.vtensor.literal") == 2


MODELS = f"""
import sys
sys.path.insert(0, {str(ROOT / "examples" / "models")!r})
import tenfold as torch
from gpt2 import gpt2
from lstm_lm import LSTMLanguageModel
from mobilenet_v3 import SMALL, MobileNetV3
from resnet import Bottleneck, ResNet
from unet import UNet
from vit import vit_b_16

image, tokens = torch.rand(1, 3, 32, 32), torch.zeros(2, 7, dtype=torch.int64)
models = [
    (ResNet(Bottleneck, (1, 1, 1, 1), classes=5, width=4), image),
    (MobileNetV3(SMALL[:2], hidden=16, classes=5, width=0.25), image),
    (UNet(classes=3, width=2), image),
    (vit_b_16(size=32, patch=16, layers=1, heads=2, width=16, hidden=32, classes=5), image),
    (gpt2(vocabulary=40, context=16, width=24, layers=1, heads=3), tokens),
    (LSTMLanguageModel(40, width=12, hidden=12), tokens),
]
for model, x in models:
    model.eval()
    for dialect in ("torch", "stablehlo", "linalg"):
        exported = torch.export(model, (x,), dialect=dialect, parameters="literals")
        assert "func.func @main" in exported.text()
    print(type(model).__name__)
"""


def test_models_are_written_in_every_dialect(python, tmp_path):
    printed = run(python, MODELS, tmp_path).split()
    assert printed == ["ResNet", "MobileNetV3", "UNet", "VisionTransformer", "GPT2", "LSTMLanguageModel"]


RUN = """
import numpy as np
import tenfold as torch
from tenfold import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 3)).eval()
x = torch.rand(2, 4)
expected = model(x).detach().numpy()
options = {"parameters": "literals", "dynamic": {0: {0: "n"}}}
on_iree = torch.load_vmfb(torch.export(model, (x,), **options).build())
on_xla = torch.load_stablehlo(torch.export(model, (x,), dialect="stablehlo", **options).portable())
for run in (on_iree, on_xla):
    np.testing.assert_allclose(run(x).numpy(), expected, rtol=1e-5)
    print(run)
"""


def test_a_model_runs_on_xla_and_iree(python, tmp_path):
    printed = run(python, RUN, tmp_path)
    assert printed.splitlines() == [
        "<BuiltModule: (f32[n,4]) -> (f32[n,3])>",
        "<LoadedModule: (f32[?,4]) -> (f32[?,3])>",
    ]
