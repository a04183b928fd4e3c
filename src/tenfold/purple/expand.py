"""From data to the core language: names are resolved, macros and derived forms expanded, bodies put in
order.

A file is taken in two passes. The first expands just enough of each top-level form to learn what it
defines, so that a function may mention what comes later; the second expands the rest. Definitions of the
prelude come along only when something mentions them.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tenfold.errors import did_you_mean
from tenfold.purple import conditions, core, forms, names, quasi
from tenfold.purple.core import Expr, Form, Literal, Place, Var
from tenfold.purple.errors import PurpleError
from tenfold.purple.forms import FORMS, parse_parameters
from tenfold.purple.reader import Datum, Name, Sequence, Vector, read, read_source, shortened, to_value
from tenfold.purple.scope import (
    Alias,
    ForeignName,
    GlobalName,
    LocalName,
    Macro,
    PreludeName,
    RecordName,
    Scope,
    Special,
)
from tenfold.purple.syntax import expand_macro, parse_rules
from tenfold.purple.top_level import TOP_LEVEL
from tenfold.purple.values import NIL, UNSPECIFIED, Keyword

FAMILIES = (forms, conditions, quasi)  # importing them has declared the forms
PRELUDE = Path(__file__).with_name("prelude.purple")
DEPTH_LIMIT = 1000
NESTED_EXPANSIONS = 10_000


@functools.cache
def prelude_data() -> tuple[str, list[Datum]]:
    """The prelude's text and its data, which no one changes."""
    text = PRELUDE.read_text(encoding="utf-8")
    return text, read(text, PRELUDE.name)


class Module:
    """A file's names. `prefix` makes its globals unique; `exports` is None when it exports all it defines."""

    def __init__(self, name: str, file: str, prefix: str, base: Scope):
        self.name, self.file, self.prefix = name, file, prefix
        self.scope = Scope(base, module=self)
        self.exports: dict[str, Place] | None = None


def expand_program(text: str, file: str) -> core.Program:
    """The whole program that a file's text is, with what it imports and what it needs of the prelude."""
    expander = Expander()
    expander.run(text, file)
    return expander.program(file)


