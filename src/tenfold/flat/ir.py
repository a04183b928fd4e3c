"""The shape of FlatIR: types, values, ops and functions. What each op means is in the files beside this one.

An op is a small class whose annotated fields are its operands and attributes, named as in the StableHLO
specification; constructing one checks it and infers its result types. A program is a `Function`: parameters,
results and whatever lies between them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast, dataclass_transform

from tenfold.base import owners
from tenfold.base.dtypes import DType
from tenfold.base.errors import ArgumentError, ShapeError, SizeOutOfRange

BOUND = 10_000  # types that are kept at least


class TensorType:
    """A dtype and a shape, interned: equal types are one object, so hashing and comparing cost nothing."""

    __slots__ = ("dtype", "numel", "rank", "shape")
    _interned: ClassVar[dict[tuple[DType, tuple[int, ...]], TensorType]] = {}
    _bound: ClassVar[int] = BOUND

    dtype: DType
    shape: tuple[int, ...]
    rank: int
    numel: int

    def __new__(cls, dtype: DType, shape: tuple[int, ...]) -> TensorType:
        known = cls._interned.get((dtype, shape))
        if known is None:
            if min(shape, default=0) < 0:
                raise ShapeError(f"a shape has no negative extents: {list(shape)}")
            known = object.__new__(cls)
            known.dtype, known.shape, known.rank, known.numel = dtype, shape, len(shape), math.prod(shape)
            if known.numel * dtype.itemsize >= 1 << 62:
                kind = ShapeError if max(shape) < 1 << 63 else SizeOutOfRange
                raise kind(f"a tensor of shape {list(shape)} has more elements than can be addressed")
            known = cls._interned.setdefault((dtype, shape), known)
            if len(cls._interned) > cls._bound:
                cls._forget()
        return known

    @classmethod
    def _forget(cls) -> None:
        """Let go of types that nothing else refers to: a long run meets ever new shapes."""
        for key in list(cls._interned):
            known = cls._interned.get(key)
            if owners.count(known) <= owners.NAMED + 1:  # the table's
                cls._interned.pop(key, None)
        cls._bound = max(BOUND, 2 * len(cls._interned))

    def __reduce__(self) -> tuple[Any, ...]:
        return TensorType, (self.dtype, self.shape)

    def __repr__(self) -> str:
        return f"{self.dtype.short}[{','.join(map(str, self.shape))}]"


class Value:
    """A result of an op, or a parameter of a function (`op` is None). Its operators are in `build.py`."""

    __slots__ = ("index", "name", "op", "type")

    def __init__(self, type: TensorType, op: Op | None = None, index: int = 0):
        self.type = type
        self.op = op
        self.index = index
        self.name: str | None = None

    @property
    def dtype(self) -> DType:
        return self.type.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape

    @property
    def rank(self) -> int:
        return self.type.rank

    @property
    def numel(self) -> int:
        return self.type.numel

    def __bool__(self) -> bool:
        raise TypeError(f"{self!r} has no truth: its data is not known while a lowering runs")

    def __repr__(self) -> str:
        return f"<{self.name or 'value'}: {self.type}>"

    if TYPE_CHECKING:  # the builders in build.py make these

        def __add__(self, other: Any) -> Value: ...

        def __neg__(self) -> Value: ...

        __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __mod__ = __add__
        __pow__ = __and__ = __or__ = __xor__ = __lt__ = __le__ = __gt__ = __ge__ = __add__
        __invert__ = __neg__


class LateNumber(Value):
    """A Python number that is given when the program runs: promotion and broadcasting treat it as a number.

    A lowering that compares it with another must know it: that is an error, by which the table learns so.
    """

    __slots__ = ()
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        raise TypeError(f"{self!r} is not known while a lowering runs")

    @staticmethod
    def of(value: Value) -> LateNumber:
        """A value that was just computed from late numbers, as a late number."""
        value.__class__ = LateNumber
        return cast(LateNumber, value)


@dataclass_transform(frozen_default=True, eq_default=False)
class Op:
    """Base of all FlatIR ops. `Value` and `tuple[Value, ...]` fields are operands, the others attributes."""

    name: ClassVar[str] = ""
    fields: ClassVar[tuple[str, ...]] = ()
    operand_fields: ClassVar[tuple[tuple[str, bool], ...]] = ()

    def __init_subclass__(cls) -> None:
        annotated = cls.__dict__.get("__annotations__", {})  # noqa: RUF063 (inspect is slow to import)
        own = {k: v for k, v in annotated.items() if not v.startswith("ClassVar")}
        if own:
            cls.fields = tuple(own)
            cls.operand_fields = tuple((k, v != "Value") for k, v in own.items() if "Value" in v)

    def __init__(self, *values: Any):
        state = self.__dict__
        state.update(zip(self.fields, values, strict=True))
        state["source"] = None
        inferred = self.infer()
        if isinstance(inferred, TensorType):
            state["results"] = (Value(inferred, self),)
        else:
            state["results"] = tuple(Value(each, self, i) for i, each in enumerate(inferred))

    def infer(self) -> TensorType | tuple[TensorType, ...]:
        """Check the op and give its result types: the one place where its shape and dtype rule is written."""
        raise NotImplementedError(type(self).__name__)

    @property
    def results(self) -> tuple[Value, ...]:
        return self.__dict__["results"]

    @property
    def source(self) -> Any:
        return self.__dict__["source"]

    @property
    def result(self) -> Value:
        return self.__dict__["results"][0]

    @property
    def pattern(self) -> Op:
        """The op that this is a copy of, or itself: its copies differ in their operands and places alone."""
        return self.__dict__.get("pattern", self)

    @property
    def operands(self) -> tuple[Value, ...]:
        found: tuple[Value, ...] = ()
        for field, many in self.operand_fields:
            value = self.__dict__[field]
            found += value if many else (value,)
        return found

    @property
    def attributes(self) -> dict[str, Any]:
        operands = dict(self.operand_fields)
        return {field: self.__dict__[field] for field in self.fields if field not in operands}

    def replace(self, values: dict[Value, Value], source: Any = None) -> Op:
        """The same op on other operands of the same types; `values` says which (values not in it stay)."""
        state = self.__dict__.copy()
        other = values.get
        for field, many in self.operand_fields:
            operand = state[field]
            if many:
                state[field] = tuple([other(element, element) for element in operand])
            else:
                state[field] = other(operand, operand)
        if source is not None:
            state["source"] = source
        state.setdefault("pattern", self)
        copy = object.__new__(self.__class__)
        copy.__dict__ = state
        results = state["results"]
        if len(results) == 1:
            state["results"] = (Value(results[0].type, copy),)
        else:
            state["results"] = tuple([Value(result.type, copy, result.index) for result in results])
        return copy


class Function:
    """Parameters, results, and the ops between them in an order that respects their operands."""

    __slots__ = ("_ops", "_recipes", "name", "params", "plan", "results")

    def __init__(self, params: Sequence[Value], results: Sequence[Value], name: str = ""):
        self.params = tuple(params)
        self.results = tuple(results)
        self.name = name
        self._ops: tuple[Op, ...] | None = None
        self._recipes: dict[str | None, Recipe] = {}
        self.plan: Any = None  # what tier 0 made of it

    @property
    def ops(self) -> tuple[Op, ...]:
        if self._ops is None:
            self._ops = tuple(in_order(self.results))
        return self._ops

    def expect(self, what: str, params: Sequence[TensorType], results: Sequence[TensorType]) -> None:
        """Check that this is a function from `params` to `results`; `what` says whose and which one."""
        takes, gives = [param.type for param in self.params], [result.type for result in self.results]
        if takes != list(params) or gives != list(results):
            raise ArgumentError(
                f"{what} must turn {list(params)} into {list(results)}, not {takes} into {gives}"
            )

    def inline(
        self,
        arguments: Sequence[Value],
        source: Any = None,
        *,
        whole: bool = False,
        device: str = "cpu",
    ) -> list[Value]:
        """This function's results on other arguments: its ops, made anew, with `source` as their place.

        Composites dissolve into their bodies for a type of device, unless they are to stay `whole`.
        """
        kind = None if whole else device
        recipe = self._recipes.get(kind)
        if recipe is None:
            recipe = self._recipes[kind] = Recipe(self if whole else self.expanded(device))
        return recipe.follow(arguments, source)

    def expanded(self, device: str = "cpu") -> Function:
        """This function without composites."""
        if not any(op.name == "tenfold.composite" for op in self.ops):
            return self
        params = [Value(param.type) for param in self.params]
        values = dict(zip(self.params, params, strict=True))
        replay(self.ops, values, device=device)
        return Function(params, [values.get(result, result) for result in self.results], self.name)


class Recipe:
    """A function's ops, ready to be made anew: of each its fields, and the places of its operands.

    A program is mostly the same few fragments again and again, so this is what building it costs. Values have
    places in the order in which they come: the arguments, values from outside, the results of each op.
    """

    __slots__ = ("arity", "outside", "results", "steps")

    def __init__(self, function: Function):
        read = [*function.results, *[operand for op in function.ops for operand in op.operands]]
        places = {param: i for i, param in enumerate(function.params)}
        self.arity = len(places)
        self.outside = [each for each in dict.fromkeys(read) if each.op is None and each not in places]
        for value in self.outside:
            places[value] = len(places)
        self.steps = []
        for op in function.ops:
            single = [(field, places[op.__dict__[field]]) for field, many in op.operand_fields if not many]
            several = [
                (field, [places[element] for element in op.__dict__[field]])
                for field, many in op.operand_fields
                if many
            ]
            template = {**op.__dict__, "pattern": op.pattern}
            self.steps.append((type(op), template, single, several, [result.type for result in op.results]))
            for value in op.results:
                places[value] = len(places)
        self.results = [places[result] for result in function.results]

    def follow(self, arguments: Sequence[Value], source: Any) -> list[Value]:
        """The results on these arguments; `source` is the new ops' place, None where they keep their own."""
        if len(arguments) != self.arity:
            raise ArgumentError(f"a function of {self.arity} parameters is given {len(arguments)} values")
        new = object.__new__
        values = [*arguments, *self.outside]
        for kind, template, single, several, types in self.steps:
            state = template.copy()
            for field, place in single:
                state[field] = values[place]
            for field, places in several:
                state[field] = tuple([values[place] for place in places])
            if source is not None:
                state["source"] = source
            copy = new(kind)
            copy.__dict__ = state
            if len(types) == 1:
                value = Value(types[0], copy)
                state["results"] = (value,)
                values.append(value)
            else:
                state["results"] = tuple([Value(each, copy, i) for i, each in enumerate(types)])
                values += state["results"]
        return [values[place] for place in self.results]


