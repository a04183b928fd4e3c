"""`Function`, an op with a gradient written by the user: the state that a call keeps for backward, and how
gradients flow through it."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from tenfold.autograd.grad_mode import no_grad, set_grad_mode
from tenfold.base.errors import ArgumentError, DTypeError, GradientError, ShapeError, UnsupportedError
from tenfold.base.late import on_first_use
from tenfold.base.source import capture
from tenfold.flat.ir import TensorType
from tenfold.ops.table import Row, find
from tenfold.tensor import Tensor, data_attribute
from tenfold.tensor.dispatch import aten
from tenfold.trace import graph
from tenfold.trace.context import context
from tenfold.trace.graph import Origin, Value

with on_first_use(__name__):
    import copy


class Context:
    """The `ctx` of a Function: what forward saves for backward."""

    def __init__(self, function: type[Function], needs: Sequence[bool]):
        self.needs_input_grad = tuple(needs)
        self._called = function.__name__, capture()
        self._saved: tuple[Any, ...] = ()
        self._ahead: tuple[Any, ...] = ()  # saved for jvp
        self._values: tuple[Value | None, ...] | None = None  # of the saved tensors, when forward was over
        self._packed: list[Any] | None = None  # what gives them, where hooks have packed them away
        self.materialize = True
        self.non_differentiable: list[Tensor] = []
        self.dirty: list[Tensor] = []

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        self._saved = self._checked("save_for_backward", tensors)

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Save tensors for `jvp`, which finds them in `saved_tensors`."""
        self._ahead = self._checked("save_for_forward", tensors)

    def _checked(self, name: str, tensors: tuple[Any, ...]) -> tuple[Any, ...]:
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Tensor):
                raise ArgumentError(
                    f"{name} keeps tensors, not a {type(tensor).__name__}",
                    help="keep anything else as an attribute: ctx.name = value",
                ).located(*self._called)
        return tensors

    def ahead(self) -> Context:
        """The same context as `jvp` sees it."""
        seen = copy.copy(self)
        seen._saved, seen._values, seen._packed = self._ahead, None, None
        return seen

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The saved tensors. As in PyTorch, it is an error if one was written in place since."""
        if self._packed is not None:
            return tuple([None if packed is None else Tensor(packed()) for packed in self._packed])
        for tensor, value in zip(self._saved, self._values or (), strict=False):
            if value is None or data_attribute.is_replaced(value):
                continue
            if not _unwritten(tensor.current(), value):
                raise GradientError(
                    f"a value that the gradient needs, {value.type}, was written in place after it was used",
                    help="use the op that returns a new tensor, or clone() before the write",
                ).located(*self._called)
        return self._saved

    def close(self, results: Sequence[tuple[Any, Any]]) -> None:
        """Forward is over: note what the saved tensors hold. Of its results, given with the tensors that
        stand for them from now on, those are kept: gradients of gradients flow through them."""
        for result, stands_for_it in results:
            self._saved = tuple([stands_for_it if tensor is result else tensor for tensor in self._saved])
        self._values = tuple(
            [tensor.current() if isinstance(tensor, Tensor) else None for tensor in self._saved]
        )
        if context.saving is not None:
            self._packed = [None if value is None else context.saving.packed(value) for value in self._values]

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        self.non_differentiable += tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        self.dirty += tensors

    def set_materialize_grads(self, value: bool) -> None:
        self.materialize = value


def _unwritten(now: Value, before: Value) -> bool:
    """Whether a tensor still holds the data it held. `requires_grad_` and `detach_` only say whether
    gradients flow to it, so they are no writes."""
    while now is not before and now.node is not None and _keeps_data(getattr(now.node.callee, "row", None)):
        now = now.node.inputs[0]
    return now is before or (now.buffer is not None and now.buffer is before.buffer)


def _keeps_data(row: Row | None) -> bool:
    return row is not None and (row is find("alias") or row is find("detach"))


class CustomNode:
    """A call of a Function in the graph that a sweep walks."""

    def __init__(self, function: type[Function], ctx: Context, inputs: Sequence[Any]):
        self.function = function
        self.context = ctx
        self.arguments = list(inputs)
        self.inputs = tuple([tensor.current() for tensor in inputs if isinstance(tensor, Tensor)])
        self.outputs: list[Value] = []
        self.places: list[int] = []  # of the outputs among what forward returned
        self.count = 1
        self.source = capture()
        self._passed = False

    @property
    def spent(self) -> bool:
        """Whether its saved tensors have been released. Without any it may run again."""
        return self._passed and bool(self.context._saved)

    @spent.setter
    def spent(self, passed: bool) -> None:
        self._passed = passed

    def run_backward(self, gradients: list[Any], create_graph: bool) -> list[tuple[Value, Tensor | None]]:
        """Call the Function's backward on the gradients of its results. Each tensor argument's value, and the
        gradient for it."""
        if self.context.materialize:
            with no_grad():
                gradients = [
                    aten("zeros")(output.type.shape, dtype=output.type.dtype, device=output.device)
                    if gradient is None
                    else gradient
                    for gradient, output in zip(gradients, self.outputs, strict=True)
                ]
        spread: list[Any] = [None] * self.count
        for place, gradient in zip(self.places, gradients, strict=True):
            spread[place] = gradient
        with set_grad_mode(create_graph):
            results = self.function.backward(self.context, *spread)
        results = results if isinstance(results, tuple) else (results,)
        returned = list(results)
        while len(returned) > len(self.arguments) and returned[-1] is None:
            returned.pop()
        if len(returned) != len(self.arguments):
            raise GradientError(
                f"{self.function.__name__}.backward returned {len(results)} gradients for "
                f"{len(self.arguments)} arguments",
                help="return one for each argument of forward, None for those without",
            ).located("backward", self.source)
        for item in returned:
            if item is not None and not isinstance(item, Tensor):
                raise ArgumentError(
                    f"{self.function.__name__}.backward returned a {type(item).__name__} as a gradient",
                    help="return a Tensor, or None for what has no gradient",
                ).located("backward", self.source)
        pairs = []
        values = iter(self.inputs)
        for argument, result in zip(self.arguments, returned, strict=True):
            if isinstance(argument, Tensor):
                value = next(values)
                if result is not None and value.origin is not None:
                    with set_grad_mode(create_graph):
                        result = self.converted(self.shaped(result, value), value)
                pairs.append((value, result))
        return pairs

    def shaped(self, result: Tensor, value: Value) -> Tensor:
        try:
            return summed_to(result, value.type, self.function)
        except ShapeError as error:
            raise error.located("backward", self.source) from None

    def converted(self, result: Tensor, value: Value) -> Tensor:
        """A gradient that backward returned, in the dtype of what it is the gradient of."""
        wanted, dtype = value.type.dtype, result.dtype
        if dtype is wanted:
            return result
        if not dtype.is_floating_point and dtype.is_complex != wanted.is_complex:
            raise DTypeError(
                f"{self.function.__name__}.backward returned {result.current().type} as the gradient of "
                f"{value.type}",
                help=f"return a gradient of {wanted.name}",
            ).located("backward", self.source)
        return result.to(wanted)

    def follow(self, result: Tensor, value: Value, place: int) -> None:
        """Let gradients of a result of forward, for which `value` stands from now on, flow back here."""
        index = len(self.outputs)
        self.outputs.append(value)
        self.places.append(place)
        fixed = _is_among(result, self.context.non_differentiable)
        if not fixed and value.type.dtype.kind in ("float", "complex"):
            value.origin = Origin(self, index)

    @property
    def callee(self) -> Any:
        """For the messages of those that name a node's op."""
        return _Named(self.function.__name__)


