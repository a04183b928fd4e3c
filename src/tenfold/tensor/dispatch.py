"""From the table to Python: a function for each name, a method, an in-place method, operators and properties.

`invoke` is the one way from a call to the Trace: it takes tensors apart into trace values, records the op,
and puts what comes back together as PyTorch does (views, named tuples, random state, `out=`).
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Container, Sequence
from typing import Any

import numpy as np

from tenfold import tensor
from tenfold.base import devices, dtypes, package
from tenfold.base.bounded import Generations
from tenfold.base.devices import Device
from tenfold.base.errors import ArgumentError, DeviceError, DTypeError, TenfoldError, UnsupportedError
from tenfold.base.late import on_first_use
from tenfold.base.source import capture
from tenfold.base.warning import warn
from tenfold.engines import xla
from tenfold.flat.strides import FORMATS, contiguous
from tenfold.ops.callee import weight
from tenfold.ops.resolve import Resolver
from tenfold.ops.table import LISTENERS, TABLE, Row, exact, find
from tenfold.runtime import evaluate
from tenfold.runtime.cutting import SHORT, is_due
from tenfold.tensor import Tensor, generators, leaf, symbolic
from tenfold.tensor.documentation import Docstring, written
from tenfold.tensor.overriding import CODES, hand_over, inner_code, overriding
from tenfold.tensor.repeated_calls import key_of
from tenfold.trace import graph
from tenfold.trace.context import context
from tenfold.trace.graph import NO_DATA, Node, Value, call_op, located

with on_first_use(__name__):
    from tenfold.base.watched_sizes import plain as plain_numbers
    from tenfold.tensor import memory_formats, sized


CLASSES = {"Generator": generators.Generator}
_CPU = Device("cpu")


class Plan:
    """What `invoke` must know of a row beyond its signature, read off the schema once."""

    def __init__(self, row: Row):
        schema = row.schema
        self.row = row
        self.tensors = [a.type.kind == "Tensor" for a in schema.arguments]
        names = [a.name for a in schema.arguments]
        self.device = names.index("device") if "device" in names else None
        self.generator = names.index("generator") if "generator" in names else None
        self.placement = [(i, name) for i, name in enumerate(names) if name in PLACES]
        # A row with strides shares memory also where its schema, as `_unsafe_view`'s, does not say so.
        self.view = schema.is_view or row.strides is not None
        self.lists = len(schema.returns) == 1 and schema.returns[0].type.is_list
        self.number = len(schema.returns) == 1 and schema.returns[0].type.kind in (
            "bool",
            "int",
            "float",
            "Scalar",
        )
        fields = [r.name for r in schema.returns]
        named = len(fields) > 1 and all(fields)
        self.bundle: Callable[..., Any] | None = None
        if named:
            self.bundle = return_type(row.name, tuple(fields))._make
        elif len(fields) > 1:
            self.bundle = tuple
        # The arguments that are written to, and for each result the one that it is.
        self.written = [i for i, a in enumerate(schema.arguments) if a.type.is_written]
        self.returned = [self._written_as(result.type) for result in schema.returns]
        # Whether the arguments need no more than tensors taken apart.
        self.plain = self.device is None and not (row.random or row.host)
        # Whether a call that names no device is no more than its node: one tensor out, that is no view.
        one = self.bundle is None and not (self.lists or self.number or self.view)
        drawn = row.random or row.host or row.storage or self.written
        self.quick = one and row.prepare is None and not drawn

    def _written_as(self, result: Any) -> int | None:
        """The argument that is written to and given back as this result."""
        arguments = self.row.schema.arguments
        shared = [i for i in self.written if arguments[i].type.alias_sets & result.alias_sets]
        return shared[0] if shared else None


@functools.cache
def return_type(name: str, fields: tuple[str, ...]) -> Any:
    """The class of an op's several named results, as in `tenfold.return_types`."""
    named: Any = collections.namedtuple(name, fields)  # type: ignore[misc]

    def made(cls: Any, *results: Any, **by_name: Any) -> Any:
        """Of the results one by one, or of a sequence of them, as PyTorch's classes take it."""
        if len(results) == 1 and not by_name and isinstance(results[0], (tuple, list)):
            results = tuple(results[0])
        return named.__new__(cls, *results, **by_name)

    words = {"__slots__": (), "__new__": made, "__repr__": _printed, "__module__": "tenfold.return_types"}
    return type(name, (named,), words)


