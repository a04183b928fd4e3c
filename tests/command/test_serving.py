"""The served page: it follows the file, and answers its own pages alone."""

import http.client
import threading

import pytest

from tenfold.base.errors import ArgumentError
from tenfold.command import cli
from tenfold.command.serving import Server, Watched


class Quick(Watched):
    """Makes its page without running anything."""

    def _made(self):
        return f"page of {open(self.path).read()}".encode()


@pytest.fixture
def server(tmp_path):
    path = tmp_path / "program.py"
    path.write_text("one")
    watched = Quick(str(path))
    watched.refresh()
    with Server(watched) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def ask(server, path="/", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_the_page_is_served_and_followed(server, tmp_path):
    assert ask(server) == (200, "page of one")
    assert ask(server, "/version") == (200, "1")
    assert not server.watched.refresh()
    path = tmp_path / "program.py"
    path.write_text("two")
    server.watched._seen = frozenset()
    assert server.watched.refresh()
    assert ask(server) == (200, "page of two")
    assert ask(server, "/version") == (200, "2")


def test_a_program_that_never_ends_is_given_up_when_its_file_changes(tmp_path):
    path = tmp_path / "program.py"
    path.write_text("while True:\n    pass\n")
    watched = Watched(str(path))
    made = []
    thread = threading.Thread(target=lambda: made.append(watched.refresh()))
    thread.start()
    thread.join(1)
    assert thread.is_alive()
    path.write_text("raise SystemExit('the next one')\n")
    thread.join(60)
    assert made == [False] and watched.page == b""
    assert watched.refresh() and b"the next one" in watched.page


def test_it_listens_on_the_loopback_address_alone(server):
    assert server.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:80"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_other_hosts_and_origins_are_refused(server, headers):
    assert ask(server, **headers)[0] == 403
    assert ask(server, "/version", **headers)[0] == 403


def test_its_own_origin_is_answered(server):
    own = f"http://127.0.0.1:{server.server_port}"
    assert ask(server, "/version", **{"Origin": own, "Sec-Fetch-Site": "same-origin"})[0] == 200


def test_other_paths_are_not_there(server):
    assert ask(server, "/../../etc/passwd")[0] == 404


def test_a_file_that_fails_shows_its_error_as_text(tmp_path):
    path = tmp_path / "wrong.py"
    path.write_text("raise ValueError('<b>')\n")
    watched = Watched(str(path))
    watched.refresh()
    page = watched.page.decode()
    assert "ValueError" in page and "&lt;b&gt;" in page and "<b>" not in page
    assert 'rel="icon"' in page  # the browser would ask the server for one, which has none


def test_a_change_beside_the_file_makes_the_page_anew(server, tmp_path):
    (tmp_path / "notes.txt").write_text("not watched")
    assert not server.watched.refresh()
    (tmp_path / "model.py").write_text("imported")
    assert server.watched.refresh() and not server.watched.refresh()


def test_a_port_that_is_taken_is_an_error_of_the_users(server):
    with pytest.raises(ArgumentError, match=f"port {server.server_port} cannot be used: .*in use"):
        Server(server.watched, server.server_port)


def test_a_file_that_is_not_there_is_not_served(tmp_path, capsys):
    assert cli.main(["explain", str(tmp_path / "none.py"), "--serve"]) == 1
    assert "there is no file" in capsys.readouterr().err
