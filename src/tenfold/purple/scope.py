"""What names mean while a program is expanded: scopes, and the kinds of things a name may be bound to.

Hygiene rests on aliases. A name that a macro brings in is known by a fresh `Alias`: bound, it can be
seen only by what the same expansion brought in; unbound, it means what it meant where the macro was
defined.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from tenfold.purple.core import DefType, Ffi, Place, Var, shown
from tenfold.purple.reader import Datum, Name


class Alias:
    """A name brought in by one expansion of a macro. `key` is what its template calls it, in the macro's
    `scope`.
    """

    __slots__ = ("key", "name", "scope")

    def __init__(self, name: str, key: Any, scope: Scope):
        self.name, self.key, self.scope = name, key, scope


class LocalName(NamedTuple):
    """A local variable; `level` counts the lambdas around it."""

    var: Var
    level: int


class GlobalName(NamedTuple):
    """A definition, by its name that is unique in the program."""

    unique: str


class PreludeName(NamedTuple):
    """A definition of the prelude, expanded when it is first needed."""

    name: str


class PrimitiveName(NamedTuple):
    """A primitive under a name that an import gave it."""

    name: str


class RecordName(NamedTuple):
    """role: "make", "field", "test", or "type" for the type's own name."""

    type: DefType
    role: str
    field: int = 0

    @property
    def shown(self) -> str:
        name = shown(self.type.name)
        named = {"make": f"mk-{name}", "test": f"{name}?", "type": name}
        return named.get(self.role) or f"{name}-{self.type.fields[self.field].name}"

    @property
    def parameters(self) -> list[str]:
        return [field.name for field in self.type.fields] if self.role == "make" else ["value"]

    @property
    def place(self) -> Place:
        return self.type.place


class ForeignName(NamedTuple):
    declaration: Ffi

    @property
    def shown(self) -> str:
        return shown(self.declaration.name)

    @property
    def parameters(self) -> list[str]:
        return [parameter.type for parameter in self.declaration.parameters]

    @property
    def place(self) -> Place:
        return self.declaration.place


class Special(NamedTuple):
    """A form of the language."""

    name: str


class Rule(NamedTuple):
    pattern: Datum
    template: Datum


class Macro(NamedTuple):
    name: str
    literals: frozenset[Any]
    rules: tuple[Rule, ...]
    ellipsis: Any
    scope: Scope
    place: Place


class Transformer(NamedTuple):
    """A procedural macro."""

    name: str
    procedure: Callable[..., Any]
    scope: Scope
    place: Place


Binding: TypeAlias = (
    LocalName
    | GlobalName
    | PreludeName
    | PrimitiveName
    | RecordName
    | ForeignName
    | Special
    | Macro
    | Transformer
)


class Scope:
    """Names bound by one form, or by a whole file when `parent` is the base."""

    __slots__ = ("bindings", "level", "module", "parent")

    def __init__(self, parent: Scope | None, level: int = 0, module: Any = None):
        self.bindings: dict[Any, Binding] = {}
        self.parent, self.level = parent, level
        self.module: Any = module if module is not None else parent.module if parent else None

    def lookup(self, name: Name) -> Binding | None:
        key, scope = name.key, self
        while True:
            inner: Scope | None = scope
            while inner is not None:
                found = inner.bindings.get(key)
                if found is not None:
                    return found
                inner = inner.parent
            if not isinstance(key, Alias):
                return None
            key, scope = key.key, key.scope

    def visible(self) -> list[str]:
        """The names that can be seen from here, for suggestions."""
        names: list[str] = []
        scope: Scope | None = self
        while scope is not None:
            names += [key for key in scope.bindings if isinstance(key, str) and not key.startswith("%")]
            scope = scope.parent
        return names
