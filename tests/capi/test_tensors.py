"""Tensors over libtenfold: the host's memory of every dtype in and out, shapes, elements, text, DLPack,
files."""

from __future__ import annotations

import ctypes
import json
import os
import struct
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from tenfold.base.errors import TenfoldError
from tenfold.capi.binding import Scalar
from tests.capi.bridge import Bridge, numbers
from tests.capi.exchange import CODES, array_of, code_of, fetch, same


def sample(name: str) -> torch.Tensor:
    return torch.arange(48).remainder(2).reshape(2, 3, 8).to(getattr(torch, name))


@pytest.mark.parametrize("name", CODES)
def test_elements_of_every_dtype_go_in_and_out(tn: Bridge, name: str) -> None:
    given = sample(name)
    handle = tn.keep(tn.tn_tensor_from_data(given.data_ptr(), CODES[name], *numbers(given.shape), None, 0))
    assert tn.tn_dtype_name(CODES[name]).decode() == name
    assert tn.tn_dtype_bytes(CODES[name]) == given.element_size()
    assert tn.tn_tensor_bytes(handle) == given.numel() * given.element_size()
    assert same(fetch(handle), given)


@pytest.mark.parametrize("name", ["float32", "int8", "complex128", "bool", "bfloat16"])
def test_strides_are_followed_when_copying_and_when_lending(tn: Bridge, name: str) -> None:
    given = sample(name).permute(2, 0, 1)[::2]
    layout = (*numbers(given.shape), *numbers(given.stride()))
    copied = tn.keep(tn.tn_tensor_from_data(given.data_ptr(), CODES[name], *layout))
    lent = tn.keep(tn.tn_tensor_wrap_data(given.data_ptr(), CODES[name], *layout, None, None))
    assert same(fetch(copied), given) and same(fetch(lent), given)
    assert tn.tn_tensor_data(lent) == given.data_ptr() != tn.tn_tensor_data(copied)
    assert tn.tn_tensor_is_contiguous(copied) == 1 and tn.tn_tensor_is_contiguous(lent) == 0
    strides = (ctypes.c_int64 * 3)()
    assert tn.tn_tensor_strides(lent, strides, 3) == 3 and tuple(strides) == given.stride()


def test_lent_memory_is_given_back_once_by_its_last_user(tn: Bridge) -> None:
    returned = []
    deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(returned.append)
    memory = (ctypes.c_float * 4)(1, 2, 3, 4)
    lent = tn.tn_tensor_wrap_data(memory, 6, *numbers([4]), None, 0, deleter, 7)
    other = tn.tn_tensor_share(lent)
    assert tn.tn_tensor_is_same(lent, other) == 1
    tn.tn_free(lent)
    assert returned == []
    tn.tn_free(other)
    assert returned == [7]


def test_memory_stays_the_hosts_when_lending_fails(tn: Bridge) -> None:
    returned = []
    deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(returned.append)
    memory = (ctypes.c_float * 4)()
    assert tn.raw("tn_tensor_wrap_data")(memory, 6, *numbers([-4]), None, 0, deleter, 7) is None
    assert returned == []


def test_elements_are_read_and_written_by_index(tn: Bridge) -> None:
    handle = tn.tensor([[1.0, 2.0], [3.0, 4.0]])
    tn.tn_tensor_set(handle, *numbers([1, -2]), Scalar.of(9.5))
    value = Scalar()
    tn.tn_tensor_get(handle, *numbers([-1, 0]), ctypes.byref(value))
    assert value.number == 9.5
    assert tn.raw("tn_tensor_get")(handle, *numbers([2, 0]), ctypes.byref(value)) == 2
    assert "index 2 is out of range for dimension 0 of size 2" in tn.tn_error_message().decode()
    assert tn.raw("tn_tensor_get")(handle, *numbers([0]), ctypes.byref(value)) == 2
    assert tn.raw("tn_tensor_item")(handle, ctypes.byref(value)) == 8


@pytest.mark.parametrize(
    ("number", "dtype"), [(3, "int64"), (2.5, "float32"), (True, "bool"), (1 + 2j, "complex64")]
)
def test_the_only_element_keeps_its_kind(tn: Bridge, number: complex, dtype: str) -> None:
    value = Scalar()
    tn.tn_tensor_item(tn.tensor(number, dtype), ctypes.byref(value))
    assert value.number == number and type(value.number) is type(number)


def test_text_goes_into_the_buffer_as_far_as_it_fits(tn: Bridge) -> None:
    handle = tn.tensor([1.0, 2.0])
    whole = tn.lib.text("tn_tensor_print", handle)
    assert whole.split() == ["1", "2", "[", "CPUFloatType{2}", "]"]
    buffer = ctypes.create_string_buffer(b"x" * 8, 8)
    assert tn.tn_tensor_print(handle, buffer, 4) == len(whole)
    assert buffer.raw[:4] == whole[:3].encode() + b"\0" and buffer.raw[4:] == b"xxxx"


