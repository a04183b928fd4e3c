"""The process where the others meet, and in which PJRT's coordination service runs.

    python -m tenfold.engines.coordinator HOST:PORT WORLD SECONDS PARENT

It is not one of those that compute: it outlives them, because the runtime ends a process whose coordination
service is gone, or whose peers do not come in time, where it should raise an error. So processes meet here
first. Each connects to HOST:PORT, says its rank and version in a line, and keeps the connection. When all are
there they are told the port of the coordination service; or, when the time is over, who is missing. Whoever
says anything else is turned away. The coordinator ends when all connections are closed, or when rank 0, whose
process id is PARENT, is gone before all have met.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import sys
import time

from tenfold.engines import xla

NEVER = 10 * 365 * 24 * 3600  # seconds; processes watch each other themselves


LONGEST = 200  # bytes of the line that a process says
POLL = 0.25


def main(address: str, world: int, seconds: float, parent: int) -> None:
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, int(port)), family=family)
    except OSError as error:
        print(error.strerror, flush=True)
        return
    print("ready", flush=True)
    connections = _Meeting(listener, world, parent).wait(seconds)
    if connections is None:
        return
    with socket.create_server((host, 0), family=family) as probe:
        port = str(probe.getsockname()[1])
    service = xla.jaxlib()._jax.get_distributed_runtime_service(
        f"{address.rpartition(':')[0]}:{port}", world, heartbeat_timeout=NEVER, shutdown_timeout=1
    )
    _tell(connections, f"go {port}")
    while connections:
        readable, _, _ = select.select(connections, [], [])
        for connection in readable:
            with contextlib.suppress(OSError):
                if connection.recv(1):
                    continue
            connections.remove(connection)
    del service


class _Meeting:
    """Processes that come, say who they are, and wait for the others. Nobody waits for one that is silent."""

    def __init__(self, listener: socket.socket, world: int, parent: int):
        self.listener, self.world, self.parent = listener, world, parent
        self.said: dict[socket.socket, bytes] = {}  # what others have said so far
        self.found: dict[int, tuple[socket.socket, str]] = {}  # connections and versions by rank

    def wait(self, seconds: float) -> list[socket.socket] | None:
        """The connections of all processes; None if they do not get together, of which they are told."""
        end = time.monotonic() + seconds
        self.listener.setblocking(False)
        while len(self.found) < self.world:
            known = [connection for connection, _ in self.found.values()]
            readable = select.select([self.listener, *self.said, *known], [], [], POLL)[0]
            for connection in readable:
                if connection is self.listener:
                    self._accept()
                elif connection in self.said:
                    self._hear(connection)
                elif self._leaves(connection):
                    return None
            if os.getppid() != self.parent:
                self._tell_all("left 0")
                return None
            if time.monotonic() > end and len(self.found) < self.world:
                missing = [str(rank) for rank in range(self.world) if rank not in self.found]
                self._tell_all(f"missing {','.join(missing)}")
                return None
        return self._agreed()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            connection = self.listener.accept()[0]
            connection.setblocking(False)
            self.said[connection] = b""

    def _hear(self, connection: socket.socket) -> None:
        """Take what one says who has not said its rank yet."""
        try:
            heard = connection.recv(LONGEST)
        except OSError:
            heard = b""
        line = self.said[connection] + heard
        if heard and b"\n" not in line and len(line) < LONGEST:
            self.said[connection] = line
            return
        del self.said[connection]
        rank, _, version = line.decode(errors="replace").strip().partition(" ")
        if not heard or not (rank.isascii() and rank.isdecimal()) or not version:
            connection.close()
        elif int(rank) >= self.world:
            self._turn_away(connection, f"outside {int(rank)} {self.world}")
        elif int(rank) in self.found:
            self._turn_away(connection, f"taken {int(rank)}")
        else:
            self.found[int(rank)] = connection, version

    def _turn_away(self, connection: socket.socket, line: str) -> None:
        _tell([connection], line)
        connection.close()

    def _leaves(self, connection: socket.socket) -> bool:
        """One that waits is gone, and may come again; but if it is rank 0, this is over."""
        with contextlib.suppress(OSError):
            if connection.recv(1):
                return False
        rank = next(rank for rank, (known, _) in self.found.items() if known is connection)
        del self.found[rank]
        connection.close()
        if rank == 0:
            self._tell_all("left 0")
        return rank == 0

    def _agreed(self) -> list[socket.socket] | None:
        versions = {version: rank for rank, (_, version) in self.found.items()}
        if len(versions) > 1:
            (one, first), (other, second) = list(versions.items())[:2]
            self._tell_all(f"version rank {first} runs Tenfold {one}, and rank {second} runs {other}")
            return None
        for stranger in self.said:
            stranger.close()
        connections = [connection for connection, _ in self.found.values()]
        for connection in connections:
            connection.setblocking(True)
        return connections

    def _tell_all(self, line: str) -> None:
        _tell([connection for connection, _ in self.found.values()], line)


def _tell(connections: list[socket.socket], line: str) -> None:
    for connection in connections:
        with contextlib.suppress(OSError):
            connection.sendall(line.encode() + b"\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]))
