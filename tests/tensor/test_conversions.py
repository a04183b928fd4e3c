"""`to`, the methods named after dtypes, and old names of types, as PyTorch's."""

import pytest
import torch

import tenfold as tn
from tenfold.tensor.conversions import TYPE_NAMES, TYPES

NAMED = {
    "float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16", "int": "int32",
    "long": "int64", "short": "int16", "char": "int8", "byte": "uint8", "bool": "bool", "cfloat": "complex64",
    "cdouble": "complex128",
}  # fmt: skip


@pytest.mark.parametrize("name", NAMED)
def test_methods_named_after_dtypes_convert(name):
    ours, theirs = getattr(tn.tensor([0.0, 1.7, 3.0]), name)(), getattr(torch.tensor([0.0, 1.7, 3.0]), name)()
    assert ours.dtype.name == str(theirs.dtype)[6:] == NAMED[name]
    assert ours.tolist() == theirs.tolist()
    assert getattr(ours, name)() is ours


@pytest.mark.parametrize("L", [tn, torch], ids=["tenfold", "torch"])
def test_to_takes_a_dtype_a_device_both_or_another_tensor(L):
    x = L.tensor([1, 2])
    for dtype in (x.to(L.float64), x.to("cpu", L.float64), x.to(dtype=L.float64), x.to(L.ones(1).double())):
        assert dtype.dtype is L.float64 and dtype.tolist() == [1, 2]
    assert x.to("cpu") is x.to(L.int64) is x.to(x) is x
    copied = x.to(L.int64, copy=True)
    copied[0] = 5
    assert x.tolist() == [1, 2] and copied.tolist() == [5, 2]
    assert x.to("cpu", L.float32, False, True).dtype is L.float32
    assert x.type_as(L.ones(1)).dtype is L.float32 and x.cpu() is x


@pytest.mark.parametrize(
    "args, kwargs",
    [
        (("cpu", tn.float32, False, False, 1), {}),
        ((tn.float32,), {"dtype": tn.float32}),
        ((), {"dtypes": tn.float32}),
        ((tn.float32, 1), {}),
        ((tn.float32, "cpu"), {}),
    ],
    ids=str,
)
def test_other_arguments_of_to_are_refused(args, kwargs):
    with pytest.raises(tn.ArgumentError, match=r"to: takes \(dtype\), \(device\)"):
        tn.ones(2).to(*args, **kwargs)


def test_a_contiguous_copy_is_made_of_a_view_alone():
    x = tn.arange(6.0).reshape(2, 3)
    assert x.to(tn.float32, memory_format="contiguous_format") is x
    turned = x.t().to(tn.float32, memory_format="contiguous_format")
    assert turned.is_contiguous() and turned.tolist() == x.t().tolist()


def test_data_is_left_behind_on_the_way_to_the_meta_device():
    there = tn.ones(2, 3).to("meta", tn.float16)
    assert there.device.type == "meta" and there.dtype is tn.float16 and there.shape == (2, 3)


@pytest.mark.parametrize("name", TYPE_NAMES)
def test_the_old_name_of_a_type_names_what_it_converts_to(name):
    x = tn.tensor([1, 0]).type(f"tenfold.{name}")
    assert x.dtype is TYPE_NAMES[name] and x.type() == f"tenfold.{name}"
    if name in TYPES:
        assert tn.tensor([1.0]).type(getattr(tn, name)).dtype is x.dtype


def test_type_takes_dtypes_the_default_type_and_no_other_name():
    assert tn.arange(2).type(tn.Tensor).dtype is tn.float32
    assert tn.ones(2).type(tn.int32).dtype is tn.int32
    with pytest.raises(tn.DTypeError, match="unknown type 'tenfold.FlaotTensor'") as raised:
        tn.ones(2).type("tenfold.FlaotTensor")
    assert "FloatTensor" in str(raised.value)
