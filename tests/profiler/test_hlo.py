"""Programs of XLA's, read from their text: what each instruction computes, moves and stands for."""

from __future__ import annotations

import pytest

from tenfold.profiler.hlo import Instruction, Program, flops, width

FMHA = "__cudnn$fmhaSoftmax"


def program(*lines: str, before: str = "", head: str = "HloModule step") -> Program:
    body = "\n".join(f"  {line}" for line in lines)
    return Program(f"{head}\n{before}\nENTRY %main (a: f32[2]) -> f32[2] {{\n{body}\n}}\n")


@pytest.mark.parametrize("dtype, bytes", [
    ("pred", 1), ("s4", 1), ("u8", 1), ("bf16", 2), ("f8e4m3fn", 1), ("f32", 4), ("s64", 8), ("c64", 8),
    ("c128", 16), ("token", 0),
])  # fmt: skip
def test_elements_have_widths(dtype, bytes):
    assert width(dtype) == bytes


def test_an_instruction_tells_its_type_operands_lines_and_bytes():
    found = program(
        "%a = f32[4,6]{1,0} parameter(0)",
        "%b = bf16[6]{0} parameter(1)",
        '%c = (f32[4]{0}, s64[4]{0}) custom-call(%a, %b), custom_call_target="x", metadata={op_name="f" '
        'source_file="step.py" source_line=7}',
        'ROOT %d = f32[4]{0} get-tuple-element(%c), index=0, metadata={op_name="a.py:3/tanh;b.py:4/add"}',
    ).instructions()
    assert list(found) == ["a", "b", "c", "d"]
    assert found["c"].arrays == [("f32", (4,)), ("s64", (4,))]
    assert (found["c"].opcode, found["c"].operands, found["c"].lines) == (
        "custom-call",
        ["a", "b"],
        ["step.py:7"],
    )
    assert (found["c"].size, found["c"].numel, found["c"].bytes) == (16 + 32, 4, 48 + 96 + 12)
    assert found["d"].lines == ["a.py:3", "b.py:4"]
    assert [found[name].bytes for name in "abd"] == [0, 0, 0]  # other names for memory


def test_results_that_take_the_memory_of_parameters():
    head = "HloModule step, input_output_alias={ {0}: (2, {}, may-alias), {}: (5, {}, must-alias) }"
    assert program(head=head).aliased == {0: 5}
    head = "HloModule step, input_output_alias={ {0}: (2, {}, may-alias), {3}: (5, {}, must-alias) }"
    assert program(head=head).aliased == {0: 2, 3: 5}


def test_a_fusion_computes_what_is_in_it_and_reductions_inside_do_not_run_by_themselves():
    inside = """
%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %sum = f32[] add(%x, %y)
}

%fused (p: f32[4,6]) -> f32[4] {
  %p = f32[4,6]{1,0} parameter(0)
  %zero = f32[] constant(0)
  %exp = f32[4,6]{1,0} exponential(%p), metadata={source_file="a.py" source_line=3}
  ROOT %total = f32[4]{0} reduce(%exp, %zero), dimensions={1}, to_apply=%add
}

%body (p: f32[4,6]) -> f32[4] {
  %p = f32[4,6]{1,0} parameter(0)
  ROOT %inner = f32[4]{0} fusion(%p), kind=kLoop, calls=%fused
}
"""
    loop = "%c = f32[4]{0} call(%a), to_apply=%body"
    found = program("%a = f32[4,6]{1,0} parameter(0)", loop, before=inside).instructions()
    assert set(found) == {"a", "c", "p", "inner"}
    fusion = found["inner"]
    assert fusion.flops == 24 + 24
    assert fusion.fused == ["exponential", "reduce"]
    assert fusion.lines == ["a.py:3"]
    assert fusion.bytes == 4 * (24 + 4)
    assert (found["c"].flops, found["c"].bytes) == (0, 0)


def weighed(text: str, **operands: str) -> float:
    """The arithmetic of one instruction."""
    parameters = [f"%{name} = {type} parameter({i})" for i, (name, type) in enumerate(operands.items())]
    return program(*parameters, text).instructions()["out"].flops


