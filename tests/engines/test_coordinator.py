"""The process where others meet: who is let in, and when it ends."""

import os
import socket
import subprocess
import sys
import threading
import time

from tenfold.engines import coordinator


class Meeting:
    """A meeting of processes, which are sockets here."""

    def __init__(self, world=2):
        self.world = world

    def __enter__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.result = []
        meeting = coordinator._Meeting(self.listener, self.world, os.getppid())
        self.thread = threading.Thread(target=lambda: self.result.append(meeting.wait(20)))
        self.thread.start()
        self.sockets = []
        return self

    def comes(self, line=b""):
        made = socket.create_connection(self.listener.getsockname(), timeout=10)
        made.sendall(line)
        self.sockets.append(made)
        return made

    def ends(self):
        self.thread.join(10)
        assert not self.thread.is_alive()
        return self.result[0]

    def __exit__(self, *error):
        for rank in range(self.world):
            if self.thread.is_alive():
                self.comes(b"%d 1\n" % rank)
        self.thread.join(25)
        for each in [*self.sockets, self.listener]:
            each.close()


def test_strangers_and_silent_connections_do_not_disturb_a_meeting():
    with Meeting() as meeting:
        meeting.comes().close()
        meeting.comes()
        for line in (b"\n", b"GET / HTTP/1.1\r\n", b"x" * 1000, b"-1 1\n", b"\xff\xfe\n", b"1\n"):
            meeting.comes(line)
        meeting.comes(b"0 1.0\n")
        half = meeting.comes(b"1 ")
        time.sleep(0.1)
        half.sendall(b"1.0\n")
        assert len(meeting.ends()) == 2


def test_rank_outside_of_the_world_or_taken_is_turned_away():
    with Meeting() as meeting:
        assert meeting.comes(b"2 1.0\n").recv(100) == b"outside 2 2\n"
        meeting.comes(b"0 1.0\n")
        assert meeting.comes(b"0 1.0\n").recv(100) == b"taken 0\n"


def test_processes_of_different_versions_are_told_both():
    with Meeting() as meeting:
        others = [meeting.comes(b"0 1.0\n"), meeting.comes(b"1 2.0\n")]
        answers = {each.recv(100) for each in others}
    assert answers == {b"version rank 0 runs Tenfold 1.0, and rank 1 runs 2.0\n"}


def test_process_that_left_may_come_again():
    with Meeting() as meeting:
        meeting.comes(b"1 1.0\n").close()
        time.sleep(0.3)
        meeting.comes(b"1 1.0\n")
        meeting.comes(b"0 1.0\n")
        assert len(meeting.ends()) == 2


def test_meeting_of_three_ends_when_rank_0_leaves():
    with Meeting(3) as meeting:
        other = meeting.comes(b"1 1.0\n")
        meeting.comes(b"0 1.0\n").close()
        assert other.recv(100) == b"left 0\n"
        assert meeting.ends() is None


def test_coordinator_ends_with_the_process_that_started_it():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    start = (
        "import os, subprocess, sys\n"
        f"made = subprocess.Popen([sys.executable, '-m', 'tenfold.engines.coordinator', '127.0.0.1:{port}', "
        "'2', '60', str(os.getpid())], stdout=subprocess.PIPE)\n"
        "made.stdout.readline()\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", start], check=True, env=environment, timeout=60)
    end = time.monotonic() + 10
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return
        time.sleep(0.1)
    raise AssertionError("the coordinator still listens")
