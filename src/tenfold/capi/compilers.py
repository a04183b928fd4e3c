"""The compilers that build libtenfold: which are found, and running them so that none outlives its build."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import threading

from tenfold.base.errors import EngineError, MissingEngine

__all__ = ["Running", "compiler", "version_of"]

_CHOOSE = "apt-get install g++, or set CC and CXX to compilers"


def compiler(variable: str, *names: str) -> str:
    """The path of what an environment variable names, or else of the first that is installed."""
    chosen = os.environ.get(variable)
    for name in [chosen] if chosen else names:
        found = shutil.which(name)
        if found:
            return found
    raise MissingEngine(
        f"libtenfold needs a compiler, and there is no {chosen or names[0]}",
        help=_CHOOSE,
    )


def version_of(path: str) -> str:
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, errors="replace")
    except OSError as error:
        raise MissingEngine(f"{path} is no compiler: {error.strerror}", help=_CHOOSE) from None
    if done.returncode != 0 or not done.stdout:
        raise MissingEngine(f"{path} is no compiler: it does not tell its version", help=_CHOOSE)
    return done.stdout.splitlines()[0]


# Runs a command, and ends its group of processes when the other end of the standard input is closed: the
# system does so when the build is killed, which then can stop no compiler itself.
_GUARDED = """
exec 3<&0
(read -r nothing <&3; kill -9 0) &
"$@" </dev/null 3<&-
code=$?
kill $!
exit $code
"""


class Running:
    """The compilers of one build that run now. Each is a group of processes: what a compiler starts itself
    ends with it, and all of them with this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._processes: set[subprocess.Popen[str]] = set()
        self._stopped = False

    def run(self, command: list[str], what: str) -> None:
        """Run one to its end, from a thread that no signal interrupts: any but the main one."""
        with self._lock:
            if self._stopped:
                raise EngineError(f"{what} was given up with the build")
            watched, alive = os.pipe()
            try:
                process = subprocess.Popen(
                    ["/bin/sh", "-c", _GUARDED, "sh", *command],
                    stdin=watched,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    start_new_session=True,
                )
            except BaseException:
                os.close(alive)
                raise
            finally:
                os.close(watched)
            self._processes.add(process)
        try:
            printed, told = process.communicate()
        finally:
            os.close(alive)
            with self._lock:
                self._processes.discard(process)
        if process.returncode:
            shown = "\n".join((told or printed).splitlines()[:30])
            raise EngineError(f"{what} failed\n{shown}", help=" ".join(command))

    def stop(self) -> None:
        """End those that run, and let no other begin."""
        with self._lock:
            self._stopped = True
            for process in self._processes:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
