"""Calls resolve to the overload PyTorch picks, with the arguments PyTorch passes on."""

import re
from collections import defaultdict
from importlib.resources import files

import numpy as np
import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

import tenfold as tn
from tenfold.base import dtypes
from tenfold.base.devices import Device
from tenfold.base.errors import ArgumentError, TenfoldError
from tenfold.ops.fitting import STANDS_FOR
from tenfold.ops.order import in_torch_order
from tenfold.ops.resolve import Resolver
from tenfold.ops.schema import parse

# PyTorch warns of what it will drop.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

SCHEMAS = defaultdict(list)
for text in re.findall(
    r"^- func: (.*)$",
    files("torchgen").joinpath("packaged/ATen/native/native_functions.yaml").read_text(),
    re.MULTILINE,
):
    # As in our table: no out= variants and no named dimensions, which PyTorch itself is giving up.
    if "Dimname" not in text and "!) out" not in text and "_out(" not in text.split(" ")[0]:
        schema = parse(text)
        if not any(a.keyword_only and a.type.is_written for a in schema.arguments):
            SCHEMAS[schema.name].append(schema)

# Where PyTorch takes a number for a tensor (python_arg_parser.cpp, should_allow_numbers_as_tensors).
NUMBERS = {"add", "sub", "mul", "div", "true_divide", "floor_divide", "bitwise_and", "remainder", "fmod"}


class Stand:
    """Stands for a tensor: all that a Resolver may ask of one."""

    def __init__(self, *shape, dtype=dtypes.float32, value=1, requires_grad=False):
        self.shape = shape
        self.ndim = len(shape)
        self.dtype = dtype
        self.value = value
        self.requires_grad = requires_grad

    def __index__(self):
        return self.value

    def torch(self):
        dtype = getattr(torch, self.dtype.name)
        return torch.full(self.shape, self.value, dtype=dtype, requires_grad=self.requires_grad)


class Generator:
    """A class that only the frontend knows."""


x = Stand(4, 4)
y = Stand(4, 4)
mask = Stand(4, 4, dtype=dtypes.bool_)
places = Stand(4, 4, dtype=dtypes.int64)
row = Stand(4, dtype=dtypes.int64)


def resolver(name, *, method=False):
    schemas = [s for s in SCHEMAS[name] if not method or re.search(r"Tensor(\(.*\))? self", str(s))]
    return Resolver(
        name,
        schemas,
        tensor=Stand,
        method=method,
        numbers_as_tensors=name in NUMBERS,
        classes={"Generator": Generator},
    )


def bind(name, *args, method=False, **kwargs):
    """The qualified name of the overload, and its arguments by name."""
    chosen = resolver(name, method=method)
    index, values = chosen.bind(args, kwargs)
    schema = chosen.schemas[index]
    return schema.qualified, dict(zip([a.name for a in schema.arguments], values, strict=True))


def as_torch(value):
    if isinstance(value, Stand):
        return value.torch()
    if isinstance(value, dtypes.DType):
        return getattr(torch, value.name)
    if isinstance(value, Device):
        return torch.device(str(value))
    return type(value)(map(as_torch, value)) if isinstance(value, list | tuple) else value


def torch_function(name, method):
    """PyTorch's own binding, under what its Python files put over it."""
    return getattr(torch._C.TensorBase if method else torch._C._VariableFunctions, name)


def recorded(name, args, kwargs, method):
    """The overload that PyTorch calls, and the arguments it passes on, by name."""
    stands = [
        v for each in (*args, *kwargs.values()) for v in (each if isinstance(each, list | tuple) else [each])
    ]
    stands = [v for v in stands if isinstance(v, Stand)]

    def call(*tensors):
        remaining = iter(tensors)

        def substitute(value):
            if isinstance(value, Stand):
                return next(remaining)
            return type(value)(map(substitute, value)) if isinstance(value, list | tuple) else as_torch(value)

        given = [substitute(v) for v in args]
        return torch_function(name, method)(*given, **{k: substitute(v) for k, v in kwargs.items()})

    graph = make_fx(call, pre_dispatch=True)(*[s.torch() for s in stands]).graph
    node = next(n for n in graph.nodes if n.op == "call_function" and n.target.__name__.split(".")[0] == name)
    schema = parse(str(node.target._schema))
    given = dict(zip([a.name for a in schema.arguments], node.args, strict=False)) | node.kwargs
    return schema.qualified, given, node.target


