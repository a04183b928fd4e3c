"""Tenfold answers to PyTorch's names: each is there, or refused with a reason that the documents tell."""

from __future__ import annotations

import copy
import functools
import math
import pickle
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.ao.quantization.fx._decomposed  # defines torch.ops.quantized_decomposed

import tenfold as tn
from tenfold.base import absent, named_dtypes, unsupported
from tenfold.compat import names
from tenfold.compat.overloads import NAMESPACES
from tenfold.engines import xla
from tenfold.mlir import torch_dialect
from tenfold.ops.plain import PLAIN
from tenfold.ops.pytorch_names import pytorch_names
from tenfold.ops.schema import parse
from tenfold.ops.table import RENAMED, TABLE, with_form
from tools.docs import with_generated

DOCS = Path(__file__).parent.parent.parent / "docs"
ATEN, THEIRS = tn.ops.aten, torch.ops.aten


def ours(x):
    """PyTorch's tensors, and containers of them, as ours."""
    if isinstance(x, torch.Tensor):
        return tn.tensor(x.detach().numpy())
    return type(x)(map(ours, x)) if isinstance(x, (list, tuple)) else x


def same(mine, theirs, rtol=1e-6):
    if isinstance(theirs, torch.Tensor):
        assert (mine.dtype.name, tuple(mine.shape)) == (str(theirs.dtype)[6:], tuple(theirs.shape))
        np.testing.assert_allclose(mine.detach().numpy(), theirs.detach().numpy(), rtol=rtol, atol=1e-6)
    elif isinstance(theirs, (list, tuple)):
        assert len(mine) == len(theirs)
        for pair in zip(mine, theirs, strict=True):
            same(*pair, rtol)
    else:
        assert type(mine) is type(theirs) and mine == theirs


# All names


@pytest.mark.parametrize("title", pytorch_names())
def test_no_public_name_is_missing(title):
    owner = tn
    for part in title.split(".")[1:]:
        owner = getattr(owner, part)
    assert [name for name in pytorch_names()[title] if not hasattr(owner, name)] == []


def test_every_aten_op_of_the_torch_dialect_is_there_or_refused():
    refused = {*unsupported.FUNCTIONS, *unsupported.OPS}
    absent = []
    for name in torch_dialect.aten_ops():
        packet, _, overload = name.partition(".")
        if packet not in refused and not hasattr(getattr(ATEN, packet, None), overload or "default"):
            absent.append(name)
    assert absent == []


def test_the_ops_of_other_namespaces_that_the_torch_dialect_defines_are_there():
    for name in (
        "collapse",
        "convert_element_type",
        "iota",
        "prod",
        "split_dim",
        "sqrt",
        "squeeze",
        "sum",
        "var",
    ):
        assert callable(getattr(tn.ops.prims, name).default)
    for name in ("per_tensor", "per_channel", "per_channel_group"):
        assert callable(getattr(tn.ops.quantized_decomposed, f"quantize_{name}").default)
        assert callable(getattr(tn.ops.quantized_decomposed, f"dequantize_{name}").default)


@pytest.mark.parametrize("name", sorted(unsupported.FUNCTIONS))
def test_a_refused_function_tells_the_reason(name):
    with pytest.raises(tn.UnsupportedError) as raised:
        getattr(tn, name)(1)
    assert raised.value.message == unsupported.FUNCTIONS[name].reason and raised.value.help


def test_a_refused_method_tells_the_reason():
    with pytest.raises(tn.UnsupportedError, match="a sparse layout"):
        tn.ones(2).to_sparse_bsr((1,))


def test_the_documents_list_what_is_refused():
    text = with_generated((DOCS / "unsupported.md").read_text(encoding="utf-8"))
    for refusal in unsupported.REFUSALS:
        section = text.partition(f"## {refusal.reason[0].upper()}{refusal.reason[1:]}\n")[2].partition(
            "\n## "
        )[0]
        names = [*refusal.functions.split(), *refusal.methods.split(), *refusal.ops.split()]
        names += [*refusal.layers.split(), *refusal.linear.split()]
        listed = re.findall(r"`(\w+)`", re.sub(r"(Functions|Ops) of `[\w.]+`", "", section))
        assert listed == names
        assert refusal.help in " ".join(section.split())


# tenfold.ops


def test_an_overload_is_called_by_its_name():
    x = tn.tensor([1.0, 2.0])
    assert ATEN.add.Tensor(x, x, alpha=3).tolist() == [4, 8]
    assert ATEN.relu.default(-x).tolist() == [0, 0]
    assert ATEN.add(x, 1).tolist() == [2, 3]
    assert ATEN.sum.dim_IntList(self=x, dim=[0]).item() == 3
    assert ATEN.max.dim(x, 0).indices.item() == 1
    assert str(ATEN.add.Tensor) == "aten.add.Tensor" and ATEN.add.Tensor.name() == "aten::add.Tensor"
    assert (
        str(ATEN.add.Tensor._schema) == "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
    )
    assert {"Tensor", "Scalar", "int"} <= set(ATEN.add.overloads())


def test_overloads_that_write_do_so():
    x, out = tn.tensor([-1.0, 2.0]), tn.zeros(2)
    assert ATEN.add.out(x, x, out=out) is out and out.tolist() == [-2, 4]
    assert ATEN.arange.start_out(1, 3, out=out) is out and out.tolist() == [1, 2]
    assert ATEN.relu_(x) is x and x.tolist() == [0, 2]
    assert ATEN.add_.Tensor(x, out) is x and x.tolist() == [1, 4]
    assert ATEN.elu_.default(-x).shape == (2,)
    assert ATEN.bernoulli_.float(x, 1.0).tolist() == [1, 1]
    noise = tn.zeros(2)
    ATEN.rrelu_with_noise(tn.tensor([-1.0, 1.0]), noise, 0.1, 0.2, True)
    assert 0.1 <= noise[0].item() <= 0.2 and noise[1].item() == 1


