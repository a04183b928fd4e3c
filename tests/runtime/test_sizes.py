"""Open sizes of compiled functions: which executable serves a call, what is said, what stays closed."""

import warnings

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.base.errors import ArgumentError
from tenfold.compiler import mark_dynamic, mark_static
from tenfold.runtime.executables import counting_compiles


def ones(*shape):
    """Without a program that would make it, which counts as well."""
    return tn.tensor(np.ones(shape, np.float32))


def zeros(*shape):
    return tn.tensor(np.zeros(shape, np.float32))


@pytest.fixture(autouse=True)
def no_cache(monkeypatch):
    monkeypatch.setenv("TENFOLD_CACHE_DIR", "")


def test_dynamic_serves_sizes_by_powers_of_two():
    double = tn.compile(lambda x: (x * 2).sum(0), dynamic=True)
    with counting_compiles() as compiles:
        for size in (2, 16, 9, 17, 32, 20, 33, 64):
            assert double(ones(size, 3)).tolist() == [2.0 * size] * 3
    assert compiles == 3


def test_a_marked_dimension_is_compiled_once_up_to_its_maximum():
    total = tn.compile(lambda x: x.sum())
    with counting_compiles() as compiles:
        for size in (5, 100, 33):
            x = ones(size, 3)
            mark_dynamic(x, 0, max=128)
            assert total(x).item() == 3 * size
    assert compiles == 1
    assert "dimension 0 of tensor 0: any size from 2 to 128" in total.guards()


def test_dims_are_those_of_an_export():
    n = tn.Dim("n", max=128)
    product = tn.compile(lambda x, y: x.T @ y, dynamic={"x": {0: n}, 1: {0: n}})
    with counting_compiles() as compiles:
        for size in (5, 100, 33):
            assert product(ones(size, 3), ones(size, 2)).tolist() == [[size] * 2] * 3
    assert compiles == 1
    assert "dimension 0 of tensor 0 and dimension 0 of tensor 1: any size from 2 to 128" in product.guards()
    with pytest.raises(ArgumentError, match="n must be from 1 to 128"):
        product(ones(129, 3), ones(129, 2))
    with pytest.raises(ArgumentError, match="n is one size"):
        product(ones(5, 3), ones(6, 2))
    layer = tn.compile(tn.nn.Linear(3, 2), dynamic={"input": {0: "n"}})
    with tn.no_grad():
        assert [tuple(layer(ones(size, 3)).shape) for size in (5, 9)] == [(5, 2), (9, 2)]


def test_a_static_dimension_stays_closed():
    total = tn.compile(lambda x: x.sum(), dynamic=True)
    with counting_compiles() as compiles:
        for size in (5, 6):
            x = ones(size, 3)
            mark_static(x, 0)
            total(x)
    assert compiles == 2


def test_a_size_outside_of_what_was_marked_is_an_error():
    with pytest.raises(ArgumentError, match="dimension 0 is 5, which is not from None to 4"):
        mark_dynamic(ones(5), 0, max=4)
    with pytest.raises(ArgumentError, match="no dimension 2"):
        mark_dynamic(ones(5), 2)


def test_what_cannot_be_open_is_said_once_with_the_line_and_compiled_for_its_size():
    det = tn.compile(lambda x: tn.linalg.det(x @ x.t()), dynamic=True)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for size in (3, 4, 5):
            det(tn.eye(size))
    (warning,) = said
    assert "custom_call has no form for open sizes" in str(warning.message)
    assert "test_sizes.py" in str(warning.message)
    assert "sizes stay closed because" in det.guards()


def test_a_dimension_that_weights_fix_stays_closed_and_others_are_open():
    weight = ones(3, 2)
    linear = tn.compile(lambda x: x @ weight, dynamic=True)
    with counting_compiles() as compiles:
        for size in (4, 7):
            assert linear(ones(size, 3)).shape == (size, 2)
    assert compiles == 1
    assert "dimension 1" not in linear.guards()


def test_sizes_up_to_an_error_are_open():
    table = tn.tensor(np.arange(20, dtype=np.float32))

    def positions(x):
        return x + table[: x.shape[0]]

    add = tn.compile(positions, dynamic=True)
    with counting_compiles() as compiles:
        for size in (17, 20, 18):
            assert add(zeros(size)).tolist() == list(range(size))
    assert compiles == 1
    with pytest.raises(ValueError):
        add(zeros(21))