def comparable(value):
    """A value of either side, such that what means the same is equal and 1 is not 1.0 or True."""
    if isinstance(value, Stand | torch.fx.Node):
        return "tensor"
    if isinstance(value, torch.dtype | torch.device):
        return str(value).removeprefix("torch.")
    if isinstance(value, dtypes.DType):
        return value.name
    if isinstance(value, Device):
        return str(value)
    if isinstance(value, list | tuple):
        return [comparable(v) for v in value]
    return type(value).__name__, value


def comparable_items(values, unsaid):
    return {name: comparable(value) for name, value in values.items() if name not in unsaid}


def call(name, *args, **kwargs):
    return pytest.param(name, args, kwargs, False, id=f"{name}{args_id(args, kwargs)}")


def method(name, *args, **kwargs):
    return pytest.param(name, args, kwargs, True, id=f"x.{name}{args_id(args[1:], kwargs)}")


def args_id(args, kwargs):
    def show(value):
        if isinstance(value, list | tuple):
            return f"[{','.join(map(show, value))}]"
        return "T" if isinstance(value, Stand) else str(value)

    return f"({', '.join([show(a) for a in args] + [f'{k}={show(v)}' for k, v in kwargs.items()])})"


CALLS = [
    call("add", x, y),
    call("add", x, y, alpha=2),
    call("add", input=x, other=y),
    call("add", x1=x, x2=y),
    call("sum", x),
    call("sum", x, 0),
    call("sum", x, (0, 1), True),
    call("sum", x, [0], dtype=dtypes.float64),
    call("sum", x, dim=None, keepdim=True),
    call("sum", x, axis=1, keepdims=True),
    call("sum", a=x),
    method("sum", x),
    method("sum", x, -1, keepdim=True),
    method("view", x, 2, 8),
    method("view", x, (2, 8)),
    method("view", x, [16]),
    method("view", x, 16),
    method("view", x, np.int64(2), 8),
    method("view", x, dtypes.int32),
    method("reshape", x, -1),
    method("permute", x, 1, 0),
    method("permute", x, (1, 0)),
    call("permute", x, (1, 0)),
    call("permute", x, dims=[1, 0]),
    method("expand", x, 2, -1, -1),
    method("repeat", x, 2, 2),
    call("transpose", x, 0, 1),
    call("transpose", x, dim1=1, dim0=0),
    call("transpose", input=x, dim0=0, dim1=1),
    call("max", x),
    call("max", x, 0),
    call("max", x, y),
    call("max", x, dim=0, keepdim=True),
    call("min", x, axis=1),
    method("min", x, y),
    call("cat", [x, y]),
    call("cat", (x, y), 1),
    call("cat", [x, y], axis=-1),
    call("where", mask, x, y),
    call("where", mask, x, 0),
    call("where", mask, 1.5, x),
    call("where", mask, 1, 2.0),
    call("where", mask),
    method("where", x, mask, y),
    method("where", x, mask, 2),
    call("clamp", x, 0, 1),
    call("clamp", x, min=0.5),
    call("clamp", x, max=y),
    call("clamp", x, x, y),
    call("clamp", x, None, 3),
    call("norm", x),
    call("norm", x, 2),
    call("norm", x, 2, 0),
    call("norm", x, 2, [0, 1], True),
    call("norm", x, 1.5, dtype=dtypes.float64),
    call("std", x),
    call("std", x, False),
    call("std", x, 0),
    call("std", x, 0, False, True),
    call("std", x, dim=0, correction=0),
    call("std", x, unbiased=False),
    call("rand", 2, 3),
    call("rand", (2, 3)),
    call("rand", [2], dtype=dtypes.float64),
    call("rand", 2, 3, dtype=float, device="cpu"),
    call("rand", 2, device=Device("cpu")),
    call("full", (2, 3), 1.5),
    call("full", [2], 7, dtype=dtypes.int32),
    call("full", size=(2,), fill_value=True),
    call("arange", 5),
    call("arange", 1, 5),
    call("arange", 1, 5, 2),
    call("arange", 1.0, 5, dtype=dtypes.float64),
    call("arange", start=0, end=3),
    call("scatter", x, 0, places, y),
    call("scatter", x, 0, places, 1.5),
    call("scatter", x, 0, places, y, reduce="add"),
    call("scatter", x, 0, places, 2, reduce="multiply"),
    call("scatter", x, dim=0, index=places, src=y),
    call("scatter", x, dim=0, index=places, value=3),
    call("index_select", x, 0, row),
    call("split", x, 2),
    call("split", x, split_size=3, dim=1),
    call("split", x, [1, 3]),
    call("squeeze", x),
    call("squeeze", x, 0),
    call("squeeze", x, (0, 1)),
    method("squeeze", x, 0, 1),
    call("argmax", x),
    call("argmax", x, 1, keepdim=True),
    call("any", x),
    call("any", x, 0),
    call("any", x, [0, 1]),
    call("any", x, dim=None),
    call("all", x, dim=1, keepdim=True),
    call("all", x, dim=(0,)),
    call("topk", x, 2),
    call("topk", x, 2, -1, False, sorted=False),
    call("sort", x),
    call("sort", x, 0, True),
    call("sort", x, stable=True),
    call("sort", x, descending=True, dim=0, stable=False),
    call("div", x, y),
    call("div", x, y, rounding_mode="floor"),
    call("div", x, y, rounding_mode=None),
    call("pow", x, 2),
    call("pow", x, y),
    call("pow", 2, x),
    call("mean", x, (0,), dtype=dtypes.float64),
    call("var_mean", x, 0),
    call("roll", x, 1, 0),
    call("roll", x, (1, 2), (0, 1)),
    call("dropout", x, 0, False),
    call("dropout", x, np.float32(0.5), False),
    call("full_like", x, np.float64(2.5)),
    call("flip", x, [np.int32(0), 1]),
    method("masked_fill", x, mask, 0.5),
    method("masked_fill", x, mask, Stand()),
    method("index_fill", x, 0, row, 2),
    call("tensordot", x, y, [1], [0]),
    call("softmax", x, -1),
    call("softmax", x, 0, dtypes.float64),
    call("diagonal", x, offset=1),
    call("linspace", 0, 1, 5),
    call("logsumexp", x, 0),
    call("logsumexp", x, [0, 1], True),
    call("addmm", x, x, y, beta=2, alpha=0.5),
    call("quantile", x, 0.5, dim=0),
    call("repeat_interleave", x, 2),
    call("searchsorted", Stand(4), x, right=True),
    call("searchsorted", Stand(4), 3),
    call("nan_to_num", x, 1),
    call("isin", x, y),
    call("isin", x, 2),
]


