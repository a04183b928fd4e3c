"""Numbers that come from tensors stay inside an exported program."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.base.errors import TraceError, UnsupportedError


def of_floats(lib, x):
    total, most = x.sum().item(), x.max().item()
    return (
        x * total,
        most - x,
        x + (total * 2 + 1) / 3,
        -abs(total) * x,
        lib.full((2, 3), most),
        x.masked_fill(x > 0, most),
        x.clamp(min=x.mean().item()),
        lib.add(x, x, alpha=most),
        lib.where(x > 0, x, total - most),
        lib.full_like(x, x.min()),
    )


def of_integers(lib, x):
    place = x.flatten().argmax().item()
    return (
        x + place,
        x * (place // 2 - 3),
        place % 4 - x,
        x / (place + 1),
        lib.full((2,), place),
        x[x.sum(1).argmax().item()],
        x[:, place % 2],
        place + 2 * place,
    )


PROGRAMS = {each.__name__: each for each in (of_floats, of_integers)}


@pytest.mark.parametrize(("dialect", "engine"), [("stablehlo", "xla"), ("torch", "iree")])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_module_computes_with_them(name, dialect, engine):
    exported = tn.export(lambda x: PROGRAMS[name](tn, x), tn.ones(3, 4), dialect=dialect)
    run = tn.load_stablehlo(exported.portable()) if engine == "xla" else tn.load_vmfb(exported.build())
    for seed in (0, 1):
        x = np.random.default_rng(seed).normal(size=(3, 4)).astype(np.float32)
        expected = PROGRAMS[name](torch, torch.from_numpy(x))
        for ours, theirs in zip(run(tn.tensor(x)), expected, strict=True):
            assert str(ours.dtype).split(".")[-1] == str(torch.as_tensor(theirs).dtype).split(".")[-1]
            np.testing.assert_allclose(ours.numpy(), np.asarray(theirs), rtol=1e-5, atol=1e-6)


def test_the_torch_dialect_names_where_they_come_from():
    text = tn.export(lambda x: (x * x.sum().item(), x + x.argmax().item()), tn.ones(3)).text()
    assert "torch.aten.Float.Tensor" in text and "torch.aten.Int.Tensor" in text
    assert "torch.aten.mul.Scalar %arg0, %" in text


def test_they_stay_where_sizes_are_open():
    n = tn.Dim("n", min=2, max=64)
    exported = tn.export(
        lambda x: x * x.max().item() + x.shape[0],
        tn.ones(5, 2),
        dynamic=({0: n},),
        dialect="stablehlo",
    )
    x = tn.arange(14.0).reshape(7, 2)
    assert tn.load_stablehlo(exported.portable())(x).tolist() == (x * 13 + 7).tolist()


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (lambda x: x if x.sum().item() > 0 else -x, TraceError),
        (lambda x: x * int(x.sum()), TraceError),
        (lambda x: (x, print(f"{x.sum().item()}"))[0], TraceError),
        (lambda x: x[: x.argmax().item()], TraceError),
        (lambda x: tn.ones(x.argmax().item()), UnsupportedError),
        (lambda x: x.sum(x.argmax().item()), UnsupportedError),
    ],
)
def test_what_must_know_them_is_refused(function, error):
    with pytest.raises(error, match="a number that comes from a tensor"):
        tn.export(function, tn.ones(3))


def test_converting_a_tensor_to_a_number_names_item_instead():
    for convert in (int, float):
        with pytest.raises(tn.TraceError, match=rf"use \.item\(\) instead of {convert.__name__}\(\)"):
            tn.export(lambda x, convert=convert: x * convert(x.sum()), tn.ones(3))
    text = tn.export(lambda x: x * x.sum().long().item(), tn.ones(3)).text()
    assert "torch.aten.Int.Tensor" in text


def test_how_they_compare_is_recorded():
    def compared(lib, x):
        total, place = x.sum().item(), x.argmax().item()
        return total > 0.5, place >= 1, place == x.argmin().item(), total != place, -(total > 0.5)

    exported = tn.export(lambda x: compared(tn, x), tn.ones(3))
    assert [str(each) for each in exported.outputs] == [*["bool[]"] * 4, "i64[]"]
    run = tn.load_stablehlo(tn.export(lambda x: compared(tn, x), tn.ones(3), dialect="stablehlo").portable())
    for values in ([0.0, 1.0, 2.0], [3.0, -9.0, 1.0], [1.0, 1.0, 1.0]):
        expected = compared(torch, torch.tensor(values))
        assert [each.item() for each in run(tn.tensor(values))] == list(expected)
    with pytest.raises(TraceError, match="a number that comes from a tensor"):
        tn.export(lambda x: x * (x.sum().item() > 0), tn.ones(3))


def test_what_is_asserted_of_them_is_left_out():
    def asserting(x):
        count = x.item()
        tn.ops.aten.sym_constrain_range(count, max=5)
        tn.ops.aten.sym_constrain_range_for_size(count, min=0, max=10)
        tn.ops.aten._assert_scalar(count > 3, "more than three")
        return count

    assert "-> !torch.vtensor<[],si64>" in tn.export(asserting, tn.tensor(4, dtype=tn.int32)).text()
    with pytest.raises(tn.ArgumentError, match="7 is not between None and 5"):
        asserting(tn.tensor(7))
