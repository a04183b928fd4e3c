"""TorchScript that Tenfold writes and PyTorch reads, and the other way round."""

from __future__ import annotations

import io
import math
from pathlib import Path

import numpy as np
import pytest
import torch

import tenfold as tn
import tenfold.nn.functional as F
from tenfold.exporting.script_modules import module_archive

X = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)


def model() -> tn.nn.Module:
    tn.manual_seed(3)
    return tn.nn.Sequential(tn.nn.Linear(4, 3), tn.nn.ReLU(), tn.nn.BatchNorm1d(3)).eval()


def by_pytorch(traced: object) -> torch.jit.ScriptModule:
    file = io.BytesIO()
    tn.jit.save(traced, file)
    file.seek(0)
    return torch.jit.load(file)


def test_a_traced_model_is_read_by_pytorch_with_its_parameters_and_buffers():
    ours, x = model(), tn.from_numpy(X)
    theirs = by_pytorch(tn.jit.trace(ours, x))
    np.testing.assert_allclose(
        theirs(torch.tensor(X)).detach(), ours(x).detach().numpy(), rtol=1e-5, atol=1e-6
    )
    assert {name for name, _ in theirs.named_parameters()} == {name for name, _ in ours.named_parameters()}
    assert {"2.running_mean", "2.running_var"} <= {name for name, _ in theirs.named_buffers()}


def test_a_traced_model_stays_the_model_that_it_was():
    ours, x = model(), tn.from_numpy(X)
    traced = tn.jit.trace(ours, x)
    assert isinstance(traced, tn.nn.Sequential) and traced[0].weight is ours[0].weight
    assert list(traced.state_dict()) == list(ours.state_dict())
    np.testing.assert_array_equal(traced(x).detach().numpy(), ours(x).detach().numpy())
    assert "aten::relu" in traced.graph and "def forward" in traced.code


def test_traced_functions_take_and_give_containers():
    def f(a, parts):
        return {"sum": a + parts["b"], "product": a * parts["c"][0]}

    x = tn.from_numpy(X)
    theirs = by_pytorch(tn.jit.trace(lambda a, b: (a + b[0], [a, b[1]]), (x, [x, x])))
    first, (_, third) = theirs(torch.tensor(X), [torch.tensor(X) * 2, torch.tensor(X) * 3])
    np.testing.assert_allclose(first, X * 3, rtol=1e-6)
    np.testing.assert_allclose(third, X * 3, rtol=1e-6)
    with pytest.raises(tn.TenfoldError, match="dict"):
        tn.jit.save(tn.jit.trace(f, (x, {"b": x, "c": [x]})), io.BytesIO())  # of two types


def test_a_file_of_pytorchs_is_loaded_and_called(tmp_path: Path):
    class Pair(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(2))

        def forward(self, x: torch.Tensor, by: int = 2) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
            return x * self.weight, {"more": x * by}

        @torch.jit.export
        def name(self) -> str:
            return "pair"

    torch.jit.script(Pair()).save(str(tmp_path / "pair.pt"))
    loaded = tn.jit.load(tmp_path / "pair.pt")
    first, rest = loaded(tn.ones(2), 5)
    assert first.tolist() == [1, 1] and rest["more"].tolist() == [5, 5]
    assert loaded.name() == "pair" and list(loaded.state_dict()) == ["weight"]
    assert loaded.eval().training is False
    loaded.save(tmp_path / "again.pt")
    assert torch.jit.load(tmp_path / "again.pt")(torch.ones(2))[0].tolist() == [1, 1]


def test_a_source_of_torchscript_is_compiled():
    unit = tn.jit.CompilationUnit("def twice(x, by: int = 2):\n    return x * by\n")
    assert unit.twice(tn.ones(2)).tolist() == [2, 2] and unit.twice(tn.ones(1), 3).tolist() == [3]


def test_what_has_no_torchscript_is_refused(tmp_path: Path):
    x = tn.from_numpy(X)
    training = model().train()
    with pytest.raises(tn.UnsupportedError, match=r"writes to 2\.num_batches_tracked, 2\.running_mean"):
        tn.jit.trace(training, x).save(tmp_path / "m.pt")
    with pytest.raises(tn.UnsupportedError, match="no example inputs"):
        tn.jit.save(model(), tmp_path / "m.pt")
    with pytest.raises(tn.TenfoldError, match="int"):
        tn.jit.trace(lambda a, b: a * b, (x, 3)).save(tmp_path / "m.pt")
    unit = tn.jit.CompilationUnit("def same(x):\n    return x\n")
    with pytest.raises(tn.UnsupportedError, match="gradients do not flow"):
        unit.same(tn.ones(1, requires_grad=True))


