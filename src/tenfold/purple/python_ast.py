"""Making Python's syntax trees: small constructors, each of which gives its node a place in a Purple file."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable
from typing import Any

from tenfold.purple import core, names
from tenfold.purple.core import Call, Lambda, Place, Var
from tenfold.purple.flow import Flow
from tenfold.purple.prims.procedures import ASSIGNED
from tenfold.purple.printing import PROCEDURE_NAMES
from tenfold.purple.values import NIL, UNSPECIFIED

FUNCTION_NUMBERS = itertools.count(1)


def mangle(name: str) -> str:
    """A Python identifier that reads like the name; different names may give the same one."""
    return re.sub(
        r"\W", "_", name.replace("->", "_to_").replace("?", "_p").replace("!", "_x"), flags=re.ASCII
    )


class Unit:
    """What the code of one session shares: constants, functions by name, and places by file, line and
    column.
    """

    def __init__(self, namespace: dict[str, Any], primitive: Callable[[str | core.DefType | core.Ffi], Any]):
        self.namespace, self.primitive = namespace, primitive
        self.flow = Flow()
        self.count = 0
        self.constants: dict[Any, str] = {}
        self.functions: dict[str, Lambda] = {}
        self.places: dict[tuple[str, int, int], Place] = {}
        self.calls: dict[tuple[str, int, int], Call] = {}
        self.callees: dict[core.Expr, str] = {}  # the variables that keep what expressions of calls give
        self.given: set[Place] = set()  # where functions call, in tail position, what they were given
        self.defined: dict[Lambda, str] = {}  # by which names programs call them
        self.operations: dict[tuple[str, int, int], core.Expr] = {}  # of the library, and each `apply`
        self.global_names: dict[str, str] = {}
        self.local_names: dict[str, str] = {}  # what the program calls them
        # Variables that may change between two readings of them.
        self.unsteady: set[str] = set()

    def global_name(self, name: str) -> str:
        found = self.global_names.get(name)
        if found is None:
            self.count += 1
            found = self.global_names[name] = f"g{self.count}_{mangle(name)}"
            self.unsteady.add(found)
        return found

    def variable(self, var: Var) -> str:
        """A variable's name in Python."""
        name = f"{mangle(var.name)}_{var.number}{ASSIGNED if var.assigned else ''}"
        self.local_names[name] = var.name
        if var.assigned:
            self.unsteady.add(name)
        return name

    def constant(self, value: Any) -> str:
        """The name under which a value that Python's syntax lacks is found."""
        key = id(value)
        if key not in self.constants:
            self.count += 1
            self.constants[key] = f"c{self.count}"
            self.namespace[self.constants[key]] = value
        return self.constants[key]

    def primitive_name(self, name: str) -> str:
        mangled = f"p_{mangle(name)}" if names.row_of(name) or not re.search(r"\W", name) else None
        mangled = mangled or "p_" + "".join(each if each.isalnum() else f"_{ord(each):x}" for each in name)
        if mangled not in self.namespace:
            self.namespace[mangled] = self.primitive(name)
        return mangled

    def function_name(self, function: Lambda) -> str:
        name = f"f{next(FUNCTION_NUMBERS)}_{mangle(function.name)}"
        self.functions[name] = function
        PROCEDURE_NAMES[name] = function.name
        return name


class Nodes:
    """Constructors of nodes, for one Python function under way: `block` are its statements so far."""

    def __init__(self, unit: Unit):
        self.unit = unit
        self.block: list[ast.stmt] = []

    def at(self, node: Any, place: Place) -> Any:
        line, column = max(place.line, 1), max(place.column - 1, 0)
        node.lineno = node.end_lineno = line
        node.col_offset, node.end_col_offset = column, column + 1
        return node

    def mark(self, place: Place) -> None:
        self.unit.places.setdefault((place.file, max(place.line, 1), max(place.column - 1, 0)), place)

    def note(self, node: core.Expr) -> None:
        """Keep an operation whose errors may be told in another's name: see blame.py."""
        place = node.place
        if core.is_library_text(place) or (isinstance(node, core.Prim) and node.name == "apply"):
            key = place.file, max(place.line, 1), max(place.column - 1, 0)
            self.unit.operations[key] = node

    def load(self, name: str, place: Place) -> ast.expr:
        return self.at(ast.Name(name, ast.Load()), place)

    def python(self, value: Any, place: Place) -> ast.expr:
        return self.at(ast.Constant(value), place)

    def call(self, function: str, arguments: list[ast.expr], place: Place, keywords: Any = ()) -> ast.expr:
        self.mark(place)
        return self.at(ast.Call(self.load(function, place), arguments, list(keywords)), place)

    def compare(self, left: ast.expr, op: Any, right: ast.expr, place: Place) -> ast.expr:
        return self.at(ast.Compare(left, [op()], [right]), place)

    def choose(self, test: ast.expr, then: ast.expr, otherwise: ast.expr, place: Place) -> ast.expr:
        return self.at(ast.IfExp(test, then, otherwise), place)

    def walrus(self, name: str, value: ast.expr, place: Place) -> ast.expr:
        return self.at(ast.NamedExpr(self.at(ast.Name(name, ast.Store()), place), value), place)

    def type_of(self, value: ast.expr, place: Place) -> ast.expr:
        return self.at(ast.Call(self.load("type", place), [value], []), place)

    def is_type(self, value: ast.expr, kind: str, place: Place) -> ast.expr:
        return self.compare(self.type_of(value, place), ast.Is, self.load(kind, place), place)

    def assign(self, name: str, value: ast.expr, place: Place) -> None:
        self.block.append(self.at(ast.Assign([self.at(ast.Name(name, ast.Store()), place)], value), place))

    def temp(self) -> str:
        self.unit.count += 1
        return f"t{self.unit.count}"

    def atom(self, value: ast.expr, place: Place) -> tuple[ast.expr, Callable[[], ast.expr]]:
        """The value to be computed once, and how to read it after that."""
        if isinstance(value, ast.Constant):
            return value, lambda: self.python(value.value, place)
        if isinstance(value, ast.Name) and value.id not in self.unit.unsteady:
            return value, lambda: self.load(value.id, place)
        name = self.temp()
        return self.walrus(name, value, place), lambda: self.load(name, place)

    def constant(self, value: Any, place: Place) -> ast.expr:
        if value is NIL:
            return self.load("NIL", place)
        if value is UNSPECIFIED:
            return self.load("UNSPECIFIED", place)
        if type(value) in (int, bool, str) or (
            type(value) is float and value == value and abs(value) < 1e308
        ):
            return self.python(value, place)
        return self.load(self.unit.constant(value), place)

    def variable(self, var: Var) -> str:
        return self.unit.variable(var)
