"""Executables that were compiled in haste: without optimisations, to run at once.

XLA optimises the program in the background when it has run long enough to be worth it. From then on the
optimised executable runs. Which programs are compiled so, `tiers.py` decides.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from tenfold.base.errors import TenfoldError
from tenfold.base.warning import warn
from tenfold.engines import xla
from tenfold.runtime import tiers
from tenfold.runtime.background import background
from tenfold.runtime.checks import Loaded
from tenfold.runtime.stepwise import Stepwise


class Hasty:
    """Runs an unoptimised executable until the optimised one replaces it in its owner. To compile all of the
    program's ops takes so many `seconds`."""

    def __init__(
        self,
        executable: xla.Executable | Stepwise,
        owner: Loaded,
        optimise: Callable[[], xla.Executable],
        seconds: float,
    ):
        self._executable = executable
        self._owner = owner  # whose executable it is
        self._optimise = optimise
        self._left = tiers.WORTH * seconds  # of the time that it may run before it is optimised
        self._submitted = False
        self._lock = threading.Lock()

    def __call__(self, buffers: Sequence[Any], held: list[Any] | None = None) -> list[Any]:
        start = time.perf_counter()
        results = self._executable(buffers, held)
        self._left -= time.perf_counter() - start
        if self._left < 0 and not self._submitted:
            self._submitted = True
            background.submit(self, self._replace_later)
        return results

    def _replace_later(self) -> None:
        try:
            self._replace()
        except TenfoldError as error:  # results are right without it
            warn(f"compile: a program stays unoptimised: {error.message}", RuntimeWarning)

    def _replace(self) -> None:
        with self._lock:
            if self._owner.executable is self:
                self._owner.executable = self._optimise()

    def optimised(self) -> xla.Executable:
        """The optimised executable, compiled now if it is not there yet."""
        self._replace()
        return self._owner.executable

    def memory(self) -> int:
        return self.optimised().memory()

    def hlo(self) -> str:
        return self.optimised().hlo()
