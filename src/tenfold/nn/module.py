"""Module: what all layers and models are, with PyTorch's rules for calling, converting and printing it.

What a module is made of is in `registry.py`, how it is saved in `state.py`, its hooks in `hooks.py`.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar, cast

from tenfold.autograd import RemovableHandle
from tenfold.autograd.grad_mode import no_grad
from tenfold.base.devices import Device
from tenfold.base.dtypes import DType, as_dtype
from tenfold.base.errors import ArgumentError, DTypeError, TenfoldError, UnsupportedError, located
from tenfold.base.hooks import CHANGES
from tenfold.base.late import on_first_use
from tenfold.base.source import capture
from tenfold.flat.strides import FORMATS
from tenfold.functional import eval_
from tenfold.nn import hooks
from tenfold.nn.hooks import (
    HOOKS,
    Hooks,
    Passage,
    register_module_backward_hook as register_module_backward_hook,
    register_module_buffer_registration_hook as register_module_buffer_registration_hook,
    register_module_forward_hook as register_module_forward_hook,
    register_module_forward_pre_hook as register_module_forward_pre_hook,
    register_module_full_backward_hook as register_module_full_backward_hook,
    register_module_full_backward_pre_hook as register_module_full_backward_pre_hook,
    register_module_module_registration_hook as register_module_module_registration_hook,
    register_module_parameter_registration_hook as register_module_parameter_registration_hook,
)
from tenfold.nn.parameter import UninitializedBuffer, UninitializedParameter, filled
from tenfold.nn.state import (
    IncompatibleKeys as _IncompatibleKeys,  # noqa: F401, by which PyTorch has it
    Stateful,
)
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import require_placement
from tenfold.trace import graph
from tenfold.trace.context import context

with on_first_use(__name__):
    from tenfold import compiler
    from tenfold.runtime.guards import is_setting


Self = TypeVar("Self", bound="Module")

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"  # the name that others know it by


# Hooks of all modules, by the names that code which calls modules itself reads them by.
_global_forward_pre_hooks, _global_forward_hooks = hooks.forward_pre, hooks.forward
_global_backward_pre_hooks, _global_backward_hooks = hooks.backward_pre, hooks.backward
_global_forward_hooks_with_kwargs = hooks.forward.with_kwargs
_global_forward_hooks_always_called = hooks.forward.always

# What attributes are that decide what a module does.
SETTINGS = frozenset([type(None), bool, int, float, complex, str, tuple, list, dict])
REGISTERS = frozenset(["_parameters", "_buffers", "_modules"])


class _Names:
    """The names of the modules in each, in their order, as a container: equal ones are one tuple, so that it
    costs little to compare them."""

    _known: dict[tuple[str, ...], tuple[str, ...]] = {}

    def label(self, module: Module) -> str:
        return f"the names of the modules in a {type(module).__name__}"

    def __getitem__(self, module: Module) -> tuple[str, ...]:
        names = tuple(module._modules)
        return self._known.setdefault(names, names)


NAMES = _Names()


class Module(Stateful):
    """The base of all layers and models: it holds parameters, buffers and other modules, and computes.

    A subclass sets them as attributes in `__init__` and computes in `forward`:

        class Residual(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.linear = nn.Linear(width, width)

            def forward(self, x):
                return x + self.linear(x).relu()

        y = Residual(8)(tn.ones(2, 8))
    """

    training: bool
    _compiled_call: Callable[..., Any] | None = None  # what compile() made
    _optimized: Callable[[Any], Any]  # what `tenfold.compile` makes of a module

    def __init__(self) -> None:
        self.__dict__.update(
            training=True,
            _parameters={},
            _buffers={},
            _non_persistent_buffers_set=set(),
            _modules={},
            **{name: Hooks() for name in HOOKS},
        )

    # Calling

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The computation of the module, which every subclass defines."""
        raise UnsupportedError(
            f"{type(self).__name__} has no forward", help="define forward(self, ...) in the class"
        ).located(type(self).__name__, capture())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._compiled_call is not None:
            return self._compiled_call(*args, **kwargs)
        return self._call(*args, **kwargs)

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        if context.recorder is not None:
            self._guard()
        own = self.__dict__
        hooked = (
            own["_forward_hooks"] or own["_forward_pre_hooks"]
            or own["_backward_hooks"] or own["_backward_pre_hooks"]
            or hooks.forward or hooks.forward_pre or hooks.backward or hooks.backward_pre
        )  # fmt: skip
        return self._call_hooked(args, kwargs) if hooked else self.forward(*args, **kwargs)

    def _guard(self) -> None:
        """Tell a function that is recorded that it depends on this module's settings, whether it is in
        training for one, on which modules are in it, and on the hooks there are."""
        recorder = context.recorder
        if recorder is not None:
            recorder.guard(CHANGES, "count")
            if self._modules:
                recorder.guard(NAMES, self)
            recorder.watch(self.__dict__, REGISTERS, of_object=True)
            recorder.watch(self._buffers)
            for name, value in self.__dict__.items():
                if name not in REGISTERS and (type(value) in SETTINGS or isinstance(value, Tensor)):
                    recorder.guard(self.__dict__, name, contents=is_setting(value))
            for name in self._modules:
                recorder.guard(self._modules, name)

    def _call_hooked(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        before, after = (hooks.forward_pre, self._forward_pre_hooks), (hooks.forward, self._forward_hooks)
        called: set[int] = set()
        try:
            for place in before:
                for key, hook in list(place.items()):
                    args, kwargs = self._before(hook, key in place.with_kwargs, args, kwargs)
            passage = self._passage()
            if passage is not None:
                args = passage.enter(args)
            output = self.forward(*args, **kwargs)
            for place in after:
                for key, hook in list(place.items()):
                    called.add(key)
                    output = self._after(hook, key in place.with_kwargs, args, kwargs, output)
            if passage is None:
                return output
            if not isinstance(output, (Tensor, tuple)):
                warnings.warn(
                    "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors "
                    f"but received {type(output)}",
                    stacklevel=3,
                )
            return passage.leave(output)
        except Exception:
            for place in after:
                for key, hook in list(place.items()):
                    if key in place.always and key not in called:
                        called.add(key)
                        self._after_failure(hook, key in place.with_kwargs, args, kwargs)
            raise

    def _after_failure(
        self, hook: Callable[..., Any], with_kwargs: bool, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Call a hook that is always called; the error that ended the module stays the one that is raised."""
        try:
            self._after(hook, with_kwargs, args, kwargs, None)
        except Exception as error:
            warnings.warn(
                "module forward hook with ``always_call=True`` raised an exception that was silenced as "
                f"another error was raised in forward: {error}",
                stacklevel=2,
            )

    def _passage(self) -> Passage | None:
        before = [*hooks.backward_pre.values(), *self._backward_pre_hooks.values()]
        after = [*hooks.backward.values(), *self._backward_hooks.values()]
        return Passage(self, before, after) if before or after else None

    def _before(
        self, hook: Callable[..., Any], with_kwargs: bool, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if not with_kwargs:
            changed = hook(self, args)
            if changed is None:
                return args, kwargs
            return (changed if isinstance(changed, tuple) else (changed,)), kwargs
        changed = hook(self, args, kwargs)
        if changed is None:
            return args, kwargs
        if not isinstance(changed, tuple) or len(changed) != 2:
            raise ArgumentError(
                f"a forward pre-hook with kwargs returns None or (args, kwargs), not {type(changed).__name__}"
            ).located(type(self).__name__, capture())
        return changed

    def _after(
        self,
        hook: Callable[..., Any],
        with_kwargs: bool,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        output: Any,
    ) -> Any:
        changed = hook(self, args, kwargs, output) if with_kwargs else hook(self, args, output)
        return output if changed is None else changed

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """From now on run calls of this module as compiled programs, one for each signature of its inputs."""
        self._compiled_call = compiler.compile(self._call, *args, **kwargs)

    # Hooks

    @located
    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args)` before forward; what it returns replaces the arguments."""
        return self._forward_pre_hooks.add(hook, with_kwargs, prepend)

    @located
    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call `hook(module, args, output)` after forward; what it returns replaces the output.

        With always_call, the hook is also called if forward raises.
        """
        return self._forward_hooks.add(hook, with_kwargs, prepend, always_call)

    @located
    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, grad_output)` when the gradients of the outputs are known; what it returns
        replaces them."""
        return self._backward_pre_hooks.add(hook, prepend=prepend)

    @located
    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` when the gradients of the inputs are known; what it
        returns replaces them."""
        return self._backward_hooks.add_backward(hook, True, "on one module", prepend)

    @located
    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """An older form of `register_full_backward_hook`; the two may not be combined. In PyTorch the hook
        sees the gradients of the module's last function only; here it sees those of the whole module."""
        return self._backward_hooks.add_backward(hook, False, "on one module")

    @property
    def _forward_pre_hooks_with_kwargs(self) -> dict[int, bool]:
        """Which forward pre-hooks are given keyword arguments too, by their ids."""
        return self._forward_pre_hooks.with_kwargs

    @property
    def _forward_hooks_with_kwargs(self) -> dict[int, bool]:
        """Which forward hooks are given keyword arguments too, by their ids."""
        return self._forward_hooks.with_kwargs

    @property
    def _forward_hooks_always_called(self) -> dict[int, bool]:
        """Which forward hooks are called also when forward raised, by their ids."""
        return self._forward_hooks.always

    # Changing all of it

    def apply(self: Self, fn: Callable[[Module], Any]) -> Self:
        """Call a function on every module below this one, and then on this one."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self: Self, mode: bool = True) -> Self:
        """Set this module and all below it to training, or with False to evaluation."""
        if not isinstance(mode, bool):
            raise ArgumentError(f"the mode is True or False, not {mode!r}").located("train", capture())
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self: Self) -> Self:
        """Set this module and all below it to evaluation."""
        return self.train(False)

    def requires_grad_(self: Self, requires_grad: bool = True) -> Self:
        """Set whether the parameters require gradients."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Reset the gradients of all parameters to None, or to zero."""
        for parameter in self.parameters():
            gradient = parameter.grad
            if gradient is not None and not set_to_none:
                gradient = gradient.detach() if gradient.requires_grad else gradient
                gradient.zero_()
            parameter.grad = None if set_to_none else gradient

    def share_memory(self: Self) -> Self:
        """Refused, like `share_memory_` of a tensor: memory is not shared between processes."""
        for parameter in self.parameters():
            parameter.share_memory_()
        return self

    # Converting all of it

    @located
    def to(self: Self, *args: Any, **kwargs: Any) -> Self:
        """Convert all parameters and buffers, in place: to(dtype), to(device), to(device, dtype), to(tensor).

        A dtype applies only to tensors of floating-point and complex dtypes.
        """
        device, dtype = _destination(args, kwargs)
        if dtype is not None and dtype.kind not in ("float", "complex"):
            raise DTypeError(
                f"a module is converted to float and complex dtypes only, not {dtype.name}",
                help="convert the tensors that are to be integers one by one",
            )

        def moved(tensor: Tensor) -> Tensor:
            wanted = dtype if tensor.dtype.kind in ("float", "complex") else None
            return tensor.to(device=device, dtype=wanted)

        return self._apply(moved)

    def float(self: Self) -> Self:
        """Convert all floating-point tensors to float32."""
        return self._apply(lambda tensor: tensor.float() if tensor.is_floating_point() else tensor)

    def double(self: Self) -> Self:
        """Convert all floating-point tensors to float64."""
        return self._apply(lambda tensor: tensor.double() if tensor.is_floating_point() else tensor)

    def half(self: Self) -> Self:
        """Convert all floating-point tensors to float16."""
        return self._apply(lambda tensor: tensor.half() if tensor.is_floating_point() else tensor)

    def bfloat16(self: Self) -> Self:
        """Convert all floating-point tensors to bfloat16."""
        return self._apply(lambda tensor: tensor.bfloat16() if tensor.is_floating_point() else tensor)

    def type(self: Self, dst_type: Any) -> Self:
        """Convert all tensors to a dtype."""
        return self._apply(lambda tensor: tensor.type(dst_type))

    def cuda(self: Self, device: Any = None) -> Self:
        """Move all tensors to a CUDA device."""
        return self._apply(lambda tensor: tensor.cuda(device))

    def cpu(self: Self) -> Self:
        """Move all tensors to the CPU."""
        return self._apply(lambda tensor: tensor.cpu())

    def to_empty(self: Self, *, device: Any, recurse: bool = True) -> Self:
        """Move all tensors to a device without their values."""
        return self._apply(lambda tensor: filled(tensor.shape, 0, tensor.dtype, device), recurse)

    def _apply(self: Self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace the value of every parameter, gradient and buffer, each of which stays the same object."""
        changed: list[Tensor] = []
        converted: dict[int, Tensor] = {}
        for module in self.modules() if recurse else [self]:
            for parameter in module._parameters.values():
                if parameter is not None and id(parameter) not in converted:
                    converted[id(parameter)] = parameter
                    _convert(parameter, fn, changed)
            for name, buffer in module._buffers.items():
                if isinstance(buffer, UninitializedBuffer):
                    _convert(buffer, fn, changed)
                elif buffer is not None:
                    if id(buffer) not in converted:
                        with no_grad():
                            converted[id(buffer)] = fn(buffer)
                        changed.append(converted[id(buffer)])
                    module._buffers[name] = converted[id(buffer)]
        if context.recorder is None:
            eval_(changed)  # all at once, and not again in every program that reads them
        return self

    # Printing and pickling

    def extra_repr(self) -> str:
        """The text that `repr` prints in the brackets of a module, before its children."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        lines += [f"({name}): {_indented(repr(module))}" for name, module in self._modules.items()]
        return _bracketed(self._get_name(), lines, single=not self._modules)

    def _repr_html_(self) -> str:
        """What a notebook shows: the modules as a tree, with the number of their parameters."""
        from tenfold.base.notebooks import branch_of, tree_html

        return tree_html(branch_of(self))

    def __getstate__(self) -> dict[str, Any]:
        return {name: each for name, each in self.__dict__.items() if name != "_compiled_call"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a pickle's attributes, PyTorch's too, which has how to call a hook in further dictionaries."""
        state = dict(state)
        for name in HOOKS:
            held = state.get(name) or {}
            with_kwargs = state.pop(f"{name}_with_kwargs", ())
            always = state.pop(f"{name}_always_called", ())
            if not isinstance(held, Hooks):
                state[name] = Hooks(held, with_kwargs, always)
        self.__dict__.update(state)


Declared = TypeVar("Declared", bound=Callable[..., Any])


def in_layer(method: Declared) -> Declared:
    """A method of a layer whose errors name the layer, and where the user called it."""

    @functools.wraps(method)
    def call(self: Module, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        except TenfoldError as error:
            raise error.located(type(self).__name__, capture()) from None

    return cast("Declared", call)


def _destination(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Device | None, DType | None]:
    """The device and the dtype that the arguments of `to` ask for."""
    given = dict(kwargs)
    for arg in args:
        if isinstance(arg, Tensor):
            given |= {"device": arg.device, "dtype": arg.dtype}
        elif isinstance(arg, bool) or arg is None:
            continue  # non_blocking: copies are finished when they return
        else:
            given["dtype" if isinstance(arg, (DType, type)) else "device"] = arg
    unknown = given.keys() - {"device", "dtype", "non_blocking", "memory_format"}
    if unknown or len(args) > 3:
        raise ArgumentError("takes (dtype), (device), (device, dtype) or (tensor), then non_blocking")
    # Weights stay row-major, whatever the format: XLA lays them out for the program that reads them.
    if given.get("memory_format") not in FORMATS:
        require_placement("memory_format", given.get("memory_format"))
    device, dtype = given.get("device"), given.get("dtype")
    return (
        None if device is None else Device(device).resolved,
        None if dtype is None else as_dtype(dtype),
    )


def _convert(parameter: Any, fn: Callable[[Tensor], Tensor], changed: list[Tensor]) -> None:
    if isinstance(parameter, (UninitializedParameter, UninitializedBuffer)):
        with no_grad():
            parameter.become(fn(parameter).current(), None)
        return
    gradient = parameter.grad
    with no_grad():
        replaced = fn(parameter)
        if replaced is not parameter:
            parameter.become(graph.fresh(replaced.current(), capture()), None)
            changed.append(parameter)
        if gradient is not None:
            moved = fn(gradient)
            if moved is not gradient:
                gradient.become(moved.current(), None)
                changed.append(gradient)


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")


def _bracketed(name: str, lines: list[str], single: bool) -> str:
    """A name and what belongs to it in brackets: on one line where that is all there is."""
    if single and len(lines) == 1:
        return f"{name}({lines[0]})"
    return f"{name}(\n  " + "\n  ".join(lines) + "\n)" if lines else f"{name}()"
