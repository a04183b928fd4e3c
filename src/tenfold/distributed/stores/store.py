"""`Store`: keys and values that processes share, and the stores of one process and of a file."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import time
import weakref
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, BinaryIO

from tenfold.base.errors import ArgumentError, DistStoreError, QueueEmptyError, located
from tenfold.distributed.stores.table import LENGTH, READ_ONLY, Fields, Table, packed

DEFAULT_TIMEOUT = timedelta(minutes=5)
POLL = 0.01


class Store:
    """Keys and values, as bytes, that processes share. A call that needs a key waits for it until the store's
    timeout."""

    def __init__(self) -> None:
        self._timeout = DEFAULT_TIMEOUT

    def _request(self, name: str, fields: Fields, timeout: timedelta) -> list[bytes]:
        """What a request gives, once the keys that it needs are there."""
        raise NotImplementedError

    def _ask(self, name: str, *fields: Any, timeout: timedelta | None = None) -> list[bytes]:
        if timeout is not None and not isinstance(timeout, timedelta):
            raise ArgumentError(f"{name}: a timeout is a timedelta, not a {type(timeout).__name__}")
        chosen = self.timeout if timeout is None else timeout
        return self._request(name, [_bytes(name, field) for field in fields], chosen)

    @property
    def timeout(self) -> timedelta:
        """How long a call waits for a key."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        if not isinstance(timeout, timedelta):
            raise ArgumentError(f"set_timeout takes a timedelta, not a {type(timeout).__name__}")
        self._timeout = timeout

    @located
    def set(self, key: str, value: str | bytes) -> None:
        self._ask("set", _key("set", key), value)

    @located
    def get(self, key: str) -> bytes:
        """The value of a key. It waits for the key."""
        return self._ask("get", _key("get", key))[0]

    @located
    def add(self, key: str, amount: int) -> int:
        """Add to the number under a key, which starts at 0; return the sum."""
        if isinstance(amount, bool) or not isinstance(amount, int):
            raise ArgumentError(f"add takes an integer, not a {type(amount).__name__}")
        return int(self._ask("add", _key("add", key), str(amount))[0])

    @located
    def append(self, key: str, value: str | bytes) -> None:
        """Add bytes at the end of a key's value."""
        self._ask("append", _key("append", key), value)

    @located
    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        """Set a key if it has the expected value, or if it is missing and the expected value is empty; return
        its value afterwards."""
        return self._ask("compare_set", _key("compare_set", key), expected_value, desired_value)[0]

    @located
    def delete_key(self, key: str) -> bool:
        """Remove a key; return whether it existed."""
        return bool(self._ask("delete_key", _key("delete_key", key))[0])

    @located
    def check(self, keys: Sequence[str]) -> bool:
        """Whether all of these keys exist."""
        return bool(self._ask("check", *[_key("check", key) for key in keys])[0])

    @located
    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all of these keys exist."""
        self._ask("wait", *[_key("wait", key) for key in keys], timeout=timeout)

    @located
    def num_keys(self) -> int:
        return int(self._ask("num_keys")[0])

    @located
    def list_keys(self) -> list[str]:
        return [key.decode() for key in self._ask("list_keys")]

    @located
    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        return self._ask("multi_get", *[_key("multi_get", key) for key in keys])

    @located
    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        if len(keys) != len(values):
            raise ArgumentError(f"multi_set: {len(keys)} keys and {len(values)} values")
        pairs = zip(keys, values, strict=True)
        self._ask("multi_set", *[field for key, value in pairs for field in (_key("multi_set", key), value)])

    @located
    def queue_push(self, key: str, value: str | bytes) -> None:
        """Put a value at the end of a queue."""
        self._ask("queue_push", _key("queue_push", key), value)

    @located
    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Take the first value of a queue. If `block` is true, wait for one."""
        try:
            return self._ask("queue_pop", _key("queue_pop", key), timeout=None if block else timedelta(0))[0]
        except DistStoreError:
            if block:
                raise
            raise QueueEmptyError(f"the queue {key!r} is empty") from None

    @located
    def queue_len(self, key: str) -> int:
        return int(self._ask("queue_len", _key("queue_len", key))[0])

    @located
    def barrier(self, key: str, world_size: int, timeout: timedelta | None = None) -> None:
        """Wait until this number of processes have called this with the same key."""
        if self.add(key, 1) >= world_size:
            self.set(f"{key}/last", "1")
        self.wait([f"{key}/last"], timeout)

    def has_extended_api(self) -> bool:
        """Whether the store has `append`, `multi_get` and `multi_set`: it does."""
        return True

    def clone(self) -> Store:
        """Another object for the same keys, for use by another thread while this one waits."""
        return self


def _key(name: str, key: Any) -> str:
    if not isinstance(key, str):
        raise ArgumentError(f"{name}: a key is a string, not a {type(key).__name__}")
    return key


