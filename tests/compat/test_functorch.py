"""The names of `functorch` that `torch.func` has not: modules as functions of their state."""

import functorch as theirs
import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.compat.private import functorch as ours


def model(t):
    layers = t.nn.Sequential(t.nn.Linear(3, 2), t.nn.BatchNorm1d(2)).eval()
    with t.no_grad():
        for parameter in layers.parameters():
            parameter.copy_(t.arange(float(parameter.numel())).reshape(parameter.shape) * 0.1)
    return layers


def gradient(t, functorch):
    function, params, buffers = functorch.make_functional_with_buffers(model(t))
    x = t.arange(12.0).reshape(4, 3)
    gradients = functorch.grad(lambda params: (function(params, buffers, x) ** 2).sum())(params)
    return [each.detach().numpy() for each in gradients]


def ensemble(t, functorch):
    models = [model(t) for _ in range(3)]
    function, params, buffers = functorch.combine_state_for_ensemble(models)
    together = functorch.vmap(function, in_dims=(0, 0, None))
    return [together(params, buffers, t.arange(12.0).reshape(4, 3)).detach().numpy()]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("compute", [gradient, ensemble])
def test_a_module_as_a_function_gives_what_functorch_gives(compute):
    for mine, expected in zip(compute(tn, ours), compute(torch, theirs), strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-5)


def test_a_module_without_buffers_takes_parameters_alone():
    layer = tn.nn.Linear(3, 2)
    function, params = ours.make_functional(layer)
    x = tn.ones(3)
    assert (function(params, x) == layer(x)).all() and params[0] is not layer.weight
    with pytest.raises(tn.ArgumentError, match="buffers"):
        ours.make_functional(tn.nn.BatchNorm1d(2))


@pytest.mark.parametrize("chunks", [1, 2, 5, 9])
def test_chunks_of_a_batch_are_mapped_one_after_the_other(chunks):
    from torch._functorch.apis import chunk_vmap

    def run(t, mapped):
        x, y = t.arange(10.0).reshape(2, 5), t.ones(2)
        return mapped(lambda x, y: (x * y).sum(), in_dims=(1, None), chunks=chunks)(x, y).tolist()

    assert run(tn, ours.chunk_vmap) == run(torch, chunk_vmap)
