"""How processes agree on what they run together: before a program exchanges data, each tells the others its
digest, and a program that differs is an error which names both."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tenfold.base.errors import DistributedError

if TYPE_CHECKING:
    from tenfold.engines.processes import Connection


class Program:
    """A program as processes compare it: on which devices it runs, of which other ranks, and what it is.
    `always` says whether they compare it before every run: gloo ends a process that receives anything else
    than it expects."""

    __slots__ = ("always", "devices", "digest", "is_new", "ranks", "text")

    def __init__(self, devices: tuple[int, ...], ranks: list[int], digest: str, text: str, always: bool):
        self.devices, self.ranks, self.digest, self.text = devices, ranks, digest, text
        self.always, self.is_new = always, True


BLOCK = 64  # runs whose digests the coordination service forgets together


class Turn:
    """One run of a program by several processes, as they agree on it. Each tells the others the digest of
    what it runs next on these devices."""

    def __init__(self, connection: Connection, program: Program, number: int):
        self.connection, self.program, self.number = connection, program, number
        self.mesh = "-".join(map(str, program.devices))
        self.is_told = self.is_waiting = False

    def key(self, rank: int, number: int) -> str:
        return f"run/{self.mesh}/{rank}/{number // BLOCK}/{number}"

    def tell(self) -> None:
        connection, rank = self.connection, self.connection.rank
        if not self.is_told:
            connection.set(self.key(rank, self.number), self.program.digest)
            self.is_told = True
        if self.number % BLOCK == 0 and self.number >= 2 * BLOCK:
            # Whoever has come to this block has read all of the one before the last.
            connection.forget(f"run/{self.mesh}/{rank}/{self.number // BLOCK - 2}")

    def agree(self) -> None:
        """Wait until all processes have told what they run; raise if one runs another program."""
        self.tell()
        for rank in self.program.ranks:
            theirs = self.connection.soon(self.key(rank, self.number))
            if theirs is None:
                return  # the thread that waits for this one raises
            self.compare(rank, theirs)

    def look(self) -> list[int]:
        """While this process waits: raise if another runs another program, or waits for this one to run
        another; gives the ranks that are not there yet."""
        connection, missing = self.connection, []
        self.tell()
        for rank in self.program.ranks:
            theirs = connection.known(self.key(rank, self.number))
            if theirs is None:
                missing.append(rank)
            else:
                self.compare(rank, theirs)
        if missing and not self.is_waiting:
            waits = [self.program.devices, self.program.ranks, self.number, self.program.digest]
            connection.set(f"waits/{connection.rank}", json.dumps(waits))
            self.is_waiting = True
        for rank in missing:
            self.compare_wait(rank)
        return missing

    def compare(self, rank: int, digest: str) -> None:
        if digest != self.program.digest:
            self.connection.differ(rank, self.program.text, digest)

    def compare_wait(self, rank: int) -> None:
        """Raise if a process waits for this one on other devices: neither would come to the other's run."""
        connection = self.connection
        waits = connection.known(f"waits/{rank}")
        if waits is not None:
            devices, ranks, number, digest = json.loads(waits)
            if connection.rank in ranks and connection.has_run(tuple(devices)) < number:
                connection.differ(rank, self.program.text, digest)
        if connection.known(f"beat/{rank}") == "bye":
            raise DistributedError(
                f"rank {rank} has left the process group, and rank {connection.rank} waits for it",
                help="let every process take the same steps before destroy_process_group",
            )