def replay(
    ops: Iterable[Op],
    values: dict[Value, Value],
    source: Any = None,
    whole: bool = False,
    device: str = "cpu",
) -> None:
    """Make the ops anew on other operands; `values` says which, and learns what becomes of each result."""
    for op in ops:
        copy = op.replace(values, source)
        results = copy.__dict__["results"]
        if op.name == "tenfold.composite" and not whole:
            body = copy.body_for(device)  # type: ignore[attr-defined]
            results = body.inline(copy.operands, source or op.source, device=device)
        values.update(zip(op.__dict__["results"], results, strict=True))


def give_source(results: Sequence[Value], source: Any, known: set[Op]) -> None:
    """Give the new ops behind these values the source of the op that a rule made them for. `known` holds all
    ops that were made before, and gets the new ones."""
    stack = [result.op for result in results]
    while stack:
        op = stack.pop()
        if op is not None and op not in known:
            known.add(op)
            if op.source is None:
                op.__dict__["source"] = source
            stack += [operand.op for operand in op.operands]


def in_order(results: Iterable[Value]) -> list[Op]:
    """Every op that the results need, operands before users; iterative, so depth has no limit."""
    order: list[Op] = []
    seen: set[Op] = set()
    entered: list[Op] = []
    stack: list[Op | None] = [value.op for value in results if value.op is not None]
    stack.reverse()
    while stack:
        op = stack.pop()
        if op is None:  # the operands of the op entered last are all in order
            order.append(entered.pop())
            continue
        if op in seen:
            continue
        seen.add(op)
        entered.append(op)
        stack.append(None)
        for field, many in reversed(op.operand_fields):
            operand = op.__dict__[field]
            for each in reversed(operand) if many else (operand,):
                if each.op is not None and each.op not in seen:
                    stack.append(each.op)
    return order
