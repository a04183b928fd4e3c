"""Cycles that mutation makes and nothing breaks: counts cannot free them before the program ends.

Each function is followed along its statements with an object for every value: what an object holds is known
where the program put it there or read it from there. A mutation after which an object holds itself closes a
cycle; one that is still there when the function returns is reported. What a function does to its parameters
is told to its callers. Nothing is said of cycles through procedures that are known only when they are called.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tenfold.purple import core, ir
from tenfold.purple.ir import Atom, Block, Function, Let, Variable

Objects = frozenset[int]
NOTHING: Objects = frozenset()
MOST_OBJECTS = 8  # that one variable is followed as
MOST_BRANCHES = 1000  # of a function: more would take long, and are no one's own writing


class Cycle(NamedTuple):
    place: core.Place
    help: str

    @property
    def message(self) -> str:
        return "this closes a cycle of references, which is freed only when the program ends"


def find_cycles(module: ir.Module) -> list[Cycle]:
    """The cycles that a program may leave behind, in the order of their places. Those that the libraries of
    the language close are meant."""
    search = Search()
    for function in [*module.functions, module.main]:
        search.effect(function)
    found = {cycle for cycle in search.found if not core.is_unseen(cycle.place.file)}
    return sorted(found, key=lambda cycle: (cycle.place.file, cycle.place.start))


class Effect(NamedTuple):
    """What a call does. `holds`: pairs of parameters the first of which then holds the second. The result may
    be some of the parameters, and hold some."""

    holds: frozenset[tuple[int, int]]
    result: frozenset[int]
    result_holds: frozenset[int]


@dataclass(slots=True)
class State:
    """`held[object][key]` is what an object has under a key: a field, a part, an element. What one object
    has is replaced, never changed, so that states share it."""

    objects: dict[Variable, Objects] = field(default_factory=dict)
    held: dict[int, dict[Any, Objects]] = field(default_factory=dict)

    def copy(self) -> State:
        return State(dict(self.objects), dict(self.held))

    def put(self, owner: int, key: Any, value: Objects) -> None:
        self.held[owner] = {**self.held.get(owner, {}), key: value}

    def reached(self, start: int) -> set[int]:
        """What an object holds, directly or by way of others."""
        found: set[int] = set()
        stack = [start]
        while stack:
            for parts in self.held.get(stack.pop(), {}).values():
                stack += parts - found
                found |= parts
        return found


def join(one: State | None, other: State | None) -> State | None:
    """What may hold on either of two ways."""
    if one is None or other is None:
        return one or other
    for var, objects in other.objects.items():
        known = one.objects.get(var, NOTHING)
        if known is not objects:
            one.objects[var] = known | objects
    for each, parts in other.held.items():
        mine = one.held.get(each, {})
        if mine is not parts:
            one.held[each] = mine | {key: mine.get(key, NOTHING) | parts[key] for key in parts}
    return one


class Search:
    """A whole program: the effects of its functions, and the cycles found on the way."""

    def __init__(self) -> None:
        self.effects: dict[int, Effect] = {}
        self.found: list[Cycle] = []

    def effect(self, function: Function) -> Effect:
        known = self.effects.get(id(function))
        if known is None:
            self.effects[id(function)] = Effect(frozenset(), frozenset(), frozenset())  # while it is followed
            branches = sum(isinstance(statement, ir.If) for statement in ir.statements(function.body))
            if branches <= MOST_BRANCHES:
                self.effects[id(function)] = Follow(self, function).run()
            known = self.effects[id(function)]
        return known


# Primitives that put their last argument into their first: under which key; None for one that stands beside
# those that are there already.
STORES = {
    "set-box!": "content", "set-car!": "car", "set-cdr!": "cdr", "vector-set!": None, "hash-table-set!": None,
}  # fmt: skip
LOADS = {"unbox": "content", "car": "car", "cdr": "cdr"}
ADVICE = (
    "keep what refers back in a :weak field of a record, or put nil there in the end; "
    "a procedure that calls itself wants define or letrec rather than set!"
)
GATHERS = ("append", "reverse", "list->vector", "vector->list", "values", "vector", "list-tail")


class Follow:
    """One function."""

    def __init__(self, search: Search, function: Function):
        self.search, self.function = search, function
        self.count = 0
        self.globals: dict[str, Objects] = {}
        self.turns: dict[str, State | None] = {}
        self.closed: dict[Cycle, Objects] = {}
        self.left: list[tuple[State, Objects]] = []  # the states in which it returns, and with what

    def run(self) -> Effect:
        state = State()
        params = [self.fresh() for _ in self.function.all_params]
        state.objects.update(zip(self.function.all_params, params))
        if (after := self.block(self.function.body, state)) is not None:
            self.left.append((after, NOTHING))
        number = {next(iter(param)): i for i, param in enumerate(params)}
        holds: set[tuple[int, int]] = set()
        result: set[int] = set()
        result_holds: set[int] = set()
        for at_end, returned in self.left:
            for cycle, owners in self.closed.items():
                if any(owner in at_end.reached(owner) for owner in owners):
                    self.search.found.append(cycle)
            reached = {each: at_end.reached(each) for each in number}
            holds |= {(number[a], number[b]) for a in number for b in reached[a] & number.keys() if a != b}
            result |= {number[each] for each in returned & number.keys()}
            inside = set().union(*(at_end.reached(each) for each in returned)) & number.keys()
            result_holds |= {number[each] for each in inside}
        return Effect(frozenset(holds), frozenset(result), frozenset(result_holds))

    def fresh(self) -> Objects:
        self.count += 1
        return frozenset([self.count])

    def block(self, block: Block, state: State) -> State | None:
        """The state after a block; None where control does not get there."""
        after: State | None = state
        for each in block:
            if after is None:
                return None
            after = self.statement(each, after)
        return after

    def statement(self, each: ir.Statement, state: State) -> State | None:
        match each:
            case Let():
                made = self.operation(each.op, each.place, state)
                state.objects[each.var] = made if len(made) <= MOST_OBJECTS else self.fresh()
            case ir.LetTry():
                result = self.call(each.function, each.args, each.place, state)
                state.objects[each.var] = result | self.fresh()
            case ir.If():
                then = self.block(each.then, state.copy())
                return join(then, self.block(each.otherwise, state))
            case ir.Loop():
                return self.loop(each, state)
            case ir.Continue():
                self.turns[each.label] = join(self.turns.get(each.label), state)
                return None
            case ir.Return():
                self.left.append((state, self.of(each.value, state)))
                return None
            case ir.TailCall():
                self.left.append((state, self.call(each.function, each.args, each.place, state)))
                return None
            case ir.TailClosure():
                self.left.append((state, self.fresh()))
                return None
        return state

    def loop(self, each: ir.Loop, state: State) -> State | None:
        """Its first turn and its second, which shows what one turn does to the next."""
        self.turns[each.label] = None
        after = self.block(each.body, state)
        again = self.turns[each.label]
        if again is None:
            return after
        self.turns[each.label] = None
        after = join(after, self.block(each.body, again.copy()))
        return join(after, self.turns[each.label])

    def of(self, atom: Atom, state: State) -> Objects:
        return state.objects.get(atom, NOTHING) if isinstance(atom, Variable) else NOTHING

    def operation(self, op: ir.Op, place: core.Place, state: State) -> Objects:
        given = [self.of(arg, state) for arg in op.args]
        match op:
            case ir.Copy():
                return given[0]
            case ir.Prim():
                return self.primitive(op, given, place, state)
            case ir.CallKnown():
                return self.call(op.function, op.args, place, state)
            case ir.CallWithin():
                return self.call(op.function, op.args[op.kind == "device" :], place, state)
            case ir.MakeClosure():
                return self.made(dict(enumerate(given)), state)
            case ir.MakeRecord():
                strong = {i: each for i, each in enumerate(given) if not op.type.fields[i].weak}
                return self.made(strong, state)
            case ir.FieldRef() if not op.type.fields[op.index].weak:
                return self.load(given[0], op.index, state)
            case ir.SetField() if not (changed := op.type.fields[op.index]).weak:
                declared = (
                    f"({changed.name} {changed.type} :weak) in the deftype of {core.shown(op.type.name)}"
                )
                advice = f"declare the field :weak, as {declared}, or set it to nil in the end"
                self.store(given[0], op.index, given[1], Cycle(place, advice), state)
            case ir.LoadGlobal():
                return self.globals.setdefault(op.name, self.fresh())
            case ir.StoreGlobal():
                self.globals[op.name] = given[0]
        return self.fresh()

    def primitive(self, op: ir.Prim, given: list[Objects], place: core.Place, state: State) -> Objects:
        count = len(given)
        if op.name in STORES and count > 1:
            for value in given[1:] if op.name == "hash-table-set!" else given[-1:]:
                self.store(given[0], STORES[op.name], value, Cycle(place, ADVICE), state)
        elif op.name in LOADS and count == 1:
            return self.load(given[0], LOADS[op.name], state)
        elif op.name == "box" and count == 1:
            return self.made({"content": given[0]}, state)
        elif op.name == "cons" and count == 2:
            return self.made({"car": given[0], "cdr": given[1]}, state)
        elif op.name == "list":
            rest = NOTHING
            for item in reversed(given):
                rest = self.made({"car": item, "cdr": rest}, state)
            return rest
        elif op.name in GATHERS:
            return self.made(dict(enumerate(given)), state)
        return self.fresh()

    def made(self, parts: dict[Any, Objects], state: State) -> Objects:
        made = self.fresh()
        state.held[self.count] = {key: objects for key, objects in parts.items() if objects}
        return made

    def load(self, owners: Objects, key: Any, state: State) -> Objects:
        found: Objects = NOTHING
        for owner in owners:
            parts = state.held.get(owner, {})
            if key not in parts:
                state.put(owner, key, self.fresh())
            found |= state.held[owner][key]
        return found

    def store(self, owners: Objects, key: Any, value: Objects, cycle: Cycle, state: State) -> None:
        for owner in owners:
            parts = state.held.get(owner, {})
            beside = key is None or len(owners) > 1
            self.count += key is None
            where = ("beside", self.count) if key is None else key
            state.put(owner, where, value | parts.get(where, NOTHING) if beside else value)
        self.check(owners, value, cycle, state)

    def check(self, owners: Objects, value: Objects, cycle: Cycle, state: State) -> None:
        holding = {
            owner for owner in owners for each in value if owner == each or owner in state.reached(each)
        }
        if holding:
            self.closed[cycle] = self.closed.get(cycle, NOTHING) | holding

    def call(self, function: Function, args: list[Atom], place: core.Place, state: State) -> Objects:
        effect = self.search.effect(function)
        given = [self.of(arg, state) for arg in args]
        cycle = Cycle(
            place, f"one field of the records that {core.shown(function.name)} joins should be :weak"
        )
        for holder, part in sorted(effect.holds):
            for owner in given[holder]:
                state.put(owner, ("call", id(function), part), given[part])
            if (part, holder) not in effect.holds:  # else the function itself closed it
                self.check(given[holder], given[part], cycle, state)
        result = self.made({i: given[i] for i in effect.result_holds}, state)
        return result.union(*(given[i] for i in effect.result))
