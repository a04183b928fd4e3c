"""Optimizers that wrap another, without calling `Optimizer.__init__`."""

import tenfold as tn
from tenfold import nn


class Wrapping(tn.optim.Optimizer):
    def __init__(self, inner):
        self.inner = inner

    def step(self, closure=None):
        return self.inner.step(closure)


def test_a_wrapped_optimizer_steps_and_calls_hooks():
    weight = nn.Parameter(tn.ones(2))
    weight.grad = tn.ones(2)
    wrapped = Wrapping(tn.optim.SGD([weight], lr=0.5))
    called = []
    wrapped.register_step_post_hook(lambda optimizer, args, kwargs: called.append(optimizer))
    wrapped.step()
    assert weight.tolist() == [0.5, 0.5] and called == [wrapped]
