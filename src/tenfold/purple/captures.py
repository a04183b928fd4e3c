"""What the compiler must know of variables and lambdas before it lowers them: which lambdas are known where
they are called,
which of them are mere loops of the function around them, what each captures, and which variables need a cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias, TypeGuard

from tenfold.purple import core
from tenfold.purple.core import Expr, Lambda, Letrec, Local, Try, Var, With
from tenfold.purple.subexpressions import children

# Code that becomes a C function of its own: lambdas, and the bodies that must be left in one way.
Owner: TypeAlias = Lambda | Try | With


def everything(node: core.Form) -> Iterator[core.Form]:
    """A node and all nodes inside it."""
    stack = [node]
    while stack:
        each = stack.pop()
        yield each
        stack.extend(children(each))


def is_plain(function: Lambda, call: core.Call) -> bool:
    """Whether a call gives exactly the positional parameters that are all there is."""
    plain = function.rest is None and not function.keywords and not call.keywords
    return plain and len(function.params) == len(call.arguments)


def is_handler(function: Expr) -> TypeGuard[Lambda]:
    """Whether an error's handler is a lambda that takes just the error, and so can run where it stands."""
    if not isinstance(function, Lambda):
        return False
    return function.rest is None and not function.keywords and len(function.params) == 1


def tail_positions(node: Expr) -> Iterator[Expr]:
    """The expressions whose value is the node's own, among them calls that are tail calls of it."""
    stack: list[Expr] = [node]
    while stack:
        each = stack.pop()
        match each:
            case core.If():
                stack += [each.then, each.otherwise]
            case core.Let() | Letrec():
                stack.append(each.body)
            case core.Seq():
                stack.append(each.exprs[-1])
            case Try() if is_handler(each.handler):
                stack.append(each.handler.body)
            case _:
                yield each


class Scopes:
    """The answers, for a whole program."""

    def __init__(self, program: core.Program):
        self.known: dict[Var, Lambda] = {}  # bound to a lambda and never assigned
        self.loops: dict[Var, Lambda] = {}  # of these, the ones that are loops
        self.late: set[Var] = set()  # may be read before its definition has run
        self.home: dict[Var, Owner | None] = {}
        self.cells: set[Var] = set()
        self.free: dict[int, list[Var]] = {}  # by id of the owner
        self._inlined: set[int] = set()  # ids of lambdas that are part of the function around them
        self.global_lambdas = known_globals(program)
        for form in program.forms:
            self._bindings(form)
        self._mentions: dict[int, set[Var]] = {}
        self._inner: dict[int, list[Owner]] = {}
        self._owners: list[Owner] = []
        self.top_level = {form.name for form in program.forms if isinstance(form, core.Define)}
        defined: set[str] = set()
        for form in program.forms:
            self._walk(form, defined)
        self.top_level -= self.global_lambdas.keys()  # what is left: variables of the top level's own code
        self._capture()

    def _bindings(self, form: core.Form) -> None:
        for node in everything(form):
            if isinstance(node, core.Let | Letrec):
                for var, value in node.bindings:
                    if isinstance(value, Lambda) and not var.assigned:
                        self.known[var] = value
                if len(node.bindings) == 1 and (only := node.bindings[0][0]) in self.known:
                    value = self.known[only]
                    if not value.apart and is_loop(
                        only, value, node.body, recursive=isinstance(node, Letrec)
                    ):
                        self.loops[only] = value
                        self._inlined.add(id(value))
                if isinstance(node, Letrec):
                    self.late |= self._late(node)
            elif isinstance(node, core.Call) and isinstance(node.function, Lambda):
                if is_plain(node.function, node):
                    self._inlined.add(id(node.function))
            elif isinstance(node, Try) and is_handler(node.handler):
                self._inlined.add(id(node.handler))

    def _late(self, node: Letrec) -> set[Var]:
        """The variables that some initial value may ask for too early."""
        names = {var for var, _ in node.bindings}
        mentions = {
            var: {each.var for each in everything(value) if isinstance(each, Local) and each.var in names}
            for var, value in node.bindings
        }
        computed = [var for var, _ in node.bindings if var not in self.known]
        late: set[Var] = set()
        for i, var in enumerate(computed):
            reached, frontier = set(mentions[var]), set(mentions[var])
            while frontier:
                frontier = {m for each in frontier if each in self.known for m in mentions[each]} - reached
                reached |= frontier
            late |= reached & set(computed[i:])
        return late

    def _walk(self, form: core.Form, defined: set[str]) -> None:
        """Note for every owner which variables it mentions itself, and which owners it has inside. Of global
        names, note those that functions share, or that may be asked for before they are defined."""
        stack: list[tuple[core.Form, Owner | None]] = [(form, None)]
        while stack:
            node, owner = stack.pop()
            match node:
                case Local() | core.SetLocal():
                    if owner is not None:
                        self._mentions[id(owner)].add(node.var)
                case core.Let() | Letrec():
                    self.home.update((var, owner) for var, _ in node.bindings)
                case core.Global() | core.SetGlobal() if owner is not None or node.name not in defined:
                    self.top_level.discard(node.name)
            for child in children(node):
                stack.append((child, self._owner_of(node, child, owner)))
            if isinstance(node, Lambda):
                inner = self._owner_of(node, node.body, owner)
                bound = [
                    *node.params,
                    *([node.rest] if node.rest else []),
                    *(var for _, var, _ in node.keywords),
                ]
                self.home.update((var, inner) for var in bound)
        if isinstance(form, core.Define):
            if form.name in defined:
                self.top_level.discard(form.name)
            defined.add(form.name)

    def _owner_of(self, node: core.Form, child: Expr, owner: Owner | None) -> Owner | None:
        """Whose code a child of `node` is."""
        opens = isinstance(node, Lambda) and id(node) not in self._inlined
        opens = opens or (isinstance(node, Try | With) and child is node.body)
        if not opens:
            return owner
        assert isinstance(node, Lambda | Try | With)
        if id(node) not in self._mentions:
            self._mentions[id(node)] = set()
            self._inner.setdefault(id(owner), []).append(node)
            self._inner.setdefault(id(node), [])
            self._owners.append(node)
        return node

    def _capture(self) -> None:
        """Find what each owner needs from outside: its own mentions, those of lambdas inside it, and what the
        known
        functions that it calls need."""
        known_ids = {id(value) for value in self.known.values()}
        free: dict[int, set[Var]] = {id(owner): set() for owner in self._owners}
        changed = True
        while changed:
            changed = False
            for owner in self._owners:
                wanted: set[Var] = set()
                for var in self._mentions[id(owner)]:
                    if var in self.loops:
                        continue
                    wanted |= free[id(self.known[var])] if var in self.known else {var}
                for inner in self._inner[id(owner)]:
                    if id(inner) not in known_ids:
                        wanted |= free[id(inner)]
                wanted = {var for var in wanted if self.home[var] is not owner}
                if wanted - free[id(owner)]:
                    free[id(owner)] |= wanted
                    changed = True
        for owner in self._owners:
            self.free[id(owner)] = sorted(free[id(owner)], key=lambda var: var.number)
            self.cells |= {var for var in free[id(owner)] if var.assigned or var in self.late}


