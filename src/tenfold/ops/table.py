"""THE TABLE: one row for each ATen overload, made by the decorator `op`. Everything else reads it.

A row is a schema, a lowering to FlatIR and the few facts that neither says. The rows themselves are in the
files beside this one, one file for each family.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from sys import _getframe
from typing import Any, NamedTuple

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.bounded import Generations
from tenfold.base.errors import TenfoldError
from tenfold.ops.callee import OpCall, weight
from tenfold.ops.contents import Table
from tenfold.ops.numbers import require_width
from tenfold.ops.promote import Promotion
from tenfold.ops.schema import Schema, parse

Lowering = Callable[..., Any]

# Arguments that say where and how a result is kept, not what it is: lowerings do not see them.
PLACEMENT = {"layout", "device", "pin_memory", "memory_format", "non_blocking"}
# How the first argument of a method is written.
RECEIVERS = ("Tensor self", "Tensor(a) self", "Tensor(a -> *) self")
# ATen's prefixes for what PyTorch keeps in submodules.
MODULES = {"special_": "special", "linalg_": "linalg", "fft_": "fft"}
# What Python calls by another name than ATen.
RENAMED = {"log_sigmoid": "logsigmoid"}


# The types of numbers that may be left open until a program runs.
LATE = {int: flat.TensorType(dtypes.int64, ()), float: flat.TensorType(dtypes.float64, ())}
# What integers that may be left open are called; a lowering whose result's shape depends on one refuses it.
LATE_NAMES = {"index", "diagonal"}


UNABLE = object()


class _Slot:
    """Stands in a signature's arguments for a tensor, which is given apart."""

    def __repr__(self) -> str:
        return "SLOT"


SLOT = _Slot()


_NEGATIVE_ZERO = type("NegativeZero", (float,), {})(-0.0)


class ExactComplex(complex):
    """A complex number with a part that is -0.0 or NaN, in a form that compares by its bits with its like."""

    def _parts(self) -> tuple[Any, ...]:
        parts = exact(self.real), exact(self.imag)
        return (*parts, *map(type, parts))

    def __eq__(self, other: object) -> bool:
        return self._parts() == other._parts() if isinstance(other, ExactComplex) else super().__eq__(other)

    def __hash__(self) -> int:
        return hash(self._parts())


def exact(number: Any) -> Any:
    """The number in a form that hashes by its bits: -0.0 equals 0.0, and NaN not even itself."""
    if type(number) is complex:
        parts = number.real, number.imag
        return number if all(exact(part) is part for part in parts) else ExactComplex(number)
    if number == 0.0 and math.copysign(1.0, number) < 0:
        return _NEGATIVE_ZERO
    return math.nan if number != number else number


class Sized(NamedTuple):
    """How a row whose result's size depends on data is lowered to FlatIR where that size stays open."""

    # From a size and the arguments to the results, were they of this size, and the size that they have.
    lowering: Callable
    bound: Callable[..., int] | None  # from the arguments, the most elements; None: as many as the data say


