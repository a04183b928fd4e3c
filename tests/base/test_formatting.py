"""A tensor's text, compared with PyTorch's `repr` over arrays of every dtype."""

import numpy as np
import pytest
import torch
from torch import _tensor_str

import tenfold as tn
from tenfold.base import dtypes
from tenfold.base.dtypes import ALL, DType
from tenfold.base.errors import ArgumentError
from tenfold.base.formatting import format_tensor, get_printoptions, set_printoptions

each_dtype = pytest.mark.parametrize("dtype", ALL, ids=lambda dtype: dtype.name)


@pytest.fixture(autouse=True)
def suffixes_in_our_names(monkeypatch):
    """PyTorch breaks lines by the length of its own names: let it lay out ours."""

    def renamed(text, suffixes, indent, force_newline):
        suffixes = [suffix.replace("torch.", "tenfold.") for suffix in suffixes]
        return add_suffixes(text, suffixes, indent, force_newline)

    add_suffixes = _tensor_str._add_suffixes
    monkeypatch.setattr(_tensor_str, "_add_suffixes", renamed)


@pytest.fixture
def both_printoptions():
    """Set the same options here and in PyTorch, until the test ends."""

    def choose(**options):
        set_printoptions(**options)
        torch.set_printoptions(**options)

    yield choose
    choose(profile="default")


def in_torch(array: np.ndarray, dtype: DType) -> torch.Tensor:
    target = getattr(torch, dtype.name)
    if dtype.numpy.isbuiltin == 1:
        return torch.from_numpy(array)
    bits = {1: np.uint8, 2: np.int16}[dtype.itemsize]
    return torch.from_numpy(array.view(bits)).view(target)


def assert_same_text(array, dtype: DType) -> None:
    array = np.asarray(array)
    if array.dtype != dtype.numpy:
        with np.errstate(all="ignore"):
            array = array.astype(dtype.numpy)
    assert format_tensor(array, dtype) == repr(in_torch(array, dtype))


