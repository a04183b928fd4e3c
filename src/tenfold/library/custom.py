"""`CustomOpDef`: an op whose kernel is a Python function, and what is registered for it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tenfold import flat
from tenfold.base.devices import Device
from tenfold.base.errors import ArgumentError, GradientError, UnsupportedError
from tenfold.flat.structured import PYTHON
from tenfold.library.schemas import takes_arrays
from tenfold.library.stand_ins import lowered, result_types, slots_filled, taken_apart
from tenfold.library.written import written_argument
from tenfold.ops import kernels
from tenfold.ops.contents import Table
from tenfold.ops.table import OTHERS, SLOT, op, written
from tenfold.tensor import Tensor, leaf
from tenfold.tensor.dispatch import aten, function as dispatched

__all__ = ["Context", "CustomOpDef", "Info"]


class Info(NamedTuple):
    """The batch size and randomness that a function of `register_vmap` gets."""

    batch_size: int
    randomness: str


class Context:
    """The `ctx` that `setup_context` fills for the backward function."""

    def __init__(self, needs: Sequence[bool]):
        self.needs_input_grad = tuple(needs)
        self.saved_tensors: tuple[Any, ...] = ()

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        self.saved_tensors = tensors

    def set_materialize_grads(self, value: bool) -> None:
        if not value:
            raise UnsupportedError("a custom op's backward always gets gradients, zeros where there are none")


class CustomOpDef:
    """An op made from a Python function. A call records the op; the function runs when a value is needed."""

    def __init__(self, name: str, kernel: Callable[..., Any], schema: str):
        self.name = name
        self._kernel = kernel
        self._fake: Callable[..., Any] | None = None
        self._backward: Callable[..., Any] | None = None
        self._setup: Callable[..., Any] | None = None
        self._takes_arrays = takes_arrays(kernel)
        kernels.PYTHON_KERNELS[name] = self._on_arrays
        namespace, _, short = name.partition("::")
        short, _, overload = short.partition(".")
        rows = OTHERS.setdefault(namespace, Table()).setdefault(short, [])
        rows[:] = [row for row in rows if row.overload != overload]  # a notebook's cell may run again
        op(schema, host=True, late=written, method=False)(self._on_host)
        self.row = rows[-1]
        arguments = self.row.schema.arguments
        self._written = [i for i, argument in enumerate(arguments) if argument.type.is_written]
        self._call = dispatched(short, [self.row])
        if self._written and not self.row.schema.returns:
            self.register_fake(lambda *args, **kwargs: None)  # what is written keeps its type
        functools.update_wrapper(self, kernel)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<CustomOpDef {self.row.schema}>"

    # What is registered

    def register_fake(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register a function that gives the shapes and dtypes of the results. It gets the arguments, and
        returns tensors such as `tn.empty_like(x)`. The op can then be compiled and differentiated."""
        self._fake = function
        self.row.host, self.row.lowering = False, self._lowering()
        self.row.calls.clear()
        return function

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Register the gradient: `backward(ctx, *gradients)` returns one gradient for each argument, or None.
        `setup_context(ctx, inputs, output)` saves in `ctx` what backward needs."""
        if self._written:
            raise GradientError(
                f"{self.row.schema} writes to its arguments and can have no gradient",
                help="make an op that returns new tensors, and register its gradient",
            )
        self._backward, self._setup = backward, setup_context
        if self._fake is not None:
            self.register_fake(self._fake)

    def register_vmap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register how the op maps over a batch: `function(info, in_dims, *args)` returns results and their
        batch dimensions. Without it, the op is called once for each element."""
        from tenfold.flat.vmap import CUSTOM_BATCHING

        CUSTOM_BATCHING[f"{PYTHON}#{self.name}"] = functools.partial(self._batched, function)
        self.row.calls.clear()
        return function

    # How it runs

    def _on_arrays(self, *arguments: Any) -> list[np.ndarray]:
        """The kernel on arrays, whichever it takes. What it writes to is a copy, and among the results."""
        given = list(arguments)
        for i in self._written:
            given[i] = _each(np.ndarray, np.array, given[i])
        if not self._takes_arrays:
            for i, argument in enumerate(given):
                convert = written_argument if i in self._written else _tensor
                given[i] = _each(np.ndarray, convert, argument)
        results = self._own_results(self._kernel, given)
        written = [each for i in self._written for each in _parts(given[i])]
        if any(result is each for result in results for each in written):
            raise ArgumentError(
                f"{self.name} gives back an argument that it writes to", help="return a clone of it, or None"
            )
        return [
            each.numpy() if isinstance(each, Tensor) else np.asarray(each) for each in (*results, *written)
        ]

    def _own_results(self, function: Callable[..., Any], given: Sequence[Any]) -> list[Any]:
        """What a function of the op's arguments gives, less the results that are arguments it writes to."""
        schema = self.row.schema
        count = len(schema.positional)
        names = [argument.name for argument in schema.keyword_only]
        results = function(*given[:count], **dict(zip(names, given[count:], strict=True)))
        several = results if isinstance(results, (tuple, list)) else [] if results is None else [results]
        if len(schema.returns) == 1 and schema.returns[0].type.is_list:
            return list(several)
        if len(several) != len(schema.returns):
            raise ArgumentError(
                f"{self.name} gave {len(several)} results, where its schema has {len(schema.returns)}"
            )
        pairs = zip(several, schema.returns, strict=True)
        return [result for result, returned in pairs if not returned.type.is_written]

    def _on_host(self, *arguments: Any) -> list[np.ndarray]:
        if self._backward is not None:
            raise ArgumentError(
                f"{self.name} has a gradient, which is recorded before the kernel runs, and no register_fake",
                help="say what its results look like: @register_fake",
            )
        return self._on_arrays(*arguments)

    def _lowering(self) -> Callable[..., Any]:
        def computed(*arguments: Any) -> Any:
            slots, values = taken_apart(arguments)
            assert self._fake is not None
            results = result_types(functools.partial(self._own_results, self._fake), arguments)
            results += [each.type for i in self._written for each in _parts(arguments[i])]
            text = kernels.encoded(slots, SLOT, results)
            made = flat.python_call(self.name, text, values, results)
            return made if len(results) > 1 else made[0]

        return computed if self._backward is None else flat.differentiated(self._gradient)(computed)

    def _gradient(self, cotangents: Any, results: Any, *arguments: Any) -> list[Any]:
        """The gradient rule of the lowering: the user's functions, recorded on tensors that stand for
        values."""
        several = isinstance(results, tuple)
        results, cotangents = (results, cotangents) if several else ((results,), (cotangents,))
        filled = [
            flat.full_like(result, 0) if cotangent is None else cotangent
            for cotangent, result in zip(cotangents, results, strict=True)
        ]
        slots, values = taken_apart(arguments)
        count = len(filled)

        def backward(*tensors: Tensor) -> list[Any]:
            given = slots_filled(slots, iter(tensors[2 * count :]))
            context = Context([isinstance(each, Tensor) for each in given])
            if self._setup is not None:
                outputs = tensors[count : 2 * count]
                self._setup(context, tuple(given), tuple(outputs) if several else outputs[0])
            assert self._backward is not None
            found = self._backward(context, *tensors[:count])
            gradients = list(found) if isinstance(found, tuple) else [found]
            if len(gradients) != len(given):
                raise ArgumentError(
                    f"the gradient of {self.name} gave {len(gradients)} results for {len(given)} arguments",
                    help="return one for each argument, None for those without",
                )
            pairs = zip(gradients, given, strict=True)
            return [part for gradient, each in pairs for part in _gradients_of(gradient, each)]

        return lowered(backward, [*filled, *results, *values])

    def _batched(self, function: Callable[..., Any], call: Any, batch: Any) -> list[Any]:
        _, _, text = call.call_target_name.split("#", 2)
        inputs = call.inputs[1:]  # the first is the name
        slots, _ = kernels.decoded(text, [SLOT] * len(inputs))
        in_dims = tuple(
            slots_filled(slots, iter([0 if batch.has(each) else None for each in inputs]), plain=None)
        )

        def mapped(*tensors: Tensor) -> list[Any]:
            given = slots_filled(slots, iter(tensors))
            for i in self._written:
                given[i] = _each(Tensor, aten("clone"), given[i])
            outputs, out_dims = function(Info(batch.size, "error"), in_dims, *given)
            several = isinstance(outputs, (tuple, list))
            pairs = list(zip(outputs, out_dims, strict=True)) if several else [(outputs, out_dims)]
            results = [_in_front(each, dim, batch.size) for each, dim in pairs if each is not None]
            for i in self._written:
                dims = in_dims[i] if isinstance(in_dims[i], list) else [in_dims[i]]
                results += [
                    _in_front(each, dim, batch.size) for each, dim in zip(_parts(given[i]), dims, strict=True)
                ]
            return results

        return lowered(mapped, [batch.at(each) for each in inputs])


def _gradients_of(gradient: Any, argument: Any) -> list[Any]:
    """A gradient for each tensor of an argument: none where it is a plain value."""
    if isinstance(argument, Tensor):
        return [gradient]
    if isinstance(argument, list) and any(isinstance(each, Tensor) for each in argument):
        parts = [None] * len(argument) if gradient is None else gradient
        return [part for part, each in zip(parts, argument, strict=True) if isinstance(each, Tensor)]
    return []


def _each(kinds: Any, convert: Callable[[Any], Any], argument: Any) -> Any:
    if isinstance(argument, kinds):
        return convert(argument)
    if isinstance(argument, (tuple, list)):
        return [_each(kinds, convert, each) for each in argument]
    return argument


def _parts(argument: Any) -> list[Any]:
    """The tensors, arrays or values of an argument: none where it is None."""
    parts = argument if isinstance(argument, (tuple, list)) else [argument]
    return [part for part in parts if part is not None]


def _tensor(array: np.ndarray) -> Tensor:
    return leaf(np.ascontiguousarray(array).reshape(array.shape), Device("cpu").resolved)


def _in_front(result: Tensor, dim: int | None, size: int) -> Tensor:
    return result.expand(size, *result.shape) if dim is None else result.movedim(dim, 0)
