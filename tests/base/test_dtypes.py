"""Dtypes and devices, each rule compared with PyTorch's over every combination there is."""

import copy
import itertools
import pickle
import re
import subprocess
import sys
import threading

import ml_dtypes
import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.base import dtypes, named_dtypes
from tenfold.base.devices import Device, get_default_device, set_default_device
from tenfold.base.dtypes import ALL, BY_NAME, DType
from tenfold.base.errors import DeviceError, DTypeError

CATEGORIES = ("tensor", "scalar", "number")


def theirs(dtype: DType) -> torch.dtype:
    return getattr(torch, dtype.name)


def ours(dtype: torch.dtype) -> DType:
    return BY_NAME[str(dtype).removeprefix("torch.")]


@pytest.fixture
def restore_defaults():
    yield
    dtypes.set_default_dtype(dtypes.float32)
    torch.set_default_dtype(torch.float32)
    set_default_device(None)


each_dtype = pytest.mark.parametrize("dtype", ALL, ids=lambda dtype: dtype.name)


def test_every_dtype_is_there_once():
    assert len(ALL) == len({dtype.short for dtype in ALL}) == len({dtype.mlir for dtype in ALL}) == 17


@pytest.mark.parametrize("name", BY_NAME)
def test_names_and_aliases_are_pytorchs(name):
    assert theirs(BY_NAME[name]) is getattr(torch, name)


def test_pytorch_has_no_alias_we_lack():
    known = {theirs(dtype) for dtype in ALL}
    spellings = {name for name in dir(torch) if isinstance(getattr(torch, name), torch.dtype)}
    assert {name for name in spellings if getattr(torch, name) in known} == set(BY_NAME)


@each_dtype
def test_properties_are_pytorchs(dtype):
    for name in ("itemsize", "is_floating_point", "is_complex", "is_signed"):
        assert getattr(dtype, name) == getattr(theirs(dtype), name), name
    assert repr(dtype) == str(dtype) == repr(theirs(dtype)).replace("torch", "tenfold")
    assert dtype.numpy.itemsize == dtype.itemsize


@pytest.mark.parametrize(
    ("dtype", "short", "mlir", "numpy", "kind"),
    [
        (dtypes.bool_, "bool", "i1", np.bool_, "bool"),
        (dtypes.uint16, "u16", "ui16", np.uint16, "int"),
        (dtypes.int64, "i64", "i64", np.int64, "int"),
        (dtypes.bfloat16, "bf16", "bf16", ml_dtypes.bfloat16, "float"),
        (dtypes.float8_e4m3fn, "f8e4m3fn", "f8E4M3FN", ml_dtypes.float8_e4m3fn, "float"),
        (dtypes.float8_e5m2, "f8e5m2", "f8E5M2", ml_dtypes.float8_e5m2, "float"),
        (dtypes.complex64, "c64", "complex<f32>", np.complex64, "complex"),
        (dtypes.complex128, "c128", "complex<f64>", np.complex128, "complex"),
    ],
)
def test_what_other_systems_call_it(dtype, short, mlir, numpy, kind):
    assert (dtype.short, dtype.mlir, dtype.numpy, dtype.kind) == (short, mlir, np.dtype(numpy), kind)


@each_dtype
def test_copies_and_pickles_are_the_same_object(dtype):
    assert copy.deepcopy(dtype) is copy.copy(dtype) is dtype
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps([dtype], protocol)) == [dtype]


@each_dtype
def test_to_real_and_to_complex_are_pytorchs(dtype):
    assert theirs(dtype.to_real()) is theirs(dtype).to_real()
    try:
        expected = theirs(dtype).to_complex()
    except RuntimeError:
        expected = None
    if expected in (None, torch.complex32):
        with pytest.raises(DTypeError, match=f"{dtype.name} has no complex counterpart"):
            dtype.to_complex()
    else:
        assert dtype.to_complex() is ours(expected)


@each_dtype
def test_from_numpy_inverts_numpy(dtype):
    assert dtypes.from_numpy(np.zeros(1, dtype.numpy).dtype) is dtype


def test_from_numpy_knows_c_names_of_the_same_type():
    assert dtypes.from_numpy(np.dtype(np.longlong)) is dtypes.int64


@pytest.mark.parametrize(
    ("numpy", "message"),
    [
        ("U3", "a tensor cannot hold NumPy's str96"),
        ("O", "a tensor cannot hold NumPy's object"),
        ("M8[s]", re.escape("a tensor cannot hold NumPy's datetime64[s]")),
        (">f4", "NumPy's >f4 is not in this machine's byte order"),
    ],
)
def test_from_numpy_refuses_what_a_tensor_cannot_hold(numpy, message):
    with pytest.raises(DTypeError, match=message):
        dtypes.from_numpy(np.dtype(numpy))


