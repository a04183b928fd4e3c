"""Quantized tensors: made, asked, taken apart and turned into floats again, as PyTorch's."""

import pytest
import torch

import tenfold as tn
from tenfold.base.errors import DTypeError, UnknownName

pytestmark = pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor, torch.quantize")
DATA = [[0.11, -0.52, 1.26], [3.0, -7.0, 0.04]]
BOTH = pytest.mark.parametrize("L", [tn, torch], ids=["tenfold", "torch"])


def quantized(L, dtype, axis=None):
    x, dtype = L.tensor(DATA), getattr(L, dtype)
    if axis is None:
        return L.quantize_per_tensor(x, 0.05, 3, dtype)
    count = x.shape[axis]
    scales, points = L.tensor([0.05, 0.1, 0.02][:count]), L.tensor([3, 0, 1][:count])
    return L.quantize_per_channel(x, scales, points, axis, dtype)


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("dtype", ["qint8", "quint8", "qint32"])
def test_integers_and_numbers_are_pytorchs(dtype, axis):
    ours, theirs = quantized(tn, dtype, axis), quantized(torch, dtype, axis)
    assert ours.int_repr().tolist() == tn.int_repr(ours).tolist() == theirs.int_repr().tolist()
    assert str(ours.int_repr().dtype)[8:] == str(theirs.int_repr().dtype)[6:]
    assert ours.dequantize().tolist() == tn.dequantize(ours).tolist() == theirs.dequantize().tolist()
    assert ours.shape == tuple(theirs.shape) and ours.numel() == theirs.numel() and ours.ndim == 2
    assert ours.size(1) == theirs.size(1) and ours.is_quantized and not ours.requires_grad
    assert str(ours.device) == str(theirs.device) and repr(ours.dtype)[8:] == repr(theirs.dtype)[6:]
    assert repr(ours.qscheme())[8:] == repr(theirs.qscheme())[6:]
    if axis is None:
        assert (ours.q_scale(), ours.q_zero_point()) == (theirs.q_scale(), theirs.q_zero_point())
    else:
        for name in ("q_per_channel_scales", "q_per_channel_zero_points"):
            mine, other = getattr(tn, name)(ours), getattr(torch, name)(theirs)
            assert mine.tolist() == other.tolist() and str(mine.dtype)[8:] == str(other.dtype)[6:]
        assert tn.q_per_channel_axis(ours) == theirs.q_per_channel_axis() == axis


@BOTH
def test_parts_make_a_tensor_that_shares_nothing_with_them(L):
    integers = L.tensor([2, 4], dtype=L.int8)
    made = L._make_per_tensor_quantized_tensor(integers, 0.5, 1)
    integers.zero_()
    assert made.dequantize().tolist() == [0.5, 1.5]
    scales, points = L.tensor([0.5, 2.0]), L.tensor([0, 1])
    made = L._make_per_channel_quantized_tensor(L.tensor([2, 4], dtype=L.int8), scales, points, 0)
    scales.zero_()
    assert made.dequantize().tolist() == [1.0, 6.0]
    part = made.int_repr()
    part.zero_()
    assert made.int_repr().tolist() == [2, 4]


def test_scales_may_be_tensors_and_several_are_dequantized_at_once():
    x = tn.tensor([1.0, 2.0])
    one = tn.quantize_per_tensor(x, tn.tensor(0.5), tn.tensor(1), tn.qint8)
    assert (one.q_scale(), one.q_zero_point()) == (0.5, 1) and one.tolist() == [1, 2]
    assert tn.quantize_per_tensor(tn.tensor(1.0), 0.5, 0, tn.qint8).item() == 1.0
    assert [each.tolist() for each in tn.dequantize((one, x))] == [[1, 2], [1, 2]]
    assert "quantize" in repr(one) or "qint8" in repr(one)


def test_what_cannot_be_asked_or_computed_is_refused():
    whole, channels = quantized(tn, "qint8"), quantized(tn, "qint8", 0)
    for call in (
        whole.q_per_channel_scales,
        whole.q_per_channel_axis,
        channels.q_scale,
        channels.q_zero_point,
    ):
        with pytest.raises(tn.ArgumentError, match="not a question about a tensor quantized"):
            call()
    with pytest.raises(UnknownName, match="has no 'relu': nothing is computed with one"):
        whole.relu()
    with pytest.raises(tn.ArgumentError, match="takes a quantized tensor, not Tensor"):
        tn.q_scale(tn.ones(2))
    with pytest.raises(DTypeError, match="takes qint8, quint8 or qint32, not"):
        tn.quantize_per_tensor(tn.ones(2), 1.0, 0, tn.int8)
    with pytest.raises(DTypeError, match="int8, uint8 or int32, not int64"):
        tn._make_per_tensor_quantized_tensor(tn.arange(2), 1.0, 0)
