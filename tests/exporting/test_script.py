"""TorchScript that Tenfold writes and PyTorch reads, and the other way round."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import torch

import tenfold as tn
from tests.exporting.torchscript import X, by_pytorch


def model() -> tn.nn.Module:
    tn.manual_seed(3)
    return tn.nn.Sequential(tn.nn.Linear(4, 3), tn.nn.ReLU(), tn.nn.BatchNorm1d(3)).eval()


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