@pytest.mark.parametrize("default", ["float16", "bfloat16", "float32", "float64"])
def test_python_numbers_take_pytorchs_dtypes(default, restore_defaults):
    dtypes.set_default_dtype(BY_NAME[default])
    torch.set_default_dtype(getattr(torch, default))
    assert dtypes.get_default_dtype() is BY_NAME[default]
    for value in (True, 3, 2.5):
        assert dtypes.of_python(value) is ours(torch.tensor(value).dtype)
    expected = torch.result_type(torch.ones(1, dtype=torch.int8), 1j)
    if expected is torch.complex32:
        with pytest.raises(DTypeError, match="float16 has no complex counterpart"):
            dtypes.of_python(1j)
    else:
        assert dtypes.of_python(1j) is ours(expected)


def test_numpy_numbers_count_by_their_kind():
    numbers = [
        np.bool_(True),
        np.int8(1),
        np.float16(1),
        np.float64(1),
        ml_dtypes.bfloat16(1),
        np.complex128(1),
    ]
    kinds = [dtypes.of_python(number) for number in numbers]
    float32 = dtypes.float32
    assert kinds == [dtypes.bool_, dtypes.int64, float32, float32, float32, dtypes.complex64]


@pytest.mark.parametrize("value", ["1", None, [1], np.str_("a"), np.longdouble(1)])
def test_other_values_are_not_numbers(value):
    with pytest.raises(DTypeError, match="expected a number, not|a tensor cannot hold"):
        dtypes.of_python(value)


@pytest.mark.parametrize("value", [bool, int, float, complex])
def test_python_types_stand_for_pytorchs_dtypes(value):
    assert dtypes.as_dtype(value) is ours(torch.zeros(1, dtype=value).dtype)


@each_dtype
def test_as_dtype_of_a_dtype_is_itself(dtype):
    assert dtypes.as_dtype(dtype) is dtype


@pytest.mark.parametrize(
    ("spec", "help"),
    [
        ("float32", "write tenfold.float32"),
        ("torch.long", "write tenfold.int64"),
        (np.float32, "write tenfold.float32"),
        (np.dtype("i4"), "write tenfold.int32"),
        ("float31", "dtypes are bool, uint8, "),
        (np.floating, "dtypes are bool, uint8, "),
        (str, "dtypes are bool, uint8, "),
        (None, "dtypes are bool, uint8, "),
    ],
)
def test_as_dtype_says_what_to_write_instead(spec, help):
    with pytest.raises(DTypeError, match="expected a dtype, not") as raised:
        dtypes.as_dtype(spec)
    assert raised.value.help.startswith(help)


@pytest.mark.parametrize(
    "dtype", [dtypes.int32, dtypes.complex64, dtypes.float8_e5m2, float, "float32", None]
)
def test_only_floating_point_dtypes_can_be_the_default(dtype):
    with pytest.raises(DTypeError, match="only floating-point dtypes can be the default"):
        dtypes.set_default_dtype(dtype)
    assert dtypes.get_default_dtype() is dtypes.float32


@each_dtype
def test_promotion_is_pytorchs_for_every_pair(dtype):
    for other in ALL:
        try:
            expected = torch.promote_types(theirs(dtype), theirs(other))
        except RuntimeError:
            with pytest.raises(DTypeError, match=f"{dtype.name} and {other.name} have no common dtype"):
                dtypes.promote_types(dtype, other)
        else:
            assert dtypes.promote_types(dtype, other) is ours(expected), other


@each_dtype
def test_can_cast_is_pytorchs_for_every_pair(dtype):
    for other in ALL:
        assert dtypes.can_cast(dtype, other) == torch.can_cast(theirs(dtype), theirs(other)), other


def operand(dtype: DType, category: str):
    """PyTorch's value of that dtype and category, or None where Python has no such number."""
    if category == "number":
        return {"bool": True, "int64": 3, "float32": 2.5, "complex64": 1j}.get(dtype.name)
    return torch.zeros((2,) if category == "tensor" else (), dtype=theirs(dtype))


OPERANDS = [
    (dtype, category)
    for dtype, category in itertools.product(ALL, CATEGORIES)
    if operand(dtype, category) is not None
]


