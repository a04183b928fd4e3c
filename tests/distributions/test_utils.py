"""The helpers of `distributions.utils` give what PyTorch's give."""

import numpy as np
import pytest
import torch

import tenfold as tn

VALUES = np.random.RandomState(0).rand(2, 6).astype("float32")


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("name", ["logits_to_probs", "probs_to_logits"])
def test_probabilities_and_logits(name, binary):
    ours = getattr(tn.distributions.utils, name)(tn.tensor(VALUES), binary)
    theirs = getattr(torch.distributions.utils, name)(torch.tensor(VALUES), binary)
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(("diagonal", "count"), [(0, 6), (-1, 3)])
def test_triangles(diagonal, count):
    vector = VALUES[:, :count]
    ours = tn.distributions.utils.vec_to_tril_matrix(tn.tensor(vector), diagonal)
    theirs = torch.distributions.utils.vec_to_tril_matrix(torch.tensor(vector), diagonal)
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    back = tn.distributions.utils.tril_matrix_to_vec(ours, diagonal)
    np.testing.assert_array_equal(back.numpy(), vector)


def test_a_lazy_property_is_computed_once_with_gradients():
    class Counted:
        calls = 0

        @tn.distributions.utils.lazy_property
        def value(self):
            self.calls += 1
            return tn.ones(2, requires_grad=True) * 2

    counted = Counted()
    with tn.no_grad():
        first = counted.value
    assert counted.value is first
    assert counted.calls == 1
    assert first.requires_grad
