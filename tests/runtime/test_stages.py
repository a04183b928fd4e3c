"""The text of a program at every stage."""

from __future__ import annotations

import pytest

import tenfold as tn
from tenfold.base.errors import ArgumentError
from tenfold.runtime.stages import STAGES


def program():
    x = tn.ones(2, 3).eval()
    return x.tanh() + 1


@pytest.mark.parametrize(
    ("stage", "contents"),
    [
        ("trace", ["==== Trace IR ====", "aten.tanh(", "aten.add.Scalar("]),
        ("flat", ["==== Flat IR ====", "TanhOp("]),
        ("stablehlo", ["==== StableHLO IR ====", "stablehlo.tanh", "func.func @main"]),
        ("torch", ["==== Torch IR ====", "torch.aten.tanh"]),
        ("hlo", ["==== HLO, optimised by XLA ====", "HloModule"]),
    ],
)
def test_every_stage_has_its_title_and_its_ops(stage, contents):
    text = program().show(stage=stage)
    assert text.startswith(contents[0])
    assert [part for part in contents if part not in text] == []


def test_without_a_stage_the_first_three_follow_each_other():
    x = program()
    text = x.show()
    assert text == "\n\n".join(x.show(stage=stage) for stage in STAGES[:3])


def test_source_lines_stand_beside_the_ops_of_a_module():
    text = program().show(stage="stablehlo", source_lines=True)
    (line,) = [line for line in text.splitlines() if "stablehlo.tanh" in line]
    assert "test_stages.py:14" in line


def test_an_unknown_stage_is_refused_with_the_nearest():
    with pytest.raises(ArgumentError, match="no stage 'stablhlo'") as refused:
        program().show(stage="stablhlo")
    assert "stablehlo" in str(refused.value)


def test_only_what_is_on_a_mesh_is_sharded():
    with pytest.raises(ArgumentError, match="is not sharded"):
        program().show(stage="sharding")