@pytest.mark.parametrize("default", ["float16", "bfloat16", "float32", "float64"])
def test_result_type_is_pytorchs_for_every_pair_of_operands(default, restore_defaults):
    dtypes.set_default_dtype(BY_NAME[default])
    torch.set_default_dtype(getattr(torch, default))
    for a, b in itertools.product(OPERANDS, OPERANDS):
        if a[1] == b[1] == "number":
            continue  # PyTorch has no operator on two Python numbers
        try:
            expected = torch.result_type(operand(*a), operand(*b))
        except RuntimeError:
            expected = None
        # We have no complex32, so a Python complex number has no dtype while float16 is the default.
        homeless = default == "float16" and (dtypes.complex64, "number") in (a, b)
        if homeless or expected in (None, torch.complex32):
            with pytest.raises(DTypeError, match="no common dtype|no complex counterpart"):
                dtypes.result_type([a, b])
        else:
            assert dtypes.result_type([a, b]) is ours(expected), (a, b)


def dtype_of_addcmul(operands) -> DType | None:
    """What PyTorch makes of three tensors, or None where it has no dtype for them or has complex32."""
    try:
        result = torch.addcmul(*(operand(dtype, category) for dtype, category in operands)).dtype
    except RuntimeError as error:
        # Where only the kernel is missing, the message names the dtype it was wanted for.
        missing = re.search(r"not implemented for '(\w+)'", str(error))
        return BY_NAME[missing[1].lower()] if missing else None
    return None if result is torch.complex32 else ours(result)


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_result_type_of_three_operands_is_pytorchs():
    tensors = [(dtype, category) for dtype in ALL for category in ("tensor", "scalar")]
    agreed = refused = 0
    for picked in np.random.default_rng(0).integers(len(tensors), size=(3000, 3)):
        operands = [tensors[index] for index in picked]
        expected = dtype_of_addcmul(operands)
        if expected is None:
            refused += 1
            with pytest.raises(DTypeError):
                dtypes.result_type(operands)
        else:
            agreed += 1
            assert dtypes.result_type(operands) is expected, operands
    assert min(agreed, refused) > 1000


def test_result_type_needs_an_operand():
    with pytest.raises(DTypeError, match="at least one operand"):
        dtypes.result_type([])


@each_dtype
def test_finfo_and_iinfo_are_pytorchs(dtype):
    if dtype is dtypes.bool_:
        for info, message in [
            ("finfo", "is not a floating-point dtype"),
            ("iinfo", "is not an integer dtype"),
        ]:
            with pytest.raises(DTypeError, match=f"{info}: bool {message}"):
                getattr(dtypes, info)(dtype)
        return
    kind, other = ("iinfo", "finfo") if dtype.kind == "int" else ("finfo", "iinfo")
    limits, expected = getattr(dtypes, kind)(dtype), getattr(torch, kind)(theirs(dtype))
    for name in (name for name in dir(expected) if not name.startswith("_")):
        value = getattr(limits, name)
        assert (value, type(value)) == (getattr(expected, name), type(getattr(expected, name))), name
    assert repr(limits) == repr(expected)
    assert limits == getattr(dtypes, kind)(dtype)
    with pytest.raises(DTypeError, match=f"{other}: ") as raised:
        getattr(dtypes, other)(dtype)
    assert raised.value.help == f"use tenfold.{kind}"


def test_finfo_is_of_the_default_dtype_unless_told(restore_defaults):
    dtypes.set_default_dtype(dtypes.float64)
    assert dtypes.finfo() == dtypes.finfo(dtypes.float64) != dtypes.finfo(dtypes.float32)


@pytest.mark.parametrize("text", ["cpu", "cuda", "cuda:1", "cpu:0", "cuda:12"])
def test_a_device_is_written_as_in_pytorch(text):
    device, expected = Device(text), torch.device(text)
    assert (str(device), repr(device)) == (str(expected), repr(expected))
    assert (device.type, device.index) == (expected.type, expected.index)


def test_each_device_is_one_object():
    assert Device("cuda:1") is Device("cuda", 1) is Device(1) is Device(type="cuda", index=1)
    assert Device(Device("cpu")) is Device("cpu")
    assert Device("cuda") is not Device("cuda:0")
    for device in (Device("cpu"), Device("cuda:3")):
        assert copy.deepcopy(device) is pickle.loads(pickle.dumps(device)) is device


