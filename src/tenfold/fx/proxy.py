"""Proxies, which take the place of tensors while a function is traced. Each operation on a proxy becomes a
node."""

from __future__ import annotations

import dis
import enum
import operator
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from tenfold.base.devices import Device
from tenfold.base.dtypes import DType
from tenfold.base.layouts import layout, memory_format
from tenfold.fx.code import MAGIC
from tenfold.fx.graph import Graph
from tenfold.fx.node import Argument, Node, Target
from tenfold.overrides import is_tensor_method_or_property
from tenfold.tensor import Tensor

__all__ = ["Attribute", "GraphAppendingTracer", "ParameterProxy", "Proxy", "TraceError", "TracerBase"]

BASE_TYPES = (
    str, int, float, bool, complex, DType, Device, Tensor, layout, memory_format, type(None), type(...),
    range,
)  # fmt: skip


class TraceError(ValueError):
    """Something that a graph cannot express, such as a branch on a value."""


class TracerBase:
    """Turns calls into nodes of its graph."""

    graph: Graph
    record_stack_traces = False
    check_mutable_operations = False
    trace_asserts = False
    proxy_buffer_attributes = False
    traced_func_name = "forward"

    def create_node(
        self,
        kind: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node: Node) -> Proxy:
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """A node of a call, and the proxy that stands for its result."""
        args_, kwargs_ = self.create_arg(args), self.create_arg(kwargs)
        node = self.create_node(kind, target, args_, kwargs_, name, type_expr)
        if self.record_stack_traces:
            node.stack_trace = "".join(traceback.format_stack()[:-1])
        return proxy_factory_fn(node) if proxy_factory_fn else self.proxy(node)

    def create_arg(self, a: Any) -> Argument:
        """An argument as a node holds it: nodes for proxies, inside containers too."""
        if isinstance(a, Proxy):
            return a.node
        if isinstance(a, tuple):
            parts = [self.create_arg(each) for each in a]
            return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
        if isinstance(a, list):
            return [self.create_arg(each) for each in a]
        if isinstance(a, dict):
            if any(isinstance(key, (Proxy, Node)) for key in a):
                raise RuntimeError("Keys for dictionaries used as an argument cannot contain a Node.")
            return {key: self.create_arg(each) for key, each in a.items()}
        if isinstance(a, slice):
            return slice(*[self.create_arg(each) for each in (a.start, a.stop, a.step)])
        if isinstance(a, (*BASE_TYPES, Node, enum.Enum)) or callable(a):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def to_bool(self, obj: Proxy) -> bool:
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """Iterate over a proxy, which works only where it is unpacked into a known number of names."""
        frame = sys._getframe(2)  # of the code that iterates
        code = {
            get_instruction.offset: get_instruction for get_instruction in dis.get_instructions(frame.f_code)
        }
        at = code.get(frame.f_lasti)
        if at is not None and at.opname == "UNPACK_SEQUENCE":
            return iter([obj[i] for i in range(at.argval)])
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a "
            "*args or **kwargs function argument. See the torch.fx docs on pytorch.org for a more detailed "
            "explanation of what types of control flow can be traced, and check out the Proxy docstring for "
            "help troubleshooting Proxy iteration errors"
        )

    def keys(self, obj: Proxy) -> Any:
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """A tracer that appends to an existing graph."""

    def __init__(self, graph: Graph):
        self.graph = graph


class Proxy:
    """Stands for a value that is not known while a function is traced."""

    def __init__(self, node: Node, tracer: TracerBase | None = None):
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    if TYPE_CHECKING:  # the operators, which are set below

        def __getitem__(self, index: Any) -> Proxy: ...

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Any:
        if k.startswith("__") and k.endswith("__"):
            raise AttributeError(k)
        return Attribute(self, k)

    def __deepcopy__(self, memo: dict[int, Any]) -> Proxy:
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __abs__(self) -> Proxy:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __hash__(self) -> int:
        return id(self)

    def __iter__(self) -> Iterator[Any]:
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def __index__(self) -> int:
        raise TraceError("a traced value has no number yet: symbolically traced variables cannot be indices")

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, "
            "please call torch.fx.wrap('len') at module scope"
        )

    def __contains__(self, item: Any) -> bool:
        raise TraceError("a traced value does not say yet what it contains")

    def keys(self) -> Any:
        return self.tracer.keys(self)

    @classmethod
    def __torch_function__(
        cls, orig_method: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """A function of the package that is called on proxies becomes a node."""
        kwargs = kwargs or {}
        found: list[Proxy] = []
        _gather((args, kwargs), found)
        tracer = found[0].tracer
        if any(each.tracer is not tracer for each in found):
            raise RuntimeError("Found multiple different tracers while trying to trace operations")
        if is_tensor_method_or_property(orig_method):
            return tracer.create_proxy("call_method", orig_method.__name__, args, kwargs)
        return tracer.create_proxy("call_function", orig_method, args, kwargs)


def _gather(given: Any, found: list[Proxy]) -> None:
    if isinstance(given, Proxy):
        found.append(given)
    elif isinstance(given, (list, tuple)):
        for each in given:
            _gather(each, found)
    elif isinstance(given, dict):
        _gather(list(given.values()), found)
    elif isinstance(given, slice):
        _gather((given.start, given.stop, given.step), found)


class Attribute(Proxy):
    """An attribute of a proxy: a node of its own only if it is not called at once, as a method is."""

    def __init__(self, root: Proxy, attr: str):
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """The proxy of a parameter, whose shape is known."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Tensor):
        super().__init__(node, tracer)
        self.param, self.name = param, name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        return self.param.shape

    def size(self, *args: Any) -> Any:
        return self.param.size(*args)

    def dim(self) -> int:
        return self.param.dim()

    @property
    def ndim(self) -> int:
        return self.param.ndim

    def numel(self) -> int:
        return self.param.numel()


def _operator(name: str, reflected: bool = False) -> Callable[..., Any]:
    target = getattr(operator, name)

    def operate(self: Proxy, *others: Any) -> Proxy:
        args = (*others, self) if reflected else (self, *others)
        return self.tracer.create_proxy("call_function", target, args, {})

    return operate


for _name in MAGIC:
    setattr(Proxy, f"__{_name.strip('_')}__", _operator(_name))
for _name in MAGIC.keys() - {"eq", "ne", "lt", "gt", "le", "ge", "pos", "neg", "invert", "getitem"}:
    setattr(Proxy, f"__r{_name.strip('_')}__", _operator(_name, reflected=True))