class Facts:
    """What a row may state besides its schema and its lowering, and what holds where it does not."""

    # What it computes, in the schema's names: for rows that share a lowering with others, or are declared by
    # a function. Else the lowering's docstring says it.
    meaning: str = ""

    # Names: where Python finds it.
    method: bool = False  # a Tensor method; from the schema, where a row does not say
    function: bool = True
    module: str | None = None  # the submodule of the function: "nn", "special", "linalg", "fft"
    inplace: bool = False  # there is a method `name_`
    # Further forms that PyTorch has: `function_`, the function `name_`; `aten_`, `name_` among ATen's
    # overloads alone; `foreach`, the functions on lists of tensors.
    forms: str = ""

    # Types.
    promote: Promotion | None = None
    numbers: bool = False  # the function takes numbers in tensors' places
    keeps_dtype: bool = False  # the in-place method refuses a result of another dtype
    # The precision that autocast runs it in, on every device or by device: "lower", "float32", "widest" (of
    # its arguments), "float32 result" (unless the call names a dtype); "cpu: float32, cuda: widest".
    autocast: str = ""

    # What PyTorch's FlopCounterMode counts its products as: "mm", "convolution"; "attention" for those of
    # fused kernels. Or a function of its tensors' types that tells.
    flops: str | Callable[[Sequence[flat.TensorType]], str] = ""

    # How it computes.
    random: bool = False  # the lowering takes a generator's state first and returns the next one last
    host: bool = False  # a NumPy function, whose result's shape depends on data
    chooses: bool = False  # a host function that gives places, of elements of its first argument
    sized: Sized | None = None  # how a host function is recorded inside a compiled function
    prepare: Callable | None = None  # completes a call's arguments by numbers that its tensors hold
    # From a signature's types and arguments to the arguments in which numbers that may stay open until a
    # program runs are replaced by their types, and those numbers. Else Scalars, floats and LATE_NAMES may.
    late: Callable | None = None
    special: tuple[float, ...] = ()  # numbers that the lowering treats in a way of their own: they may not
    # A function of tensors that runs in the op's place, and gives NotImplemented where the op itself is to.
    instead: Callable | None = None
    # Whether an `out=` of another dtype is taken, if that holds the result, or the dtypes that are, or for
    # which arguments. None: if the row promotes. If not False, an op that may be told a dtype computes in
    # that of `out=`.
    casts_out: bool | tuple[dtypes.DType, ...] | Callable[..., bool] | None = None
    fills_out: bool = False  # an `out=` of as many elements keeps its shape
    # ATen's overload with `out=`, where its name does not follow from the row's, and what the schema calls
    # the tensors that are written, where not `out` or as the results.
    out_overload: str = ""
    out_names: str = ""
    uniform: bool = False  # all elements of a result are equal: it may be written into an expanded tensor
    linear: bool = False  # of each element, f(a + b) = f(a) + f(b): sparse tensors may hold one in parts

    # Gradients: `False` where they stop, or a tuple that says so of each result.
    differentiable: bool | tuple[bool, ...] = True
    # What PyTorch calls the node of its gradient, where it is not named after the op: "MulBackward0", or a
    # function of the ranks of its tensors.
    grad_fn: str | Callable[[list[int]], str] = ""
    # What PyTorch's gradient saves, if not the inputs and results that ours needs: "inputs", of which it
    # computes the rest again; or "other" values. It matters where `.data` replaced them since.
    saves: str = ""
    saves_views: tuple[int, ...] = ()  # the inputs of which PyTorch's gradient saves a view, by their places

    # Views (see `views.py`).
    strides: Callable | None = None
    write: Callable | None = None
    steps: Callable | None = None
    recodes: bool = False
    storage: bool = False

    # How it is written for a dialect that lacks it: an expression of the arguments, ATen's functions and
    # those of `exporting/expansion_…`, "transpose(self, -2, -1)"; a function alone takes all arguments.
    torch_dialect: str = ""  # an alias is written by its op's first name, unless this says "own name"
    reflected: str = ""  # what the torch dialect calls it with a number on the left and operands exchanged
    torch_lowering: str = ""  # for torch-mlir's ways down from the torch dialect, which has it
    open_stablehlo: str = ""  # for StableHLO where sizes are open

    # Positions, which R counts from one, where the names of arguments and results do not tell: other
    # arguments, after `not` those that are none, after `->` the results' numbers. "target", "-> 0".
    positions: str = ""

    # What libtorch does not check of the arguments, though it divides by them or reads past their end:
    # "groups > 0", "some tensors", or a check in `capi/src` by name. `capi/needs.py` has the words.
    needs: str = ""

    # Tests: arguments where those from the schema will not do, and why values differ from PyTorch's.
    samples: Callable | None = None
    differs: str | None = None


DEFAULTS: dict[str, Any] = {name: getattr(Facts, name) for name in Facts.__annotations__}


