"""Hooks of modules: the order in which they are called, global hooks, and backward hooks, which see the
gradients that enter and leave a module."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tenfold.autograd import Function, RemovableHandle
from tenfold.base.errors import ArgumentError, GradientError
from tenfold.base.hooks import Noticed
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten
from tenfold.trace.context import context

# The attributes that hold a module's hooks.
HOOKS = frozenset(
    [
        "_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks", "_state_dict_hooks",
        "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
    ]
)  # fmt: skip


class Hooks(Noticed):
    """Hooks in the order of their calls, by the id of their handle. Those whose ids are in `with_kwargs` are
    given keyword arguments too, and those in `always` are called also when the module raised. Backward hooks
    are all of the `full` form, or all of the older one; None before the first."""

    def __init__(
        self,
        hooks: Mapping[int, Callable[..., Any]] | Iterable[Any] = (),
        with_kwargs: Iterable[int] = (),
        always: Iterable[int] = (),
        full: bool | None = None,
    ):
        super().__init__(hooks)
        self.with_kwargs = dict.fromkeys(with_kwargs, True)
        self.always = dict.fromkeys(always, True)
        self.full = full

    def add(
        self, call: Callable[..., Any], with_kwargs: bool = False, prepend: bool = False, always: bool = False
    ) -> RemovableHandle:
        if not callable(call):
            raise ArgumentError(f"a hook is a function, not a {type(call).__name__}")
        handle = RemovableHandle(self, call, extra_dict=(self.with_kwargs, self.always))
        if with_kwargs:
            self.with_kwargs[handle.id] = True
        if always:
            self.always[handle.id] = True
        if prepend:
            self.move_to_end(handle.id, last=False)
        return handle

    def add_backward(
        self, call: Callable[..., Any], full: bool, where: str, prepend: bool = False
    ) -> RemovableHandle:
        if self.full is not None and self.full is not full:
            raise GradientError(
                f"cannot use both regular backward hooks and full backward hooks {where}",
                help="register all of them with register_full_backward_hook",
            )
        handle = self.add(call, prepend=prepend)
        self.full = full
        return handle

    def move_to_end(self, key: int, last: bool = True) -> None:
        """Call this hook after all others, or before them."""
        hook = self.pop(key)
        others = {} if last else dict(self)
        if others:
            self.clear()
        self[key] = hook
        self.update(others)

    def __reduce__(self) -> tuple[Any, ...]:
        return Hooks, (dict(self), list(self.with_kwargs), list(self.always), self.full)


# For every module

forward_pre = Hooks()
forward = Hooks()
backward_pre = Hooks()
backward = Hooks()
parameter_registration = Hooks()
buffer_registration = Hooks()
module_registration = Hooks()


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, args)` before every module's forward; what it returns replaces the arguments."""
    return forward_pre.add(hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call `hook(module, args, output)` after every module's forward; what it returns replaces the output."""
    return forward.add(hook, with_kwargs, always=always_call)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_output)` when the gradients of any module's outputs are known."""
    return backward_pre.add(hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` when the gradients of any module's inputs are known."""
    return backward.add_backward(hook, True, "for all modules")


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """An older form of `register_module_full_backward_hook`; the two may not be combined. In PyTorch the hook
    sees the gradients of the module's last function only; here it sees those of the whole module."""
    return backward.add_backward(hook, False, "for all modules")


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, parameter)` before any module registers a parameter; what it returns replaces
    the parameter."""
    return parameter_registration.add(hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, buffer)` before any module registers a buffer; what it returns replaces the
    buffer."""
    return buffer_registration.add(hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, submodule)` before any module registers a child; what it returns replaces the
    child."""
    return module_registration.add(hook)


def registered(hooks: Hooks, module: Any, name: str, member: Any) -> Any:
    """What is to be registered under a name, after the hooks that may replace it."""
    for hook in list(hooks.values()):
        replaced = hook(module, name, member)
        member = member if replaced is None else replaced
    return member


