"""Every function of `tenfold.nn.functional` beside PyTorch's: the same calls, values, writes and refusals."""

from __future__ import annotations

import inspect
import math
import re
import types
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.tensor.documentation import Docstring
from tests.nn.test_layer_use import example, run_example
from tests.ops.golden import close, to_numpy, usual_tolerance

F = tn.nn.functional
DRAWS = np.random.default_rng(0)
ARRAYS: dict[str, np.ndarray] = {
    "x": DRAWS.normal(size=(3, 4)).astype(np.float32) * 3,
    "d": DRAWS.normal(size=(2, 3, 4)) * 3,
    "half": DRAWS.normal(size=(3, 4)).astype(np.float16),
    "image": DRAWS.normal(size=(2, 4, 6, 6)).astype(np.float32),
    "volume": DRAWS.normal(size=(1, 2, 3, 3, 3)).astype(np.float32),
    "vector": DRAWS.normal(size=4).astype(np.float32),
    "scalar": np.array(-0.7, np.float32),
    "empty": np.zeros((0, 4), np.float32),
    "edges": np.array([0.0, -0.0, math.inf, -math.inf, math.nan, 0.5, -0.5, 1, -1, 3, -3, 6, 30], np.float32),
    "weight": DRAWS.normal(size=(5, 4)).astype(np.float32),
    "bias": DRAWS.normal(size=5).astype(np.float32),
    "cube": DRAWS.normal(size=(5, 4, 4)).astype(np.float32),
    "i": np.array([[0, 2, 4], [1, 1, 3]]),
    "counts": np.array([-3, -1, 0, 2, 9], np.int32),
}

