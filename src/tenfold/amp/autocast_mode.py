"""`autocast`: a block in which ops that benefit run in a lower precision, and ops that need it run in
float32.

The fact `autocast` of a row says which is which. The tensors of an op are cast when it is recorded, so
gradients flow back through the cast, and a cast that occurs twice is computed once.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

from tenfold.base import dtypes
from tenfold.base.devices import NAMED
from tenfold.base.dtypes import DType
from tenfold.base.errors import ArgumentError
from tenfold.base.source import capture
from tenfold.base.threads import handed_on
from tenfold.ops.table import Row
from tenfold.tensor import Tensor
from tenfold.trace.context import context

DEFAULTS = {"cpu": dtypes.bfloat16, "cuda": dtypes.float16}


class _Settings(threading.local):
    """What is on in this thread, by the type of device."""

    def __init__(self) -> None:
        self.enabled = dict.fromkeys(DEFAULTS, False)
        self.dtypes = dict(DEFAULTS)
        self.cache = True


_settings = handed_on(_Settings())


def _device_type(device_type: Any) -> str:
    if device_type not in DEFAULTS:
        known = " or ".join(repr(default) for default in DEFAULTS)
        raise ArgumentError(f"the type of a device is {known}, not {device_type!r}").located(
            "autocast", capture()
        )
    return device_type


def is_autocast_available(device_type: str) -> bool:
    """Whether devices of this type have autocast."""
    return device_type in DEFAULTS


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether autocast is on for devices of this type. It is off for devices that do not exist here."""
    if device_type in NAMED or device_type == "meta":
        return False
    return _settings.enabled[_device_type(device_type)]


def get_autocast_dtype(device_type: str) -> DType:
    """The lower precision in which ops run on devices of this type."""
    return _settings.dtypes[_device_type(device_type)]


def set_autocast_dtype(device_type: str, dtype: DType) -> None:
    """Set the lower precision in which ops run on devices of this type."""
    _settings.dtypes[_device_type(device_type)] = dtype
    _announce()


def _announce() -> None:
    """Let ops be cast as they are recorded, and compiled functions know for which precision they were."""
    on = tuple([(device, _settings.dtypes[device]) for device, is_on in _settings.enabled.items() if is_on])
    context.precision = on or None
    context.autocast = cast_arguments if on else None


def set_autocast_enabled(device_type: str, enabled: bool) -> None:
    """Switch autocast on or off for devices of this type."""
    _settings.enabled[_device_type(device_type)] = bool(enabled)
    _announce()


def is_autocast_cache_enabled() -> bool:
    """The last value given to `set_autocast_cache_enabled`."""
    return _settings.cache


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Set a flag that has no effect: a cast that is recorded twice is computed once in any case."""
    _settings.cache = bool(enabled)


def clear_autocast_cache() -> None:
    """Does nothing: there is no cache, since a cast that is recorded twice is computed once."""


class autocast:
    """Run ops in mixed precision, as a `with` block or as the decorator of a function.

    `dtype` is the lower precision; the default is bfloat16 on the CPU and float16 on CUDA.
    """

    def __init__(
        self,
        device_type: str,
        dtype: DType | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ):
        self.device = _device_type(device_type)
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        if self.fast_dtype not in (dtypes.bfloat16, dtypes.float16) and enabled:
            raise ArgumentError(
                f"autocast runs ops in bfloat16 or float16, not in {self.fast_dtype.name}",
                help="leave dtype out, or pass enabled=False",
            ).located("autocast", capture())
        self.enabled = bool(enabled)
        self.cache = cache_enabled
        self._before: list[tuple[bool, DType, bool]] = []

    def __enter__(self) -> autocast:
        self._before.append(
            (is_autocast_enabled(self.device), get_autocast_dtype(self.device), _settings.cache)
        )
        set_autocast_enabled(self.device, self.enabled)
        set_autocast_dtype(self.device, self.fast_dtype)
        if self.cache is not None:
            _settings.cache = self.cache
        return self

    def __exit__(self, *error: Any) -> None:
        enabled, dtype, _settings.cache = self._before.pop()
        set_autocast_enabled(self.device, enabled)
        set_autocast_dtype(self.device, dtype)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with autocast(self.device, self.fast_dtype, self.enabled, self.cache):
                return function(*args, **kwargs)

        return call


def cast_arguments(row: Row, arguments: Sequence[Any]) -> Sequence[Any]:
    """The arguments of a call as autocast wants them, where it is on for the device that they are on."""
    if not row.autocast:
        return arguments
    for device in DEFAULTS:
        if not _settings.enabled[device]:
            continue
        policy = policies(row.autocast).get(device)
        if policy == "lower":
            return _cast(arguments, _settings.dtypes[device], device)
        if policy == "float32":
            return _cast(arguments, dtypes.float32, device)
        if policy == "widest":
            tensors = [tensor for tensor in _tensors(arguments) if _takes_part(tensor, device)]
            if tensors:
                full = any(tensor.dtype is dtypes.float32 for tensor in tensors)
                return _cast(arguments, dtypes.float32 if full else _settings.dtypes[device], device)
        if policy == "float32 result":
            return _with_dtype(row, arguments, device)
    return arguments


@functools.cache
def policies(autocast: str) -> dict[str, str]:
    """The policy of each type of device, from a row's fact: "lower", or "cpu: float32, cuda: widest"."""
    if ":" not in autocast:
        return dict.fromkeys(DEFAULTS, autocast)
    parts = [part.split(":") for part in autocast.split(",")]
    return {device.strip(): policy.strip() for device, policy in parts}


