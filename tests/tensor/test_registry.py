"""Methods of Tensor that a program registers, replaces and takes away again."""

import pytest

import tenfold as tn

REGISTRY = tn.TENSOR_METHOD_REGISTRY


@pytest.fixture(autouse=True)
def _nothing_stays():
    yield
    assert not list(REGISTRY)


def test_a_registered_method_is_there_until_it_is_removed():
    @REGISTRY("cubed")
    def cubed(self):
        return self * self * self

    assert tn.tensor(2).cubed().item() == 8 and "cubed" in REGISTRY and list(REGISTRY) == ["cubed"]
    REGISTRY.remove("cubed")
    assert not hasattr(tn.Tensor, "cubed") and "cubed" not in REGISTRY


def test_a_replaced_method_comes_back_step_by_step():
    REGISTRY("relu", replace=True)(lambda self: "first")
    REGISTRY("relu", replace=True)(lambda self: "second")
    x = tn.tensor(-1.0)
    assert x.relu() == "second"
    REGISTRY.remove("relu")
    assert x.relu() == "first" and "relu" in REGISTRY
    REGISTRY.remove("relu")
    assert x.relu().item() == 0


def test_names_that_cannot_be_registered_or_removed_are_refused():
    with pytest.raises(tn.ArgumentError, match="have a method relu already"):
        REGISTRY("relu")
    for name in ("not a name", 3):
        with pytest.raises(tn.ArgumentError, match="is no name of a method"):
            REGISTRY(name)
    with pytest.raises(tn.ArgumentError, match="no method relu was registered"):
        REGISTRY.remove("relu")