def summed_to(gradient: Tensor, wanted: TensorType, function: type[Function]) -> Tensor:
    """A gradient that backward returned, summed to the shape of its argument if forward broadcast the
    argument."""
    shape = tuple(wanted.shape)
    if gradient.shape == shape:
        return gradient
    trailing = gradient.shape[gradient.ndim - len(shape) :]
    if len(shape) > gradient.ndim or any(mine not in (1, extent) for mine, extent in zip(shape, trailing)):
        raise ShapeError(
            f"{function.__name__}.backward returned {gradient.current().type} as the gradient of {wanted}",
            help=f"return a gradient of shape {list(shape)}, or of one that this broadcasts to, "
            "which is summed",
        )
    return aten("sum_to_size")(gradient, shape)


def _is_among(tensor: Any, tensors: Sequence[Any]) -> bool:
    return any(tensor is other for other in tensors)


def _pass_by(view: Tensor, memory: Sequence[tuple[Tensor, Value]]) -> None:
    """Let gradients of the memory behind a view bypass what forward wrote there without being followed:
    outside the view that memory is unchanged."""
    for tensor, before in memory:
        if tensor is view and view._alias is not None and before.origin is not None:
            now = view._alias.storage.value
            if now.origin is None:
                now.origin = before.origin.beside()