# What takes numbers beside the tensor is called with some of them, on all these tensors.
TENSORS = ("x", "d", "half", "scalar", "empty", "edges")
ACTIVATIONS = """
relu({})
relu6({})
elu({})
elu({}, 0.5)
elu({}, alpha=2)
selu({})
celu({})
celu({}, 0.5)
gelu({})
silu({})
mish({})
gelu({}, approximate="tanh")
hardtanh({})
hardtanh({}, -2, 0.5)
hardswish({})
hardsigmoid({})
leaky_relu({})
leaky_relu({}, negative_slope=0.2)
rrelu({})
rrelu({}, 0.1, 0.5)
rrelu({}, lower=0.25, upper=0.25)
softplus({})
softplus({}, 2)
softplus({}, beta=0.5, threshold=1)
softshrink({})
softshrink({}, 0.25)
hardshrink({})
hardshrink({}, lambd=1.5)
tanhshrink({})
threshold({}, 0.1, 20)
threshold({}, threshold=-1, value=0.5)
logsigmoid({})
softsign({})
sigmoid({})
tanh({})
softmax({}, 0)
softmax({}, dim=-1, dtype=xp.float64)
log_softmax({}, 0)
log_softmax({}, -1, dtype=xp.float64)
softmin({}, 0)
softmin({}, dim=-1, dtype=xp.float64)
softmax({})
log_softmax({})
softmin({})
normalize({}, dim=0)
""".strip().splitlines()
OTHERS = """
softmax(image)
softmax(vector)
softmax(counts, 0, dtype=xp.float32)
relu(counts)
relu6(counts)
hardtanh(counts)
threshold(counts, 1, -7)
tanhshrink(counts)
softsign(counts)
sigmoid(counts)
prelu(d, d[0, :, 0])
prelu(x, input_weight)
glu(x)
glu(image, 1)
glu(image, dim=-2)
linear(x, weight)
linear(x, weight, bias)
linear(d.float(), weight, bias=bias)
linear(vector, weight)
linear(input=x, weight=weight)
bilinear(x, x, cube)
bilinear(x, x + 1, cube, bias)
one_hot(i)
one_hot(i, 7)
one_hot(input=i, num_classes=5)
embedding(i, weight)
embedding(i, weight, padding_idx=0)
embedding(i, weight, -1)
embedding(i[0], weight.half(), padding_idx=4, scale_grad_by_freq=True, sparse=False)
pad(x, (1, 2))
pad(x, [1, 0, -1, 2], "constant", 1.5)
pad(x, (1, 1), value=3)
pad(i, (1, 1), value=3)
pad(image, pad=(1, 2), mode="constant")
pad(x, (1, 2), mode="reflect")
pad(image, (1, 2, 3, 0), mode="reflect")
pad(volume, (1, 2, 1, 0, 2, 1), "reflect")
pad(d, (1, 2), mode="replicate")
pad(image, (7, 2, 3, 0), mode="replicate")
pad(volume, (1, 2, 1, 0, 4, 1), "replicate")
pad(x, (1, 2), mode="circular")
pad(image, (6, 2, 3, 0), mode="circular")
pad(volume, (1, 2, 1, 0, 2, 1), "circular")
normalize(d)
normalize(x, 1.0)
normalize(x, p=3, dim=-1, eps=5.0)
normalize(x, math.inf, 0)
normalize(x * 0)
normalize(half)
cosine_similarity(x, x + 1)
cosine_similarity(d, d * 2 - 1, dim=-1, eps=0.5)
pairwise_distance(x, x + 1)
pairwise_distance(x, x * 2, p=1, eps=0.1, keepdim=True)
pdist(x[0:1].reshape(-1, 2))
pdist(x.reshape(-1, 2), p=1)
pixel_shuffle(image, 2)
pixel_unshuffle(image, downscale_factor=3)
channel_shuffle(image, 2)
native_channel_shuffle(image, 2)
dropout(x, 0.0)
dropout(x, p=1.0)
dropout(x, 0.5, False)
alpha_dropout(x)
alpha_dropout(x, 1.0, True)
alpha_dropout(x, 0.0, True)
feature_alpha_dropout(image)
feature_alpha_dropout(image, p=1.0, training=True)
dropout1d(x, 1.0)
dropout1d(d, 1.0)
dropout1d(x, training=False)
dropout2d(image, 1.0)
dropout2d(d, 1.0)
dropout2d(x, 1.0)
dropout2d(image, 0.5, False)
dropout3d(volume, 1.0)
dropout3d(image, 1.0)
dropout3d(d, 1.0)
dropout3d(volume, training=False)
""".strip().splitlines()
CALLS = [each.format(name) for name in TENSORS for each in ACTIVATIONS] + OTHERS
# PyTorch's gelu of infinity depends on the number of elements: infinity for one, NaN for several.
CALLS[CALLS.index("gelu(edges)")] = "gelu(edges[edges != math.inf])"


def evaluated(call: str, xp: Any) -> Any:
    """The call by one of the two libraries, on tensors of its own."""
    names: dict[str, Any] = {name: xp.tensor(array) for name, array in ARRAYS.items()}
    names |= {"input_weight": xp.tensor([0.3]), "xp": xp, "math": math}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(call, vars(xp.nn.functional) | names)


def difference(ours: tn.Tensor, theirs: torch.Tensor, call: str) -> str | None:
    """How a result of ours differs from PyTorch's."""
    found, golden = ours.numpy(), to_numpy(theirs)
    same_type = ours.dtype.name == str(theirs.dtype).removeprefix("torch.") and found.shape == golden.shape
    if same_type and close(found, golden, *usual_tolerance(ours.dtype.name)).all():
        return None
    return f"{call} gave {found!r}, PyTorch {golden!r}"


def assert_same(ours: tn.Tensor, theirs: torch.Tensor, call: str) -> None:
    assert difference(ours, theirs, call) is None


def test_every_function_gives_what_pytorch_gives():
    theirs = [evaluated(call, torch) for call in CALLS]
    ours = [evaluated(call, tn) for call in CALLS]
    tn.eval(ours)
    differences = [
        message
        for each in zip(ours, theirs, CALLS, strict=True)
        if (message := difference(*each)) is not None
    ]
    assert differences == []