def test_self_is_given_by_name():
    x = tn.tensor([[1.0, 2.0]])
    assert ATEN.dim(self=x) == ATEN.dim.default(self=x) == 2
    assert ATEN.add(self=x, other=1).tolist() == ATEN.add.Scalar(self=x, other=1).tolist() == [[2, 3]]
    assert ATEN.add_.Tensor(self=x, other=x) is x and ATEN.relu_(self=x) is x and x.tolist() == [[2, 4]]
    out = tn.zeros(1, 2)
    assert ATEN.add.out(self=x, other=x, out=out) is out and out.tolist() == [[4, 8]]


OWN_OUT = {"normal", "_native_batch_norm_legit"}


def test_schemas_of_ops_that_write_are_pytorchs():
    assert str(ATEN.add.out._schema) == (
        "add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)"
    )
    assert str(ATEN.add_.Tensor._schema) == (
        "add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)"
    )
    for nothing in (lambda: ATEN.dim.out, lambda: ATEN.add_.out, lambda: ATEN.add.int_out):
        with pytest.raises(AttributeError, match="has no overload"):
            nothing()
    known = {(s.name, s.overload_name): s for s in torch._C._jit_get_all_schemas()}
    read = {key: str(parse(str(each))) for key, each in known.items() if key[0].startswith("aten::")}
    compared = 0
    for name, rows in TABLE.items():
        for row in rows:
            if read.get((f"aten::{name}", row.overload)) != str(row.schema):
                continue
            out = f"{row.overload}_out" if row.overload else "out"
            for writer, overload in ((name, out), (f"{name}_", row.overload)):
                expected = read.get((f"aten::{writer}", overload))
                if expected is not None and (writer == name or row.inplace):
                    packet = getattr(ATEN, writer)
                    assert str(getattr(packet, overload or "default")._schema) == expected
                    compared += 1
    assert compared > 800
    for name, rows in TABLE.items():  # `out` of an op whose overloads all have names
        expected = read.get((f"aten::{name}", "out"))
        # These two are overloads of their own in ATen, with no counterpart that does not write.
        if expected and all(row.overload for row in rows) and name not in OWN_OUT:
            assert str(getattr(ATEN, name).out._schema) == expected


def test_a_text_is_read_as_the_number_that_is_asked_for():
    for text in ("12", "-3", "+7", "1e3", "1.5", " 12", "1_000", "twelve", ""):
        for name in ("Float", "Int"):
            mine, theirs = getattr(ATEN, name).str, getattr(THEIRS, name).str
            try:
                expected = theirs(text)
            except (RuntimeError, ValueError):
                with pytest.raises(tn.ArgumentError, match="is no"):
                    mine(text)
            else:
                assert mine(text) == expected and type(mine(text)) is type(expected)


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan])
def test_what_has_no_whole_number_is_refused(number):
    for op in (ATEN.ceil, ATEN.floor, ATEN.Int, ATEN.ceil.float, ATEN.Int.Scalar):
        with pytest.raises(tn.ArgumentError, match="has no whole number"):
            op(number)


def test_a_wrong_name_or_call_is_explained():
    with pytest.raises(AttributeError, match="aten has no op 'sofmax'"):
        ATEN.sofmax  # noqa: B018
    with pytest.raises(AttributeError, match="aten::add has no overload 'Tensr'"):
        ATEN.add.Tensr  # noqa: B018
    with pytest.raises(AttributeError, match=r"attn has no op 'softmax'") as caught:
        tn.ops.attn.softmax  # noqa: B018
    assert "aten" in str(caught.value)
    with pytest.raises(TypeError, match=r"takes add\.int\(int a, int b\) -> int, not \(int, str\)"):
        ATEN.add.int(1, "2")
    with pytest.raises(TypeError, match=r"no overload takes \(str\)"):
        ATEN.numel("x")
    with pytest.raises(TypeError, match="out= is missing"):
        ATEN.add.out(tn.ones(1), tn.ones(1))


def test_schemas_of_plain_ops_are_pytorchs():
    known = {(s.name, s.overload_name): str(s) for s in torch._C._jit_get_all_schemas()}
    for namespace in ("aten", "prim"):  # those of torchvision are not PyTorch's
        for row in [each for rows in PLAIN[namespace].values() for each in rows]:
            text = row.text if "::" in row.text else f"{namespace}::{row.text}"
            assert str(parse(text)) == str(parse(known[f"{namespace}::{row.name}", row.overload]))


def test_numbers_are_computed_as_pytorch_computes_them():
    compared = 0
    values = {"int": (7, -3, 2), "float": (2.5, -0.75, 4.0), "bool": (True, False)}
    for name, rows in PLAIN["aten"].items():
        for row in rows:
            kinds = [a.type.text for a in row.schema.arguments]
            if not kinds or not set(kinds) <= set(values):
                continue
            for shift in range(3):
                args = [values[kind][(i + shift) % len(values[kind])] for i, kind in enumerate(kinds)]
                if (name in ("__lshift__", "__rshift__") and args[1] < 0) or name == "__range_length":
                    continue
                theirs = getattr(getattr(THEIRS, name), row.overload or "default")(*args)
                mine = getattr(getattr(ATEN, name), row.overload or "default")(*args)
                both_nan = isinstance(mine, float) and math.isnan(mine) and math.isnan(theirs)
                assert both_nan or (type(mine) is type(theirs) and mine == pytest.approx(theirs)), (row, args)
                compared += 1
    assert compared > 150


