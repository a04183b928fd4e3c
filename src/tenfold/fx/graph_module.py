"""A module whose forward is generated from a graph."""

from __future__ import annotations

import copy
import itertools
import linecache
from typing import Any

from tenfold.fx.code import PythonCode
from tenfold.fx.graph import Graph
from tenfold.nn.module import Module
from tenfold.tensor import Tensor
from tenfold.tensor.parameter import Parameter

__all__ = ["GraphModule"]

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
_keys = itertools.count()


def _exec_with_source(src: str, globals: dict[str, Any]) -> None:
    """Run a source that tracebacks and messages can quote."""
    name = f"<eval_with_key>.{next(_keys)}"
    linecache.cache[name] = (len(src), None, src.splitlines(True), name)
    exec(compile(src, name, "exec", dont_inherit=True), globals)


def _forward_from_src(src: str, globals: dict[str, Any]) -> Any:
    copied = dict(globals)
    _exec_with_source(src, copied)
    return copied["forward"]


def _copy_attr(from_module: Module, to_module: Module, target: str) -> None:
    """Put what a dotted name means in one module into another, with the modules on the way."""
    *prefix, field = target.split(".")
    for part in prefix:
        source, held = getattr(from_module, part), getattr(to_module, part, None)
        if source is held:
            return
        if held is None:
            held = Module()
            setattr(to_module, part, held)
        from_module, to_module = source, held
    found = getattr(from_module, field)
    if isinstance(found, Tensor) and not isinstance(found, Parameter):
        to_module.register_buffer(field, found)
    else:
        setattr(to_module, field, found)


def _assign_attr(from_obj: Any, to_module: Module, target: str) -> None:
    *prefix, field = target.split(".")
    for part in prefix:
        held = getattr(to_module, part, None)
        if held is None:
            held = Module()
            setattr(to_module, part, held)
        to_module = held
    if isinstance(from_obj, Tensor) and not isinstance(from_obj, Parameter):
        to_module.register_buffer(field, from_obj)
    else:
        setattr(to_module, field, from_obj)


class _CodeOnlyModule(Module):
    """A module of given attributes, to trace a stored source with."""

    def __init__(self, body: dict[str, Any]):
        super().__init__()
        self.__dict__ = body


class GraphModule(Module):
    """A module made from a graph and the modules and tensors that it names. Call `recompile` after you change
    the graph."""

    _graph: Graph

    def __new__(cls, *args: Any, **kwargs: Any) -> GraphModule:
        # Each has a class of its own, which its forward is put on.
        base = next(each for each in cls.__mro__ if each.__qualname__ != "GraphModule.__new__.<locals>.Own")

        class Own(base):  # type: ignore[misc, valid-type]
            pass

        Own.__name__ = base.__name__
        return super().__new__(Own)

    def __init__(self, root: Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule"):
        super().__init__()
        type(self).__name__ = class_name
        targets = [str(node.target) for node in graph.nodes if node.op in ("get_attr", "call_module")]
        if isinstance(root, Module):
            self.training = root.training
            for target in targets:
                _copy_attr(root, self, target)
        else:
            for target in sorted(targets, key=lambda each: each.count(".")):
                if target not in root:
                    raise RuntimeError(f"Node referenced target {target} but it was not provided in `root`!")
                _assign_attr(root[target], self, target)
        self._graphmodule_cls_name = class_name
        self.meta: dict[str, Any] = dict(getattr(root, "meta", {}) or {})
        self.graph = graph

    @property
    def graph(self) -> Graph:
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self.__dict__["_graph"] = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        return self.__dict__["_code"]

    def recompile(self) -> PythonCode:
        """Generate forward from the graph as it is now."""
        code = self._graph.python_code(root_module="self")
        self.__dict__["_code"] = code.src
        self.__dict__["_globals"] = code.globals
        type(self).forward = _forward_from_src(code.src, code.globals)  # type: ignore[method-assign]
        return code

    def print_readable(self, print_output: bool = True, **options: Any) -> str:
        """The source of the module as a class with its forward; it is also printed, unless `print_output` is
        False."""
        body = "\n".join([f"    {line}" for line in self.code.strip().splitlines()])
        text = f"class {self._graphmodule_cls_name}(torch.nn.Module):\n{body}\n"
        if print_output:
            print(text)
        return text

    # Modules inside

    def add_submodule(self, target: str, m: Module) -> bool:
        *prefix, field = target.split(".")
        module: Module = self
        for part in prefix:
            held = getattr(module, part, None)
            if held is None:
                held = Module()
                setattr(module, part, held)
            if not isinstance(held, Module):
                return False
            module = held
        module.add_module(field, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        prefix, _, field = target.rpartition(".")
        try:
            module = self.get_submodule(prefix) if prefix else self
        except AttributeError:
            return False
        if not isinstance(getattr(module, field, None), Module):
            return False
        delattr(module, field)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Delete the submodules that no node uses."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = str(node.target).split(".")
                used |= {".".join(parts[: i + 1]) for i in range(len(parts))}
                if node.op == "call_module":
                    inner = self.get_submodule(str(node.target))
                    used |= {f"{node.target}.{name}" for name, _ in inner.named_modules() if name}
        for name, _ in list(self.named_modules()):
            if name and name not in used:
                self.delete_submodule(name)

    # Copies and text

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        attributes = {
            key: copy.deepcopy(each, memo)
            for key, each in self.__dict__.items()
            if key not in ("_graph", "_code", "_globals")
        }
        held = _CodeOnlyModule(attributes)
        made = GraphModule(held, copy.deepcopy(self.graph), self._graphmodule_cls_name)
        made.training = self.training
        for name, module in held._modules.items():
            if name not in made._modules:
                made.add_module(name, module)
        made.meta = copy.copy(self.meta)
        memo[id(self)] = made
        return made

    def __copy__(self) -> GraphModule:
        return GraphModule(self, copy.deepcopy(self.graph), self._graphmodule_cls_name)

    def __str__(self) -> str:
        note = "\n# To see more debug info, please use `graph_module.print_readable()`"
        return "\n".join([super().__repr__(), self.code, note])
