"""The compiler's own form of a program: functions of statements in A-normal form, whose operands are
variables or constants.

A conditional's value reaches the join after it through a variable that both branches define; a loop's
parameters are variables defined again before each `Continue`. `own` adds `Dup` and `Drop` and fills in
`on_error`; `certify` checks them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from tenfold.purple import core
from tenfold.purple.core import Place
from tenfold.purple.values import NIL, UNSPECIFIED, Char

T = TypeVar("T")

# What a variable is in C: a counted Value, or a number or truth value as C has it.
VALUE, INT, FLOAT, BOOL = "value", "int", "float", "bool"


class Variable:
    """`type` is what `infer` finds out; `rep` follows from it. `origin` is the source variable, if any."""

    __slots__ = ("borrowed", "is_small", "lender", "name", "number", "origin", "place", "rep", "type")

    def __init__(self, name: str, number: int, place: Place, origin: core.Var | None = None):
        self.name, self.number, self.place, self.origin = name, number, place, origin
        self.type = "none"
        self.rep = VALUE
        self.is_small = False  # an INT that needs no memory as a Value
        self.borrowed = False  # a parameter that stays its caller's
        # What it looks into, where that lives longer: it has no share of its own. It is itself where the
        # caller, or a global, holds it.
        self.lender: Variable | None = None

    def __repr__(self) -> str:
        return f"{self.name}.{self.number}"

    @property
    def is_managed(self) -> bool:
        """Whether someone must release it."""
        managed = self.rep == VALUE and self.type not in UNMANAGED
        return managed and self.lender is None and not self.borrowed


# The type of variables that keep the memory of something that died: no value of the program is of this type.
CELL = "cell"
# Types whose values are immediates.
# A "routine" is a procedure that captures nothing: it is never freed.
UNMANAGED = ("none", "bool", "char", "nil", "void", "routine")


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """A literal; objects among them live as long as the program."""

    value: Any


Atom: TypeAlias = Variable | Constant


@dataclass(slots=True, eq=False)
class Op:
    """What a `Let` computes. `args` are borrowed unless `owned` says otherwise."""

    args: list[Atom]

    def owned(self) -> list[bool]:
        return [False] * len(self.args)


@dataclass(slots=True, eq=False)
class Prim(Op):
    """A primitive; the last arguments belong to `keywords`. `form`, chosen by types, is what C shall do.
    `applied`: the primitive that an `apply` is written with, if it is one; `chosen`: whether what it calls is
    written there at all."""

    name: str
    keywords: tuple[str, ...] = ()
    form: Any = None
    applied: str = ""
    chosen: bool = False

    def owned(self) -> list[bool]:
        stored = STORED.get(self.name, ())
        if self.name == "append":  # whose last argument becomes the tail
            stored = (len(self.args) - 1,)
        return [self.name in CONSTRUCTORS or i in stored for i in range(len(self.args))]


# Primitives that keep their arguments as parts of the result: they take them over. `%hole` adds an element to
# the list that a function builds from its front, whose end is still open.
# Primitives that take some of their arguments over: those that they store.
STORED = {
    "set-car!": (1,),
    "set-cdr!": (1,),
    "vector-set!": (2,),
    "set-box!": (1,),
    "hash-table-set!": (1, 2),
    "%values->vector": (0,),
}
CONSTRUCTORS = ("cons", "list", "vector", "box", "values", "%hole")


@dataclass(slots=True, eq=False)
class Copy(Op):
    def owned(self) -> list[bool]:
        return [True]


@dataclass(slots=True, eq=False)
class Share(Op):
    """A share of one's own in what is only lent."""


@dataclass(slots=True, eq=False)
class Narrow(Op):
    """Its first operand, of which a check has told more: it is an "index", or in this relation to the
    second. `infer` makes it a conversion, or nothing."""

    relation: str


@dataclass(slots=True, eq=False)
class Convert(Op):
    """From one representation of the same value to another: `rep`."""

    rep: str


@dataclass(slots=True, eq=False)
class CallKnown(Op):
    function: Function

    def owned(self) -> list[bool]:
        return [not param.borrowed for param in self.function.all_params]


@dataclass(slots=True, eq=False)
class CallClosure(Op):
    """The first argument is the procedure, which is borrowed; the last ones belong to `keywords`."""

    keywords: tuple[str, ...] = ()

    def owned(self) -> list[bool]:
        return [False] + [True] * (len(self.args) - 1)


@dataclass(slots=True, eq=False)
class MakeClosure(Op):
    function: Function

    def owned(self) -> list[bool]:
        return [True] * len(self.args)


@dataclass(slots=True, eq=False)
class PrimClosure(Op):
    name: str