@pytest.mark.parametrize(("name", "args", "kwargs", "method"), CALLS)
def test_a_call_resolves_as_in_pytorch(name, args, kwargs, method):
    theirs, passed, target = recorded(name, args, kwargs, method)
    ours, values = bind(name, *args, method=method, **kwargs)
    assert ours == theirs
    # Recording leaves out arguments that have their default values.
    defaults = {a.name: a.default_value for a in target._schema.arguments if a.has_default_value()}
    expected = {k: passed.get(k, defaults.get(k)) for k in values}
    # PyTorch's factories fill these two in before the operator is called; here the frontend does.
    unsaid = {"device", "pin_memory"} - kwargs.keys()
    assert comparable_items(values, unsaid) == comparable_items(expected, unsaid)


@pytest.mark.parametrize(
    ("name", "args", "overload"),
    [
        ("add", (x, 2), "add.Scalar"),
        ("add", (x, True), "add.Scalar"),
        ("mul", (x, 1.5), "mul.Scalar"),
        ("div", (x, np.float32(2)), "div.Scalar"),
        ("add", (2, x), "add.Tensor"),
        ("add", (2, 3), "add.Tensor"),
        ("sub", (1j, x), "sub.Tensor"),
        ("true_divide", (3, x), "true_divide.Tensor"),
    ],
)
def test_a_number_is_a_scalar_where_an_overload_takes_one_and_else_a_tensor(name, args, overload):
    torch_function(name, False)(*map(as_torch, args))  # PyTorch takes it, wrapping every number
    ours, values = bind(name, *args)
    assert ours == overload
    assert [comparable(values["self"]), comparable(values["other"])] == [
        comparable(a.item() if isinstance(a, np.generic) else a) for a in args
    ]


