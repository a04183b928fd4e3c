"""Untrusted files are tried in a child process first, because they may crash it.

MLIR, XLA and IREE end the process on some damaged or hostile files. So what was not written here is parsed,
checked and compiled in a child process first; if the child dies, the file is refused with an error. It is no
sandbox: it protects this process from crashes, not from code that a file may carry (`docs/security.md`).
What passed is remembered, in memory and in the cache on disk, and is not tried again.

The child loads the libraries and forks itself for each file, so that no file meets what another left behind.
Requests and replies are a line of JSON, which says how many bytes follow, and those bytes.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import math
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import IO, Any

from tenfold import version
from tenfold.base import digests, errors
from tenfold.base.devices import Device
from tenfold.base.dtypes import BY_NAME
from tenfold.base.errors import EngineError, FormatError, TenfoldError
from tenfold.base.forking import forkable
from tenfold.engines import iree, xla
from tenfold.exporting import limits
from tenfold.flat.ir import TensorType
from tenfold.mlir import portable, stablehlo
from tenfold.runtime import cache
from tenfold.serialize.trust import trusted

SECONDS = 60.0  # of the clock that reading a file may take, and one more for each megabyte
PROCESSOR_SECONDS = 3.0  # of computing, likewise
BUSY = 10.0  # seconds of the clock for each of processor time that compiling may take
IDLE_SECONDS = 20.0  # after which the child ends
DYING = 0.2  # a pipe of a process closes a moment before it has ended
MEMORY = 4 << 30  # bytes that the child may ask for to compile a file, and more for a large one
READING_MEMORY = 512 << 20  # likewise to read it
MAX_REMEMBERED = 10_000
OURS, TRIED = b"ours", b"tried"  # what is remembered of a file
COMMAND = "from tenfold.exporting.untrusted import serve; serve()"
_lock = forkable(threading.RLock())
_child: subprocess.Popen[bytes] | None = None
_known: dict[bytes, bytes] = {}


def remember(data: bytes, what: bytes = OURS, on_disk: bool = False) -> None:
    """Note that a file need not be tried: this process wrote it, or tried it before."""
    digest = digests.sha256(data)
    _known[digest] = what
    while len(_known) > MAX_REMEMBERED:
        del _known[next(iter(_known))]
    if on_disk:
        cache.store(_entry(digest), what)


def _remembered(data: bytes) -> bytes | None:
    digest = digests.sha256(data)
    return _known.get(digest) or cache.load(_entry(digest))


def _entry(digest: bytes) -> str:
    readers = f"{stablehlo.jaxlib_version()} {iree.version()}"
    return cache.key("guarded trial", version.release, readers, digest.hex())


def read(data: bytes) -> tuple[stablehlo.Module, bool]:
    """A StableHLO module, and whether this process may compile it at once: others are compiled in a child."""
    digests.require_undamaged(data)
    known = _remembered(data)
    if known is None:
        _ask({"do": "read"}, data, SECONDS + len(data) / 1e6)
        remember(data, TRIED, on_disk=True)
    return portable.read(data), known == OURS


def compiled(module: stablehlo.Module, device: Device) -> xla.Executable:
    """The executable of a module that others wrote, compiled in the child."""
    if device.type != "cpu":
        return xla.compile(module, device)
    xla.provide(module, device)
    name = cache.key(module.text(whole=True), xla.fingerprint(module, device))
    code = cache.load(name)
    if code is None:
        data = module.bytecode()
        processor = limits.compile_seconds(module, data)
        code = _ask({"do": "compile", "processor": processor}, data, BUSY * processor)
        cache.store(name, code)
    return xla.deserialize(code, module, device)


def refined(module: stablehlo.Module, types: Sequence[TensorType]) -> stablehlo.Module:
    """A module that others wrote, with its open sizes fixed in the child: MLIR computes them as it does so,
    and dies of some, of a division by zero for one."""
    spelled = [(type.dtype.name, type.shape) for type in types]
    name = cache.key(
        "refined", version.release, stablehlo.jaxlib_version(), module.text(whole=True), str(spelled)
    )
    fixed = cache.load(name)
    if fixed is None:
        data = module.bytecode()
        fixed = _ask({"do": "refine", "types": spelled}, data, SECONDS + len(data) / 1e6)
        cache.store(name, fixed)
    return portable.read(fixed)


def loadable(data: bytes, target: str) -> bool:
    """Whether this process may load a `.vmfb`: others run in a process of their own. An error for one that is
    damaged, or crashes the process which loads it."""
    iree.require_undamaged(data)
    known = _remembered(data)
    if known is None and trusted():
        return True
    if known is None:
        _ask({"do": "load", "target": target}, data, SECONDS + len(data) / 1e6)
        remember(data, TRIED, on_disk=True)
    return known == OURS or trusted()


def _ask(request: dict[str, Any], data: bytes, seconds: float) -> bytes:
    """What the child replies; its errors are raised here. It may have ended because it was idle: then another
    is asked."""
    with _lock:
        for _ in range(2):
            try:
                reply, payload = exchange(_started(), request, data, seconds)
            except EOFError:
                reply = {"died": _stop(DYING)}
                continue
            except BaseException:
                _stop()
                raise
            if reply is None:
                _stop()
            break
    if request["do"] == "compile":
        _require_compiled(reply, seconds, request["processor"])
    require_read(reply, seconds)
    return payload


def _require_compiled(reply: dict[str, Any] | None, clock: float, processor: float) -> None:
    if reply is None:
        limit = f"{clock:.0f} seconds"
    elif reply.get("died") == signal.SIGXCPU.name:
        limit = f"{processor:.0f} seconds of processor time"
    else:
        return
    raise FormatError(
        f"compiling the module takes over {limit}: it is refused",
        help=f"if you trust the file, set {limits.VARIABLE} to the seconds of processor time it may take",
    )


def require_read(reply: dict[str, Any] | None, seconds: float) -> None:
    """Raise the error that the process replied which read a file, or that tells how the process ended."""
    if reply is None:
        raise FormatError(f"reading the file takes over {seconds:.0f} seconds: it is refused")
    if reply.get("died") == signal.SIGXCPU.name:
        raise FormatError("reading the file takes too long for its length: it is refused")
    if "died" in reply:
        raise FormatError(
            f"the file is damaged or hostile: the process that read it first died of it ({reply['died']})",
            help="copy it again from where it was made, or make it again with this version",
        )
    require_no_error(reply)


def require_no_error(reply: dict[str, Any]) -> None:
    if "error" in reply:
        kind = getattr(errors, str(reply["error"]), FormatError)
        assert issubclass(kind, TenfoldError)
        raise kind(reply["message"], help=reply["help"])


def exchange(
    child: subprocess.Popen[bytes], request: dict[str, Any], data: bytes, seconds: float
) -> tuple[dict[str, Any] | None, bytes]:
    """The reply, which is None if it does not come in time."""
    assert child.stdin is not None and child.stdout is not None
    timer = threading.Timer(seconds, _kill, [child])
    timer.daemon = True
    timer.start()
    end = time.monotonic() + seconds
    try:
        with contextlib.suppress(BrokenPipeError):
            write(child.stdin, {**request, "seconds": seconds}, data)
        return receive(child.stdout)
    except EOFError:
        if time.monotonic() >= end:
            return None, b""
        raise
    finally:
        timer.cancel()


def _started() -> subprocess.Popen[bytes]:
    global _child
    if _child is not None and _child.poll() is not None:
        _stop()
    if _child is None:
        _child = spawned(COMMAND)
    return _child


def spawned(command: str) -> subprocess.Popen[bytes]:
    """A process that runs a command of Python's, once it has said that it is ready."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    try:
        child = subprocess.Popen(
            [sys.executable, "-P", "-c", command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,  # Ctrl-C is this process's to hear
        )
    except OSError as error:
        raise EngineError(
            f"the process in which a file that others wrote is read does not start: {error.strerror}",
            help="run Tenfold where sys.executable is a Python interpreter",
        ) from None
    assert child.stdout is not None
    try:
        ready = child.stdout.readline() == b"ready\n"
    except BaseException:
        end(child)
        raise
    if not ready:
        raise EngineError(
            f"the process in which a file that others wrote is read does not start ({end(child, DYING)})",
            help=f"try: {sys.executable} -c 'import tenfold'",
        )
    return child


def _kill(child: subprocess.Popen[bytes]) -> None:
    """End the child and what it forked, which are a process group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


def _stop(patience: float = 0.0) -> str:
    """End the child; how it ended, if it did by itself."""
    global _child
    child, _child = _child, None
    return "not started" if child is None else end(child, patience)


def end(child: subprocess.Popen[bytes], patience: float = 0.0) -> str:
    """End a process; how it ended, if it did by itself within so many seconds."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        if patience:
            child.wait(patience)
    code = child.poll()
    if code is None:
        _kill(child)
        child.wait()
    for pipe in (child.stdin, child.stdout):
        assert pipe is not None
        with contextlib.suppress(OSError):
            pipe.close()
    return _ending(code)


def _ending(code: int | None) -> str:
    return signal.Signals(-code).name if code is not None and code < 0 else f"exit status {code}"


def _leave() -> None:
    """In a fork, the child and its pipes are the parent's."""
    global _child
    _child = None


atexit.register(_stop)
os.register_at_fork(after_in_child=_leave)


def write(stream: IO[bytes], header: dict[str, Any], data: bytes) -> None:
    stream.write(json.dumps({**header, "bytes": len(data)}).encode() + b"\n")
    stream.write(data)
    stream.flush()


def receive(stream: IO[bytes]) -> tuple[dict[str, Any], bytes]:
    line = stream.readline()
    if not line.endswith(b"\n"):
        raise EOFError
    header = json.loads(line)
    data = stream.read(header["bytes"])
    if len(data) < header["bytes"]:
        raise EOFError
    return header, data


def ends_of_pipes() -> tuple[IO[bytes], IO[bytes]]:
    """Where the child reads requests and writes replies. It hears all signals that it needs, also those that
    the user's program ignores or blocks: a child inherits that."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for each in (signal.SIGALRM, signal.SIGCHLD, signal.SIGIO, signal.SIGXCPU):
        signal.signal(each, signal.SIG_DFL)
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no reply
    return requests, replies


def serve() -> None:
    """The child: answer requests until the other end closes, or is silent for long."""
    requests, replies = ends_of_pipes()
    waiting = selectors.DefaultSelector()
    waiting.register(requests, selectors.EVENT_READ)
    replies.write(b"ready\n")
    replies.flush()
    while waiting.select(IDLE_SECONDS):
        try:
            request, data = receive(requests)
            with contextlib.suppress(TenfoldError):
                _prepared(request)
            worker = os.fork()
            if not worker:
                signal.alarm(math.ceil(request["seconds"]) + 1)  # ends it even if its parents were killed
                write(replies, *_answered(request, data))
                os._exit(0)
            code = os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])
            if code:
                write(replies, {"died": _ending(code)}, b"")
        except (EOFError, BrokenPipeError):
            return


def _answered(request: dict[str, Any], data: bytes) -> tuple[dict[str, Any], bytes]:
    """What is replied to a request, in the process that is forked for it."""
    try:
        work = _prepared(request)
        if request["do"] == "compile":
            limits.confine(len(data), request["processor"], MEMORY)
        else:
            limits.confine(len(data), PROCESSOR_SECONDS + len(data) / 1e6, READING_MEMORY)
        return {}, work(data)
    except Exception as error:
        return told(error), b""


def told(error: Exception) -> dict[str, Any]:
    """An error as a reply."""
    if isinstance(error, TenfoldError):
        help = error.help() if callable(error.help) else error.help
        return {"error": type(error).__name__, "message": error.message, "help": help}
    if isinstance(error, MemoryError):
        return {"error": "OutOfMemory", "message": "no memory to read the file in", "help": None}
    message = f"this is no file that can be read: {type(error).__name__}: {error}"
    return {"error": "FormatError", "message": message, "help": None}


def _prepared(request: dict[str, Any]) -> Callable[[bytes], bytes]:
    """What does a request to a file. Libraries are loaded here: their time is not the file's."""
    if request["do"] == "load":
        iree.runtime()
        return lambda data: _loaded(iree.Executable, data, request["target"], True)
    stablehlo.generated()
    stablehlo.bindings()
    if request["do"] == "refine":
        types = [TensorType(BY_NAME[name], tuple(shape)) for name, shape in request["types"]]
        return lambda data: portable.refined(portable.read(data), types).bytecode()
    if request["do"] == "compile":
        xla.jaxlib()
        return _compiled
    return lambda data: _loaded(portable.read, data)


def _loaded(load: Callable[..., object], *arguments: Any) -> bytes:
    load(*arguments)
    return b""


def _compiled(data: bytes) -> bytes:
    return xla.serialize(xla.compile(portable.read(data), Device("cpu")))
