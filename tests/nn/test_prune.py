"""`nn.utils.prune` against PyTorch's: masks, what is computed with them, and pruning after pruning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.utils.prune as golden

import tenfold as tn
from tenfold.base.errors import TenfoldError
from tenfold.nn.utils import prune


def convolutions() -> tuple[Any, Any]:
    """The same layer of ours and of PyTorch's."""
    ours, theirs = tn.nn.Conv2d(4, 6, 3), torch.nn.Conv2d(4, 6, 3)
    ours.load_state_dict({name: tn.tensor(each.numpy()) for name, each in theirs.state_dict().items()})
    return ours, theirs


def same(ours: Any, theirs: Any) -> None:
    mine, reference = ours.state_dict(), theirs.state_dict()
    assert list(mine) == list(reference)
    for name, each in reference.items():
        np.testing.assert_allclose(mine[name].numpy(), each.numpy(), rtol=1e-6, err_msg=name)
    for name in ("weight", "bias"):
        np.testing.assert_allclose(
            getattr(ours, name).detach().numpy(), getattr(theirs, name).detach().numpy(), rtol=1e-6
        )


SCORES = np.random.default_rng(0).normal(size=(6, 4, 3, 3)).astype(np.float32)
MASK = (SCORES > 0).astype(np.float32)
# How a layer is pruned, one step after the other: by which function, of what, and how.
ONCE = (
    [("identity", "weight"), ("l1_unstructured", "bias", 2)],
    [("l1_unstructured", "weight", 0.3), ("l1_unstructured", "bias", 0)],
    [("ln_structured", "weight", 2, 2, 0)],
    [("ln_structured", "weight", 0.5, float("inf"), 1)],
    [("ln_structured", "weight", 0.0, 2, 0), ("identity", "bias")],
    [("l1_unstructured", "weight", 0.3, SCORES)],
    [("custom_from_mask", "weight", MASK)],
)
AGAIN = (
    [("ln_structured", "weight", 1, 1, -1), ("l1_unstructured", "weight", 20)],
    [("l1_unstructured", "weight", 0.4), ("ln_structured", "weight", 2, 2, 0, SCORES)],
    [
        ("custom_from_mask", "weight", MASK),
        ("ln_structured", "weight", 2, 2, 0),
        ("ln_structured", "weight", 1, 2, 1),
        ("l1_unstructured", "weight", 0.25),
    ],
)


@pytest.mark.parametrize("cases", [ONCE, AGAIN], ids=["once", "again"])
def test_masks_are_pytorchs(cases):
    pairs = [convolutions() for _ in cases]
    for (ours, theirs), steps in zip(pairs, cases):
        for name, *arguments in steps:
            for library, prune_of, layer in ((tn, prune, ours), (torch, golden, theirs)):
                given = [library.tensor(each) if isinstance(each, np.ndarray) else each for each in arguments]
                assert getattr(prune_of, name)(layer, *given) is layer
    tn.eval(*[each for ours, _ in pairs for each in (ours.weight, ours.bias, *ours.buffers())])
    for ours, theirs in pairs:
        same(ours, theirs)


def test_a_pruned_layer_trains_as_pytorchs():
    ours, theirs = tn.nn.Linear(4, 3), torch.nn.Linear(4, 3)
    ours.load_state_dict({name: tn.tensor(each.numpy()) for name, each in theirs.state_dict().items()})
    data = np.random.default_rng(1).normal(size=(2, 4)).astype(np.float32)
    for library, prune_of, layer in ((tn, prune, ours), (torch, golden, theirs)):
        prune_of.l1_unstructured(layer, "weight", 0.4)
        prune_of.random_unstructured(layer, "bias", 3)
        optimizer = library.optim.SGD(layer.parameters(), lr=0.1, momentum=0.9)
        for _ in range(2):
            optimizer.zero_grad()
            layer(library.tensor(data)).square().mean().backward()
            optimizer.step()
        layer(library.tensor(data))  # the weight is computed anew by each call
    same(ours, theirs)
    np.testing.assert_allclose(ours.weight_orig.grad.numpy(), theirs.weight_orig.grad.numpy(), atol=1e-6)
    assert not ours.weight_orig.grad.numpy()[ours.weight_mask.numpy() == 0].any()


def test_a_pruned_layer_compiles():
    layer = prune.l1_unstructured(tn.nn.Linear(3, 4), "weight", 0.5)
    x = tn.ones(2, 3)
    np.testing.assert_allclose(tn.compile(layer)(x).detach().numpy(), layer(x).detach().numpy(), rtol=1e-6)


