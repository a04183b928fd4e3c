"""The three diffs of docs/adding-an-op.md: each touches one file, and its op is behind every door."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tenfold.ops.table import DEFAULTS

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "adding-an-op.md").read_text(encoding="utf-8")
DIFFS = re.findall(r"```diff\n(.*?)```", PAGE, re.DOTALL)

PYTHON = """
import numpy as np, tenfold as tn
from tenfold.ops.table import TABLE
for name in ("special_entr", "glu_jvp", "channel_shuffle"):
    TABLE.pop(name, None)
for place, name in ((tn.special, "entr"), (tn, "channel_shuffle")):
    delattr(place, name)
import added
x = tn.tensor([[0.5, 1.0, 2.0, 3.0]])
images = tn.arange(12.0).reshape(1, 6, 2)
entr = tn.special.entr
jvp = lambda x: tn.ops.aten.glu_jvp(tn.ops.aten.glu(x, 1), x, x, 1)
shuffle = lambda x: tn.channel_shuffle(x, 2)
"""
DOORS = {
    "Python": """
np.testing.assert_allclose(entr(x).numpy(), -x.numpy() * np.log(x.numpy()), rtol=1e-6)
a, b = np.split(x.numpy(), 2, 1); gate = 1 / (1 + np.exp(-b))
np.testing.assert_allclose(jvp(x).numpy(), a * gate + a * gate * (1 - gate) * b, rtol=1e-5)
assert shuffle(images)[0, :, 0].tolist() == [0, 6, 2, 8, 4, 10]
assert "-self * log(self)" in entr.__doc__
""",
    "gradients": """
gradient = tn.func.grad(lambda x: entr(x).sum())(x)
np.testing.assert_allclose(gradient.numpy(), -1 - np.log(x.numpy()), rtol=1e-6)
assert tn.func.grad(lambda x: jvp(x).sum())(x).shape == (1, 4)
assert tn.func.grad(lambda x: (shuffle(x) * images).sum())(images).shape == images.shape
""",
    "vmap": """
for function, value in ((entr, x), (jvp, x), (shuffle, images)):
    batch = tn.stack([value, value + 1])
    expected = np.stack([function(each).numpy() for each in batch])
    np.testing.assert_allclose(tn.vmap(function)(batch).numpy(), expected, rtol=1e-5)
""",
    "compile": """
for function, value in ((entr, x), (jvp, x), (shuffle, images)):
    np.testing.assert_allclose(tn.compile(function)(value).numpy(), function(value).numpy(), rtol=1e-6)
""",
    "the torch dialect": """
calls = {"special_entr": (entr, x), "glu_jvp": (jvp, x), "channel_shuffle": (shuffle, images)}
for name, (function, value) in calls.items():
    assert f"torch.aten.{name}" in str(tn.export(function, (value,), dialect="torch"))
""",
    "the C description": """
from tenfold.capi import needs
from tenfold.capi.describe import describe
from tenfold.capi.locate import find_libtorch
functions = {each.name for each in describe(find_libtorch()).functions}
assert {"tn_special_entr", "tn_glu_jvp", "tn_channel_shuffle"} <= functions
assert needs.needs_of(find_libtorch().schemas)["aten::channel_shuffle.out"] == "groups > 0"
""",
    "Purple": """
from tenfold.purple.names import is_primitive
from tenfold.purple.interpret import Session
assert all(map(is_primitive, ("tensor-special-entr", "tensor-glu-jvp", "tensor-channel-shuffle")))
Session().run_text("(print (tensor-special-entr (tensor '(1.0))))", "doors.purple")
""",
    "R": """
from tenfold.capi.bindings_r import operators, r_source
from tenfold.capi.describe import describe
from tenfold.capi.locate import find_libtorch
source = r_source(operators(describe(find_libtorch()).functions))
assert all(f"torch_{name} <- function(" in source for name in ("special_entr", "glu_jvp", "channel_shuffle"))
""",
    "stubs": """
from tenfold.command import stubs
text = stubs.module_text("tenfold.special")
assert "def entr(input: Tensor, *, out: Tensor | None = None) -> Tensor:" in text
""",
}


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A package with one module for each diff: the lines around what is added are its imports."""
    folder = tmp_path_factory.mktemp("package")
    (folder / "added").mkdir()
    for i, diff in enumerate(DIFFS):
        lines = [line[1:] for line in diff.splitlines() if line[:1] in " +" and not line.startswith("+++")]
        (folder / "added" / f"op{i}.py").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "added" / "__init__.py").write_text("from added import op0, op1, op2\n", encoding="utf-8")
    return folder


def test_each_of_three_ops_touches_one_file():
    assert [diff.count("\n+++ b/") for diff in DIFFS] == [1, 1, 1]
    files = [re.search(r"\+\+\+ b/(\S+)", diff)[1] for diff in DIFFS]
    assert all(name.startswith("src/tenfold/ops/") and (ROOT / name).exists() for name in files)


@pytest.mark.parametrize("door", DOORS)
def test_the_added_ops_are_behind_the_door_of(door, package):
    program = PYTHON + DOORS[door]
    done = subprocess.run([sys.executable, "-c", program], cwd=package, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


def test_the_page_names_every_fact_of_a_row():
    facts = PAGE.split("## The facts of a row")[1].split("\n## ")[0]
    assert set(DEFAULTS) <= set(re.findall(r"`(\w+)`", facts))