def _takes_part(argument: Any, device: str) -> bool:
    if not isinstance(argument, Tensor) or argument.device.type != device:
        return False
    return argument.dtype.is_floating_point and argument.dtype is not dtypes.float64


def _tensors(arguments: Sequence[Any]) -> list[Tensor]:
    found = []
    for argument in arguments:
        if isinstance(argument, Tensor):
            found.append(argument)
        elif isinstance(argument, (list, tuple)):
            found += [part for part in argument if isinstance(part, Tensor)]
    return found


def _cast(argument: Any, dtype: DType, device: str) -> Any:
    if isinstance(argument, (list, tuple)):
        return tuple([_cast(each, dtype, device) for each in argument])
    if _takes_part(argument, device) and argument.dtype is not dtype:
        return argument.to(dtype)
    return argument


def _with_dtype(row: Row, arguments: Sequence[Any], device: str) -> Sequence[Any]:
    """The call asked for a result in float32, if its schema can be and it asks for no other."""
    if not _takes_part(arguments[0], device):
        return arguments
    names = [argument.name for argument in row.schema.arguments]
    if "dtype" not in names:
        return _cast(arguments, dtypes.float32, device)
    place = names.index("dtype")
    return (
        arguments
        if arguments[place] is not None
        else [*arguments[:place], dtypes.float32, *arguments[place + 1 :]]
    )


def custom_fwd(fwd: Any = None, *, device_type: str, cast_inputs: DType | None = None) -> Any:
    """Decorates the forward of an autograd.Function. With `cast_inputs`, its tensors are cast to this dtype,
    and it runs without autocast. The backward, decorated by `custom_bwd`, uses the same setting."""
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def call(*args: Any, **kwargs: Any) -> Any:
        context = args[0]
        context._dtype = get_autocast_dtype(device_type)
        context._fwd_used_autocast = is_autocast_enabled(device_type)
        if cast_inputs is None or not context._fwd_used_autocast:
            return fwd(*args, **kwargs)
        context._fwd_used_autocast = False
        with autocast(device_type, enabled=False):
            cast = lambda each: _cast(each, cast_inputs, device_type)
            return fwd(context, *[cast(arg) for arg in args[1:]], **{k: cast(v) for k, v in kwargs.items()})

    return call


def custom_bwd(bwd: Any = None, *, device_type: str) -> Any:
    """Decorates the backward of an autograd.Function, which then uses the autocast setting of its forward."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def call(*args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, args[0]._dtype, args[0]._fwd_used_autocast):
            return bwd(*args, **kwargs)

    return call
