"""`tenfold explain --serve`: the page on this machine alone, made anew whenever the file changes.

The server listens on the loopback address and answers only requests that name it as their host and come from
its own pages: another site that a browser has open can neither read it nor reach it under a name of its own.
"""

from __future__ import annotations

import contextlib
import html
import http.server
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tenfold.base.errors import ArgumentError

INTERVAL = 0.3  # seconds between looks at the file


class Watched:
    """A page that follows a file and those beside it, which it may import. `version` grows with each new
    page."""

    def __init__(self, path: str, options: Sequence[str] = ()):
        self.path = path
        self.options = list(options)
        self.version = 0
        self.page = b""
        self._seen: frozenset[tuple[str, int]] = frozenset()

    def refresh(self) -> bool:
        """Make the page anew if a file has changed; whether there is a new page."""
        changed = self._times()
        if not os.path.isfile(self.path) or changed == self._seen:
            return False  # where it is not there, it is being replaced
        self._seen = changed
        page = self._made()
        if page is None:
            return False
        self.page = page
        self.version += 1
        return True

    def _times(self) -> frozenset[tuple[str, int]]:
        """The files of the same language in the file's folder, and when each was written."""
        folder, language = os.path.dirname(self.path) or ".", os.path.splitext(self.path)[1]
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            files = [entry for entry in entries if entry.name.endswith(language) and entry.is_file()]
            return frozenset((entry.name, entry.stat().st_mtime_ns) for entry in files)
        return self._seen

    def _made(self) -> bytes | None:
        """The page, by a process of its own: a program that has run once is not what runs at first. None if a
        file changed meanwhile: a program that never ends must not keep the next one away."""
        with tempfile.TemporaryDirectory() as folder:
            output = Path(folder) / "page.html"
            command = [sys.executable, "-m", "tenfold", "explain", self.path, "-o", str(output)]
            process = subprocess.Popen(
                [*command, *self.options],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
            )
            try:
                told = self._output(process)
            finally:
                process.kill()
                process.wait()
            if told is None:
                return None
            if process.returncode == 0 and output.exists():
                return output.read_bytes()
        return _failure(self.path, told)

    def _output(self, process: subprocess.Popen[str]) -> str | None:
        """What a process printed, its errors before all else; None where a file changed before its end."""
        while True:
            try:
                printed, errors = process.communicate(timeout=INTERVAL)
                return errors or printed
            except subprocess.TimeoutExpired:
                if os.path.isfile(self.path) and self._times() != self._seen:
                    return None


def _failure(path: str, text: str) -> bytes:
    """A page that tells what went wrong, and looks for a better one."""
    shown = html.escape(text.strip() or f"{path} ended without a page")
    script = (
        "setInterval(async () => { const now = await (await fetch('version')).text();"
        " window.was ??= now; if (now !== window.was) location.reload() }, 500)"
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(path)}</title>'
        '<link rel="icon" href="data:,">'  # so that the browser asks for none
        "<style>body{font:15px/1.5 system-ui;margin:3rem;color-scheme:light dark}"
        "pre{white-space:pre-wrap}</style>"
        f"<h1>{html.escape(path)}</h1><pre>{shown}</pre><script>{script}</script></html>"
    ).encode()


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        if not self._is_own():
            self._answer(403, b"this server answers its own pages alone\n", "text/plain")
        elif self.path == "/":
            self._answer(200, self.server.watched.page, "text/html; charset=utf-8")
        elif self.path == "/version":
            self._answer(200, str(self.server.watched.version).encode(), "text/plain")
        else:
            self._answer(404, b"not here\n", "text/plain")

    def _is_own(self) -> bool:
        names = [f"127.0.0.1:{self.server.server_port}", f"localhost:{self.server.server_port}"]
        origin = self.headers.get("Origin")
        site = self.headers.get("Sec-Fetch-Site", "none")
        return (
            self.headers.get("Host") in names
            and (origin is None or origin in [f"http://{name}" for name in names])
            and site in ("none", "same-origin")
        )

    def _answer(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Frame-Options", "DENY")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


class Server(http.server.ThreadingHTTPServer):
    """Serves one watched page on the loopback address; port 0 takes any that is free."""

    daemon_threads = True

    def __init__(self, watched: Watched, port: int = 0):
        self.watched = watched
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except OSError as error:
            raise ArgumentError(
                f"port {port} cannot be used: {error.strerror}", help="leave out --port to have a free one"
            ) from None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"


def serve(watched: Watched, port: int, ready: Callable[[str], object]) -> None:
    """Serve until interrupted; `ready` is told the address once there is a page."""
    with Server(watched, port) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            while not watched.refresh():
                time.sleep(INTERVAL)
            ready(server.address)
            while True:
                time.sleep(INTERVAL)
                if watched.refresh():
                    print(f"a file changed: page {watched.version} of {watched.path}", flush=True)
        except KeyboardInterrupt:
            server.shutdown()
