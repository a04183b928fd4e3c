"""Expressions and bodies in the core language: names are resolved, macros and forms expanded, internal
definitions put in order."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

from tenfold.base.errors import did_you_mean
from tenfold.purple import core, names
from tenfold.purple.core import LIBRARY, Expr, Literal, Place, Var
from tenfold.purple.definitions import DEFINITIONS
from tenfold.purple.errors import PurpleError
from tenfold.purple.forms import FORMS, is_sequence, parse_parameters
from tenfold.purple.libraries import REWRITTEN, rewrite
from tenfold.purple.procedural import Evaluate, is_transformer, parse_transformer, transform
from tenfold.purple.reader import Datum, Name, Sequence, Vector, shortened, to_value
from tenfold.purple.scope import (
    Alias,
    ForeignName,
    GlobalName,
    LocalName,
    Macro,
    PreludeName,
    PrimitiveName,
    RecordName,
    Scope,
    Special,
    Transformer,
)
from tenfold.purple.subexpressions import mentioned
from tenfold.purple.syntax import expand_macro, parse_rules
from tenfold.purple.top_level import TOP_LEVEL
from tenfold.purple.values import NIL, UNSPECIFIED, Keyword

DEPTH_LIMIT = 1000
NESTED_EXPANSIONS = 10_000


class LocalTypes(NamedTuple):
    """Where a body's own record types are declared, as a module is at the top level."""

    prefix: str
    scope: Scope


