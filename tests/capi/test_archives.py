"""TorchScript archives that are damaged or hostile: libtenfold follows them before libtorch does."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable

import numpy as np
import pytest
import torch

from tenfold.base.errors import TenfoldError
from tests.capi.bridge import Bridge, handles


class Held(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 2)
        self.register_buffer("shift", torch.arange(3.0))
        self.names = {"a": 1, "b": 2}
        self.mixed = (1, [2, 3], "text", 0.5, None, [[True], [False]])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x + self.shift) * self.names["b"]


@pytest.fixture(scope="module")
def records() -> dict[str, bytes]:
    buffer = io.BytesIO()
    torch.manual_seed(0)
    torch.jit.save(torch.jit.script(Held()), buffer)
    with zipfile.ZipFile(buffer) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(records: dict[str, bytes], end: str, change: Callable[[bytes], bytes]) -> bytes:
    """The archive with another text for the records whose names end so."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in records.items():
            archive.writestr(name, change(data) if name.endswith(end) else data)
    return buffer.getvalue()


def load(tn: Bridge, data: bytes) -> int:
    return tn.tn_module_load_data(data, len(data), None)


def test_an_archive_that_is_whole_runs_as_in_pytorch(tn: Bridge, records: dict[str, bytes]) -> None:
    whole = packed(records, "nothing", bytes)
    module = load(tn, whole)
    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    found = tn.array(tn.keep(tn.tn_module_forward(module, *handles([tn.tensor(x)]))))
    reference = torch.jit.load(io.BytesIO(whole))(torch.tensor(x))
    np.testing.assert_allclose(found, reference.detach().numpy(), rtol=1e-5)
    tn.tn_module_free(module)


def replaced(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        assert old in data
        return data.replace(old, new, 1)

    return change


ENDLESS = b"\x80\x02]q\x00h\x00a."  # a list that holds itself
DAMAGE = {
    "lists nest": ("data.pkl", lambda _: b"\x80\x02" + b"]" * 10**6 + b"a" * (10**6 - 1) + b".", "too deep"),
    "tuples nest": ("constants.pkl", lambda _: b"\x80\x02(K\x01" + b"\x85" * 10**6 + b"t.", "too deep"),
    "lists nest by their places": (
        "data.pkl",
        lambda _: b"\x80\x02]q\x00" + b"h\x00]q\x00a" * 10**5 + b".",
        "too deep",
    ),
    "a list holds itself": ("data.pkl", lambda _: ENDLESS, "holds itself"),
    "a place that is far": ("data.pkl", replaced(b"q\x07", b"r\xff\xff\xff\xf0"), "too far"),
    "text that is long": ("data.pkl", replaced(b"X\x07\x00\x00\x00", b"X\x07\x00\x00\xf9"), "ends too early"),
    "a key alone": ("data.pkl", lambda _: b"\x80\x02(K\x01d.", "without a value"),
    "a storage that is short": (
        "data.pkl",
        replaced(b"K\x03tQq\x07K\x00(K\x03t", b"J\x00\x00\x00\x10tQq\x07K\x00(J\x00\x00\x00\x10t"),
        "shorter than the tensor",
    ),
    "an instruction of Python's": ("data.pkl", lambda _: b"\x80\x02cos\nsystem\n\x93.", "instruction"),
    "code nests": (
        ".py",
        lambda data: data.replace(b"return", b"y = " + b"+".join([b"1"] * 10**5) + b"\n    return", 1),
        "levels deep",
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_an_archive_that_leads_astray_is_an_error(tn: Bridge, records: dict[str, bytes], name: str) -> None:
    end, change, message = DAMAGE[name]
    with pytest.raises(TenfoldError, match=message):
        load(tn, packed(records, end, change))


def test_a_file_that_is_no_torchscript_is_told_by_libtorch(tn: Bridge, tmp_path) -> None:
    path = tmp_path / "weights.pt"
    torch.save({"weight": torch.ones(2)}, path)
    with pytest.raises(TenfoldError, match=r"constants\.pkl"):
        tn.tn_module_load(str(path).encode(), None)
