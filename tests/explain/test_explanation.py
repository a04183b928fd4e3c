"""The data behind the page: each line's links are what the compilers recorded."""

import re

import pytest

import tenfold as tn
from tenfold.base.errors import ArgumentError, TenfoldError
from tenfold.distributed.device_mesh import init_device_mesh
from tenfold.distributed.tensor import Shard, distribute_tensor
from tenfold.engines import xla
from tenfold.explain import measure
from tenfold.explain.explanation import explain_trace
from tenfold.mlir import stablehlo, torch_dialect
from tenfold.runtime import executables
from tenfold.runtime.calls import record_call
from tenfold.trace.collect import collect
from tenfold.trace.lower import lower
from tests.explain import programs

LOCATION = re.compile(r'loc\("([^"]+)":(\d+):\d+\)')
ALIAS = re.compile(r'^(#loc\d*) = loc\("[^"]+":(\d+):\d+\)$', re.M)


@pytest.fixture(scope="module", params=programs.FUNCTIONS, ids=lambda each: each.__name__)
def explained(request):
    """A program's Trace, and its explanation."""
    function = request.param
    call = record_call(function, (programs.inputs_of(function),), {}, tn.Tensor)
    trace = call.recording.trace
    return trace, explain_trace(trace, trace.device, function.__name__)


def lines_of(explanation, nodes):
    """The numbers of the source lines that the page lights for these nodes."""
    source = explanation.stage("source")
    return {
        number
        for number, linked in zip(source.numbers, source.links, strict=True)
        if set(linked) & set(nodes)
    }


def test_every_node_lights_the_lines_that_it_was_recorded_at(explained):
    trace, explanation = explained
    for place, node in enumerate(trace.nodes):
        expected = set(range(node.source.line, node.source.end_line + 1))
        assert lines_of(explanation, [place]) == expected


def test_every_flat_op_came_from_the_node_whose_line_it_carries(explained):
    trace, explanation = explained
    plain = lower(trace)
    assert len(plain.ops) == len(explanation.ops)
    for op, facts in zip(plain.ops, explanation.ops, strict=True):
        assert type(op).__name__ == facts.op
        assert facts.nodes, "an op without provenance"
        if op.source is not None:
            assert op.source.line in lines_of(explanation, facts.nodes[:1])


def test_stablehlo_lines_link_to_ops_of_the_line_in_their_location(explained):
    trace, explanation = explained
    text = stablehlo.emit(lower(trace)).text(locations=True)
    aliases = dict(ALIAS.findall(text))
    raw = [line for line in text.rstrip().split("\n") if not line.startswith("#loc")]
    stage = explanation.stage("stablehlo")
    assert len(raw) == len(stage.lines)
    located = 0
    for line, linked in zip(raw, stage.links, strict=True):
        found = re.findall(r" loc\((#loc\d*)\)$", line)
        if found and found[0] in aliases and "func.func" not in line:
            located += 1
            nodes = [explanation.ops[op].nodes[0] for op in linked]
            assert int(aliases[found[0]]) in lines_of(explanation, nodes), line
    assert located >= sum(op.op != "Check" for op in explanation.ops) // 2


def test_optimised_instructions_link_to_ops_of_the_line_in_their_metadata(explained):
    trace, explanation = explained
    raw = executables.compile_apart(lower(trace), trace.device).hlo().rstrip().split("\n")
    stage = explanation.stage("hlo")
    assert len(raw) == len(stage.lines)
    for line, shown, linked in zip(raw, stage.lines, stage.links, strict=True):
        found = re.search(r"source_line=(\d+)", line)
        assert re.sub(r",? metadata=\{.*?\}", "", line)[:400] == shown[:400]
        if found:
            nodes = {node for op in linked for node in explanation.ops[op].nodes[:1]}
            assert int(found[1]) in lines_of(explanation, nodes), line


