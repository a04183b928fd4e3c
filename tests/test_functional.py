"""Tensors from Python data, conversions, Python wrappers: the same expressions on Tenfold and on PyTorch."""

import functools
import math
import pickle
import types
import warnings

import numpy as np
import pytest
import torch

import tenfold as tn

CREATION = """
xp.tensor(1.5, dtype=xp.int32)
xp.tensor([1.5], dtype=xp.int64)
xp.tensor(-1, dtype=xp.uint8)
xp.tensor(2**63, dtype=xp.uint64)
xp.tensor(2**70, dtype=xp.float32)
xp.tensor([2**63, 1.0])
xp.tensor(1e300, dtype=xp.float32)
xp.tensor(70000.0, dtype=xp.float16)
xp.tensor(1.0019, dtype=xp.bfloat16)
xp.tensor(1000.0, dtype=xp.float8_e4m3fn)
xp.tensor(2, dtype=xp.bool)
xp.tensor(1j, dtype=xp.bool)
xp.tensor([])
xp.tensor([[]])
xp.tensor([[], []])
xp.tensor([True, 2])
xp.tensor([True, 2.5])
xp.tensor([1, 2j])
xp.tensor([True, False])
xp.tensor(np.float64(1))
xp.tensor(np.float32(1))
xp.tensor([np.float32(1), 2.0])
xp.tensor([np.float16(1), 2.0])
xp.tensor([np.int32(1), np.int8(2)])
xp.tensor([np.bool_(1)])
xp.tensor([np.complex64(1)])
xp.tensor([xp.tensor(1.0), 2])
xp.tensor([xp.tensor(1, dtype=xp.int8), xp.tensor(2, dtype=xp.int8)])
xp.tensor([xp.tensor([1]), xp.tensor([3])])
xp.tensor([[xp.tensor([1.5]), 2]])
xp.tensor([np.array([1, 2]), np.array([3, 4])])
xp.tensor([np.array([1.0, 2]), [3, 4]])
xp.tensor([[1, 2], (3, 4)])
xp.tensor(range(4))
xp.tensor(np.arange(6).reshape(2, 3).T)
xp.tensor(np.array([1.5, -2.5]), dtype=xp.int8)
xp.tensor(np.array([1 + 2j]), dtype=xp.float32)
xp.tensor(np.array([0.0, 2.0]), dtype=xp.bool)
xp.tensor(np.array(3.5))
xp.tensor(xp.tensor([1, 2]), dtype=float)
xp.full((2,), 2.5, out=xp.zeros(2, dtype=xp.int32))
xp.arange(0, 3, 0.5, out=xp.zeros(6, dtype=xp.int32))
xp.sum(xp.tensor([1.5, 1.5]), 0, out=xp.tensor(0))
xp.cumsum(xp.tensor([1.5, 1.5]), 0, out=xp.zeros(2, dtype=xp.int32))
xp.as_tensor([1, 2], dtype=xp.float32)
xp.as_tensor(np.arange(3))
xp.asarray(3)
xp.asarray([1, 2], dtype=xp.int8)
xp.asarray(bytearray(b"abcd1234"))
xp.frombuffer(bytearray(b"abcd"), dtype=xp.int16)
xp.frombuffer(bytearray(b"abcde"), dtype=xp.int16, count=1, offset=1)
xp.empty(0, dtype=xp.int32).new_tensor([1.5, 2])
xp.empty(0, dtype=xp.int32).new_tensor(np.array([1.5, 2]))
xp.ones(2).to("cpu", xp.float64)
xp.ones(2).to(xp.ones(2, dtype=xp.int8))
xp.ones(2).to(float)
xp.ones(2).to(xp.float64, copy=True)
xp.full((2, 2), 2.9).byte()
xp.full((2,), -2.9).long()
xp.tensor([0.0, math.nan, -0.0, 0.5]).bool()
xp.full((2,), 3).double()
xp.full((2,), 3.7).half()
xp.full((2,), 3.7).bfloat16()
xp.full((2,), 3.7).cfloat()
xp.tensor([1.5, 300.7]).short()
xp.ones(2).type(xp.int16)
xp.ones(2).type_as(xp.zeros(1, dtype=xp.int8))
xp.full((2,), True)
xp.full((2,), 1j)
xp.full((2,), -1, dtype=xp.uint8)
xp.full((2,), 1.5, dtype=xp.int32)
xp.full((2,), xp.tensor(3))
xp.zeros(2, 3, dtype=int)
xp.zeros(size=(2, 3))
xp.arange(0, 2.5, dtype=xp.int64)
xp.arange(xp.tensor(3.5))
xp.arange(2**62, 2**62 + 3)
xp.linspace(10, 0, 4, dtype=xp.int64)
xp.linspace(0, 1j, 3)
xp.linspace(xp.tensor(0.0), xp.tensor(2.0), 3)
xp.logspace(0, 3, 4, base=2)
xp.ones(2).new_zeros(3)
xp.ones(2, dtype=xp.int8).new_full((3,), 2)
xp.split(xp.arange(10), 4)
xp.split(xp.arange(10), [2, 3, 5])
xp.meshgrid(xp.arange(2), xp.arange(3), indexing="ij")
xp.meshgrid([xp.arange(2), xp.arange(3)], indexing="xy")
xp.broadcast_tensors(xp.ones(3, 1), xp.ones(2))
xp.block_diag(xp.ones(2, 2), xp.ones(1, 3))
xp.cartesian_prod(xp.tensor([1, 2]), xp.tensor([3, 4]))
xp.atleast_2d(xp.tensor(1.0), xp.ones(2))
xp.atleast_1d(xp.tensor(1.0))
xp.chain_matmul(xp.ones(2, 3), xp.ones(3, 4), xp.ones(4, 2))
xp.chain_matmul(xp.eye(2) * 3, out=xp.empty(2, 2, dtype=xp.float64))
xp.norm(xp.tensor([3.0, 4.0]))
xp.norm(xp.tensor([[3.0, 4.0], [6.0, 8.0]]), dim=1, keepdim=True)
xp.norm(xp.tensor([3.0, -4.0]), p=math.inf)
xp.tensor([3.0, 4.0]).norm(1)
xp.unique(xp.tensor([3, 1, 3, 2]))
xp.unique(xp.tensor([3, 1, 3, 2]), return_inverse=True, return_counts=True)
xp.unique(xp.tensor([[1, 2], [1, 2], [0, 5]]), dim=0)
xp.unique_consecutive(xp.tensor([1, 1, 2, 2, 1]), return_counts=True)
""".strip().splitlines()