def _is_float(argument: Any) -> bool:
    return isinstance(argument, Tensor) and argument.dtype.kind in ("float", "complex")


def _move(value: Value, tangent: Tensor | None) -> None:
    assert context.level is not None
    context.level.tangents.pop(value, None)  # that of an argument which forward returns as it is
    context.level.move(value, None if tangent is None else tangent.current())


def _handed_out(result: Tensor, value: Value, dirty: bool, arguments: Sequence[Tensor]) -> Tensor:
    """The tensor that is given for a result of forward, for which this value stands."""
    if dirty:
        result.assign(value)  # so that tensors which share its memory get their derivatives from here, too
    elif result._alias is not None or _is_among(result, arguments):
        return Tensor(value)
    else:
        result._value = value
    return result


def _moving(args: Sequence[Any]) -> list[Tensor | None]:
    """The tangents of the arguments, where forward mode follows some."""
    if context.level is None:
        return [None] * len(args)
    tangents = [
        context.level.tangents.get(arg.current()) if isinstance(arg, Tensor) else None for arg in args
    ]
    return [None if tangent is None else Tensor(tangent) for tangent in tangents]


class _Named:
    def __init__(self, name: str):
        self.name = name
        self.backward: dict[Any, Any] = {None: self}
        self.saves = True