def functions() -> list[str]:
    found = [name for name, each in vars(F).items() if callable(each) and hasattr(torch.nn.functional, name)]
    return [name for name in found if not name.startswith("_") and name != "Tensor" and name != "DType"]


def test_every_function_is_called_by_some_test():
    here = Path(__file__).parent
    tests = [*here.glob("*.py"), here.parent / "compat" / "test_names.py"]
    written = "\n".join(path.read_text(encoding="utf-8") for path in tests)
    missing = [name for name in functions() if not re.search(rf"\b{name}\b", written)]
    assert missing == []


def test_every_function_of_pytorchs_that_has_a_row_is_there():
    rows = tn.ops.table.TABLE
    # `unfold` there takes blocks of images; the row of that name is the method, a view.
    wanted = [n for n in dir(torch.nn.functional) if n.removesuffix("_") in rows and n != "unfold"]
    assert len(wanted) > 40
    assert [name for name in wanted if not hasattr(F, name)] == []


def test_signatures_are_pytorchs():
    compared = 0
    plain = lambda each: str(each).split(".")[1] if type(each).__name__.lower() == "dtype" else each
    for name in functions():
        try:
            theirs = inspect.signature(getattr(torch.nn.functional, name))
        except ValueError:
            continue  # built in: its names are tried by the calls above
        ours = inspect.signature(getattr(F, name))
        if not any(each.kind is each.VAR_KEYWORD for each in ours.parameters.values()):
            described = lambda s: [(p.name, plain(p.default), p.kind) for p in s.parameters.values()]
            assert described(ours) == described(theirs), name
            compared += 1
    assert compared >= 80


# Writing into the input


WRITES = """
relu(t, True)
relu_(t)
relu6(t, inplace=True)
elu(t, 0.5, True)
elu_(t)
elu_(t, alpha=0.5)
selu(t, inplace=True)
selu_(t)
celu(t, 2.0, inplace=True)
celu_(t, 0.5)
silu(t, inplace=True)
mish(t, inplace=True)
hardtanh(t, -0.5, 0.5, True)
hardtanh_(t)
hardtanh_(t, min_val=-2, max_val=0)
hardswish(t, inplace=True)
hardsigmoid(t, inplace=True)
leaky_relu(t, 0.3, True)
leaky_relu_(t)
rrelu(t, inplace=True)
rrelu_(t)
threshold(t, 0.5, 9, inplace=True)
threshold_(t, 0.5, 9)
dropout(t, 1.0, inplace=True)
alpha_dropout(t, 1.0, True, True)
feature_alpha_dropout(t, 1.0, True, True)
dropout1d(t, 1.0, inplace=True)
dropout2d(t, 1.0, inplace=True)
dropout3d(t, 1.0, inplace=True)
dropout(t, 0.5, False, True)
""".strip().splitlines()