@dataclass(slots=True, eq=False)
class LoadGlobal(Op):
    name: str
    checked: bool = True


@dataclass(slots=True, eq=False)
class StoreGlobal(Op):
    """Gives nothing; takes its argument over."""

    name: str

    def owned(self) -> list[bool]:
        return [True]


@dataclass(slots=True, eq=False)
class Defined(Op):
    """Fails when the variable's definition has not run: its argument, which is borrowed, is `undefined`."""

    shown: str


@dataclass(slots=True, eq=False)
class IsAbsent(Op):
    """Whether a keyword parameter was not given."""


@dataclass(slots=True, eq=False)
class Truth(Op):
    """Whether a value counts as true. Of a tensor of several elements that is an error: `fails`."""

    fails: bool


@dataclass(slots=True, eq=False)
class CheckField(Op):
    """Fails when the value does not fit the field."""

    type: core.DefType
    index: int


@dataclass(slots=True, eq=False)
class MakeRecord(Op):
    type: core.DefType

    def owned(self) -> list[bool]:
        return [not field.weak for field in self.type.fields]


@dataclass(slots=True, eq=False)
class FieldRef(Op):
    """`known`: that the operand is a record of the type was found before."""

    type: core.DefType
    index: int
    known: bool = False


@dataclass(slots=True, eq=False)
class SetField(Op):
    type: core.DefType
    index: int

    def owned(self) -> list[bool]:
        return [False, not self.type.fields[self.index].weak]


@dataclass(slots=True, eq=False)
class IsRecord(Op):
    type: core.DefType


@dataclass(slots=True, eq=False)
class Foreign(Op):
    declaration: core.Ffi


@dataclass(slots=True, eq=False)
class CallWithin(Op):
    """Calls a function within a scope: "grad", "no-grad" or "device" (its name is lent as first argument)."""

    kind: str
    function: Function

    def owned(self) -> list[bool]:
        given = self.kind == "device"
        return [False] * given + [not param.borrowed for param in self.function.all_params]


@dataclass(slots=True, eq=False)
class Take(Op):
    """`car` or `cdr` of a pair that dies here, by `part`: a `Drop` specialised. `unique` and `cell` as in
    `Uncons`."""

    part: str
    unique: bool = False
    cell: Variable | None = None

    def owned(self) -> list[bool]:
        return [True]


@dataclass(slots=True, eq=False)
class Reverse(Op):
    """A list that dies here, backwards: its pairs are turned round in place. `unique`: nothing else can hold
    one of them; otherwise those that something else holds are copied."""

    unique: bool = False

    def owned(self) -> list[bool]:
        return [True]


@dataclass(slots=True, eq=False)
class Reuse(Op):
    """A tensor operator whose operand at `dying` dies here and gives the result its memory where it fits."""

    name: str
    dying: int

    def owned(self) -> list[bool]:
        return [i == self.dying for i in range(len(self.args))]


@dataclass(slots=True, eq=False)
class Rebuild(Op):
    """A pair or record, as `made` would make it, in the memory of one that died: the cell, the last argument.
    It takes new memory where the cell is empty."""

    made: Prim | MakeRecord

    def owned(self) -> list[bool]:
        return [*self.made.owned(), True]


@dataclass(slots=True, eq=False)
class Let:
    var: Variable
    op: Op
    place: Place
    on_error: tuple[Variable, ...] = ()


@dataclass(slots=True, eq=False)
class LetTry:
    """Calls a function that may fail: `ok` says whether it did not; `var` is its result, or the error."""

    ok: Variable
    var: Variable
    function: Function
    args: list[Atom]
    place: Place


@dataclass(slots=True, eq=False)
class Uncons:
    """Both parts of a pair that dies here. `unique`: nothing else can hold it. `cell`: what keeps its memory
    for the next pair or record of its size, which stays empty where something else holds the pair."""

    car: Variable
    cdr: Variable
    pair: Variable
    place: Place
    unique: bool = False
    cell: Variable | None = None


@dataclass(slots=True, eq=False)
class If:
    test: Atom
    then: Block
    otherwise: Block
    place: Place


@dataclass(slots=True, eq=False)
class Loop:
    """Runs its body once; `Continue` starts it again."""

    label: str
    body: Block


@dataclass(slots=True, eq=False)
class Continue:
    label: str


@dataclass(slots=True, eq=False)
class Return:
    value: Atom


@dataclass(slots=True, eq=False)
class TailCall:
    function: Function
    args: list[Atom]
    place: Place


@dataclass(slots=True, eq=False)
class TailClosure:
    """Returns to whoever lands this function's calls, who goes on with the procedure, `args[0]`."""

    args: list[Atom]
    keywords: tuple[str, ...]
    place: Place


