"""Open sizes against PyTorch: each form at several sizes by one executable, with NaN in all padding."""

import functools

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.flat import elementwise as e
from tenfold.flat.ir import Op
from tenfold.flat.opening import OPEN
from tenfold.runtime import evaluate
from tenfold.runtime.executables import counting_compiles


def f(t):
    return t.nn.functional


# Each gives several tensors from two of n x 3; `t` is the library.
FORMS = {
    "elementwise": lambda t, x, y: (x * 2 + y, x > y, t.where(x > 0, x, y), x.abs().sqrt(), x.clamp(-1, 1)),
    "reductions": lambda t, x, y: (
        x.sum(), x.sum(0), x.sum(1), x.mean(0), x.mean(), x.var(0), x.std(), x.amax(0), x.min(), x.prod(0),
        (x > 0).any(0), (x > 0).all(), (x > 0).sum(), x.norm(dim=0), x.nanmean(0),
    ),
    "places of extremes": lambda t, x, y: (x.argmax(0), x.argmin(0), *x.max(0), x.argmax()),
    "softmax": lambda t, x, y: (x.softmax(0), x.log_softmax(0), x.logsumexp(0), x.softmax(1)),
    "normalisation": lambda t, x, y: (
        f(t).layer_norm(x, (3,)), f(t).layer_norm(x.t(), (x.shape[0],)),
        f(t).batch_norm(x, None, None, training=True), f(t).normalize(x, dim=0),
        f(t).group_norm(x.t()[None], 3),
    ),
    "products": lambda t, x, y: (
        x.t() @ y, x @ y.t(), t.einsum("nc,nd->cd", x, y), (x @ x.t()).softmax(-1) @ y, t.cdist(x, y),
        t.bmm(x[None].expand(2, -1, -1), y.t()[None].expand(2, -1, -1)),
    ),
    "joins": lambda t, x, y: (
        t.cat([x, y]), t.cat([x, y], 1), t.cat([x[:1], y]), t.stack([x, y]), t.cat([x, x[:2], y, x]).sum(0),
        x.repeat(2, 1), x.tile(1, 2),
    ),
    "counting": lambda t, x, y: (
        t.arange(x.shape[0]), t.arange(x.shape[0]).float().sum(), t.zeros(x.shape[0], 2), t.eye(x.shape[0]),
        t.arange(x.shape[0])[:, None] >= t.arange(x.shape[0])[None, :], t.linspace(0, 1, x.shape[0]),
    ),
    "masks": lambda t, x, y: (
        t.ones(x.shape[0], x.shape[0]).tril(), (x @ y.t()).tril().sum(), (x @ y.t()).triu(1),
        (x @ y.t()).masked_fill(t.ones(x.shape[0], x.shape[0]).tril() == 0, float("-inf")).softmax(-1) @ y,
    ),
    "shapes": lambda t, x, y: (
        x.reshape(-1), x.t().reshape(-1), x.reshape(-1)[:3], x.t().reshape(-1).sum(), x.reshape(1, -1, 3),
        x.unsqueeze(0).expand(4, -1, -1).reshape(-1, 3), x.t().reshape(-1).reshape(3, -1).sum(1),
        x.t(), x.t().contiguous(), x.unsqueeze(1).permute(2, 1, 0), (x @ y.t()).reshape(-1).softmax(0),
    ),
    "slices": lambda t, x, y: (
        x[1:], x[:-1], x[::2], x[-1], x[-2:], x[0], x[1:] - x[:-1], x[:, 1:], (x @ y.t()).diagonal(),
        (x @ y.t()).trace(), x.split([1, x.shape[0] - 1])[1], x.diff(dim=0), x.unfold(0, 2, 1),
    ),
    "indexing": lambda t, x, y: (
        x[t.tensor([0, 1, 1])], t.gather(x, 0, t.zeros(2, 3, dtype=t.long)), x[x.argsort(0)[:, 0]],
        x.index_select(0, t.tensor([1, 0])), t.gather(x, 1, x.argsort(1)), x.take(t.tensor([0, 1])),
        x[t.arange(x.shape[0]), t.zeros(x.shape[0], dtype=t.long)],
        f(t).embedding((x > 0).long(), t.arange(8.0).reshape(4, 2)),
        f(t).one_hot((x[:, 0] > 0).long(), 3),
    ),
    "scatters": lambda t, x, y: (
        t.zeros(5, 3).index_add(0, t.arange(x.shape[0]) % 5, x),
        t.zeros_like(x).scatter_add(0, x.argsort(0), y),
        t.zeros_like(x).index_copy(0, t.tensor([0, 1]), x[:2]),
    ),
    "sorting": lambda t, x, y: (
        *x.sort(0), x.sort(0, descending=True)[0], x.argsort(0), x.sort(1)[0], x.topk(2, dim=1)[0],
        *x.topk(2, dim=0), x.median(0)[0], x.quantile(0.3, dim=0),
    ),
    "reversal": lambda t, x, y: (x.flip(0), x.roll(1, 0), x.roll(-1, 0)),
    "padding": lambda t, x, y: (
        f(t).pad(x, (1, 2)), f(t).pad(x, (0, 0, 1, 2)),
        f(t).pad(x, (0, 0, 2, 0), value=7.0).sum(0),
        f(t).pad(x, (0, 0, 0, 40 - x.shape[0])), f(t).pad(x, (0, 0, 40 - x.shape[0], 0)),
        f(t).pad(x.t()[None], (1, 1), mode="reflect"),
    ),
    "losses": lambda t, x, y: (
        f(t).mse_loss(x, y), f(t).cross_entropy(x, (y[:, 0] > 0).long()),
        f(t).smooth_l1_loss(x, y), f(t).cosine_similarity(x, y, dim=0),
    ),
    "attention": lambda t, x, y: (
        f(t).scaled_dot_product_attention(x[None, None], y[None, None], x[None, None], is_causal=True),
        f(t).scaled_dot_product_attention(x[None, None], y[None, None], x[None, None]),
    ),
    "convolutions": lambda t, x, y: (
        f(t).conv1d(x.t()[None], t.ones(4, 3, 3), padding=1),
        f(t).conv1d(x[:, :, None], t.ones(4, 3, 1)),
        f(t).conv1d(f(t).pad(x.t()[None], (8, 8)), t.ones(4, 3, 3), stride=2),
        f(t).max_pool1d(x.t()[None], 2), f(t).max_pool1d(x.t()[None], 3, 1, 1),
        f(t).interpolate(x.t()[None], scale_factor=2),
    ),
    "recurrence": lambda t, x, y: (_lstm(t)(x[:, None])[0], *_gru(t)(x[:, None]), *_gru(t)(x[None])),
    "writes": lambda t, x, y: (x.clone().mul_(2), t.zeros_like(x).copy_(y), _written(x.clone(), y)),
}  # fmt: skip


