"""Programs of every shape as modules: what they write, branch on, take and return, on XLA and on IREE; and
what cannot be one, with the reason."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tn
import tenfold.nn.functional as F
from tenfold import nn


def assigns_into_slices(x):
    y = x.clone()
    y[0] = 5.0
    y[1:, ::2] = x[1:, ::2] * 2
    y[x > 0.9] = -1.0
    return y


def writes_to_views(x):
    y = x * 2
    row = y[1]
    row.add_(1)
    y.view(-1)[2:5].mul_(3)
    y.t()[0].zero_()
    return y, row


def branches_on_shapes(x):
    if x.shape[0] % 2 == 0 and x.ndim == 2:
        return x.sum(0)
    return x.sum(1)


def returns_a_tree(x):
    return {"both": (x, [x + 1]), "count": 3, "scalar": x.sum(), "none": None}


def without_inputs():
    return tn.arange(6).view(2, 3) * 2


def of_a_scalar(x):
    return x * 2, x.reshape(1), x.expand(3)


def of_nothing(x):
    return x.sum(), tn.cat([x, tn.ones(2, 3)]), x.t()


def loops(x):
    total = tn.zeros(x.shape[1])
    for row in x:
        total = total + row.tanh()
    return total


def chooses_by_data(x):
    return tn.cond(x.sum() > 100, lambda x: x.sin() * 2, lambda x: (x + 1).cos(), (x,))


def repeats_by_data(x):
    return tn.while_loop(lambda i, x: x.sum() < 50, lambda i, x: (i + 1, x * 2), (0, x))


def is_easily_misread(x):
    x = x.clone()
    x[..., -1] = x[..., 0]
    x[-2:, :1] = 7
    put = x.index_put((tn.tensor([-1, 0]),), tn.ones(2, 3))
    slopes = F.prelu(x[None] - 0.5, tn.arange(4.0))
    return x, put, slopes, x.narrow(0, -2, 2), x.renorm(2, -1, 0.5), tn.select_scatter(x, tn.zeros(3), 0, -3)


def in_other_words(x):
    y = tn.clip(x, 0.2, 0.8)
    bits = (x > 0.5) | True
    tails = (tn.hypot(x * 1e30, y * 1e30), tn.erfc(x * 8 - 2))
    pairs = (tn.true_divide(x, y + 1), tn.subtract(x, y, alpha=2), tn.greater(x, y))
    shapes = (y.swapaxes(0, 1), y.ravel(), y.mT, tn.moveaxis(y, 0, -1), y[None].squeeze((0, 1)))
    losses = (
        F.huber_loss(x, y, delta=0.1),
        F.smooth_l1_loss(x, y, reduction="sum"),
        F.softshrink(x - 0.5, 0.2),
    )
    return (
        bits,
        *tails,
        *pairs,
        *shapes,
        *losses,
        *tn.std_mean(x, 1),
        F.conv1d(x[None], tn.ones(2, 4, 2), padding="same"),
    )


def reads_and_writes_by_strides(x):
    y = x.clone()
    y.as_strided((2, 2), (3, 2), 1).mul_(2)
    y.diagonal(-1).add_(5)
    patches = F.unfold(x[None], (2, 2), padding=1, stride=2)
    return y, x.as_strided((2, 3), (1, 4)), x.as_strided((2, 3), (3, 1), 4), x.unfold(0, 2, 1), patches


def picks_classes(x):
    classes, weight = tn.tensor([2, 0, 1, 1]), tn.tensor([1.0, 2.0, 0.5])
    images = x.view(1, 3, 2, 2)
    return (
        F.cross_entropy(x, classes),
        F.cross_entropy(x, classes, weight, ignore_index=1, label_smoothing=0.1),
        F.cross_entropy(x, x.softmax(1)),
        F.cross_entropy(images, classes.view(1, 2, 2), reduction="sum"),
        F.nll_loss(x, classes, weight, reduction="none"),
        F.nll_loss(x[0], classes[0]),
    )


def pools_and_resamples(x):
    image, batch = x[None], x[None, None]
    return (
        F.avg_pool2d(image, 2, stride=1),
        F.max_pool1d(x, 2, stride=1),
        *F.max_pool2d(image, 2, stride=1, return_indices=True),
        F.adaptive_avg_pool2d(image, (3, 2)),
        F.adaptive_avg_pool1d(x, 2),
        *F.adaptive_max_pool2d(batch, (3, 2), return_indices=True),
        F.interpolate(batch, (7, 5), mode="bilinear"),
        F.interpolate(batch, scale_factor=0.5, mode="bilinear", align_corners=True),
        F.interpolate(image, scale_factor=1.7, mode="linear"),
    )


def weighs_logarithms_and_bytes(x):
    small = (x * 100).to(tn.int8)
    statistics = F.batch_norm(x, tn.zeros(3), tn.ones(3))
    zero = x - x
    logarithms = (tn.xlogy(x, 2.0), tn.xlogy(zero, zero), tn.xlogy(2, x), tn.special.xlog1py(x, x))
    return (*logarithms, small @ small.T, small >> 1, 1 << (small & 3), statistics)


X = (4, 3)
PROGRAMS = {
    reads_and_writes_by_strides: [X],
    picks_classes: [X],
    pools_and_resamples: [X],
    weighs_logarithms_and_bytes: [X],
    is_easily_misread: [X],
    in_other_words: [X],
    assigns_into_slices: [X],
    writes_to_views: [X],
    branches_on_shapes: [X],
    returns_a_tree: [X],
    without_inputs: [],
    of_a_scalar: [()],
    of_nothing: [(0, 3)],
    loops: [X],
    chooses_by_data: [X],
    repeats_by_data: [X],
}


def leaves(tree) -> list[tn.Tensor]:
    if isinstance(tree, tn.Tensor):
        return [tree]
    if isinstance(tree, (int, float)):
        return [tn.tensor(tree, dtype=tn.float64 if isinstance(tree, float) else None)]
    parts = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, (tuple, list)) else ()
    return [leaf for part in parts for leaf in leaves(part)]


@pytest.mark.parametrize(("dialect", "engine"), [("stablehlo", "xla"), ("torch", "iree")])
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_a_module_computes_what_the_program_does(function, dialect, engine):
    tn.manual_seed(0)
    given = [tn.rand(shape).eval() for shape in PROGRAMS[function]]
    expected = leaves(function(*[each.clone() for each in given]))
    tn.eval(*expected)
    exported = tn.export(function, given, dialect=dialect)
    run = tn.load_stablehlo(exported.portable()) if engine == "xla" else tn.load_vmfb(exported.build())
    found = leaves(run(*given))
    for one, two in zip(found, expected, strict=True):
        assert (one.shape, one.dtype) == (two.shape, two.dtype)
        np.testing.assert_allclose(one.numpy(), two.detach().numpy(), rtol=1e-5)


def test_a_program_that_only_writes_gives_what_it_wrote():
    counter = nn.Module()
    counter.register_buffer("count", tn.zeros(2))

    def step(x):
        counter.count.add_(x)

    exported = tn.export(step, tn.ones(2), dialect="stablehlo")
    assert len(exported.writes) == 1 and [str(each) for each in exported.outputs] == ["f32[2]"]
    run = tn.load_stablehlo(exported.portable())
    assert run(tn.ones(2), *exported.parameters.values()).tolist() == [1, 1]
    assert counter.count.tolist() == [0, 0]


@pytest.mark.parametrize("dialect", ["torch", "stablehlo"])
def test_what_a_function_makes_and_writes_is_its_own_business(dialect):
    def function(x):
        counts = tn.tensor([1.0, 2.0, 3.0])
        counts.add_(x)
        return nn.BatchNorm1d(3)(x[None].expand(2, 3)) + counts

    exported = tn.export(function, tn.ones(3), dialect=dialect)
    assert (exported.parameters, exported.writes) == ({}, ())
    assert [str(each) for each in exported.outputs] == ["f32[2,3]"]


def test_a_layer_that_learns_statistics_gives_the_next_ones():
    tn.manual_seed(0)
    layer, x = nn.BatchNorm1d(3), tn.rand(4, 3)
    exported = tn.export(layer, x)
    results = tn.load_vmfb(exported.build())(x, *[each.detach() for each in exported.parameters.values()])
    found = dict(zip(("result", *exported.writes), results, strict=True))
    expected = {"result": layer(x).detach(), **dict(layer.named_buffers())}
    for name, value in expected.items():
        np.testing.assert_allclose(found[name].numpy(), value.numpy(), rtol=1e-5, atol=1e-6)


def test_an_argument_that_is_written_is_given_back():
    exported = tn.export(lambda x: x.mul_(2).sum(), tn.ones(3))
    assert exported.writes == ("argument 0",)
    total, written = tn.load_vmfb(exported.build())(tn.ones(3))
    assert (total.item(), written.tolist()) == (6, [2, 2, 2])


def test_numbers_among_the_results_are_tensors_without_dimensions():
    exported = tn.export(lambda x: (x.ndim, 2.5, True, None, x.sum()), tn.ones(2, 3), dialect="stablehlo")
    assert [str(each) for each in exported.outputs] == ["i64[]", "f64[]", "bool[]", "f32[]"]
    found = tn.load_stablehlo(exported.portable())(tn.ones(2, 3))
    assert [each.item() for each in found] == [2, 2.5, True, 6]


def test_choices_and_loops_are_ops_of_the_torch_dialect():
    text = tn.export(chooses_by_data, tn.ones(2)).text()
    assert "torch.prim.If %" in text and text.count("torch.prim.If.yield") == 2
    text = tn.export(repeats_by_data, tn.ones(2)).text()
    assert "torch.prim.Loop %" in text and "torch.prim.Loop.condition" in text
    assert "scf.if" in tn.export(chooses_by_data, tn.ones(2), dialect="linalg").text()


# What cannot be a module


def test_loops_that_torch_mlir_would_unroll_without_end_are_refused():
    with pytest.raises(tn.UnsupportedError, match="it would unroll its loop without end"):
        tn.export(repeats_by_data, tn.ones(2), dialect="linalg")


def test_branches_that_draw_are_refused_by_the_torch_dialect():
    noisy = lambda x: tn.cond(x.sum() > 0, lambda x: x + tn.rand(2), lambda x: x, (x,))
    with pytest.raises(tn.UnsupportedError, match="cond with random numbers inside"):
        tn.export(noisy, tn.ones(2))
    layer = nn.GRU(3, 4, dropout=0.5, num_layers=2)
    chosen = lambda x: tn.cond(
        x.sum() > 0, lambda x: layer(x)[0], lambda x: x.mean() + tn.ones(2, 1, 4), (x,)
    )
    with pytest.raises(tn.UnsupportedError, match="cond with random numbers inside"):
        tn.export(chosen, tn.ones(2, 1, 3))


def test_a_program_that_does_nothing_is_refused():
    with pytest.raises(tn.TraceError, match="neither returns nor changes a tensor"):
        tn.export(lambda x: None, tn.ones(2))


def test_a_question_about_data_is_refused_with_its_line():
    def function(x):
        if x.sum() > 0:
            return x
        return -x

    with pytest.raises(tn.TraceError) as raised:
        tn.export(function, tn.ones(2))
    assert "if x.sum() > 0:" in str(raised.value)


def test_a_size_that_depends_on_data_is_refused_in_the_name_of_export():
    with pytest.raises(tn.TraceError, match=r"^export: .*tenfold\.export records f once"):
        tn.export(lambda x: x[x > 0], tn.ones(2))


def test_a_gradient_has_no_word_in_the_torch_dialect_and_is_computed_in_stablehlo():
    def function(x):
        x = x.detach().requires_grad_()
        (x * x).sum().backward()
        return x.grad

    with pytest.raises(tn.UnsupportedError, match="the torch dialect has no gradients"):
        tn.export(function, tn.ones(3))
    exported = tn.export(function, tn.ones(3), dialect="stablehlo")
    assert exported.writes == ()  # nobody else sees the gradient of a tensor that the function made
    assert tn.load_stablehlo(exported.portable())(tn.full((3,), 2.0)).tolist() == [4, 4, 4]


def test_ops_that_have_no_lowering_there_are_named():
    with pytest.raises(tn.UnsupportedError, match="it has no lowering of aten.special_i0e"):
        tn.export(lambda x: tn.special.i0e(x), tn.ones(2), dialect="linalg")
