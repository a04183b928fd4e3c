"""Layers in use: documented examples, mistakes, dtypes and devices, and training by programs that are
compiled once."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
import warnings
from typing import Any

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold import nn
from tenfold.runtime.executables import counting_compiles
from tests.nn.test_layers import layers

# Examples


def example(documented: Any) -> str:
    """The code in a docstring: what is indented, or a paragraph by itself that calls something of ours."""
    paragraphs = re.split(r"\n{2,}", inspect.getdoc(documented) or "")[1:]
    code = [each for each in paragraphs if each.startswith("    ")]
    code = code or [each for each in paragraphs if re.search(r"\b(F|nn|tn)\.[\w.]+\(", each)]
    return textwrap.dedent("\n".join(code))


WITH_EXAMPLES = {name: code for name, each in layers(nn).items() if (code := example(each))}


def run_example(code: str, names: dict) -> None:
    """Run an example. A comment behind a line is its value, to four decimals, or the shapes it assigns."""
    lines = code.splitlines()
    for statement in ast.parse(code).body:
        comment = lines[statement.end_lineno - 1].partition("# ")[2]
        exec(compile(ast.Module([statement], []), "example", "exec"), names)
        if not re.match(r"\[|-?\d", comment):
            continue
        if isinstance(statement, ast.Expr):
            value = eval(ast.unparse(statement.value), names)
            value = value.tolist() if isinstance(value, tn.Tensor) else list(value)
            value = np.round(value, 4).tolist()
            assert value == ast.literal_eval(comment), ast.unparse(statement)
        elif isinstance(statement, ast.Assign):
            shapes = [list(each.shape) for each in flat(eval(ast.unparse(statement.targets[0]), names))]
            stated = ast.literal_eval(comment)
            assert shapes == (list(stated) if isinstance(stated, tuple) else [stated])


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_documented_examples_run_and_give_what_they_say(name):
    run_example(WITH_EXAMPLES[name], {"nn": nn, "tn": tn})


def flat(result):
    return [tensor for each in result for tensor in flat(each)] if isinstance(result, tuple) else [result]


def test_every_layer_has_an_example():
    assert layers(nn).keys() - WITH_EXAMPLES.keys() == {"RNNBase", "RNNCellBase"}  # which nobody makes


# Mistakes


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: nn.Conv2d(3, 4, 3, groups=2), "Conv2d: in_channels 3 do not divide into 2 groups"),
        (lambda: nn.Conv2d(4, 3, 3, groups=2), "Conv2d: out_channels 3 do not divide"),
        (lambda: nn.Conv2d(4, 4, 3, groups=0), "number of groups is positive"),
        (lambda: nn.Conv2d(4, 4, (3, 3, 3)), "does not give one number for each of 2 dimensions"),
        (lambda: nn.Conv2d(4, 4, 3, padding="full"), "no padding 'full'"),
        (lambda: nn.Conv2d(4, 4, 3, 2, padding="same"), "stride of 1 only"),
        (lambda: nn.Conv2d(4, 4, 3, padding_mode="mirror"), "no padding mode 'mirror'"),
        (lambda: nn.ConvTranspose2d(4, 4, 3, padding_mode="reflect"), "ConvTranspose2d: .* zeros only"),
        (lambda: nn.ConvTranspose1d(1, 1, 2, 2)(tn.ones(1, 1, 3), [9]), "from \\[6\\] to \\[7\\]"),
        (lambda: nn.ConvTranspose1d(1, 1, 2)(tn.ones(1, 1, 3), [9, 9]), "output_size of 1 or 3 numbers"),
        (lambda: nn.BatchNorm2d(3)(tn.ones(2, 3)), "BatchNorm2d: takes 4 dimensions, not 2"),
        (lambda: nn.BatchNorm1d(3)(tn.ones(2, 3, 4, 5)), "BatchNorm1d: takes 2 or 3 dimensions, not 4"),
        (lambda: nn.SyncBatchNorm(3)(tn.ones(3)), "SyncBatchNorm: takes 2 dimensions or more, not 1"),
        (lambda: nn.SyncBatchNorm(0)(tn.ones(3, 0)), "SyncBatchNorm: takes one channel or more"),
        (lambda: nn.SyncBatchNorm(3, process_group=1), "takes a process group, not a int"),
        (lambda: nn.InstanceNorm2d(3, affine=True)(tn.ones(2, 4, 5, 5)), "takes 3 channels, not 4"),
        (lambda: nn.GroupNorm(2, 3), "GroupNorm: 3 channels do not divide into 2 groups"),
        (lambda: nn.Dropout(1.5), "Dropout: 1.5 is not a probability"),
        (lambda: nn.Embedding(3, 2, padding_idx=3), "Embedding: padding_idx 3 is none of the 3 rows"),
        (lambda: nn.Embedding(3, 2, _weight=tn.ones(2, 2)), "not of shape \\(3, 2\\)"),
        (lambda: nn.Embedding.from_pretrained(tn.ones(2)), "two dimensions, not 1"),
        (lambda: nn.Unflatten(1, 5), "Unflatten: unflattened_size is a tuple"),
        (lambda: nn.Unflatten("C", (5,)), "dimensions have numbers here"),
        (lambda: nn.Softmax2d()(tn.ones(2)), "Softmax2d: takes 3 or 4 dimensions"),
        (lambda: nn.Hardtanh(1.0, -1.0), "Hardtanh: min_val 1.0 is not less"),
        (lambda: nn.FractionalMaxPool2d(2), "either output_size or output_ratio"),
        (lambda: nn.FractionalMaxPool2d(2, output_ratio=1.5), "between 0 and 1"),
        (lambda: nn.MultiheadAttention(7, 2), "MultiheadAttention: embed_dim 7 does not divide into 2 heads"),
        (lambda: nn.MultiheadAttention(0, 2), "are positive"),
        (lambda: nn.TransformerEncoderLayer(4, 2, activation="tan"), "no activation 'tan'"),
        (lambda: nn.Transformer(4, 2, 1, 1, 4)(tn.ones(3, 1, 4), tn.ones(3, 2, 4)), "a batch of 1"),
        (lambda: nn.Transformer(4, 2, 1, 1, 4)(tn.ones(3, 1, 5), tn.ones(3, 1, 4)), "d_model = 4 features"),
        (lambda: nn.LSTM(3, 0), "LSTM: hidden_size is positive"),
        (lambda: nn.GRU(0, 3), "GRU: input_size is positive"),
        (lambda: nn.RNN(3, 4, bias=1), "bias is True or False, not 1"),
        (lambda: nn.LSTM(3, 4, batch_first="yes"), "batch_first is True or False"),
        (lambda: nn.LSTM(3, 4.0), "hidden_size is an int"),
        (lambda: nn.LSTM(3, 4, proj_size=4), "proj_size 4 is not from 0"),
        (lambda: nn.LSTM(3, 4, 2, dropout=2.0), "dropout is a probability"),
        (lambda: nn.RNN(3, 4, nonlinearity="sin"), "RNN: no nonlinearity 'sin'"),
        (lambda: nn.RNNCell(3, 4, nonlinearity="sin"), "RNNCell: no nonlinearity 'sin'"),
        (lambda: nn.GRU(3, 4)(tn.ones(2)), "GRU: takes a sequence of 2 or 3 dimensions"),
        (lambda: nn.GRU(3, 4)(tn.ones(2, 2, 5)), "input_size = 3 features, not 5"),
        (lambda: nn.GRU(3, 4)(tn.ones(2, 2, 3), tn.ones(1, 3, 4)), "h_0 is \\(1, 3, 4\\), not \\(1, 2, 4\\)"),
        (lambda: nn.GRU(3, 4)(tn.ones(2, 3), tn.ones(1, 1, 4)), "hx has 2 dimensions, not 3"),
        (lambda: nn.LSTM(3, 4)(tn.ones(2, 2, 3), tn.ones(1, 2, 4)), "hx is \\(h_0, c_0\\)"),
        (lambda: nn.GRUCell(3, 4)(tn.ones(1, 1, 3)), "GRUCell: takes 1 or 2 dimensions"),
        (lambda: nn.MultiMarginLoss(p=3), "MultiMarginLoss: p is 1 or 2"),
        (lambda: nn.TripletMarginLoss(margin=0), "the margin is positive"),
        (lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 5, [3, 2]), "cutoffs are increasing"),
        (lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 5, [2])(tn.ones(4), tn.zeros(2).long()), "a target"),
        (lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 5, [2])(tn.ones(1, 4), tn.tensor([5])).loss.item(),
         "out of range"),
        (lambda: nn.Linear(-1, 2), "size \\(2, -1\\) cannot be made"),
        (lambda: nn.NoSuchLayer, "no 'NoSuchLayer'"),
    ],
)  # fmt: skip
def test_mistakes_are_refused_by_the_layers_name(act, message):
    with pytest.raises(tn.TenfoldError, match=message) as caught:
        act()
    assert "test_layer_use.py" in str(caught.value)


def test_what_pytorch_warns_of_is_warned_of():
    for xp in (tn, torch):
        for act, kind in (
            (lambda xp=xp: xp.nn.LSTM(3, 4, dropout=0.5), UserWarning),
            (lambda xp=xp: xp.nn.MSELoss(size_average=True), UserWarning),
            (lambda xp=xp: xp.nn.Hardtanh(min_value=-2.0), FutureWarning),
            (lambda xp=xp: xp.nn.InstanceNorm1d(3)(xp.ones(2, 4, 5)), UserWarning),
        ):
            with pytest.warns(kind) as caught:
                act()
            assert xp is torch or caught[0].filename == __file__


# Dtypes


def test_layers_take_a_dtype_and_a_device():
    place = {"dtype": tn.float64, "device": "cpu"}
    for layer in (
        nn.Linear(2, 2, **place), nn.Bilinear(2, 2, 2, **place), nn.Conv2d(2, 2, 2, **place),
        nn.ConvTranspose1d(2, 2, 2, **place), nn.BatchNorm1d(2, **place), nn.LayerNorm(2, **place),
        nn.GroupNorm(1, 2, **place), nn.RMSNorm(2, **place), nn.Embedding(2, 2, **place), nn.PReLU(**place),
        nn.EmbeddingBag(2, 2, **place), nn.LSTM(2, 2, **place), nn.GRUCell(2, 2, **place),
        nn.MultiheadAttention(2, 1, **place), nn.Transformer(2, 1, 1, 1, 2, **place),
        nn.InstanceNorm1d(2, affine=True, **place), nn.AdaptiveLogSoftmaxWithLoss(4, 4, [2], **place),
    ):  # fmt: skip
        assert {each.dtype for each in layer.parameters()} == {tn.float64}, layer


def test_embeddings_may_be_given():
    given = tn.arange(6.0).reshape(3, 2)
    for kind in (nn.Embedding, nn.EmbeddingBag):
        frozen, trained = kind.from_pretrained(given), kind.from_pretrained(given, freeze=False)
        assert not frozen.weight.requires_grad and trained.weight.requires_grad
        assert frozen.weight.tolist() == given.tolist()


def test_attention_takes_masks_as_pytorchs():
    torch.manual_seed(0)
    theirs = torch.nn.MultiheadAttention(4, 2, batch_first=True)
    ours = nn.MultiheadAttention(4, 2, batch_first=True)
    ours.load_state_dict({name: tn.tensor(each.numpy()) for name, each in theirs.state_dict().items()})
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    late = np.triu(np.ones((3, 3), bool), 1)
    padding = np.array([[False, False, True], [False, False, False]])
    found, golden = [], []
    for xp, module, results in ((tn, ours, found), (torch, theirs, golden)):
        given = xp.tensor(x)
        for options in (
            {"attn_mask": xp.tensor(late)},
            {"attn_mask": xp.tensor(late), "key_padding_mask": xp.tensor(padding)},
            {
                "attn_mask": xp.nn.Transformer.generate_square_subsequent_mask(3),
                "average_attn_weights": False,
            },
            {"attn_mask": xp.tensor(late), "is_causal": True, "need_weights": False},
        ):
            results += [each for each in module(given, given, given, **options) if each is not None]
    tn.eval(found)
    for mine, theirs_each in zip(found, golden, strict=True):
        np.testing.assert_allclose(mine.detach().numpy(), theirs_each.detach().numpy(), 1e-4, 1e-6)


# Training


def model() -> nn.Module:
    tn.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 3))


def train(network: nn.Module, step_count: int) -> list[float]:
    points = np.random.default_rng(1).normal(size=(32, 4)).astype(np.float32)
    x, target = tn.tensor(points), tn.tensor((points.sum(1) > 0) + (points[:, 0] > 1).astype(int))
    losses = []
    for _ in range(step_count):
        network.zero_grad()
        loss = nn.CrossEntropyLoss()(network(x), target)
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        with tn.no_grad():
            for each in network.parameters():
                each -= 0.5 * each.grad
        losses.append(loss.item())
    return losses


def test_a_network_learns():
    losses = train(model(), 30)
    assert losses[-1] < 0.5 * losses[0]


def test_every_step_of_training_is_the_same_program():
    network = model()
    train(network, 2)
    with counting_compiles() as compiles:
        train(network, 3)
    assert compiles == 0
    assert network[1].num_batches_tracked.item() == 5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        network.eval()(tn.ones(2, 4)).eval()


@pytest.mark.parametrize("size", [1, 3, 4, 5])
def test_the_older_response_norm_computes_what_pytorchs_does(size):
    x = np.random.default_rng(0).normal(size=(2, 5, 3, 2)).astype(np.float32)
    ours = tn.nn.CrossMapLRN2d(size, alpha=0.1, k=2)(tn.tensor(x))
    theirs = torch.nn.CrossMapLRN2d(size, alpha=0.1, k=2)(torch.tensor(x))
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-5)


def test_batch_norms_become_those_of_all_processes_with_their_state():
    inner = nn.Sequential(nn.BatchNorm1d(3, momentum=None), nn.BatchNorm1d(3, affine=False).eval())
    model = nn.ModuleDict({"inner": inner, "last": nn.Linear(3, 2)})
    before = dict(model.state_dict(keep_vars=True))
    x = tn.tensor([[1.0, 2.0, 3.0], [3.0, 1.0, -1.0]])
    expected = inner(x).tolist()
    found = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    assert found is model
    assert [type(each).__name__ for each in inner] == ["SyncBatchNorm", "SyncBatchNorm"]
    assert inner[0].momentum is None and not inner[1].training and inner[1].weight is None
    after = model.state_dict(keep_vars=True)
    assert list(after) == list(before) and all(after[name] is before[name] for name in before)
    assert inner(x).tolist() == expected
    assert type(nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm2d(2))) is nn.SyncBatchNorm
