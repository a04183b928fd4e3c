"""Reverse mode: every rule against central differences and forward mode, and PyTorch's conventions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import UnsupportedError
from tenfold.flat import elementwise as e, structured as s
from tenfold.flat.grad import GRADIENTS, gradients
from tenfold.flat.grad_control import GRADIENTS as CONTROL
from tenfold.flat.ir import TensorType, Value, in_order
from tenfold.flat.partials import FLAT
from tenfold.flat.windows import SelectAndScatter
from tests.flat.derivative_cases import FAMILIES
from tests.flat.derivatives import Build, check, evaluate, inputs
from tests.flat.test_ir import CLASSES

F32, F64 = dtypes.float32, dtypes.float64
NAN = float("nan")


@pytest.mark.parametrize("family", FAMILIES)
def test_derivatives_are_those_of_central_differences_and_of_the_other_mode(family):
    check(list(FAMILIES[family]()))


def test_every_op_has_a_rule_and_every_rule_that_gives_a_gradient_is_tried():
    tables = {*GRADIENTS, *CONTROL}
    assert tables == {*CLASSES, flat.Composite}
    cases = [case for build in FAMILIES.values() for case in build()]
    tried = {type(op) for case in cases for op in in_order(case.results)}
    reached = {type(op) for case in cases for op in in_order(case.program()[1])}
    assert tables - tried - reached - FLAT == {s.RngBitGenerator, s.CustomCall}
    assert SelectAndScatter in reached


# Values of PyTorch's


def ours(build: Build, xs: list[Value], orders: int) -> list[Value]:
    """First and further derivatives by each argument, for fixed cotangents."""
    result = build(*xs)
    found: list[Value | None] = []
    results, ct = [result], 0.75
    for _ in range(orders):
        cts = [flat.full_like(each, ct) for each in results]
        first = gradients(in_order(results), results, cts, xs)
        found += first
        results, ct = [each for each in first if each is not None], 1.25
    return [
        flat.full_like(x, 0) if each is None else each for each, x in zip(found, xs * orders, strict=True)
    ]


def pytorchs(
    function: Callable[..., torch.Tensor], arrays: list[np.ndarray], orders: int
) -> list[np.ndarray]:
    xs = [torch.tensor(each, requires_grad=True) for each in arrays]
    found: list[torch.Tensor] = []
    results, ct = [function(*xs)], 0.75
    for _ in range(orders):
        cts = [torch.full_like(each, ct) for each in results]
        first = [None] * len(xs)
        if results:
            first = torch.autograd.grad(results, xs, cts, create_graph=True, allow_unused=True)
        found += [torch.zeros_like(x) if each is None else each for each, x in zip(first, xs, strict=True)]
        results, ct = [each for each in first if each is not None and each.requires_grad], 1.25
    return [each.detach().numpy(force=True) for each in found]


def compare(
    cases: dict[str, tuple[Build, Callable[..., Any], list[Any]]], tolerance: float = 1e-12, orders: int = 2
) -> None:
    """First and second derivatives, in float64 or complex128, against torch.autograd's."""
    params, arrays, values, expected = [], [], [], []
    for name, (build, function, points) in cases.items():
        points = [np.asarray(each) for each in points]
        xs = inputs(points)
        values += ours(build, xs, orders)
        labels = [
            f"{name}, order {order}, by argument {i}"
            for order in range(1, orders + 1)
            for i in range(len(xs))
        ]
        expected += zip(labels, pytorchs(function, points, orders), strict=True)
        params += xs
        arrays += points
    wrong = []
    for array, (label, theirs) in zip(evaluate(params, values, arrays), expected, strict=True):
        if not np.allclose(array, theirs, tolerance, tolerance, equal_nan=True):
            wrong.append(f"{label}: {array.tolist()}, PyTorch: {theirs.tolist()}")
    assert not wrong, "\n".join(wrong)


