"""A Tensor under Python's protocols, as PyTorch's: operators, numbers, NumPy, copies, pickles."""

from __future__ import annotations

import copy
import math
import operator
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.base.dtypes import ALL
from tenfold.base.errors import TenfoldError
from tenfold.runtime.executables import counting_compiles


def outcome(world: Any, call: Callable[[Any], Any]) -> Any:
    """What a call gives, in a form that compares across the two worlds; or the exception it raises."""
    try:
        return plain(call(world))
    except Exception as error:
        return error


def plain(value: Any) -> Any:
    if isinstance(value, (tn.Tensor, torch.Tensor)):
        elements = value.reshape(-1).tolist()
        if isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex()):
            elements = pytest.approx(elements, rel=1e-5, abs=1e-4 if value.is_complex() else 0, nan_ok=True)
        return [str(value.dtype).split(".")[1], tuple(value.shape), elements]
    if isinstance(value, (tuple, list)):
        return [plain(each) for each in value]
    return type(value).__name__, repr(value).replace("torch", "tenfold")


def agree(call: Callable[[Any], Any]) -> None:
    """Both worlds give the same; or both refuse, ours with an error that PyTorch's users would catch."""
    ours, theirs = outcome(tn, call), outcome(torch, call)
    if isinstance(theirs, Exception):
        assert isinstance(ours, Exception), f"we give {ours}, PyTorch raises {theirs!r}"
        kinds = tuple(k for k in (TypeError, ValueError, IndexError, RuntimeError) if isinstance(theirs, k))
        assert isinstance(ours, kinds), f"we raise {ours!r}, PyTorch {theirs!r}"
    else:
        assert not isinstance(ours, Exception), f"we raise {ours!r}, PyTorch gives {theirs}"
        assert ours == theirs


def cases(*texts: str) -> Any:
    """Expressions over L, the library: each is its own name."""
    names = {"np": np, "math": math, "operator": operator}
    return pytest.mark.parametrize("call", [eval(f"lambda L: {text}", names) for text in texts], ids=texts)


@cases(
    "len(L.zeros(3, 2))",
    "len(L.tensor(3))",
    "list(L.arange(6).reshape(3, 2))",
    "list(L.tensor(3))",
    "list(L.zeros(0, 2))",
    "list(reversed(L.tensor([1, 2, 3])))",
    "(lambda a, b: a - b)(*L.tensor([1, 2]))",
    "2 in L.tensor([1, 2])",
    "2.5 in L.tensor([1, 2])",
    "L.tensor(2) in L.tensor([1, 2])",
    "L.tensor([1, 9]) in L.tensor([[1, 2], [3, 4]])",
    "'a' in L.tensor([1])",
    "None in L.tensor([1])",
    "operator.delitem(L.zeros(2), 0)",
)
def test_containers(call):
    agree(call)


@cases(
    "bool(L.tensor([[2.0]]))",
    "bool(L.tensor(0))",
    "bool(L.tensor(float('nan')))",
    "bool(L.zeros(2))",
    "bool(L.zeros(0))",
    "int(L.tensor([2.7]))",
    "int(L.tensor(-2.7))",
    "int(L.tensor(True))",
    "int(L.zeros(2))",
    "int(L.tensor(1 + 0j))",
    "float(L.tensor(2))",
    "float(L.tensor([[1.5]]))",
    "float(L.tensor(1 + 0j))",
    "float(L.tensor(1 + 2j))",
    "float(L.zeros(3))",
    "complex(L.tensor(2))",
    "complex(L.tensor(1 + 2j))",
    "[1, 2, 3][L.tensor(1)]",
    "operator.index(L.tensor([1]))",
    "operator.index(L.tensor(True))",
    "operator.index(L.tensor(1.0))",
    "operator.index(L.tensor([1, 2]))",
    "range(5)[L.tensor(1) : L.tensor(3)]",
    "math.floor(L.tensor(1.5))",
    "math.ceil(L.tensor(1.5))",
    "math.trunc(L.tensor(-1.5))",
    "round(L.tensor([1.5, 2.5]))",
    "math.sqrt(L.tensor(4.0))",
    "L.zeros(2).item()",
    "L.zeros(0).item()",
    "L.tensor([[1.5]]).item()",
)
def test_numbers(call):
    agree(call)