class Row(Facts):
    """One overload. `signature` is the way in for all who need its types or its FlatIR."""

    def __init__(self, text: str, lowering: Lowering, facts: dict[str, Any]):
        self.text = text
        head = text[: text.index("(")]
        self.namespace, self.qualified = head.split("::") if "::" in head else ("aten", head)
        self.name, _, self.overload = self.qualified.partition(".")
        self.lowering = lowering
        if not facts.keys() <= DEFAULTS.keys():
            raise TypeError(f"op {self.qualified}: unknown facts {sorted(facts.keys() - DEFAULTS.keys())}")
        vars(self).update(DEFAULTS)  # many rows at every import: this is the quick way
        vars(self).update(facts)
        if "method" not in facts:
            self.method = text.partition("(")[2].startswith(RECEIVERS)
        if self.module is None:
            self.module = next((m for prefix, m in MODULES.items() if self.name.startswith(prefix)), None)
        self.home = ""  # the module that declares it, and its names
        self.scope: dict[str, Any] = {}
        self.alias_of: str | None = None
        self.calls = Generations(weight)  # of OpCalls; `UNABLE` for loose ones that cannot be
        self._schema: Schema | None = None

    @property
    def is_own(self) -> bool:
        """Whether the package itself declares the row, and not a user's package or `library.custom_op`."""
        return self.home.startswith("tenfold.ops.")

    @property
    def schema(self) -> Schema:
        return self._parsed()

    def _parsed(self) -> Schema:
        """The schema, and what follows from it: read when it is first asked for."""
        if self._schema is None:
            self._schema = parse(self.text)
            self._names = [a.name for a in self._schema.arguments]
            # Where the random state stands: for a generator, or after the arguments where there is none.
            self._state = (*self._names, "generator").index("generator") if self.random else None
            hidden = (*PLACEMENT, "generator") if self.random else PLACEMENT
            self._lowered = [i for i, name in enumerate(self._names) if name not in hidden]
        return self._schema

    @property
    def doc(self) -> str:
        """What it computes, in one line."""
        return " ".join((self.meaning or self.lowering.__doc__ or "").split())

    @functools.cached_property
    def python_name(self) -> str:
        prefix = next((p for p in MODULES if self.name.startswith(p)), "")
        return RENAMED.get(self.name, self.name[len(prefix) :])

    def call(self, types: tuple[flat.TensorType, ...], arguments: tuple) -> OpCall:
        """The signature for these input types and arguments (tensors in them are SLOTs), memoised."""
        key = _key(types, arguments)
        call = self.calls.get(key)
        if call is None:
            call = self.calls.older(key) or self.calls.keep(key, self._infer(types, arguments))
        return call

    def _infer(
        self, types: tuple[flat.TensorType, ...], arguments: tuple, late: Sequence[flat.TensorType] = ()
    ) -> OpCall:
        for declared, argument in zip(self.schema.arguments, arguments, strict=False):
            require_width(declared.type.kind, argument)
        params = [flat.Value(each) for each in types]
        numbers = [flat.LateNumber(each) for each in late]
        remaining, remaining_numbers = iter(tuple(params)), iter(numbers)
        params += numbers
        given = self.bind_values(
            [
                _number(argument, remaining_numbers)
                if late and _left_open(argument)
                else fill(argument, remaining)
                for argument in arguments
            ]
        )
        results = self.lowering(*given)
        fragment = flat.Function(
            params, results if isinstance(results, (tuple, list)) else (results,), self.name
        )
        return OpCall(self, types, arguments, fragment)

    def loosen(self, signature: OpCall) -> tuple[OpCall, tuple[int | float, ...]]:
        arguments, numbers = (self.late or self._late)(signature.types, signature.arguments)
        if not numbers:
            return signature, ()
        found = self._loose_call(signature.types, arguments, [type(number) for number in numbers])
        fits = found is not None and found.result_types == signature.result_types
        return (found, numbers) if found is not None and fits else (signature, ())

    def late_call(
        self, types: tuple[flat.TensorType, ...], arguments: tuple, places: Sequence[int]
    ) -> OpCall | None:
        """The signature that takes the numbers at these places as inputs after the tensors; None if the
        lowering must know them."""
        left, _ = (self.late or self._late)(types, arguments)
        if any(left[i] is not type(arguments[i]) for i in places):
            return None
        kept = tuple([type(argument) if i in places else argument for i, argument in enumerate(arguments)])
        return self._loose_call(types, kept, [type(arguments[i]) for i in places])

    def _loose_call(
        self, types: tuple[flat.TensorType, ...], arguments: tuple, late: Sequence[type]
    ) -> OpCall | None:
        """The signature whose numbers of these types are inputs; None if the lowering must know them."""
        key = ("loose", *_key(types, arguments))
        call = self.calls.get(key) or self.calls.older(key)
        if call is None:
            call = UNABLE
            with contextlib.suppress(ArithmeticError, AttributeError, LookupError, TypeError, TenfoldError):
                # Whatever it raises, what it does with the number is for numbers of Python's alone.
                call = self._infer(types, arguments, [LATE[each] for each in late])
                call._loose = (call, ())
            call = self.calls.keep(key, call)
        return None if call is UNABLE else call

    def _late(
        self, types: tuple[flat.TensorType, ...], arguments: tuple
    ) -> tuple[tuple, tuple[int | float, ...]]:
        """The arguments with numbers that may come late replaced by their types, and those numbers."""
        left, numbers = list(arguments), []
        for i, (argument, value) in enumerate(zip(self.schema.arguments, arguments, strict=False)):
            kind = argument.type.kind
            # A number in a tensor's place is one, too.
            if kind not in ("Scalar", "float", "Tensor") and argument.name not in LATE_NAMES:
                continue
            if type(value) in LATE and value != argument.default and self._opens(value):
                left[i] = type(value)
                numbers.append(value)
        return tuple(left), tuple(numbers)

    def _opens(self, number: float) -> bool:
        """Whether a number may come late."""
        return -(1 << 63) <= number < 1 << 63 and number not in self.special

    def bind_values(self, arguments: Sequence[Any]) -> list[Any]:
        """All arguments as the lowering takes them: without placement, promoted, random state first."""
        self._parsed()
        names = [self._names[i] for i in self._lowered]
        given = [arguments[i] for i in self._lowered]
        if self.promote:
            given = self.promote(names, given)
        return given if self._state is None else [arguments[self._state], *given]

    def __repr__(self) -> str:
        return f"<Row {self.namespace}::{self.qualified}>"