def test_complex_numbers_are_printed_with_both_parts(tn: Bridge) -> None:
    handle = tn.tensor([1 + 2j, 3 - 4j], "complex64")
    text = tn.lib.text("tn_tensor_print", handle)
    parts = "real: 1 3 [ CPUFloatType{2} ] imaginary: 2 -4 [ CPUFloatType{2} ] [ CPUComplexFloatType{2} ]"
    assert text.split() == parts.split()
    single = tn.tn_value_tensor(handle)
    listed = tn.tn_value_tuple((ctypes.c_void_p * 1)(single), 1)
    assert tn.lib.text("tn_value_print", listed) == f"({text},)"
    for value in (single, listed):
        tn.tn_value_free(value)


def test_an_element_of_a_sparse_tensor_is_read_and_not_written(tn: Bridge) -> None:
    sparse, value = tn.call("to_sparse", tn.tensor([0.0, 2.0])), Scalar()
    tn.tn_tensor_get(sparse, *numbers([1]), ctypes.byref(value))
    assert value.number == 2.0
    with pytest.raises(TenfoldError, match="sparse tensor has no place"):
        tn.tn_tensor_set(sparse, *numbers([1]), Scalar.of(3.0))


def test_dlpack_shares_memory_both_ways(tn: Bridge) -> None:
    handle = tn.tensor(np.arange(6).reshape(2, 3))
    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.restype, capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    theirs = torch.from_dlpack(capsule(tn.tn_tensor_to_dlpack(handle), b"dltensor", None))
    theirs[0, 0] = 41
    assert tn.array(handle)[0, 0] == 41
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    exported = torch.utils.dlpack.to_dlpack(theirs)
    back = tn.keep(tn.tn_tensor_from_dlpack(pointer(exported, b"dltensor")))
    name = ctypes.pythonapi.PyCapsule_SetName
    name.argtypes = [ctypes.py_object, ctypes.c_char_p]
    name(exported, b"used_dltensor")
    assert tn.tn_tensor_data(back) == tn.tn_tensor_data(handle)


class Managed(ctypes.Structure):
    """A DLManagedTensor of floats in host memory."""

    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64), ("context", ctypes.c_void_p),
        ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
    ]  # fmt: skip


def test_dlpack_from_a_stranger_is_checked_before_it_is_used(tn: Bridge) -> None:
    floats, deleted = (ctypes.c_float * 8)(*range(8)), []

    def managed(shape: list[int], strides: list[int] | None = None, offset: int = 0, **other: int) -> Managed:
        made = Managed(ctypes.addressof(floats), 1, 0, len(shape), 2, 32, 1, byte_offset=offset)
        made.arrays = [numbers(shape)[0], numbers(strides)[0] if strides else None]
        made.shape, made.strides = (ctypes.cast(each, ctypes.c_void_p).value for each in made.arrays)
        made.deleter = type(made.deleter)(lambda address: deleted.append(address))
        for name, value in other.items():
            setattr(made, name, value)
        return made

    wrong = [
        managed([3], [-1]),
        managed([-1]),
        managed([1 << 40, 1 << 40]),
        managed([2, 2], [1 << 62, 1 << 62]),
        managed([2], data=None),
        managed([2], ndim=-1),
        managed([2], bits=7),
        managed([2], lanes=2),
        managed([2], device_type=77),
        managed([2], device_type=8),  # Metal, which libtorch would take and then fail on
    ]
    if not torch.cuda.is_available():
        wrong.append(managed([2], device_type=2))
    for each in wrong:
        with pytest.raises(TenfoldError):
            tn.lib.tn_tensor_from_dlpack(ctypes.byref(each))
    assert not deleted
    for right, expected in [
        (managed([2, 2], [1, 4], offset=8), [[2, 6], [3, 7]]),
        (managed([3], [0]), [0, 0, 0]),
        (managed([0], data=None), []),
        (managed([]), 0),
    ]:
        handle = tn.lib.tn_tensor_from_dlpack(ctypes.byref(right))
        assert fetch(handle).tolist() == expected
        tn.tn_free(handle)
        assert deleted.pop() == ctypes.addressof(right) and not deleted


def test_a_tensor_known_to_be_zero_is_copied_out_as_zeros(tn: Bridge) -> None:
    stack = tn.tn_stack_new()
    tn.push(stack, [2, 3])
    tn.tn_call(b"aten::_efficientzerotensor", stack)
    handle = tn.keep(tn.tn_stack_pop_tensor(stack))
    tn.tn_stack_free(stack)
    assert fetch(handle).tolist() == [[0, 0, 0], [0, 0, 0]]


def save(tn: Bridge, path: Path, tensors: dict[str, torch.Tensor]) -> None:
    names = array_of(ctypes.c_char_p, [name.encode() for name in tensors])
    made = [
        tn.keep(tn.tn_tensor_from_data(t.data_ptr() or None, code_of(t.dtype), *numbers(t.shape), None, 0))
        for t in tensors.values()
    ]
    tn.tn_save_safetensors(str(path).encode(), names, array_of(ctypes.c_void_p, made), len(made))


