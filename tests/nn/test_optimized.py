"""What `compile` makes of a module is a module: its parameters, modes, hooks and copies are the other's."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import tenfold as tn
from tenfold import nn


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.dropout = nn.Dropout(0.5)

    def forward(self, x):
        return self.dropout(self.linear(x))

    def doubled(self, x):
        return self.linear(x) * 2


def test_it_is_the_module_to_whoever_asks():
    model = Scaled()
    fast = tn.compile(model, mode="reduce-overhead", fullgraph=True)
    assert isinstance(fast, nn.Module)
    assert list(fast.parameters()) == list(model.parameters())
    assert list(fast.state_dict()) == ["_orig_mod.linear.weight", "_orig_mod.linear.bias"]
    assert fast.linear is model.linear
    fast.eval()
    assert not model.dropout.training
    x = tn.ones(2, 3)
    np.testing.assert_array_equal(fast(x).detach().numpy(), model(x).detach().numpy())
    np.testing.assert_array_equal(fast.doubled(x).detach().numpy(), 2 * fast(x).detach().numpy())
    fast.note = "kept"
    assert model.note == "kept"


def test_it_trains_the_module():
    model = Scaled()
    fast = tn.compile(model)
    fast(tn.ones(2, 3)).sum().backward()
    assert model.linear.weight.grad is not None


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
def test_a_copy_of_it_has_a_module_of_its_own(copied):
    fast = tn.compile(Scaled().eval())
    other = copied(fast)
    assert other.linear is not fast.linear
    np.testing.assert_array_equal(other(tn.ones(3)).detach().numpy(), fast(tn.ones(3)).detach().numpy())


def test_compile_decorates_with_pytorch_s_options():
    @tn.compile(dynamic=True, backend="inductor")
    def next_of(x):
        return x + 1

    assert next_of(tn.ones(2)).tolist() == [2, 2]
    plain = lambda x: x
    assert tn.compile(plain, disable=True) is plain
    assert tn.compile(plain, backend="eager") is tn.compile(backend="aot_eager")(plain) is plain
    with pytest.raises(tn.TenfoldError, match="no backend 'magic'"):
        tn.compile(plain, backend="magic")
    with pytest.raises(tn.TenfoldError, match="no mode 'fast'"):
        tn.compile(plain, mode="fast")


def test_hooks_that_come_and_go_are_seen_by_a_compiled_function():
    model = nn.Linear(2, 2)
    run = tn.compile(lambda x: model(x) + 1)
    x = tn.ones(2)
    plain = run(x).tolist()
    with model.register_forward_hook(lambda module, given, made: made * 0):
        assert run(x).tolist() == [1, 1]
    assert run(x).tolist() == plain
    with nn.modules.module.register_module_forward_pre_hook(lambda module, given: (given[0] * 0,)):
        assert run(x).tolist() == (model.bias + 1).tolist()


def test_a_compiled_module_is_a_module_whatever_was_used_before():
    """In a process of its own: here the file of compiled modules is loaded."""
    program = "import tenfold as tn; print(len(list(tn.compile(tn.nn.Linear(2, 1)).parameters())))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "2\n", done.stderr
