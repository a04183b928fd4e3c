"""Which overload a call means, and its arguments as canonical values: PyTorch's argument parser, for any
tensor class.

A `Resolver` holds the overloads of one name. `bind` picks one as PyTorch does and gives a value for each
argument of its schema: numbers, strings, tensors, dtypes and devices as they are, lists as tuples, so that
all but the tensors hash. What the types of a call decide is decided once: after that they cost one lookup.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import index as as_int
from typing import Any, NamedTuple

import numpy as np

from tenfold.base.devices import Device
from tenfold.base.dtypes import BY_NAME, DType, as_dtype
from tenfold.base.errors import ArgumentError, did_you_mean
from tenfold.base.meshes import MeshDevice
from tenfold.ops.fitting import STANDS_FOR
from tenfold.ops.order import in_torch_order, python_name
from tenfold.ops.schema import MISSING, Argument, Schema, Type

__all__ = ["Resolver"]


class Resolver:
    """The overloads of one name, tried in PyTorch's order.

    `tensor` is the class of tensors; an instance is asked for its `ndim`, `dtype` and `requires_grad`
    alone. For a `method`, the first argument of a call is the receiver: the schema's `self`, wherever that
    stands. `numbers_as_tensors` lets a number stand for a tensor where no overload takes it as a number; it
    is handed on as it is. `classes` names the class of each schema type that only the frontend knows, such
    as `Generator`; a type without one takes None alone.
    """

    def __init__(
        self,
        name: str,
        schemas: Sequence[Schema],
        *,
        tensor: type[Any],
        method: bool,
        numbers_as_tensors: bool = False,
        classes: Mapping[str, type] | None = None,
    ):
        if method and not all("self" in [a.name for a in schema.arguments] for schema in schemas):
            raise ValueError(f"{name}: a method's schemas have an argument 'self'")
        self.name = name
        self.schemas = tuple(schemas)
        self._fitter = _Fitter(tensor, classes or {})
        self._method = method
        self.numbers_as_tensors = numbers_as_tensors
        self._overloads: list[_Overload] = []  # made by the first call
        self._older: list[_Overload] = []
        self._plans: dict[tuple[Any, ...], _Plan | None] = {}

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[int, list[Any]]:
        """Index of the matching schema and one converted value per schema argument, or an `ArgumentError`.

        A 0-dim tensor given for a number stays as it is; inside a list of ints it is evaluated.
        """
        if kwargs:
            key: tuple[Any, ...] = (*map(type, args), *map(type, kwargs.values()), *kwargs)
        else:
            key = tuple(map(type, args))
        try:
            plan = self._plans[key]
            if plan is None:  # lists are among them, and what they hold decides
                plan = self._plans[_key_by_elements(args, kwargs)]
        except KeyError:
            plan = None
        if plan is None:
            plan = self._resolve(args, kwargs, key)
        return plan(args, kwargs)

    def _resolve(self, args: tuple[Any, ...], kwargs: dict[str, Any], key: tuple[Any, ...]) -> _Plan:
        attempt, by_type = self._search(args, kwargs)
        plan = attempt.plan()
        if by_type:
            self._plans[key] = None
            self._plans[_key_by_elements(args, kwargs)] = plan  # without lists, the same key
        return plan

    def _search(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[_Attempt, bool]:
        """The first overload that fits, and whether the types of the call alone led to it."""
        if not self._overloads:
            ordered = in_torch_order(self.schemas, self._method)
            self._overloads = [_Overload(s, self.schemas.index(s), self._method) for s in ordered]
            self._older = [
                _Overload(s, self.schemas.index(s), self._method, order)
                for s in ordered
                for order in _older(s)
            ]
        by_type = all(map(self._fitter.is_plain, (*args, *kwargs.values())))
        for numbers in (False, True)[: 1 + self.numbers_as_tensors]:
            attempts = []
            for overload in self._overloads:
                attempt = _Attempt(overload, self._fitter, args, kwargs, numbers)
                by_type = by_type and not attempt.by_value
                if not attempt.problem:
                    return attempt, by_type
                attempts.append(attempt)
            for overload in self._older:
                attempt = _Attempt(overload, self._fitter, args, kwargs, numbers)
                if not attempt.problem:
                    return attempt, by_type and not attempt.by_value
        raise _refusal(self.name, attempts, args, kwargs)


_Fit = Callable[[Any], Any]


def _as_nothing(value: None) -> tuple[()]:
    return ()


_Plan = Callable[[tuple[Any, ...], dict[str, Any]], tuple[int, list[Any]]]
_LISTS = (tuple, list)


def _key_by_elements(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    values = (*args, *kwargs.values()) if kwargs else args
    types = [frozenset(map(type, v)) if isinstance(v, _LISTS) else type(v) for v in values]
    return (*types, *kwargs)


class _Overload:
    """A schema as Python calls it: its parameters in the order of the call, with their slots in it."""

    __slots__ = ("defaults", "index", "method", "names", "parameters", "positional", "schema", "spreads")

    def __init__(self, schema: Schema, index: int, method: bool, order: Sequence[int] | None = None):
        self.schema = schema
        self.index = index
        self.method = method
        self.parameters = list(enumerate(schema.arguments))
        if order is not None:
            self.parameters = [(slot, _required(schema.arguments[slot])) for slot in order]
        if method:
            self.parameters.sort(key=lambda parameter: parameter[1].name != "self")
        self.positional = sum(not a.keyword_only for _, a in self.parameters)
        # A list of ints that stands alone may be spread: x.view(2, 3), rand(2, 3).
        last = self.parameters[self.positional - 1][1].type if self.positional == 1 + method else None
        self.spreads = last is not None and last.is_list and last.kind == "int"
        self.names = {python_name(a, method): slot for slot, a in self.parameters[method:]}
        for name, slot in list(self.names.items()):
            for numpy_name in _NUMPY_NAMES.get(name, ()):
                self.names.setdefault(numpy_name, slot)
        self.defaults = [_default(a) for a in schema.arguments]

    def __str__(self) -> str:
        texts = [_python_text(a, self.method) for _, a in self.parameters[self.method :]]
        if self.positional < len(self.parameters):
            texts.insert(self.positional - self.method, "*")
        return f"({', '.join(texts)})"


# As PyTorch's parser has them, NumPy's `axes` and `shape` besides, and `full(size, value=0.5)`.
_NUMPY_NAMES = {
    "input": ("x", "a", "x1"),
    "other": ("x2",),
    "dim": ("axis",),
    "dims": ("axes",),
    "keepdim": ("keepdims",),
    "fill_value": ("value",),
    "size": ("shape",),
}


def _python_text(argument: Argument, method: bool) -> str:
    type = argument.type
    plain = Type(type.kind, type.optional, type.list_size, type.element_optional)
    return str(Argument(python_name(argument, method), plain, argument.default))


def _default(argument: Argument) -> Any:
    is_dtype = argument.type.kind == "ScalarType" and isinstance(argument.default, str)
    return BY_NAME[argument.default] if is_dtype else argument.default


class _Attempt:
    """One overload tried on one call: where each value comes from, or the first problem met."""

    __slots__ = ("by_value", "moves", "overload", "problem")

    def __init__(
        self,
        overload: _Overload,
        fitter: _Fitter,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        numbers: bool,
    ):
        self.overload = overload
        self.by_value = False  # whether a value, and not its type alone, had to be looked at
        self.moves: list[tuple[int, int | slice | str, _Fit]] = []  # slot, position or keyword, conversion
        self.problem = self._match(fitter, args, kwargs, numbers)

    def _match(self, fitter: _Fitter, args: tuple[Any, ...], kwargs: dict[str, Any], numbers: bool) -> str:
        overload = self.overload
        keywords: dict[int, str] = {}
        for name in kwargs:
            slot = overload.names.get(name)
            if slot is None:
                return f"unexpected keyword argument '{name}'"
            if slot in keywords:
                return f"arguments '{keywords[slot]}' and '{name}' are the same"
            keywords[slot] = name
        used = 0
        for slot, argument in overload.parameters:
            type = argument.type
            where: int | slice | str
            if used < len(args) and not argument.keyword_only:
                where, value = used, args[used]
                used += 1
            elif slot in keywords:
                where = keywords.pop(slot)
                value = kwargs[where]
            elif argument.default is MISSING:
                return self._missing(keywords)
            else:
                continue
            fit = fitter.fit(value, type, numbers)
            self.by_value |= fitter.looks_inside(value, type)
            if fit is None and overload.spreads and where == overload.method:
                where, value, used = slice(used - 1, None), args[used - 1 :], len(args)
                fit = fitter.fit(value, type, numbers)
                self.by_value |= fitter.looks_inside(value, type)
            if fit is None and value is None and argument.default == ():
                fit = _as_nothing  # as PyTorch's parser has it: no dimensions, no stride
            if fit is None:
                name = python_name(argument, overload.method)
                return f"argument '{name}' {fitter.explain(value, type, numbers)}"
            self.moves.append((slot, where, fit))
        if used < len(args):
            most, got = overload.positional - overload.method, len(args) - overload.method
            return f"takes at most {most} positional argument{'s' * (most != 1)}, not {got}"
        if keywords:
            return f"argument '{next(iter(keywords.values()))}' is given by position and by keyword"
        return ""

    def _missing(self, keywords: dict[int, str]) -> str:
        given = {slot for slot, _, _ in self.moves} | keywords.keys()
        names = [
            f"'{python_name(argument, self.overload.method)}'"
            for slot, argument in self.overload.parameters
            if slot not in given and argument.default is MISSING
        ]
        return f"missing the argument{'s' * (len(names) > 1)} {' and '.join(names)}"

    def plan(self) -> _Plan:
        """A function from a call of these types to its schema and values."""
        number, defaults = self.overload.index, self.overload.defaults
        conversions = [(slot, fit) for slot, _, fit in self.moves if fit is not _keep]
        if all(slot == where == i for i, (slot, where, _) in enumerate(self.moves)):
            rest = defaults[len(self.moves) :]

            def in_order(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[int, list[Any]]:
                values = [*args, *rest]
                for slot, fit in conversions:
                    values[slot] = fit(values[slot])
                return number, values

            return in_order
        from_args = [(slot, where, fit) for slot, where, fit in self.moves if not isinstance(where, str)]
        from_kwargs = [(slot, where, fit) for slot, where, fit in self.moves if isinstance(where, str)]

        def by_slot(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[int, list[Any]]:
            values = defaults.copy()
            for slot, where, fit in from_args:
                values[slot] = fit(args[where])
            for slot, name, fit in from_kwargs:
                values[slot] = fit(kwargs[name])
            return number, values

        return by_slot


class _Fitter:
    """Whether a value fits a type of the schemas, and the function that makes it canonical."""

    __slots__ = ("_classes", "_plain", "_tensor")

    def __init__(self, tensor: type[Any], classes: Mapping[str, type]):
        self._tensor = tensor
        self._classes = classes
        self._plain = (tensor, np.generic, *classes.values())

    def is_plain(self, value: Any) -> bool:
        """Whether the type of a value, or those of its elements, say all that the search asks of it."""
        elements = value if isinstance(value, _LISTS) else (value,)
        return all(type(e) in _PLAIN or isinstance(e, self._plain) for e in elements)

    def looks_inside(self, value: Any, type: Type) -> bool:
        """Whether `fit` asks a tensor for its shape, which it does where a number is due."""
        elements = value if isinstance(value, _LISTS) else (value,)
        due = type.kind in _KINDS and _KINDS[type.kind].tensors
        return bool(due) and any(isinstance(e, self._tensor) for e in elements)

    def fit(self, value: Any, type: Type, numbers: bool) -> _Fit | None:
        """The conversion, `_keep` where there is nothing to do, None where the value does not fit."""
        if value is None:
            return _keep if type.optional else None
        if type.list_size is None:
            return self._fit_one(value, type.kind, numbers)
        if isinstance(value, _LISTS):
            fits = [self._fit_element(e, type) for e in value]
            if None in fits:
                return None
            if type.kind == "bool" and type.list_size > 0:
                return partial(_exactly, type.list_size)
            if all(fit is _keep for fit in fits):
                return tuple
            convert = _KINDS[type.kind].convert
            return lambda elements: tuple(map(convert, elements))
        if type.list_size > 0:
            fit, size = self._fit_element(value, type), type.list_size
            return fit and (lambda element: (fit(element),) * size)
        return None

    def _fit_element(self, value: Any, type: Type) -> _Fit | None:
        if value is None:
            return _keep if type.element_optional else None
        fit = self._fit_one(value, type.kind, numbers=False)
        if type.kind != "Tensor" and isinstance(value, self._tensor):
            return as_int if fit and type.kind == "int" else None
        return fit

    def _fit_one(self, value: Any, kind: str, numbers: bool) -> _Fit | None:
        if isinstance(value, self._tensor):
            if kind == "Tensor":
                return _keep
            holds = _KINDS[kind].tensors if kind in _KINDS else ()
            fits = value.ndim == 0 and value.dtype.kind in holds and not value.requires_grad
            return _keep if fits else None
        if kind in self._classes:
            return _keep if isinstance(value, self._classes[kind]) else None
        if kind == "Tensor":
            kind = "Scalar" if numbers else ""
        rule = _KINDS.get(kind)
        if rule is None:
            return None
        return _keep if type(value) in rule.exact else rule.convert if rule.accepts(value) else None

    def explain(self, value: Any, type: Type, numbers: bool) -> str:
        """What the type takes and what it got instead."""
        one, several = _KINDS[type.kind].words if type.kind in _KINDS else _words(type.kind)
        takes = [one] if type.list_size is None else [f"a tuple of {several}"]
        if type.list_size not in (None, -1):
            takes.insert(0, one)
        if type.kind == "Tensor" and type.list_size is None and numbers:
            takes.append("a number")
        if type.optional:
            takes.append("None")
        got = _type_name(value)
        if isinstance(value, _LISTS) and type.is_list:
            wrong = next(i for i, e in enumerate(value) if self._fit_element(e, type) is None)
            got = f"a {got} with {_type_name(value[wrong])} at position {wrong}"
        elif isinstance(value, self._tensor) and self.looks_inside(value, type):
            grad = " that requires grad" if value.requires_grad else ""
            got = f"a {value.ndim}-dim {value.dtype.name} {got}{grad}"
        *most, last = takes
        return f"takes {', '.join(most)}{' or ' if most else ''}{last}, not {got}"


def _type_name(value: Any) -> str:
    return "None" if value is None else type(value).__name__


class _Kind(NamedTuple):
    """What stands for a value of one schema type."""

    words: tuple[str, str]  # what an error calls one and several of them
    exact: tuple[type, ...]  # the types of canonical values
    accepts: Callable[[Any], bool]  # which others become canonical, and by which conversion
    convert: _Fit
    tensors: tuple[str, ...] = ()  # the kinds of dtype whose 0-dim tensors may stand for one


def _keep(value: Any) -> Any:
    return value


def _exactly(size: int, entries: Sequence[Any]) -> tuple[bool, ...]:
    """So many bools, as the length of a list is not looked at when a call is resolved."""
    if len(entries) != size:
        raise ArgumentError(f"takes {size} bools, not {len(entries)}")
    return tuple(map(bool, entries))


def _is_int(value: Any) -> bool:
    try:
        as_int(value)
    except TypeError:
        return False
    return not isinstance(value, bool)


_NUMBERS: dict[str, tuple[type, ...]] = {
    "bool": (bool, np.bool_),
    "int": (int, np.integer),
    "float": (float, np.floating),
    "complex": (complex, np.complexfloating),
}


def _number_for(kind: str) -> Callable[[Any], bool]:
    """Whether a number of Python's or NumPy's stands for an argument of this type."""
    types = tuple([each for stands in STANDS_FOR[kind] for each in _NUMBERS[stands]])
    return lambda value: isinstance(value, types)


def _is_string(value: Any) -> bool:
    return isinstance(value, str)


def _is_dtype(value: Any) -> bool:
    return isinstance(value, type) and value in (bool, int, float, complex)


def _number(value: Any) -> bool | int | float | complex:
    """Python's number. NumPy's bool is a float, as PyTorch's parser has it."""
    for python, types in ((bool, bool), (int, int | np.integer), (float, float | np.floating | np.bool_)):
        if isinstance(value, types):
            return python(value)
    return complex(value)


