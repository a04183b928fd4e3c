"""`TCPStore`: a store that one process keeps and others reach by its host and port."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
import weakref
from datetime import timedelta
from typing import Any

from tenfold.base.errors import ArgumentError, DistNetworkError, DistStoreError, TenfoldError, located
from tenfold.distributed.stores.store import DEFAULT_TIMEOUT, HashStore, Store, too_late
from tenfold.distributed.stores.table import LENGTH, Fields, packed

MOST_FIELDS, MOST_BYTES = 1 << 20, 1 << 30  # of a request
CHUNK = 1 << 20
GRACE = 10.0  # seconds that an answer may take longer than the request waits for its keys
POLL = 0.05
INIT = "init/"  # counts the processes that have connected
GIVEN, LATE, REFUSED = b"given", b"late", b"refused"


def _receive(connection: socket.socket, size: int) -> bytes:
    """So many bytes; memory is taken as they come, whatever the other side announces."""
    parts, missing = [], size
    while missing:
        part = connection.recv(min(missing, CHUNK))
        if not part:
            raise ConnectionError("the connection was closed")
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def _receive_fields(connection: socket.socket) -> list[bytes]:
    """Fields that the other side has packed."""
    number = lambda: int.from_bytes(_receive(connection, LENGTH), "little")
    count, left = number(), MOST_BYTES
    if count > MOST_FIELDS:
        raise ConnectionError(f"{count} fields are too many")
    fields = []
    for _ in range(count):
        size = number()
        if size > left:
            raise ConnectionError(f"{size} bytes are too many")
        left -= size
        fields.append(_receive(connection, size))
    return fields


class _Server:
    """Answers requests on the table of a HashStore, each connection in a thread."""

    def __init__(self, listener: socket.socket):
        self.listener, self.table = listener, HashStore()
        self.stores = 0  # that use it
        self.connections: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        threading.Thread(target=self._accept, name="tenfold store", daemon=True).start()

    @property
    def port(self) -> int:
        return self.listener.getsockname()[1]

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                self.connections.add(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError, ValueError, OverflowError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while True:
                connection.sendall(packed(self._answer(_receive_fields(connection))))

    def _answer(self, request: list[bytes]) -> list[bytes]:
        if len(request) < 2 or len(request[0]) > 2 * LENGTH:
            raise ConnectionError("this is no request")
        timeout = timedelta(milliseconds=int(request[0]))
        try:
            return [GIVEN, *self.table._request(request[1].decode(), request[2:], timeout)]
        except DistStoreError:
            return [LATE]
        except TenfoldError as error:
            return [REFUSED, error.message.encode()]

    def serve(self, store: TCPStore) -> None:
        """Stay open for a store, as for others that share the server."""
        self.stores += 1
        weakref.finalize(store, self._leave)

    def _leave(self) -> None:
        self.stores -= 1
        if self.stores == 0:
            self.close()

    def close(self) -> None:
        for each in (self.listener, *self.connections):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


_servers: weakref.WeakValueDictionary[tuple[str, int], _Server] = weakref.WeakValueDictionary()


def _listen(host: str, port: int, listen_fd: int | None) -> _Server:
    """A server at the address that it is told, and at no other."""
    try:
        if listen_fd is not None:
            return _Server(socket.socket(fileno=listen_fd))
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return _Server(socket.create_server((host, port), family=family, backlog=1024))
    except (OSError, OverflowError) as error:
        raise DistNetworkError(
            f"the store cannot listen at {host}:{port}: {getattr(error, 'strerror', None) or error}",
            help="choose another port, or 0 for one that is free",
        ) from None


class TCPStore(Store):
    """A store that the process with `is_master=True` hosts, at a host and port that all processes name; port
    0 chooses a free one. If `world_size` is given, the master waits until that number of stores have
    connected."""

    @located
    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = DEFAULT_TIMEOUT,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ):
        super().__init__()
        self.set_timeout(timeout)
        if not isinstance(host_name, str) or isinstance(port, bool) or not isinstance(port, int):
            raise ArgumentError("TCPStore takes a host's name and a port's number")
        self.host, self._world_size, self._lock = host_name, world_size, threading.Lock()
        self._server: _Server | None = None
        if is_master:
            self._server = _servers.get((host_name, port)) if multi_tenant else None
            if self._server is None:
                self._server = _listen(host_name, port, master_listen_fd)
                _servers[host_name, self._server.port] = self._server
            self._server.serve(self)
            port = self._server.port
        self.port = port
        self._connection: socket.socket | None = self._connected()
        if wait_for_workers and world_size is not None and world_size > 0:
            self._count_in(world_size, is_master)

    def _connected(self) -> socket.socket:
        seconds = self._timeout.total_seconds()
        end = time.monotonic() + seconds
        while True:
            try:
                connection = socket.create_connection((self.host, self.port), timeout=max(seconds, POLL))
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                weakref.finalize(self, connection.close)
                return connection
            except (OSError, OverflowError) as error:
                if time.monotonic() > end:
                    raise DistNetworkError(
                        f"the client socket has timed out after {round(seconds * 1000)}ms while trying to "
                        f"connect to ({self.host}, {self.port}): {error}",
                        help="start the process with is_master=True, at the same host and port",
                    ) from None
                time.sleep(POLL)

    def _count_in(self, world_size: int, is_master: bool) -> None:
        """Tell the master that this process is there; the master waits for all."""
        joined = self.add(INIT, 1)
        end = time.monotonic() + self._timeout.total_seconds()
        while is_master and joined < world_size:
            if time.monotonic() > end:
                raise DistStoreError(
                    f"timed out after {self._timeout.total_seconds():g} seconds waiting for clients. "
                    f"{joined}/{world_size} clients joined",
                    help="start the others, or give wait_for_workers=False",
                )
            time.sleep(POLL)
            joined = self.add(INIT, 0)

    def _request(self, name: str, fields: Fields, timeout: timedelta) -> list[bytes]:
        seconds = max(timeout.total_seconds(), 0.0)
        try:
            with self._lock:
                milliseconds = str(round(seconds * 1000)).encode()
                verdict, *reply = self._exchange([milliseconds, name.encode(), *fields], seconds + GRACE)
        except (OSError, ValueError) as error:
            raise DistNetworkError(
                f"{name}: the store at {self.host}:{self.port} does not answer: {error}",
                help="see that the process which keeps it still runs",
            ) from None
        if verdict == LATE:
            raise too_late(name, fields, timeout)
        if verdict == REFUSED:
            raise ArgumentError(reply[0].decode())
        return reply

    def _exchange(self, request: list[bytes], seconds: float) -> list[bytes]:
        """The answer to a request. Where none comes, or an interrupt stops the wait, the next request has a
        connection of its own: an answer that comes later would be taken for another's."""
        connection, self._connection = self._connection or self._connected(), None
        try:
            connection.settimeout(seconds)
            connection.sendall(packed(request))
            answer = _receive_fields(connection)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return answer

    @property
    def own_host(self) -> str:
        """The address by which this process reaches the store."""
        with self._lock:
            if self._connection is None:
                self._connection = self._connected()
            return self._connection.getsockname()[0]

    @property
    def libuvBackend(self) -> bool:
        """False: Python's sockets carry the store."""
        return False

    def clone(self) -> Store:
        return TCPStore(self.host, self.port, self._world_size, False, self._timeout, wait_for_workers=False)

    def __repr__(self) -> str:
        kept: Any = "here" if self._server else "elsewhere"
        return f"TCPStore({self.host}:{self.port}, kept {kept})"
