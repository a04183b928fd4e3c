"""The example of the paper on the torch dialect: a block whose ops are IR, printed as the block goes on."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tenfold
from tenfold import nn, ones
from tenfold.mlir import module_context as mlir_mod_ctx


@pytest.fixture
def doubles():
    """PI's tensors are NumPy's, and so float64."""
    before = tenfold.get_default_dtype()
    tenfold.set_default_dtype(tenfold.float64)
    yield
    tenfold.set_default_dtype(before)


def test_the_listing_of_the_paper_has_three_literals_and_one_op(doubles):
    # The paper's `ones` is a helper of PI's that makes a literal; `tenfold.ones` is an op, as PyTorch's is.
    def ones(size):
        return tenfold.tensor(np.ones(size))

    with mlir_mod_ctx(value_tensors=False) as module:
        x = ones(10)
        lin = nn.Linear(10, 10)
        y = lin(x)

    text = str(module)
    tensor = "!torch.tensor<[10],f64>"
    assert f"torch.tensor.literal(dense<1.000000e+00> : tensor<10xf64>) : {tensor}\n" in text
    assert re.search(r"torch\.tensor\.literal\(dense<\[.*\]> : tensor<10xf64>\)", text)  # bias
    assert re.search(r"torch\.tensor\.literal\(.* : tensor<10x10xf64>\)", text)  # weight
    linear = re.search(r"torch\.aten\.linear %0, %\d, %\d : (.*) -> (.*)", text)
    assert linear is not None and linear[1] == f"{tensor}, !torch.tensor<[10,10],f64>, {tensor}"
    assert text.count(" = ") == 4 and y.shape == (10,)


def test_a_linear_layer_in_a_block_is_its_literals_and_one_op():
    with mlir_mod_ctx() as module:
        x = ones(10)
        lin = nn.Linear(10, 10)
        y = lin(x)

    text = str(module)
    assert y.shape == (10,) and text.startswith("module {")
    assert len(re.findall(r"torch\.vtensor\.literal", text)) == 2  # bias and weight
    linear = re.search(r"torch\.aten\.linear %\S+, %\S+, %\S+ : (.*) -> (.*)", text)
    assert linear is not None
    assert linear[1] == "!torch.vtensor<[10],f32>, !torch.vtensor<[10,10],f32>, !torch.vtensor<[10],f32>"


def test_tensors_may_be_those_without_value_semantics():
    with mlir_mod_ctx(value_tensors=False) as module:
        y = nn.Linear(10, 10)(ones(10))
    assert "torch.tensor.literal" in str(module) and "!torch.tensor<[10],f32>" in str(module)
    assert y.shape == (10,)


def test_the_module_is_printed_while_the_block_is_open():
    with mlir_mod_ctx() as module:
        x = ones(10)
        assert "torch.aten.ones" in str(module) and "torch.aten.tanh" not in str(module)
        y = x.tanh()
        assert "torch.aten.tanh" in str(module)
    assert "torch.aten.tanh" in str(module) and y.shape == (10,)