def test_numbers_are_no_tensors_unless_asked_for():
    for args in [(2, x), (x, 2)]:
        with pytest.raises(ArgumentError):
            bind("matmul", *args)
        with pytest.raises(TypeError):
            torch.matmul(*map(as_torch, args))


zero = Stand(dtype=dtypes.int64, value=0)
half = Stand(value=0.5)


@pytest.mark.parametrize(
    ("name", "args", "kwargs"),
    [
        # accepted
        ("transpose", (x, zero, 1), {}),
        ("softmax", (x, zero), {}),
        ("full", ((2,), zero), {}),
        ("full", ((2,), half), {}),
        ("dropout", (x, half, False), {}),
        ("sum", (x, zero), {}),
        ("sum", (x, (zero, 1)), {}),
        ("zeros", (zero, 3), {}),
        ("clamp", (x, half, 1), {}),
        ("split", (x, Stand(dtype=dtypes.int64, value=2)), {}),
        ("zeros", (2,), {"dtype": bool}),
        ("cat", ([x],), {"axis": 0}),
        ("sum", (), {"x": x}),
        # refused
        ("full", ((2,), Stand(1, dtype=dtypes.int64)), {}),
        ("full", ((2,), Stand(requires_grad=True)), {}),
        ("transpose", (x, half, 1), {}),
        ("transpose", (x, True, 1), {}),
        ("transpose", (x, 1.0, 0), {}),
        ("transpose", (x, 1), {}),
        ("transpose", (x, 0, 1, 2), {}),
        ("transpose", (x, 0, 1), {"dim": 1}),
        ("sum", (x, True), {}),
        ("sum", (x, 0, 1), {}),
        ("sum", (x,), {"input": x}),
        ("sum", (x,), {"dim": 0, "axis": 0}),
        ("sum", (x,), {"self": x}),
        ("sum", (x, "0"), {}),
        ("zeros", ((half, 3),), {}),
        ("zeros", ((True, 3),), {}),
        ("zeros", ((2, 3.0),), {}),
        ("zeros", (2.0,), {}),
        ("zeros", (2,), {"dtype": "float32"}),
        ("zeros", (2,), {"dtype": np.float32}),
        ("zeros", (2,), {"dtype": str}),
        ("zeros", (2,), {"dtype": np.ones(2)}),
        ("transpose", (x, np.bool_(True), 1), {}),
        ("transpose", (x, np.float64(1), 1), {}),
        ("transpose", (x, np.array([0, 1]), 1), {}),
        ("rand", (), {}),
        ("cat", (x,), {}),
        ("cat", ([x, 1],), {}),
        ("permute", (x, 1, 0), {}),
        ("flip", (x,), {"dims": 0}),
        ("add", (x, "a"), {}),
        ("add", (x, None), {}),
        ("add", (x, np.ones(3)), {}),
        ("pow", (2, 3), {}),
        ("clamp", (x, "a"), {}),
        ("where", (mask, x), {}),
        ("full", (2, 1.0), {}),
        ("topk", (x,), {}),
        ("std", (x, 0.5), {}),
    ],
)
def test_what_pytorch_s_parser_takes_is_taken_and_what_it_refuses_refused(name, args, kwargs):
    try:
        torch_function(name, False)(*map(as_torch, args), **{k: as_torch(v) for k, v in kwargs.items()})
    except TypeError:
        with pytest.raises(ArgumentError):
            bind(name, *args, **kwargs)
    else:
        bind(name, *args, **kwargs)