def calls(namespace):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [eval(line, {"xp": namespace, "np": np, "math": math}) for line in CREATION]


def test_expressions_give_what_pytorch_gives():
    ours, theirs = calls(tn), calls(torch)
    tn.eval([each for each in ours if not isinstance(each, (str, int))])
    for line, mine, expected in zip(CREATION, ours, theirs, strict=True):
        pairs = (
            zip(mine, expected, strict=True) if isinstance(expected, (tuple, list)) else [(mine, expected)]
        )
        for found, wanted in pairs:
            assert found.dtype.name == str(wanted.dtype).removeprefix("torch."), line
            assert tuple(found.shape) == tuple(wanted.shape), line
            np.testing.assert_array_equal(np.array(found.tolist()), np.array(wanted.tolist()), line)


@pytest.mark.parametrize("package", [tn, torch])
@pytest.mark.parametrize("number", [2**64, -(2**63) - 1])
def test_the_result_type_of_a_number_beyond_64_bits_is_refused(package, number):
    with pytest.raises(OverflowError):
        package.result_type(package.ones(2, dtype=package.int32), number)


@pytest.mark.parametrize("package", [tn, torch])
def test_a_product_of_several_matrices_takes_no_wider_out(package):
    with pytest.raises(RuntimeError):
        package.chain_matmul(*[package.eye(2)] * 2, out=package.empty(2, 2, dtype=package.float64))


