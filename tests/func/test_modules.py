"""Modules as functions of their parameters."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tenfold as tn
from tests.func.cases import BATCH, MATRIX, same


def test_a_module_is_called_with_other_parameters():
    module = tn.nn.Linear(4, 3)
    own = module.weight
    given = {"weight": tn.tensor(MATRIX), "bias": tn.zeros(3)}
    found = tn.func.functional_call(module, given, tn.tensor(BATCH))
    np.testing.assert_allclose(found.numpy(), BATCH @ MATRIX.T, rtol=1e-5)
    assert module.weight is own
    found = tn.func.functional_call(module, {**given, "wheight": own}, tn.tensor(BATCH))
    np.testing.assert_allclose(found.numpy(), BATCH @ MATRIX.T, rtol=1e-5)
    with pytest.raises(RuntimeError, match=r"\['wheight'\] are unexpected"):
        tn.func.functional_call(module, {**given, "wheight": own}, tn.tensor(BATCH), strict=True)
    with pytest.raises(RuntimeError, match=r"\['bias'\] are missing"):
        tn.func.functional_call(module, {"weight": own}, tn.tensor(BATCH), strict=True)


def test_tied_parameters_are_given_once():
    module = tn.nn.Linear(3, 3, bias=False)
    pair = tn.nn.Sequential(module, tn.nn.Linear(3, 3, bias=False))
    pair[1].weight = module.weight
    double, x = 2 * tn.eye(3), tn.ones(1, 3)
    assert tn.func.functional_call(pair, {"0.weight": double}, x).tolist() == [[4, 4, 4]]
    both = {"0.weight": double, "1.weight": 3 * tn.eye(3)}
    with pytest.raises(tn.ArgumentError, match="are one tensor, and get different ones"):
        tn.func.functional_call(pair, both, x)
    assert tn.func.functional_call(pair, both, x, tie_weights=False).tolist() == [[6, 6, 6]]


def test_batch_norms_are_told_to_keep_no_statistics():
    module = tn.nn.Sequential(tn.nn.BatchNorm1d(2), tn.nn.InstanceNorm1d(2, track_running_stats=True))
    assert tn.func.replace_all_batch_norm_modules_(module) is module
    assert module[0].running_mean is None and not module[0].track_running_stats
    assert set(module.state_dict()) == {"0.weight", "0.bias", *[f"1.{n}" for n in module[1].state_dict()]}


def test_per_example_gradients_of_a_module():
    results = []
    for library in (tn, torch):
        module = library.nn.Sequential(library.nn.Linear(4, 3), library.nn.Tanh())
        params = {"0.weight": library.tensor(MATRIX), "0.bias": library.zeros(3)}
        loss = lambda p, x, m=module, lib=library: lib.func.functional_call(m, p, (x,)).pow(2).sum()
        results.append(
            library.func.vmap(library.func.grad(loss), in_dims=(None, 0))(params, library.tensor(BATCH))
        )
    same(*results)


def test_an_ensemble_of_modules():
    models = [tn.nn.Linear(4, 3) for _ in range(3)]
    params, buffers = tn.func.stack_module_state(models)
    assert list(params["weight"].shape) == [3, 3, 4] and params["weight"].requires_grad and buffers == {}
    x = tn.tensor(BATCH)
    call = lambda p, b: tn.func.functional_call(models[0], (p, b), (x,))
    together = tn.func.vmap(call)(params, buffers)
    np.testing.assert_allclose(
        together.detach().numpy(), np.stack([each(x).detach().numpy() for each in models]), rtol=1e-5
    )


def test_what_a_call_takes_for_parameters_is_refused_in_its_own_words():
    call, layer, x = tn.func.functional_call, tn.nn.Linear(2, 2), tn.ones(2)
    weight = {"weight": tn.ones(2, 2)}
    for given, message in (
        (3, "takes a dict of tensors by name or several, not a int"),
        ([weight, 3], "takes dicts of tensors by name, not a int"),
        ((weight, weight), "'weight' is given twice"),
    ):
        with pytest.raises(tn.ArgumentError, match=message):
            call(layer, given, (x,))


def test_modules_that_cannot_be_stacked_are_refused():
    stack = tn.func.stack_module_state
    for modules, message in (
        ([], "there are no modules to stack"),
        ([tn.nn.Linear(2, 2), tn.nn.ReLU()], "modules of different classes cannot be stacked"),
        ([tn.nn.Linear(2, 2), tn.nn.Linear(2, 2).eval()], "train"),
    ):
        with pytest.raises(tn.ArgumentError, match=message):
            stack(modules)