class Expressions:
    """Expands one expression after another. `late`: names that are not defined yet may come later (REPL)."""

    prelude: Any  # the module whose names may be private
    base: Any  # the scope of the language itself
    main: Any  # the program's own module

    def __init__(self, evaluate: Evaluate, late: bool):
        self.evaluate, self.late = evaluate, late
        self.types: dict[str, core.DefType] = {}
        self.globals: dict[str, core.GlobalInfo] = {}
        self.forms: list[core.Form] = []
        self.wrappers: dict[RecordName | ForeignName, str] = {}
        self.numbers = itertools.count(1)
        self.depth = 0
        self.made = [0]  # data made by macros
        # What the program mentions and does not define, while it is not known whether it evaluates data that
        # may do so; None where names must be defined.
        self.undefined: list[PurpleError] | None = None

    def need(self, name: str) -> str:
        """The unique name of a definition of the prelude, which comes along from now on."""
        raise NotImplementedError

    def expand(self, datum: Datum, scope: Scope) -> Expr:
        self.descend(datum.place)
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

    def descend(self, place: Place) -> None:
        """Go one level deeper; whoever does comes back by `self.depth -= 1`."""
        if self.depth >= DEPTH_LIMIT:
            raise PurpleError(
                f"expressions are nested too deeply: more than {DEPTH_LIMIT} levels", "syntax", place
            )
        self.depth += 1

    def expand_head(self, datum: Datum, scope: Scope) -> Datum:
        """The datum with the macro at its head expanded, again and again, until there is none."""
        for _ in range(NESTED_EXPANSIONS):
            if not (isinstance(datum, Sequence) and isinstance(datum.value[0], Name)):
                return datum
            macro = scope.lookup(datum.value[0])
            if isinstance(macro, Special) and macro.name in REWRITTEN:
                datum = rewrite(macro.name, self, datum, scope)
                continue
            if isinstance(macro, Transformer):
                datum = transform(macro, datum, scope, self.made)
                continue
            if not isinstance(macro, Macro):
                return datum
            datum = expand_macro(macro, datum, scope, self.made)
        raise PurpleError("macros expand without end", "syntax", datum.place)

    def macro(self, name: Name, rules: Datum, scope: Scope) -> Macro | Transformer | Special:
        """What a name is bound to as a macro: rules, a procedure, or the macro or form that another name
        stands for."""
        known = scope.lookup(rules) if isinstance(rules, Name) else None
        if isinstance(known, (Macro, Transformer, Special)):
            return known
        if is_transformer(rules):
            return parse_transformer(name, rules, scope, self.evaluate)
        return parse_rules(name, rules, scope)

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
        head = datum.value[0]
        if is_private(name) and isinstance(head, Name) and home(head, scope) is not self.prelude:
            raise self.unknown(name, head.place, scope)
        if name in TOP_LEVEL or name in DEFINITIONS:
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
            case PrimitiveName(plain):
                return core.PrimRef(plain, place=place)
            case RecordName() | ForeignName():
                return self.as_function(found, name)
            case Special(form):
                raise PurpleError(f"{form} is a form, not a value", "syntax", place)
            case Macro() | Transformer():
                raise PurpleError(f"{found.name} is a macro, not a value", "syntax", place)
        text = name.value
        if names.is_primitive(text) and (not is_private(text) or home(name, scope) is self.prelude):
            return core.PrimRef(text, place=place)
        if text == "t":
            return Literal(True, place=place)
        if not self.late and not (self.undefined and scope.module is self.main):
            unknown = self.unknown(text, place, scope)
            if self.undefined is None or scope.module is not self.main:
                raise unknown
            self.undefined.append(unknown)
        return core.Global(scope.module.prefix + text, place=place)

    def unknown(self, text: str, place: Place, scope: Scope) -> PurpleError:
        candidates = [
            *scope.visible(),
            *(primitive for primitive in names.PRIMITIVES if not is_private(primitive)),
        ]
        if text.startswith("tensor-"):
            candidates += names.row_names()
        help = did_you_mean(text, candidates)
        if help is None and names.row_of(f"tensor-{text}") is not None:
            help = f"did you mean tensor-{text}?"
        return PurpleError(f"{shortened(text)} is not defined", "unbound", place, help=help)

    def as_function(self, found: RecordName | ForeignName, name: Name) -> Expr:
        """A constructor, field or foreign function as a value: a function around it, defined when it is first
        wanted, whose errors are its callers'."""
        if isinstance(found, RecordName) and found.role == "type":
            help = f"make one by mk-{name.value}"
            raise PurpleError(f"{name.value} is a type, not a value", "syntax", name.place, help=help)
        unique = self.wrappers.get(found)
        if unique is None:
            shown = found.shown
            unique = self.wrappers[found] = f"%{next(self.numbers)}::{shown}"
            params = tuple(self.fresh(parameter) for parameter in found.parameters)
            arguments: list[Expr] = [core.Local(param, place=LIBRARY) for param in params]
            body = self.direct(found, arguments, LIBRARY)
            wrapper = core.Lambda(params, None, (), body, shown, place=found.place)
            self.globals[unique] = core.GlobalInfo(unique, found.place)
            self.forms.append(core.Define(unique, wrapper, place=LIBRARY))
        return core.Global(unique, place=name.place)

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
            if len(arguments) == len(found.parameters):
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
            if is_sequence(special, datum) and isinstance(datum, Sequence) and len(datum.value) > 1:
                queue += reversed(datum.value[1:])
            elif special in DEFINITIONS and isinstance(datum, Sequence):
                queue += reversed(DEFINITIONS[special](datum, self.numbers))
            elif special == "define-syntax" and isinstance(datum, Sequence):
                TOP_LEVEL["define-syntax"](self, datum, inner)
            elif special == "deftype" and isinstance(datum, Sequence):
                prefix = f"{inner.module.prefix}{next(self.numbers)}::"
                TOP_LEVEL["deftype"](self, datum, LocalTypes(prefix, inner))
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
        reach = [max((index.get(var, -1) for var in mentioned(value)), default=-1) for _, value in values]
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
            self.descend(place)
            try:
                return self.expand_lambda(parameters, items[2:], scope, name.value, place)
            finally:
                self.depth -= 1
        if len(items) != 3:
            raise PurpleError("define takes a name and one value", "syntax", place)
        value = items[2]
        if self.special(value, scope) == "lambda" and isinstance(value, Sequence) and len(value.value) > 2:
            return self.expand_lambda(value.value[1], value.value[2:], scope, items[1].value, value.place)
        return self.expand(value, scope)


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
    for expr in exprs:
        flat += expr.exprs if isinstance(expr, core.Seq) else (expr,)
    return flat[0] if len(flat) == 1 else core.Seq(tuple(flat), place=place)