def test_the_second_size_opens_its_dimension_and_the_first_stays_as_it_is():
    total = tn.compile(lambda x: (x * 2).sum())
    with counting_compiles() as compiles:
        for size, expected in ((20, 1), (25, 2), (31, 2), (20, 2), (17, 2), (40, 3), (64, 3)):
            assert total(ones(size)).item() == 2 * size
            assert compiles == expected
    assert "for f32[20]:" in total.guards()
    assert "dimension 0 of tensor 0: any size from 17 to 32" in total.guards()


def test_dynamic_false_compiles_for_each_size():
    total = tn.compile(lambda x: x.sum(), dynamic=False)
    with counting_compiles() as compiles:
        for size in (20, 25, 31):
            total(ones(size))
    assert compiles == 3


def test_a_function_that_changes_python_state_is_not_called_more_often():
    seen = []

    @tn.compile
    def watched(x):
        seen.append(x.shape[0])
        return x * 2

    for size in (20, 25, 25, 31):
        assert watched(ones(size)).tolist() == [2.0] * size
    assert seen == [20, 25, 31]
    assert "the function changes Python state" in watched.guards()


def test_sizes_that_change_together_are_one():
    loss = tn.compile(lambda x, y: ((x - y) ** 2).mean(0))
    with counting_compiles() as compiles:
        for size in (20, 25, 31):
            assert loss(ones(size, 2), zeros(size, 2)).tolist() == [1.0, 1.0]
    assert compiles == 2
    assert "dimension 0 of tensor 0 and dimension 0 of tensor 1" in loss.guards()


def test_gradients_that_are_taken_outside_are_compiled_for_their_size():
    weight = tn.tensor(np.ones((3, 2), np.float32), requires_grad=True)
    linear = tn.compile(lambda x: (x @ weight).sum())
    for size in (20, 25, 31):
        weight.grad = None
        linear(ones(size, 3)).backward()
        assert weight.grad.tolist() == [[size, size]] * 3


def test_variable_batches_of_an_epoch_train_as_pytorch_with_few_compiles():
    random = np.random.default_rng(0)
    models, optimizers = [], []
    for lib in (torch, tn):
        layers = [lib.nn.Linear(3, 8), lib.nn.LayerNorm(8), lib.nn.ReLU(), lib.nn.Linear(8, 2)]
        models.append(lib.nn.Sequential(*layers))
    models[1].load_state_dict({k: tn.tensor(v.numpy()) for k, v in models[0].state_dict().items()})
    optimizers = [lib.optim.Adam(m.parameters(), 1e-2) for lib, m in zip((torch, tn), models, strict=True)]

    def step(lib, model, optimizer, x, y):
        optimizer.zero_grad()
        loss = lib.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    compiled = tn.compile(lambda x, y: step(tn, models[1], optimizers[1], x, y))
    with counting_compiles() as compiles:
        for size in random.integers(2, 33, 12):
            x, y = random.normal(size=(size, 3)).astype(np.float32), random.integers(0, 2, size)
            expected = step(torch, models[0], optimizers[0], torch.tensor(x), torch.tensor(y)).item()
            assert compiled(tn.tensor(x), tn.tensor(y)).item() == pytest.approx(expected, rel=1e-4)
    assert compiles <= 5  # log2 of 32


class Attention(tn.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm = tn.nn.LayerNorm(width)
        self.inner, self.outer = tn.nn.Linear(width, 3 * width), tn.nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.inner(self.norm(x)).split(width, 2)
        q, k, v = (
            each.view(batch, length, self.heads, width // self.heads).transpose(1, 2) for each in parts
        )
        y = tn.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.outer(y.transpose(1, 2).contiguous().view(batch, length, width))


def test_a_growing_sequence_compiles_once_for_each_power_of_two():
    batch = 3
    tn.manual_seed(0)
    words, places = tn.nn.Embedding(17, 16), tn.nn.Embedding(64, 16)
    attention, head = Attention(16, 2), tn.nn.Linear(16, 17)

    def grow(tokens):
        x = words(tokens) + places(tn.arange(tokens.shape[1]))
        chosen = head(attention(x))[:, -1].argmax(-1, keepdim=True)
        return tn.cat([tokens, chosen], 1)

    compiled = tn.compile(grow)
    with counting_compiles() as compiles, tn.no_grad():
        tokens = tn.tensor(np.arange(batch).reshape(batch, 1))
        for _ in range(20):
            tokens = compiled(tokens)
    assert compiles <= 3  # for 1, up to 16 and up to 32
    expected = tn.tensor(np.arange(batch).reshape(batch, 1))
    for _ in range(20):
        expected = grow(expected)
    assert tokens.tolist() == expected.tolist()