def test_safetensors_files_come_back_and_other_readers_take_them(tn: Bridge, tmp_path: Path) -> None:
    written = {"a": torch.randn(2, 3), 'b "quoted" \u00e4\n': torch.arange(4), "empty": torch.zeros(0, 2)}
    written["bf16"] = torch.ones(3, dtype=torch.bfloat16)
    save(tn, tmp_path / "x.safetensors", written)
    header_size = struct.unpack("<Q", (tmp_path / "x.safetensors").read_bytes()[:8])[0]
    header = json.loads((tmp_path / "x.safetensors").read_bytes()[8 : 8 + header_size])
    assert header["a"]["dtype"] == "F32" and header["a"]["shape"] == [2, 3]
    loaded = tn.tn_load_safetensors(str(tmp_path / "x.safetensors").encode())
    for name, tensor in written.items():
        entry = tn.tn_value_get_string(loaded, name.encode())
        assert same(fetch(tn.keep(tn.tn_value_to_tensor(entry))), tensor)
        tn.tn_value_free(entry)
    assert tn.tn_value_count(loaded) == len(written)
    tn.tn_value_free(loaded)


def test_a_name_that_json_cannot_hold_is_an_error(tn: Bridge, tmp_path: Path) -> None:
    path, handles = str(tmp_path / "x.safetensors").encode(), array_of(ctypes.c_void_p, [tn.tensor([1.0])])
    for name in (
        b"\xff",
        b"\xc3",
        b"\xc0\xaf",
        b"\xe0\x80\xaf",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\x80",
    ):
        with pytest.raises(TenfoldError, match="not UTF-8"):
            tn.tn_save_safetensors(path, array_of(ctypes.c_char_p, [name]), handles, 1)
    for right in ("\u00e4", "\u20ac", "\U0001f600", "\uffff", "\x7f"):
        tn.tn_save_safetensors(path, array_of(ctypes.c_char_p, [right.encode()]), handles, 1)
        assert list(load_file(path.decode())) == [right]


def test_links_and_pipes_are_written_through_and_stay(tn: Bridge, tmp_path: Path) -> None:
    file, link, pipe = (tmp_path / name for name in ("file", "link", "pipe"))
    file.write_bytes(b"old")
    file.chmod(0o640)
    link.symlink_to(file)
    os.mkfifo(pipe)
    save(tn, link, {"x": torch.ones(2)})
    assert link.is_symlink() and file.stat().st_mode & 0o777 == 0o640
    assert load_file(file)["x"].tolist() == [1, 1]
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    save(tn, pipe, {"x": torch.ones(2)})
    reader.join()
    assert pipe.is_fifo() and received == [file.read_bytes()]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "link", "pipe"]


def test_threads_that_save_under_one_name_leave_one_whole_file(tn: Bridge, tmp_path: Path) -> None:
    path = str(tmp_path / "x.safetensors").encode()
    tensors = [tn.tensor(np.full(100_000, number)) for number in range(4)]
    failures: list[Exception] = []

    def work(tensor: int) -> None:
        try:
            for _ in range(10):
                tn.tn_save_safetensors(
                    path, array_of(ctypes.c_char_p, [b"a"]), array_of(ctypes.c_void_p, [tensor]), 1
                )
        except TenfoldError as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(each,)) for each in tensors]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not failures
    assert len(load_file(path.decode())["a"].unique()) == 1
    assert [each.name for each in tmp_path.iterdir()] == ["x.safetensors"]


def damaged() -> list[bytes]:
    header = b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    whole = struct.pack("<Q", len(header)) + header + b"\0" * 8
    change = lambda old, new: (
        struct.pack("<Q", len(header.replace(old, new))) + header.replace(old, new) + b"\0" * 8
    )
    return [
        *(whole[:cut] for cut in range(0, len(whole), 7)),
        whole + b"more",
        struct.pack("<Q", 1 << 62) + whole[8:],
        change(b"[2]", b"[-2]"),
        change(b"[2]", b"[4611686018427387904,4]"),
        change(b"[2]", b"[99999999999999999999999]"),
        change(b"[0,8]", b"[8,0]"),
        change(b"[0,8]", b"[0,8,9]"),
        change(b"F32", b"F33"),
        change(b'"dtype"', b'"other"'),
        change(b"[2]", b"[2.5]"),
        change(b"{", b"[" * 100),
        change(b'"a"', b'"\\ud800"'),
        change(b'"a"', b'"\\q"'),
        change(b'"a"', b'"\xff"'),
        change(b"[2]", b"[02]"),
        change(b"[2]", b"[-]"),
        change(b"[2]", b'["2"]'),
        change(b"[2]", b"[[2]]"),
    ]


def test_a_damaged_file_is_an_error(tn: Bridge, tmp_path: Path) -> None:
    path = tmp_path / "damaged"
    for content in damaged():
        path.write_bytes(content)
        assert tn.raw("tn_load_safetensors")(str(path).encode()) is None, content
        assert tn.tn_error_code() == 8
    for missing in (b"/nonexistent/file", str(tmp_path).encode()):
        assert tn.raw("tn_load_safetensors")(missing) is None
        assert tn.tn_error_code() in (1, 5)
