"""Copies of higher-order functions for procedures that are known where they are called.

`(map (lambda (x) …) xs)` becomes a loop of its own, in which the lambda is known: it need not be a closure,
what it is given can be lent, and what it gives is known to be new or not. A copy of the library's
functions stands at the place of the call, whose errors are its own."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

from tenfold.purple import core, names
from tenfold.purple.captures import everything, known_globals
from tenfold.purple.core import (
    Call,
    Expr,
    Global,
    If,
    Lambda,
    Let,
    Letrec,
    Literal,
    Local,
    Place,
    Prim,
    PrimRef,
    Var,
)
from tenfold.purple.subexpressions import children, mentioned
from tenfold.purple.values import NIL

LARGEST = 200  # nodes of a function that is copied
BUDGET = 20_000  # nodes that copies may add to a program
NESTED = 3  # copies of one function inside each other


def specialise(program: core.Program) -> core.Program:
    """The program with such copies in it, without functions of the library, and those that were copied, that
    nothing calls any more."""
    copies = Copies(program)
    forms = tuple(copies.rewrite(form) for form in program.forms)
    return dataclasses.replace(program, forms=_needed(forms, copies.copied_names))


def _needed(forms: tuple[core.Form, ...], copied: set[str]) -> tuple[core.Form, ...]:
    """The forms without such functions as nothing mentions."""
    defined = [form for form in forms if isinstance(form, core.Define) and isinstance(form.value, Lambda)]
    functions = {f.name: f for f in defined if f.name.startswith("prelude::") or f.name in copied}
    wanted: set[str] = set()
    work: list[core.Form] = [f for f in forms if not (isinstance(f, core.Define) and f.name in functions)]
    while work:
        for node in everything(work.pop()):
            if isinstance(node, Global) and node.name in functions and node.name not in wanted:
                wanted.add(node.name)
                work.append(functions[node.name])
    gone = functions.keys() - wanted
    return tuple(f for f in forms if not (isinstance(f, core.Define) and f.name in gone))


def functional_parameters(lambdas: dict[str, Lambda]) -> dict[str, set[int]]:
    """By name: the parameters that are procedures: each use calls them, asks for their arity, or passes them
    on as such a parameter."""
    found = {
        name: {i for i, param in enumerate(f.params) if not param.assigned}
        for name, f in lambdas.items()
        if not f.keywords and _size(f) <= LARGEST
    }
    changed = True
    while changed:
        changed = False
        for name, indices in found.items():
            # The library's copy would stand where it is called, though what it gives fails elsewhere.
            late = name.startswith("prelude::") and _gives_closures(lambdas[name], found)
            calls = set() if late else _called(lambdas[name], found)
            for i in list(indices):
                if lambdas[name].params[i] not in calls:
                    indices.discard(i)
                    changed = True
    return {name: indices for name, indices in found.items() if indices}


def _size(node: core.Form) -> int:
    return sum(1 for _ in everything(node))


def _gives_closures(function: Lambda, functional: dict[str, set[int]]) -> bool:
    """Whether it may give out a closure: what that calls later fails where it is called, not here."""
    if isinstance(function.body, Lambda):
        return True
    for node in everything(function.body):
        good: set[int] = set()
        match node:
            case Let() | Letrec():
                good = {id(value) for _, value in node.bindings}
            case Call(function=Global(name=name)):
                good = {id(a) for i, a in enumerate(node.arguments) if i in functional.get(name, ())}
            case Call():
                good = {id(node.function)}
            case core.Try():
                good = {id(node.handler)}
        if any(isinstance(child, Lambda) and id(child) not in good for child in children(node)):
            return True
    return False


def _called(function: Lambda, functional: dict[str, set[int]]) -> set[Var]:
    """The parameters of a function that are called, directly or by others, and used in no other way."""
    called: set[Var] = set()
    other: set[Var] = set()
    for node in everything(function.body):
        good: set[int] = set()
        if isinstance(node, Call):
            good.add(id(node.function))
            if isinstance(node.function, Global):
                good |= {
                    id(a) for i, a in enumerate(node.arguments) if i in functional.get(node.function.name, ())
                }
        elif isinstance(node, Prim) and node.name in ("procedure-arity", "apply"):
            good |= {id(argument) for argument in node.arguments[:1]}
        for child in children(node):
            if isinstance(child, Local):
                (called if id(child) in good else other).add(child.var)
    if isinstance(function.body, Local):
        other.add(function.body.var)
    return called - other


class Copies:
    """One program under way. `arities` are those of variables that hold known procedures."""

    def __init__(self, program: core.Program):
        self.lambdas = known_globals(program)
        self.functional = functional_parameters(self.lambdas)
        self.numbers = itertools.count(1_000_000)
        self.arities: dict[Var, int] = {}
        self.lists: dict[Var, list[Local]] = {}  # of which items a rest is made
        self.active: list[str] = []
        self.copied_names: set[str] = set()
        self.added = 0

    def rewrite(self, node: Any) -> Any:
        if isinstance(node, Call) and isinstance(node.function, Global):
            copied = self.copied(node)
            if copied is not None:
                return copied
        if isinstance(node, Let):
            for var, value in node.bindings:
                if isinstance(value, Lambda) and not var.assigned:
                    self.arities[var] = len(value.params)
        made = folded(rebuilt(node, self.rewrite), self.arities, self.lists)
        if isinstance(made, Let) and made.bindings[0][0] in self.lists:
            return made if made.bindings[0][0] in mentioned(made.body) else made.body
        return made

    def copied(self, call: Call) -> Expr | None:
        """The call as a copy of what it calls, or None where no procedure among its arguments is known."""
        assert isinstance(call.function, Global)
        name = call.function.name
        chosen = {
            i
            for i in self.functional.get(name, ())
            if i < len(call.arguments) and self.is_known(call.arguments[i])
        }
        function = self.lambdas.get(name)
        if not chosen or function is None or call.keywords or self.active.count(name) >= NESTED:
            return None
        extra = len(call.arguments) - len(function.params)
        if extra < 0 or (extra and function.rest is None) or self.added > BUDGET:
            return None
        own = not name.startswith("prelude::")  # whose name tracebacks tell
        recursive = own or _calls_itself(name, function, chosen)
        if recursive and function.rest is not None:
            return None
        self.added += _size(function)
        self.copied_names.add(name)
        self.active.append(name)
        made = self.rewrite(self.copy(call, function, chosen, recursive))
        self.active.pop()
        return made

    def is_known(self, arg: Expr) -> bool:
        match arg:
            case Lambda() | PrimRef():
                return True
            case Global(name=name):
                return name in self.lambdas
            case Local(var=var):
                return var in self.arities
        return False

    def copy(self, call: Call, function: Lambda, chosen: set[int], recursive: bool) -> Expr:
        place = call.place
        outer: list[tuple[Var, Expr]] = []
        inside: dict[Var, Expr] = {}
        params: list[Var] = []
        given: list[Expr] = []
        for i, param in enumerate(function.params):
            arg = call.arguments[i]
            if i in chosen and not isinstance(arg, Lambda):
                inside[param] = arg
                continue
            var = self.fresh(param)
            outer.append((var, arg))
            inside[param] = Local(var, place=place)
            if i in chosen:
                assert isinstance(arg, Lambda)
                var.name = arg.name
                self.arities[var] = len(arg.params)
            elif recursive:
                params.append(self.fresh(param))
                given.append(Local(var, place=place))
                inside[param] = Local(params[-1], place=place)
        rest = call.arguments[len(function.params) :]
        if function.rest is not None and rest:
            var = self.fresh(function.rest)
            items = [(Var(var.name, next(self.numbers)), arg) for arg in rest]
            outer += items
            self.lists[var] = [Local(item, place=place) for item, _ in items]
            made_of = Prim("list", tuple(self.lists[var]), place=place)
            inside[function.rest] = Local(var, place=place)
        elif function.rest is not None:
            inside[function.rest] = Literal(NIL, place=place)
        assert isinstance(call.function, Global)
        if not recursive:
            body = Copy(self, call, inside).node(function.body)
        else:
            loop = Var(core.shown(call.function.name), next(self.numbers))
            again = Again(call.function.name, loop, chosen)
            body = Copy(self, call, inside, again).node(function.body)
            derived = call.function.name.startswith("prelude::")
            at = place if derived else function.place
            made = Lambda(
                tuple(params), None, (), body, loop.name, derived=derived, apart=not derived, place=at
            )
            start = Call(Local(loop, place=place), tuple(given), place=place)
            body = Letrec(((loop, made),), start, place=place)
        if function.rest is not None and rest:
            body = Let(((var, made_of),), body, place=place)
        return Let(tuple(outer), body, place=place) if outer else body

    def fresh(self, var: Var) -> Var:
        made = Var(var.name, next(self.numbers))
        made.assigned, made.captured = var.assigned, True
        return made


@dataclasses.dataclass
class Again:
    """How a copy calls itself: by `loop`, without the procedures, which stay what they are."""

    name: str
    loop: Var
    chosen: set[int]


def _calls_itself(name: str, function: Lambda, chosen: set[int]) -> bool:
    """Whether it calls itself with the same procedures."""
    return any(_is_again(node, name, function, chosen) for node in everything(function.body))


def _is_again(node: core.Form, name: str, function: Lambda, chosen: set[int]) -> bool:
    if not (isinstance(node, Call) and isinstance(node.function, Global) and node.function.name == name):
        return False
    if len(node.arguments) != len(function.params) or node.keywords:
        return False
    passed = [node.arguments[i] for i in sorted(chosen)]
    same = [function.params[i] for i in sorted(chosen)]
    return all(isinstance(arg, Local) and arg.var is param for arg, param in zip(passed, same))


class Copy:
    """A function's body under new names; the library's stands at the place of the call. `inside` says what
    variables have become."""

    def __init__(
        self,
        copies: Copies,
        call: Call,
        inside: dict[Var, Expr],
        again: Again | None = None,
    ):
        assert isinstance(call.function, Global)
        self.copies, self.inside, self.again = copies, inside, again
        name = core.shown(call.function.name)
        named = "" if name.startswith("%") else name  # what a macro calls
        self.place = call.place._replace(copied=call.place.copied or named)

    def var(self, var: Var) -> Var:
        found = self.inside.get(var)
        if found is None:
            found = self.inside[var] = Local(self.copies.fresh(var), place=self.place)
        assert isinstance(found, Local)
        return found.var

    def at(self, node: core.Node) -> Place:
        if not core.is_unseen(node.place.file):
            return node.place
        called = core.called(node)
        given = self.inside.get(called.var) if isinstance(called, Local) else None
        if (
            isinstance(given, Global | PrimRef)
            and not given.place.copied
            and not core.is_unseen(given.place.file)
        ):
            return self.place._replace(copied="")  # the program named it: errors are its own
        return self.place

    def node(self, node: Any) -> Any:
        again = self.again
        if isinstance(node, Local):
            return self.inside.get(node.var) or Local(self.var(node.var), place=self.at(node))
        if again is not None and _is_again(node, again.name, self.copies.lambdas[again.name], again.chosen):
            given = [self.node(a) for i, a in enumerate(node.arguments) if i not in again.chosen]
            at = self.at(node)
            return Call(Local(again.loop, place=at), tuple(given), place=at)
        made = rebuilt(node, self.node)
        changed: dict[str, Any] = {"place": self.at(node)}
        match made:
            case Lambda():
                changed["params"] = tuple(map(self.var, made.params))
                changed["rest"] = None if made.rest is None else self.var(made.rest)
                changed["keywords"] = tuple(
                    (word, self.var(v), default) for word, v, default in made.keywords
                )
                changed["derived"] = made.derived or core.is_unseen(node.place.file)
            case Let() | Letrec():
                changed["bindings"] = tuple((self.var(v), value) for v, value in made.bindings)
            case core.SetLocal():
                changed["var"] = self.var(made.var)
        return dataclasses.replace(made, **changed)


def rebuilt(node: Any, change: Any) -> Any:
    """The same node of changed parts."""
    each = lambda nodes: tuple(change(part) for part in nodes)
    named = lambda pairs: tuple((word, change(value)) for word, value in pairs)
    replace = dataclasses.replace
    match node:
        case core.SetLocal() | core.SetGlobal() | core.Define() | core.IsRecord():
            return replace(node, value=change(node.value))
        case Lambda():
            words = tuple((w, v, None if d is None else change(d)) for w, v, d in node.keywords)
            return replace(node, keywords=words, body=change(node.body))
        case Call():
            return replace(
                node,
                function=change(node.function),
                arguments=each(node.arguments),
                keywords=named(node.keywords),
            )
        case Prim():
            return replace(node, arguments=each(node.arguments), keywords=named(node.keywords))
        case If():
            return replace(
                node, test=change(node.test), then=change(node.then), otherwise=change(node.otherwise)
            )
        case Let() | Letrec():
            return replace(node, bindings=named(node.bindings), body=change(node.body))
        case core.Seq():
            return replace(node, exprs=each(node.exprs))
        case core.While():
            return replace(node, test=change(node.test), body=change(node.body))
        case core.Try():
            return replace(node, body=change(node.body), handler=change(node.handler))
        case core.With():
            argument = None if node.argument is None else change(node.argument)
            return replace(node, argument=argument, body=change(node.body))
        case core.MakeRecord() | core.ForeignCall():
            return replace(node, arguments=each(node.arguments))
        case core.FieldRef():
            return replace(node, record=change(node.record))
        case core.SetField():
            return replace(node, record=change(node.record), value=change(node.value))
    return node


def folded(node: Any, arities: dict[Var, int], lists: dict[Var, list[Local]]) -> Any:
    """A node whose answer is known: tests and parts of a rest, and the arity of a known procedure."""
    match node:
        case Call(function=PrimRef(name=name)) if not node.keywords:
            return Prim(name, node.arguments, place=node.place)
        case Prim(name="null?" | "pair?" as name, arguments=(Literal(value=value),)) if value is NIL:
            return Literal(name == "null?", place=node.place)
        case Prim(name="null?" | "pair?" as name, arguments=(Local(var=var),)) if var in lists:
            return Literal(name == "pair?", place=node.place)
        case Prim(name="car", arguments=(Local(var=var),)) if var in lists:
            return lists[var][0]
        case Prim(name="cdr", arguments=(Local(var=var),)) if len(lists.get(var, ())) == 1:
            return Literal(NIL, place=node.place)
        case Prim(name="procedure-arity", arguments=(Local(var=var),)) if var in arities:
            return Literal(arities[var], place=node.place)
        case Prim(name="procedure-arity", arguments=(PrimRef(name=name),)) if name in names.PRIMITIVES:
            return Literal(names.PRIMITIVES[name].minimum, place=node.place)
        case Prim(name=">", arguments=(Literal(value=int() as left), Literal(value=int() as right))):
            return Literal(left > right, place=node.place)
        case If(test=Literal(value=value)):
            return node.otherwise if value is False or value is NIL else node.then
    return node