def _printed(results: Any) -> str:
    """Several results by their names, a line for each to begin on, as PyTorch prints them."""
    named = [f"{field}={getattr(results, field)!r}" for field in results._fields]
    return f"{package.shown}.return_types.{type(results).__name__}(\n" + ",\n".join(named) + ")"


# What arguments that ask for a place or order in memory may say: tensors are dense. Memory that is pinned is
# a matter of speed, which XLA sees to itself. Tensors that are not in row-major order are views, as
# `memory_formats.py` tells.
PLACES: dict[str, tuple[Any, ...]] = {
    "layout": (None, "strided"),
    "pin_memory": (None, False, True),
    "memory_format": (None, "contiguous_format", "preserve_format"),
}


def require_placement(name: str, placement: Any) -> None:
    if placement not in PLACES[name]:
        known = " or ".join(repr(place) for place in PLACES[name][1:])
        raise UnsupportedError(f"{name}={placement!r} is not supported", help=f"leave it out, or use {known}")


_plans: dict[Row, Plan] = {}


def invoke(row: Row, arguments: Sequence[Any], where: Any) -> Any:
    """Call an op on tensors: `arguments` are one for each of the schema's."""
    plan = _plans.get(row)
    if plan is None:
        plan = _plans[row] = Plan(row)
    if row.instead is not None:
        result = row.instead(*arguments)
        if result is not NotImplemented:
            return result
    if context.autocast is not None:
        arguments = context.autocast(row, arguments)
    try:
        for position, name in plan.placement:
            placement = arguments[position]
            if placement is not None:
                if name == "memory_format" and placement in FORMATS:
                    return _in_format(plan, arguments, position, where)
                require_placement(name, placement)
                if name == "pin_memory":  # no other compiler need hear of it
                    arguments = [*arguments[:position], None, *arguments[position + 1 :]]
        if row.prepare is not None:
            arguments = row.prepare(*arguments)
    except TenfoldError as error:
        raise error.located(row.python_name, where) from None
    values = [
        _argument(argument, is_tensor) for argument, is_tensor in zip(arguments, plan.tensors, strict=True)
    ]
    if plan.written:
        return _writing(plan, arguments, values, where)
    if row.host:
        if row.sized is not None and (counts := sized.counts()) is not None:
            return _wrap(plan, [Tensor(value) for value in sized.call(row, values, counts, where)])
        return _chosen(plan, values, where) if row.chooses else _on_host(plan, values, where)
    if row.storage:
        return _on_storage(plan, arguments, values, where)
    if row.random:
        with (
            generators.lock
        ):  # between taking a generator's state and giving it the next, no other draws from it
            return _recorded(plan, arguments, values, where)
    return _recorded(plan, arguments, values, where)


def _in_format(plan: Plan, arguments: Sequence[Any], position: int, where: Any) -> Tensor:
    """Call a row whose result gets another memory format: a new tensor, or the given one if it has it
    already."""
    memory_format = arguments[position]
    if plan.view:
        viewed: Tensor = arguments[0]
        return (
            viewed if viewed.is_contiguous(memory_format) else memory_formats.arranged(viewed, memory_format)
        )
    plain = [None if i == position else argument for i, argument in enumerate(arguments)]
    return memory_formats.arranged(invoke(plan.row, plain, where), memory_format)


def _recorded(plan: Plan, arguments: Sequence[Any], values: list[Any], where: Any) -> Any:
    row = plan.row
    if plan.view and context.exporting:
        values = symbolic.known(values, row)
    try:
        device, generator = (None, None) if plan.plain else _prepare(plan, values)
    except TenfoldError as error:
        raise located(error, row, where, values) from None
    results = call_op(row, values, where, device)
    _bound_depth(results)
    if generator is not None:
        if _moved_on(results[-1]):
            generator.state.assign(results[-1])
        results = results[:-1]
    if plan.view:
        return _wrap(plan, [_view(plan, arguments, values, result) for result in results])
    return _wrap(plan, [Tensor(result) for result in results])


