"""The memory that a compiled program holds while it runs, from its text."""

from __future__ import annotations

from tenfold.profiler.hlo import Program
from tenfold.profiler.memory import Held, liveness

STEP = """HloModule m, is_scheduled=true{aliased}

ENTRY %main (a: f32[8,4], b: f32[4]) -> (f32[4], f32[8,4]) {{
  %a = f32[8,4]{{1,0}} parameter(0)
  %b = f32[4]{{0}} parameter(1)
  %wide = f32[8,4]{{1,0}} broadcast(%b), dimensions={{1}}, metadata={{source_file="a.py" source_line=3}}
  %new = f32[8,4]{{1,0}} add(%a, %wide)
  %zero = f32[] constant(0)
  %sum = f32[4]{{0}} reduce(%new, %zero), dimensions={{0}}, to_apply=%add
  ROOT %tuple = (f32[4]{{0}}, f32[8,4]{{1,0}}) tuple(%sum, %new)
}}
"""


def test_arrays_are_held_from_where_they_are_made_to_their_last_use():
    memory = liveness(Program(STEP.format(aliased="")))
    inputs = 128 + 16
    assert memory.timeline == {
        "a": inputs,
        "b": inputs,
        "wide": inputs + 128,
        "new": inputs + 256,
        "zero": inputs + 128 + 4,
        "sum": inputs + 128 + 4 + 16,
        "tuple": inputs + 128 + 16,
    }
    assert memory.peak == inputs + 256
    assert memory.holders == [
        Held(128, "a", ""),
        Held(128, "wide", "a.py:3"),
        Held(128, "new", ""),
        Held(16, "b", ""),
    ]


def test_a_result_in_the_memory_of_a_parameter_holds_nothing_more():
    aliased = ", input_output_alias={ {1}: (0, {}, may-alias) }"
    memory = liveness(Program(STEP.format(aliased=aliased)))
    inputs = 128 + 16
    assert memory.timeline["new"] == inputs + 128
    assert memory.timeline["tuple"] == inputs + 16
    assert memory.peak == inputs + 128


def test_a_program_of_nothing_holds_nothing():
    assert liveness(Program("HloModule m\n")) == ({}, 0, [])