@dataclass(slots=True, eq=False)
class Dup:
    var: Variable


@dataclass(slots=True, eq=False)
class Drop:
    """`reason`: the place of the last use, in words. `unique`: why nothing else can hold the value; else
    `counted` says why something might. `cell`: what keeps its memory, as in `Uncons`, if it is a record of
    the type `shape`, or a pair where that is None."""

    var: Variable
    reason: str
    place: Place
    unique: str = ""
    counted: str = ""
    cell: Variable | None = None
    shape: core.DefType | None = None


Statement: TypeAlias = (
    Let | LetTry | Uncons | If | Loop | Continue | Return | TailCall | TailClosure | Dup | Drop
)
Block: TypeAlias = list[Statement]


@dataclass(slots=True, eq=False)
class Function:
    """`params` are the source's parameters: positional, rest, keywords. `captured` follow them."""

    name: str
    cname: str
    place: Place
    definition: core.Lambda | None
    params: list[Variable] = field(default_factory=list)
    captured: list[Variable] = field(default_factory=list)
    body: Block = field(default_factory=list)
    result: str = "none"
    rep: str = VALUE
    escapes: bool = False
    bounces: bool = False  # whether its result may be PU_BOUNCE
    has_hole: bool = False  # builds a list from its front: see `%hole`
    # It gives no share of its result, a constant or a part of a parameter that it borrows: of which one, and
    # the kinds of containers between. Callers that need the result as their own take a share.
    lends: tuple[int, frozenset[str]] | None = None
    _found: dict[Any, Any] = field(default_factory=dict)
    _found_in: Block | None = None

    @property
    def all_params(self) -> list[Variable]:
        return self.params + self.captured

    def once(self, find: Callable[[Function], T]) -> T:
        """What `find` says of the body, which passes of ownership ask again and again: found once for each
        body. Whoever changes the body in place calls `changed`."""
        if self._found_in is not self.body:
            self._found_in = self.body
            self._found.clear()
        if find not in self._found:
            self._found[find] = find(self)
        found: T = self._found[find]
        return found

    def changed(self) -> None:
        """Its statements, or what they say, were changed in place."""
        self._found_in = None

    def statements(self) -> list[Statement]:
        """Every statement of the body, and of the blocks in it."""
        return self.once(_statements)


def _statements(function: Function) -> list[Statement]:
    return statements(function.body)


@dataclass(slots=True, eq=False)
class Module:
    """A whole program. `main` runs the top level's forms."""

    program: core.Program
    functions: list[Function]
    main: Function
    globals: list[str]
    primitives_as_values: list[str]


def statements(block: Block) -> list[Statement]:
    """Every statement in a block and the blocks inside it. A list, since compiling asks millions of times."""
    found: list[Statement] = []
    add = found.append
    waiting = [iter(block)]
    while waiting:
        for each in waiting[-1]:
            add(each)
            kind = type(each)
            if kind is Let:
                continue
            if kind is If:
                waiting.append(iter(each.otherwise))  # type: ignore[union-attr]
                waiting.append(iter(each.then))  # type: ignore[union-attr]
                break
            if kind is Loop:
                waiting.append(iter(each.body))  # type: ignore[union-attr]
                break
        else:
            waiting.pop()
    return found


def leaves(block: Block) -> bool:
    """Whether control does not reach what follows the block."""
    last = block[-1] if block else None
    if isinstance(last, If):
        return leaves(last.then) and leaves(last.otherwise)
    if isinstance(last, Loop):
        return leaves(last.body)
    return isinstance(last, Return | TailCall | TailClosure | Continue)


def is_immediate(value: Any) -> bool:
    """Whether a literal is no object: a small number, a boolean, a character, nil or what is unspecified."""
    if isinstance(value, bool | Char) or value is NIL or value is UNSPECIFIED:
        return True
    return isinstance(value, int) and -(2**62) <= value < 2**62


def words(shape: core.DefType | None) -> int:
    """The size of a record of a type, or of a pair: its head, a record's type, its parts."""
    return 3 if shape is None else 2 + len(shape.fields)


def can_fail(op: Op) -> bool:
    """Whether an operation may leave by its error path."""
    match op:
        case Prim():
            return op.form is None or op.form.fails != ""
        case LoadGlobal():
            return op.checked
        case Truth():
            return op.fails
        case FieldRef():
            return not op.known
        case (
            Reuse()
            | Reverse()
            | CallKnown()
            | CallClosure()
            | CallWithin()
            | Defined()
            | CheckField()
            | SetField()
            | Foreign()
        ):
            return True
    return False
