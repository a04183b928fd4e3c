"""What the interpreter wants to know of lambdas before it generates code: which calls are to known ones,
which may loop in place, and which may give back a tail call for their caller to run.

A lambda is known by its key: the variable or the global name that is bound to it for good.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tenfold.purple import core
from tenfold.purple.core import Call, Expr, Form, Lambda, Var
from tenfold.purple.subexpressions import children, mentioned


class Facts:
    """One lambda. `loops`: calls itself in tail position, and may do so by a jump. `tails`: may give
    back a Tail.
    """

    __slots__ = ("bound", "component", "escapes", "key", "loops", "tails", "targets", "unknown_tail")

    def __init__(self, key: Any):
        self.key = key
        self.escapes = True
        self.bound: set[Var] = set()
        self.targets: set[Any] = set()
        self.loops = self.tails = self.unknown_tail = False
        self.component = -1


class Flow:
    """Facts about the lambdas of some forms. `stable`: global names that no one defines again."""

    def __init__(self) -> None:
        self.facts: dict[int, Facts] = {}
        self.known: dict[Any, Lambda] = {}
        self._count = 0
        self._kept: list[Lambda] = []  # ids of nodes are keys, so the nodes stay

    def study(self, forms: Iterable[Form], stable: Any) -> None:
        forms = list(forms)
        new: list[Lambda] = []
        for form in forms:
            if isinstance(form, core.Define) and isinstance(form.value, Lambda) and stable(form.name):
                self.known[form.name] = form.value
                self.facts[id(form.value)] = Facts(form.name)
            self._collect(form, new)
        self._kept += new
        for function in new:
            self._tails(function)
        self._components(new)
        changed = True
        while changed:
            changed = False
            for function in new:
                facts = self.facts[id(function)]
                if not facts.tails and self._may_tail(facts):
                    facts.tails = changed = True

    def of(self, function: Lambda) -> Facts:
        return self.facts[id(function)]

    def callee(self, function: Expr) -> Lambda | None:
        """The lambda that a call's function surely is."""
        if isinstance(function, core.Local):
            return self.known.get(function.var)
        return self.known.get(function.name) if isinstance(function, core.Global) else None

    def jumps(self, call: Call, facts: Facts) -> bool:
        """Whether a tail call inside the lambda of `facts` may return what it calls, without growing the
        stack.
        """
        target = self.callee(call.function)
        return target is not None and self.of(target).component != facts.component

    def _collect(self, form: Form, new: list[Lambda]) -> None:
        """Lambdas, their keys, the variables bound in each frame, and which of them escape."""
        used: set[Var] = set()
        stack: list[tuple[Any, list[Facts]]] = [(form, [])]
        escaping: list[tuple[Lambda, list[Facts]]] = []
        while stack:
            node, frames = stack.pop()
            if isinstance(node, Lambda):
                facts = self.facts.setdefault(id(node), Facts(None))
                new.append(node)
                facts.bound.update(node.params, (var for _, var, _ in node.keywords))
                if node.rest is not None:
                    facts.bound.add(node.rest)
                escaping.append((node, frames))
                frames = [*frames, facts]
            elif isinstance(node, (core.Let, core.Letrec)):
                for var, value in node.bindings:
                    if frames:
                        frames[-1].bound.add(var)
                    if isinstance(value, Lambda) and not var.assigned:
                        self.known[var] = value
                        self.facts[id(value)] = Facts(var)
            elif isinstance(node, Call) and isinstance(node.function, core.Local):
                stack += [(child, frames) for child in children(node)[1:]]
                continue
            elif isinstance(node, core.Local):
                used.add(node.var)
            stack += [(child, frames) for child in children(node)]
        for function, frames in escaping:
            facts = self.facts[id(function)]
            facts.escapes = not isinstance(facts.key, Var) or facts.key in used
            if facts.escapes and frames:
                within = mentioned(function)
                for frame in frames:
                    if frame.bound & within:
                        frame.component = -2  # not to loop in place: its variables must be new each time

    def _tails(self, function: Lambda) -> None:
        facts = self.facts[id(function)]
        may_loop = (
            facts.component != -2 and facts.key is not None and not function.rest and not function.keywords
        )
        for call in tail_calls(function.body):
            if call is None:
                facts.unknown_tail = True
                continue
            target = self.callee(call.function)
            if (
                target is function
                and may_loop
                and len(call.arguments) == len(function.params)
                and not call.keywords
            ):
                facts.loops = True
            elif target is None:
                facts.unknown_tail = True
            else:
                facts.targets.add(id(target))

    def _components(self, new: list[Lambda]) -> None:
        """Number the strongly connected parts of the graph of tail calls (Tarjan's algorithm, without
        recursion).
        """
        index: dict[int, int] = {}
        low: dict[int, int] = {}
        pending: list[int] = []
        for start in (id(each) for each in new):
            if start in index:
                continue
            work: list[tuple[int, Iterator[int]]] = [(start, iter(self.facts[start].targets))]
            index[start] = low[start] = len(index)
            pending.append(start)
            while work:
                node, targets = work[-1]
                target = next(targets, None)
                if target is not None:
                    if target not in self.facts or self.facts[target].component >= 0:
                        continue
                    if target not in index:
                        index[target] = low[target] = len(index)
                        pending.append(target)
                        work.append((target, iter(self.facts[target].targets)))
                    elif target in pending:
                        low[node] = min(low[node], index[target])
                    continue
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    self._count += 1
                    while True:
                        member = pending.pop()
                        self.facts[member].component = self._count
                        if member == node:
                            break

    def _may_tail(self, facts: Facts) -> bool:
        if facts.unknown_tail:
            return True
        targets = [self.facts[target] for target in facts.targets]
        return any(target.tails or target.component == facts.component for target in targets)


def tail_calls(body: Expr) -> Iterator[Call | None]:
    """The calls in tail position; None for one whose function is known only when it happens."""
    stack: list[Expr] = [body]
    while stack:
        match stack.pop():
            case Call() as call:
                yield call
            case core.Prim("apply") | core.Try():
                yield None
            case core.If(_, then, otherwise):
                stack += [then, otherwise]
            case core.Let(_, body) | core.Letrec(_, body):
                stack.append(body)
            case core.Seq(exprs):
                stack.append(exprs[-1])
