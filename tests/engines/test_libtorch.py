"""The libtorch engine: rows, programs, gradients and training on it agree with PyTorch and with XLA."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, EngineError, TenfoldError, UnsupportedError
from tenfold.engines import libtorch as by_libtorch
from tenfold.ops.table import TABLE, Row
from tests.ops import generate, golden
from tests.ops.golden import Call
from tests.tensor.test_views import Trace as AliasProgram

# What TorchScript alone knows, so that the dispatcher does not.
SCRIPT_ONLY = {
    "index.Tensor_hacked_twin", "index_put.hacked_twin", "_unsafe_index_put.hacked_twin",
    "__interpolate.size_list_scale_list",
}  # fmt: skip
# Uninitialised memory; and which of A and its transpose is factored, which depends on strides.
VALUES_VARY = {"empty.memory_format", "empty_like", "new_empty", "_linalg_det", "_linalg_slogdet"}
ROWS = [row for rows in TABLE.values() for row in rows if not row.host and row.qualified not in SCRIPT_ONLY]
FAMILIES = [ROWS[i::12] for i in range(12)]


@pytest.fixture(autouse=True)
def libtorch() -> Iterator[Any]:
    tn.set_engine("libtorch")
    from tenfold.engines.libtorch import library

    before = library().tn_live_tensors(), library().tn_live_objects()
    yield library()
    tn.set_engine("xla")
    assert (library().tn_live_tensors(), library().tn_live_objects()) == before


def differences(row: Row, dtype: Any, count: int | None) -> tuple[int, list[str]]:
    """How many calls of a row were compared with PyTorch, and how they differ."""
    compared, wrong = 0, []
    for number, sample in generate.for_dtype(row, dtype)[:count]:
        call = Call(row, number, sample, dtype)
        try:
            theirs = golden.flattened(call.theirs())
            ours = golden.flattened(call.ours())
        except Exception:
            continue  # whether we refuse what PyTorch refuses is tested elsewhere
        try:
            tn.eval(*[each for each in ours if isinstance(each, tn.Tensor)])
        except TenfoldError as error:
            if not golden.only_lacks(error):  # which kernels libtorch has may depend on strides
                wrong.append(f"{row.qualified} {call}: {error.message}")
            continue
        compared += 1
        values = not row.random and row.qualified not in VALUES_VARY
        for mine, reference in zip(ours, theirs, strict=True):
            found = golden.difference(row, mine, reference, values=values)
            if found:
                wrong.append(f"{row.qualified} {call}: {found}")
    return compared, wrong


@pytest.mark.parametrize("rows", FAMILIES, ids=range(len(FAMILIES)))
def test_rows_agree_with_pytorch(rows: list[Row]) -> None:
    found = [differences(row, dtypes.float32, 2) for row in rows]
    assert not (wrong := [each for _, some in found for each in some]), "\n".join(wrong[:20])
    assert sum(compared for compared, _ in found) > len(rows) / 2


@pytest.mark.slow
@pytest.mark.parametrize("rows", FAMILIES, ids=range(len(FAMILIES)))
def test_rows_of_every_dtype_agree_with_pytorch(rows: list[Row]) -> None:
    for dtype in dtypes.ALL:
        wrong = [each for row in rows for each in differences(row, dtype, None)[1]]
        assert not wrong, "\n".join(wrong[:20])


@pytest.mark.filterwarnings("ignore:.*deprecated")
@pytest.mark.parametrize("seeds", [range(200), pytest.param(range(200, 1500), marks=pytest.mark.slow)])
def test_random_views_and_writes_agree_with_pytorch(seeds: range) -> None:
    for seed in seeds:
        program = AliasProgram(seed)
        program.run()
        tn.eval(*[ours for ours, _, _ in program.seen])
        for ours, theirs, where in program.seen:
            np.testing.assert_array_equal(ours.numpy(), theirs, err_msg=f"seed {seed}: {where}")


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x[2:].unfold(0, 2, 2)[0].add_(3),
        lambda x: x.diagonal().unfold(0, 2, 2)[1].add_(3),
        lambda x: x.t()[1:].unfold(1, 2, 2)[:, 1].add_(3),
        lambda x: x[1].unfold(0, 2, 2).expand(3, 2, 2).fill_(3),
    ],
)
def test_writes_through_views_of_views_that_unfold_reach_the_base(write: Callable[[Any], Any]) -> None:
    ours, theirs = tn.zeros(4, 4), torch.zeros(4, 4)
    write(ours)
    write(theirs)
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


def on_both(compute: Callable[[], list[tn.Tensor]]) -> None:
    """What a function computes, on either engine."""
    results = []
    for engine in ("libtorch", "xla"):
        tn.set_engine(engine)
        tensors = compute()
        tn.eval(*tensors)
        results.append([each.numpy(force=True) for each in tensors])
    for mine, other in zip(*results, strict=True):
        np.testing.assert_allclose(mine, other, rtol=2e-4, atol=2e-5)


def numbers(*shape: int) -> tn.Tensor:
    return tn.tensor(np.sin(np.arange(np.prod(shape)) * 1.7).reshape(shape).astype(np.float32))


def gradients_of(function: Callable[..., tn.Tensor], *inputs: tn.Tensor) -> list[tn.Tensor]:
    leaves = [each.detach().clone().requires_grad_(True) for each in inputs]
    loss = function(*leaves)
    loss.backward()
    return [loss, *[each.grad for each in leaves]]


F = tn.nn.functional


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (lambda x, w, b: F.linear(x, w, b).tanh().pow(2).sum(), [(4, 3), (5, 3), (5,)]),
        (lambda x, w: F.max_pool2d(F.conv2d(x, w, padding=1).relu(), 2).mean(), [(2, 3, 8, 8), (4, 3, 3, 3)]),
        (lambda q, k, v: (F.scaled_dot_product_attention(q, k, v) ** 2).sum(), [(1, 2, 5, 4)] * 3),
        (lambda x, w, b: F.layer_norm(x, (6,), w, b).sigmoid().sum(), [(4, 6), (6,), (6,)]),
        (lambda x: F.cross_entropy(x, tn.tensor([1, 0, 2])), [(3, 4)]),
        (lambda x: (x[1:] * x[:-1].detach()).sum() + x[:, 0].max(), [(4, 3)]),
        (lambda x: tn.cat([x.cumsum(0), x.sort(0).values], 1).std(), [(4, 3)]),
        (lambda x: tn.where(x > 0, x.exp(), -x).sum() + (x + x * x).prod(), [(5,)]),
        (lambda x: tn.linalg.inv(x @ x.T + 3 * tn.eye(3)).sum(), [(3, 3)]),
    ],
)
def test_gradients_agree_with_xlas(function: Any, shapes: list[tuple[int, ...]]) -> None:
    on_both(lambda: gradients_of(function, *[numbers(*shape) for shape in shapes]))


def test_two_losses_share_what_they_go_back_through() -> None:
    def compute() -> list[tn.Tensor]:
        x = numbers(3, 3).requires_grad_(True)
        hidden = (x @ x).tanh()
        first = tn.autograd.grad(hidden.sum(), x, retain_graph=True)[0]
        second = tn.autograd.grad((hidden**2).sum(), x)[0]
        return [first, second]

    on_both(compute)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x.sin() * x).sum(),
        lambda x: ((x @ x.T).tanh() @ x).pow(2).mean(),
        lambda x: x.softmax(1).log().sum() + x.amax(0).exp().sum(),
    ],
)
def test_derivatives_of_derivatives_agree_with_xlas(function: Any) -> None:
    def compute() -> list[tn.Tensor]:
        x = numbers(3, 4).requires_grad_(True)
        (first,) = tn.autograd.grad(function(x), x, create_graph=True)
        (second,) = tn.autograd.grad((first * x).sum(), x)
        return [first, second]

    on_both(compute)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (F.softmax(x, 0) * F.pad(x, (1, -1))).sum() + x.clamp(-0.5, 0.5).pow(2).sum(),
        lambda x: (x[::2].cumsum(0) * x.flip(0)[1:3]).sum() + (x % 0.7).pow(2).sum() + x.max() ** 2,
        lambda x: x.prod() + (x.abs() + 1).lgamma().sum() + x.diag().tril().atanh().pow(2).sum(),
    ],
)
def test_batches_and_their_derivatives_agree_with_xlas(function: Any) -> None:
    def compute() -> list[tn.Tensor]:
        x = numbers(2, 4) / 2
        return [
            tn.func.vmap(function)(x),
            tn.func.vmap(tn.func.grad(function))(x),
            tn.func.jacfwd(function)(x[0]),
            tn.func.hessian(function)(x[1]),
        ]

    on_both(compute)


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda p: tn.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
        lambda p: tn.optim.Adam(p, lr=0.05, amsgrad=True),
        lambda p: tn.optim.AdamW(p, lr=0.05),
        lambda p: tn.optim.RMSprop(p, lr=0.01, centered=True),
        lambda p: tn.optim.Adagrad(p, lr=0.1),
    ],
)
def test_training_agrees_with_xlas(optimizer: Any) -> None:
    def compute() -> list[tn.Tensor]:
        model = tn.nn.Sequential(tn.nn.Linear(4, 8), tn.nn.ReLU(), tn.nn.Linear(8, 3))
        with tn.no_grad():
            for each in model.parameters():
                each.copy_(numbers(*each.shape))
        steps = optimizer(list(model.parameters()))
        x, target = numbers(6, 4), tn.tensor([0, 1, 2, 0, 1, 2])

        @tn.compile
        def step() -> tn.Tensor:
            steps.zero_grad()
            loss = F.cross_entropy(model(x), target)
            loss.backward()
            steps.step()
            return loss

        return [*[step() for _ in range(4)], *model.parameters()]

    on_both(compute)


def test_random_numbers_follow_the_seed() -> None:
    def drawn() -> np.ndarray:
        tn.manual_seed(3)
        first, second = tn.randn(1000), tn.randn(1000)
        dropped = F.dropout(tn.ones(1000), 0.25)
        own = tn.rand(1000, generator=tn.Generator().manual_seed(5))
        tn.eval(first, second, dropped, own)
        return np.stack([each.numpy() for each in (first, second, dropped, own)])

    once, again = drawn(), drawn()
    np.testing.assert_array_equal(once, again)
    assert abs(once[0].mean()) < 0.15 and abs(once[0].std() - 1) < 0.15
    assert not np.array_equal(once[0], once[1])
    assert 0.15 < (once[2] == 0).mean() < 0.35
    assert 0 <= once[3].min() < once[3].max() < 1


def test_errors_name_the_op_and_the_line() -> None:
    table = numbers(4, 2)
    wrong = tn.tensor([1, 9])
    with pytest.raises(TenfoldError, match=r"(?s)libtorch.*test_libtorch.py:\d+ +tn.index_select"):
        tn.index_select(table, 0, wrong).numpy()
    with pytest.raises(UnsupportedError, match="this libtorch has no aten::index.Tensor_hacked_twin"):
        row = next(row for row in TABLE["index"] if row.overload == "Tensor_hacked_twin")
        golden.function(row)(table, [wrong]).numpy()


def test_values_serve_both_engines() -> None:
    x = numbers(3)
    y = (x * 2).eval()
    tn.set_engine("xla")
    z = (y + 1).eval()
    tn.set_engine("libtorch")
    np.testing.assert_allclose((z * y).numpy(), (2 * x.numpy() + 1) * 2 * x.numpy(), rtol=1e-6)


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(ArgumentError, match="there is no engine 'abacus'"):
        tn.set_engine("abacus")
    assert tn.get_engine() == "libtorch"


def test_numbers_of_half_the_width_agree_with_pytorch() -> None:
    x = torch.linspace(-2, 2, 12, dtype=torch.bfloat16).reshape(3, 4)
    ours = (tn.tensor(x.float().numpy()).to(tn.bfloat16) @ tn.ones(4, 2, dtype=tn.bfloat16)).float()
    np.testing.assert_array_equal(ours.numpy(), (x @ torch.ones(4, 2, dtype=torch.bfloat16)).float().numpy())


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float16", "bfloat16", "float64", "bool", "complex64"])
@pytest.mark.parametrize("shape", [(), (2,)])
def test_a_number_on_the_left_promotes_as_in_pytorch(dtype: str, shape: tuple[int, ...]) -> None:
    theirs, ours = (lib.ones(shape).mul(2).to(getattr(lib, dtype)) for lib in (torch, tn))
    for number in (3, 0.1, True, 300, -3):
        for call in (operator.mul, operator.truediv, operator.sub, operator.lt):
            try:
                expected = call(number, theirs)
            except RuntimeError:  # no order of complex numbers, no difference of bools
                continue
            found = call(number, ours)
            told = (dtype, shape, number, call.__name__)
            assert (found.dtype.name, found.tolist()) == (str(expected.dtype)[6:], expected.tolist()), told


def test_that_the_library_is_built_is_said_once(monkeypatch, capsys) -> None:
    class Known:
        def __init__(self, path: str):
            self.path = path

        def raw(self, name: str) -> Any:
            return lambda: True

    def build(progress: Any) -> Any:
        for step in range(3):
            progress("compiled", step, 3)
        return SimpleNamespace(library="libtenfold.so")

    monkeypatch.setattr(by_libtorch, "build", build)
    monkeypatch.setattr(by_libtorch, "Library", Known)
    assert by_libtorch.library.__wrapped__().path == "libtenfold.so"
    said = capsys.readouterr()
    assert said.err == "building libtenfold for the libtorch engine, once: a minute or two\n" and not said.out


def test_a_library_that_finds_no_libtorch_raises_its_error(monkeypatch) -> None:
    lacking = SimpleNamespace(raw=lambda name: lambda: False, error=lambda: EngineError("no libtorch"))
    monkeypatch.setattr(by_libtorch, "build", lambda progress: SimpleNamespace(library="x"))
    monkeypatch.setattr(by_libtorch, "Library", lambda path: lacking)
    with pytest.raises(EngineError, match="no libtorch"):
        by_libtorch.library.__wrapped__()