X = np.array([0.1, 0.25, 0.5, 0.75, 0.9])
Y = np.array([0.7, 0.2, 0.3, 0.6, 0.4])
Z = np.array([0.3 - 0.4j, -0.5 + 0.1j, -1.5 - 2.0j, 0.7 + 0.2j])
W = np.array([0.1 + 0.7j, -0.6 - 0.3j, 1.5 - 1.0j, -0.2 + 0.9j])


UNARY = """
    acos asin asinh atan atanh cos cosh digamma erf erfc erfinv exp expm1 lgamma log log1p rsqrt sin sinh sqrt
"""
HOLOMORPHIC = "asin asinh atan cos cosh exp expm1 log log1p rsqrt sin sinh sqrt tan tanh abs conj"


def test_elementwise_derivatives_are_pytorchs():
    cases = {name: (getattr(flat, name), getattr(torch, name), [X]) for name in UNARY.split()}
    cases |= {name: (getattr(flat, name), getattr(torch, name), [X - 0.5]) for name in ("tan", "tanh", "abs")}
    # PyTorch's own second derivative of lgamma is good to 1e-9.
    compare({name: cases.pop(name) for name in ("digamma", "lgamma")}, 2e-9)
    cases["acosh"] = flat.acosh, torch.acosh, [X + 1.5]
    cases["logistic"] = flat.logistic, torch.sigmoid, [X - 0.5]
    cases["bessel_i1e"] = flat.bessel_i1e, torch.special.i1e, [(X - 0.5) * 100]
    cases["zeta"] = lambda x: flat.zeta(2.5, x), lambda x: torch.special.zeta(2.5, x), [X]
    cases["polygamma"] = lambda x: flat.polygamma(2.0, x), lambda x: torch.polygamma(2, x), [X]
    for name, other in (
        ("atan2", "atan2"),
        ("div", "div"),
        ("mul", "mul"),
        ("power", "pow"),
        ("rem", "fmod"),
    ):
        cases[name] = getattr(flat, name), getattr(torch, other), [X * 3, Y]
    compare(cases, 1e-11)


def test_complex_derivatives_are_pytorchs():
    cases = {name: (getattr(flat, name), getattr(torch, name), [Z]) for name in HOLOMORPHIC.split()}
    cases["sign"] = flat.sign, torch.sgn, [Z]
    cases["imag"] = flat.imag, torch.imag, [Z]
    cases["real factor"] = lambda x, z: flat.convert(x, dtypes.complex128) * z, torch.mul, [X[:4], Z]
    for name, other in (("div", "div"), ("mul", "mul"), ("power", "pow")):
        cases[name] = getattr(flat, name), getattr(torch, other), [Z, W]
    compare(cases, 1e-11)


