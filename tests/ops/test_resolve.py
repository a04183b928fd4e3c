"""Calls resolve to the overload PyTorch picks, with the arguments PyTorch passes on."""

import re
from collections import defaultdict
from importlib.resources import files

import numpy as np
import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from tenfold import dtypes
from tenfold.devices import Device
from tenfold.errors import ArgumentError, TenfoldError
from tenfold.ops.resolve import Resolver, in_torch_order
from tenfold.ops.schema import parse

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
    return Resolver(
        name,
        SCHEMAS[name],
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
    stands = [v for each in (*args, *kwargs.values()) for v in (each if isinstance(each, list | tuple) else [each])]
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
    call("norm", x, "fro", dtype=dtypes.float64) if False else call("norm", x, 1.5, dtype=dtypes.float64),
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
    method("split", x, [1, 3], 1),
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
    assert {k: comparable(v) for k, v in values.items()} == {k: comparable(v) for k, v in expected.items()}
