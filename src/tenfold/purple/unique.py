"""Values that nothing else can hold: their release looks at no count. And of the others, why they are
counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tenfold.purple import effects, ir, spines
from tenfold.purple.core import shown
from tenfold.purple.ir import Atom, Constant, Drop, Dup, Function, Let, Variable


@dataclass
class Facts:
    """What is known of functions so far: whether what they give is unique, whether what each parameter
    receives is, and what any of them shares, keeps or gives back of what it only looks at."""

    results: dict[int, bool]
    params: dict[Variable, bool]
    # The same of lists whose every pair is unique, and the variables of whose rests shares are given out.
    list_results: dict[int, bool]
    list_params: dict[Variable, bool]
    shared: set[Variable]
    # The same of lists that are whole, and of any of their parts.
    whole_results: dict[int, bool]
    whole_params: dict[Variable, bool]
    broken: set[Variable]
    lists: bool  # whether there are such lists at all: nothing replaces their parts
    whole: bool
    kept: set[Variable] = field(default_factory=set)  # borrowed, and yet held on to or given back
    names: spines.Leads = field(default_factory=dict)  # of what variables are other names


def find_unique(module: ir.Module) -> None:
    """Mark the drops of values that provably have one owner: made here, or handed over by whoever made
    them, and never shared since. Sharing is a `Dup`, an operation that keeps an operand, or a `Copy` of
    something not unique."""
    functions = [*module.functions, module.main]
    facts = _first_facts(module, functions)
    for function in functions:
        spines.add_sources(function, "none", facts.names)
    _find_kept(functions, facts)
    known = {id(function): Uniqueness(function, facts) for function in functions}
    _settle_facts(functions, known, facts)
    for function in functions:
        _mark(function, known[id(function)])


def _first_facts(module: ir.Module, functions: list[Function]) -> Facts:
    """All that may hold, before a look at what functions do."""
    params = {p: p not in _given_by_anyone(f) for f in functions for p in f.all_params}
    results = {id(f): True for f in functions}
    writers = spines.writers(module)
    lists = "set-cdr!" not in writers
    whole = lists and "set-car!" not in writers
    strange = {param for f in functions if f.escapes for param in f.params}
    return Facts(
        results,
        params,
        dict.fromkeys(results, lists),
        {param: unique and lists for param, unique in params.items()},
        spines.shared_parts(functions, "rests"),
        dict.fromkeys(results, whole),
        {param: unique and whole and param not in strange for param, unique in params.items()},
        spines.shared_parts(functions, "all"),
        lists,
        whole,
    )


def _mark(function: Function, unique: Uniqueness) -> None:
    """Note at each release of a function whether what it releases is unique, and why."""
    for statement in function.statements():
        if isinstance(statement, Drop):
            statement.unique = unique.reasons.get(statement.var, "")
            doubt = unique.doubts.get(statement.var, "its count decides")
            statement.counted = "" if statement.unique else doubt
        elif isinstance(statement, ir.Uncons):
            statement.unique = statement.pair in unique.reasons
        elif isinstance(statement, Let) and isinstance(statement.op, ir.Take):
            statement.op.unique = statement.op.args[0] in unique.reasons
        elif isinstance(statement, Let) and isinstance(statement.op, ir.Reverse):
            statement.op.unique = statement.op.args[0] in unique.lists


def _given_by_anyone(function: Function) -> list[Variable]:
    """The parameters that receive what unknown callers pass. A list of the rest of the arguments is made for
    the call."""
    if not function.escapes:
        return []
    definition = function.definition
    rest = len(definition.params) if definition is not None and definition.rest is not None else None
    return [param for i, param in enumerate(function.params) if i != rest]


def _settle_facts(functions: list[Function], known: dict[int, Uniqueness], facts: Facts) -> None:
    """Give up what is known of functions until it holds. Those about whose parameters or callees something
    was given up are looked at again."""
    owners = {param: function for function in functions for param in function.all_params}
    callers: dict[int, list[Function]] = {id(function): [] for function in functions}
    for function in functions:
        for callee, _ in known[id(function)].calls:
            callers[id(callee)].append(function)
    waiting = dict.fromkeys(functions)
    while waiting:
        function = next(iter(waiting))
        del waiting[function]
        unique = known[id(function)]
        unique.settle()
        waiting |= dict.fromkeys(owners[param] for param in _passed(unique, facts))
        for results, holds in (
            (facts.results, unique.is_unique),
            (facts.list_results, unique.is_list),
            (facts.whole_results, unique.is_whole),
        ):
            if results[id(function)] and not unique.gives(holds, results):
                results[id(function)] = False
                waiting |= dict.fromkeys(callers[id(function)])


def _find_kept(functions: list[Function], facts: Facts) -> None:
    """The borrowed parameters that someone may hold on to although the caller owns them."""
    leads = {var: list(sources) for var, sources in facts.names.items()}
    kept: list[Variable] = []
    for function in functions:
        for statement in function.statements():
            called = effects.passes(statement)
            if called is None:
                kept += _kept_operands(statement, facts)
            for param, arg in zip(called[0].all_params, called[1]) if called is not None else ():
                if param.borrowed and isinstance(arg, Variable):
                    leads.setdefault(param, []).append(arg)
    facts.kept = {var for var in spines.reached(kept, leads) if var.borrowed}


def _passed(unique: Uniqueness, facts: Facts) -> set[Variable]:
    """Note which parameters of other functions receive something that may be shared; those that are new."""
    changed: set[Variable] = set()
    received = [pair for callee, args in unique.calls for pair in zip(callee.all_params, args)]
    for param, arg in received + [(param, Constant(None)) for param in unique.captured]:
        for known, holds in (
            (facts.params, unique.is_unique),
            (facts.list_params, unique.is_list),
            (facts.whole_params, unique.is_whole),
        ):
            if known[param] and not holds(arg):
                known[param] = False
                changed.add(param)
    return changed


def _kept_operands(each: ir.Statement, facts: Facts) -> set[Variable]:
    """The variables whose value a statement borrows and yet may hold on to, or give back as its result."""
    called = effects.passes(each)
    if called is not None:
        return {
            a for a, p in zip(called[1], called[0].all_params) if p in facts.kept and isinstance(a, Variable)
        }
    if not isinstance(each, Let):
        return set()
    op = each.op
    borrowed = {a for a, takes in zip(op.args, op.owned()) if not takes and isinstance(a, Variable)}
    match op:
        case ir.Prim():
            return borrowed & {arg for arg in effects.kept(op) if isinstance(arg, Variable)}
        case ir.Share() | ir.Foreign():
            return borrowed
        case ir.MakeRecord() | ir.SetField():
            return borrowed & {arg for arg in effects.watched(op) if isinstance(arg, Variable)}
        case ir.Copy():
            arg = op.args[0]  # of something lent, as one's own
            return (
                {arg} if isinstance(arg, Variable) and each.var.is_managed and not arg.is_managed else set()
            )
    return set()


class Uniqueness:
    """One function: `reasons` has the variables each of whose definitions gives a unique value, and that
    are never shared, and says why; `doubts` says of the others why not."""

    def __init__(self, function: Function, facts: Facts):
        self.function, self.facts = function, facts
        self.reasons: dict[Variable, str] = {}
        self.doubts: dict[Variable, str] = {}
        self.definitions: dict[Variable, list[ir.Op]] = {}
        self.calls: list[tuple[Function, list[Atom]]] = []
        self.captured: list[Variable] = []  # parameters that closures made here receive
        self.ends: list[ir.Statement] = []
        for param in function.all_params:
            if param.is_managed:
                self.reasons[param] = "handed over by every caller"
        self.collect()
        # Those whose every pair is unique, and those of them that are whole.
        self.lists = {var for var in self.reasons if var not in facts.shared} if facts.lists else set()
        self.whole = {var for var in self.lists if var not in facts.broken} if facts.whole else set()

    def collect(self) -> None:
        for statement in self.function.statements():
            for var in spines.reached(_kept_operands(statement, self.facts), self.facts.names):
                self.doubt(var, f"kept at line {getattr(statement, 'place', self.function.place).line}")
            called = effects.passes(statement)
            if called is not None:
                self.calls.append(called)
            match statement:
                case Dup():
                    self.doubt(statement.var, "shared: it is used again after it is given away")
                case Let():
                    self.definitions.setdefault(statement.var, []).append(statement.op)
                    if isinstance(statement.op, ir.MakeClosure):
                        self.captured += statement.op.function.captured
                case ir.LetTry():
                    self.doubt(statement.var, "the result of a try, or its error")
                case ir.Uncons():
                    self.definitions.setdefault(statement.car, []).append(ir.Take([statement.pair], "car"))
                    self.definitions.setdefault(statement.cdr, []).append(ir.Take([statement.pair], "cdr"))
                case ir.Return() | ir.TailCall() | ir.TailClosure():
                    self.ends.append(statement)
        for var in self.definitions:
            if var.is_managed and var not in self.doubts and var not in self.reasons:
                self.reasons[var] = "made once"

    def doubt(self, var: Variable, why: str) -> None:
        self.reasons.pop(var, None)
        self.doubts.setdefault(var, why)

    def settle(self) -> None:
        """Give up what no longer holds by what is known of functions."""
        strangers = _given_by_anyone(self.function)
        for param in self.function.all_params:
            if param.is_managed and not self.facts.params[param]:
                known = param in strangers
                self.doubt(param, "unknown callers may share it" if known else "some caller shares it")
            if not self.facts.list_params[param]:
                self.lists.discard(param)
            if not self.facts.whole_params[param]:
                self.whole.discard(param)
        changed = True
        while changed:
            changed = False
            for var in list(self.reasons):
                for op in self.definitions.get(var, []):
                    why = self.fresh(op)
                    if not why:
                        self.doubt(var, self.stale(op))
                        changed = True
                        break
                    self.reasons[var] = why
            for var in list(self.lists):
                listed = var in self.reasons and all(map(self.fresh_list, self.definitions.get(var, [])))
                if not listed:
                    self.lists.discard(var)
                    changed = True
            for var in list(self.whole):
                if var not in self.lists or not all(map(self.fresh_whole, self.definitions.get(var, []))):
                    self.whole.discard(var)
                    changed = True

    def is_list(self, atom: Atom) -> bool:
        """Whether an operand is a list whose every pair is unique, or no list."""
        return atom in self.lists or spines.is_end(atom)

    def fresh_list(self, op: ir.Op) -> bool:
        """Whether what an operation gives is a list whose every pair is unique, or no list."""
        match op:
            case ir.Copy():
                return self.is_list(op.args[0])
            case ir.Prim(name="cons" | "append"):
                return not op.args or self.is_list(op.args[-1])
            case ir.Prim():
                return spines.makes_list(op)
            case ir.Take(part="cdr") | ir.Reverse():
                return op.args[0] in self.lists
            case ir.Take():
                return op.args[0] in self.whole
            case ir.CallKnown() | ir.CallWithin():
                return self.facts.list_results[id(op.function)]
            case ir.Convert() | ir.MakeRecord() | ir.MakeClosure() | ir.Reuse():
                return True
        return False

    def is_whole(self, atom: Atom) -> bool:
        """Whether an operand is a whole list, or a unique value that is no pair."""
        if isinstance(atom, Constant):
            return ir.is_immediate(atom.value)
        if atom.type == "routine":
            return False
        return (not atom.is_managed and atom.lender is None and not atom.borrowed) or atom in self.whole

    def fresh_whole(self, op: ir.Op) -> bool:
        """Whether what an operation gives is a whole list, or a unique value that is no pair."""
        match op:
            case ir.Copy() | ir.Take() | ir.Reverse():
                return self.is_whole(op.args[0])
            case ir.Prim(name="cons" | "list"):
                return all(map(self.is_whole, op.args))
            case ir.Prim():
                return spines.makes_whole(op)
            case ir.CallKnown() | ir.CallWithin():
                return self.facts.whole_results[id(op.function)]
            case ir.Convert() | ir.MakeRecord() | ir.MakeClosure() | ir.Reuse():
                return True
        return False

    def is_unique(self, atom: Atom) -> bool:
        if isinstance(atom, Constant):
            return ir.is_immediate(atom.value)
        if atom.type == "routine":  # everyone's
            return False
        return (not atom.is_managed and atom.lender is None and not atom.borrowed) or atom in self.reasons

    def gives(self, holds: Callable[[Atom], bool], known: dict[int, bool]) -> bool:
        """Whether something holds of all that the function gives; `known` says it of other functions."""
        for statement in self.ends:
            match statement:
                case ir.Return():
                    if not holds(statement.value):
                        return False
                case ir.TailCall():
                    if not known[id(statement.function)]:
                        return False
                case ir.TailClosure():
                    return False
        return True

    def fresh(self, op: ir.Op) -> str:
        """Why what an operation gives is held by nothing else; "" where it may be."""
        match op:
            case ir.Prim(name="append"):  # the last one becomes the tail of the result
                return "made by append" if not op.args or self.is_unique(op.args[-1]) else ""
            case ir.Prim():
                return f"made by {op.name}" if effects.makes_new(op) else ""
            case ir.Convert():
                return "a number boxed here"
            case ir.MakeRecord():
                return "made as a new record"
            case ir.Reuse():
                return f"made by {op.name}"
            case ir.MakeClosure():
                return "made as a new closure" if op.args else ""
            case ir.CallKnown() | ir.CallWithin():
                given = self.facts.results[id(op.function)]
                return f"the only owner's result of {shown(op.function.name)}" if given else ""
            case ir.Take(part="cdr"):
                return "the rest of a list that nothing else holds" if op.args[0] in self.lists else ""
            case ir.Take():
                return "an element of a list that nothing else holds" if op.args[0] in self.whole else ""
            case ir.Reverse():
                return "made by reverse"
            case ir.Copy():
                arg = op.args[0]
                if isinstance(arg, Variable) and arg in self.reasons:
                    return self.reasons[arg]
                return "no object" if self.is_unique(arg) else ""
        return ""

    def stale(self, op: ir.Op) -> str:
        """Why what an operation gives may be held by something else too."""
        match op:
            case ir.Share():
                return "a share of what is only lent"
            case ir.Prim():
                return f"{op.name} gives what something else may hold"
            case ir.FieldRef():
                return "the field of a record that goes on holding it"
            case ir.CallClosure():
                return "the result of an unknown procedure"
            case ir.LoadGlobal():
                return f"the global {shown(op.name)} goes on holding it"
            case ir.CallKnown() | ir.CallWithin():
                return f"{shown(op.function.name)} may give what something else holds"
            case ir.Take():
                return f"the {op.part} of a list that something else may hold"
            case ir.Copy():
                arg = op.args[0]
                if isinstance(arg, Constant):
                    return "a constant among what it may be"
                return self.doubts.get(arg, f"a copy of {arg.name}")
        return f"the result of {type(op).__name__.lower()}"