def test_pruning_ends_with_an_ordinary_parameter():
    ours, theirs = convolutions()
    for prune_of, layer in ((prune, ours), (golden, theirs)):
        assert not prune_of.is_pruned(layer)
        prune_of.ln_structured(layer, "weight", 0.5, 2, 0)
        prune_of.l1_unstructured(layer, "weight", 0.5)
        assert prune_of.is_pruned(layer)
        original = layer.weight_orig
        assert prune_of.remove(layer, "weight") is layer
        assert not prune_of.is_pruned(layer)
        assert layer.weight is original
        assert isinstance(layer.weight, (tn.nn.Parameter, torch.nn.Parameter))
    same(ours, theirs)
    with pytest.raises(TenfoldError, match="'weight' of Conv2d is not pruned"):
        prune.remove(ours, "weight")


def test_parameters_are_pruned_together():
    ours = tn.nn.Sequential(tn.nn.Linear(4, 5), tn.nn.Linear(5, 3))
    theirs = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Linear(5, 3))
    ours.load_state_dict({name: tn.tensor(each.numpy()) for name, each in theirs.state_dict().items()})
    scores = np.random.default_rng(2).normal(size=(3, 5)).astype(np.float32)
    for library, prune_of, net in ((tn, prune, ours), (torch, golden, theirs)):
        pairs = [(net[0], "weight"), (net[1], "weight"), (net[1], "bias")]
        prune_of.global_unstructured(pairs, prune_of.L1Unstructured, amount=0.5)
        given = {(net[1], "weight"): library.tensor(scores)}
        prune_of.global_unstructured(pairs, prune_of.L1Unstructured, given, amount=6)
    for mine, reference in zip(ours, theirs):
        same(mine, reference)
    with pytest.raises(TenfoldError, match="LnStructured does not prune element by element"):
        prune.global_unstructured(pairs, prune.LnStructured, amount=1, n=2)


def test_as_many_are_drawn_as_asked_for():
    layer = prune.random_structured(tn.nn.Linear(10, 8), "weight", 3, dim=0)
    assert sorted(layer.weight_mask.numpy().sum(1)) == [0] * 3 + [10] * 5
    prune.random_structured(layer, "weight", 0.5, dim=-1)
    assert sorted(layer.weight_mask.numpy().sum(0)) == [0] * 5 + [5] * 5
    prune.random_unstructured(layer, "weight", 20)  # of those that are left
    assert layer.weight_mask.numpy().sum() == 5


def test_a_method_of_ones_own_prunes():
    class EveryOther(prune.BasePruningMethod):
        PRUNING_TYPE = "unstructured"

        def compute_mask(self, t, default_mask):
            mask = default_mask.clone()
            mask.view(-1)[::2] = 0
            return mask

    layer = tn.nn.Linear(4, 2)
    EveryOther.apply(layer, "weight")
    found = EveryOther.apply(layer, "weight")
    assert layer.weight_mask.tolist() == [[0, 0, 0, 1], [0, 0, 0, 1]]
    assert isinstance(found, prune.PruningContainer)
    assert [type(each) for each in found] == [EveryOther] * len(found)
    assert EveryOther().prune(tn.arange(1.0, 5.0)).tolist() == [0, 2, 0, 4]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda layer: prune.l1_unstructured(layer, "weight", 1.5), "a fraction from 0 to 1, not 1.5"),
        (lambda layer: prune.l1_unstructured(layer, "weight", -1), "a whole number, or a fraction"),
        (lambda layer: prune.l1_unstructured(layer, "weight", "half"), "not 'half'"),
        (lambda layer: prune.l1_unstructured(layer, "weight", 13), "13 elements cannot be pruned of 12"),
        (lambda layer: prune.ln_structured(layer, "weight", 1, 2, 2), "has no dimension 2"),
        (lambda layer: prune.random_structured(layer, "bias", 1, 0), "has no channels to prune"),
        (lambda layer: prune.custom_from_mask(layer, "weight", tn.ones(3)), "cannot be f32[3]"),
        (
            lambda layer: prune.l1_unstructured(layer, "weight", 1, tn.ones(3)),
            "importance scores of f32[4,3]",
        ),
        (lambda layer: prune.PruningContainer(3), "int is no pruning method"),
    ],
)
def test_what_cannot_be_pruned_is_refused_and_left_as_it_was(call, message):
    layer = tn.nn.Linear(3, 4)
    for _ in range(2):
        before = list(layer.state_dict())
        with pytest.raises(TenfoldError) as raised:
            call(layer)
        assert message in str(raised.value)
        assert list(layer.state_dict()) == before
        prune.identity(layer, "weight")
        prune.identity(layer, "bias")