REFUSED = [
    ("xp.ones(2).to(xp.int32, xp.float32)", "takes .dtype., .device."),
    ("xp.tensor([[1, 2], [3]])", "ragged: in dimension 1 there are 2 and 1 elements"),
    ("xp.tensor([[1, 2], 3])", "the number 3 stands beside sequences"),
    ("xp.tensor([1, [2]])", "a sequence stands beside numbers"),
    ("xp.tensor([1, 'a'])", "cannot hold a str"),
    ("xp.tensor(None)", "cannot hold a NoneType"),
    ("xp.tensor({1: 2})", "cannot hold a dict"),
    ("xp.tensor(np.array(['a']))", "cannot hold NumPy's str"),
    ("xp.tensor(np.arange(3, dtype='>i4'))", "byte order"),
    ("xp.tensor(2**63)", "does not fit int64"),
    ("xp.tensor(300, dtype=xp.uint8)", "the number 300 does not fit uint8"),
    ("xp.tensor([0, -300], dtype=xp.uint8)", "the number -300 does not fit uint8"),
    ("xp.tensor(-1, dtype=xp.uint64)", "the number -1 does not fit uint64"),
    ("xp.tensor(float('nan'), dtype=xp.int64)", "does not fit int64"),
    ("xp.tensor(1j, dtype=xp.float32)", "complex number 1j does not fit float32"),
    ("xp.tensor([xp.tensor([1, 2]), xp.tensor([3, 4])])", "a tensor of 2 elements cannot be an element"),
    ("xp.tensor([np.uint16(1), np.int8(2)])", "no common dtype"),
    ("xp.asarray([1], copy=False)", "without a copy"),
    ("xp.frombuffer(bytearray(b'abcde'), dtype=xp.int16)", "5 bytes are no whole number"),
    ("xp.frombuffer(bytearray(b''), dtype=xp.int16)", "0 bytes"),
    ("xp.frombuffer(bytearray(b'abcd'), dtype=xp.int16, count=5)", "more than the 4 bytes"),
    ("xp.frombuffer(bytearray(b'abcd'), dtype=xp.int16, offset=4)", "offset 4"),
    ("xp.from_numpy([1])", "takes a NumPy array, not list"),
    ("xp.full((2,), 300, dtype=xp.uint8)", "300 does not fit uint8"),
    ("xp.full((2,), 1j, dtype=xp.float32)", "does not fit float32"),
    ("xp.full((-2,), 1)", "-2 is negative"),
    ("xp.arange(1, 0)", "does not lead from 1 to 0"),
    ("xp.arange(1, 5, 0)", "the step is 0"),
    ("xp.arange(0, float('inf'))", "no range leads"),
    ("xp.arange(3, dtype=xp.bool)", "does not count in bool"),
    ("xp.linspace(0, 1, -1)", "no -1 steps"),
    ("xp.linspace(xp.zeros(2), xp.tensor(2.0), 3)", "zero-dimensional"),
    ("xp.eye(-1)", "no matrix of -1"),
    ("xp.hann_window(5, dtype=xp.int64)", "floating-point"),
    ("xp.ones(2).to('tpu')", "unknown device 'tpu'"),
    ("xp.ones(2).type('torch.FloutTensor')", "unknown type"),
    ("xp.broadcast_shapes((2,), (3,))", "2 and 3 differ"),
    ("xp.broadcast_shapes((-2,), (3,))", "negative"),
]


@pytest.mark.parametrize(("line", "message"), REFUSED)
def test_what_pytorch_refuses_is_refused_with_the_reason(line, message):
    with pytest.raises(Exception):  # noqa: B017  # whatever PyTorch raises
        eval(line, {"xp": torch, "np": np})
    with pytest.raises(tn.TenfoldError, match=message):
        eval(line, {"xp": tn, "np": np})


KINDS = [
    "xp.tensor(2**70)",
    "xp.tensor([2**63])",
    "xp.tensor(300, dtype=xp.uint8)",
    "xp.full((2,), 2**70)",
    "xp.ones(10**30)",
    "xp.ones(2).to(xp.int32, xp.float32)",
]