@cases(
    "f'{L.tensor(3.14159):.2f}'",
    "f'{L.tensor(3):05d}'",
    "f'{L.tensor(1.5)}'",
    "f'{L.tensor([1.5])}'",
    "f'{L.tensor([1.5]):.2f}'",
    "str(L.tensor([[1, 2], [3, 4]]))",
    "repr(L.zeros(2, 0))",
    "repr(L.ones(2) + 1)",
    "repr(L.tensor([True, False]))",
    "repr(L.zeros(2, 3).shape)",
    "repr(L.zeros(2, 3).shape[1:])",
    "repr(L.zeros(2, 3).shape + (4,))",
    "repr(L.zeros(2, 3).shape * 2)",
    "L.zeros(2, 3).shape[-1]",
    "L.zeros(2, 3).shape == (2, 3)",
    "L.zeros(2, 3).shape.numel()",
)
def test_text(call):
    agree(call)


def test_a_lazy_tensor_is_computed_to_be_written():
    lazy = tn.ones(2) * 3
    assert lazy.current().buffer is None
    assert repr(lazy) == "tensor([3., 3.])"
    assert lazy.current().buffer is not None
    seen = []
    tn.compile(lambda x: seen.append(repr(x + 1)) or x)(tn.ones(2))
    assert seen == ["Tensor(f32[2], recorded)"]


OPERATORS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
AUGMENTED = {
    "+": operator.iadd,
    "-": operator.isub,
    "*": operator.imul,
    "/": operator.itruediv,
    "//": operator.ifloordiv,
    "%": operator.imod,
    "**": operator.ipow,
    "&": operator.iand,
    "|": operator.ior,
    "^": operator.ixor,
    "<<": operator.ilshift,
    ">>": operator.irshift,
}
TENSORS: dict[str, Callable[[Any], Any]] = {
    "int64": lambda L: L.tensor([7, -3, 2]),
    "uint8": lambda L: L.tensor([7, 250, 2], dtype=L.uint8),
    "float32": lambda L: L.tensor([7.5, -3.0, 0.25]),
    "bool": lambda L: L.tensor([True, True, True]),
}
OTHERS: dict[str, Callable[[Any], Any]] = {
    "int": lambda L: 3,
    "float": lambda L: 2.5,
    "bool": lambda L: True,
    "complex": lambda L: 1j,
    "numpy int": lambda L: np.int64(3),
    "numpy float": lambda L: np.float64(2.5),
    "tensor": lambda L: L.tensor([1, 2, 3]),
    "number in a tensor": lambda L: L.tensor(2.0),
    "array": lambda L: np.array([1.0, 2.0, 3.0]),
    "list": lambda L: [1, 2, 3],
    "text": lambda L: "a",
    "None": lambda L: None,
    "another type": lambda L: object(),
}


def compute_together(calls: list[tuple[str, Callable[[Any], Any]]]) -> None:
    """Compare many calls; ours are evaluated as one program."""
    results = [(name, attempt(tn, call), attempt(torch, call)) for name, call in calls]
    tn.eval(*[ours for _, ours, _ in results if isinstance(ours, tn.Tensor)])
    wrong = []
    for name, ours, theirs in results:
        try:
            agree(lambda L, pair=(ours, theirs): given(pair[0] if L is tn else pair[1]))
        except AssertionError as error:
            wrong.append(f"{name}: {error}")
    assert not wrong, "\n".join(wrong)


def attempt(world: Any, call: Callable[[Any], Any]) -> Any:
    try:
        return call(world)
    except Exception as error:
        return error