def magnitudes(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Normal values of one scale, of many scales, or whole ones."""
    values = random.standard_normal(shape)
    match random.integers(4):
        case 0:
            return values * 10.0 ** random.uniform(-30, 30)
        case 1:
            return values * 10.0 ** random.uniform(-6, 9, shape)
        case 2:
            return np.floor(values * 100)
        case _:
            return values


def elements(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> np.ndarray:
    values = magnitudes(random, shape)
    if random.random() < 0.3:
        special = random.choice([np.nan, np.inf, -np.inf, 0.0, -0.0], shape)
        values = np.where(random.random(shape) < 0.2, special, values)
    if dtype.kind == "bool":
        return random.random(shape) < 0.5
    if dtype.kind == "int":
        limits = np.iinfo(dtype.numpy)
        reach = int(random.integers(1, limits.bits + 1))
        return random.integers(
            limits.min >> (limits.bits - reach),
            limits.max >> (limits.bits - reach),
            shape,
            dtype.numpy,
            endpoint=True,
        )
    with np.errstate(all="ignore"):
        if dtype.is_complex:
            both = np.empty(shape, dtype.numpy)
            both.real, both.imag = values, magnitudes(random, shape)
            return both
        return np.asarray(values).astype(dtype.numpy)


@each_dtype
def test_random_arrays_read_as_in_pytorch(dtype):
    random = np.random.default_rng(ALL.index(dtype))
    for _ in range(60):
        shape = tuple(random.integers(0, 8, random.integers(5)).tolist())
        assert_same_text(elements(random, shape, dtype), dtype)


@each_dtype
def test_summarised_arrays_read_as_in_pytorch(dtype):
    random = np.random.default_rng(ALL.index(dtype))
    for shape in [
        (1000,),
        (1001,),
        (5000,),
        (7, 200),
        (200, 7),
        (6, 6, 40),
        (7, 7, 7, 7),
        (1, 2000),
        (2, 1, 1001),
    ]:
        assert_same_text(elements(random, shape, dtype), dtype)


@each_dtype
@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (2, 0, 4), (1,), (1, 1, 1)], ids=str)
def test_small_and_empty_arrays_read_as_in_pytorch(dtype, shape):
    assert_same_text(np.ones(shape), dtype)


@pytest.mark.parametrize(
    "values",
    [
        [0.0, -0.0],
        [np.nan],
        [np.inf, -np.inf, np.nan, 0.0],
        [1.0, np.inf, np.nan],
        [1.5, -np.inf],
        [1e8], [1.1e8], [1e-4], [9e-5], [1.0, 1000.0], [0.999, 1000.0],
        [1e-5, np.nan],
        [5e-324, 1.7e308],
        [0.99995, 0.99994],
        [2.0**53],
        [[1.0, 2.0], [3.0, 4.0]],
        np.linspace(0, 1, 40),
        np.full((3, 20), -123456.789),
    ],
    ids=lambda values: str(values)[:20],
)  # fmt: skip
def test_notation_is_chosen_as_in_pytorch(values):
    for dtype in (dtypes.float32, dtypes.float64, dtypes.complex128):
        assert_same_text(values, dtype)
    imaginary = np.zeros(np.shape(values), np.complex128)
    imaginary.imag = values
    assert_same_text(imaginary, dtypes.complex128)
    assert_same_text(-imaginary, dtypes.complex64)


def test_the_text_is_pytorchs():
    text = format_tensor(np.array([[1, 2], [3, 4]], np.float32), dtypes.float32)
    assert text == "tensor([[1., 2.],\n        [3., 4.]])"
    text = format_tensor(np.array([0.5]), dtypes.float64)
    assert text == "tensor([0.5000], dtype=tenfold.float64)"
    assert format_tensor(np.zeros((0, 3), np.float32), dtypes.float32) == "tensor([], size=(0, 3))"


def test_values_of_a_view_are_read_in_its_order():
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4).transpose(2, 0, 1)[::-1]
    assert_same_text(np.ascontiguousarray(array), dtypes.float32)
    assert format_tensor(array, dtypes.float32) == format_tensor(np.ascontiguousarray(array), dtypes.float32)


@pytest.mark.parametrize("default", ["float16", "bfloat16", "float64"])
def test_the_default_dtype_is_not_written(default):
    try:
        dtypes.set_default_dtype(dtypes.BY_NAME[default])
        torch.set_default_dtype(getattr(torch, default))
        for dtype in ALL:
            assert_same_text(np.ones(3), dtype)
            assert_same_text(np.ones((0,)), dtype)
    finally:
        dtypes.set_default_dtype(dtypes.float32)
        torch.set_default_dtype(torch.float32)


def test_suffixes_stand_where_pytorch_puts_them():
    ones = np.ones(1)
    text = format_tensor(ones, dtypes.float64, suffixes=["device='cuda:0'", "requires_grad=True"])
    assert text == "tensor([1.], device='cuda:0', dtype=tenfold.float64, requires_grad=True)"
    text = format_tensor(
        ones, dtypes.float64, suffixes=["device='cuda:0'", "grad_fn=<NativeDropoutBackward0>"]
    )
    assert (
        text
        == "tensor([1.], device='cuda:0', dtype=tenfold.float64,\n       grad_fn=<NativeDropoutBackward0>)"
    )


@pytest.mark.parametrize("length", range(1, 40))
def test_a_suffix_moves_to_the_next_line_where_pytorch_moves_it(length):
    array = np.arange(length, dtype=np.float64)
    tensor = torch.from_numpy(array).requires_grad_()
    assert format_tensor(array, dtypes.float64, suffixes=["requires_grad=True"]) == repr(tensor)


@pytest.mark.parametrize(
    "options",
    [
        {"precision": 2},
        {"precision": 0},
        {"precision": 10},
        {"threshold": 5},
        {"threshold": 0},
        {"threshold": 5, "edgeitems": 1},
        {"threshold": 5, "edgeitems": 0},
        {"edgeitems": 0},
        {"linewidth": 20},
        {"linewidth": 200},
        {"linewidth": 1},
        {"sci_mode": True},
        {"sci_mode": False},
        {"profile": "short"},
        {"profile": "full"},
        {"profile": "short", "precision": 6},
    ],
    ids=str,
)
def test_options_mean_what_they_mean_in_pytorch(options, both_printoptions):
    random = np.random.default_rng(0)
    both_printoptions(**options)
    for dtype in (
        dtypes.float32,
        dtypes.float64,
        dtypes.int64,
        dtypes.bool_,
        dtypes.complex64,
        dtypes.bfloat16,
    ):
        for shape in [(), (3,), (30,), (1500,), (4, 9), (3, 2, 8), (0, 2)]:
            assert_same_text(elements(random, shape, dtype), dtype)


def test_options_change_as_in_pytorch(both_printoptions):
    for options in [
        {"precision": 7},
        {"sci_mode": True, "edgeitems": 5},
        {"linewidth": 100},
        {"profile": "short", "threshold": 7},
        {"profile": "full"},
    ]:
        both_printoptions(**options)
        assert get_printoptions() == torch._tensor_str.get_printoptions()


def test_an_unknown_profile_is_refused():
    before = get_printoptions()
    with pytest.raises(ArgumentError, match="set_printoptions: unknown profile 'tiny'"):
        set_printoptions(profile="tiny", precision=9)
    assert get_printoptions() == before


@pytest.mark.parametrize(
    "made",
    [
        lambda m: m.tensor([[3.0, 1.0], [2.0, 4.0]]).sort(),
        lambda m: m.tensor([[3.0, 1.0]]).max(0),
        lambda m: m.linalg.slogdet(m.eye(2)),
        lambda m: m.linalg.slogdet(m.eye(2)).sign,
    ],
)
def test_named_results_print_as_in_pytorch(made):
    assert repr(made(tn)) == repr(made(torch)).replace("torch.", "tenfold.")


def test_a_state_dict_prints_as_in_pytorch():
    def text(m):
        layer = m.nn.Linear(2, 1)
        m.nn.init.ones_(layer.weight)
        m.nn.init.zeros_(layer.bias)
        return repr(layer.state_dict())

    assert text(tn) == text(torch)