def _bytes(name: str, value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    raise ArgumentError(f"{name}: a value is a string or bytes, not a {type(value).__name__}")


def too_late(name: str, fields: Fields, timeout: timedelta) -> DistStoreError:
    """The error of a request that has waited for its keys in vain."""
    keys = ", ".join([field[:80].decode(errors="replace") for field in fields[:8]])
    return DistStoreError(
        f"{name}: wait timeout after {round(timeout.total_seconds() * 1000)}ms, keys: {keys}",
        help="let another process set the key first, or wait longer with set_timeout",
    )


class HashStore(Store):
    """A store in the memory of this process, for its threads."""

    def __init__(self) -> None:
        super().__init__()
        self._table = Table()
        self._changed = threading.Condition()

    def _request(self, name: str, fields: Fields, timeout: timedelta) -> list[bytes]:
        end = time.monotonic() + timeout.total_seconds()
        with self._changed:
            while (reply := self._table.apply(name.encode(), fields)) is None:
                left = end - time.monotonic()
                if left <= 0:
                    raise too_late(name, fields, timeout)
                self._changed.wait(min(left, threading.TIMEOUT_MAX))
            if name.encode() not in READ_ONLY:
                self._changed.notify_all()
        return reply


class PrefixStore(Store):
    """A view of another store in which keys start with a prefix."""

    def __init__(self, prefix: str, store: Store):
        super().__init__()
        if not isinstance(store, Store):
            raise ArgumentError(f"PrefixStore takes a store, not a {type(store).__name__}")
        self._prefix, self._store = _key("PrefixStore", prefix), store

    @property
    def underlying_store(self) -> Store:
        return self._store

    @property
    def _underlying_non_prefix_store(self) -> Store:
        below = self._store
        return below._underlying_non_prefix_store if isinstance(below, PrefixStore) else below

    @property
    def timeout(self) -> timedelta:
        return self._store.timeout

    def set_timeout(self, timeout: timedelta) -> None:
        self._store.set_timeout(timeout)

    def _request(self, name: str, fields: Fields, timeout: timedelta) -> list[bytes]:
        start = f"{self._prefix}/".encode()
        are_keys = name in ("get", "check", "wait", "multi_get")
        count = 2 if name in ("set", "multi_set") else 1 if are_keys else max(len(fields), 1)
        named = [field if i % count else start + field for i, field in enumerate(fields)]
        reply = self._store._request(name, named, timeout)
        if name == "list_keys":
            return [key.removeprefix(start) for key in reply if key.startswith(start)]
        return reply

    def clone(self) -> Store:
        return PrefixStore(self._prefix, self._store.clone())


class FileStore(Store):
    """A store in a file, to which processes that share a disk append their requests. If `world_size` is
    given, the last of that number of processes removes the file."""

    @located
    def __init__(self, file_name: str, world_size: int = -1):
        super().__init__()
        self.path = os.path.abspath(file_name)
        self._world_size = world_size
        self._table, self._read = Table(), 0  # what requests up to this byte of the file have made
        self._lock = threading.Lock()
        self.add("refcount/", 1)
        self._leave = weakref.finalize(self, _leave_file, self.path, world_size)

    def _request(self, name: str, fields: Fields, timeout: timedelta) -> list[bytes]:
        end = time.monotonic() + timeout.total_seconds()
        while (reply := self._once(name.encode(), fields)) is None:
            if time.monotonic() >= end:
                raise too_late(name, fields, timeout)
            time.sleep(POLL)
        return reply

    def _once(self, name: bytes, fields: Fields) -> list[bytes] | None:
        """What a request gives now, on the requests of all processes so far."""
        with self._lock, _locked(self.path) as file:
            file.seek(self._read)
            log = file.read()
            for request in _requests(log, self.path):
                self._table.apply(request[0], request[1:])
            self._read += len(log)
            reply = self._table.apply(name, fields)
            if name not in READ_ONLY and reply is not None:
                record = packed([name, *fields])
                file.write(record)
                file.flush()
                self._read += len(record)
            return reply

    def clone(self) -> Store:
        return FileStore(self.path, self._world_size)


@contextlib.contextmanager
def _locked(path: str) -> Any:
    """The file of a store, open for this process alone."""
    with open(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file


def _requests(log: bytes, path: str) -> list[list[bytes]]:
    """The requests that a log has, all of them whole."""
    requests, position = [], 0

    def take(size: int) -> bytes:
        nonlocal position
        position += size
        if position > len(log):
            raise DistStoreError(f"{path} is no file of a store", help="remove it, or name another")
        return log[position - size : position]

    while position < len(log):
        count = int.from_bytes(take(LENGTH), "little")
        fields = [take(int.from_bytes(take(LENGTH), "little")) for _ in range(count)]
        requests.append(fields or [b""])
    return requests


def _leave_file(path: str, world_size: int) -> None:
    """Count this process out, and remove the file if all have left it."""
    file: BinaryIO
    with contextlib.suppress(OSError, DistStoreError), _locked(path) as file:
        table = Table()
        for request in _requests(file.read(), path):
            table.apply(request[0], request[1:])
        (left,) = table.apply(b"add", [b"left/", b"1"]) or [b"0"]
        file.write(packed([b"add", b"left/", b"1"]))
        joined = table.values.get(b"refcount/", b"0")
        if int(left) >= max(int(joined), world_size) and world_size > 0:
            os.remove(path)
