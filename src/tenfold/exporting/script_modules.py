"""Modules as TorchScript from their sources: a class for each module, in an archive that libtorch compiles
when it loads it.

Python works out what is known when the module is scripted: its numbers, its layers, and which function a
layer calls. Choices that depend on these alone are made, and loops over layers are unrolled. The rest is left
to TorchScript.
"""

from __future__ import annotations

import ast
import copy
import inspect
import io
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from tenfold.base.errors import UnsupportedError
from tenfold.exporting.script_sources import Rewriter, Sources, definition
from tenfold.serialize.archive import add_record
from tenfold.serialize.pickles import Pickler, survey
from tenfold.serialize.storages import stored
from tenfold.tensor import Tensor

__all__ = ["module_archive"]

VERSION = b"10\n"  # of the operators: those that libtorch has now


class _Object(dict[str, Any]):
    """The state of a module, under the name of its class."""

    name: str


class _Pickler(Pickler):
    """Writes modules as objects of TorchScript's classes, and parameters as tensors."""

    def write(self, obj: Any) -> None:
        if isinstance(obj, Tensor):
            self.once(id(obj), lambda: self.call(*self.rebuilding(obj, obj.requires_grad)))
        elif isinstance(obj, _Object):
            self.name(f"__torch__ {obj.name}")
            self.out += b")\x81"
            self.dict(obj)
            self.out += b"b"
        else:
            super().write(obj)


def module_archive(module: Any) -> bytes:
    """A module, its layers and their methods as an archive of TorchScript."""
    import zipfile  # brings compressors that nothing else needs

    classes = _Classes()
    root = classes.object_of(module)
    text = classes.text()
    tensors = survey(_plain(root))
    hosts, places = stored(tensors)
    storages = [np.ascontiguousarray(host).reshape(-1).view(np.uint8) for host in hosts]
    by_identity = {id(tensor): place for tensor, place in zip(tensors, places, strict=True)}
    pickle = _Pickler(by_identity, [storage.nbytes for storage in storages]).dump(root)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as zipped:
        add_record(zipped, "data.pkl", pickle)
        add_record(zipped, "code/__torch__.py", text.encode())
        add_record(zipped, "constants.pkl", b"\x80\x02).")
        add_record(zipped, "byteorder", b"little")
        for i, each in enumerate(storages):
            add_record(zipped, f"data/{i}", each.data)
        add_record(zipped, "version", VERSION)
    return file.getvalue()


def _plain(state: dict[str, Any]) -> dict[str, Any]:
    return {name: _plain(entry) if isinstance(entry, dict) else entry for name, entry in state.items()}


class _Classes:
    """The classes of a module and of all within it, one for each that is not the same object."""

    def __init__(self) -> None:
        self.sources = Sources("__torch__.")
        self.names: dict[int, str] = {}
        self.modules: list[Any] = []
        self.methods: dict[int, dict[str, str]] = {}

    def name_of(self, module: Any) -> str:
        if id(module) not in self.names:
            self.names[id(module)] = f"{type(module).__name__}_{len(self.names)}"
            self.modules.append(module)
            self.methods[id(module)] = {}
        return self.names[id(module)]

    def object_of(self, module: Any) -> _Object:
        instance = _Object()
        instance.name = self.name_of(module)
        for name, tensor in (*module._parameters.items(), *module._buffers.items()):
            if tensor is not None:
                instance[name] = tensor
        instance["training"] = module.training
        for name, child in module._modules.items():
            if child is not None:
                instance[name] = self.object_of(child)
        return instance

    def text(self) -> str:
        """The source of `forward`, of all methods that it calls, and of the classes."""
        waiting = [(self.modules[0], "forward")]
        reached = {(id(self.modules[0]), "forward")}
        while waiting:
            module, method = waiting.pop(0)
            rewriter = _MethodRewriter(self, module, getattr(type(module), method))
            self.methods[id(module)][method] = rewriter.text(method)
            for other, called in rewriter.calls:
                if (id(other), called) not in reached:
                    reached.add((id(other), called))
                    waiting.append((other, called))
        classes = [self._class(module) for module in reversed(self.modules)]
        return "\n".join([*self.sources.written, *classes]) + "\n"

    def _class(self, module: Any) -> str:
        parameters = [name for name, parameter in module._parameters.items() if parameter is not None]
        buffers = [name for name, buffer in module._buffers.items() if buffer is not None]
        quoted = lambda names: "".join([f'"{name}", ' for name in names])
        lines = [
            f"class {self.names[id(module)]}(Module):",
            f"  __parameters__ = [{quoted(parameters)}]",
            f"  __buffers__ = [{quoted(buffers)}]",
        ]
        types = dict.fromkeys((*parameters, *buffers), "Tensor")
        types["training"] = "bool"
        for name, child in module._modules.items():
            if child is not None:
                types[name] = f"__torch__.{self.names[id(child)]}"
        if not all(name.isidentifier() for name in types):
            lines.append("  __annotations__ = []")
        for name, kind in types.items():
            plain = name.isidentifier()
            lines.append(f"  {name} : {kind}" if plain else f'  __annotations__["{name}"] = {kind}')
        for written in self.methods[id(module)].values():
            lines += [f"  {line}" for line in written.splitlines()]
        return "\n".join(lines)