@pytest.mark.parametrize("line", KINDS)
def test_an_error_is_also_of_the_kind_that_pytorch_raises(line):
    with pytest.raises(Exception) as golden:  # its kind is what is asked for
        eval(line, {"xp": torch})
    with pytest.raises(tn.TenfoldError) as ours:
        eval(line, {"xp": tn})
    assert isinstance(ours.value, golden.type)


def test_an_error_shows_the_line_of_the_call():
    with pytest.raises(tn.ShapeError, match="ragged") as caught:
        tn.tensor([[1], [2, 3]])
    assert "test_functional.py" in str(caught.value)
    assert str(caught.value).startswith("tensor: ")


def test_to_returns_the_tensor_itself_where_nothing_changes():
    x = tn.ones(2)
    assert x.to(tn.float32) is x
    assert x.to("cpu") is x
    assert x.to(None) is x
    assert x.float() is x
    assert x.cpu() is x
    assert x.to(tn.float32, copy=True) is not x
    assert tn.as_tensor(x) is x


def test_to_refuses_what_it_does_not_know():
    for wrong in ({"dtypes": tn.int8}, {"device": "cpu", "other": 3, "x": 1}):
        with pytest.raises(tn.ArgumentError, match="takes"):
            tn.ones(2).to(**wrong)
    with pytest.raises(tn.ArgumentError):
        tn.ones(2).to("cpu", tn.int8, False, False, 1)


def test_a_tensor_is_a_copy_and_as_tensor_is_not():
    array = np.zeros(3)
    copied, shared = tn.tensor(array), tn.as_tensor(array)
    array[0] = 5
    assert copied.tolist() == [0.0, 0.0, 0.0]
    assert shared.tolist() == [5.0, 0.0, 0.0]
    source = tn.zeros(2)
    twin = tn.tensor(source)
    source += 1
    assert twin.tolist() == [0.0, 0.0]


def test_old_type_names():
    assert tn.ones(2).type() == "tenfold.FloatTensor"
    assert tn.ones(2).type("torch.DoubleTensor").dtype is tn.float64
    assert tn.ones(2).long().type() == "tenfold.LongTensor"


def test_eval_takes_containers_and_runs_one_program():
    x = tn.ones(3)
    a, b, c = x + 1, x * 3, x - 5
    tn.eval(a, [b, {"c": c}], None)
    assert all(each._value.buffer is not None for each in (a, b, c))
    with pytest.raises(tn.ArgumentError, match="not str"):
        tn.eval("a")


@pytest.mark.parametrize("name", ["float32", "int8", "bool", "complex64", "bfloat16"])
def test_result_types_are_pytorch_s(name):
    ours, theirs = tn.ones(2, dtype=getattr(tn, name)), torch.ones(2, dtype=getattr(torch, name))
    for other in (2, 2.5, True, 1j):
        assert tn.result_type(ours, other).name == str(torch.result_type(theirs, other)).removeprefix(
            "torch."
        )
    scalar = torch.result_type(theirs, torch.tensor(1.0, dtype=torch.float64))
    assert tn.result_type(ours, tn.tensor(1.0, dtype=tn.float64)).name == str(scalar).removeprefix("torch.")


def test_questions():
    x = tn.ones(2, 3)
    assert tn.is_tensor(x)
    assert not tn.is_tensor([1])
    assert tn.numel(x) == 6
    assert tn.is_floating_point(x)
    assert not tn.is_complex(x)
    assert tn.broadcast_shapes((2, 1), 3) == tn.Size([2, 3])
    assert tn.promote_types(tn.int8, tn.uint8) is tn.int16
    assert not tn.can_cast(tn.float32, tn.int8)
    assert tn.is_same_size(x, x + 1) and not x.is_same_size(x.T)
    assert not (x.is_sparse or x.is_meta or x.is_quantized or x.is_nested)


