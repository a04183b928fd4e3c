"""What changes how operators compute: autocast and the default element type; and what made a tensor."""

from __future__ import annotations

import ctypes

import pytest

from tenfold.base.errors import TenfoldError
from tenfold.capi.binding import Device
from tests.capi.bridge import DTYPES, Bridge

CPU, META = Device(0, -1), Device(2, -1)


def product_type(tn: Bridge) -> int:
    x = tn.tensor([[1.0, 2.0], [3.0, 4.0]])
    found: int = tn.tn_tensor_dtype(tn.call("mm", x, x))
    return found


def test_autocast_computes_products_in_a_smaller_type_until_its_scope_ends(tn: Bridge) -> None:
    outer = tn.tn_autocast_begin(CPU, DTYPES["bfloat16"], True)
    assert product_type(tn) == DTYPES["bfloat16"]
    inner = tn.tn_autocast_begin(CPU, DTYPES["float16"], True)
    assert product_type(tn) == DTYPES["float16"]
    off = tn.tn_autocast_begin(CPU, DTYPES["float16"], False)
    assert product_type(tn) == DTYPES["float32"]
    for scope in (off, inner):
        tn.tn_scope_end(scope)
    assert product_type(tn) == DTYPES["bfloat16"]
    tn.tn_scope_end(outer)
    assert product_type(tn) == DTYPES["float32"]


@pytest.mark.parametrize(("device", "dtype"), [(CPU, "float64"), (META, "bfloat16")])
def test_autocast_refuses_other_types_and_devices(tn: Bridge, device: Device, dtype: str) -> None:
    with pytest.raises(TenfoldError, match="is bfloat16 or float16|is cpu or cuda"):
        tn.tn_autocast_begin(device, DTYPES[dtype], True)


def test_floats_have_the_default_type(tn: Bridge) -> None:
    try:
        tn.tn_set_default_dtype(DTYPES["float64"])
        assert tn.tn_default_dtype() == DTYPES["float64"]
        with pytest.raises(TenfoldError, match="one of floats"):
            tn.tn_set_default_dtype(DTYPES["int64"])
    finally:
        tn.tn_set_default_dtype(DTYPES["float32"])


def test_a_tensor_names_what_made_it(tn: Bridge) -> None:
    x = tn.tensor([1.0], requires_grad=True)
    buffer = ctypes.create_string_buffer(64)
    assert tn.tn_grad_fn_name(x, buffer, 64) == 0
    assert tn.tn_grad_fn_name(tn.call("exp", x), buffer, 64) == len("ExpBackward0")
    assert buffer.value == b"ExpBackward0"


def test_the_graph_of_gradients_is_walked_by_positions(tn: Bridge) -> None:
    x = tn.tensor([1.0], requires_grad=True)
    y = tn.call("exp", tn.call("mul.Tensor", x, x))

    def following(*path: int) -> list[str]:
        buffer = ctypes.create_string_buffer(200)
        assert tn.tn_grad_fn_next(y, (ctypes.c_int64 * len(path))(*path), len(path), buffer, 200) >= 0
        return buffer.value.decode().splitlines()

    assert following() == ["MulBackward0"]
    assert following(0) == ["torch::autograd::AccumulateGrad"] * 2
    assert following(0, 1) == []
    with pytest.raises(IndexError, match="position 2 is out of range for 2 functions"):
        following(0, 2)