def _words(name: str) -> tuple[str, str]:
    return f"a {name}", f"{name}s"


_KINDS = {
    "int": _Kind(("an int", "ints"), (int,), _is_int, as_int, STANDS_FOR["int"]),
    "float": _Kind(_words("float"), (float,), _number_for("float"), float, STANDS_FOR["float"]),
    "bool": _Kind(_words("bool"), (bool,), _number_for("bool"), bool, STANDS_FOR["bool"]),
    "complex": _Kind(_words("complex"), (complex,), _number_for("complex"), complex, STANDS_FOR["complex"]),
    "Scalar": _Kind(
        _words("number"), (int, float, bool, complex), _number_for("Scalar"), _number, STANDS_FOR["Scalar"]
    ),
    "str": _Kind(_words("string"), (str,), _is_string, str.__str__),
    "ScalarType": _Kind(_words("dtype"), (DType,), _is_dtype, as_dtype),
    "Device": _Kind(
        _words("device"), (Device, MeshDevice), lambda value: _is_string(value) or _is_int(value), Device
    ),
    # Enumerations go by their words.
    "Layout": _Kind(_words("layout"), (str,), _is_string, str.__str__),
    "MemoryFormat": _Kind(_words("memory format"), (str,), _is_string, str.__str__),
    "QScheme": _Kind(_words("quantization scheme"), (str,), _is_string, str.__str__),
    "Dimname": _Kind(_words("dimension name"), (str,), _is_string, str.__str__),
}