def _moved_on(state: Value) -> bool:
    """Whether an op has drawn from its generator: attention without dropout returns the state unchanged."""
    if state.node is None:
        return True
    fragment = state.node.callee.fragment
    return fragment.results[-1] not in fragment.params


def _bound_depth(results: Sequence[Value]) -> None:
    """Compute the results of a node at the end of a long chain, unless a function is being recorded."""
    node = results[0].node if results else None
    if node is not None and node.depth > SHORT and context.recorder is None and is_due(node):
        evaluate.evaluate(results)


def _writing(plan: Plan, arguments: Sequence[Any], values: list[Any], where: Any) -> Any:
    """Call a row that writes to its arguments: after its results it returns their new values. Gradients
    bypass these, as they bypass what is written to `x.detach()`."""
    if plan.row.host:
        results = _host_results(plan, values, where)
    else:
        results = [Tensor(result) for result in call_op(plan.row, values, where)]
    written = [target for i in plan.written for target in _tensors(arguments[i])]
    count = len(results) - len(written)
    for target, result in zip(written, results[count:], strict=True):
        target.detach().assign(result.detach().current())
    own = iter(results[:count])
    return _wrap(plan, [next(own) if i is None else arguments[i] for i in plan.returned])


def _tensors(argument: Any) -> list[Tensor]:
    if isinstance(argument, (tuple, list)):
        return [element for element in argument if isinstance(element, Tensor)]
    return [argument] if isinstance(argument, Tensor) else []


def _wrap(plan: Plan, results: list[Tensor]) -> Any:
    if not plan.row.schema.returns:
        return None
    if plan.bundle is not None:
        return plan.bundle(results)
    if plan.lists:
        return tuple(results)
    return results[0].item() if plan.number else results[0]


def _argument(argument: Any, is_tensor: bool) -> Any:
    """An argument as the trace takes it: tensors as values, numbers in a form that hashes exactly."""
    kind = type(argument)
    if kind is float or kind is complex:
        return exact(argument)
    if isinstance(argument, Tensor):
        return argument.current() if is_tensor else symbolic.marked(argument.item())
    if kind is tuple or kind is list:
        return tuple([_argument(element, is_tensor) for element in argument])
    return argument


def _prepare(plan: Plan, values: list[Any]) -> tuple[Device | None, generators.Generator | None]:
    """Fill in what the frontend knows: the device of a new tensor, and the random state."""
    device = None
    if plan.device is not None:
        inputs = [value for value in values if isinstance(value, Value)]
        chosen = values[plan.device]
        device = (chosen or (inputs[0].device if inputs else devices.get_default_device())).resolved
        if device.type != "cpu":
            xla.require(device)
    if not plan.row.random:
        return device, None
    if device is None:
        device = next(value.device for value in values if isinstance(value, Value))
    generator = values[plan.generator] if plan.generator is not None else None
    if generator is None:
        generator = generators.default_generator(device)
    if generator.device is not device:
        raise ArgumentError(f"a generator on {generator.device} cannot serve a tensor on {device}")
    if plan.generator is None:
        values.append(generator.state.current())
    else:
        values[plan.generator] = generator.state.current()
    return device, generator


def _on_host(plan: Plan, values: list[Any], where: Any) -> Any:
    return _wrap(plan, _host_results(plan, values, where))


def _host_results(plan: Plan, values: list[Any], where: Any) -> list[Tensor]:
    """Run a row whose result's shape depends on data: on NumPy arrays, now."""
    inputs: list[Value] = []

    def host(operand: Any) -> Any:
        if type(operand) is Value:
            inputs.append(operand)
            return Tensor(operand)._host()
        return tuple([host(part) for part in operand]) if type(operand) is tuple else operand

    try:
        arrays = plan.row.lowering(*plan.row.bind_values([host(value) for value in values]))
    except TenfoldError as error:
        raise located(error, plan.row, where, values) from None
    device = inputs[0].device
    several = isinstance(arrays, (tuple, list))
    return [
        leaf(np.ascontiguousarray(array).reshape(array.shape), device)
        for array in (arrays if several else [arrays])
    ]