def test_plain_ops_on_containers_texts_and_tensors():
    x, values, table = tn.ones(2, 3), [3, 1, 2], {"a": 1}
    assert ATEN.append.t(values, 9) is values and values == [3, 1, 2, 9]
    assert ATEN.insert.t(values, 0, 8) is None and ATEN.sort.int(values) is None and values == [1, 2, 3, 8, 9]
    assert (
        ATEN.slice.t(values, 1, 3) == [2, 3]
        and ATEN.len.t(values) == 5
        and ATEN.__getitem__.t(values, -1) == 9
    )
    assert ATEN._set_item.t(values, 0, 5)[0] == 5 and ATEN.__contains__.int_list(values, 5)
    ATEN._set_item.str(table, "b", 2)
    assert ATEN.keys.str(table) == ["a", "b"] and ATEN.get.default_str(table, "c", 0) == 0
    assert (
        ATEN.format("{}-{}", 1, "x") == "1-x" and ATEN.join("+", ["a", "b"]) == "a+b" and ATEN.str(3) == "3"
    )
    assert ATEN.Float.str("2.5") == 2.5 and ATEN.__range_length(0, 10, 3) == 4
    assert (
        ATEN.size(x) == [2, 3] and ATEN.size.int(x, -1) == 3 and ATEN.dim(x) == 2 and ATEN.len.Tensor(x) == 2
    )
    assert ATEN.item(tn.tensor(4)) == 4 and ATEN.Int.Tensor(tn.tensor(4.5)) == 4 and ATEN.Bool.Tensor(x[0, 0])
    assert ATEN.to.dtype(x, tn.int32).dtype is tn.int32 and ATEN.type_as(x, tn.tensor(1)).dtype is tn.int64
    assert ATEN.tensor.int(3).item() == 3 and ATEN.tensor([[1.0, 2.0]]).shape == (1, 2)
    assert tn.ops.prim.max(1, 4) == 4 and tn.ops.prim.dtype(x) == 6 and tn.ops.prim.NumToTensor(2).item() == 2
    assert ATEN.empty_strided([2, 3], [1, 2]).stride() == (1, 2)
    assert ATEN._reshape_alias(x, [3, 2], [2, 1]).shape == (3, 2)
    with pytest.raises(tn.ShapeError, match=r"has shape \(2, 3\)"):
        ATEN._assert_tensor_metadata(x, [3, 2])
    with pytest.raises(tn.ArgumentError, match="too small"):
        ATEN._assert_scalar(False, "too small")
    with pytest.raises(tn.errors.DivisionByZero):
        ATEN.floordiv.int(1, 0)
    with pytest.raises(tn.IndexOutOfRange):
        ATEN.__getitem__.t([], 0)


def test_prims_agree_with_pytorch():
    theirs, mine = torch.ops.prims, tn.ops.prims
    x = torch.arange(1.0, 13.0).reshape(1, 3, 4)
    for call in (
        lambda p, x, lib: p.sqrt(x),
        lambda p, x, lib: p.convert_element_type(x, lib.int32),
        lambda p, x, lib: p.sum(x, [1]),
        lambda p, x, lib: p.prod(x, [2]),
        lambda p, x, lib: p.var(x, [1, 2], 1.0),
        lambda p, x, lib: p.collapse(x, 1, 2),
        lambda p, x, lib: p.split_dim(x, 2, 2),
        lambda p, x, lib: p.squeeze(x, [0]),
        lambda p, x, lib: p.view_of(x),
        lambda p, x, lib: p.iota(
            4, start=3, step=2, dtype=lib.int64, device=lib.device("cpu"), requires_grad=False
        ),
    ):
        same(call(mine, ours(x), tn), call(theirs, x, torch))
    base = tn.zeros(4)
    tn.ops.prims.split_dim(base, 0, 2)[1, 0] = 7  # it is a view
    assert base.tolist() == [0, 0, 7, 0]
    with pytest.raises(tn.ShapeError):
        tn.ops.prims.squeeze(tn.ones(2), [0])


