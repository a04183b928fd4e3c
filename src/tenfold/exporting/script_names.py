"""Words of TorchScript's whose work is done otherwise here: by the recorder, which runs what it reads, and
by XLA, which chooses what it fuses. `tenfold.jit` has them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from tenfold.base.errors import located
from tenfold.futures import Future

Kind = TypeVar("Kind")


def script_method(fn: Kind) -> Kind:
    """A method of a `ScriptModule`, as it is."""
    return fn


@located
def fork(func: Callable[..., Kind], *args: Any, **kwargs: Any) -> Future[Kind]:
    """Call a function, and give what it returns as a future that is done."""
    future: Future[Kind] = Future()
    future.set_result(func(*args, **kwargs))
    return future


@located
def wait(future: Future[Kind]) -> Kind:
    """What the function given to `fork` returned."""
    return future.wait()


@contextlib.contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """Does nothing: programs are compiled either way. PyTorch's executor of TorchScript has this setting."""
    yield


class strict_fusion(contextlib.ContextDecorator):
    """Does nothing: XLA fuses what it can. PyTorch's executor of TorchScript has this block."""

    def __enter__(self) -> None: ...

    def __exit__(self, *error: Any) -> None: ...


def enable_onednn_fusion(enabled: bool) -> None:
    """Does nothing: XLA chooses its libraries itself. PyTorch's executor of TorchScript has this setting."""


def onednn_fusion_enabled() -> bool:
    """Whether TorchScript fuses by oneDNN: never, XLA fuses what it can."""
    return False
