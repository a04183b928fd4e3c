"""Symbolic tracing: a function or a module runs once on proxies, whose operations make a graph."""

from __future__ import annotations

import builtins
import functools
import inspect
import math
import operator
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from tenfold.functional import _assert
from tenfold.fx.graph import Graph
from tenfold.fx.graph_module import GraphModule
from tenfold.fx.node import Argument, has_side_effect
from tenfold.fx.proxy import BASE_TYPES, ParameterProxy, Proxy, TracerBase, _gather
from tenfold.nn.containers import Sequential
from tenfold.nn.module import Module
from tenfold.overrides import wrap_torch_function
from tenfold.tensor import Tensor
from tenfold.tensor.parameter import Parameter
from tenfold.utils import _pytree as pytree

__all__ = ["PH", "Tracer", "is_fx_tracing", "symbolic_trace", "wrap"]

_tracing = False
_wrapped: dict[
    tuple[int, str], dict[str, Any]
] = {}  # the globals of a module, by a name that is marked there


class PHBase:
    """Marks an argument that stays symbolic among concrete ones."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


def is_fx_tracing() -> bool:
    return _tracing


def wrap(fn_or_name: Any) -> Any:
    """Mark a function of the calling module as a leaf, so that a call of it becomes one node. Takes the
    function, as a decorator does, or its name."""
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = inspect.currentframe()
    caller = frame.f_back if frame is not None else None
    if caller is None or caller.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped[id(caller.f_globals), name] = caller.f_globals
    return fn_or_name


def _taking(function: Any, count: int) -> Any:
    """The function with so many plain parameters, the last of which it takes for its `*args` and `**kwargs`:
    while it is traced, these are proxies."""
    code = function.__code__
    stars = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    plain = code.replace(
        co_flags=code.co_flags & ~stars, co_argcount=count, co_posonlyargcount=0, co_kwonlyargcount=0
    )
    return types.FunctionType(
        plain, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )


class Tracer(TracerBase):
    """Traces a module or a function. Subclass it to choose which modules are leaves."""

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ):
        self._autowrap = {
            id(member): member
            for module in autowrap_modules
            for name, member in vars(module).items()
            if not name.startswith("_") and callable(member)
        }
        self._autowrap |= {
            id(autowrap_function): autowrap_function for autowrap_function in autowrap_functions
        }
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[Module, str] | None = None
        self.root_module_name = ""
        self.tensor_attrs: dict[int, str] = {}
        self._annotations: dict[str, type] = {}

    # What becomes of modules, parameters and arguments

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether a call of a module becomes one node, as for the package's own layers."""
        own = m.__module__.startswith(("tenfold.nn", "torch.nn"))
        return own and not isinstance(m, Sequential)

    def path_of_module(self, mod: Module) -> str:
        for name, each in self.root.named_modules(remove_duplicate=False):
            if each is mod:
                return name
        raise NameError("module is not installed as a submodule")

    def call_module(
        self, m: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        name = self.path_of_module(m)
        if self.is_leaf_module(m, name):
            return self.create_proxy("call_module", name, args, kwargs)
        return forward(*args, **kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """The value of a module's attribute during tracing: a proxy if it is a parameter."""
        wanted = isinstance(attr_val, Parameter)
        if self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            wanted = True
        if not wanted:
            return attr_val
        name = self.tensor_attrs.get(id(attr_val))
        if name is None:
            return attr_val
        if name not in parameter_proxy_cache:
            make = (
                (lambda node: ParameterProxy(self, node, name, attr_val))
                if self.param_shapes_constant
                else None
            )
            parameter_proxy_cache[name] = self.create_proxy("get_attr", name, (), {}, proxy_factory_fn=make)
        return parameter_proxy_cache[name]

    def create_arg(self, a: Any) -> Argument:
        if isinstance(a, Tensor):
            name = self.tensor_attrs.get(id(a))
            if name is None:
                i = 0
                while hasattr(self.root, f"_tensor_constant{i}"):
                    i += 1
                name = f"_tensor_constant{i}"
                setattr(self.root, name, a)
                self.tensor_attrs[id(a)] = name
            return self.create_node("get_attr", name, (), {})
        return super().create_arg(a)

    # Tracing

    def trace(self, root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> Graph:
        """Trace a module's forward or a function, and return the graph."""
        global _tracing
        function: Any
        if isinstance(root, Module):
            self.root = root
            function = getattr(type(root), self.traced_func_name)
            self.root_module_name = type(root).__name__
        else:
            self.root, function = Module(), root
        self.graph = Graph(tracer_cls=type(self))
        self.tensor_attrs = _tensors_of(self.root)
        function, args = self.create_args_for_root(function, isinstance(root, Module), concrete_args)
        before, _tracing = _tracing, True
        try:
            with self._patched(function):
                result = function(*args)
            self.create_node("output", "output", (self.create_arg(result),), {})
        finally:
            _tracing = before
        return self.graph

    def create_args_for_root(
        self, root_fn: Callable[..., Any], is_module: bool, concrete_args: Any = None
    ) -> tuple[Callable[..., Any], list[Any]]:
        """Placeholders for the function's parameters, and the function as it is called with them."""
        unwrapped = inspect.unwrap(root_fn)
        code = unwrapped.__code__
        hints = getattr(unwrapped, "__annotations__", {})
        self._annotations = {name: hint for name, hint in hints.items() if isinstance(hint, type)}
        count = code.co_argcount + code.co_kwonlyargcount
        names = list(code.co_varnames[:count])
        defaults = {
            name: parameter.default
            for name, parameter in inspect.signature(unwrapped).parameters.items()
            if parameter.default is not inspect.Parameter.empty
        }
        args: list[Any] = [self.root] if is_module else []
        named = names[1:] if is_module else names
        positional = code.co_argcount - is_module
        keywords: dict[str, Any] = {}
        for i, name in enumerate(named):
            value = self._parameter(name, defaults, concrete_args)
            if i < positional:
                args.append(value)
            else:
                keywords[name] = value
        flags = [(inspect.CO_VARARGS, "*"), (inspect.CO_VARKEYWORDS, "**")]
        extra = [star for flag, star in flags if code.co_flags & flag]
        if not extra:
            return (functools.partial(root_fn, **keywords) if keywords else root_fn), args
        args += keywords.values()
        for star, name in zip(extra, code.co_varnames[count:], strict=False):
            args.append(self.create_proxy("placeholder", f"{star}{name}", (), {}))
        return _taking(unwrapped, len(args)), args

    def _parameter(self, name: str, defaults: dict[str, Any], concrete_args: dict[str, Any] | None) -> Any:
        """What a parameter is while the function is traced. The graph asserts the value of a concrete one."""
        default = (defaults[name],) if name in defaults else ()
        if concrete_args is None or name not in concrete_args:
            return self.create_proxy("placeholder", name, default, {}, type_expr=self._annotations.get(name))
        given = concrete_args[name]
        if given is PH:
            return self.create_proxy("placeholder", name, (), {})
        leaves, spec = pytree.tree_flatten(given)
        if any(leaf is PH for leaf in leaves):
            made = [
                self.create_proxy("placeholder", f"{name}_{i + 1}", (), {}) if leaf is PH else leaf
                for i, leaf in enumerate(leaves)
            ]
            return pytree.tree_unflatten(made, spec)
        placeholder = self.create_proxy("placeholder", f"{name}_1", default, {})
        message = f"{name} has been specialized to have value {given} but got another value"
        if given is None:
            _assert_is_none(placeholder, message)
        elif isinstance(given, BASE_TYPES) and not isinstance(given, Tensor):
            _assert(operator.eq(placeholder, given), message)
        else:
            warnings.warn(
                f"no assertion is added that {name} is what the function was specialized for", stacklevel=5
            )
        return given

    @contextmanager
    def _patched(self, function: Callable[..., Any]) -> Iterator[None]:
        """A `with` block in which modules and marked functions make nodes."""
        tracer, cache = self, {}  # type: tuple[Tracer, dict[str, Any]]
        original_call, original_getattr = Module.__call__, Module.__getattr__

        @functools.wraps(original_call)
        def call(mod: Module, *args: Any, **kwargs: Any) -> Any:
            forward = lambda *args, **kwargs: original_call(mod, *args, **kwargs)
            return tracer.call_module(mod, forward, args, kwargs)

        @functools.wraps(original_getattr)
        def get(mod: Module, attr: str) -> Any:
            return tracer.getattr(attr, original_getattr(mod, attr), cache)

        owner: Any = Module
        own_getattr = vars(owner).get("__getattr__")
        owner.__call__, owner.__getattr__ = call, get
        patched = list(self._patched_globals(function))
        for holder, name, original in patched:
            holder[name] = _recording(original)
        try:
            yield
        finally:
            for holder, name, original in patched:
                if original is getattr(builtins, name, None):
                    del holder[name]
                else:
                    holder[name] = original
            owner.__call__ = original_call
            if own_getattr is None:
                del owner.__getattr__
            else:
                owner.__getattr__ = own_getattr

    def _patched_globals(self, function: Callable[..., Any]) -> Iterator[tuple[dict[str, Any], str, Any]]:
        """The functions that become nodes, with the globals and the names by which code finds them."""
        done: set[tuple[int, str]] = set()
        for (place, name), holder in list(_wrapped.items()):
            original = holder.get(name, getattr(builtins, name, None))
            if original is not None and (place, name) not in done:
                done.add((place, name))
                yield holder, name, original
        holders: list[Any] = [getattr(inspect.unwrap(function), "__globals__", None)]
        holders += [vars(module) for module in self._autowrap_search]
        for holder in filter(None, holders):
            for name, each in list(holder.items()):
                if id(each) in self._autowrap and (id(holder), name) not in done:
                    done.add((id(holder), name))
                    yield holder, name, each


@has_side_effect
@wrap_torch_function(lambda value, message: (value,))
def _assert_is_none(value: Any, message: str) -> None:
    if value is not None:
        raise AssertionError(message)


def _tensors_of(root: Module) -> dict[int, str]:
    """The names of a module's tensors, by which of them it is."""
    found: dict[int, str] = {}
    for prefix, module in root.named_modules():
        dot = f"{prefix}." if prefix else ""
        held = [*module._parameters.items(), *module._buffers.items(), *vars(module).items()]
        for name, each in held:
            if isinstance(each, Tensor):
                found.setdefault(id(each), f"{dot}{name}")
    return found


def _recording(original: Callable[..., Any]) -> Callable[..., Any]:
    """A marked function while something is traced: a node if it is called on proxies, else itself."""

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        found: list[Proxy] = []
        _gather((args, kwargs), found)
        if not found:
            return original(*args, **kwargs)
        made = found[0].tracer.create_proxy("call_function", original, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made

    return call


def symbolic_trace(
    root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None
) -> GraphModule:
    """Trace a function or module into a GraphModule.

    >>> traced = tenfold.fx.symbolic_trace(lambda x: tenfold.relu(x) + 1)
    >>> print(traced.code.strip())
    def forward(self, x):
        relu = torch.relu(x);  x = None
        add = relu + 1;  relu = None
        return add
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else getattr(root, "__name__", "GraphModule")
    return GraphModule(tracer.root, graph, name)
