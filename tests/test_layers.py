"""The laws about imports hold for the package; the checker sees each of them broken in a made-up one."""

from pathlib import Path

import pytest

from tools.layers import DOORS, check, main

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "src"


def test_every_import_of_the_package_obeys_the_laws():
    assert [str(problem) for problem in check(SOURCES)] == []


@pytest.fixture
def problems(tmp_path):
    """Writes a package of the given files and returns what the checker says of it."""

    def check_files(files: dict[str, str]) -> list[str]:
        for name, text in files.items():
            path = tmp_path / "tenfold" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        found = check(tmp_path)
        return [f"{one.path.relative_to(tmp_path / 'tenfold')}:{one.line}: {one.message}" for one in found]

    return check_files


def test_downward_imports_pass(problems):
    files = {
        "__init__.py": "from tenfold.base import dtypes\nfrom tenfold.tensor import Tensor\n",
        "command/cli.py": "import tenfold\n\ndef main():\n    from tenfold.command import listing\n",
        "command/listing.py": "import rich\n",
        "tensor.py": "from tenfold.runtime.evaluate import evaluate\nclass Tensor: ...\n",
        "runtime/evaluate.py": "def evaluate():\n    from tenfold.engines import xla\n    import json\n",
        "engines/xla/door.py": "import jaxlib\nfrom ..mlir import stablehlo\n",
        "mlir/stablehlo.py": "def emit():\n    import jaxlib.mlir.ir\n",
        "base/dtypes.py": "import numpy\nfrom .errors import DTypeError\n",
        "base/errors.py": "class DTypeError(TypeError): ...\n",
    }
    assert problems(files) == []


def test_an_upward_import_is_found(problems):
    files = {"flat/ops.py": "\nfrom tenfold.trace.graph import Node\n", "trace/graph.py": ""}
    assert problems(files) == [
        "flat/ops.py:2: tenfold.flat.ops imports tenfold.trace.graph, which lies above it"
    ]


def test_a_relative_upward_import_is_found(problems):
    assert problems({"flat/__init__.py": "from .. import tensor\n", "tensor.py": ""}) == [
        "flat/__init__.py:1: tenfold.flat imports tenfold.tensor, which lies above it"
    ]


def test_an_upward_import_for_types_alone_is_found(problems):
    text = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from tenfold.tensor import Tensor\n"
    assert problems({"ops/table.py": text, "tensor.py": ""}) == [
        "ops/table.py:3: tenfold.ops.table imports tenfold.tensor, which lies above it"
    ]


def test_a_name_of_the_front_door_lies_above_the_rest(problems):
    assert problems({"__init__.py": "", "tensor.py": "from tenfold import ones\n"}) == [
        "tensor.py:1: tenfold.tensor imports tenfold, which lies above it"
    ]


def test_a_module_without_a_layer_is_found(problems):
    assert problems({"helpers.py": ""}) == [
        "helpers.py:1: tenfold.helpers is in no layer: give it one in tools/layers.py"
    ]


def test_an_import_inside_a_function_is_found(problems):
    text = "class Tensor:\n  def numpy(self):\n    from tenfold.base.dtypes import int8\n    import numpy\n"
    assert problems({"tensor.py": text, "base/dtypes.py": ""}) == [
        "tensor.py:3: tenfold.base.dtypes imported inside a function: move it to the top of the file",
        "tensor.py:4: numpy imported inside a function: move it to the top of the file",
    ]


def test_import_module_is_an_import_and_must_name_what_it_imports(problems):
    text = "from importlib import import_module\nimport_module('tenfold.nn')\nimport_module('ten' + 'fold')\n"
    assert problems({"tensor.py": text, "nn/__init__.py": ""}) == [
        "tensor.py:2: tenfold.tensor imports tenfold.nn, which lies above it",
        "tensor.py:3: import_module of a computed name: write the import out",
    ]


def test_a_cycle_among_the_modules_of_a_package_is_found(problems):
    files = {
        "flat/grad.py": "from tenfold.flat import ops\n",
        "flat/ops.py": "import os\nfrom tenfold.flat.grad import pullback\n",
    }
    assert problems(files) == [
        "flat/grad.py:1: import cycle: tenfold.flat.grad -> tenfold.flat.ops -> tenfold.flat.grad"
    ]


def test_late_imports_make_no_cycle_but_point_downward(problems):
    block = "with late_imports(__name__) as late:\n    from {} import {} as {}\n"
    files = {
        "nn/__init__.py": block.format("tenfold.nn.linear", "Linear", "Linear"),
        "nn/linear.py": "from tenfold.nn import Linear\n",
        "flat/__init__.py": block.format("tenfold.tensor", "Tensor", "Tensor"),
        "tensor.py": "",
    }
    assert problems(files) == ["flat/__init__.py:2: tenfold.flat imports tenfold.tensor, which lies above it"]


def test_a_cycle_among_the_packages_of_a_layer_is_found(problems):
    files = {
        "nn/linear.py": "import tenfold.optim.sgd\n",
        "nn/init.py": "",
        "optim/adam.py": "import tenfold.nn.init\n",
        "optim/sgd.py": "",
    }
    assert problems(files) == ["nn/linear.py:1: import cycle: nn -> optim -> nn"]


@pytest.mark.parametrize("package", DOORS)
def test_only_its_door_imports_a_package_without_promises(problems, package):
    (found,) = problems({"runtime/evaluate.py": f"def run():\n    import {package}.parts\n"})
    assert found.startswith(f"runtime/evaluate.py:2: tenfold.runtime.evaluate imports {package}: only ")


def test_the_command_reports_problems_and_fails(tmp_path, capsys):
    (tmp_path / "tenfold" / "base").mkdir(parents=True)
    (tmp_path / "tenfold" / "base" / "dtypes.py").write_text("import tenfold.tensor\n")
    assert main(tmp_path) == 1
    assert "tenfold/base/dtypes.py:1: tenfold.base.dtypes imports tenfold.tensor" in capsys.readouterr().out


def test_the_command_fails_where_there_is_nothing_to_check(tmp_path, capsys):
    assert main(tmp_path) == 1
    assert "no module of tenfold" in capsys.readouterr().out