def written(call: str, xp: Any) -> tuple[Any, Any, Any]:
    """The memory behind a view that the call writes into, the view, and what the call returns."""
    memory = xp.tensor(ARRAYS["x"])
    view = memory[1:, ::2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return memory, view, eval(call, vars(xp.nn.functional) | {"t": view})


def test_inplace_calls_write_into_the_input_and_its_memory():
    theirs = [written(call, torch) for call in WRITES]
    ours = [written(call, tn) for call in WRITES]
    tn.eval([each[0] for each in ours], [each[1] for each in ours])
    for call, (memory, view, result), (their_memory, their_view, their_result) in zip(WRITES, ours, theirs):
        assert result is view, call
        assert (their_result == their_view).all(), call
        assert_same(memory, their_memory, call)
        assert_same(view, their_view, call)


def test_the_input_is_left_alone_otherwise():
    x = tn.tensor(ARRAYS["x"])
    kept = [call.format("x") for call in ACTIVATIONS]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = [eval(call, vars(F) | {"x": x, "xp": tn}) for call in kept]
    assert all(result is not x for result in results)
    assert (x.numpy() == ARRAYS["x"]).all()


def test_an_expanded_tensor_cannot_be_written():
    for xp in (torch, tn):
        with pytest.raises(RuntimeError if xp is torch else tn.TenfoldError):
            xp.nn.functional.elu_(xp.ones(1).expand(3))


def test_embedding_shortens_the_rows_that_it_reads():
    for norm in (2.0, 1.0, math.inf):
        ours, theirs = (xp.tensor(ARRAYS["weight"] * 3) for xp in (tn, torch))
        places = [[0, 2], [2, 1]]
        found = F.embedding(tn.tensor(places), ours, max_norm=1.5, norm_type=norm)
        golden = torch.nn.functional.embedding(torch.tensor(places), theirs, max_norm=1.5, norm_type=norm)
        tn.eval(found, ours)
        assert_same(found, golden, "embedding")
        assert_same(ours, theirs, "embedding's weight")


def test_the_tangent_of_rows_that_embedding_shortens_stays():
    def run(xp):
        ahead = xp.autograd.forward_ad
        weight, tangent = xp.tensor(ARRAYS["weight"] * 3), xp.tensor(ARRAYS["weight"])
        with ahead.dual_level():
            dual = ahead.make_dual(weight, tangent)
            rows = xp.nn.functional.embedding(xp.tensor([2, 0]), dual, max_norm=1.5)
            return [np.array(x.tolist()) for x in (*ahead.unpack_dual(rows), ahead.unpack_dual(dual).tangent)]

    for found, golden in zip(run(tn), run(torch), strict=True):
        np.testing.assert_allclose(found, golden, 1e-6)


def test_a_padding_row_takes_no_gradient_of_nan():
    def run(xp):
        weight = xp.ones(3, 2, requires_grad=True)
        rows = xp.nn.functional.embedding(xp.tensor([0, 1, 1]), weight, padding_idx=1)
        rows.backward(xp.tensor([[1.0, 2.0], [math.nan, 0.0], [math.inf, 1.0]]))
        return weight.grad.tolist()

    assert run(tn) == run(torch)


def test_normalize_writes_into_out():
    out = tn.empty(3, 4)
    assert F.normalize(tn.tensor(ARRAYS["x"]), out=out) is out
    assert_same(out, evaluated("normalize(x)", torch), "normalize")


# Draws: PyTorch's numbers are its own, so their distribution is tested


def test_dropout_keeps_a_share_and_the_mean():
    tn.manual_seed(1)
    x = tn.ones(100, 100)
    kept = F.dropout(x, 0.25)
    assert sorted(set(kept.reshape(-1).tolist())) == pytest.approx([0, 4 / 3])
    assert kept.mean().item() == pytest.approx(1, abs=0.03)
    assert F.dropout(x).mean().item() == pytest.approx(1, abs=0.05)
    alpha = F.alpha_dropout(tn.randn(200, 200), 0.3, True)
    assert (alpha.mean().item(), alpha.std().item()) == pytest.approx((0, 1), abs=0.05)


def test_channels_are_dropped_whole():
    tn.manual_seed(2)
    for call, shape in (
        (F.dropout1d, (9, 8, 5)),
        (F.dropout1d, (72, 5)),
        (F.dropout2d, (9, 8, 5, 2)),
        (F.dropout3d, (9, 8, 5, 2, 2)),
        (F.dropout3d, (72, 5, 2, 2)),
    ):
        dropped = call(tn.ones(*shape)).numpy().reshape(72, -1)
        assert (dropped == dropped[:, :1]).all()
        assert set(np.unique(dropped)) == {0.0, 2.0}
    x = tn.ones(9, 8, 5)
    alpha = F.feature_alpha_dropout(x, training=True).numpy().reshape(72, -1)
    assert (alpha == alpha[:, :1]).all() and len(np.unique(alpha)) == 2


def test_dropout_that_drops_nothing_is_the_input():
    x = tn.ones(3, 4)
    state = tn.get_rng_state().tolist()
    assert F.dropout(x, training=False) is x
    assert F.dropout(x, 0.0) is x
    assert F.alpha_dropout(x) is x
    assert F.dropout1d(x, training=False) is x
    assert tn.get_rng_state().tolist() == state


def test_rrelu_draws_slopes_while_training():
    tn.manual_seed(3)
    x = -tn.ones(1000)
    slopes = -F.rrelu(x, 0.2, 0.6, training=True).numpy()
    assert 0.2 <= slopes.min() < 0.22 and 0.58 < slopes.max() <= 0.6
    assert slopes.mean() == pytest.approx(0.4, abs=0.02)
    assert F.rrelu(-x, training=True).tolist() == [1.0] * 1000
    F.rrelu_(x, 0.2, 0.6, True)
    assert len(set(x.tolist())) > 900


def test_gumbel_softmax_draws_by_the_logits():
    tn.manual_seed(4)
    share = np.array([0.1, 0.2, 0.7])
    logits = tn.tensor(np.log(share).astype(np.float32)).expand(20000, 3)
    soft, hard = F.gumbel_softmax(logits, tau=0.5), F.gumbel_softmax(logits, hard=True)
    columns = F.gumbel_softmax(tn.zeros(3, 5), dim=0)
    tn.eval(soft, hard, columns)
    assert soft.sum(-1).numpy() == pytest.approx(1, abs=1e-5)
    assert columns.sum(0).numpy() == pytest.approx(1, abs=1e-5)
    assert ((hard.numpy().round(5) == 1).sum(-1) == 1).all()
    assert hard.numpy().mean(0) == pytest.approx(share, abs=0.02)
    assert (np.bincount(soft.argmax(-1).numpy()) / 20000) == pytest.approx(share, abs=0.02)
    with pytest.warns(UserWarning, match="eps"):
        F.gumbel_softmax(logits, eps=1e-3)


# Warnings and refusals


@pytest.mark.parametrize(
    "call",
    ["softmax(x)", "softmin(d)", "log_softmax(vector)", "dropout2d(d)", "dropout2d(x)", "dropout3d(d)"],
)
def test_what_pytorch_warns_of_is_warned_of(call):
    for xp in (torch, tn):
        names = {name: xp.tensor(array) for name, array in ARRAYS.items()}
        with pytest.warns(UserWarning) as caught:
            eval(call, vars(xp.nn.functional) | names)
        assert caught[0].filename == "<string>", "the warning points at the call"


REFUSED = [
    ("hardtanh(x, 1, -1)", "min_val 1 is greater than max_val -1"),
    ("dropout(x, 1.5)", "dropout: 1.5 is not a probability"),
    ("dropout(x, -0.1, training=False)", "not a probability"),
    ("alpha_dropout(x, 2.0)", "alpha_dropout: 2.0 is not a probability"),
    ("feature_alpha_dropout(x, 2.0)", "not a probability"),
    ("dropout1d(image)", "dropout1d: takes 2 or 3 dimensions, not 4"),
    ("dropout2d(vector)", "a batch and a feature dimension"),
    ("dropout3d(volume, 3)", "dropout3d: 3 is not a probability"),
    ("embedding(i, weight, 5)", "padding_idx 5 is none of the 5 rows"),
    ("embedding(i, weight, -6)", "padding_idx -6"),
    ("embedding(x, weight)", "embedding"),
    ("embedding(i + 1, weight).sum().item()", "out of range"),
    ("elu(counts)", "elu is not defined for int32"),
    ("gelu(x, approximate='erf')", "no approximation 'erf'"),
    ("gelu(x, 'tanh')", "gelu"),
    ("glu(vector[:3])", "odd"),
    ("softmax(x, 2)", "softmax"),
    ("softmax(counts, 0)", "softmax is not defined for int32"),
    ("linear(x, x.T)", "linear"),
    ("prelu(x, vector[:2])", "2 weights for 4 channels"),
    ("pad(x, (1, 2, 3))", "pair with the dimensions"),
    ("pad(x, (1, 2), 'mirror')", "no mode 'mirror'"),
    ("pad(x, (4, 0), 'reflect')", "must be less than 4"),
    ("pad(x, (1, 0), 'reflect', 2.0)", "takes no value"),
    ("one_hot(i, 3).sum().item()", "out of range for dimension 2 of size 3"),
    ("one_hot(x)", "one_hot"),
    ("pixel_shuffle(image, 3)", "pixel_shuffle"),
    ("channel_shuffle(image, 3)", "do not divide into 3 groups"),
    ("rrelu(x, 0.5, 0.1)", "lower bound below the upper"),
    ("softshrink(x, -1)", "not negative"),
    ("celu(x, 0)", "not zero"),
    ("relu(x, in_place=True)", "in_place"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_what_pytorch_refuses_is_refused_with_the_reason(call, message):
    with pytest.raises(Exception):  # noqa: B017  # whatever PyTorch raises
        evaluated(call, torch)
    with pytest.raises((tn.TenfoldError, TypeError), match=message):
        evaluated(call, tn)


def test_an_error_shows_the_line_of_the_call():
    with pytest.raises(tn.DTypeError) as caught:
        F.elu(tn.ones(2, dtype=tn.int32), inplace=True)
    assert str(caught.value).startswith("elu: ")
    assert "test_functional.py" in str(caught.value)


def test_scaled_products_are_pytorchs():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(16, 32)).astype(np.float32), rng.normal(size=(16, 32)).astype(np.float32)

    def run(xp):
        kinds = torch.nn.functional.ScalingType
        return xp.nn.functional.scaled_mm(
            xp.tensor(a).to(xp.float8_e4m3fn),
            xp.tensor(b).to(xp.float8_e4m3fn).t(),
            xp.tensor(0.5),
            kinds.TensorWise,
            xp.tensor(2.0),
            kinds.TensorWise,
            output_dtype=xp.float32,
        )

    np.testing.assert_allclose(run(tn).numpy(), run(torch).numpy(), rtol=1e-5, atol=1e-5)


DOCUMENTED = {
    name: each
    for name, each in vars(F).items()
    if isinstance(each, types.FunctionType)
    and not name.startswith("_")
    and name not in ("located", "unknown_name", "warn")  # which the module imports
    and not isinstance(each.__doc__, Docstring)  # the table's are held to theirs in tests/tensor
}


@pytest.mark.filterwarnings("ignore:upsample:UserWarning", "ignore:affine_grid:UserWarning")
@pytest.mark.parametrize("name", DOCUMENTED)
def test_every_function_has_an_example_that_runs(name):
    code = example(DOCUMENTED[name])
    assert re.search(rf"\bF\.{name.replace('1d', '2d').replace('3d', '2d')}\b|\bF\.{name}\b", code)
    run_example(code, {"F": F, "tn": tn})


@pytest.mark.parametrize("library", [tn, torch])
@pytest.mark.parametrize("size", [4.0, True, "float tensor"])
def test_sizes_of_images_are_integers(library, size):
    size = library.tensor(4.0) if size == "float tensor" else size
    for given in (size, (size, size)):
        with pytest.raises(TypeError):
            library.nn.functional.interpolate(library.ones(1, 1, 2, 2), size=given)


def test_images_without_channels_are_sampled():
    for library in (tn, torch):
        sampled = library.nn.functional.grid_sample(
            library.ones(2, 0, 2, 3), library.zeros(2, 4, 3, 2), align_corners=False
        )
        assert tuple(sampled.shape) == (2, 0, 4, 3)