class _MethodRewriter(Rewriter):
    """Rewrites a method: `self` and what it has are known."""

    def __init__(self, classes: _Classes, module: Any, function: Any):
        function = inspect.unwrap(function)
        if not isinstance(function, FunctionType):
            raise UnsupportedError(f"{type(module).__name__} has no method that is a Python function")
        super().__init__(classes.sources, function)
        self.classes, self.module = classes, module
        self.calls: list[tuple[Any, str]] = []
        self.unrolling: list[bool] = []  # of each loop around the statement, whether it is unrolled
        self.self_name = function.__code__.co_varnames[0]
        self.known = {self.self_name: module}
        self.paths = dict(_paths(module, ast.Name(self.self_name, ast.Load())))

    def text(self, name: str) -> str:
        source = definition(self.function)
        first = source.args.args[0]
        rewritten = self.visit(source)
        first.annotation = ast.parse(f"__torch__.{self.classes.name_of(self.module)}", mode="eval").body
        rewritten.name = name
        return ast.unparse(ast.fix_missing_locations(rewritten))

    def value_of(self, node: ast.expr, static: Any) -> ast.expr | None:
        """A parameter, buffer or layer by its path from `self`."""
        if id(static) in self.paths and not isinstance(static, (bool, int, float, str, type(None))):
            return copy.deepcopy(self.paths[id(static)])
        return super().value_of(node, static)

    def callee_of(self, node: ast.expr, callee: Any) -> ast.expr:
        """A layer is called by its `forward`, and a method of one by its name."""
        owner, name = (callee, "forward") if id(callee) in self.paths else (None, "")
        if isinstance(callee, MethodType) and id(callee.__self__) in self.paths:
            owner, name = callee.__self__, callee.__func__.__name__
        if owner is None or not hasattr(owner, "_parameters"):
            return super().callee_of(node, callee)
        self.calls.append((owner, name))
        return ast.Attribute(copy.deepcopy(self.paths[id(owner)]), name, ast.Load())

    def visit_For(self, node: ast.For) -> Any:
        """A loop over layers is unrolled."""
        known, items = self.static(node.iter)
        several = list(items) if known and hasattr(items, "__iter__") else []
        unrolls = any(self._holds_module(value) for value in several)
        self.unrolling.append(unrolls)
        try:
            return self._unrolled(node, several) if unrolls else super().visit_For(node)
        finally:
            self.unrolling.pop()

    def visit_While(self, node: ast.While) -> Any:
        self.unrolling.append(False)
        try:
            return super().visit_While(node)
        finally:
            self.unrolling.pop()

    def _unrolled(self, node: ast.For, items: list[Any]) -> list[ast.stmt]:
        """The body once for each item, and then the `else`: a loop without `break` always reaches it."""
        unrolled: list[ast.stmt] = []
        for item in items:
            self._bind(node.target, item)
            unrolled += self.statements([copy.deepcopy(one) for one in node.body])
        unrolled += self.statements(node.orelse) if node.orelse else []
        return unrolled

    def visit_Break(self, node: ast.Break | ast.Continue) -> ast.AST:
        if self.unrolling and self.unrolling[-1]:
            word = type(node).__name__.lower()
            self.refuse(node, f"a loop over layers is unrolled, and has no {word}", "put the rest into an if")
        return node

    visit_Continue = visit_Break

    def _holds_module(self, item: Any) -> bool:
        parts = item if isinstance(item, tuple) else (item,)
        return any(hasattr(part, "_parameters") for part in parts)

    def _bind(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self.known[target.id] = value
        elif isinstance(target, ast.Tuple):
            for element, part in zip(target.elts, value, strict=True):
                self._bind(element, part)


def _paths(module: Any, path: ast.expr) -> Any:
    """Each layer, parameter and buffer within a module, by its identity, and the expression that reads it."""
    yield id(module), path
    for name, member in (*module._parameters.items(), *module._buffers.items(), *module._modules.items()):
        if member is None:
            continue
        plain = name.isidentifier()
        inner: ast.expr = (
            ast.Attribute(path, name, ast.Load())
            if plain
            else ast.Call(ast.Name("getattr", ast.Load()), [path, ast.Constant(name)], [])
        )
        if isinstance(member, Tensor):
            yield id(member), inner
        else:
            yield from _paths(member, inner)