class Expander:
    """Expands forms one after another into `forms`. `late`: names that are not defined yet may come
    later (REPL).
    """

    def __init__(self, late: bool = False):
        self.late = late
        self.sources: dict[str, str] = {}
        self.forms: list[Form] = []
        self.types: dict[str, core.DefType] = {}
        self.globals: dict[str, core.GlobalInfo] = {}
        self.base = Scope(None)
        self.base.bindings.update({name: Special(name) for name in (*FORMS, *TOP_LEVEL)})
        self.modules: dict[str, Module] = {}
        self.loading: list[tuple[str, Place]] = []
        self.numbers = itertools.count(1)
        self.depth = 0
        self.made = [0]  # data made by macros
        self.prelude_forms: list[tuple[int, Form]] = []
        self.definitions: dict[str, Sequence] = {}  # by unique name, for documentation
        self._load_prelude()
        self.main = Module("main", "<repl>", "", self.base)

    def program(self, file: str) -> core.Program:
        return core.Program(tuple(self.forms), self.types, self.globals, file, self.sources)

    def run(self, text: str, file: str) -> list[Form]:
        """Expand a text's forms in the main module; those of `forms` that are new."""
        before = len(self.forms)
        self.sources[file] = text
        self.main.file = file
        self.expand_forms(read(text, file), self.main)
        return self.forms[before:]

    # The prelude: read at once, expanded by need

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

    # Top level

    def expand_forms(self, data: Iterable[Datum], module: Module) -> None:
        """The forms of a module; into `forms` go the prelude's that they need, imported ones, and then
        they.
        """
        before = len(self.forms)
        waiting: list[tuple[Datum, str | None]] = []
        self._declare(list(data), module, waiting)
        own = [self._top(datum, unique, module) for datum, unique in waiting]
        self.forms[before:before] = self.take_prelude()
        self.forms += [each for each in own if each is not None]

    def _declare(self, data: list[Datum], module: Module, waiting: list[tuple[Datum, str | None]]) -> None:
        """First pass: learn what each form defines."""
        queue = list(reversed(data))
        while queue:
            datum = self.expand_head(queue.pop(), module.scope)
            special = self.special(datum, module.scope)
            if special in ("begin", "do") and isinstance(datum, Sequence):
                queue += reversed(datum.value[1:])
            elif special == "define" and isinstance(datum, Sequence):
                unique = self.declare_global(defined_name(datum), module)
                self.definitions[unique] = datum
                waiting.append((datum, unique))
            elif special == "module" and isinstance(datum, Sequence):
                queue += reversed(TOP_LEVEL["module"](self, datum, module))
            elif special in TOP_LEVEL and isinstance(datum, Sequence):
                TOP_LEVEL[special](self, datum, module)
            else:
                waiting.append((datum, None))

    def _top(self, datum: Datum, unique: str | None, module: Module) -> Form | None:
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

    # Expressions

    def expand(self, datum: Datum, scope: Scope) -> Expr:
        if self.depth >= DEPTH_LIMIT:
            raise PurpleError(
                f"expressions are nested too deeply: more than {DEPTH_LIMIT} levels", "syntax", datum.place
            )
        self.depth += 1
        try:
            datum = self.expand_head(datum, scope)
            if isinstance(datum, Name):
                return self.expand_name(datum, scope)
            if isinstance(datum, Sequence):
                return self.expand_list(datum, scope)
            if isinstance(datum, Vector):
                return Literal(to_value(datum), place=datum.place)
            return Literal(datum.value, place=datum.place)
        finally:
            self.depth -= 1

    def expand_head(self, datum: Datum, scope: Scope) -> Datum:
        """The datum with the macro at its head expanded, again and again, until there is none."""
        for _ in range(NESTED_EXPANSIONS):
            if not (isinstance(datum, Sequence) and isinstance(datum.value[0], Name)):
                return datum
            macro = scope.lookup(datum.value[0])
            if not isinstance(macro, Macro):
                return datum
            datum = expand_macro(macro, datum, scope, self.made)
        raise PurpleError("macros expand without end", "syntax", datum.place)

    def special(self, datum: Datum, scope: Scope) -> str | None:
        """The name of the form that this is a use of."""
        if isinstance(datum, Sequence) and isinstance(datum.value[0], Name):
            found = scope.lookup(datum.value[0])
            if isinstance(found, Special):
                return found.name
        return None

    def expand_list(self, datum: Sequence, scope: Scope) -> Expr:
        name = self.special(datum, scope)
        if name is None:
            return self.expand_call(datum, scope)
        if datum.tail is not None:
            raise PurpleError("a form cannot end with a dot", "syntax", datum.place)
        if name in TOP_LEVEL:
            raise PurpleError(f"{name} may stand only at the top level", "syntax", datum.place)
        if name == "define":
            raise PurpleError(
                "define may stand only at the top level or in a body",
                "syntax",
                datum.place,
                help="put it in a (let () …) or (begin …) of its own",
            )
        return FORMS[name](self, datum, scope)

    def expand_name(self, name: Name, scope: Scope) -> Expr:
        found, place = scope.lookup(name), name.place
        match found:
            case LocalName(var, level):
                if level < scope.level:
                    var.captured = True
                return core.Local(var, place=place)
            case GlobalName(unique):
                return core.Global(unique, place=place)
            case PreludeName(plain):
                return core.Global(self.need(plain), place=place)
            case RecordName() | ForeignName():
                return self.as_function(found, name)
            case Special(form):
                raise PurpleError(f"{form} is a form, not a value", "syntax", place)
            case Macro():
                raise PurpleError(f"{found.name} is a macro, not a value", "syntax", place)
        text = name.value
        if names.is_primitive(text) and (not is_private(text) or home(name, scope) is self.prelude):
            return core.PrimRef(text, place=place)
        if text == "t":
            return Literal(True, place=place)
        if self.late:
            unique = scope.module.prefix + text
            return core.Global(unique, place=place)
        raise self.unknown(text, place, scope)

    def unknown(self, text: str, place: Place, scope: Scope) -> PurpleError:
        candidates = [*scope.visible(), *names.PRIMITIVES]
        if text.startswith("tensor-"):
            candidates += names.row_names()
        return PurpleError(
            f"{shortened(text)} is not defined", "unbound", place, help=did_you_mean(text, candidates)
        )

    def as_function(self, found: RecordName | ForeignName, name: Name) -> Expr:
        """A constructor, field or foreign function as a value: a lambda around it."""
        place = name.place
        if isinstance(found, ForeignName):
            count = len(found.declaration.parameters)
        elif found.role == "type":
            raise PurpleError(
                f"{name.value} is a type, not a value", "syntax", place, help=f"make one by mk-{name.value}"
            )
        else:
            count = len(found.type.fields) if found.role == "make" else 1
        params = tuple(self.fresh(f"a{i}") for i in range(count))
        body = self.direct(found, [core.Local(each, place=place) for each in params], place)
        return core.Lambda(params, None, (), body, name.value, place=place)

    def direct(self, found: RecordName | ForeignName, arguments: list[Expr], place: Place) -> Expr:
        if isinstance(found, ForeignName):
            return core.ForeignCall(found.declaration, tuple(arguments), place=place)
        if found.role == "make":
            return core.MakeRecord(found.type, tuple(arguments), place=place)
        if found.role == "test":
            return core.IsRecord(found.type, arguments[0], place=place)
        return core.FieldRef(found.type, found.field, arguments[0], place=place)

    def expand_call(self, datum: Sequence, scope: Scope) -> Expr:
        if datum.tail is not None:
            raise PurpleError("a call cannot end with a dot", "syntax", datum.place)
        head, place = datum.value[0], datum.place
        found = scope.lookup(head) if isinstance(head, Name) else None
        if isinstance(found, (RecordName, ForeignName)) and isinstance(head, Name):
            arguments = [self.expand(each, scope) for each in datum.value[1:]]
            function = self.as_function(found, head)
            assert isinstance(function, core.Lambda)
            if len(arguments) == len(function.params):
                return self.direct(found, arguments, place)
            return core.Call(function, tuple(arguments), place=place)
        function = self.expand(head, scope)
        if isinstance(function, core.PrimRef):
            takes = names.takes_keywords(function.name)
            arguments, keywords = self.expand_arguments(datum.value[1:], scope, takes)
            return core.Prim(function.name, tuple(arguments), tuple(keywords), place=place)
        arguments, keywords = self.expand_arguments(datum.value[1:], scope, True)
        return core.Call(function, tuple(arguments), tuple(keywords), place=place)

    def expand_arguments(
        self, data: list[Datum], scope: Scope, takes_keywords: bool
    ) -> tuple[list[Expr], list[tuple[str, Expr]]]:
        """Arguments in order, and those that follow a keyword. One evaluated before its time is bound
        before.
        """
        arguments: list[Expr] = []
        keywords: list[tuple[str, Expr]] = []
        i = 0
        while i < len(data):
            value = data[i].value
            if takes_keywords and isinstance(value, Keyword):
                if i + 1 == len(data):
                    raise PurpleError(
                        f"no value follows {value!r}",
                        "syntax",
                        data[i].place,
                        help=f"write '{value!r} for the keyword itself",
                    )
                if any(name == value.name for name, _ in keywords):
                    raise PurpleError(f"{value!r} is given twice", "syntax", data[i].place)
                keywords.append((value.name, self.expand(data[i + 1], scope)))
                i += 2
            else:
                if keywords:
                    raise PurpleError(
                        "arguments in order stand before those by keyword", "syntax", data[i].place
                    )
                arguments.append(self.expand(data[i], scope))
                i += 1
        return arguments, keywords

    # Bodies and variables

    def fresh(self, name: str) -> Var:
        return Var(name, next(self.numbers))

    def bind(self, name: Datum, scope: Scope) -> Var:
        if not isinstance(name, Name):
            raise PurpleError("a variable is a name", "syntax", name.place)
        var = self.fresh(name.value)
        scope.bindings[name.key] = LocalName(var, scope.level)
        return var

    def expand_lambda(
        self, parameters: Datum, body: list[Datum], scope: Scope, name: str, place: Place
    ) -> core.Lambda:
        if self.depth >= DEPTH_LIMIT:
            raise PurpleError(
                f"expressions are nested too deeply: more than {DEPTH_LIMIT} levels", "syntax", place
            )
        inner = Scope(scope, scope.level + 1)
        parsed = parse_parameters(parameters)
        params = [self.bind(each, inner) for each in parsed.positional]
        rest = None if parsed.rest is None else self.bind(parsed.rest, inner)
        keywords = []
        for keyword, each, default in parsed.keywords:
            value = None if default is None else self.expand(default, inner)
            keywords.append((keyword, self.bind(each, inner), value))
        if len(inner.bindings) != len(params) + len(keywords) + (rest is not None):
            raise PurpleError("two parameters have the same name", "syntax", parameters.place)
        if len(body) > 1 and type(body[0]) is Datum and isinstance(body[0].value, str):
            body = body[1:]  # a string before the body documents it
        expanded = self.expand_body(body, inner, place)
        return core.Lambda(tuple(params), rest, tuple(keywords), expanded, name, place=place)

    def expand_body(self, data: list[Datum], scope: Scope, place: Place) -> Expr:
        """A body: definitions become `Let` and `Letrec`, in an inner scope of their own."""
        inner = Scope(scope, scope.level)
        queue = list(reversed(data))
        parts: list[tuple[Datum | None, Var | None]] = []
        while queue:
            datum = self.expand_head(queue.pop(), inner)
            special = self.special(datum, inner)
            if special in ("begin", "do") and isinstance(datum, Sequence) and len(datum.value) > 1:
                queue += reversed(datum.value[1:])
            elif special == "define-syntax" and isinstance(datum, Sequence):
                TOP_LEVEL["define-syntax"](self, datum, inner)
            elif special == "define" and isinstance(datum, Sequence):
                name = defined_name(datum)
                if name.key in inner.bindings and any(var is not None for _, var in parts):
                    previous = inner.bindings[name.key]
                    if isinstance(previous, LocalName):
                        raise PurpleError(f"{name.value} is defined twice in one body", "syntax", name.place)
                parts.append((datum, self.bind(name, inner)))
            else:
                parts.append((datum, None))
        if not parts:
            raise PurpleError("this body is empty", "syntax", place)
        if parts[-1][1] is not None:
            parts.append((None, None))
        return self._order(parts, inner, place)

    def _order(self, parts: list[Any], scope: Scope, place: Place) -> Expr:
        values: list[tuple[Var | None, Expr]] = []
        for datum, var in parts:
            if datum is None:
                values.append((None, Literal(UNSPECIFIED, place=place)))
            elif var is None:
                values.append((None, self.expand(datum, scope)))
            else:
                values.append((var, self.expand_definition(datum, scope)))
        last = max((i for i, (var, _) in enumerate(values) if var is not None), default=-1)
        body = sequence([value for _, value in values[last + 1 :]], place)
        return self._nest(values[: last + 1], body, place)

    def _nest(self, values: list[tuple[Var | None, Expr]], body: Expr, place: Place) -> Expr:
        """Definitions around a body: those that mention each other together, the others one inside the
        other.
        """
        if not values:
            return body
        index = {var: i for i, (var, _) in enumerate(values) if var is not None}
        reach = [
            max((index.get(var, -1) for var in core.mentioned(value)), default=-1) for _, value in values
        ]
        groups, start = [], 0
        while start < len(values):
            end, i = start, start
            while i <= end:
                end = max(end, reach[i])
                i += 1
            groups.append((start, end + 1))
            start = end + 1
        for start, end in reversed(groups):
            bindings = tuple((var or self.fresh("_"), value) for var, value in values[start:end])
            recursive = end - start > 1 or reach[start] >= start
            if values[start][0] is None and not recursive:
                body = sequence([values[start][1], body], place)
            else:
                body = (core.Letrec if recursive else core.Let)(bindings, body, place=place)
        return body

    def expand_definition(self, datum: Sequence, scope: Scope) -> Expr:
        """The value of `(define name value)` or `(define (name parameter …) body …)`."""
        items, place = datum.value, datum.place
        if isinstance(items[1], Sequence):
            name, rest = items[1].value[0], items[1].value[1:]
            if isinstance(name, Sequence):  # (define ((f a) b) …): a function that gives one
                raise PurpleError("a function's name must be a name", "syntax", name.place)
            parameters = (
                Sequence(rest, items[1].place, items[1].tail)
                if rest
                else items[1].tail or Datum(NIL, items[1].place)
            )
            return self.expand_lambda(parameters, items[2:], scope, name.value, place)
        if len(items) != 3:
            raise PurpleError("define takes a name and one value", "syntax", place)
        value = items[2]
        if self.special(value, scope) == "lambda" and isinstance(value, Sequence) and len(value.value) > 2:
            return self.expand_lambda(value.value[1], value.value[2:], scope, items[1].value, value.place)
        return self.expand(value, scope)

    def import_file(self, path: str, place: Place) -> Module:
        """The module of a file, expanded when it is first imported."""
        known = self.modules.get(path)
        if known is not None:
            if any(path == each for each, _ in self.loading):
                raise PurpleError(f"{path} imports itself, by way of others", "syntax", place)
            return known
        try:
            text = read_source(path)
        except PurpleError as error:
            if error.place.line:
                raise
            raise PurpleError(error.message, "file", place) from None
        stem = Path(path).stem
        taken = {module.prefix for module in self.modules.values()} | {"prelude::"}
        prefix = next(
            each
            for each in itertools.chain([f"{stem}::"], (f"{stem}{i}::" for i in itertools.count(2)))
            if each not in taken
        )
        module = self.modules[path] = Module(stem, path, prefix, self.base)
        self.sources[path] = text
        self.loading.append((path, place))
        self.expand_forms(read(text, path), module)
        self.loading.pop()
        for name, where in (module.exports or {}).items():
            if name not in module.scope.bindings:
                raise PurpleError(f"{name} is exported but not defined", "unbound", where)
        return module


def defined_name(datum: Sequence) -> Name:
    """What a `define` defines."""
    if len(datum.value) < 2:
        raise PurpleError("define needs a name", "syntax", datum.place)
    target = datum.value[1]
    name = target.value[0] if isinstance(target, Sequence) else target
    if not isinstance(name, Name):
        raise PurpleError("what is defined must be a name", "syntax", target.place)
    if isinstance(target, Sequence) and len(datum.value) < 3:
        raise PurpleError(f"the function {name.value} has no body", "syntax", datum.place)
    return name


def is_private(name: str) -> bool:
    """Whether a name is for the prelude alone."""
    return name.startswith("%") and name != "%"


def home(name: Name, scope: Scope) -> Any:
    """The module whose author wrote the name."""
    key = name.key
    while isinstance(key, Alias):
        key, scope = key.key, key.scope
    return scope.module


def sequence(exprs: list[Expr], place: Place) -> Expr:
    flat: list[Expr] = []
    for each in exprs:
        flat += each.exprs if isinstance(each, core.Seq) else (each,)
    return flat[0] if len(flat) == 1 else core.Seq(tuple(flat), place=place)
