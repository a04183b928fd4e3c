"""The recording context of each thread: the recorder, the gradient mode, forward mode's level, autocast, and
the hooks that pack values saved for backward. It is the only mutable state of `trace/`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from tenfold.base.threads import handed_on

if TYPE_CHECKING:
    from tenfold.ops.table import Row
    from tenfold.trace.gradient import Wiring
    from tenfold.trace.graph import Node, Value
    from tenfold.trace.record import Recorder


class Level(Protocol):
    """A level of forward mode, which follows tangents: see `autograd/forward_ad.py`."""

    tangents: Any

    def push(self, node: Node, results: Sequence[Value]) -> None: ...

    def move(self, value: Value, moved: Value | None) -> None: ...

    def same(self, value: Value, other: Value) -> None: ...


class Saving(Protocol):
    """The hooks of `saved_tensors_hooks`: see `autograd/backward_hooks.py`."""

    def __call__(self, node: Node, results: Sequence[Value]) -> None: ...

    def packed(self, value: Value) -> Callable[[], Value]: ...


class Watcher(Protocol):
    """Hears of every call that is recorded: see `compat/flop_counter.py`."""

    def called(self, node: Node) -> None: ...

    def swept(self, path: Sequence[Node], wiring: Wiring, batch: int) -> None:
        """The gradient of a piece of the Trace was taken, for a batch of cotangents."""


_set = threading.local.__setattr__
MODE = frozenset(("grad_enabled", "inference"))  # the settings that say nothing of how ops are recorded


class Context(threading.local):
    """How ops are recorded in this thread."""

    recorder: Recorder | None = None  # follows the function that is being recorded
    grad_enabled: bool = True  # whether gradients are followed
    inference: bool = False
    exporting: bool = False  # the recording is for a module of another compiler
    # The lower precision of ops under autocast, by device; and the function that casts their arguments.
    precision: tuple[Any, ...] | None = None
    autocast: Callable[[Row, Sequence[Any]], Sequence[Any]] | None = None
    level: Level | None = None
    saving: Saving | None = None
    # Whether values that are saved for backward may be written in place: they are kept as they were.
    keeps_overwritten: bool = False
    # Whether types with `__torch_function__` are asked, and the modes that are asked before them.
    heeds: bool = True
    modes: tuple[Any, ...] = ()
    watcher: Watcher | None = None
    # Where it is noted what the user's code asks of the sizes of tensors, if anyone wants to know.
    asked: list[Any] | None = None

    # Derived: whether an op is recorded by its node alone, whether nobody follows that either; what a
    # compiled function depends on, and the same while no recorder and no level follows its call.
    quick: bool = True
    plain: bool = True
    state: tuple[Any, ...] = (True, False, None, (), None)
    unwatched: tuple[Any, ...] | None = state

    def __setattr__(self, name: str, value: Any) -> None:
        if getattr(self, name) is value:
            return
        _set(self, name, value)
        if name not in MODE:
            self._derive()
        state = (self.grad_enabled, self.inference, self.precision, self.modes, self.watcher)
        _set(self, "state", state)
        watched = self.recorder is not None or self.level is not None
        _set(self, "unwatched", None if watched else state)

    def _derive(self) -> None:
        alone = self.watcher is None and self.asked is None and not self.modes
        quick = alone and self.autocast is None and self.level is None
        _set(self, "quick", quick)
        _set(self, "plain", quick and self.recorder is None)


context = handed_on(Context())


class outside:
    """A `with` block inside a recording. Its ops are not part of that recording; they may be part of the one
    `around` it."""

    def __init__(self, around: Recorder | None = None):
        self.around = around

    def __enter__(self) -> None:
        self.recorder, context.recorder = context.recorder, self.around

    def __exit__(self, *error: Any) -> None:
        context.recorder = self.recorder
