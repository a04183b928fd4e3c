"""The tests in `eight_devices`, each as one of this suite."""

import ast

import pytest

from tests.distributed.conftest import HERE

SLOW = {"checkpoints", "costs", "modules", "pipelining", "shard_map", "training", "uneven"}


def _tests():
    for path in sorted(HERE.glob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                marks = [pytest.mark.slow] if path.stem in SLOW else []
                yield pytest.param(path.stem, node.name, marks=marks, id=f"{path.stem}-{node.name[5:]}")


@pytest.mark.parametrize(("file", "test"), list(_tests()))
def test_on_eight_devices(file, test, on_eight_devices):
    assert on_eight_devices.of(file, test) == ""