def test_files_that_are_no_torchscript_are_refused_by_name(tmp_path):
    (tmp_path / "text.pt").write_bytes(b"hello")
    tn.save({"x": tn.ones(2)}, tmp_path / "state.pt")
    with pytest.raises(FileNotFoundError, match="none.pt cannot be read: there is no such file"):
        tn.jit.load(tmp_path / "none.pt")
    with pytest.raises(tn.FormatError, match="text.pt is no TorchScript file: it begins with b'hell'"):
        tn.jit.load(tmp_path / "text.pt")
    with pytest.raises(tn.FormatError, match="the file is no TorchScript file: it is empty"):
        tn.jit.load(io.BytesIO())
    with pytest.raises(tn.FormatError, match="state.pt cannot be read as TorchScript") as caught:
        tn.jit.load(tmp_path / "state.pt")
    assert "tn_" not in caught.value.message and "tenfold.load reads" in caught.value.help
    with pytest.raises(IsADirectoryError):
        tn.jit.load(tmp_path)


# Scripted functions

SCALE = 2.5


def scaled(x, n: int):
    return x * n - SCALE


@tn.jit.script
def looped(x: tn.Tensor, n: int, places: list[int], more: int | None = None) -> tn.Tensor:
    """A function with choices, loops, a helper and constants from outside."""
    for i in range(n):
        if bool(x.sum() > 0):
            x = scaled(x, i + 1)
        else:
            x = F.relu(x, inplace=False) + math.sqrt(2.0) + math.pi
    total = 0
    for each in places:
        total += each
    if more is not None:
        total += more
    return tn.softmax(tn.cat([x, tn.zeros([2], dtype=tn.float32)]), 0) + total


def test_a_scripted_function_keeps_its_choices_and_loops(tmp_path):
    looped.save(tmp_path / "looped.pt")
    theirs = torch.jit.load(tmp_path / "looped.pt")
    ours = tn.jit.load(tmp_path / "looped.pt")
    assert "for" in looped.code and "if" in looped.code
    for start in (-1.0, 2.0):
        for n in (0, 3):
            expected = looped(tn.full((2,), start), n, [1, 2], 3).numpy()
            np.testing.assert_allclose(theirs(torch.full((2,), start), n, [1, 2], 3).numpy(), expected)
            np.testing.assert_allclose(ours(tn.full((2,), start), n, [1, 2], 3).numpy(), expected)


def test_a_scripted_function_is_still_recorded_and_differentiated():
    x = tn.ones(2, requires_grad=True)
    tn.compile(lambda v: looped(v, 0, [1]).sum())(x).backward()
    assert x.grad.shape == (2,)


def keeps_a_tensor(x):
    return x + OUTSIDE


OUTSIDE = tn.ones(2)


def test_what_torchscript_cannot_express_is_refused_with_its_line():
    with pytest.raises(
        tn.UnsupportedError, match=r"keeps_a_tensor, line \d+: TorchScript cannot keep OUTSIDE"
    ):
        _ = tn.jit.script(keeps_a_tensor).code
    with pytest.raises(tn.UnsupportedError, match="has no source of its own"):
        _ = tn.jit.script(lambda x: x * 2).code
    with pytest.raises(tn.UnsupportedError, match="TorchScript cannot express"):
        _ = tn.jit.script(calls_what_is_not_there).code


def calls_what_is_not_there(x):
    return x.no_such_method()


def chosen_by_a_tensor(x):
    if bool(x.sum() > 0):
        act = tn.relu
    else:
        act = tn.tanh
    return act(x)


def rebound_in_a_loop(x, n: int):
    act = tn.relu
    for _ in range(n):
        x = act(x)
        act = tn.tanh
    return x


def unbound_in_a_branch(x):
    act = tn.relu
    while bool(x.sum() > 0):
        act = x * 2
        x = x - act
    return act(x)


@pytest.mark.parametrize("function", [chosen_by_a_tensor, rebound_in_a_loop, unbound_in_a_branch])
def test_a_function_that_is_chosen_when_the_program_runs_is_refused(function):
    with pytest.raises(
        tn.UnsupportedError,
        match=rf"{function.__name__}, line \d+: act names a function or layer chosen in an if",
    ):
        _ = tn.jit.script(function).code


EPS = 0.5
k = 7


@tn.jit.script
def names_of_its_own(x: tn.Tensor, xs: list[int], *, eps: float = EPS) -> tn.Tensor:
    act = tn.abs
    if SCALE > 1:
        act = tn.neg
    act = act(x)
    doubled = [k * 2 for k in xs]
    return act + doubled[0] + eps


def test_local_names_hide_those_outside_and_functions_are_followed_in_straight_code():
    assert "14" not in names_of_its_own.code
    theirs = by_pytorch(names_of_its_own)
    assert theirs(torch.ones(1), [3]).item() == names_of_its_own(tn.ones(1), [3]).item() == 5.5