def _required(argument: Argument) -> Argument:
    """The argument as one that a call must give, by its position."""
    return Argument(argument.name, argument.type)


_FACTORS = ("alpha", "value")


def _older(schema: Schema) -> list[list[int]]:
    """The orders, as slots of the schema, in which programs from before PyTorch 1.5 give the arguments, and
    which PyTorch still takes: factors stand in front of what they scale, as in `add(x, 0.1, y)` and
    `addmm(0.5, x, 2, a, b)`."""
    by_name = {argument.name: slot for slot, argument in enumerate(schema.arguments) if argument.keyword_only}
    operands = [slot for slot, argument in enumerate(schema.arguments) if not argument.keyword_only]
    tensors = all(schema.arguments[slot].type.kind == "Tensor" for slot in operands)
    factors = [by_name[name] for name in _FACTORS if name in by_name]
    if not tensors or len(operands) < 2 or not factors or not set(by_name) <= {"beta", *_FACTORS}:
        return []
    first, *rest = operands
    if "beta" not in by_name:
        return [[first, *factors, *rest]]
    return [[by_name["beta"], first, *factors, *rest], [by_name["beta"], first, *rest]]


_PLAIN = {int, float, bool, complex, str, DType, Device, type(None), MeshDevice}


def _refusal(
    name: str, attempts: list[_Attempt], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> ArgumentError:
    """The error for a call that no overload takes."""
    known = sorted({keyword for attempt in attempts for keyword in attempt.overload.names})
    unknown = [keyword for keyword in kwargs if keyword not in known]
    if unknown or len(attempts) == 1:
        problem = f"unexpected keyword argument '{unknown[0]}'" if unknown else attempts[0].problem
        signatures = " or ".join(f"{name}{attempt.overload}" for attempt in attempts)
        near = did_you_mean(unknown[0], known) if unknown else None
        return ArgumentError(problem, help=near or f"it is {signatures}").located(name, None)
    got = [_type_name(value) for value in args[attempts[0].overload.method :]]
    got += [f"{keyword}={_type_name(value)}" for keyword, value in kwargs.items()]
    best_first = sorted(
        attempts, key=lambda attempt: (-len(attempt.moves), attempt.problem.startswith("takes"))
    )
    tried = "".join(f"\n    {name}{attempt.overload}: {attempt.problem}" for attempt in best_first)
    return ArgumentError(f"no overload takes ({', '.join(got)}){tried}").located(name, None)