def test_places_become_coordinates():
    for indices, shape in (
        (torch.tensor([5, 7, -1, 13]), (2, 6)),
        (torch.tensor([[3, 250]], dtype=torch.uint8), (2, 300)),
        (torch.tensor(7), 9),
        (torch.tensor(0), ()),
    ):
        found = tn.unravel_index(tn.tensor(indices.numpy()), shape)
        expected = torch.unravel_index(indices, shape)
        assert [each.tolist() for each in found] == [each.tolist() for each in expected]
        assert all(each.dtype is tn.int64 for each in found)


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("shape", [(3, 3), (2, 5), (8, 3), (7, 2), (3, 3, 3), (0, 3)])
def test_diagonals_are_filled_as_in_pytorch(shape, wrap):
    x, reference = tn.zeros(shape), torch.zeros(shape)
    assert x.fill_diagonal_(2, wrap) is x
    assert x.tolist() == reference.fill_diagonal_(2, wrap).tolist()


def test_a_tensor_reversed_is_a_tensor():
    assert reversed(tn.tensor([[1, 2], [3, 4]])).tolist() == [[3, 4], [1, 2]]
    assert reversed(tn.tensor(1)).item() == 1


def test_default_dtype_decides_what_floats_become():
    tn.set_default_dtype(tn.float64)
    try:
        made = [
            tn.tensor(1.5),
            tn.zeros(2),
            tn.full((2,), 1.0),
            tn.arange(2.5),
            tn.linspace(0, 1, 3),
            tn.rand(2),
        ]
        assert {each.dtype for each in made} == {tn.float64}
        assert tn.tensor(1j).dtype is tn.complex128
    finally:
        tn.set_default_dtype(tn.float32)
    assert tn.zeros(2).dtype is tn.float32


def test_default_device_is_where_tensors_are_made():
    with tn.device("cpu"):
        assert tn.zeros(2).device == tn.device("cpu")
    assert tn.tensor([1], device="cpu").device.type == "cpu"


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(tn.UnknownName, match="did you mean ones?"):
        tn.onez  # noqa: B018
    assert not hasattr(tn, "no_such_thing")
    with pytest.raises(ImportError):
        from tenfold import no_such_thing  # noqa: F401


def test_constants_and_dtypes_have_pytorch_s_names():
    for name in ("inf", "pi", "e", "newaxis"):
        assert getattr(tn, name) == getattr(torch, name)
    assert math.isnan(tn.nan)
    for name in (
        "float",
        "double",
        "half",
        "int",
        "long",
        "short",
        "bool",
        "cfloat",
        "cdouble",
        "uint8",
        "bfloat16",
    ):
        assert getattr(tn, name).name == str(getattr(torch, name)).removeprefix("torch.")


def test_submodules_hold_the_table_s_functions():
    from tenfold import linalg

    assert linalg.cross(tn.tensor([1.0, 0, 0]), tn.tensor([0.0, 1, 0])).tolist() == [0.0, 0.0, 1.0]
    assert linalg.vecdot(tn.ones(3), tn.ones(3)).item() == 3


def test_tensors_survive_pickling():
    x = tn.tensor([[1.5, 2.0]], dtype=tn.bfloat16)
    again = pickle.loads(pickle.dumps(x))
    assert again.dtype is tn.bfloat16
    assert again.tolist() == x.tolist()


def test_a_tensor_with_dimensions_enough_is_given_back_itself():
    x = tn.ones(2, 3)
    assert tn.atleast_1d(x) is x and tn.atleast_2d([x, tn.ones(())])[0] is x


def test_tensors_given_more_dimensions_share_their_memory():
    x, y = tn.arange(3), tn.arange(2)
    tn.atleast_2d(x)[0, 0] = 7
    tn.atleast_3d((x, y))[0][0, 1, 0] = 8
    tn.broadcast_tensors(x, tn.ones(2, 1))[0][0, 2] = 9
    assert x.tolist() == [7, 8, 9]
    for mode in ("ij", "xy"):
        across, down = tn.meshgrid(x, y, indexing=mode)
        expected = torch.meshgrid(torch.arange(3), torch.arange(2), indexing=mode)
        assert [each.stride() for each in (across, down)] == [each.stride() for each in expected]
        across[0, 0] += 1
    assert x[0].item() == 9