def _chosen(plan: Plan, values: list[Any], where: Any) -> Tensor:
    """Run a row that chooses elements of its first argument, by their places: these alone are computed."""
    chosen, *others = values
    places = np.arange(chosen.type.numel).reshape(chosen.type.shape)
    picked = _on_host(plan, [leaf(places, chosen.device).current(), *others], where)
    return Tensor(call_op(find("take"), (chosen, picked.current()), where)[0])


def _on_storage(plan: Plan, arguments: Sequence[Any], values: list[Any], where: Any) -> Tensor:
    """Call a row that sees all the memory behind its first argument."""
    try:
        alias = arguments[0].share()
        if values[-1] is None:
            values[-1] = alias.offset
        own, whole = values[0].type, alias.storage.value.type.numel == values[0].type.numel
        if whole and not alias.offset and alias.strides == contiguous(own.shape):
            # It is all of its memory: gradients flow to it, which may be a leaf, and not to what it views.
            result = call_op(plan.row, values, where)[0]
        elif plan.view and (places := _own_places(alias, values)) is not None:
            result = call_op(find("take"), (values[0], leaf(places, values[0].device).current()), where)[0]
        else:
            result = tensor.views.on_storage(alias, plan.row, values[1:], where)
    except TenfoldError as error:
        raise located(error, plan.row, where, values[:1]) from None
    return _view(plan, arguments, values, result) if plan.view else Tensor(result)


def _own_places(alias: tensor.views.Alias, values: Sequence[Any]) -> np.ndarray | None:
    """Which elements of a tensor `as_strided` sees, if the tensor is of a detached leaf and has all of them:
    the memory is another tensor's to gradients, so that they flow only by way of the elements."""
    viewed, size, strides, offset = values
    if not alias.base.apart or viewed.origin is None or 0 in size or not viewed.type.numel:
        return None
    own = _addresses(viewed.type.shape, alias.strides, alias.offset).reshape(-1)
    wanted = _addresses(size, strides, offset)
    order = np.argsort(own, kind="stable")
    places = order[np.minimum(np.searchsorted(own, wanted, sorter=order), own.size - 1)]
    return places if np.array_equal(own[places], wanted) else None


def _addresses(shape: Sequence[int], strides: Sequence[int], offset: int) -> np.ndarray:
    return offset + sum(
        (stride * places for stride, places in zip(strides, np.indices(shape), strict=True)),
        np.zeros(tuple(shape), np.int64),
    )


def _view(plan: Plan, arguments: Sequence[Any], values: Sequence[Any], result: Value) -> Tensor:
    viewed: Tensor = arguments[0]
    base = viewed.share()
    try:
        way = tensor.views.way_on(base, plan.row, values[0].type, values[1:], result)
        alias = tensor.views.extend(base, plan.row, values[0], way)
    except TenfoldError as error:
        raise located(error, plan.row, capture(), values[:1]) from None
    return viewed if alias is base else Tensor(result, alias)


# The functions and methods of a name

Rows = Sequence[Row] | Callable[[], Sequence[Row]]  # or what gives them, asked when they are first needed


