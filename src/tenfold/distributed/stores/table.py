"""The keys and values of a store, and the requests that read and change them.

A request is its name and the keys and values that it takes, all of them bytes: a store may keep requests in a
file or send them through a socket, and need not know what they mean.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from tenfold.base.errors import ArgumentError, DistNetworkError

Fields = Sequence[bytes]
LENGTH = 8  # bytes of a length
LONGEST_NUMBER = 24
READ_ONLY = (b"get", b"check", b"wait", b"num_keys", b"list_keys", b"multi_get", b"queue_len")


class Table:
    """Values by key, and queues of values by theirs."""

    def __init__(self) -> None:
        self.values: dict[bytes, bytes] = {}
        self.queues: dict[bytes, deque[bytes]] = {}

    def apply(self, name: bytes, fields: Fields) -> list[bytes] | None:
        """What a request gives; None while it has to wait for a key."""
        match name, fields:
            case b"set" | b"multi_set", _ if len(fields) % 2 == 0:
                self.values.update(zip(fields[::2], fields[1::2]))
                return []
            case b"get" | b"multi_get" | b"wait", _:
                if not all(key in self.values for key in fields):
                    return None
                return [] if name == b"wait" else [self.values[key] for key in fields]
            case b"check", _:
                return [b"1" if all(key in self.values or self.queues.get(key) for key in fields) else b""]
            case b"add", [key, amount]:
                total = _number(self.values.get(key, b"0")) + _number(amount)
                self.values[key] = str(total).encode()
                return [self.values[key]]
            case b"append", [key, value]:
                self.values[key] = self.values.get(key, b"") + value
                return []
            case b"compare_set", [key, expected, desired]:
                return [self._compare_set(key, expected, desired)]
            case b"delete_key", [key]:
                return [b"1" if self.values.pop(key, None) is not None else b""]
            case b"num_keys", []:
                return [str(len(self.values)).encode()]
            case b"list_keys", []:
                return list(self.values)
            case b"queue_push", [key, value]:
                self.queues.setdefault(key, deque()).append(value)
                return []
            case b"queue_pop", [key]:
                return [self.queues[key].popleft()] if self.queues.get(key) else None
            case b"queue_len", [key]:
                return [str(len(self.queues.get(key, ()))).encode()]
        raise DistNetworkError(f"a store has no request {name[:20]!r} of {len(fields)} fields")

    def _compare_set(self, key: bytes, expected: bytes, desired: bytes) -> bytes:
        current = self.values.get(key)
        if current == expected or (current is None and not expected):
            self.values[key] = desired
            return desired
        return expected if current is None else current


def _number(value: bytes) -> int:
    try:
        number = int(value[:LONGEST_NUMBER])
    except ValueError:
        number = 1 << 63
    if len(value) > LONGEST_NUMBER or not -(1 << 63) <= number < 1 << 63:
        raise ArgumentError(f"add: the value {value[:20]!r} is no integer of 64 bits")
    return number


def packed(fields: Iterable[bytes]) -> bytes:
    """Fields one after the other, each behind its length, behind their number."""
    listed = list(fields)
    parts = [len(listed).to_bytes(LENGTH, "little")]
    for field in listed:
        parts += [len(field).to_bytes(LENGTH, "little"), field]
    return b"".join(parts)