def test_a_resolved_device_leaves_nothing_to_choose():
    assert Device("cuda").resolved is Device("cuda:0") is Device("cuda:0").resolved
    assert Device("cpu:0").resolved is Device("cpu") is Device("cpu").resolved
    assert Device("cuda:1").resolved is Device("cuda:1")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("tpu",), "unknown device 'tpu'"),
        (("0",), "unknown device '0'"),
        (("cuda:",), "device 'cuda:' has no index that counts from 0"),
        (("cuda:-1",), "device 'cuda:-1' has no index that counts from 0"),
        (("cuda:01",), "device 'cuda:01' has no index that counts from 0"),
        (("cuda:x",), "device 'cuda:x' has no index that counts from 0"),
        (("cuda:1", 1), "device 'cuda:1' already has an index; 1 was given too"),
        (("cuda", -1), "a device's index counts from 0: -1 is not one"),
        (("cuda", True), "a device's index counts from 0: True is not one"),
        ((-1,), "a device's index counts from 0: -1 is not one"),
        ((True,), "expected a device, not True"),
        ((None,), "expected a device, not None"),
        ((1.0,), "expected a device, not 1.0"),
    ],
)
def test_a_device_that_cannot_be_is_refused(arguments, message):
    with pytest.raises(DeviceError, match=message):
        Device(*arguments)


@pytest.mark.parametrize(
    ("text", "meant"),
    [("gpu", "cuda"), ("gpu:1", "cuda"), ("CUDA", "cuda"), ("cdua", "cuda"), ("Cpu", "cpu")],
)
def test_a_misspelt_device_is_recognised(text, meant):
    with pytest.raises(DeviceError, match=f"unknown device '{text}'") as raised:
        Device(text)
    assert raised.value.help == f'did you mean {meant}? devices are written "cpu", "cuda" or "cuda:1"'


def test_a_with_block_sets_the_default_device(restore_defaults):
    with Device("cuda:1"):
        assert get_default_device() is Device("cuda:1")
        with Device("cpu") as inner:
            assert get_default_device() is inner is Device("cpu")
        with pytest.raises(KeyError), Device("cuda"):
            raise KeyError
        assert get_default_device() is Device("cuda:1")
        set_default_device("cuda:2")
        assert get_default_device() is Device("cuda:2")
    assert get_default_device() is Device("cpu")


def test_the_default_device_belongs_to_its_thread(restore_defaults):
    seen = []
    set_default_device("cuda:1")
    thread = threading.Thread(target=lambda: seen.append(get_default_device()))
    thread.start()
    thread.join()
    assert (seen, get_default_device()) == ([Device("cpu")], Device("cuda:1"))
    set_default_device(None)
    assert get_default_device() is Device("cpu")


def test_every_dtype_has_the_short_name_that_pytorch_gives_it():
    theirs = {each for each in vars(torch).values() if isinstance(each, torch.dtype)}
    for golden in theirs:
        name = str(golden).removeprefix("torch.")
        ours = BY_NAME.get(name) or named_dtypes.BY_NAME.get(name)
        assert ours is None or ours.abbr == golden.abbr, name


LATE = """
import sys
import numpy as np
import tenfold as tn
FIRST
assert tn.float32.itemsize == 4 and tn.bfloat16.itemsize == 2 and tn.float8_e5m2.itemsize == 1
print(str(USED), tn.from_numpy(np.zeros(2, tn.bfloat16.numpy)).dtype, "ml_dtypes" in sys.modules)
"""


@pytest.mark.parametrize(
    "first, used, expected",
    [
        ("assert 'ml_dtypes' not in sys.modules", "tn.ones(2, dtype=tn.bfloat16).sum().item()", "2.0"),
        ("import ml_dtypes", "tn.from_numpy(np.ones(1, ml_dtypes.float8_e5m2)).dtype", "tenfold.float8_e5m2"),
        ("import ml_dtypes", "tn.from_numpy(np.ones(1, ml_dtypes.bfloat16)).float()", "tensor([1.])"),
        ("", "(tn.finfo(tn.float8_e4m3fn).max, tn.finfo(tn.float32).bits)", "(448.0, 32)"),
        ("", "tn.empty(0, dtype=tn.float8_e4m3fn).element_size()", "1"),
    ],
)  # fmt: skip
def test_types_of_ml_dtypes_load_it_when_their_elements_are_made(first, used, expected):
    code = LATE.replace("FIRST", first).replace("USED", used)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == f"{expected} tenfold.bfloat16 True", done.stderr


def test_a_dtype_has_no_attribute_that_it_does_not_declare():
    with pytest.raises(AttributeError, match="'DType' object has no attribute 'nummy'"):
        tn.bfloat16.nummy  # noqa: B018