def given(value: Any) -> Any:
    if isinstance(value, Exception):
        raise value
    return value


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.filterwarnings("ignore")
def test_operators(other):
    calls, put = [], OTHERS[other]
    for (symbol, operate), (dtype, make) in ((a, b) for a in OPERATORS.items() for b in TENSORS.items()):
        if (other, symbol, dtype) in UNLIKE:
            continue
        calls.append((f"{dtype} {symbol} {other}", lambda L, f=operate, m=make: f(m(L), put(L))))
        calls.append((f"{other} {symbol} {dtype}", lambda L, f=operate, m=make: f(put(L), m(L))))
    compute_together(calls)


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.filterwarnings("ignore")
def test_augmented_operators(other):
    calls, put = [], OTHERS[other]
    for (symbol, operate), (dtype, make) in ((a, b) for a in AUGMENTED.items() for b in TENSORS.items()):
        if (other, symbol, dtype) in UNLIKE:
            continue
        calls.append((f"{dtype} {symbol}= {other}", lambda L, f=operate, m=make: f(m(L), put(L))))
    compute_together(calls)


# (other, operator, dtype) where we differ on purpose:
# PyTorch divides an array by a tensor, though it adds none to it; and compares one with != by identity.
UNLIKE = {("array", symbol, dtype) for symbol in ("/", "!=") for dtype in TENSORS}


@cases(
    "L.ones(2, 2) @ L.ones(2)",
    "L.ones(2) @ L.ones(2)",
    "L.ones(2, 2) @ 2",
    "L.ones(2, 2) @ np.ones((2, 2))",
    "operator.imatmul(L.ones(2, 2), L.ones(2, 2))",
    "-L.tensor([1, -2])",
    "-L.tensor([True])",
    "+L.tensor([1.0])",
    "+L.tensor([True])",
    "abs(L.tensor([-1.5]))",
    "~L.tensor([1, 2])",
    "~L.tensor([True])",
    "~L.tensor([1.0])",
    "L.tensor([True]) - L.tensor([True])",
    "divmod(L.tensor([7]), 2)",
    "L.tensor([1]) + 2**63",
    "L.tensor([1, 2]) ** -1",
    "np.exp(L.tensor([0.0]))",
    "np.add(L.tensor([1.0]), 1)",
    "np.asarray(L.tensor([1, 2])).tolist()",
    "np.array(L.tensor([1, 2]), dtype=np.float32).tolist()",
    "np.stack([L.tensor([1]), L.tensor([2])]).tolist()",
    "float(np.sum(np.asarray(L.tensor([1.0, 2.0]))))",
)
@pytest.mark.filterwarnings("ignore")
def test_other_operators_and_numpy(call):
    agree(call)


class Friend:
    """A type that knows what to do with tensors."""

    def __radd__(self, other):
        return "added"

    def __rmatmul__(self, other):
        return "multiplied"

    def __eq__(self, other):
        return "compared"

    def __gt__(self, other):
        return "greater"

    __hash__ = None


@cases(
    "L.ones(2) + F",
    "L.ones(2) @ F",
    "L.ones(2) == F",
    "L.ones(2) < F",
    "F == L.ones(2)",
    "operator.iadd(L.ones(2), F)",
)
def test_another_type_may_know_what_to_do(call):
    call.__globals__["F"] = Friend()
    agree(call)


def test_an_array_compares_element_by_element():
    x, array = tn.tensor([1, 2, 3]), np.array([1, 0, 3])
    assert (x != array).tolist() == (array != x).tolist() == [False, True, False]
    assert (x / array[:1]).tolist() == [1.0, 2.0, 3.0]


def test_a_tensor_is_a_key_by_its_identity():
    x, same = tn.tensor([1.0]), tn.tensor([1.0])
    assert {x: 1, same: 2}[x] == 1 and hash(x) == hash(x)
    assert len({x, same, x}) == 2


@pytest.mark.parametrize("dtype", ALL, ids=lambda dtype: dtype.name)
def test_data_leaves_in_every_dtype(dtype):
    theirs = torch.tensor([[0, 1], [1, 1]]).to(getattr(torch, dtype.name))
    ours = tn.tensor([[0, 1], [1, 1]]).to(dtype)
    assert ours.tolist() == theirs.tolist()
    assert type(ours[0, 1].item()) is type(theirs[0, 1].item())
    array = ours.numpy()
    assert array.dtype == dtype.numpy and np.asarray(ours).dtype == dtype.numpy
    assert np.asarray(ours, np.complex128).tolist() == [[0, 1], [1, 1]]
    assert np.array(ours).flags.writeable and not array.flags.writeable
    for convert in (bool, int, float, complex):
        assert convert(ours[0, 1]) == convert(theirs[0, 1])
    again = pickle.loads(pickle.dumps(ours))
    assert again.dtype is dtype and again.tolist() == ours.tolist()
    assert copy.deepcopy(ours).tolist() == copy.copy(ours).tolist() == ours.tolist()