# Gradients on their way through a module


class Passage:
    """One call of a module, whose tensors gradients pass on their way back: first outputs, then inputs."""

    def __init__(self, module: Any, pre: Sequence[Callable[..., Any]], post: Sequence[Callable[..., Any]]):
        self.module = module
        self.pre = pre
        self.post = post
        self.outward: tuple[Any, ...] | None = None  # the gradients of the outputs, once they are known
        self.enters = False  # whether gradients come to the inputs
        self.inputs = 0

    def enter(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments, marked where their gradients are to be seen."""
        places = _followed(args)
        self.inputs = len(args)
        self.enters = bool(places)
        if not self.enters or not self.post:
            return args
        # To hooks the gradient of a tensor that requires none is zero, as it is to PyTorch's.
        other = [
            aten("zeros_like")(arg) if isinstance(arg, Tensor) and i not in places else None
            for i, arg in enumerate(args)
        ]

        def seen(gradients: Sequence[Any]) -> Sequence[Any]:
            if self.outward is None:  # they come to the inputs on another way than through the outputs
                return gradients
            given = list(other)
            for place, gradient in zip(places, gradients, strict=True):
                given[place] = gradient
            returned = self.call_post(tuple(given))
            self.outward = None  # gradients of gradients come to the inputs on other ways
            return [returned[place] for place in places]

        return tuple(_marked(seen, args, places))

    def leave(self, output: Any) -> Any:
        """The output, marked where its gradients are to be seen: a tensor, or a tuple of them and others."""
        several = isinstance(output, tuple)
        parts = output if several else (output,)
        places = _followed(parts)
        if not places:
            return output

        def seen(gradients: Sequence[Any]) -> Sequence[Any]:
            given: list[Any] = [None] * len(parts)
            for place, gradient in zip(places, gradients, strict=True):
                given[place] = gradient
            self.outward = self.call_pre(tuple(given))
            if not self.enters and self.post:
                self.call_post((None,) * self.inputs)
            return [self.outward[place] for place in places]

        replaced = _marked(seen, parts, places)
        if not several:
            return replaced[0]
        return type(output)(*replaced) if hasattr(output, "_fields") else tuple(replaced)

    def call_pre(self, gradients: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in self.pre:
            gradients = _replaced(hook(self.module, gradients), gradients, "grad_output")
        return gradients

    def call_post(self, gradients: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in self.post:
            returned = hook(self.module, gradients, self.outward)
            gradients = _replaced(returned, gradients, "grad_input")
        return gradients


def _replaced(returned: Any, before: tuple[Any, ...], what: str) -> tuple[Any, ...]:
    if returned is None:
        return before
    given = returned if isinstance(returned, tuple) else (returned,)
    if len(given) != len(before):
        raise ArgumentError(f"a backward hook returned {len(given)} gradients for a {what} of {len(before)}")
    return given


class BackwardHookFunction(Function):
    """Tensors as they are, whose gradients are shown to a function that may replace them."""

    @staticmethod
    def forward(ctx: Any, seen: Any, *tensors: Tensor) -> Any:
        ctx.seen = seen
        ctx.set_materialize_grads(False)
        return tensors

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return (None, *ctx.seen(gradients))


def _marked(seen: Callable[..., Any], parts: Sequence[Any], places: Sequence[int]) -> list[Any]:
    """All parts, with the tensors at these places marked."""
    replaced = list(parts)
    for place, each in zip(
        places, BackwardHookFunction.apply(seen, *[parts[place] for place in places]), strict=True
    ):
        replaced[place] = each
    return replaced


def _followed(parts: Sequence[Any]) -> list[int]:
    """Where there are tensors that gradients come to."""
    if not context.grad_enabled:
        return []
    return [i for i, part in enumerate(parts) if isinstance(part, Tensor) and part.requires_grad]