def convolutions(explanation):
    """The ops that each convolution of the optimised program links to, in order, and those of FlatIR."""
    stage = explanation.stage("hlo")
    linked = [
        list(links) for line, links in zip(stage.lines, stage.links, strict=True) if " convolution(" in line
    ]
    return linked, [[i] for i, op in enumerate(explanation.ops) if op.op == "Convolution"]


def test_convolutions_that_xla_writes_anew_link_to_the_ops_that_they_came_from():
    layers = [tn.nn.Conv2d(4, 4, 3, padding=1) for _ in range(3)]

    def chain(x):
        for layer in layers:
            x = layer(x).tanh()
        return x

    linked, made = convolutions(tn.explain(chain, tn.ones(1, 4, 6, 6)))
    assert linked == made and len(made) == 3

    def gradients(x):
        chain(x).sum().backward()
        return [layer.weight.grad for layer in layers]

    explanation = tn.explain(gradients, tn.ones(1, 4, 6, 6))
    linked, made = convolutions(explanation)
    assert sorted(linked) == made and len(made) == 8
    assert explanation.times.others < 0.1 * explanation.times.run


def test_the_torch_dialect_links_to_the_nodes_that_it_spells(explained):
    trace, explanation = explained
    stage = explanation.stage("torch")
    try:
        text = torch_dialect.emit(trace).text(locations=True)
    except TenfoldError as error:
        assert error.message in stage.absent
        return
    aliases = dict(ALIAS.findall(text))
    raw = [line for line in text.rstrip().split("\n") if not line.startswith("#loc")]
    for line, linked in zip(raw, stage.links, strict=True):
        found = re.findall(r" loc\((#loc\d*)\)$", line)
        if found and found[0] in aliases and "func.func" not in line:
            assert int(aliases[found[0]]) in lines_of(explanation, linked), line


def test_a_line_in_a_loop_keeps_its_passes_apart():
    explanation = tn.explain(programs.loop, tn.ones(3, 4))
    trace = explanation.stage("trace")
    first, second, _ = (i for i, line in enumerate(trace.lines) if "aten.mul" in line)
    lit = explanation.lit("trace", first)
    assert lit["trace"] == [first] and second not in lit["trace"]
    assert len(lit["source"]) == 1
    assert not set(lit["flat"]) & set(explanation.lit("trace", second)["flat"])


def test_a_forward_line_lights_its_backward_ops_too():
    explanation = tn.explain(programs.train, tn.ones(3, 4))
    source = explanation.stage("source")
    line = next(i for i, text in enumerate(source.lines) if "(linear(x) ** 2)" in text)
    backward = next(i for i, text in enumerate(source.lines) if text.strip() == "loss.backward()")
    products = [i for i, text in enumerate(explanation.stage("flat").lines) if "DotGeneralOp" in text]
    assert set(products) <= set(explanation.lit("source", line)["flat"])
    assert len(set(products) & set(explanation.lit("source", backward)["flat"])) == len(products) - 1