def function(name: str, rows: Rows, *, method: bool = False) -> Callable[..., Any]:
    """The Python function of an ATen name: resolves its overloads and invokes the one that fits."""
    resolver: Resolver | None = None
    quick = Generations(weight)  # of OpCalls
    overloads: Sequence[Row] = ()
    creates = has_out = False

    def call(*args: Any, **kwargs: Any) -> Any:
        key: tuple[Any, ...] | None = None
        inputs: tuple[Value, ...] = ()
        plain = context.plain
        if plain or context.quick:
            key, inputs = key_of(args, kwargs, plain)
            callee = (quick.get(key) or quick.older(key)) if key is not None else None
            if callee is not None:
                if inputs:
                    first, last = inputs[0], inputs[-1]
                    device = first.device
                    ready = (first is last or device is last.device) and first.buffer is not NO_DATA
                    tracked = first.origin is not None or last.origin is not None
                    if len(inputs) > 2:
                        for operand in inputs[1:-1]:
                            ready = ready and operand.device is device
                            tracked = tracked or operand.origin is not None
                else:
                    device = devices.get_default_device()
                    ready, tracked = device is _CPU, False
                if ready:
                    node = Node(callee, inputs, capture(2))
                    if not plain:
                        graph.follow(node)
                    value = Value(callee.result_types[0], device, node)
                    if tracked:
                        graph.track(node, (value,))
                    if node.depth > SHORT:
                        _bound_depth((value,))
                    return Tensor(value)
        if context.asked is not None:
            args, kwargs = plain_numbers(args), plain_numbers(kwargs)
        if context.exporting:
            args, kwargs = symbolic.marked(args), symbolic.marked(kwargs)
        overrides = overriding(args, kwargs) if context.heeds else ()
        if overrides or context.modes:
            return hand_over(call, args, kwargs, list(overrides))
        nonlocal resolver, overloads, creates, has_out
        if resolver is None:
            overloads = rows() if callable(rows) else rows
            creates = any("pin_memory" in row.text for row in overloads)
            has_out = any("!) out" in row.text for row in overloads)  # by its own schema
            resolver = _resolver(name, overloads, method)
        out = kwargs.pop("out", None) if kwargs and not has_out else None
        try:
            requires_grad = creates and kwargs and kwargs.pop("requires_grad", False)
            index, arguments = resolver.bind(args, kwargs)
            if out is not None:
                _computed_as(out, overloads[index], arguments, kwargs.get("dtype"))
        except TenfoldError as error:
            raise error.located(name, capture()) from None
        if resolver.numbers_as_tensors and not any(isinstance(argument, Tensor) for argument in arguments):
            arguments[0] = _number(arguments[0])
        result = invoke(overloads[index], arguments, capture())
        if requires_grad:
            result.requires_grad_()
        if (
            key is not None
            and not requires_grad
            and _is_its_node(overloads[index], arguments, result, inputs)
        ):
            quick.keep(key, result._value.node.callee)
        if out is None:
            return result
        try:
            if overloads[index].fills_out and isinstance(out, Tensor) and out.numel() == result.numel():
                result = result.reshape(out.shape)
            return into(out, result, _casts_out(overloads[index], out, arguments))
        except TenfoldError as error:
            raise error.located(name, capture()) from None

    call.__name__ = call.__qualname__ = name
    call.__doc__ = Docstring(lambda: written(call, name, rows() if callable(rows) else rows, method=method))
    return call


@functools.cache
def aten(name: str) -> Callable[..., Any]:
    """The function of a name in the table, for wrappers to call."""
    if name not in TABLE:
        raise KeyError(name)
    return function(name, lambda: TABLE[name])


def _is_its_node(row: Row, arguments: Sequence[Any], result: Any, inputs: tuple[Value, ...]) -> bool:
    """Whether a call is no more than a node on its tensors."""
    plan = _plans[row]
    if not plan.quick or (plan.device is not None and arguments[plan.device] is not None):
        return False
    node = result._value.node
    return node is not None and node.inputs == inputs


def _number(number: Any) -> Tensor:
    """A number as a tensor, where an operator is given numbers alone."""
    dtype = dtypes.of_python(number)
    return leaf(np.array(number, dtype.numpy), devices.get_default_device(), dtype)


def _resolver(name: str, rows: Sequence[Row], method: bool) -> Resolver:
    return Resolver(
        name,
        [row.schema for row in rows],
        tensor=Tensor,
        method=method,
        # Such a number stays one: promotion ranks it below tensors, as PyTorch does.
        numbers_as_tensors=any(row.numbers for row in rows),
        classes=CLASSES,
    )


