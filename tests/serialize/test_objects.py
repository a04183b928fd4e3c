"""Modules, arrays and other objects in files: what Tenfold saves PyTorch loads, what PyTorch saves Tenfold
loads where the file is trusted, and nothing is run where it is not."""

from __future__ import annotations

import collections
import io
import pickle
import threading

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.serialize import trusting_files


def saved(t, obj) -> io.BytesIO:
    file = io.BytesIO()
    t.save(obj, file)
    file.seek(0)
    return file


def trusted(t, file):
    if t is torch:
        return torch.load(file, weights_only=False)
    with trusting_files():
        return tn.load(file, weights_only=False)


class Run:
    """An object of a class of the program's own."""

    def __init__(self, step, weights):
        self.step, self.weights = step, weights


def models(t):
    nn = t.nn
    return [
        (nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.LayerNorm(3), nn.Linear(3, 2)), (2, 4)),
        (nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.GELU()), (2, 3, 4, 4)),
        (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(), (2, 3, 8)),
    ]  # fmt: skip


DIRECTIONS = pytest.mark.parametrize("of, to", [(tn, torch), (torch, tn), (tn, tn)], ids=["out", "in", "own"])


@DIRECTIONS
@pytest.mark.parametrize("which", range(3))
def test_a_whole_module_travels(of, to, which):
    model, shape = models(of)[which]
    model.eval()
    loaded = trusted(to, saved(of, model))
    assert type(loaded).__name__ == type(model).__name__
    x = np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)
    mine = loaded(to.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(mine, model(of.from_numpy(x)).detach().numpy(), rtol=1e-4, atol=1e-5)
    assert list(loaded.state_dict()) == list(model.state_dict())
    calls = []
    loaded.register_forward_hook(lambda module, args, result: calls.append(1))
    loaded(to.from_numpy(x))
    assert calls == [1]


@DIRECTIONS
def test_objects_arrays_and_tensors_that_share_memory_travel(of, to):
    base = of.arange(6.0)
    given = {
        "run": Run(3, base[2:]), "base": base, "array": np.arange(4), "number": np.float64(2.5),
        "default": collections.defaultdict(list, a=[1]), "parameter": of.nn.Parameter(of.ones(2)),
        "dtype": of.bfloat16, "size": base.shape, "half": of.ones(2, dtype=of.bfloat16), "function": len,
    }  # fmt: skip
    loaded = trusted(to, saved(of, given))
    assert type(loaded["run"]) is Run and loaded["run"].step == 3
    loaded["base"][2] = 9.0
    assert loaded["run"].weights.tolist() == [9, 3, 4, 5]
    assert loaded["array"].tolist() == [0, 1, 2, 3] and loaded["number"] == 2.5
    assert loaded["default"]["new"] == [] and isinstance(loaded["parameter"], to.nn.Parameter)
    assert loaded["dtype"] is to.bfloat16 and tuple(loaded["size"]) == (6,) and loaded["function"] is len
    assert loaded["half"].dtype is to.bfloat16 and loaded["parameter"].requires_grad


def test_an_optimizer_and_its_module_stay_together():
    model = tn.nn.Linear(2, 2)
    optimizer = tn.optim.Adam(model.parameters(), lr=0.1)
    model(tn.ones(1, 2)).sum().backward()
    optimizer.step()
    loaded, again = trusted(tn, saved(tn, (model, optimizer)))
    assert again.param_groups[0]["params"][0] is loaded.weight
    loaded(tn.ones(1, 2)).sum().backward()
    again.step()


class Opens:
    def __reduce__(self):
        return (print, ("this was run",))


def test_a_file_is_not_trusted_unless_somebody_says_so(monkeypatch, capsys):
    file = saved(torch, Opens())
    with pytest.raises(tn.UnsupportedError, match="trusting_files.*TENFOLD_TRUST_FILES=1"):
        tn.load(file, weights_only=False)
    with pytest.raises(tn.FormatError, match="it was not run"):
        tn.load(file)
    assert capsys.readouterr().out == ""
    monkeypatch.setenv("TENFOLD_TRUST_FILES", "1")
    file.seek(0)
    tn.load(file, weights_only=False)
    assert capsys.readouterr().out == "this was run\n"


def test_classes_that_are_declared_safe_are_read():
    file = saved(torch, {"run": Run(1, torch.ones(2))})
    with tn.serialize.safe_globals([Run]):
        assert tn.load(file)["run"].weights.tolist() == [1, 1]
    for package in (tn, torch):
        file.seek(0)
        with pytest.raises(pickle.UnpicklingError):
            package.load(file, weights_only=True)
    other = saved(torch, Opens())
    with tn.serialize.safe_globals([Run]), pytest.raises(pickle.UnpicklingError, match="declared safe"):
        tn.load(other)


def test_what_pickle_does_not_take_is_refused_with_the_reason():
    with pytest.raises(tn.ArgumentError, match="cannot be saved"):
        tn.save({"f": lambda x: x}, io.BytesIO())


def test_another_thread_does_not_trust_what_this_one_trusts():
    from tenfold.serialize import trust

    seen = []
    with trust.trusting_files():
        thread = threading.Thread(target=lambda: seen.append(trust.trusted()))
        thread.start()
        thread.join()
        assert trust.trusted()
    assert seen == [False] and not trust.trusted()


def test_a_safe_class_is_known_by_all_its_names(tmp_path):
    """PyTorch calls `nn.Linear` `torch.nn.modules.linear.Linear`."""
    torch.save(torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Dropout()), tmp_path / "theirs.pt")
    tn.save(tn.nn.Sequential(tn.nn.Linear(2, 3), tn.nn.Dropout()), tmp_path / "ours.pt")
    for name in ("theirs.pt", "ours.pt"):
        with tn.serialize.safe_globals([tn.nn.Sequential, tn.nn.Linear, tn.nn.Dropout]):
            assert isinstance(tn.load(tmp_path / name)[0], tn.nn.Linear)
        with tn.serialize.safe_globals([tn.nn.Sequential, tn.nn.Linear]), pytest.raises(tn.FormatError):
            tn.load(tmp_path / name)