def test_quantization_agrees_with_pytorch():
    theirs, mine = torch.ops.quantized_decomposed, tn.ops.quantized_decomposed
    rng = np.random.default_rng(0)
    x = torch.tensor(rng.normal(0, 3, (4, 6)).astype(np.float32))
    scales, zeros = torch.tensor([0.1, 0.2, 0.05, 0.4]), torch.tensor([0, 3, -2, 1])
    groups = torch.tensor(rng.uniform(0.05, 0.3, (4, 2)).astype(np.float32))
    offsets = torch.zeros(4, 2, dtype=torch.int32)
    bounds = (-128, 127)

    def through(q, lib, give):
        a = give(x)
        whole = q.quantize_per_tensor(a, 0.1, 3, *bounds, lib.int8)
        by_tensor = q.quantize_per_tensor.tensor(
            a, give(torch.tensor(0.3)), give(torch.tensor(5)), 0, 255, lib.uint8
        )
        channels = q.quantize_per_channel(a, give(scales), give(zeros), 0, *bounds, lib.int8)
        grouped = q.quantize_per_channel_group(a, give(groups), give(offsets), *bounds, lib.int8, 3)
        chosen = q.choose_qparams_per_token(a, lib.int8)
        tokens = q.quantize_per_token(a, *chosen, *bounds, lib.int8)
        return [
            whole,
            by_tensor,
            channels,
            grouped,
            tokens,
            q.dequantize_per_tensor(whole, 0.1, 3, *bounds, lib.int8),
            q.dequantize_per_tensor.tensor(
                by_tensor, give(torch.tensor(0.3)), give(torch.tensor(5)), 0, 255, lib.uint8
            ),
            q.dequantize_per_channel(channels, give(scales), give(zeros), 0, *bounds, lib.int8),
            q.dequantize_per_channel(channels, give(scales), None, 0, *bounds, lib.int8),
            q.dequantize_per_channel_group(
                grouped, give(groups), give(offsets), *bounds, lib.int8, 3, lib.float32
            ),
            q.dequantize_per_token(tokens, *chosen, *bounds, lib.int8, lib.float32),
            *q.choose_qparams.tensor(a, *bounds, 1e-8, lib.int8),
            *q.choose_qparams.tensor(a.abs() + 1, 0, 255, 1e-8, lib.uint8),
            *q.choose_qparams_symmetric.tensor(a, *bounds, 1e-8, lib.int8),
            *q.choose_qparams_symmetric.tensor(a, 0, 255, 1e-8, lib.uint8),
            *q.choose_qparams_per_token_asymmetric(a, lib.int8),
        ]

    found = through(mine, tn, ours)
    tn.eval(found)
    same(found, through(theirs, torch, lambda t: t))
    with pytest.raises(tn.ArgumentError, match="more than int8 holds"):
        mine.quantize_per_tensor(ours(x), 0.1, 0, 0, 255, tn.int8)


def test_other_namespaces_have_their_own_words_in_the_torch_dialect():
    def f(x):
        stored = tn.ops.quantized_decomposed.quantize_per_tensor(x, 0.1, 0, -128, 127, tn.int8)
        return tn.ops.prims.convert_element_type(stored, tn.float64)

    text = str(tn.export(f, (tn.ones(2),), dialect="torch"))
    assert "torch.quantized_decomposed.quantize_per_tensor" in text
    assert "torch.prims.convert_element_type" in text


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_quantized_tensors_are_made_and_taken_apart():
    x = torch.tensor(np.random.default_rng(0).normal(0, 3, (4, 6)).astype(np.float32))
    scales, zeros = torch.tensor([0.1, 0.2, 0.05, 0.4]), torch.tensor([0, 3, -2, 1])
    for name in ("qint8", "quint8", "qint32"):
        mine = tn.quantize_per_tensor(ours(x), 0.1, 3, getattr(tn, name))
        theirs = torch.quantize_per_tensor(x, 0.1, 3, getattr(torch, name))
        same([mine.int_repr(), mine.dequantize()], [theirs.int_repr(), theirs.dequantize()])
        assert (mine.q_scale(), mine.q_zero_point()) == (theirs.q_scale(), theirs.q_zero_point())
    mine = tn.quantize_per_channel(ours(x), ours(scales), ours(zeros), 0, tn.qint8)
    theirs = torch.quantize_per_channel(x, scales, zeros, 0, torch.qint8)
    same([tn.int_repr(mine), tn.dequantize(mine)], [theirs.int_repr(), theirs.dequantize()])
    same(mine.q_per_channel_scales(), theirs.q_per_channel_scales())
    assert mine.qscheme() == tn.per_channel_affine and mine.q_per_channel_axis() == 0
    again = ATEN._make_per_tensor_quantized_tensor(ATEN.int_repr(mine), 0.5, 1)
    same(
        ATEN.dequantize.self(again),
        torch._make_per_tensor_quantized_tensor(theirs.int_repr(), 0.5, 1).dequantize(),
    )
    with pytest.raises(AttributeError, match="nothing is computed with one"):
        again.relu  # noqa: B018
    with pytest.raises(tn.DTypeError, match="takes qint8"):
        tn.quantize_per_tensor(ours(x), 0.1, 3, tn.int8)


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_what_a_quantized_tensor_was_made_of_may_be_written():
    found = []
    for lib, aten in ((tn, ATEN), (torch, torch.ops.aten)):
        x = lib.tensor([[1.0, 2.0], [3.0, 4.0]])
        # PyTorch keeps scales of float64 and zero points of int64 themselves: these it has to convert.
        scales, zeros = lib.tensor([0.1, 0.5]), lib.tensor([1, 0], dtype=lib.int32)
        integers = lib.tensor([[1, 2], [3, 4]], dtype=lib.int8)
        made = [
            lib.quantize_per_channel(x, scales, zeros, 0, lib.qint8),
            aten._make_per_channel_quantized_tensor(integers, scales, zeros, 0),
            aten._make_per_tensor_quantized_tensor(integers, 0.5, 1),
        ]
        for each in (x, scales, zeros, integers):
            each.mul_(10)
        found.append([each.dequantize() for each in made])
    same(*found)


# Types, settings, facades


def test_the_older_types_of_tensors():
    assert tn.FloatTensor([1, 2]).dtype is tn.float32 and tn.LongTensor(2, 3).shape == (2, 3)
    assert isinstance(tn.ones(1), tn.FloatTensor) and not isinstance(tn.ones(1), tn.DoubleTensor)
    assert tn.ones(2).type(tn.LongTensor).dtype is tn.int64
    assert tn.typename(tn.ones(1)) == "tenfold.FloatTensor" and tn.typename(3) == torch.typename(3)
    assert tn.ones(2, dtype=tn.int32).type(tn.Tensor).dtype is tn.get_default_dtype()
    with pytest.raises(tn.ArgumentError, match="takes int64, not a float32 tensor"):
        tn.LongTensor(tn.ones(2))
    for package in (tn, torch):
        with pytest.raises(TypeError):
            package.LongTensor((6, 0), 1, 1, 0)
    tn.set_default_tensor_type(tn.DoubleTensor)
    assert tn.get_default_dtype() is tn.float64
    tn.set_default_tensor_type("torch.FloatTensor")
    assert tn.get_default_dtype() is tn.float32