def test_a_resolver_gives_the_same_answer_however_warm_it_is():
    by_name = defaultdict(list)
    for case in CALLS:
        name, args, kwargs, method = case.values
        by_name[name, method].append((args, kwargs))
    for (name, method), calls in by_name.items():
        warm = resolver(name, method=method)
        for args, kwargs in [*calls, *reversed(calls)]:
            fresh = resolver(name, method=method)
            assert repr(warm.bind(args, kwargs)) == repr(fresh.bind(args, kwargs))  # 1 is not True here


def test_a_cached_choice_is_not_used_where_a_value_decides():
    full = resolver("full")
    full.bind(((2,), half), {})
    with pytest.raises(ArgumentError):
        full.bind(((2,), Stand(3)), {})
    transpose = resolver("transpose")
    transpose.bind((x, zero, 1), {})
    with pytest.raises(ArgumentError):
        transpose.bind((x, half, 1), {})


def test_a_cached_choice_is_not_used_for_lists_of_other_things():
    cat = resolver("cat")
    cat.bind(([x, y],), {})
    with pytest.raises(ArgumentError):
        cat.bind(([x, 1],), {})
    view = resolver("view", method=True)
    assert view.bind((x, [2, 8]), {})[1][1] == (2, 8)
    with pytest.raises(ArgumentError):
        view.bind((x, [2, 8.0]), {})


def test_a_list_of_so_many_bools_has_so_many_however_the_call_was_found():
    backward = resolver("native_layer_norm_backward")
    given = (x, x, [3], y, y, None, None)
    for _ in range(2):
        assert backward.bind((*given, [True, False, np.bool_(True)]), {})[1][-1] == (True, False, True)
        assert backward.bind((*given, (True, False, True)), {})[1][-1] == (True, False, True)
        for wrong in ([True] * 4, (True, False), []):
            with pytest.raises(ArgumentError, match=f"takes 3 bools, not {len(wrong)}"):
                backward.bind((*given, wrong), {})


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "argument", "value"),
    [
        ("conv2d", (x, y), {"stride": 2}, "stride", (2, 2)),
        ("conv2d", (x, y), {"stride": [2, 1]}, "stride", (2, 1)),
        ("conv2d", (x, y), {"padding": "same"}, "padding", "same"),
        ("conv2d", (x, y), {}, "dilation", (1, 1)),
        ("sum", (x, np.int64(1)), {}, "dim", (1,)),
        ("sum", (x, zero), {}, "dim", (0,)),
        ("sum", (x, [zero, 1]), {}, "dim", (0, 1)),
        ("transpose", (x, np.int32(0), 1), {}, "dim0", 0),
        ("transpose", (x, zero, 1), {}, "dim0", zero),
        ("full", ((2,), half), {}, "fill_value", half),
        ("full", ((2,), np.float32(0.5)), {}, "fill_value", 0.5),
        ("full", ((2,), np.bool_(True)), {}, "fill_value", 1.0),
        ("full", ((2,), np.complex64(1j)), {}, "fill_value", 1j),
        ("dropout", (x, 1, np.bool_(False)), {}, "p", 1.0),
        ("dropout", (x, 1, np.bool_(False)), {}, "train", False),
        ("upsample_nearest2d", (x, None, [2, 3]), {}, "scale_factors", (2.0, 3.0)),
        ("permute", (x,), {"axes": (1, 0)}, "dims", (1, 0)),
        ("cat", ([x, y],), {}, "tensors", (x, y)),
        ("zeros", (2,), {"dtype": float}, "dtype", dtypes.float64),
        ("zeros", (2,), {"device": "cuda:1"}, "device", Device("cuda:1")),
        ("zeros", (2,), {"device": 1}, "device", Device("cuda:1")),
        ("randint", (5, (2,)), {}, "dtype", dtypes.int64),
        ("clone", (x,), {"memory_format": "channels_last"}, "memory_format", "channels_last"),
    ],
)
def test_values_become_canonical(name, args, kwargs, argument, value):
    for _ in range(2):
        found = bind(name, *args, **kwargs)[1][argument]
        assert found == value and type(found) is type(value)
        if isinstance(found, tuple):
            assert list(map(type, found)) == list(map(type, value))


