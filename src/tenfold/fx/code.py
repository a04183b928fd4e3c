"""Python code of a graph: a function whose statements are its nodes, and the objects that it names."""

from __future__ import annotations

import builtins
import json
import keyword
import math
import operator
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tenfold.base.devices import Device
from tenfold.base.dtypes import DType
from tenfold.base.size import Size
from tenfold.fx.names import Namespace, qualified_name
from tenfold.fx.node import Node, map_arg

if TYPE_CHECKING:
    from tenfold.fx.graph import Graph

# Python's operators, by the functions of `operator`.
MAGIC = {
    "eq": "{} == {}", "ne": "{} != {}", "lt": "{} < {}", "gt": "{} > {}", "le": "{} <= {}", "ge": "{} >= {}",
    "pos": "+{}", "neg": "-{}", "invert": "~{}",
    "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "floordiv": "{} // {}", "truediv": "{} / {}",
    "mod": "{} % {}", "pow": "{} ** {}", "lshift": "{} << {}", "rshift": "{} >> {}", "and_": "{} & {}",
    "or_": "{} | {}", "xor": "{} ^ {}", "getitem": "{}[{}]", "matmul": "{} @ {}",
}  # fmt: skip
INPLACE = {
    "iadd": "{} += {}", "iand": "{} &= {}", "ifloordiv": "{} //= {}", "ilshift": "{} <<= {}",
    "imod": "{} %= {}", "imul": "{} *= {}", "imatmul": "{} @= {}", "ior": "{} |= {}", "ipow": "{} **= {}",
    "irshift": "{} >>= {}", "isub": "{} -= {}", "itruediv": "{} /= {}", "ixor": "{} ^= {}",
    "setitem": "{}[{}] = {}",
}  # fmt: skip


@dataclass
class PythonCode:
    """The source of a function, and the global names that it needs."""

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int] | None = None
    _prologue_start: int = 0


@dataclass
class _Writer:
    graph: Graph
    root: str
    globals: dict[str, Any] = field(default_factory=dict)
    wrapped: dict[str, None] = field(default_factory=dict)
    names: Namespace = field(default_factory=Namespace)

    def name_of(self, hint: str, obj: Any) -> str:
        """The global name by which the source calls an object."""
        parts = hint.split(".")
        package = sys.modules["tenfold"]
        if parts[0] == "torch" and _reached(package, parts[1:]) is obj:
            self.globals["torch"] = package
            return hint
        if getattr(builtins, hint, None) is obj:
            return hint
        if getattr(obj, "__module__", None) == "_operator":
            hint = f"_{hint}"
        name = self.names.create_name(hint.replace(".", "_"), obj)
        self.globals[name] = obj
        return name

    def shown(self, arg: Any) -> str:
        """An argument as source."""
        if isinstance(arg, Node):
            return arg.name
        if isinstance(arg, tuple) and hasattr(arg, "_fields"):
            return f"{self.name_of(qualified_name(type(arg)), type(arg))}({', '.join(map(self.shown, arg))})"
        if isinstance(arg, tuple) and not isinstance(arg, Size):
            return f"({', '.join(map(self.shown, arg))}{',' if len(arg) == 1 else ''})"
        if isinstance(arg, list):
            return f"[{', '.join(map(self.shown, arg))}]"
        if isinstance(arg, dict):
            return "{" + ", ".join([f"{self.shown(k)}: {self.shown(v)}" for k, v in arg.items()]) + "}"
        if isinstance(arg, slice):
            return f"slice({', '.join(map(self.shown, (arg.start, arg.stop, arg.step)))})"
        return self.constant(arg)

    def constant(self, arg: Any) -> str:
        if isinstance(arg, DType):
            return self.name_of(f"torch.{arg.name}", getattr(sys.modules["tenfold"], arg.name, arg))
        if isinstance(arg, Device):
            self.globals["device"] = Device
            return f"device(type='{arg.type}'" + ("" if arg.index is None else f", index={arg.index}") + ")"
        if isinstance(arg, float) and not math.isfinite(arg):
            self.globals["inf"], self.globals["nan"] = math.inf, math.nan
            return repr(arg)
        if callable(arg):
            return self.name_of(qualified_name(arg), arg)
        if isinstance(arg, (int, float, complex, str, bytes, bool, type(None), type(Ellipsis), range, Size)):
            return repr(tuple(arg)) if isinstance(arg, Size) else "Ellipsis" if arg is ... else repr(arg)
        return self.name_of(type(arg).__name__.lower(), arg)

    def arguments(self, args: Any, kwargs: Any) -> str:
        return ", ".join([*map(self.shown, args), *[f"{key} = {self.shown(v)}" for key, v in kwargs.items()]])

    def statement(self, node: Node) -> str:
        if node.op == "get_attr":
            return f"{node} = {_dotted(self.root, str(node.target))}"
        if node.op == "call_module":
            return (
                f"{node} = {_dotted(self.root, str(node.target))}({self.arguments(node.args, node.kwargs)})"
            )
        if node.op == "call_method":
            called = _dotted(self.shown(node.args[0]), str(node.target))
            return f"{node} = {called}({self.arguments(node.args[1:], node.kwargs)})"
        if node.op == "output":
            return f"return {self.shown(node.args[0])}"
        return self.call(node)

    def call(self, node: Node) -> str:
        target: Any = node.target
        name = getattr(target, "__name__", "")
        if getattr(operator, name, None) is target and not node.kwargs:
            parts = [self.shown(arg) for arg in node.args]
            if name in MAGIC:
                return f"{node} = {MAGIC[name].format(*parts)}"
            if name in INPLACE:
                return f"{INPLACE[name].format(*parts)};  {node} = {parts[0]}"
        called = self.name_of(qualified_name(target), target)
        if called == "getattr" and len(node.args) == 2 and str(node.args[1]).isidentifier():
            return f"{node} = {_dotted(self.shown(node.args[0]), str(node.args[1]))}"
        if node.meta.get("is_wrapped"):
            self.wrapped[called] = None
        return f"{node} = {called}({self.arguments(node.args, node.kwargs)})"