def test_numbers_come_out_exactly():
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        numbers = [0.1, -0.0, float("inf"), 1e-3, 65504.0]
        ours = tn.tensor(numbers, dtype=getattr(tn, dtype))
        theirs = torch.tensor(numbers, dtype=getattr(torch, dtype))
        assert repr(ours.tolist()) == repr(theirs.tolist())
    assert tn.tensor(2**64 - 1, dtype=tn.uint64).item() == 2**64 - 1


def test_complex_numbers_that_differ_in_the_sign_of_a_zero_are_told_apart():
    numbers = [complex(-1.0, -0.0), complex(-1.0, 0.0), complex(-0.0, 0.0), complex(0.0, -0.0)]
    for L in (tn, torch):
        angles = [L.full((1,), each).angle() for each in numbers]
        signs = [L.full((1,), complex(math.nan, each)).imag.signbit() for each in (0.0, -0.0)]
        np.testing.assert_allclose([a.item() for a in angles], [-math.pi, math.pi, math.pi, 0], rtol=1e-6)
        assert [each.item() for each in signs] == [False, True]


@pytest.mark.parametrize("L", [tn, torch], ids=["tenfold", "torch"])
def test_a_copy_shares_memory_and_a_deep_copy_does_not(L):
    x = L.tensor([1.0, 2.0, 3.0])
    shallow, deep = copy.copy(x), copy.deepcopy(x)
    x.add_(1)
    shallow[0] = 9.0
    assert x.tolist() == shallow.tolist() == [9.0, 3.0, 4.0]
    assert deep.tolist() == [1.0, 2.0, 3.0]
    deep.mul_(0)
    assert x.tolist() == [9.0, 3.0, 4.0]


@pytest.mark.parametrize("L", [tn, torch], ids=["tenfold", "torch"])
def test_tensors_copied_together_stay_together(L):
    x = L.tensor([1.0, 2.0])
    x.label = "weights"
    view = x[:1]
    first, again, part = copy.deepcopy([x, x, view])
    assert first is again and first is not x
    first.add_(5)
    assert part.tolist() == [6.0] and x.tolist() == [1.0, 2.0]
    part.zero_()
    assert first.tolist() == [0.0, 7.0]
    assert first.label == copy.copy(x).label == pickle.loads(pickle.dumps(x)).label == "weights"
    transposed = L.tensor([[1.0, 2.0], [3.0, 4.0]]).t()
    assert copy.copy(transposed).stride() == copy.deepcopy(transposed).stride() == (1, 2)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_hold_the_values_and_share_nothing(protocol):
    x = tn.arange(6.0).reshape(2, 3)
    lazy, view = x + 1, x.t()
    first, second, third = pickle.loads(pickle.dumps([lazy, view, lazy], protocol))
    assert first is third and first.tolist() == lazy.tolist() and second.tolist() == view.tolist()
    second.add_(1)
    assert view.tolist() == x.t().tolist()
    for shape in ((), (0, 3)):
        empty = pickle.loads(pickle.dumps(tn.zeros(shape), protocol))
        assert empty.shape == shape


def test_copies_compile_nothing():
    x = tn.ones(3).eval()
    with counting_compiles() as compiles:
        copy.deepcopy(copy.copy(x)).tolist()
    assert compiles == 0


