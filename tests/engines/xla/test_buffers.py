"""Data goes over to a device and comes back whole."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import tenfold as tn
from tenfold.base import dtypes
from tenfold.base.devices import Device
from tenfold.base.dtypes import ALL
from tenfold.engines import xla

CPU = Device("cpu")


def numbers(dtype: dtypes.DType) -> np.ndarray:
    """Elements of random bits, so NaNs are among the floats."""
    bits = np.random.default_rng(0).integers(0, 256, 24 * dtype.itemsize).astype(np.uint8)
    return bits > 127 if dtype.kind == "bool" else bits.view(dtype.numpy)


LAYOUTS = {
    "dense": lambda a: a.reshape(2, 3, 4),
    "zero-dimensional": lambda a: a[:1].reshape(()),
    "empty": lambda a: a[:0].reshape(0, 3),
    "transposed": lambda a: a.reshape(4, 6).T,
    "column-major": lambda a: np.asfortranarray(a.reshape(4, 6)),
    "with gaps": lambda a: a.reshape(4, 6)[::2, 1::3],
    "backwards": lambda a: a[::-1],
    "stretched": lambda a: np.broadcast_to(a[:3], (4, 3)),
    "one element in": lambda a: a[1:],
    "one long": lambda a: a.reshape(1, 24, 1),
}


@pytest.mark.parametrize("dtype", ALL, ids=lambda dtype: dtype.name)
def test_data_goes_over_and_comes_back_whole(dtype):
    for name, layout in LAYOUTS.items():
        array = layout(numbers(dtype))
        for writeable in (True, False):
            given = array.copy(order="K") if writeable else array
            given.flags.writeable = writeable and name != "stretched"
            found = xla.fetch(xla.put(given, CPU))
            assert found.dtype == array.dtype and found.shape == array.shape, name
            assert np.ascontiguousarray(found).tobytes() == np.ascontiguousarray(array).tobytes(), name
            assert not found.flags.writeable


def test_data_that_is_not_aligned_is_computed_with():
    raw = np.zeros(4 * 64 + 1, np.uint8)
    for offset in (0, 1):
        array = raw[offset : offset + 256].view(np.float32)
        array[:] = np.arange(64)
        assert (tn.from_numpy(array) + 1).tolist() == list(range(1, 65))


@pytest.mark.parametrize("dtype", ALL, ids=lambda dtype: dtype.name)
def test_a_tensor_does_not_see_later_writes_to_its_array(dtype):
    for make in (tn.tensor, lambda a: tn.tensor([a[0], a[1], a[2]]), lambda a: tn.asarray(a, copy=True)):
        array = np.array([0, 1, 1]).astype(dtype.numpy)
        x = make(array)
        lazy = x.clone()
        array[:] = 0
        assert x.tolist() == lazy.tolist() == [0, 1, 1]


def test_a_view_of_an_array_is_copied_too():
    array = np.arange(6.0).reshape(2, 3)
    for view in (array.T, array[:, ::2], array[0], array[::-1]):
        before = view.tolist()
        x = tn.tensor(view)
        array += 10
        assert x.tolist() == before
        array -= 10


def test_from_numpy_reads_the_arrays_own_memory_until_it_is_evaluated():
    array = np.arange(4.0)
    x = tn.from_numpy(array)
    array[0] = 7
    assert x.tolist()[0] == 7
    x += 1
    assert array[0] == 7  # in-place operators give the tensor new memory


def test_what_numpy_returns_cannot_be_written():
    x = tn.ones(3) + 1
    array = x.numpy()
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 5


def test_a_number_is_read_when_the_run_that_computes_it_has_ended():
    memory = ctypes.c_int32(-12345)  # what lies there before

    class Late:
        def is_ready(self):
            return False

        def block_until_ready(self):
            memory.value = 7

        def unsafe_buffer_pointer(self):
            return ctypes.addressof(memory)

    assert xla.number(Late(), dtypes.int32, CPU) == 7
    memory.value = -12345
    assert xla.pointer(Late()) == ctypes.addressof(memory) and memory.value == 7


def test_results_of_any_dtype_and_size_are_read(on_xla):
    for x in (tn.zeros(0), tn.tensor([1.0], dtype=tn.bfloat16)):
        unread, other = x * 2, tn.ones(1) * 3
        tripled = tn.compile(lambda x: x * 3)(x)
        assert [unread.tolist(), other.tolist()] == [[2.0] * x.numel(), [3.0]]
        assert tripled.tolist() == [3.0] * x.numel()
