"""Which messages posted receives take."""

import pytest

from tenfold.distributed import messages
from tenfold.distributed.group import ProcessGroup


class Service:
    """A connection whose coordination service is a dictionary."""

    failure = ""

    def __init__(self):
        self.exchanged, self.posted, self.contents = {}, {}, {}

    def left(self, key):
        return self.contents.get(key)

    def take(self, key, rank):
        return self.contents[key]

    def forget(self, key):
        del self.contents[key]

    def watched(self, run):
        return run()


@pytest.fixture
def service(monkeypatch):
    service = Service()
    monkeypatch.setattr(messages, "_connection", lambda: service)
    monkeypatch.setattr(messages, "get_rank", lambda: 0)
    return service


def test_receive_from_any_process_keeps_its_place_before_later_receives(service):
    group = ProcessGroup([0, 1, 2], "three")
    of_any, of_second = messages.post(None, group, 0), messages.post(2, group, 0)
    service.contents = {"message/three/2/0/0/1": b"first", "message/three/2/0/0/2": b"second"}
    assert messages.receive(of_second) == (b"second", 2)
    assert messages.receive(of_any) == (b"first", 2)


def test_receives_of_different_processes_do_not_wait_for_each_other(service):
    group = ProcessGroup([0, 1, 2], "three")
    _, of_second = messages.post(1, group, 0), messages.post(2, group, 0)
    service.contents = {"message/three/2/0/0/1": b"second"}
    assert messages.receive(of_second) == (b"second", 2)