def _computed_as(out: Any, row: Row, arguments: list[Any], told: Any) -> None:
    """Where an op may be told a dtype, it computes in that of `out=`."""
    if row.casts_out is False:
        return
    for place, argument in enumerate(row.schema.arguments):
        if argument.name == "dtype" and isinstance(out, Tensor):
            if told is not None and arguments[place] is not out.dtype:
                raise DTypeError(f"dtype={arguments[place].name} is not that of out=, {out.dtype.name}")
            arguments[place] = out.dtype


def _casts_out(row: Row, out: Any, arguments: Sequence[Any]) -> bool:
    """Whether a row writes its result into an `out=` of another dtype."""
    if isinstance(row.casts_out, tuple):
        return isinstance(out, Tensor) and out.dtype in row.casts_out
    if callable(row.casts_out):
        return row.casts_out(*arguments)
    return row.promote is not None if row.casts_out is None else row.casts_out


def into(out: Any, result: Any, casts: bool = False) -> Any:
    """Write results into the tensors given as `out=`. These have the results' dtype, or can hold it if the op
    `casts`; a tensor of another shape is resized."""
    if isinstance(result, tuple):
        if not isinstance(out, (tuple, list)) or len(out) != len(result):
            raise ArgumentError(f"out= takes a tuple of {len(result)} tensors, one for each result")
        for target, part in zip(out, result, strict=True):
            into(target, part, casts)
        return type(result)(*out) if hasattr(result, "_fields") else tuple(out)
    if not isinstance(out, Tensor) or not isinstance(result, Tensor):
        what = type(out).__name__ if isinstance(result, Tensor) else "for a result that is a number"
        raise ArgumentError(f"out= takes a Tensor, not {what}")
    if out.device is not result.device:
        raise DeviceError(
            f"out= is on {out.device}, the result on {result.device}", help="move one to the other"
        )
    holds = dtypes.can_cast(result.dtype, out.dtype)
    if out.dtype is not result.dtype and not (casts and holds):
        raise DTypeError(
            f"out= of dtype {out.dtype.name} {'does not take' if holds else 'cannot hold'} a "
            f"{result.dtype.name} result",
            help=f"use an out= of dtype {result.dtype.name}, or convert the result",
        )
    value = result.current()
    if out.shape != value.type.shape and out.numel():
        warn(
            f"An output with one or more elements was resized: out= has the shape {list(out.shape)}, and the "
            f"result {list(value.type.shape)}. Give one of that shape, or an empty one"
        )
    if out._alias is None and out._value.type.shape != value.type.shape:
        out.become(value if value.type.dtype is out.dtype else result.to(out.dtype).current(), None)
    else:
        if out.shape != value.type.shape:  # a view: it sees the same memory in another shape
            out.resize_(value.type.shape)
        out.assign(value)
    return out


