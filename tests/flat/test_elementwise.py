"""Elementwise ops: the dtypes that they take are StableHLO's, and their values NumPy's."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.dtypes import ALL, DType
from tenfold.base.errors import DTypeError
from tenfold.flat import elementwise as e
from tenfold.flat.ir import TensorType
from tests.flat.machine import Machine, check_inference, only_the_result_is_wrong, params, unchecked, verdict

OPS = {
    op.name: op
    for op in vars(e).values()
    if isinstance(op, type) and issubclass(op, e.Elementwise) and op.name
}
INT = [dtype for dtype in ALL if dtype.kind == "int"]
FLOAT = [dtype for dtype in ALL if dtype.kind == "float"]
COMPLEX = [dtypes.complex64, dtypes.complex128]
# What StableHLO's types allow and its specification, or XLA, does not give a meaning.
NARROWER = {
    "stablehlo.cbrt": COMPLEX,
    "stablehlo.remainder": COMPLEX,
    "chlo.bessel_i1e": COMPLEX,
    "chlo.conj": FLOAT,
}


def by_torch(function: Callable[..., torch.Tensor]) -> Callable[..., np.ndarray]:
    """A function that NumPy has not, by PyTorch in double precision."""
    return lambda *xs: function(*(torch.from_numpy(np.asarray(x, np.float64)) for x in xs)).numpy()


def sign(x: np.ndarray) -> np.ndarray:
    return np.where(x == 0, x, x / np.abs(x)) if x.dtype.kind == "c" else np.sign(x)


def divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Integers divide towards zero."""
    if x.dtype.kind not in "iu":
        return x / y
    quotient = np.abs(x.astype(object)) // np.abs(y.astype(object))
    return (quotient * np.where((x < 0) != (y < 0), -1, 1)).astype(x.dtype)


def bits_of(x: np.ndarray) -> np.ndarray:
    return x.view(f"u{x.itemsize}")


def leading_zeros(x: np.ndarray) -> np.ndarray:
    return np.array([8 * x.itemsize - int(each).bit_length() for each in bits_of(x)]).astype(x.dtype)