def test_a_default_type_of_the_gpu_is_a_device_too(monkeypatch):
    assert tn.cuda.FloatTensor.dtype is tn.float32 and not isinstance(tn.ones(1), tn.cuda.FloatTensor)
    if not tn.cuda.is_available():
        for each in ("torch.cuda.DoubleTensor", tn.cuda.DoubleTensor):
            with pytest.raises(tn.DeviceError, match="CUDA plugin"):
                tn.set_default_tensor_type(each)
        assert tn.get_default_dtype() is tn.float32 and tn.get_default_device() == tn.device("cpu")
    monkeypatch.setattr(xla, "client", lambda platform: platform)
    try:
        tn.set_default_tensor_type("torch.cuda.DoubleTensor")
        assert tn.get_default_dtype() is tn.float64 and tn.get_default_device() == tn.device("cuda")
    finally:
        tn.set_default_tensor_type(tn.FloatTensor)
    assert tn.get_default_dtype() is tn.float32 and tn.get_default_device() == tn.device("cpu")
    with tn.device("cuda"):
        tn.set_default_tensor_type(tn.FloatTensor)
        assert tn.get_default_device() == tn.device("cuda")  # chosen by name, as in PyTorch


def test_names_of_older_scripts():
    x = tn.autograd.Variable(tn.ones(2), requires_grad=True)
    (x * x).sum().backward()
    assert x.grad.tolist() == [2, 2] and isinstance(x, tn.autograd.Variable)


def test_settings_are_kept():
    before = tn.get_num_threads()
    tn.set_num_threads(3)
    assert tn.get_num_threads() == 3
    tn.set_num_threads(before)
    tn.use_deterministic_algorithms(True, warn_only=True)
    assert tn.are_deterministic_algorithms_enabled() and tn.get_deterministic_debug_mode() == 1
    tn.set_deterministic_debug_mode("default")
    assert not tn.are_deterministic_algorithms_enabled()
    tn.set_float32_matmul_precision("high")
    assert tn.get_float32_matmul_precision() == "high"
    tn.set_float32_matmul_precision("highest")
    with pytest.raises(tn.ArgumentError, match="'low' is not one of"):
        tn.set_float32_matmul_precision("low")
    tn.set_anomaly_enabled(True, check_nan=False)
    assert tn.is_anomaly_enabled() and not tn.is_anomaly_check_nan_enabled()
    tn.set_anomaly_enabled(False)
    assert not tn.is_anomaly_enabled()
    with tn.inference_mode():
        assert tn.is_inference_mode_enabled()


def test_the_functions_that_write_to_their_argument_are_pytorchs():
    theirs = {each for each in dir(torch) if each.endswith("_") and not each.startswith("_")}
    assert set(names.INPLACE) == theirs - {"resize_as_sparse_"}


def test_functions_of_ops_write_to_their_argument_as_in_pytorch():
    further = {"embedding_renorm": (torch.tensor([0, 1]), 1.0, 2.0), "threshold": (0.1, 5.0)}
    for name in (name for name in with_form("function_") if not hasattr(tn.Tensor, name + "_")):
        given = further.get(name, (0.5, False) if name.endswith("dropout") else ())
        x = torch.tensor([[1.0, -2.0], [3.0, 4.0]])
        y = ours(x)
        assert getattr(tn, name + "_")(y, *map(ours, given)) is y
        same(y, getattr(torch, name + "_")(x, *given))
    y = tn.ones(16, 4)
    assert tn.dropout_(y, p=0.5, train=True) is y and set(y.flatten().tolist()) == {0, 2}


def test_lists_of_ops_by_name_hold_no_other_names():
    assert sorted(RENAMED.keys() - TABLE.keys()) == []


def test_determinism_is_asked_of_gpu_programs_by_either_switch():
    cudnn, option = tn.backends.cudnn, ("xla_gpu_deterministic_ops", True)
    tn.use_deterministic_algorithms(True)
    assert option in xla.OPTIONS["cuda"] and option not in xla.OPTIONS["cpu"]
    with cudnn.flags(deterministic=True):
        tn.use_deterministic_algorithms(False)
        assert option in xla.OPTIONS["cuda"]
    assert option not in xla.OPTIONS["cuda"]


def test_switches_tell_what_they_were_set_to():
    assert tn.backends.cuda.flash_sdp_enabled()
    tn.backends.cuda.enable_flash_sdp(False)
    assert not tn.backends.cuda.flash_sdp_enabled() and tn.backends.cuda.math_sdp_enabled()
    tn.backends.cuda.enable_flash_sdp(True)


def test_memory_may_be_asked_for_pinned():
    made = (
        tn.ones(2, pin_memory=True),
        tn.empty_strided((2,), (1,), pin_memory=True),
        tn.ones(2).pin_memory(),
    )
    assert [each.is_pinned() for each in made] == [False] * 3
    assert "bool true" not in tn.export(lambda: tn.ones(2, pin_memory=True)).text()
    with pytest.raises(tn.UnsupportedError, match="pin_memory='yes' is not supported"):
        tn.empty_strided((2,), (1,), pin_memory="yes")


def test_a_function_can_tell_that_it_is_exported():
    asked = []
    told = lambda x: asked.append((tn.compiler.is_compiling(), tn.compiler.is_exporting())) or x + 1
    tn.export(told, tn.ones(2), dialect="stablehlo")
    tn.compile(told)(tn.ones(2))
    told(tn.ones(2))
    assert asked == [(True, True), (True, False), (False, False)]