def _reached(module: Any, parts: list[str]) -> Any:
    for part in parts:
        module = getattr(module, part, None)
    return module


def _dotted(base: str, target: str) -> str:
    for part in target.split("."):
        plain = part.isidentifier() and not keyword.iskeyword(part)
        base = f"{base}.{part}" if plain else f"getattr({base}, {json.dumps(part)})"
    return base


def _last_uses(graph: Graph) -> dict[Node, list[Node]]:
    """The nodes whose values each node is the last to use."""
    seen: set[Node] = set()
    found: dict[Node, list[Node]] = {}
    for node in reversed(graph.nodes):

        def note(used: Node, user: Node = node) -> Node:
            if used not in seen:
                seen.add(used)
                found.setdefault(user, []).append(used)
            return used

        map_arg(node.args, note)
        map_arg(node.kwargs, note)
    return found


def python_code(graph: Graph, root: str) -> PythonCode:
    writer = _Writer(graph, root)
    for node in graph.nodes:
        writer.names.create_name(node.name, node)
    last_uses = _last_uses(graph)
    parameters: list[str] = []
    body: list[str] = []
    for node in graph.nodes:
        if node.op == "placeholder":
            default = f" = {writer.shown(node.args[0])}" if node.args else ""
            parameters.append(f"{node.target}{_annotation(writer, node)}{default}")
            raw = str(node.target).replace("*", "")
            if raw != node.name:
                body.append(f"{node} = {raw}")
            continue
        freed = [] if node.op == "output" else list(last_uses.get(node, []))
        if not node.users and node.op != "output":
            freed.append(node)
        release = f";  {' = '.join([*map(repr, freed), 'None'])}" if freed else ""
        body.append(writer.statement(node) + release)
    if parameters[:1] != [root]:
        parameters.insert(0, root)
    if writer.wrapped:
        writer.globals["torch"] = sys.modules["tenfold"]
    wraps = "".join([f"torch.fx.wrap('{name}')\n" for name in writer.wrapped])
    lines = "".join([f"    {line}\n" for line in body or ["pass"]])
    return PythonCode(f"{wraps}\n\n\ndef forward({', '.join(parameters)}):\n{lines}    ", writer.globals)


def _annotation(writer: _Writer, node: Node) -> str:
    if node.type is None:
        return ""
    name = writer.name_of(qualified_name(node.type), node.type) if isinstance(node.type, type) else None
    return f" : {name}" if name else ""