PROPERTIES = [
    "ndim", "itemsize", "nbytes", "is_cuda", "is_cpu", "is_leaf", "grad", "requires_grad", "shape",
    "T", "mT", "H", "real",
]  # fmt: skip
METHODS = [
    "dim", "ndimension", "numel", "nelement", "element_size", "size", "stride", "storage_offset",
    "is_contiguous", "is_floating_point", "is_complex", "is_signed", "get_device",
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "complex64", "bfloat16"])
@pytest.mark.filterwarnings("ignore")
def test_properties_and_plain_methods(dtype):
    views = {
        "dense": lambda L: L.zeros(2, 3, dtype=getattr(L, dtype)),
        "transposed": lambda L: L.zeros(2, 3, dtype=getattr(L, dtype)).t(),
        "a part": lambda L: L.zeros(4, 4, dtype=getattr(L, dtype))[1:3, 2:],
        "empty": lambda L: L.zeros(0, 3, dtype=getattr(L, dtype)),
    }
    calls = [(f"{v} {p}", lambda L, m=m, p=p: getattr(m(L), p)) for v, m in views.items() for p in PROPERTIES]
    calls += [
        (f"{v} {p}()", lambda L, m=m, p=p: getattr(m(L), p)()) for v, m in views.items() for p in METHODS
    ]
    compute_together(calls)
    assert str(tn.zeros(1).device) == str(torch.zeros(1).device)
    assert tn.zeros(1).layout == "strided"


@cases(
    "L.zeros(2, 3).size(1)",
    "L.zeros(2, 3).size(-3)",
    "L.zeros(2, 3).stride(-1)",
    "L.zeros(2, 3).stride(2)",
    "L.tensor([1.0]).imag",
    "L.tensor([1 + 2j]).imag",
    "L.zeros(2).nope",
    "hasattr(L.zeros(2), 'nope')",
)
def test_properties_that_may_fail(call):
    ours, theirs = outcome(tn, call), outcome(torch, call)
    assert isinstance(ours, Exception) == isinstance(theirs, Exception)
    if isinstance(theirs, Exception):
        assert isinstance(ours, type(theirs))
    else:
        assert ours == theirs


def test_errors_of_the_protocols_say_where():
    for call in (lambda: len(tn.tensor(1)), lambda: bool(tn.ones(2)), lambda: tn.ones(2).item()):
        with pytest.raises(TenfoldError) as raised:
            call()
        assert "test_tensor.py" in str(raised.value) and "help: " in str(raised.value)


def test_pytorchs_own_constructor_takes_sizes_or_data():
    assert tn.Tensor(2, 3).shape == (2, 3) and tn.Tensor(4).dtype is tn.float32
    assert tn.Tensor([1, 2]).tolist() == [1.0, 2.0] and tn.Tensor().numel() == 0
    with pytest.raises(tn.ArgumentError):
        tn.Tensor("a")


def test_iterating_rows_compiles_a_few_times_only():
    from tenfold.runtime.executables import counting_compiles

    x = tn.arange(40.0).reshape(20, 2).eval()
    with counting_compiles() as compiles:
        assert [row.sum().item() for row in x] == [4.0 * i + 1 for i in range(20)]
    assert compiles <= 4


@pytest.mark.parametrize(
    "operate", [lambda x, y: x % y, lambda x, y: x**y, lambda x, y: x & y, lambda x, y: x << y]
)
def test_operators_on_tensors_of_no_dimensions_are_those_of_tensors(operate):
    pairs = [(tn.tensor(7), tn.tensor(2, dtype=tn.int32)), (tn.tensor(7, dtype=tn.int32), tn.tensor(2))]
    for x, y in pairs:
        theirs = operate(torch.tensor(x.item(), dtype=getattr(torch, x.dtype.name)),
                         torch.tensor(y.item(), dtype=getattr(torch, y.dtype.name)))  # fmt: skip
        assert str(theirs.dtype) == f"torch.{operate(x, y).dtype.name}"
        assert tn.compile(operate)(x, y).item() == theirs.item()


def test_a_gradient_can_be_set_by_pytorchs_own_name_for_it():
    x = tn.ones(2, requires_grad=True)
    x._grad = tn.zeros(2)
    assert x.grad.tolist() == x._grad.tolist() == [0, 0]


def test_a_lazy_tensor_becomes_a_leaf_by_one_node():
    computed = tn.ones(3) * 2
    depth = computed.current().node.depth
    assert computed.requires_grad_().current().node.depth == depth + 1