def test_all_but_tensors_can_be_hashed():
    for case in CALLS:
        name, args, kwargs, method = case.values
        hash(tuple(bind(name, *args, method=method, **kwargs)[1].values()))


def test_objects_with_an_index_are_ints_and_a_size_is_a_tuple():
    class Three:
        def __index__(self):
            return 3

    class Size(tuple):
        __slots__ = ()

    assert bind("view", x, Size((2, 8)), method=True)[1]["size"] == (2, 8)
    assert type(bind("view", x, Size((2, 8)), method=True)[1]["size"]) is tuple
    assert bind("view", x, Three(), 2, method=True)[1]["size"] == (3, 2)
    assert bind("transpose", x, Three(), 0)[1]["dim0"] == 3


def test_classes_of_the_frontend_are_taken_by_instance():
    generator = Generator()
    assert bind("rand", 2, generator=generator)[1]["generator"] is generator
    assert bind("rand", 2, generator=None)[0] == "rand.generator"
    with pytest.raises(ArgumentError, match="takes a Generator or None, not int"):
        bind("rand", 2, generator=3)


def test_a_subclass_of_the_tensor_class_is_a_tensor():
    class Parameter(Stand):
        pass

    parameter = Parameter(4, 4)
    assert bind("add", parameter, x)[1]["self"] is parameter


def test_a_method_needs_a_self():
    with pytest.raises(ValueError, match="rand: a method's schemas have an argument 'self'"):
        Resolver("rand", SCHEMAS["rand"], tensor=Stand, method=True)


SUM = "sum(Tensor input, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None)"


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "message"),
    [
        (
            "transpose",
            (x, 1.0, 0),
            {},
            "transpose: argument 'dim0' takes an int, not float\n"
            "  help: it is transpose(Tensor input, int dim0, int dim1)",
        ),
        (
            "transpose",
            (x,),
            {},
            "transpose: missing the arguments 'dim0' and 'dim1'\n"
            "  help: it is transpose(Tensor input, int dim0, int dim1)",
        ),
        (
            "transpose",
            (x, 0, 1, 2),
            {},
            "transpose: takes at most 3 positional arguments, not 4\n"
            "  help: it is transpose(Tensor input, int dim0, int dim1)",
        ),
        (
            "transpose",
            (x, 0, 1),
            {"dim0": 0},
            "transpose: argument 'dim0' is given by position and by keyword\n"
            "  help: it is transpose(Tensor input, int dim0, int dim1)",
        ),
        (
            "softmax",
            (x,),
            {"dim": 0, "axis": 0},
            "softmax: arguments 'dim' and 'axis' are the same\n"
            "  help: it is softmax(Tensor input, int dim, ScalarType? dtype=None)",
        ),
        (
            "sum",
            (x,),
            {"kepdim": True},
            "sum: unexpected keyword argument 'kepdim'\n  help: did you mean keepdim?",
        ),
        (
            "relu",
            (x,),
            {"zap": 1},
            "relu: unexpected keyword argument 'zap'\n  help: it is relu(Tensor input)",
        ),
        (
            "cat",
            ([x, 1],),
            {},
            "cat: argument 'tensors' takes a tuple of Tensors, not a list with int at position 1\n"
            "  help: it is cat(Tensor[] tensors, int dim=0)",
        ),
        (
            "relu",
            (None,),
            {},
            "relu: argument 'input' takes a Tensor, not None\n  help: it is relu(Tensor input)",
        ),
        (
            "transpose",
            (x, Stand(2), 0),
            {},
            "transpose: argument 'dim0' takes an int, not a 1-dim float32 Stand\n"
            "  help: it is transpose(Tensor input, int dim0, int dim1)",
        ),
        (
            "softmax",
            (x, Stand(requires_grad=True)),
            {},
            "softmax: argument 'dim' takes an int, not a 0-dim float32 Stand that requires grad\n"
            "  help: it is softmax(Tensor input, int dim, ScalarType? dtype=None)",
        ),
        (
            "sum",
            (x, "0"),
            {},
            "sum: no overload takes (Stand, str)\n"
            f"    {SUM}: argument 'dim' takes an int, a tuple of ints or None, not str\n"
            "    sum(Tensor input, *, ScalarType? dtype=None): takes at most 1 positional argument, not 2",
        ),
        (
            "sum",
            (x, 0),
            {"keepdim": 1},
            "sum: no overload takes (Stand, int, keepdim=int)\n"
            f"    {SUM}: argument 'keepdim' takes a bool, not int\n"
            "    sum(Tensor input, *, ScalarType? dtype=None): unexpected keyword argument 'keepdim'",
        ),
        (
            "add",
            (x, "a"),
            {},
            "add: no overload takes (Stand, str)\n"
            "    add(Tensor input, Tensor other, *, Scalar alpha=1): "
            "argument 'other' takes a Tensor or a number, not str\n"
            "    add(Tensor input, Scalar other, Scalar alpha=1): argument 'other' takes a number, not str",
        ),
    ],
)
def test_a_refused_call_says_what_was_wrong(name, args, kwargs, message):
    with pytest.raises(ArgumentError) as caught:
        bind(name, *args, **kwargs)
    assert str(caught.value) == message