def _written(x, y):
    x[0] = 5.0
    x[1:] = y[:-1]
    x[:, 1][:1] += 1
    return x


def _filled(layer):
    for parameter in layer.parameters():
        parameter.detach().fill_(0.1).numpy()  # computed now
    return layer.requires_grad_(False)


@functools.cache
def _lstm(t):
    return _filled(t.nn.LSTM(3, 4, bidirectional=True))


@functools.cache
def _gru(t):
    return _filled(t.nn.GRU(3, 4, num_layers=2))


@pytest.fixture(autouse=True)
def hostile_padding(monkeypatch):
    """NaN, or an index far outside, in all padding."""

    def blank(shape, dtype):
        return np.full(shape, np.nan if dtype.kind == "f" else np.array(99999).astype(dtype), dtype)

    monkeypatch.setattr(evaluate, "blank", blank)


@pytest.mark.parametrize("name", FORMS)
def test_one_executable_is_right_at_every_size(name, monkeypatch):
    monkeypatch.setenv("TENFOLD_CACHE_DIR", "")
    form = FORMS[name]
    _lstm(tn), _gru(tn)  # made before the function that reads them
    compiled = tn.compile(lambda x, y: form(tn, x, y), dynamic=True)
    random = torch.Generator().manual_seed(0)
    with counting_compiles() as compiles:
        for size in (5, 16, 2, 9):
            x, y = (torch.randn(size, 3, generator=random) for _ in range(2))
            expected = form(torch, x, y)
            results = compiled(*(tn.tensor(each.numpy()) for each in (x, y)))
            for i, (result, wanted) in enumerate(zip(results, expected, strict=True)):
                where = f"result {i} at size {size}"
                assert tuple(result.shape) == tuple(wanted.shape), where
                np.testing.assert_allclose(
                    result.numpy(), wanted.numpy(), rtol=1e-4, atol=1e-5, err_msg=where
                )
    assert compiles == 1


def test_sums_along_a_dimension_are_open_between_powers_of_two():
    compiled = tn.compile(lambda x: (x.cumsum(0), (x > 0).cumsum(0)), dynamic=True)
    with counting_compiles() as compiles:
        for size in (5, 8, 7):
            x = np.random.default_rng(size).normal(size=(size, 3)).astype(np.float32)
            sums, counts = compiled(tn.tensor(x))
            np.testing.assert_allclose(sums.numpy(), x.cumsum(0), atol=1e-5)
            np.testing.assert_array_equal(counts.numpy(), (x > 0).cumsum(0))
    assert compiles <= 1


def test_every_op_has_a_rule_or_is_known_to_have_none():
    known = {"SelectAndScatter", "CustomCall", "ShardingConstraint"}
    known |= {"AllGather", "AllReduce", "AllToAll", "CollectivePermute", "ManualComputation", "PartitionId"}
    known |= {"ReduceScatter"}
    known |= {"CuttingConvolution"}  # made where a program is prepared for a GPU
    everything, waiting = set(), [Op]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if kind.name and kind.__module__.startswith("tenfold.flat"):
            everything.add(kind)
    assert {each.__name__ for each in everything - set(OPEN) - {e.Unary, e.Binary}} == known


def test_windows_smaller_than_a_row_are_read_at_open_sizes():
    read = tn.func.vmap(lambda row, at: row.narrow(0, at, 2))
    compiled = tn.compile(read, dynamic=True)
    with counting_compiles() as compiles:
        for size in (5, 16, 2, 9):
            x = np.random.default_rng(size).normal(size=(size, 4)).astype(np.float32)
            at = np.arange(size) % 3
            expected = np.stack([row[i : i + 2] for row, i in zip(x, at)])
            np.testing.assert_array_equal(compiled(tn.tensor(x), tn.tensor(at)).numpy(), expected)
    assert compiles == 1
