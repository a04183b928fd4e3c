"""`import tenfold` is light: it loads no PyTorch and no engine but tier 0. How long: `benchmarks/core.py`."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tenfold

PACKAGE = Path(tenfold.__file__).parent
# numpy is what it may load; these are not, but for those of Python's library that numpy loads.
HEAVY = (
    "jaxlib", "jax", "torch", "torch_mlir", "iree", "rich", "scipy", "ml_dtypes", "dataclasses", "inspect",
    "asyncio", "json", "pathlib", "random", "shutil", "fractions", "traceback", "signal",
)  # fmt: skip


def run(code: str, *options: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    for name in ("PYTHONDONTWRITEBYTECODE", "TENFOLD_TIER"):
        environment.pop(name, None)
    command = [sys.executable, *options, "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def test_it_loads_no_engine():
    told = f"import sys; print([each for each in {HEAVY} if each in sys.modules])"
    loaded, anyway = eval(run(f"import tenfold; {told}")), eval(run(f"import numpy; {told}"))
    assert set(loaded) <= set(anyway)
    assert not set(loaded) & set(HEAVY[:8])


def test_a_first_result_loads_neither_a_compiler_nor_what_only_gradients_need():
    code = (
        "import tenfold as tn, sys; (tn.ones(2, 3) @ tn.ones(3, 2)).tanh().sum().item(); "
        "print([name for name in sys.modules if name.startswith('tenfold.')])"
    )
    unused = {"compiler", "engines.sharded", "engines.xla.door", "flat.jvp", "mlir.stablehlo", "nn"}
    assert not {f"tenfold.{name}" for name in unused} & set(eval(run(code)))


def test_recording_a_program_loads_no_engine_either():
    code = (
        "import tenfold as tn, sys; (tn.ones(2, 3) @ tn.rand(3)).tanh().sum(); print('jaxlib' in sys.modules)"
    )
    assert run(code).strip() == "False"


def test_it_works_where_assertions_are_left_out():
    code = "import tenfold as tn; print((tn.ones(2, dtype=tn.int8) + 1.5).tanh().dtype)"
    assert run(code, "-O").strip() == "tenfold.float32"


def test_what_type_checkers_are_told_is_loaded_late():
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    (block,) = [each for each in tree.body if isinstance(each, ast.If)]
    told = {
        alias.name: each.module.removeprefix("tenfold").removeprefix(".")
        for each in block.body
        for alias in each.names
    }
    modules = dict.fromkeys(tenfold._PACKAGES, "") | tenfold.compat.names.MODULE_OF
    assert told.items() <= modules.items()


def test_a_name_that_is_not_there_is_explained():
    with pytest.raises(AttributeError) as raised:
        tenfold.sigmod  # noqa: B018
    assert raised.value.message == "tenfold has no 'sigmod'"
    assert "help: did you mean sigmoid?" in str(raised.value)


def test_what_documents_name_is_there_at_once():
    code = "import tenfold; print(tenfold.serialize.trusting_files.__name__)"
    assert run(code).strip() == "trusting_files"
