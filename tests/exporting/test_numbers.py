"""Numbers that come from tensors stay inside an exported program."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.base.errors import IndexOutOfRange, TraceError, UnsupportedError


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
        (lambda x: tn.stack([x for _ in range(x.argmax().item())]), TraceError),
        (lambda x: x.sum(x.argmax().item()), IndexOutOfRange),
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


# Numbers that are sizes


def made(lib, x, n):
    k = n.item()
    return (
        lib.zeros(k) + 1,
        lib.arange(2 * k + 1).sum(),
        lib.ones(k // 2, k * 3 - 2).sum(0),
        x[0].expand(k, 2) * k,
        lib.cat([x, lib.zeros(k, 2)]).cumsum(0),
        lib.ones(k, 6).reshape(-1).reshape(-1, 3).softmax(0),
        x.repeat(k, 1),
        lib.eye(k) @ lib.full((k, 1), x.sum().item()),
    )


def cut(lib, x, n):
    k = n.item()
    lib._check(k >= 1)
    lib._check(k < 5)
    return x[:k], x[k:], x.narrow(0, k, 2), x.split([k, 6 - k])[1].sum(0)


def one_from_another(lib, x, n):
    rows = lib.arange(n.item())
    columns = (rows.sum() + x.flatten().argmax()).item()
    return rows, lib.ones(columns, n.item()), lib.zeros(columns + n.item())


@pytest.mark.parametrize("function", [made, cut, one_from_another])
def test_they_may_be_sizes_in_the_torch_dialect(function):
    x = np.arange(12, dtype=np.float32).reshape(6, 2)
    exported = tn.export(lambda x, n: function(tn, x, n), (tn.tensor(x), tn.tensor(3)))
    run = tn.load_vmfb(exported.build())
    for size in (2, 3, 4):
        expected = function(torch, torch.tensor(x), torch.tensor(size))
        for ours, theirs in zip(run(tn.tensor(x), tn.tensor(size)), expected, strict=True):
            assert ours.shape == tuple(theirs.shape)
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-5)


def test_sizes_that_come_from_tensors_are_symbols_beside_those_of_arguments():
    batch = tn.Dim("batch", min=2, max=64)
    exported = tn.export(
        lambda x, n: tn.cat([x, tn.zeros(n.item(), x.shape[1])]),
        (tn.ones(6, 2), tn.tensor(3)),
        dynamic=({0: batch}, {}),
    )
    assert [str(each) for each in exported.outputs] == ["f32[batch+u0,2]"]
    assert 'torch.symbolic_int "u0" {min_val = 2' in exported.text()
    assert tn.load_vmfb(exported.build())(tn.ones(4, 2), tn.tensor(5)).shape == (9, 2)


def test_what_is_promised_of_a_size_bounds_it():
    def promised(x, n):
        size = n.item()
        tn._check(size >= 3)
        tn.ops.aten.sym_constrain_range_for_size(size, max=5)
        return x[:size]

    x, n = tn.ones(6), tn.tensor(4)
    assert tn.export(promised, (x, n)).dimensions == {"u0": tn.Dim("u0", min=3, max=5)}
    fixed = tn.export(lambda x, n: (tn._check(n.item() == 4), x[: n.item()])[1], (x, n))
    assert [str(each) for each in fixed.outputs] == ["f32[4]"] and not fixed.dimensions
    assert [str(each) for each in tn.export(lambda x, n: x[: n.item()], (x, n)).outputs] == ["f32[?]"]


def test_stablehlo_has_no_sizes_that_come_from_tensors():
    with pytest.raises(UnsupportedError, match="zeros must know a number that comes from a tensor"):
        tn.export(lambda n: tn.zeros(n.item()), tn.tensor(3), dialect="stablehlo")
    with pytest.raises(UnsupportedError, match="a slice must know a number that comes from a tensor"):
        tn.export(lambda x: x[: x.argmax().item()], tn.ones(3), dialect="stablehlo")