def test_a_number_expanded_has_strides_of_zero():
    assert tn.tensor(3.0).expand(2, 1).stride() == torch.tensor(3.0).expand(2, 1).stride() == (0, 0)


def test_reflected_operators_take_tensors_too():
    x, y = tn.tensor([1.0, 2.0]), tn.tensor([3.0, 5.0])
    assert x.__rsub__(y).tolist() == [2.0, 3.0] and x.__rdiv__(1).tolist() == [1.0, 0.5]


def test_shapes_to_broadcast_are_of_ints():
    with pytest.raises(RuntimeError, match="ints"):
        tn.broadcast_shapes(1.5)


@pytest.mark.parametrize("name", ["linspace", "logspace"])
def test_what_is_spaced_between_tensors_does_not_follow_them(name):
    ends = tn.tensor(0.0, requires_grad=True), tn.tensor(2.0, requires_grad=True)
    for start, end in (ends, (ends[0], 2), (0, ends[1])):
        assert not getattr(tn, name)(start, end, 3).requires_grad


def test_joining_tensors_of_nothing_gives_nothing():
    empty = tn.zeros(0)
    assert tn.cat([empty, empty], dim=1).shape == torch.cat([torch.zeros(0)] * 2, dim=1).shape == (0,)
    assert tn.block_diag().shape == torch.block_diag().shape == (1, 0)


@pytest.mark.parametrize("where", ["", "nn.functional", "linalg", "special", "fft"])
def test_functions_are_pickled_by_the_name_that_the_user_gives_them(where):
    module = functools.reduce(getattr, filter(None, where.split(".")), tn)
    functions = {
        name: function
        for name, function in vars(module).items()
        if isinstance(function, types.FunctionType)
        and not name.startswith("_")
        and function.__module__ != "tenfold.base.unsupported"  # names that were asked for, and are refused
    }
    others = {"dsmm", "hsmm", "saddmm", "spmm"}  # names of sparse products that are mm and addmm here
    assert len(functions) > 20
    for name in functions.keys() - others:
        assert pickle.loads(pickle.dumps(functions[name])) is functions[name], name
    assert pickle.loads(pickle.dumps(tn.Tensor.add)) is tn.Tensor.add


@pytest.mark.parametrize("package", [tn, torch])
def test_sizes_are_integers(package):
    assert package.Size([package.tensor(3), 2]) == (3, 2)
    assert type((3,) + package.Size((2,))) is type(package.Size((2,)) + (3,)) is package.Size
    for sizes in (package.ones(3), [1.0], ["a"]):
        with pytest.raises(TypeError):
            package.Size(sizes)
    with pytest.raises(TypeError):
        package.Size([1]) + [2]


@pytest.mark.parametrize("package", [tn, torch])
def test_equal_promotes_and_apply_refuses_what_is_no_element(package):
    assert package.equal(package.tensor([1.0, 2.0]), package.tensor([1, 2]))
    assert not package.equal(package.tensor([2], dtype=package.uint8), package.tensor([True]))
    assert package.ones(3).new(size=(2, 1)).shape == (2, 1)
    with pytest.raises(TypeError):
        package.ones(2, dtype=package.int64).apply_(lambda element: "word")


def test_einsum_takes_an_equation_or_labels():
    x, y = (np.random.default_rng(seed).normal(size=(3, 3)).astype(np.float32) for seed in (0, 1))
    for lib in (tn, torch):
        a, b = lib.tensor(x), lib.tensor(y)
        found = [
            lib.einsum("ij,jk->ik", a, b),
            lib.einsum("ij,jk", [a, b]),
            lib.einsum("ii", a),
            lib.einsum(a, [0, 1], b, [1, 2]),
            lib.einsum(a, [0, 1], b, [1, 2], [2, 0]),
            lib.einsum(a, [..., 0], [0]),
        ]
        expected = [x @ y, x @ y, x.trace(), x @ y, (x @ y).T, x.sum(0)]
        for one, two in zip(found, expected, strict=True):
            np.testing.assert_allclose(one.numpy(), two, rtol=1e-5, atol=1e-6)
    with pytest.raises(TypeError):
        tn.einsum()
