"""From data to the core language: programs, files that import each other, and the prelude.

A file is taken in two passes. The first expands just enough of each top-level form to learn what it
defines, so that a function may mention what comes later; the second expands the rest. What follows a form
that evaluates data or loads a file is expanded when that has run, as it may define more. Definitions of the
prelude come along only when something mentions them.
"""

from __future__ import annotations

import functools
import itertools
from collections import deque
from collections.abc import Iterable, Iterator, MutableSequence
from pathlib import Path
from typing import Any

from tenfold.purple import conditions, core, forms, network_rows, quasi
from tenfold.purple.core import Form, Place
from tenfold.purple.definitions import DEFINITIONS
from tenfold.purple.errors import PurpleError
from tenfold.purple.evaluation import first_evaluation
from tenfold.purple.expressions import Expressions, defined_name, is_private
from tenfold.purple.forms import FORMS, is_sequence
from tenfold.purple.libraries import REWRITTEN
from tenfold.purple.procedural import Evaluate
from tenfold.purple.reader import Datum, Name, Sequence, read, read_named
from tenfold.purple.scope import (
    GlobalName,
    PreludeName,
    Scope,
    Special,
)
from tenfold.purple.syntax import parse_rules
from tenfold.purple.top_level import TOP_LEVEL, exports

FAMILIES = (forms, conditions, quasi)  # importing them has declared the forms
PRELUDE = Path(__file__).with_name(core.PRELUDE_FILE)
PARTS = (
    core.PRELUDE_FILE,
    "scheme.purple",
    "exceptions.purple",
    "ports.purple",
    "reading.purple",
    "models.purple",
    "training.purple",
    "gradients.purple",
    "checks.purple",
)  # read as one text


@functools.cache
def prelude_data() -> tuple[str, list[Datum]]:
    """The prelude's text and its data, which no one changes."""
    text = "\n".join(PRELUDE.with_name(name).read_text(encoding="utf-8") for name in PARTS)
    text += "\n" + network_rows.definitions(text)
    return text, read(text, PRELUDE.name)


class Module:
    """A file's names. `prefix` makes its globals unique; `exports` is None when it exports all it defines."""

    def __init__(self, name: str, file: str, prefix: str, base: Scope):
        self.name, self.file, self.prefix = name, file, prefix
        self.scope = Scope(base, module=self)
        self.exports: dict[str, Place] | None = None


