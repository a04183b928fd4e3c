"""Programs of the Trace as FlatIR functions."""

from __future__ import annotations

import tenfold as tn
from tenfold.base.meshes import Mesh, MeshDevice
from tenfold.flat.composite import Composite
from tenfold.flat.structured import CustomCall
from tenfold.ops import tile_kernels
from tenfold.runtime.calls import record_call
from tenfold.trace.collect import Trace, collect
from tenfold.trace.lower import lower


def program(*tensors: tn.Tensor) -> Trace:
    return collect([each.current() for each in tensors])[0]


def data(*values: float) -> tn.Tensor:
    return tn.tensor(list(values))


def test_a_program_lowers_to_a_function_of_its_inputs():
    x, y = tn.tensor([[1.0, 2.0]]), tn.tensor([[3.0], [4.0]])
    found = program((x @ y).tanh(), y)
    function = lower(found)
    assert [param.type for param in function.params] == [leaf.type for leaf in found.leaves]
    assert [param.name for param in function.params] == ["p0", "p1"]
    assert function.results[1] is function.params[1]
    assert [op.name for op in function.ops] == ["stablehlo.dot_general", "stablehlo.tanh"]
    assert [op.source.line for op in function.ops] == [found.nodes[0].source.line] * 2
    assert function.results[0].name == "t1"


def test_a_program_is_lowered_anew_each_time():
    found = program(data(1.0).exp())
    first, second = lower(found), lower(found)
    assert first.ops[0] is not second.ops[0] and first.params[0] is not second.params[0]


def test_an_op_that_returns_its_input_gives_the_parameter_itself():
    x = tn.tensor([[1.0, 2.0]])
    function = lower(program(x.view(1, 2)))
    assert function.results[0] is function.params[0] and function.ops == ()


def test_kernels_of_our_own_are_for_a_single_gpu(monkeypatch):
    """A composite has other bodies for other devices. XLA's partitioner knows nothing of kernels."""
    monkeypatch.setattr(tile_kernels, "SMALLEST", 1)
    found = program(tn.nn.functional.layer_norm(tn.ones(64, 128), (128,), tn.ones(128), tn.ones(128)))

    def calls(kind: str | None = None) -> bool:
        return any(isinstance(op, CustomCall) for op in lower(found, kind=kind).ops)

    assert [calls(), calls("cpu"), calls("cuda"), calls("triton")] == [False, False, True, True]
    found.device = MeshDevice(Mesh("cuda", (("rows", 2),), (0, 1)))
    assert not calls() and not calls("cuda")
    assert any(isinstance(op, Composite) for op in lower(found, whole=True).ops)


def test_what_no_grad_and_detach_stop_is_said_where_the_function_is_differentiated_further():
    def function(x):
        with tn.no_grad():
            cut = x.sin()
        return cut * x.detach(), x.argmax()

    found = record_call(function, (data(1.0, 2.0),), {}, tn.Tensor).recording.trace
    names = [op.body.name for op in lower(found, whole=True).ops if isinstance(op, Composite)]
    assert sorted(names) == ["stop_gradient", "untracked"]
    assert not any(isinstance(op, Composite) for op in lower(found).ops)