def test_corners_are_pytorchs():
    bases = np.array([0.0, 2.0, -2.0])
    ties, others = np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0])
    low, high = np.zeros(6), np.array([1.0, 1.0, 1.0, 1.0, 1.0, -1.0])
    inside = np.array([0.0, 1.0, 0.5, -1.0, 2.0, 0.0])
    rows = np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0], [5.0, 1.0, 0.0]])
    zeros = np.array([[0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [1.0, 2.0, 3.0]])
    pooled = np.array([[[1.0, 1.0, 0.0, 0.0, 2.0, 2.0, 2.0, 1.0]]])
    pool = lambda window, stride: lambda x: flat.reduce_window(x, "max", (1, 1, window), (1, 1, stride))
    torch_pool = lambda window, stride: lambda x: torch.nn.functional.max_pool1d(x, window, stride)
    compare(
        {
            "square": (lambda x: flat.power(x, 2), lambda x: x**2, [bases]),
            "to the 0": (lambda x: flat.power(x, 0.0), lambda x: x**0.0, [bases]),
            "maximum": (flat.maximum, torch.maximum, [ties, others]),
            "minimum": (flat.minimum, torch.minimum, [ties, others]),
            "clamp": (flat.clamp, torch.clamp, [inside, low, high]),
            "abs at 0": (flat.abs, torch.abs, [np.array([0.0, -0.0])]),
            "complex abs at 0": (flat.abs, torch.abs, [np.array([0.0 + 0.0j])]),
            "amax": (lambda x: flat.reduce(x, "max", 1), lambda x: x.amax(1), [rows]),
            "amin": (lambda x: flat.reduce(x, "min", 1), lambda x: x.amin(1), [rows]),
            "prod": (lambda x: flat.reduce(x, "mul", 1), lambda x: x.prod(1), [zeros]),
            "prod of all": (lambda x: flat.reduce(x, "mul"), torch.prod, [zeros]),
            "pool": (pool(2, 2), torch_pool(2, 2), [pooled]),
            "overlapping pool": (pool(3, 1), torch_pool(3, 1), [pooled]),
        }
    )


def test_first_derivatives_at_singular_points_are_pytorchs():
    bases, exponents = np.array([0.0, 0.0, 0.0, 2.0, -2.0]), np.array([0.0, 1.0, 2.0, 0.0, 2.0])
    infinite = np.array([np.inf, 0.0, -np.inf])
    cases = {
        "power": (flat.power, torch.pow, [bases, exponents]),
        "power of infinity": (lambda x: flat.power(x, 0.0), lambda x: x**0.0, [infinite]),
        "complex power": (flat.power, torch.pow, [bases[2:] + 0j, exponents[2:] + 0j]),
        "atan2": (flat.atan2, torch.atan2, [np.zeros(1), np.zeros(1)]),
        "sqrt": (flat.sqrt, torch.sqrt, [np.zeros(1)]),
        "log": (flat.log, torch.log, [np.array([0.0, -1.0])]),
        "div": (flat.div, torch.div, [np.ones(2), np.array([0.0, 1e200])]),
    }
    compare(cases, orders=1)


def test_the_power_0_has_its_second_derivatives():
    x, y = np.array([2.0, 0.5]), np.zeros(2)
    params = inputs([x, y])
    found = ours(flat.power, params, 2)[2:]
    by_x, by_y = evaluate(params, found, [x, y])
    np.testing.assert_allclose(by_x, 0.9375 / x)
    np.testing.assert_allclose(by_y, 0.9375 * (1 / x + np.log(x) ** 2))


def test_nan_goes_where_pytorch_lets_it_go():
    xs = np.array([[[1.0, NAN, 0.0, 3.0]]])
    pool = lambda stride: lambda x: flat.reduce_window(x, "max", (1, 1, 2), (1, 1, stride))
    torch_pool = lambda stride: lambda x: torch.nn.functional.max_pool1d(x, 2, stride)
    compare(
        {
            "amax": (lambda x: flat.reduce(x, "max", 2), lambda x: x.amax(2), [xs]),
            "maximum": (lambda x: flat.maximum(x, 1.0), lambda x: torch.maximum(x, torch.ones_like(x)), [xs]),
            "pool": (pool(2), torch_pool(2), [xs]),
            "overlapping pool": (pool(1), torch_pool(1), [xs]),
        }
    )


def test_sums_of_half_precision_cotangents_are_not_rounded_on_the_way():
    x = Value(TensorType(dtypes.bfloat16, ()))
    wide = flat.broadcast_to(x, (4096,))
    (ct,) = gradients([wide.op], [wide], [flat.full_like(wide, 1)], [x])
    assert np.asarray(evaluate([x], [ct], [np.zeros((), dtypes.bfloat16.numpy)])[0]).astype(float) == 4096


def test_half_precision_products_are_multiplied_as_such_and_summed_in_float32():
    half, types = dtypes.bfloat16, []
    x, y = Value(TensorType(half, (8, 512))), Value(TensorType(half, (512, 4)))
    product = flat.convert(flat.dot_general(x, y, ((1,), (0,)), dtype=F32), half)
    found = gradients(in_order([product]), [product], [flat.full_like(product, 1)], [x, y])
    for op in in_order([each for each in found if each is not None]):
        if isinstance(op, s.DotGeneral):
            types.append((op.x.dtype, op.y.dtype, op.dtype))
    assert types == [(half, half, F32), (half, half, F32)]
    assert [each.type for each in found] == [x.type, y.type]


def test_a_batch_by_a_matrix_is_differentiated_by_plain_products():
    x, w = Value(TensorType(F32, (8, 16, 4))), Value(TensorType(F32, (4, 5)))
    product = flat.dot_general(x, w, ((2,), (0,)))
    found = gradients(in_order([product]), [product], [flat.full_like(product, 1)], [x, w])
    dots = [
        op for op in in_order([each for each in found if each is not None]) if isinstance(op, s.DotGeneral)
    ]
    assert len(dots) == 2 and all(op.x.rank == op.y.rank == 2 for op in dots)


# The walk


def scalars(count: int) -> list[Value]:
    return [Value(TensorType(F64, ())) for _ in range(count)]


def test_only_the_given_ops_are_differentiated():
    (x,) = scalars(1)
    inner = flat.sin(x)
    outer = flat.exp(inner) * x
    ct = flat.full_like(outer, 1)
    (found,) = gradients([outer.op], [outer], [ct], [x])
    assert found is not None and not {type(op) for op in in_order([found])} & {e.Cosine}
    assert gradients([outer.op], [outer], [ct], [inner]) == [None]


def test_there_is_none_where_no_path_leads():
    x, y = scalars(2)
    result = flat.floor(x) + y
    found = gradients(in_order([result]), [result], [flat.full_like(result, 1)], [x, y])
    assert found[0] is None and found[1] is not None
    assert gradients(in_order([result]), [result], [None], [x, y]) == [None, None]


def test_cotangents_of_a_value_that_is_used_and_wanted_and_a_result_add_up():
    (x,) = scalars(1)
    middle = x * 3.0
    end = middle * middle
    one = flat.full_like(end, 1)
    found = gradients(in_order([end]), [end, middle, x, middle], [one, one, one, None], [x, middle])
    arrays = evaluate([x], [each for each in found if each is not None], [np.array(2.0)])
    assert [float(each) for each in arrays] == [1 + 3 * (1 + 12), 1 + 12]


def test_what_nobody_wants_costs_nothing():
    x, y = scalars(2)
    result = flat.zeta(x, y) * flat.polygamma(x, y)
    one = flat.full_like(result, 1)
    (found,) = gradients(in_order([result]), [result], [one], [y])
    assert found is not None
    with pytest.raises(
        UnsupportedError, match="the exponent of zeta has no derivative|the order of polygamma"
    ):
        gradients(in_order([result]), [result], [one], [x])


def test_depth_has_no_limit():
    (x,) = scalars(1)
    value = x
    for _ in range(20_000):
        value = flat.neg(value)
    (found,) = gradients(in_order([value]), [value], [flat.full_like(value, 1)], [x])
    assert found is not None and len(in_order([found])) == 20_001


def test_new_ops_come_from_where_the_op_does_that_they_differentiate():
    (x,) = scalars(1)
    first, second = flat.sin(x), None
    second = flat.exp(first)
    unplaced = flat.tanh(second)
    first.op.__dict__["source"], second.op.__dict__["source"] = "sin's line", "exp's line"
    (found,) = gradients(in_order([unplaced]), [unplaced], [flat.full_like(unplaced, 1)], [x])
    made = [op for op in in_order([found]) if op not in in_order([unplaced])]
    places = {type(op): op.source for op in made}
    assert places[e.Cosine] == "sin's line" and places[e.Subtract] is None
    assert [op.source for op in made].count("exp's line") == 1


def test_a_real_argument_of_a_composite_gets_the_real_part():
    (x,) = scalars(1)
    spread = flat.differentiated(lambda ct, result, x: (ct * 2.0,))(
        lambda x: flat.convert(x, dtypes.complex128) * 2.0
    )
    result = spread(x)
    (found,) = gradients(in_order([result]), [result], [flat.full_like(result, 1 + 3j)], [x])
    assert found is not None and evaluate([x], [found], [np.array(1.0)])[0] == 2