def test_a_peak_of_memory_that_is_not_known_is_not_told(monkeypatch):
    stats = {"bytes_in_use": 5, "peak_bytes_in_use": 9}
    gpu = SimpleNamespace(memory_stats=lambda: stats)
    monkeypatch.setattr(xla, "client", lambda name: SimpleNamespace(devices=[gpu], device=lambda index: gpu))
    monkeypatch.setattr(tn.cuda, "_peaks", {})
    assert tn.cuda.max_memory_allocated() == 9
    tn.cuda.reset_peak_memory_stats()
    with pytest.raises(tn.UnsupportedError, match="the peak has stayed below 9 bytes"):
        tn.cuda.max_memory_allocated()
    stats["peak_bytes_in_use"] = stats["bytes_in_use"] = 12
    assert tn.cuda.max_memory_allocated() == 12
    tn.cuda.reset_peak_memory_stats()
    assert tn.cuda.max_memory_allocated() == 12


def test_what_a_script_reads_of_the_machine():
    if not tn.cuda.is_available():
        assert tn.cuda.device_count() == 0 and tn.accelerator.current_accelerator() is None
        assert tn.cuda.memory_allocated() == 0
        with pytest.raises(tn.TenfoldError):
            tn.cuda.get_device_name()
    tn.cuda.manual_seed_all(0)
    tn.cuda.synchronize()
    assert not tn.backends.mps.is_available() and tn.version.cuda is None
    with tn.backends.cudnn.flags(enabled=False, benchmark=True):
        assert tn.backends.cudnn.benchmark and not tn.backends.cudnn.enabled
    assert tn.backends.cudnn.enabled
    assert not tn.jit.is_scripting() and not tn.compiler.is_compiling()
    seen = []
    tn.compile(lambda x: (seen.append(tn.compiler.is_compiling()), x + 1)[1])(tn.ones(1))
    assert seen == [True]
    double = tn.jit.script(lambda x: x * 2)
    assert double(tn.ones(1)).item() == 2
    with pytest.raises(tn.UnsupportedError, match="no source of its own"):
        tn.jit.save(double, "model.pt")
    with pytest.raises(TypeError, match="script: takes a function, a class or a module, not 3"):
        tn.jit.script(3)
    assert tn.ones(1).layout == tn.strided and isinstance(tn.strided, tn.layout)
    assert tn.ones(2).contiguous(memory_format=tn.contiguous_format).shape == (2,)


# Functions and methods that are no rows


def test_methods_that_apply_python_functions():
    x, y = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([4.0, 5.0, 6.0])
    same(ours(x).apply_(lambda v: v * 10), x.clone().apply_(lambda v: v * 10))
    same(ours(x).map_(ours(y), lambda a, b: a - b), x.clone().map_(y, lambda a, b: a - b))
    with pytest.raises(tn.GradientError):
        tn.ones(2, requires_grad=True).apply_(abs)


def test_methods_about_memory():
    mine, theirs = tn.arange(6.0), torch.arange(6.0)
    for x in (mine, theirs):
        x.resize_(2, 2)
    same(mine, theirs)
    view = mine.view(4)
    assert mine.resize_(3, 3).shape == (3, 3) and view.tolist() == [0, 1, 2, 3]
    a, b = tn.zeros(3), tn.ones(3)
    a.set_(b)
    b.add_(1)
    assert a.tolist() == [2, 2, 2] and a.is_set_to(b) and not a.is_set_to(tn.ones(3))
    assert tn.ones(2, 3).t().dim_order() == torch.ones(2, 3).t().dim_order()
    assert tn.ones(2).new([3, 4]).tolist() == [3, 4] and tn.ones(2).new(2, 2).shape == (2, 2)
    assert tn.empty_strided((2, 3), (1, 2)).stride() == (1, 2)
    assert (
        tn.empty_permuted((2, 3, 4), (2, 0, 1)).stride()
        == torch.empty_permuted((2, 3, 4), (2, 0, 1)).stride()
    )
    x = tn.ones(4)
    assert x[2:].untyped_storage().data_ptr() == x.data_ptr() and x[2:].untyped_storage().nbytes() == 16


def test_a_hook_after_gradients_were_collected():
    w, seen = tn.ones(2, requires_grad=True), []
    handle = w.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf.grad.tolist()))
    (w * 3).sum().backward()
    (w * 2).sum().backward()
    handle.remove()
    (w * 2).sum().backward()
    assert seen == [[3, 3], [5, 5]]


def test_functions_that_write_to_their_argument():
    x = torch.tensor([-1.5, 0.25, 2.0])
    for name in ("relu_", "exp_", "celu_", "selu_", "sigmoid_", "square_", "zero_"):
        mine, theirs = ours(x), x.clone()
        assert getattr(tn, name)(mine) is mine
        same(mine, getattr(torch, name)(theirs))
    with pytest.raises(tn.ArgumentError, match="writes to a Tensor"):
        tn.relu_(3.0)


def test_histograms_of_several_dimensions():
    x = torch.tensor(np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32))
    edges = [torch.tensor([-1.0, 0.0, 2.0]), torch.tensor([-2.0, 0.0, 1.0, 3.0])]
    for options in (
        {"bins": [3, 4]},
        {"bins": 5, "density": True},
        {"bins": [3, 4], "range": [-1.0, 1.0, -0.5, 0.5]},
        {"bins": edges},
        {"bins": 3, "weight": torch.arange(50.0)},
    ):
        found = tn.histogramdd(ours(x), **{key: ours(value) for key, value in options.items()})
        same(list(found), list(torch.histogramdd(x, **options)), 1e-5)