def shifted_right(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """StableHLO's arithmetic shift copies the first bit even where the dtype is unsigned."""
    return (x.view(f"i{x.itemsize}") >> y.astype(f"i{x.itemsize}")).view(x.dtype)


UNARY: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "stablehlo.abs": np.abs,
    "stablehlo.cbrt": np.cbrt,
    "stablehlo.ceil": np.ceil,
    "stablehlo.count_leading_zeros": leading_zeros,
    "stablehlo.cosine": np.cos,
    "stablehlo.exponential": np.exp,
    "stablehlo.exponential_minus_one": np.expm1,
    "stablehlo.floor": np.floor,
    "stablehlo.imag": np.imag,
    "stablehlo.is_finite": np.isfinite,
    "stablehlo.log": np.log,
    "stablehlo.log_plus_one": np.log1p,
    "stablehlo.logistic": lambda x: 1 / (1 + np.exp(-x)),
    "stablehlo.negate": np.negative,
    "stablehlo.not": np.invert,
    "stablehlo.real": np.real,
    "stablehlo.round_nearest_even": np.round,
    "stablehlo.rsqrt": lambda x: 1 / np.sqrt(x),
    "stablehlo.sign": sign,
    "stablehlo.sine": np.sin,
    "stablehlo.sqrt": np.sqrt,
    "stablehlo.tan": np.tan,
    "stablehlo.tanh": np.tanh,
    "chlo.acos": np.arccos,
    "chlo.acosh": np.arccosh,
    "chlo.asin": np.arcsin,
    "chlo.asinh": np.arcsinh,
    "chlo.atan": np.arctan,
    "chlo.atanh": np.arctanh,
    "chlo.bessel_i1e": by_torch(torch.special.i1e),
    "chlo.conj": np.conj,
    "chlo.cosh": np.cosh,
    "chlo.digamma": by_torch(torch.digamma),
    "chlo.erf": by_torch(torch.erf),
    "chlo.erfc": by_torch(torch.erfc),
    "chlo.erf_inv": by_torch(torch.erfinv),
    "chlo.lgamma": by_torch(torch.lgamma),
    "chlo.sinh": np.sinh,
}
BINARY: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "stablehlo.add": np.add,
    "stablehlo.atan2": np.arctan2,
    "stablehlo.divide": divide,
    "stablehlo.maximum": np.maximum,
    "stablehlo.minimum": np.minimum,
    "stablehlo.multiply": np.multiply,
    "stablehlo.power": np.power,
    "stablehlo.remainder": np.fmod,
    "stablehlo.shift_left": np.left_shift,
    "stablehlo.shift_right_arithmetic": shifted_right,
    "stablehlo.shift_right_logical": lambda x, y: (bits_of(x) >> bits_of(y)).view(x.dtype),
    "stablehlo.subtract": np.subtract,
    "stablehlo.and": np.bitwise_and,
    "stablehlo.or": np.bitwise_or,
    "stablehlo.xor": np.bitwise_xor,
    "chlo.next_after": np.nextafter,
    "chlo.polygamma": by_torch(
        lambda n, x: torch.stack([torch.special.polygamma(int(k), v) for k, v in zip(n, x)])
    ),
    "chlo.zeta": by_torch(torch.special.zeta),
}
REAL_NUMBERS = [-2.5, -1.5, -1.0, -0.5, -0.0, 0.0, 0.25, 0.5, 1.0, 1.5, 2.5, 3.0]
SPECIALS = [np.inf, -np.inf, np.nan]
COMPLEX_NUMBERS = [0.5 + 0.25j, -1.5 + 2j, 2 - 0.75j, -0.25 - 1.25j, 3 + 0j]
# Where a function is not defined, or has a pole or a branch on which implementations differ: its own numbers.
DOMAINS: dict[str, list[float]] = {
    "chlo.digamma": [0.25, 1.0, 2.5, 30.0, -0.5, -1.75],
    "chlo.lgamma": [0.25, 1.0, 2.5, 30.0, -0.5, -1.75, 0.0, np.inf],
    "chlo.bessel_i1e": [-2.5, -0.5, 0.0, 0.25, 1.0, 9.0, 12.0],
    "chlo.erf_inv": [-1.0, -0.75, 0.0, 0.5, 0.9375, 1.0],
}
PAIRS = [
    (-2.5, 1.5),
    (-1.0, 0.5),
    (0.0, -1.0),
    (-0.0, 2.0),
    (3.0, 2.0),
    (7.5, -2.0),
    (1.0, np.inf),
    (np.nan, 1.0),
]
BINARY_DOMAINS: dict[str, list[tuple[float, float]]] = {
    "stablehlo.power": [(2.0, 3.0), (0.25, 0.5), (-2.0, 3.0), (4.0, -0.5), (0.0, 0.0), (1.5, 2.5)],
    "stablehlo.remainder": [(7.5, 2.0), (-7.5, 2.0), (7.5, -2.0), (1.0, 4.0), (-0.0, 1.0)],
    "chlo.polygamma": [(0.0, 1.5), (1.0, 2.5), (2.0, 0.75), (3.0, 4.0)],
    "chlo.zeta": [(2.0, 1.0), (3.0, 2.5), (1.5, 4.0), (4.0, 0.5)],
}
COMPLEX_PAIRS = [(0.5 + 0.25j, 1.5 - 2j), (-1.5 + 2j, 0.75 + 0.25j), (2 - 0.75j, -1 + 1j), (3 + 0j, 2 + 0j)]
LIBRARY = {"chlo.bessel_i1e", "chlo.digamma", "chlo.erf_inv", "chlo.lgamma", "chlo.polygamma", "chlo.zeta"}


def tolerance(name: str, dtype: DType) -> float:
    """A few units in the last place; PyTorch's and XLA's library functions keep half a double's digits."""
    if dtype.kind not in ("float", "complex"):
        return 0.0
    kept = dtypes.finfo(dtype).eps
    return max(4 * kept, 1e-13 if name not in LIBRARY else 1e-6)


def operands(name: str, dtype: DType, count: int) -> list[np.ndarray]:
    """Arrays of the dtype, on which the op has one right answer."""
    if dtype.kind == "bool":
        return list(np.array([(False, False), (False, True), (True, False), (True, True)]).T[:count])
    if dtype.kind == "int":
        limits = np.iinfo(dtype.numpy)
        ints = [0, 1, 2, 5, 100, limits.max, limits.max - 1, limits.min, limits.min + 1]
        if count == 1:
            return [np.array(ints, dtype.numpy)]
        seconds = (
            [1, 2, 3, 7] if "shift" in name or "power" in name else [1, 2, 7, limits.max, limits.max - 3]
        )
        pairs = np.array(list(itertools.product(ints, seconds)), object)
        return [pairs[:, 0].astype(dtype.numpy), pairs[:, 1].astype(dtype.numpy)]
    if dtype.kind == "complex":
        numbers: Any = COMPLEX_NUMBERS if count == 1 else COMPLEX_PAIRS
    else:
        numbers = (
            DOMAINS.get(name, REAL_NUMBERS + SPECIALS) if count == 1 else BINARY_DOMAINS.get(name, PAIRS)
        )
    return list(np.array(numbers).reshape(len(numbers), count).T.astype(dtype.numpy))