def test_modules_are_told_apart_by_their_path_and_call():
    class Block(tn.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = tn.nn.BatchNorm1d(4)
            self.act = tn.nn.Tanh()

        def forward(self, x):
            return self.act(self.norm(self.act(x)))

    explanation = tn.explain(Block(), tn.ones(3, 4))
    modules = {node.module for node in explanation.nodes}
    assert modules == {"Block.norm", "Block.act", "Block.act#2"}


def test_memory_counts_what_is_alive():
    def chain(x):
        a = x @ x  # arguments 40 kB, a 40 kB
        b = a @ x  # a and b
        return b @ x  # b and the result: a is gone

    explanation = tn.explain(chain, tn.ones(100, 100))
    assert explanation.memory.arguments == 40_000
    assert max(explanation.memory.live) == 120_000
    assert explanation.held >= 80_000


def test_every_buffer_that_makes_the_peak_is_told():
    explanation = tn.explain(lambda x: [x @ (x + i) for i in range(70)], tn.ones(100, 100))
    memory = explanation.memory
    assert len(memory.holders) >= 70
    assert memory.arguments + sum(size for _, size in memory.holders) == max(memory.live)


def test_measured_times_add_up_to_the_run():
    def work(x):
        for _ in range(20):
            x = (x @ x).tanh()
        return x

    for _ in range(3):  # a busy machine may stop a run between two instructions
        times = tn.explain(work, tn.ones(500, 500)).times
        assert sum(times.ops) + times.others + times.waiting == pytest.approx(times.run)
        if sum(times.ops) > 0.9 * times.run:
            return
    pytest.fail(f"ops took {sum(times.ops)} s of {times.run} s")


def event(instruction, start, end, run=1):
    return xla.TraceEvent("", "", False, start, end - start, instruction, "", 0, run)


def test_instructions_that_run_at_once_share_the_time():
    events = [
        event("while.1", 0, 100),
        event("dot.1", 10, 50),
        event("dot.1", 20, 60),  # in another thread
        event("add.1", 40, 80),
        event("tanh.1", 120, 130),
    ]
    took = {name: round(seconds * 1e9, 6) for name, seconds in measure._took(events).items()}
    assert took == {"while.1": 30, "dot.1": 40, "add.1": 30, "tanh.1": 10}


def test_arithmetic_of_a_product_is_two_steps_for_each_term():
    explanation = tn.explain(lambda x: x @ x, tn.ones(10, 10))
    assert sum(op.cost.flops for op in explanation.ops) == 2 * 10**3


def test_explaining_changes_nothing():
    before = programs.linear.weight.detach().clone().eval().tolist()
    tn.explain(programs.train, tn.ones(3, 4))
    assert programs.linear.weight.tolist() == before
    assert programs.linear.weight.grad is None


def test_what_is_no_function_is_refused():
    with pytest.raises(ArgumentError, match="takes a function, not int"):
        tn.explain(3)


def test_a_stage_that_is_not_there_is_named():
    with pytest.raises(ArgumentError, match="there is no stage 'hl'"):
        tn.explain(lambda x: x + 1, tn.ones(2)).stage("hl")


def test_on_a_mesh_the_placement_of_each_value_is_a_stage():
    mesh = init_device_mesh("cpu", (1,), mesh_dim_names=("data",))
    x = distribute_tensor(tn.ones(8, 4), mesh, [Shard(0)])
    value = (x * 2).tanh().current()
    explanation = explain_trace(collect([value])[0], value.device, "tanh")
    stage = explanation.stage("sharding")
    assert any("{data}" in line for line in stage.lines)
    line = next(i for i, text in enumerate(stage.lines) if text.startswith("t1:"))
    (lit,) = explanation.lit("sharding", line)["trace"]
    assert "aten.tanh" in explanation.stage("trace").lines[lit]
    assert any("tanh(" in line for line in explanation.stage("hlo").lines)
    assert explanation.held > 0 and explanation.times is not None


def test_arguments_on_a_mesh_are_placed_as_they_are():
    mesh = init_device_mesh("cpu", (1,), mesh_dim_names=("data",))
    x = distribute_tensor(tn.ones(8, 4), mesh, [Shard(0)])
    for function in (lambda x: x + 1, tn.compile(lambda x: x + 1)):
        explanation = tn.explain(function, x)
        assert any("{data}" in line and "an input" in line for line in explanation.stage("sharding").lines)
        assert any("sdy.sharding" in line for line in explanation.stage("stablehlo").lines)
        lit = explanation.lit("sharding", 1)["stablehlo"]
        assert "stablehlo.add" in explanation.stage("stablehlo").lines[lit[-1]]


def test_the_page_is_named_where_no_browser_is_found(monkeypatch, capsys):
    monkeypatch.setattr("webbrowser.open", lambda address: False)
    tn.explain(tn.sin, tn.ones(2)).open()
    assert "no browser was found: open file:///" in capsys.readouterr().err
