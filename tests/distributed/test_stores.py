"""Stores beside PyTorch's: the same calls give the same values, and errors of the same kinds."""

import contextlib
import socket
import threading
from datetime import timedelta

import pytest
import torch.distributed as theirs

import tenfold.distributed as ours
from tenfold.distributed.stores import tcp_store

SOON = timedelta(milliseconds=50)
STORES = ["HashStore", "FileStore", "TCPStore", "PrefixStore"]


def store_of(library, kind, folder):
    if kind == "FileStore":
        return library.FileStore(str(folder / library.__name__), 1)
    if kind == "TCPStore":
        return library.TCPStore("127.0.0.1", 0, 1, True, timeout=timedelta(seconds=5))
    store = library.HashStore()
    return (
        library.PrefixStore("inner", library.PrefixStore("outer", store)) if kind == "PrefixStore" else store
    )


CALLS = [
    ("set", "a", "1"),
    ("get", "a"),
    ("set", "bytes", b"\x00\xff"),
    ("get", "bytes"),
    ("add", "count", 3),
    ("add", "count", -5),
    ("get", "count"),
    ("add", "a", 1),
    ("compare_set", "a", "2", "9"),
    ("compare_set", "a", "5", "7"),
    ("compare_set", "new", "", "value"),
    ("compare_set", "absent", "expected", "value"),
    ("check", ["a", "new"]),
    ("check", ["a", "absent"]),
    ("wait", ["a", "count"]),
    ("wait", ["a", "absent"], SOON),
    ("num_keys",),
    ("append", "a", "0"),
    ("append", "fresh", "x"),
    ("multi_get", ["a", "fresh"]),
    ("multi_set", ["k", "l"], ["v", "w"]),
    ("multi_get", ["l", "k"]),
    ("delete_key", "k"),
    ("check", ["k"]),
    ("get", "k"),
    ("set", 1, "a number is no key"),
    ("set", "", "an empty key is one"),
    ("get", ""),
]
QUEUES = [
    ("queue_push", "q", "1"),
    ("queue_push", "q", "2"),
    ("queue_len", "q"),
    ("queue_pop", "q"),
    ("queue_pop", "q", False),
    ("queue_pop", "q", False),
]


def outcome(library, store, name, *arguments):
    try:
        return getattr(store, name)(*arguments)
    except TypeError:
        return "TypeError"
    except library.DistError as error:
        return "QueueEmptyError" if isinstance(error, library.QueueEmptyError) else "RuntimeError"
    except RuntimeError:
        return "RuntimeError"


@pytest.mark.parametrize("kind", STORES)
def test_calls_give_what_those_of_pytorch_give(kind, tmp_path):
    pair = [(library, store_of(library, kind, tmp_path)) for library in (ours, theirs)]
    for _, store in pair:
        store.set_timeout(SOON)
    for call in CALLS + (QUEUES if kind != "FileStore" else []):
        mine, expected = (outcome(library, store, *call) for library, store in pair)
        assert mine == expected, call
    mine, expected = (sorted(store.list_keys()) for _, store in pair)
    assert kind == "FileStore" or set(expected) <= set(mine)


@pytest.mark.parametrize("kind", STORES)
def test_number_is_added_to_a_number_only(kind, tmp_path):
    store = store_of(ours, kind, tmp_path)
    for text in ("abc", "9" * 5000, str(2**63 - 1)):
        store.set("a", text)
        with pytest.raises(ValueError, match="is no integer of 64 bits"):
            store.add("a", 1 if text != str(2**63 - 1) else 2**63)
    assert store.add("b", 2) == 2


