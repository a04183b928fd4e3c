"""Large messages from one process to another: PJRT's transfer server offers an array, and the process that it
is for pulls it. The coordination service carries no more than the ticket."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold.engines import xla

LARGE = 256 * 1024  # bytes from which a message is pulled
POLL = 0.0005  # seconds between looks whether it is there
INLINE, TICKET = b"\0", b"\1"  # how what is left with the coordination service begins


class Transfers:
    """What this process offers to others, and pulls from them. It listens on `host` alone, with a client of
    its own, which takes no part in programs of several processes."""

    def __init__(self, host: str):
        j = xla.jaxlib()
        self._client = j.xc.make_cpu_client()
        self._device = self._client.local_devices()[0]
        address = f"[{host}]:0" if ":" in host else f"{host}:0"
        self._server = j._jax.start_transfer_server(self._client, address, [address])
        self._connections: dict[str, Any] = {}

    def offer(self, contents: np.ndarray) -> bytes:
        """The ticket for bytes that another process may pull, once."""
        number = secrets.randbits(62)
        self._server._await_pull_flat(number, [xla.put_on(contents, self._device)])
        return TICKET + json.dumps([self._server.address(), number, contents.size]).encode()

    def pull(self, ticket: bytes, is_lost: Callable[[], bool]) -> memoryview | None:
        """The bytes that another process offers; None once that is lost."""
        address, number, size = json.loads(ticket[len(TICKET) :])
        if address not in self._connections:
            self._connections[address] = self._server.connect(address)
        wanted = xla.described((size,), np.dtype(np.uint8), self._device)
        (buffer,) = self._connections[address]._pull_flat(number, self._client, [wanted])
        # A thread that waits in native code when this process ends would abort it, so this one does not.
        while not buffer.is_ready():
            if is_lost():
                self._connections.pop(address)._poison_connection()
                return None
            time.sleep(POLL)
        return xla.fetch(buffer).data
