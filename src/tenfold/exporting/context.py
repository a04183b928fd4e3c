"""`module_context`: builds a module of the torch dialect from what a block does to tensors, while the block
runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenfold.base.errors import TraceError, UnsupportedError
from tenfold.base.source import capture
from tenfold.exporting.building import WHAT
from tenfold.exporting.operations import Operations
from tenfold.runtime import evaluate
from tenfold.trace.context import context, outside
from tenfold.trace.graph import Value
from tenfold.trace.record import Policy, Recorder, recording_lock


def _refuse_function(function: Any, args: tuple[Any, ...]) -> Any:
    raise UnsupportedError(
        "a Function inside mlir.module_context: the derivative would not be its own",
        help="write its forward with ordinary ops there",
    ).located(function.__name__, capture())


class RecordedModule(Operations):
    """The module of a block. Printing it gives its text; within the block, this is the text of what was done
    so far, and ops can be added by hand."""

    @property
    def module(self) -> Any:
        """The finished module; None while the block is open."""
        return self.finished


class module_context:
    """A block whose ops become a function of the torch dialect without arguments.

    Tensors from before the block, and all parameters, are literals of the function. Its results are the
    tensors made in the block that nothing else in the block uses and that still exist at its end. Nothing is
    computed in the block: a tensor prints as the op that makes it, and its value cannot be read.

        with module_context() as module:
            y = nn.Linear(10, 10)(tenfold.ones(10))
            print(module)
            n = module.aten.size.int(y, 0)
        print(module)

    A block inside another builds a module of its own.
    """

    def __init__(self, *, value_tensors: bool = True):
        self.value_tensors = value_tensors

    def __enter__(self) -> RecordedModule:
        self.around = context.recorder
        if self.around is not None and self.around.policy.what != f"mlir.{WHAT}":
            raise TraceError("module_context inside something else that is recorded").located(WHAT, capture())
        # Writes are left as they are: the block is part of the user's program.
        policy = Policy(
            f"mlir.{WHAT}",
            evaluate=self._read,
            apply=_refuse_function,
            describes=lambda v: recorded.describe(v),
        )
        recorder = Recorder(policy)
        recorded = self.recorded = RecordedModule(recorder, self.value_tensors)
        recording_lock.acquire()  # recordings of other threads wait until the block ends
        context.recorder = recorder
        return recorded

    def __exit__(self, kind: Any, *error: Any) -> None:
        try:
            with outside():
                if kind is None:
                    self.recorded.finish()
        finally:
            self.recorded.failed = self.recorded.finished is None
            context.recorder = self.around
            recording_lock.release()

    def _read(self, values: Sequence[Value]) -> None:
        """Compute values from outside, which become literals: those of the module around have none."""
        around = self.around
        if around is not None and any(around.traced(value) for value in values):
            raise TraceError(
                "a tensor of the module around this one has no value yet",
                help="build both in one module, or make the tensor before the blocks",
            ).located(WHAT, capture())
        evaluate.evaluate(values)