def test_clients_share_a_store_and_wait_for_each_other():
    master = ours.TCPStore("127.0.0.1", 0, 3, True, wait_for_workers=False)
    clients = [ours.TCPStore("127.0.0.1", master.port, 3) for _ in range(2)]
    received = []
    waiting = threading.Thread(target=lambda: received.append(clients[0].get("late")))
    waiting.start()
    clients[1].set("late", "value")
    waiting.join(10)
    assert received == [b"value"] and master.get("late") == b"value"
    adders = [threading.Thread(target=lambda s=s: [s.add("n", 1) for _ in range(50)]) for s in clients]
    for each in adders:
        each.start()
    for each in adders:
        each.join()
    assert master.add("n", 0) == 100


def test_hostile_request_closes_its_connection_alone():
    store = ours.TCPStore("127.0.0.1", 0, is_master=True)
    too_many = b"\xff" * 16
    no_request = (2).to_bytes(8, "little") + (1).to_bytes(8, "little") + b"x" + (0).to_bytes(8, "little")
    for line in (b"GET / HTTP/1.1\r\n\r\n", too_many, no_request):
        with socket.create_connection(("127.0.0.1", store.port), timeout=10) as connection:
            connection.sendall(line)
            with contextlib.suppress(ConnectionResetError):
                assert connection.recv(1) == b""
    store.set("a", "1")
    assert store.get("a") == b"1"


def test_store_that_is_gone_is_an_error():
    master = ours.TCPStore("127.0.0.1", 0, is_master=True)
    client = ours.TCPStore("127.0.0.1", master.port)
    with pytest.raises(ours.DistNetworkError, match="cannot listen"):
        ours.TCPStore("127.0.0.1", master.port, is_master=True)
    assert ours.TCPStore("127.0.0.1", master.port, is_master=True, multi_tenant=True).num_keys() == 0
    master._server.close()
    with pytest.raises(ours.DistNetworkError, match="does not answer"):
        client.get("a")
    with pytest.raises(ours.DistNetworkError, match="timed out after 50ms"):
        ours.TCPStore("127.0.0.1", master.port, timeout=SOON)
    with pytest.raises(ours.DistStoreError, match="1/2 clients joined"):
        ours.TCPStore("127.0.0.1", 0, 2, True, timeout=SOON)


def test_processes_that_share_a_file_see_one_store_and_remove_it(tmp_path):
    path = tmp_path / "store"
    first, second = ours.FileStore(str(path), 2), ours.FileStore(str(path), 2)
    first.set("a", "1")
    assert second.get("a") == b"1" and second.add("a", 4) == 5 and first.get("a") == b"5"
    del first
    assert path.exists()
    del second
    assert not path.exists()


@pytest.mark.parametrize("contents", [b"text", b"\xff" * 64, b"\0" * 8])
def test_file_of_another_kind_is_an_error(contents, tmp_path):
    path = tmp_path / "store"
    path.write_bytes(contents)
    with pytest.raises(ours.DistError):
        ours.FileStore(str(path), 1)


def test_an_interrupted_wait_leaves_no_answer_for_the_next_request(monkeypatch):
    store = ours.TCPStore("127.0.0.1", 0, 1, True, timeout=timedelta(seconds=5))
    other = store.clone()
    receive, caller = tcp_store._receive_fields, threading.current_thread()

    def interrupted(connection):
        if threading.current_thread() is not caller:  # one that serves
            return receive(connection)
        monkeypatch.setattr(tcp_store, "_receive_fields", receive)
        raise KeyboardInterrupt

    monkeypatch.setattr(tcp_store, "_receive_fields", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store._request("get", [b"a"], timedelta(seconds=5))
    other.set("a", "first")
    other.set("b", "second")
    assert store.get("b") == b"second" and store.own_host == "127.0.0.1"


def test_a_shared_server_stays_while_a_store_uses_it():
    first = ours.TCPStore("127.0.0.1", 0, 1, True, multi_tenant=True)
    second = ours.TCPStore("127.0.0.1", first.port, 1, True, multi_tenant=True)
    server = first._server
    first.set("k", "v")
    del first
    assert second.get("k") == b"v"
    del second
    assert server.stores == 0 and server.listener.fileno() == -1