def is_loop(var: Var, function: Lambda, body: Expr, recursive: bool) -> bool:
    """Whether a lambda is only called, once from outside and else as its own tail call: then it is a loop
    there."""
    inside = _calls_of(var, function.body, function, tails_only=True) if recursive else 0
    return inside is not None and _calls_of(var, body, function, tails_only=False) == 1


def _calls_of(var: Var, body: Expr, function: Lambda, tails_only: bool) -> int | None:
    """How often `body` calls the function; None when it does anything else with it."""
    tails = {id(tail_position) for tail_position in tail_positions(body)} if tails_only else set()
    calls = 0
    stack: list[Expr] = [body]
    while stack:
        node = stack.pop()
        match node:
            case Local() if node.var is var:
                return None
            case core.Call(function=Local(var=called)) if called is var:
                if not is_plain(function, node) or (tails_only and id(node) not in tails):
                    return None
                calls += 1
                stack += node.arguments
                continue
            case Lambda() | Try() | With() if _mentions(node, var):
                if not (isinstance(node, Try) and tails_only and not _mentions(node.body, var)):
                    return None
                if not is_handler(node.handler):
                    return None
                stack.append(node.handler.body)
                continue
        stack += children(node)
    return calls


def _mentions(node: core.Form, var: Var) -> bool:
    return any(isinstance(each, Local) and each.var is var for each in everything(node))


def known_globals(program: core.Program) -> dict[str, Lambda]:
    """Global functions that nothing replaces, and that no form can ask for before their definition has
    run."""
    lambdas = {
        form.name: form.value
        for form in program.forms
        if isinstance(form, core.Define)
        and isinstance(form.value, Lambda)
        and not program.globals[form.name].assigned
    }
    mentions = {name: _globals_in([value]) for name, value in lambdas.items()}
    pending = set(lambdas)
    early: set[str] = set()
    for form in program.forms:
        if isinstance(form, core.Define) and form.name in lambdas:
            pending.discard(form.name)
            continue
        reached: set[str] = set()
        frontier = _globals_in([form])
        while frontier:
            reached |= frontier
            frontier = {m for name in frontier if name in lambdas for m in mentions[name]} - reached
        early |= reached & pending
    return {name: value for name, value in lambdas.items() if name not in early}


def _globals_in(nodes: Iterable[core.Form]) -> set[str]:
    return {each.name for node in nodes for each in everything(node) if isinstance(each, core.Global)}