def test_a_method_s_errors_leave_out_the_receiver():
    with pytest.raises(ArgumentError) as caught:
        bind("where", x, method=True)
    assert str(caught.value) == (
        "where: no overload takes ()\n"
        "    where(Tensor condition, Tensor other): missing the arguments 'condition' and 'other'\n"
        "    where(Tensor condition, Scalar other): missing the arguments 'condition' and 'other'"
    )


def test_a_device_that_does_not_exist_is_named():
    with pytest.raises(TenfoldError, match="cuta"):
        bind("zeros", 2, device="cuta")


def test_overloads_come_in_pytorch_s_order():
    """PyTorch lists them in the order it tries them when a call fits none."""
    compared = 0
    for name, schemas in SCHEMAS.items():
        for method in (False, True) if len(schemas) > 1 else ():
            parameters = {parameters_of(schema, method): schema for schema in schemas}
            known = [parameters[each] for each in listed_overloads(name, method) if each in parameters]
            if len(known) > 1:
                compared += 1
                assert in_torch_order(known[::-1], method) == known, name
    assert compared > 250


# What PyTorch calls the types in its messages.
SPOKEN = {
    "Scalar": "Number",
    "int[]": "tuple of ints",
    "Tensor[]": "tuple of Tensors",
    "Scalar[]": "tuple of Scalars",
    "ScalarType": "torch.dtype",
    "Generator": "torch.Generator",
    "Device": "torch.device",
    "MemoryFormat": "torch.memory_format",
}
# Its bindings add some of these to a schema's arguments, and they differ between no two overloads.
OPTIONS = {"out", "requires_grad", "layout", "device", "pin_memory"}


def listed_overloads(name, method):
    """The parameters of each overload, as pairs of type and name, in the order PyTorch lists them."""
    function = getattr(torch._C.TensorBase if method else torch._C._VariableFunctions, name, None)
    for count in range(1, 8):
        try:
            function(*[torch.ones(1)] * method, *[object()] * count)
        except Exception as error:
            overloads = re.findall(r"^ \* \((.*)\)$", str(error), re.MULTILINE)
            if len(overloads) > 1:
                pairs = [re.findall(r"([a-zA-Z][\w. ]*) (\w+)(?: = [^,]*)?(?:, |$)", o) for o in overloads]
                return [frozenset(p for p in each if p[1] not in OPTIONS) for each in pairs]
    return []


