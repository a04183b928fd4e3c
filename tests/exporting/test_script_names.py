"""Classes written for TorchScript run as they are, and the words of its executor have an answer."""

from __future__ import annotations

import tenfold as tn
from tenfold import jit, nn


class Gate(jit.ScriptModule):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 2)

    @jit.script_method
    def forward(self, x):
        return self.linear(x).sigmoid()


def test_a_script_module_trains_as_any_other():
    gate = Gate()
    assert isinstance(gate, nn.Module)
    assert [name for name, _ in gate.named_parameters()] == ["linear.weight", "linear.bias"]
    gate(tn.ones(2, 3)).sum().backward()
    assert gate.linear.weight.grad.shape == (2, 3)


def test_forked_functions_give_what_they_return():
    futures = [jit.fork(lambda x, y=0: x + y, each, y=1) for each in range(3)]
    assert [jit.wait(each) for each in futures] == [1, 2, 3]


def test_what_is_said_to_the_executor_changes_nothing():
    jit.enable_onednn_fusion(True)
    with jit.optimized_execution(False), jit.strict_fusion():
        assert (tn.ones(1) + 1).tolist() == [2.0]
    assert not jit.onednn_fusion_enabled()


class Recording:
    """What stands for libtorch: it tells the method that it was asked to call."""

    training = True

    def ask(self, question):
        return {"methods": ["forward", "half"]}.get(question, {})

    def call(self, method, args):
        return (method, *args), []


def test_a_loaded_module_calls_its_own_methods():
    loaded = jit.LoadedModule(Recording())
    assert isinstance(loaded, jit.ScriptModule)
    assert loaded(1) == loaded.forward(1) == ("forward", 1)