class Block(tn.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.linear = tn.nn.LayerNorm(width), tn.nn.Linear(width, width)

    def forward(self, x):
        return x + F.gelu(self.linear(self.norm(x)))


class Network(tn.nn.Module):
    """A model with layers in a list, a helper method, a buffer, numbers, and choices of both kinds."""

    def __init__(self):
        super().__init__()
        self.blocks = tn.nn.ModuleList([Block(4) for _ in range(2)])
        self.head = tn.nn.Sequential(tn.nn.Linear(4, 3, bias=False), tn.nn.ReLU(), tn.nn.BatchNorm1d(3))
        self.offset = 3
        self.register_buffer("scale", tn.full((3,), 2.0))

    def doubled(self, x, times: int):
        for _ in range(times):
            x = x * 2
        return x

    def forward(self, x, times: int = 2):
        for block in self.blocks:
            x = block(x)
        if bool(x.sum() > 0):
            x = self.doubled(x, times)
        if self.offset == 3 and self.head is not None:
            x = self.head(x)
        return x * self.scale + self.offset


def test_a_scripted_model_keeps_its_choices_loops_and_names():
    tn.manual_seed(0)
    ours = Network().eval()
    scripted = tn.jit.script(ours)
    theirs = by_pytorch(scripted)
    for sign in (1, -1):
        for times in (0, 3):
            x = X * sign
            expected = ours(tn.from_numpy(x), times).detach().numpy()
            found = theirs(torch.tensor(x), times).detach().numpy()
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert {name for name, _ in theirs.named_parameters()} == {name for name, _ in ours.named_parameters()}
    assert set(theirs.state_dict()) == set(ours.state_dict())
    assert scripted.blocks[0].linear.weight is ours.blocks[0].linear.weight
    np.testing.assert_array_equal(
        scripted(tn.from_numpy(X)).numpy(force=True), ours(tn.from_numpy(X)).numpy(force=True)
    )


class Looped(tn.nn.Module):
    """Loops over layers inside other loops, with an `else`."""

    def __init__(self):
        super().__init__()
        self.layers = tn.nn.ModuleList([tn.nn.ReLU(), tn.nn.Tanh()])

    def forward(self, x, n: int):
        for _ in range(n):
            for layer in self.layers:
                x = layer(x) + 1
            else:
                x = x * 3
        return x


class Broken(Looped):
    def forward(self, x, n: int):
        for _ in range(n):
            for layer in self.layers:
                x = layer(x)
                if bool(x.sum() > 0):
                    break
        return x


class Forgotten(Looped):
    def forward(self, x, n: int):
        layer = self.layers[0]
        if n > 2:
            for layer in self.layers:
                x = layer(x)
        return layer(x)


def test_loops_over_layers_are_unrolled_with_their_else():
    ours, theirs = Looped(), torch.jit.load(io.BytesIO(module_archive(Looped())))
    for n in (0, 2):
        found, expected = theirs(torch.tensor(X), n), ours(tn.from_numpy(X), n)
        np.testing.assert_allclose(found, expected.numpy(), rtol=1e-5)
    with pytest.raises(
        tn.UnsupportedError, match=r"line \d+: a loop over layers is unrolled, and has no break"
    ):
        module_archive(Broken())
    with pytest.raises(RuntimeError, match="undefined value layer"):
        torch.jit.load(io.BytesIO(module_archive(Forgotten())))


LAYERS = [
    (tn.nn.Conv2d(3, 2, 3, padding=1), (1, 3, 8, 8)), (tn.nn.MaxPool2d(2), (1, 3, 8, 8)),
    (tn.nn.AdaptiveAvgPool2d(1), (1, 3, 8, 8)), (tn.nn.BatchNorm2d(3), (2, 3, 4, 4)),
    (tn.nn.Flatten(), (2, 3, 4)), (tn.nn.GroupNorm(2, 4), (2, 4)), (tn.nn.Softmax(-1), (2, 4)),
    (tn.nn.Dropout(0.5), (2, 4)), (tn.nn.GELU(), (2, 4)), (tn.nn.Hardtanh(), (2, 4)),
    (tn.nn.ZeroPad2d(1), (1, 1, 2, 2)),
]  # fmt: skip


@pytest.mark.parametrize(("layer", "shape"), LAYERS, ids=lambda each: type(each).__name__)
def test_layers_are_scripted(layer, shape):
    x = np.random.default_rng(0).standard_normal(shape, np.float32)
    theirs = torch.jit.load(io.BytesIO(module_archive(layer.eval())))
    expected = layer(tn.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(theirs(torch.tensor(x)).detach().numpy(), expected, rtol=1e-4, atol=1e-5)


def test_a_layer_that_torchscript_cannot_express_is_refused_with_its_line():
    with pytest.raises(
        tn.UnsupportedError, match=r"Embedding.forward, line \d+: embedding takes other arguments"
    ):
        tn.jit.save(tn.jit.script(tn.nn.Embedding(3, 2)), io.BytesIO())