def parameters_of(schema, method):
    pairs = set()
    for argument in schema.arguments:
        type, name = argument.type, argument.name
        text = type.kind if type.list_size is None else f"{type.kind}[]"
        if name == "self" and text == "Tensor":
            name = "input"
        if name not in OPTIONS and not (method and argument.name == "self"):
            pairs.add((SPOKEN.get(text, text), name))
    return frozenset(pairs)


OLDER = {  # calls from before PyTorch 1.5
    "add": "x, 2, x",
    "sub": "x, 2, x",
    "addcmul": "x, 2, x, x",
    "addcdiv": "x, 2, x, x",
    "addmm": "0.5, x, 2, x, x|0.5, x, x, x",
    "addbmm": "0.5, x, 2, b, b|0.5, x, b, b",
    "baddbmm": "0.5, b, 2, b, b|0.5, b, b, b",
    "addmv": "0.5, v, 2, x, v|0.5, v, x, v",
    "addr": "0.5, x, 2, v, v|0.5, x, v, v",
}


@pytest.mark.parametrize("name", OLDER)
def test_factors_may_stand_before_what_they_scale(name):
    import tenfold as tn

    shapes = {"x": (3, 3), "b": (2, 3, 3), "v": (3,)}
    arrays = {name: np.random.default_rng(0).random(shape, "float32") for name, shape in shapes.items()}
    for call in OLDER[name].split("|"):
        ours = [tn.tensor(arrays[word]) if word in arrays else float(word) for word in call.split(", ")]
        theirs = [torch.tensor(arrays[word]) if word in arrays else float(word) for word in call.split(", ")]
        expected = getattr(torch, name)(*theirs).numpy()
        np.testing.assert_allclose(getattr(tn, name)(*ours).numpy(), expected, rtol=1e-6)
        receiver = next(each for each in ours if isinstance(each, tn.Tensor))
        rest = [each for each in ours if each is not receiver]
        np.testing.assert_allclose(getattr(receiver, name)(*rest).numpy(), expected, rtol=1e-6)
        getattr(receiver, f"{name}_")(*rest)
        np.testing.assert_allclose(receiver.numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize(
    "call",
    [
        lambda package, x: x * np.True_,
        lambda package, x: package.add(x, np.True_),
        lambda package, x: package.full((2,), np.True_),
        lambda package, x: package.full_like(x, np.True_),
        lambda package, x: package.where(x > 1, np.True_, np.False_),
        lambda package, x: x.masked_fill(x > 1, np.True_),
        lambda package, x: (x > 1) == np.True_,
    ],
)
def test_numpys_bool_is_a_float_as_for_pytorch(call):
    import tenfold as tn

    mine, theirs = [call(package, package.tensor([1, 2])) for package in (tn, torch)]
    assert (mine.dtype.name, mine.tolist()) == (str(theirs.dtype)[6:], theirs.tolist())


A_NUMBER_OF = {"bool": True, "int": 1, "float": 1.5, "complex": 1j}
TAKES_ONE = {
    "bool": lambda package, x, number: package.sum(x, 0, number),
    "int": lambda package, x, number: package.select(x, 0, number),
    "float": lambda package, x, number: package.nan_to_num(x, number),
    "Scalar": lambda package, x, number: package.full_like(x, number),
}


@pytest.mark.parametrize(
    ("type", "as_tensors"),
    [*[(type, False) for type in TAKES_ONE], *[(type, True) for type in TAKES_ONE if type != "bool"]],
)
def test_numbers_stand_for_what_they_do_in_pytorch(type, as_tensors):
    def taken(package, number):
        x = package.ones(3, 3, dtype=package.complex64 if type == "Scalar" else package.float32)
        try:
            TAKES_ONE[type](package, x, package.tensor(number) if as_tensors else number)
        except (TypeError, RuntimeError):
            return False
        return True

    taking = [name for name, number in A_NUMBER_OF.items() if taken(tn, number)]
    assert taking == [name for name, number in A_NUMBER_OF.items() if taken(torch, number)]
    assert taking == list(STANDS_FOR[type])