def _key(types: tuple[flat.TensorType, ...], arguments: tuple) -> tuple[Any, ...]:
    """What a signature is remembered by. 1, 1.0 and True are equal and hash alike, but promote differently:
    it holds their types too."""
    return types, arguments, _kinds(arguments), dtypes.get_default_dtype()


def _kinds(arguments: tuple) -> tuple[Any, ...]:
    return tuple([_kinds(argument) if type(argument) is tuple else type(argument) for argument in arguments])


def written(types: tuple[flat.TensorType, ...], arguments: tuple) -> tuple[tuple, tuple[int | float, ...]]:
    """The fact `late` of a row that needs its numbers to choose how it computes: none of them comes late."""
    return arguments, ()


def _left_open(argument: Any) -> bool:
    """Whether an argument is a number, or numbers, that come late: in their place stand their types."""
    return argument is int or argument is float or (type(argument) is tuple and int in argument)


def _number(argument: Any, numbers: Iterator[flat.LateNumber]) -> Any:
    if type(argument) is tuple:
        return tuple([next(numbers) if each is int else each for each in argument])
    return next(numbers)


def fill(argument: Any, values: Iterator[Any]) -> Any:
    """An argument with its SLOTs replaced by values, in order."""
    if argument is SLOT:
        return next(values)
    if type(argument) is tuple and SLOT in argument:
        return tuple([fill(each, values) for each in argument])
    return argument


TABLE = Table()
# Who is told the name of each op that is declared from now on: what the frontend and others made of the table
# so far lacks it.
LISTENERS: list[Callable[[str], None]] = []
# Rows of other namespaces than ATen's, such as `prims`, by namespace: reached through `tenfold.ops` alone.
OTHERS: dict[str, Table] = {}


def op(*schemas: str, **facts: Any) -> Callable[[Lowering], Lowering]:
    """Declare rows: one for each schema, all lowered by the decorated function.

    Schemas of other names than the first's are aliases of it. `Facts` lists what else a row may state. A row
    that is declared after `import tenfold`, in a package of yours, gets its function and its method then.
    """

    scope = _getframe(1).f_globals

    def declare(lowering: Lowering) -> Lowering:
        first = ""
        news: dict[str, None] = {}  # the names of rows that nobody knew of
        for text in schemas:
            row = Row(text, lowering, facts)
            row.home, row.scope = scope["__name__"], scope
            first = first or row.name
            row.alias_of = None if row.name == first else first
            table = TABLE if row.namespace == "aten" else OTHERS.setdefault(row.namespace, Table())
            if table.add(row):
                news[text[: text.index("(")].partition(".")[0]] = None
        for name in news:
            for listener in LISTENERS:
                listener(name)
        return lowering

    return declare


def find(qualified: str) -> Row:
    """The row of an overload, by its ATen name such as "add.Tensor"."""
    name, _, overload = qualified.partition(".")
    return next(row for row in TABLE[name] if row.overload == overload)


class LateRows:
    """Rows under names of a module's own, as `LateRows(select="select.int").select`: each is looked up when
    it is first used."""

    def __init__(self, **overloads: str):
        self._overloads = overloads

    def __getattr__(self, name: str) -> Row:
        if name.startswith("_"):
            raise AttributeError(name)
        row = find(self._overloads[name])
        setattr(self, name, row)
        return row


def with_form(form: str) -> list[str]:
    """The names of ops that PyTorch has in a further form, one of the words of the fact `forms`.

    Functions on lists are there for an op's first name alone, not for its aliases.
    """
    return [name for name in TABLE.names() if form in TABLE.doors(name)[3]]


def all_rows() -> Iterator[Row]:
    for rows in TABLE.values():
        yield from rows