def test_factors_of_low_rank_and_large_eigenvalues():
    rng = np.random.default_rng(0)
    a = torch.tensor(rng.normal(size=(9, 4)))
    u, s, v = tn.svd_lowrank(ours(a), q=4)
    np.testing.assert_allclose((u @ tn.diag(s) @ v.mT).numpy(), a.numpy(), atol=1e-6)
    same(tn.pca_lowrank(ours(a))[1], torch.pca_lowrank(a)[1])
    square = a @ a.T + torch.eye(9)
    weight = torch.diag(torch.arange(1.0, 10.0)).double()
    for options in ({}, {"largest": False}, {"B": weight}):
        values, vectors = tn.lobpcg(ours(square), k=2, **{k: ours(v) for k, v in options.items()})
        theirs = torch.lobpcg(square, k=2, niter=200, **options)[0]
        np.testing.assert_allclose(values.numpy(), theirs.numpy(), rtol=1e-3)
        scaled = vectors if "B" not in options else ours(weight) @ vectors
        np.testing.assert_allclose((ours(square) @ vectors).numpy(), (scaled * values).numpy(), atol=1e-6)
    for options in ({"method": "guess"}, {"tracker": print}, {"ortho_iparams": {"i": 1}}):
        with pytest.raises(tn.ArgumentError, match="method='guess' is not one of|are for an iteration"):
            tn.lobpcg(ours(square), **options)


def test_segments_are_reduced_as_pytorch_does():
    data = torch.tensor(np.random.default_rng(0).normal(size=(7, 3)).astype(np.float32))
    lengths, offsets = torch.tensor([2, 0, 4, 1]), torch.tensor([0, 2, 2, 6, 7])
    found, golden = [], []
    for reduce in ("sum", "mean", "max", "min", "prod"):
        for initial in (None, 2.0):
            for told in ({"lengths": lengths}, {"offsets": offsets}):
                mine = {key: ours(value) for key, value in told.items()}
                found.append(tn.segment_reduce(ours(data), reduce, initial=initial, **mine))
                golden.append(torch.segment_reduce(data, reduce, initial=initial, **told))
    tn.eval(found)
    same(found, golden)
    with pytest.raises(tn.ArgumentError, match="do not add up"):
        tn.segment_reduce(ours(data), "sum", lengths=tn.tensor([1, 1])).eval()


def test_products_of_groups():
    rng = np.random.default_rng(0)
    draw = lambda *shape: torch.tensor(
        np.round(rng.normal(size=shape) * 4) / 4, dtype=torch.float32
    ).bfloat16()
    give = lambda t: tn.tensor(t.float().numpy()).to(tn.bfloat16) if t.dtype == torch.bfloat16 else ours(t)
    ends = torch.tensor([8, 8, 24], dtype=torch.int32)
    rows, stack, columns = draw(24, 16), draw(3, 16, 8), draw(16, 24)
    by_columns = lambda t: t.transpose(-1, -2).contiguous().transpose(-1, -2)
    left = draw(3, 8, 16)
    for a, b, offs in ((rows, stack, ends), (left, columns, ends), (left, stack, None)):
        mine = tn.nn.functional.grouped_mm(give(a), give(b), offs=None if offs is None else ours(offs))
        theirs = torch.nn.functional.grouped_mm(a, by_columns(b), offs=offs)
        np.testing.assert_allclose(mine.float().numpy(), theirs.float().numpy(), rtol=1e-2)


def test_norms_with_atens_arguments_update_running_statistics():
    x = torch.tensor(np.random.default_rng(0).normal(size=(4, 3, 2)).astype(np.float32))
    results = []
    for lib, give in ((tn, ours), (torch, lambda t: t)):
        stats = [give(torch.zeros(3)), give(torch.ones(3))]
        found = [lib.batch_norm(give(x), None, None, *stats, True, 0.1, 1e-5, True)]
        found += lib.native_batch_norm(give(x), None, None, *stats, True, 0.1, 1e-5)
        found += lib.batch_norm_update_stats(give(x), *stats, 0.1)
        results.append([*found, *stats])
    same(*results, 1e-5)


def test_a_loss_of_a_linear_layer():
    rng = np.random.default_rng(0)
    x, w, b = [torch.tensor(rng.normal(size=s).astype(np.float32)) for s in ((4, 5), (7, 5), (7,))]
    target = torch.tensor([1, 2, 0, 6])
    same(
        tn.nn.functional.linear_cross_entropy(ours(x), ours(w), ours(target), linear_bias=ours(b)),
        torch.nn.functional.linear_cross_entropy(x, w, target, linear_bias=b),
    )


def test_a_loss_of_a_linear_layer_with_scores_at_several_places():
    rng = np.random.default_rng(0)
    x, w, b = [torch.tensor(rng.normal(size=s).astype(np.float32)) for s in ((4, 5), (3, 2, 5), (3, 2))]
    target = torch.tensor([[1, 2], [0, 0], [2, 1], [1, 1]])
    same(
        tn.nn.functional.linear_cross_entropy(ours(x), ours(w), ours(target), linear_bias=ours(b)),
        torch.nn.functional.linear_cross_entropy(x, w, target, linear_bias=b),
    )


def test_the_namespaces_are_loaded_when_asked_for():
    assert set(NAMESPACES) >= {"aten", "prim", "prims", "quantized_decomposed"}
    assert tn.ops.aten is NAMESPACES["aten"] and "add" in dir(tn.ops.aten) and "add_" in dir(tn.ops.aten)


