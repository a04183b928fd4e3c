"""The page of a program on a mesh, and its profile: XLA's instructions say which ops they came from."""

import re

import tenfold as tn
from tenfold import nn
from tenfold.distributed.device_mesh import init_device_mesh
from tenfold.distributed.fsdp import fully_shard
from tenfold.distributed.tensor import Shard, distribute_tensor
from tenfold.engines import xla
from tenfold.profiler.hlo import Program
from tenfold.runtime import executables
from tenfold.runtime.stages import placed
from tenfold.trace.collect import collect
from tenfold.trace.lower import lower

SILENT = ("parameter", "constant", "tuple", "get-tuple-element", "partition-id", "bitcast")


def training():
    mesh = init_device_mesh("cpu", (8,), mesh_dim_names=("data",))
    model = fully_shard(nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 8)), mesh=mesh)
    optimizer = tn.optim.AdamW(model.parameters(), lr=0.01)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step, distribute_tensor(tn.ones(16, 8), mesh, [Shard(0)])


def source_lines(explanation, links):
    """The numbers of the source lines of these FlatIR ops."""
    source, nodes = explanation.stage("source"), {node for op in links for node in explanation.ops[op].nodes}
    return {
        number for number, own in zip(source.numbers, source.links, strict=True) if nodes.intersection(own)
    }


def test_every_instruction_that_computes_links_to_ops():
    explanation = tn.explain(*training())
    stage = explanation.stage("hlo")
    entry = next(i for i, line in enumerate(stage.lines) if line.startswith("ENTRY"))
    opcodes = [re.match(r"\s+(?:ROOT )?%\S+ = (?:\(.*?\)|\S+) ([\w-]+)\(", line) for line in stage.lines]
    computing = [i for i, found in enumerate(opcodes) if i > entry and found and found[1] not in SILENT]
    assert len(computing) > 30
    assert [stage.lines[i] for i in computing if not stage.links[i]] == []
    gathered = [i for i in computing if "all-gather" in opcodes[i][1]]
    reduced = [i for i in computing if "reduce-scatter" in opcodes[i][1] or "all-reduce" in opcodes[i][1]]
    assert gathered and reduced
    for i in gathered:
        assert all("redistribute" in line for line in trace_lines(explanation, stage.links[i])[:1])
    assert explanation.times.others < 0.5 * explanation.times.run


def trace_lines(explanation, links):
    trace, nodes = explanation.stage("trace"), {explanation.ops[op].nodes[0] for op in links}
    return [line for line, own in zip(trace.lines, trace.links, strict=True) if nodes.intersection(own)]


def test_links_equal_the_lines_in_the_metadata():
    mesh = init_device_mesh("cpu", (8,), mesh_dim_names=("data",))
    x = distribute_tensor(tn.ones(16, 8), mesh, [Shard(0)])
    y = (x @ x.T).tanh()
    z = (
        y.sum()
        + y.amax()
    )  # fmt: skip
    value = z.current()
    trace, _ = collect([value])
    explanation = tn.explain.explain_trace(trace, value.device, "sum")
    raw = executables.compile_apart(lower(trace), placed(trace, value.device)).hlo().rstrip().split("\n")
    stage = explanation.stage("hlo")
    assert len(raw) == len(stage.lines)
    told = 0
    for line, links in zip(raw, stage.links, strict=True):
        for file, number in re.findall(r'["; ]([^"; ]*):(\d+)/\w+(?=[";])', line):
            told += 1
            assert file == __file__ and int(number) in source_lines(explanation, links), line
    assert told > 5


def test_profiles_tell_the_lines_of_kernels():
    step, x = training()
    before = set(xla.executables())
    tn.compile(step)(x).item()
    texts = [program.hlo() for program in set(xla.executables()) - before]
    kernels = Program(max(texts, key=len)).instructions().values()
    lines = {line for kernel in kernels for line in kernel.lines}
    first = step.__code__.co_firstlineno
    assert lines == {
        f"{__file__}:{first + 2}",
        f"{__file__}:{first + 4}",
    }  # gradients belong to the forward line


def test_text_tells_the_lines_of_ops():
    step, x = training()
    text = tn.show(step, x, stage="stablehlo", source_lines=True)
    assert "sdy.sharding" in text and "loc(" not in text
    assert f"// explaining.py:{step.__code__.co_firstlineno + 2}" in text