def test_products_count_two_for_each_pair():
    given = {"a": "f32[2,4,6]{2,1,0}", "b": "f32[2,6,5]{2,1,0}"}
    dot = "%out = f32[2,4,5]{2,1,0} dot(%a, %b), lhs_batch_dims={0}, lhs_contracting_dims={2}"
    assert weighed(dot, **given) == 2 * (2 * 4 * 5) * 6
    for target in ("__cublas$gemm", "__cublas$lt$matmul"):
        call = (
            f'%out = f32[2,4,5]{{2,1,0}} custom-call(%a, %b), custom_call_target="{target}", '
            'backend_config={"dot_dimension_numbers":{"lhs_contracting_dimensions":["2"]}}'
        )
        assert weighed(call, **given) == 2 * (2 * 4 * 5) * 6
    assert weighed("%out = f32[2]{0} dot(%a, %b)", **given) == 0  # of which nothing more is told


def test_convolutions_in_each_direction():
    image, kernel, result = "f32[8,9,9,3]{3,2,1,0}", "f32[5,5,3,16]{3,2,1,0}", "f32[8,5,5,16]{3,2,1,0}"
    expected = 2 * (8 * 5 * 5 * 16) * (5 * 5 * 3)
    labels = "dim_labels=b01f_01io->b01f"
    forward = f"%out = {result} convolution(%a, %b), window={{size=5x5}}, {labels}"
    assert weighed(forward, a=image, b=kernel) == expected
    call = '{} custom-call({}), window={{}}, {}, custom_call_target="__cudnn$conv{}"'
    assert (
        weighed("%out = " + call.format(result, "%a, %b", labels, "Forward"), a=image, b=kernel) == expected
    )
    backward = "%out = " + call.format(image, "%a, %b", labels, "BackwardInput")
    assert weighed(backward.replace("$conv", "$convBackwardInput "), a=result, b=kernel) == expected
    backward = "%out = " + call.format(kernel, "%a, %b", labels, "BackwardFilter")
    assert weighed(backward.replace("$conv", "$convBackwardFilter "), a=image, b=result) == expected
    assert weighed(f"%out = {result} convolution(%a), {labels}", a=image) == 0
    assert weighed(f"%out = {result} convolution(%a, %b)", a=image, b=kernel) == 0


@pytest.mark.parametrize("backward, products", [("", 2), ("Backward", 5)])
@pytest.mark.parametrize("mask, share", [("NO_MASK", 1.0), ("CAUSAL", 0.5)])
def test_attention_counts_its_products_and_half_of_them_where_it_is_causal(mask, share, backward, products):
    # Eight queries and a hundred keys of sixteen numbers, in two batches of four heads.
    queries, keys = "bf16[2,4,8,16]{3,2,1,0}", "bf16[2,4,100,16]{3,2,1,0}"
    call = (
        f'%out = {queries} custom-call(%a, %b), custom_call_target="{FMHA}{backward}", '
        f'backend_config={{"mask_type":"{mask}"}}'
    )
    assert weighed(call, a=queries, b=keys) == 2 * products * share * (2 * 4) * (8 * 100) * 16
    assert weighed(call, a="bf16[8,16]{1,0}", b=keys) == 0
    assert weighed(call, a=queries) == 0


def test_what_moves_data_computes_nothing_and_folds_compute_their_input():
    given = {"a": "f32[4,6]{1,0}", "b": "f32[]"}
    assert weighed("%out = f32[6,4]{0,1} transpose(%a), dimensions={1,0}", **given) == 0
    assert weighed("%out = f32[4,6]{1,0} add(%a, %a)", **given) == 24
    assert weighed("%out = f32[4]{0} reduce(%a, %b), dimensions={1}", **given) == 24
    assert weighed("%out = f32[2,6]{1,0} reduce-window(%a, %b), window={size=2x1}", **given) == 24
    alone = Instruction("r", "reduce", [("f32", ())], [], "", [], [])
    assert flops(alone, []) == 0
