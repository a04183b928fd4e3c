"""What optimizers of other people import from PyTorch's: the same names, with the same answers."""

from __future__ import annotations

import pytest
import torch
from torch.optim import optimizer as theirs

import tenfold as tn
from tenfold.optim import lr_scheduler, optimizer as ours, swa_utils
from tests.nn.test_layer_use import example, run_example


def grouped(xp, optimizer, with_indices):
    a, b, c = xp.ones(2), xp.ones(3, dtype=xp.float64), xp.zeros(1)
    found = optimizer.Optimizer._group_tensors_by_device_and_dtype(
        [[a, b, c], [], [None, c, b]], with_indices
    )
    return {
        (str(device), str(dtype).rpartition(".")[2]): (
            [[each if each is None else each.tolist() for each in row] for row in lists],
            indices,
        )
        for (device, dtype), (lists, indices) in found.items()
    }


@pytest.mark.parametrize("with_indices", [False, True])
def test_tensors_are_grouped_by_device_and_dtype(with_indices):
    assert grouped(tn, ours, with_indices) == grouped(torch, theirs, with_indices)


def test_an_optimizer_written_as_pytorchs_own_runs():
    class Descent(ours.Optimizer):
        def __init__(self, params, lr, differentiable=False):
            super().__init__(params, {"lr": lr, "differentiable": differentiable})

        @ours._use_grad_for_differentiable
        def step(self, closure=None):
            self._cuda_graph_capture_health_check()
            for group in self.param_groups:
                params = [each for each in group["params"] if each.grad is not None]
                gradients = [each.grad for each in params]
                assert ours._default_to_fused_or_foreach(params, group["differentiable"]) == (False, False)
                descend(params, gradients, lr=ours._get_value(ours._to_scalar(group["lr"])))

    @ours._disable_dynamo_if_unsupported()
    def descend(params, gradients, lr):
        ours._view_as_real(params, gradients)
        for param, gradient in zip(params, gradients, strict=True):
            param.add_(gradient, alpha=-lr * ours._dispatch_sqrt(4.0))

    real = tn.nn.Parameter(tn.ones(2))
    complex_ = tn.nn.Parameter(tn.ones(1, dtype=tn.complex64))
    optimizer = Descent([real, complex_], lr=tn.tensor([0.25]))
    (real.sum() + complex_.abs().sum()).backward()
    optimizer.step()
    assert real.tolist() == [0.5, 0.5]
    assert complex_.tolist() == [0.5 + 0j]


def test_every_name_of_pytorchs_that_is_given_is_one_of_pytorchs():
    for name in ours.__dict__:
        if name.startswith("_get_") or name.endswith("_doc") or "fused" in name:
            assert hasattr(theirs, name) or hasattr(torch.utils._foreach_utils, name), name


def test_steps_are_counted_in_the_dtype_of_pytorchs():
    assert ours._get_scalar_dtype() is tn.float32
    tn.set_default_dtype(tn.float64)
    try:
        assert ours._get_scalar_dtype() is tn.float64
        assert ours._get_scalar_dtype(is_fused=True) is tn.float32
    finally:
        tn.set_default_dtype(tn.float32)


EXAMPLES = {
    each.__name__: example(each)
    for module in (tn.optim, lr_scheduler, swa_utils)
    for name in dir(module)
    if isinstance(each := getattr(module, name), type)
    and issubclass(each, (ours.Optimizer, lr_scheduler.LRScheduler))
    and each not in (ours.Optimizer, lr_scheduler.LRScheduler)
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_optimizer_and_schedule_has_an_example_that_runs(name):
    assert "optimizer" in EXAMPLES[name]
    run_example(EXAMPLES[name], {"tn": tn})