class Expander(Expressions):
    """Expands forms one after another into `forms`. `evaluate` runs the procedures of macros. `late`: names
    that are not defined yet may come later (REPL)."""

    def __init__(self, evaluate: Evaluate, late: bool = False):
        super().__init__(evaluate, late)
        self.sources: dict[str, str] = {}
        self.included = 0  # files, each time that one is
        self.base = Scope(None)
        self.base.bindings.update(
            {name: Special(name) for name in (*FORMS, *TOP_LEVEL, *DEFINITIONS, *REWRITTEN)}
        )
        self.modules: dict[str, Module] = {}
        self.libraries: dict[tuple[str, ...], Module] = {}
        self.loading: list[tuple[str, Place]] = []
        self.prelude_forms: list[tuple[int, Form]] = []
        self.definitions: dict[str, Sequence] = {}  # by unique name, for documentation
        self._load_prelude()
        self.main = Module("main", "<repl>", "", self.base)

    def program(self, file: str) -> core.Program:
        return core.Program(tuple(self.forms), self.types, self.globals, file, self.sources)

    def steps(self, text: str, file: str) -> Iterator[list[Form]]:
        """Expand a text's forms in the main module, step by step."""
        self.sources[file] = text
        self.main.file = file
        return self.steps_of(read(text, file), self.main)

    def steps_of(self, data: Iterable[Datum], module: Module) -> Iterator[list[Form]]:
        """Expand data in a module. Those of `forms` that are new come in steps, each to be run before the
        next is asked for: the first ends with the first form that evaluates data or loads a file, and each
        form after it is a step, which may mention what is not defined yet."""
        before = len(self.forms)
        waiting: deque[tuple[Datum, str | None]] = deque()
        self._declare(list(data), module, waiting)
        self.late = self.late or first_evaluation(self.forms[before:]) is not None
        while True:
            own = self._late_step(waiting, module) if self.late else self._first_step(waiting, module)
            yield self._add(own, before)
            if not waiting:
                return
            before = len(self.forms)

    def _first_step(self, waiting: deque[tuple[Datum, str | None]], module: Module) -> list[Form]:
        """The forms up to the first that evaluates data, or all, which then mention only what is defined."""
        own: list[Form] = []
        undefined = self.undefined = []
        refused: PurpleError | None = None
        while waiting and not self.late and refused is None:
            try:
                own.append(self._top(*waiting.popleft(), module))
                self.late = first_evaluation(own[-1:]) is not None
            except PurpleError as error:
                refused = error
        self.undefined = None
        if undefined and not self.late:
            raise undefined[0]
        if refused is not None:
            raise refused
        return own

    def _late_step(self, waiting: deque[tuple[Datum, str | None]], module: Module) -> list[Form]:
        """The next form, at whose head there may be a macro by now."""
        found: list[tuple[Datum, str | None]] = []
        if waiting:
            datum, unique = waiting.popleft()
            if unique is None:
                self._declare([datum], module, found)
            else:
                found.append((datum, unique))
        return [self._top(datum, unique, module) for datum, unique in found]

    def run_data(self, data: Iterable[Datum]) -> list[Form]:
        """Expand data in the main module; those of `forms` that are new."""
        before = len(self.forms)
        self.expand_forms(data, self.main)
        return self.forms[before:]

    def _load_prelude(self) -> None:
        file = PRELUDE.name
        self.sources[file], data = prelude_data()
        self.prelude = Module("prelude", file, "prelude::", self.base)
        self.prelude_data: dict[str, tuple[int, Sequence]] = {}
        for index, form in enumerate(data):
            assert isinstance(form, Sequence)
            head, target = form.value[0].value, form.value[1]
            if head == "define-syntax":
                assert isinstance(target, Name)
                self.base.bindings[target.value] = parse_rules(target, form.value[2], self.prelude.scope)
                continue
            if head == "deftype":
                for each in self.define_type(form, self.prelude):
                    self.base.bindings[each] = self.prelude.scope.bindings[each]
                self.prelude_forms.append((index, self.forms.pop()))
                continue
            name = target.value[0].value if isinstance(target, Sequence) else target.value
            self.prelude_data[name] = index, form
            scope = self.prelude.scope if is_private(name) else self.base
            scope.bindings[name] = PreludeName(name)

    def need(self, name: str) -> str:
        """The unique name of a prelude definition, which is expanded now if it was not yet."""
        unique = f"prelude::{name}"
        if unique not in self.globals:
            index, form = self.prelude_data[name]
            self.globals[unique] = core.GlobalInfo(unique, form.place)
            depth, self.depth = self.depth, 0
            defined = FORMS["define"](self, form, self.prelude.scope)
            self.depth = depth
            self.prelude_forms.append((index, defined))
        return unique

    def take_prelude(self) -> list[Form]:
        """What of the prelude has been expanded since the last time, in its own order."""
        taken = [form for _, form in sorted(self.prelude_forms, key=lambda each: each[0])]
        self.prelude_forms.clear()
        return taken

    def expand_forms(self, data: Iterable[Datum], module: Module) -> None:
        """The forms of a module; into `forms` go the prelude's that they need, imported ones, and then
        they.
        """
        before = len(self.forms)
        waiting: list[tuple[Datum, str | None]] = []
        self._declare(list(data), module, waiting)
        self._add([self._top(datum, unique, module) for datum, unique in waiting], before)

    def _add(self, own: list[Form], before: int) -> list[Form]:
        """Add what a module's own forms need of the prelude, and them, to `forms`; those that are new."""
        self.forms[before:before] = self.take_prelude()
        self.forms += own
        return self.forms[before:]

    def _declare(
        self, data: list[Datum], module: Module, waiting: MutableSequence[tuple[Datum, str | None]]
    ) -> None:
        """First pass: learn what each form defines."""
        queue = list(reversed(data))
        while queue:
            datum = self.expand_head(queue.pop(), module.scope)
            special = self.special(datum, module.scope)
            if is_sequence(special, datum) and isinstance(datum, Sequence):
                queue += reversed(datum.value[1:])
            elif special == "define" and isinstance(datum, Sequence):
                unique = self.declare_global(defined_name(datum), module)
                self.definitions[unique] = datum
                waiting.append((datum, unique))
            elif special in DEFINITIONS and isinstance(datum, Sequence):
                queue += reversed(DEFINITIONS[special](datum, self.numbers))
            elif special == "module" and isinstance(datum, Sequence):
                queue += reversed(TOP_LEVEL["module"](self, datum, module))
            elif special in TOP_LEVEL and isinstance(datum, Sequence):
                TOP_LEVEL[special](self, datum, module)
            else:
                waiting.append((datum, None))

    def _top(self, datum: Datum, unique: str | None, module: Module) -> Form:
        if unique is None:
            return self.expand(datum, module.scope)
        assert isinstance(datum, Sequence)
        return FORMS["define"](self, datum, module.scope)

    def declare_global(self, name: Name, module: Module) -> str:
        found = module.scope.bindings.get(name.key)
        if isinstance(found, GlobalName) and found.unique in self.globals:
            self.globals[found.unique].assigned = True
            return found.unique
        unique = module.prefix + name.value
        if name.alias is not None or unique in self.globals:
            unique = f"{module.prefix}{name.value}%{next(self.numbers)}"
        self.globals[unique] = core.GlobalInfo(unique, name.place)
        module.scope.bindings[name.key] = GlobalName(unique)
        return unique

    def define_type(self, datum: Sequence, module: Module) -> list[str]:
        return TOP_LEVEL["deftype"](self, datum, module)

    def new_module(self, stem: str, path: str) -> Module:
        """A module whose names differ from all others'."""
        known = (*self.modules.values(), *self.libraries.values())
        taken = {module.prefix for module in known} | {"prelude::"}
        prefixes = itertools.chain([f"{stem}::"], (f"{stem}{i}::" for i in itertools.count(2)))
        return Module(stem, path, next(prefix for prefix in prefixes if prefix not in taken), self.base)

    def exports(self, module: Module) -> dict[str, Any]:
        return exports(module)

    def import_file(self, path: str, place: Place) -> Module:
        """The module of a file, expanded when it is first imported."""
        known = self.modules.get(path)
        if known is not None:
            if any(path == each for each, _ in self.loading):
                raise PurpleError(f"{path} imports itself, by way of others", "syntax", place)
            return known
        text = read_named(path, place)
        module = self.modules[path] = self.new_module(Path(path).stem, path)
        self.sources[path] = text
        self.loading.append((path, place))
        self.expand_forms(read(text, path), module)
        self.loading.pop()
        for name, where in (module.exports or {}).items():
            if name not in module.scope.bindings:
                raise PurpleError(f"{name} is exported but not defined", "unbound", where)
        return module