def inplace_method(name: str, rows: Rows, *, method: bool = True) -> Callable[..., Tensor]:
    """What writes an op's result into its first argument; `method=False` where that is not called `self`."""
    call = function(name, rows, method=method)
    uniform: bool | None = None
    keeps_dtype = False

    def write(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if context.modes or (context.heeds and overriding((self, *args))):
            return hand_over(write, (self, *args), kwargs, overriding((self, *args)))
        if name == "copy" and args and args[0] is self:
            return self  # nothing to do, also where PyTorch would refuse to write
        if name == "copy" and self._value.buffer is NO_DATA and args and isinstance(args[0], Tensor):
            args = (_without_data(args[0]), *args[1:])  # from wherever: there is no data to be moved
        result = call(self, *args, **kwargs)
        nonlocal uniform, keeps_dtype
        if uniform is None:
            overloads = rows() if callable(rows) else rows
            keeps_dtype = any(row.keeps_dtype for row in overloads)
            uniform = all(row.uniform for row in overloads)
        if (keeps_dtype or kwargs.get("dtype") is not None) and result.dtype is not self.dtype:
            problem = DTypeError(
                f"a {self.dtype.name} tensor cannot hold a result of dtype {result.dtype.name}"
            )
            raise problem.located(name + "_", capture())
        if result._alias is None:
            copied = name == "copy" and len(args) > 0 and isinstance(args[0], Tensor)
            agrees = copied and tensor.views.same_elements(self, args[0])
            self.assign(result.current(), uniform or agrees)
        else:  # of a view: the tensor looks at its memory in another way
            if context.grad_enabled:
                self.check_write(result._value, capture())
            self.become(result._value, result._alias)
        return self

    write.__name__ = write.__qualname__ = name + "_"
    write.__doc__ = f"`{name}`, written into this tensor."
    return write


def _without_data(source: Tensor) -> Tensor:
    """A tensor on the meta device that has the shape and dtype of another."""
    return Tensor(Value(source.current().type, devices.Device("meta"), buffer=NO_DATA))


CODES.update([inner_code(each) for each in (function, inplace_method)])

# The namespaces that hold functions of the table's, by module: "" is the package.
_filled: dict[str, dict[str, Any]] = {}


def install(namespaces: dict[str, dict[str, Any]]) -> None:
    """Give Tensor its methods, and fill the namespaces ("" is the package; "special", "linalg", …)."""
    _filled.update(namespaces)
    own = _own_methods()
    for name in TABLE.names():
        place, method, inplace, _ = TABLE.doors(name)
        if place is not None and place[0] in namespaces:
            _add_function(name, *place, namespaces[place[0]])
        _add_methods(name, method, inplace, own)
    LISTENERS.append(_install_later)


def fill(module: str, namespace: dict[str, Any]) -> None:
    """Put the functions of the rows that belong to a module into its namespace, now and in future."""
    _filled[module] = namespace
    for name in TABLE.names():
        place = TABLE.doors(name)[0]
        if place is not None and place[0] == module:
            _add_function(name, *place, namespace)


def _install_later(name: str) -> None:
    """Give a newly declared op its function and its methods; those of PyTorch's names stay."""
    if name not in TABLE:
        return  # of another namespace: `tenfold.ops` finds it
    aten.cache_clear()
    place, method, inplace, _ = TABLE.doors(name)
    if place is not None and place[0] in _filled:
        present = _filled[place[0]].get(place[1])
        if present is None or getattr(present, "declared_later", False):
            _add_function(name, *place, _filled[place[0]], later=True)
    for method_name in (name, name + "_"):
        if getattr(getattr(Tensor, method_name, None), "declared_later", False):
            delattr(Tensor, method_name)
    _add_methods(name, method, inplace, _own_methods(), later=True)


def rows_of(name: str, fact: str = "") -> Rows:
    """The package's own rows of a name, of which a fact holds: not what others declare under that name."""

    def rows() -> Sequence[Row]:
        known = [row for row in TABLE[name] if not fact or getattr(row, fact)]
        return [row for row in known if row.is_own] or known

    return rows


def _rows(name: str, fact: str, later: bool) -> Rows:
    return [row for row in TABLE[name] if getattr(row, fact)] if later else rows_of(name, fact)


def _add_function(
    name: str, module: str, python_name: str, namespace: dict[str, Any], *, later: bool = False
) -> None:
    # A submodule's own function of that name stays: it is a wrapper of the row.
    if later or not (module and python_name in namespace):
        wrapped: Any = function(python_name, _rows(name, "function", later))
        wrapped.__module__ = namespace["__name__"]  # where pickle finds it
        if later:
            wrapped.declared_later = True
        namespace[python_name] = wrapped


def _own_methods() -> set[str]:
    """The names that Tensor has, and what is declared does not replace."""
    return {name for base in Tensor.__mro__[:-1] for name in vars(base)}


def _add_methods(name: str, method: bool, inplace: bool, own: Container[str], *, later: bool = False) -> None:
    added: list[Any] = []
    if method and name not in own:
        added.append(function(name, _rows(name, "method", later), method=True))
    if inplace and f"{name}_" not in own:
        added.append(inplace_method(name, _rows(name, "inplace", later)))
    for each in added:
        if later:
            each.declared_later = True
        each.__module__, each.__qualname__ = Tensor.__module__, f"Tensor.{each.__name__}"
        setattr(Tensor, each.__name__, each)