def expected(reference: Callable[..., np.ndarray], arrays: list[np.ndarray], dtype: DType) -> np.ndarray:
    wide = {"float": np.float64, "complex": np.complex128}.get(dtype.kind, dtype.numpy)
    if reference is np.nextafter and dtype.numpy.kind == "f":
        wide = dtype.numpy
    with np.errstate(all="ignore"):
        return reference(*(each.astype(wide) for each in arrays))


@pytest.mark.parametrize("dtype", INT, ids=lambda dtype: dtype.name)
def test_powers_of_integers_wrap_around(dtype, compiled_as_by_users):
    """XLA's own reads no more than six bits of the exponent."""
    machine = Machine()
    exponents = [
        each
        for each in (0, 1, 5, 63, 64, 65, 100, 250, 12345, 2**40 + 3)
        if each <= np.iinfo(dtype.numpy).max
    ]
    pairs = list(itertools.product((0, 1, 2, 3, 7, 10), exponents))
    modulus = 2 ** (8 * dtype.itemsize)
    x, y = (np.array(each, dtype.numpy) for each in zip(*pairs, strict=True))
    wrapped = np.array([pow(a, b, modulus) for a, b in pairs], np.uint64)
    value = flat.power(machine.input(x), machine.input(y))
    machine.expect("power", value, wrapped.astype(f"u{dtype.itemsize}").view(dtype.numpy))
    if dtype.is_signed:
        ones = np.array([1, -1, -1, 5], dtype.numpy)
        value = flat.power(machine.input(ones), machine.input(np.array([-3, -2, -3, -1], dtype.numpy)))
        machine.expect("negative exponents", value, [1, 1, -1, 0])
    machine.run()


def test_every_op_of_the_table_is_compared():
    assert set(UNARY) | set(BINARY) == set(OPS)
    assert all(issubclass(OPS[name], e.Unary) for name in UNARY)
    assert all(issubclass(OPS[name], e.Binary) for name in BINARY)


@pytest.mark.parametrize("name", OPS)
def test_dtypes_are_those_that_stablehlo_takes(name):
    op = OPS[name]
    for dtype in ALL:
        given = params(*[(dtype, (2, 3))] * (1 if name in UNARY else 2))
        if dtype in op.accepted:
            check_inference(op(*given))
            continue
        with pytest.raises(DTypeError, match=f"{name.split('.')[1]} is not defined for {dtype.name}"):
            op(*given)
        real = dtype.to_real() if op.result_dtype == "real" else op.result_dtype or dtype
        complaint = verdict(unchecked(op, *given, results=[TensorType(real, (2, 3))]))
        if dtype in NARROWER.get(name, []):
            assert complaint == ""
        else:
            assert complaint and not only_the_result_is_wrong(complaint)


# Enough to meet every width and signedness; CHLO's expansions are long, and the same for every width.
COMPARED = {
    "stablehlo": [
        "bool", "uint8", "int8", "int32", "uint64", "int64",
        "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
    ],
    "chlo": ["float32", "float64", "complex64"],
}  # fmt: skip


@pytest.mark.parametrize("kinds", ["bool int", "float", "complex"])
def test_values_are_numpys(kinds, compiled_as_by_users):
    machine = Machine()
    for name, op in OPS.items():
        for dtype in sorted(op.accepted, key=ALL.index):
            if dtype.kind not in kinds or dtype.name not in COMPARED[name.split(".")[0]]:
                continue
            if name == "stablehlo.atan2" and dtype.is_complex:
                continue  # NumPy has none
            arrays = operands(name, dtype, 1 if name in UNARY else 2)
            value = op(*(machine.input(each) for each in arrays)).result
            reference = UNARY.get(name) or BINARY[name]
            machine.expect(name, value, expected(reference, arrays, dtype), tolerance(name, dtype))
    machine.run()