class Function:
    """An op with a gradient of your own. A subclass defines the static methods `forward(ctx, *args)` and
    `backward(ctx, *gradients)`, and is called by `apply`.

        class Exp(Function):
            @staticmethod
            def forward(ctx, x):
                y = x.exp()
                ctx.save_for_backward(y)
                return y

            @staticmethod
            def backward(ctx, gradient):
                (y,) = ctx.saved_tensors
                return gradient * y
    """

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        raise UnsupportedError("a Function needs a static method forward")

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise UnsupportedError("a Function needs a static method backward")

    setup_context: Any = None
    jvp: Any = None  # `jvp(ctx, *tangents)`: how the results move; None for an argument that is no float

    @classmethod
    def pushed(
        cls, ctx: Context, args: Sequence[Any], tangents: Sequence[Tensor | None], results: Any
    ) -> list[Tensor | None]:
        """The tangents of forward's results from the Function's own `jvp`; zeros for results without one."""
        if cls.jvp is None:
            raise UnsupportedError(
                f"{cls.__name__} has no jvp, which forward mode needs",
                help="give it a static method jvp(ctx, *tangents)",
            ).located(cls.__name__, capture())
        if ctx.materialize:
            tangents = [
                aten("zeros_like")(arg.detach()) if tangent is None and _is_float(arg) else tangent
                for arg, tangent in zip(args, tangents, strict=True)
            ]
        moves = cls.jvp(ctx.ahead(), *tangents)
        moved = list(moves) if isinstance(moves, tuple) else [moves]
        outputs = results if isinstance(results, tuple) else (results,)
        if len(moved) != len(outputs):
            raise GradientError(
                f"{cls.__name__}.jvp returned {len(moved)} tangents for {len(outputs)} results",
                help="return one for each result of forward, None for those that do not move",
            ).located(cls.__name__, capture())
        for move, result in zip(moved, outputs, strict=True):
            if move is None or not isinstance(result, Tensor):
                continue
            if not isinstance(move, Tensor) or move.current().type is not result.current().type:
                what = move.current().type if isinstance(move, Tensor) else type(move).__name__
                raise GradientError(
                    f"{cls.__name__}.jvp returned {what} as the tangent of {result.current().type}",
                    help="return a tangent of the result's own shape and dtype",
                ).located(cls.__name__, capture())
        return moved

    @classmethod
    def computed(cls, ctx: Context, args: Sequence[Any]) -> Any:
        """What forward gives, with what backward needs left in `ctx`."""
        if cls.setup_context is None:
            return cls.forward(ctx, *args)
        results = cls.forward(*args)
        cls.setup_context(ctx, tuple(args), results)
        return results

    @classmethod
    def _ordered(cls, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        """The arguments in forward's order, where some are given by name. As in PyTorch, none before the last
        one given may be left to its default."""
        parameters = inspect.signature(cls.forward).parameters.values()
        names = [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
        if cls.setup_context is None:
            del names[0]  # ctx
        problem = None
        for name in named:
            if name not in names:
                problem = f"got an unexpected keyword argument '{name}'"
            elif name in names[: len(args)]:
                problem = f"got multiple values for argument '{name}'"
        last = max([names.index(name) for name in named if name in names], default=-1)
        for place, name in enumerate(names[len(args) : last], len(args)):
            if problem is None and name not in named:
                problem = f"missing required argument: '{name}' (position {place})"
        if problem is not None:
            raise ArgumentError(f"forward() {problem}").located(cls.__name__, capture())
        return (*args, *[named[name] for name in names[len(args) : last + 1]])

    @classmethod
    def apply(cls, *args: Any, **named: Any) -> Any:
        """Call forward, and let gradients of the result come from backward: one for each argument, in the
        order of forward's arguments. If `setup_context` is defined, it receives all arguments of forward,
        defaults included."""
        if cls.setup_context is not None:
            bound = inspect.signature(cls.forward).bind(*args, **named)
            bound.apply_defaults()
            args, named = bound.args, bound.kwargs
        if named:
            args = cls._ordered(args, named)
        recorder = context.recorder
        if recorder is not None and recorder.policy.apply is not None:
            return recorder.policy.apply(cls, args)
        tensors = [arg for arg in args if isinstance(arg, Tensor)]
        followed = context.grad_enabled and any(tensor.requires_grad for tensor in tensors)
        ctx = Context(cls, [isinstance(arg, Tensor) and arg.requires_grad for arg in args])
        # What forward writes to is taken as it was before: that is what gradients flow on to.
        node = CustomNode(cls, ctx, args) if followed else None
        memory = [(tensor, tensor._alias.storage.value) for tensor in tensors if tensor._alias is not None]
        level, moving = context.level, _moving(args)
        context.level = None if any(tangent is not None for tangent in moving) else level
        try:
            with no_grad():
                results = cls.computed(ctx, args)
            moved = None if context.level is level else cls.pushed(ctx, args, moving, results)
        finally:
            context.level = level
        outputs = results if isinstance(results, tuple) else (results,)
        if not all(_is_among(tensor, outputs) for tensor in ctx.dirty):
            raise GradientError(
                f"{cls.__name__}.forward marked a tensor as dirty and did not return it",
                help="return every tensor that is marked with ctx.mark_dirty",
            ).located(cls.__name__, capture())
        if node is None and moved is None:
            return results
        handed_out: list[Any] = []
        for i, output in enumerate(outputs):
            if isinstance(output, Tensor):
                dirty = _is_among(output, ctx.dirty)
                if dirty and node is not None:
                    _pass_by(output, memory)
                value = graph.fresh(output.current(), capture())
                if moved is not None:
                    _move(value, moved[i])
                if node is not None:
                    node.follow(output, value, i)
                output = _handed_out(output, value, dirty, tensors)
            handed_out.append(output)
        if node is None:
            return tuple(handed_out) if isinstance(results, tuple) else handed_out[0]
        stand_ins = [
            pair for pair in zip(outputs, handed_out, strict=True) if not _is_among(pair[0], tensors)
        ]
        ctx.close(stand_ins)
        node.count = len(handed_out)
        return tuple(handed_out) if isinstance(results, tuple) else handed_out[0]
