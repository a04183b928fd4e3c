"""`Work`: the result of a collective that is called with `async_op=True`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenfold.futures import Future
from tenfold.tensor import Tensor


class Work:
    """A completed collective, and the tensors that it wrote."""

    def __init__(self, results: Sequence[Tensor] = ()):
        self._results = list(results)

    def wait(self, timeout: Any = None) -> bool:
        return True

    def is_completed(self) -> bool:
        return True

    def is_success(self) -> bool:
        return True

    def exception(self) -> None:
        return None

    def synchronize(self) -> None:
        self.wait()

    def result(self) -> list[Tensor]:
        """The tensors that were written."""
        self.wait()
        return self._results

    def get_future(self) -> Future[list[Tensor]]:
        """A completed future of the tensors that were written."""
        future: Future[list[Tensor]] = Future()
        future.set_result(self.result())
        return future