@pytest.mark.parametrize(
    "name",
    [
        *("nn.Lineer Linear", "nn.functional.reluu relu", "nn.init.xavier_unifrm_ xavier_uniform_"),
        *("nn.utils.clip_grad_nrm_ clip_grad_norm_", "nn.utils.rnn.pad_seqence pad_sequence"),
        *("optim.Adamm Adam", "distributions.Gama Gamma", "utils.data.DataLoadr DataLoader"),
        *("utils.chekpoint checkpoint", "testing.assert_clos assert_close", "random.sed seed"),
    ],
)
def test_a_name_that_is_nearly_one_of_a_module_gets_that_one_suggested(name):
    wrong, right = name.split()
    *modules, last = wrong.split(".")
    module = functools.reduce(getattr, modules, tn)
    with pytest.raises(AttributeError, match=f"did you mean {right}\\?"):
        getattr(module, last)


def test_the_documents_list_the_modules_and_names_that_are_not_there():
    text = with_generated((DOCS / "unsupported.md").read_text(encoding="utf-8"))
    listed = set(re.findall(r"`([\w.]+)`", text.partition("## Modules that are not there")[2]))
    for each in absent.ABSENT:
        assert f"Instead, {each.help}." in text
        assert listed.issuperset(each.modules.split())
    assert listed.issuperset([name.rpartition(".")[2] for name in absent.NAMES])


@pytest.mark.parametrize("name", [name for name in absent.MODULES if name.count(".") == 1])
def test_a_name_of_a_module_that_is_not_there_says_so_when_it_is_called(name):
    module = absent.AbsentModule.of(name)
    with pytest.raises(tn.UnsupportedError) as raised:
        module.Something(1)
    assert raised.value.message.endswith(absent.MODULES[name].reason) and raised.value.help

    class Derived(module.Something):
        pass

    with pytest.raises(tn.UnsupportedError):
        Derived()
    assert not isinstance(1, module.Something) and (module.Something | None)


@pytest.mark.parametrize("name", sorted(absent.CLASSES))
def test_a_class_of_pytorchs_that_is_not_there_can_be_tested_for(name):
    assert isinstance(getattr(torch, name), type)
    assert not isinstance(tn.ones(1), getattr(tn, name))


@pytest.mark.parametrize("device", ["mps", "xpu", "mtia"])
def test_a_program_may_ask_for_devices_that_are_not_there(device):
    assert getattr(tn, device).is_available() is False and getattr(tn, device).device_count() == 0


@pytest.mark.parametrize("name", named_dtypes.NAMES)
def test_a_dtype_that_tensors_cannot_have_can_be_named(name):
    assert isinstance(getattr(torch, name), torch.dtype)
    assert isinstance(getattr(tn, name), tn.dtype) and getattr(tn, name) is not tn.float32
    assert copy.deepcopy(getattr(tn, name)) is pickle.loads(pickle.dumps(getattr(tn, name)))
    with pytest.raises(tn.TenfoldError):
        tn.zeros(2, dtype=getattr(tn, name))


@pytest.mark.parametrize("name", ["qint8", "quint8", "qint32"])
def test_a_dtype_of_quantized_tensors_is_a_dtype(name):
    ours, theirs = getattr(tn, name), getattr(torch, name)
    assert isinstance(ours, tn.dtype) and copy.deepcopy(ours) is ours is pickle.loads(pickle.dumps(ours))
    assert ours.itemsize == theirs.itemsize and ours.is_floating_point is theirs.is_floating_point
    with pytest.raises(tn.TenfoldError):
        tn.zeros(2, dtype=ours)


def test_a_program_may_ask_whether_processes_can_work_together():
    assert tn.distributed.is_available() is True
    assert tn.distributed.is_initialized() is False
    with pytest.raises(tn.UnsupportedError, match="torch.distributed.Reducer"):
        tn.distributed.Reducer([])


def test_dtypes_and_layouts_may_be_atens_numbers():
    aten = tn.ops.aten
    assert aten.zeros([2], dtype=4).dtype is tn.int64 and aten.zeros.default([2], dtype=5).dtype is tn.float16
    assert aten._softmax_backward_data(tn.ones(2), tn.ones(2), 0, 6).dtype is tn.float32
    assert aten.new_empty(tn.ones(2), [3, 4], dtype=3, layout=0).dtype is tn.int32
    assert tn.ops.prim.NumToTensor.Scalar(5.0).dtype is tn.float64


@pytest.mark.parametrize("reduction", [0, 1, 2])
@pytest.mark.parametrize("shape", [(), (1,)])
def test_the_gradient_of_nll_loss_reads_the_first_of_several_targets(reduction, shape):
    found = []
    for m in (tn, torch):
        x = m.tensor([0.1, 0.2, 0.7])
        found.append(
            m.ops.aten.nll_loss_backward(
                m.full(shape, 2.0), x, m.tensor([2, 1, 0]), None, reduction, 10, m.tensor(3.0)
            ).tolist()
        )
    assert found[0] == pytest.approx(found[1])


@pytest.mark.parametrize("library", [tn, torch])
def test_statistics_of_nothing_are_refused(library):
    with pytest.raises(RuntimeError):
        library.batch_norm_update_stats(library.ones(0, 1), library.ones(1), library.ones(1), 0.1)


@pytest.mark.parametrize("library", [tn, torch])
@pytest.mark.parametrize("switches", [{"mode": 1}, {"mode": False, "warn_only": 1}])
def test_switches_of_determinism_are_bools(library, switches):
    with pytest.raises(TypeError):
        library.use_deterministic_algorithms(**switches)
