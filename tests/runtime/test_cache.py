"""The cache on disk: shared by processes, bounded, and ignored with a warning when it is damaged."""

import os
import subprocess
import sys
import time
import warnings

import pytest

import tenfold as tn
from tenfold.base.errors import CacheWarning
from tenfold.runtime import cache
from tenfold.runtime.executables import counting_compiles

PROGRAM = """
import tenfold as tn
from tenfold.runtime.executables import counting_compiles
with counting_compiles() as compiles:
    value = (tn.arange(5.0) * 3 + 1).tanh().sum().item()
print(int(compiles), value)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TENFOLD_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def start() -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen) -> tuple[int, float]:
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    compiles, value = output.split()
    return int(compiles), float(value)


@pytest.mark.usefixtures("on_xla")
def test_a_second_process_compiles_nothing(folder):
    compiles, value = finish(start())
    assert compiles > 0 and list(folder.glob("*.xla"))
    again, same = finish(start())
    assert again == 0 and same == value


@pytest.mark.usefixtures("on_xla")
def test_processes_that_start_together_share_the_folder(folder):
    processes = [start() for _ in range(3)]
    results = [finish(each) for each in processes]
    assert len({value for _, value in results}) == 1
    assert finish(start())[0] == 0
    assert not [each for each in folder.iterdir() if each.suffix != ".xla" and each.name != "secret"]


def test_what_is_stored_comes_back(folder):
    cache.store("name", b"payload")
    assert cache.load("name") == b"payload"
    assert cache.load("other") is None


@pytest.mark.parametrize("damage", [b"", b"rubbish", cache.MAGIC, cache.MAGIC + b"x" * 40])
def test_a_damaged_file_is_ignored_with_a_warning_and_removed(folder, damage):
    cache.store("name", b"payload")
    (folder / "name.xla").write_bytes(damage)
    with pytest.warns(CacheWarning, match="damaged"):
        assert cache.load("name") is None
    assert not (folder / "name.xla").exists()


def test_a_file_cut_short_is_noticed(folder):
    cache.store("name", b"payload" * 100)
    whole = (folder / "name.xla").read_bytes()
    (folder / "name.xla").write_bytes(whole[:-1])
    with pytest.warns(CacheWarning):
        assert cache.load("name") is None


@pytest.mark.usefixtures("on_xla")
def test_a_program_whose_file_is_damaged_is_compiled_again(folder):
    x = tn.ones(11).eval()
    compute = lambda: (x * 1.25 + 3).tolist()
    compute()
    for path in folder.glob("*.xla"):
        path.write_bytes(path.read_bytes()[:-5])
    from tenfold.runtime import executables

    executables._executables.clear()
    with pytest.warns(CacheWarning), counting_compiles() as compiles:
        assert compute() == [4.25] * 11
    assert compiles == 1


@pytest.mark.usefixtures("on_xla")
def test_bytes_that_are_whole_but_no_executable_are_discarded(folder, monkeypatch):
    x = tn.ones(13).eval()
    monkeypatch.setattr(cache, "load", lambda name: b"not an executable")
    with pytest.warns(CacheWarning, match="cannot load"):
        assert (x * 1.125 + 3).tolist() == [4.125] * 13


def test_the_least_recently_used_go_first(folder, monkeypatch):
    monkeypatch.setenv("TENFOLD_CACHE_BYTES", "1200")
    for i, name in enumerate("abcd"):
        cache.store(name, b"x" * 200)
        os.utime(folder / f"{name}.xla", (i, i))
    cache.load("a")  # used just now
    cache.store("e", b"x" * 200)
    left = {each.stem for each in folder.glob("*.xla")}
    assert "a" in left and "e" in left and "b" not in left
    assert sum(each.stat().st_size for each in folder.iterdir()) <= 1200


def test_what_killed_processes_left_unfinished_goes_after_an_hour(folder):
    cache.store("whole", b"payload")
    old, new = folder / "old.xla.999999", folder / "new.xla.999998"
    other = folder / "notes.txt"
    for each in (old, new, other):
        each.write_bytes(b"x" * 1000)
    an_hour_ago = time.time() - 3700
    for each in (old, other, folder / "whole.xla"):
        os.utime(each, (an_hour_ago, an_hour_ago))
    cache.store("next", b"payload")
    assert not old.exists() and new.exists() and other.exists()
    assert cache.load("whole") == cache.load("next") == b"payload"


def test_a_bound_that_is_no_number_is_a_warning(folder, monkeypatch):
    monkeypatch.setenv("TENFOLD_CACHE_BYTES", "plenty")
    with pytest.warns(CacheWarning, match="number of bytes"):
        cache.store("name", b"payload")
    assert cache.load("name") == b"payload"


def test_an_empty_name_switches_it_off(monkeypatch, tmp_path):
    monkeypatch.setenv("TENFOLD_CACHE_DIR", "")
    cache.store("name", b"payload")
    assert cache.folder() is None and cache.load("name") is None


def stored(folder):
    cache.store("name", b"payload")
    return folder / "name.xla"


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_folder_that_others_may_write_to_is_not_used_and_that_is_said_once(folder, mode):
    path = stored(folder)
    folder.chmod(mode)
    with pytest.warns(CacheWarning, match="is not used: others may write to it"):
        assert cache.load("name") is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache.store("other", b"payload")
    assert path.exists() and not (folder / "other.xla").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_folder_or_a_file_of_another_user_is_not_used(folder):
    path = stored(folder)
    os.chown(path, 12345, -1)
    with pytest.warns(CacheWarning, match="belongs to another user"):
        assert cache.load("name") is None
    assert not path.exists()
    os.chown(folder, 12345, -1)
    with pytest.warns(CacheWarning, match="is not used: it belongs to another user"):
        cache.store("name", b"payload")
    assert not path.exists()


def test_files_are_the_users_alone_whatever_the_umask(tmp_path, monkeypatch):
    monkeypatch.setenv("TENFOLD_CACHE_DIR", str(tmp_path / "new" / "cache"))
    before = os.umask(0)
    try:
        cache.store("name", b"payload")
    finally:
        os.umask(before)
    for path in (tmp_path / "new").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0
    assert (tmp_path / "new").stat().st_mode & 0o077 == 0


def test_an_entry_copied_under_another_name_is_not_taken(folder):
    path = stored(folder)
    (folder / "other.xla").write_bytes(path.read_bytes())
    with pytest.warns(CacheWarning, match="did not write it"):
        assert cache.load("other") is None


def test_an_entry_that_was_made_with_another_secret_is_not_taken(folder):
    path = stored(folder)
    planted = path.read_bytes()
    for each in folder.iterdir():
        each.unlink()
    cache.store("other", b"payload")
    path.write_bytes(planted)
    with pytest.warns(CacheWarning, match="did not write it"):
        assert cache.load("name") is None
    (folder / "secret").unlink()
    assert cache.load("other") is None


def test_a_pipe_or_a_link_in_the_place_of_an_entry_is_refused_at_once(folder, tmp_path):
    path = stored(folder)
    whole = path.rename(tmp_path / "elsewhere")
    path.symlink_to(whole)
    with pytest.warns(CacheWarning, match="no regular file"):
        assert cache.load("name") is None
    os.mkfifo(path)
    with pytest.warns(CacheWarning, match="no regular file"):
        assert cache.load("name") is None
    assert not path.exists() and whole.exists()


def test_an_entry_larger_than_the_cache_is_not_read(folder):
    path = stored(folder)
    os.truncate(path, 1 << 40)
    with pytest.warns(CacheWarning, match="larger than the whole cache may be"):
        assert cache.load("name") is None
    assert not path.exists()


def test_nothing_is_written_through_a_link(folder, tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("mine")
    path = stored(folder)
    path.unlink()
    path.symlink_to(precious)
    (folder / f"name.xla.{os.getpid()}").symlink_to(precious)
    cache.store("name", b"payload")
    assert precious.read_text() == "mine" and cache.load("name") == b"payload"


def test_a_group_shares_a_cache_if_the_setting_says_that_it_is_trusted(folder, monkeypatch):
    monkeypatch.setenv("TENFOLD_CACHE_GROUP", "1")
    path = stored(folder)
    folder.chmod(0o770)
    assert cache.load("name") == b"payload"
    assert path.stat().st_mode & 0o777 == 0o640
    if os.geteuid() == 0:
        for each in (folder, path, folder / "secret"):
            os.chown(each, 12345, -1)
        assert cache.load("name") == b"payload"
    folder.chmod(0o777)
    with pytest.warns(CacheWarning, match="others may write"):
        assert cache.load("name") is None


def test_without_a_home_there_is_no_cache_at_the_root(monkeypatch):
    monkeypatch.delenv("TENFOLD_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/")
    assert cache.folder() is None
    monkeypatch.setenv("HOME", "")
    assert cache.folder() != "/.cache/tenfold"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", "/somewhere")
    assert cache.folder() == "/somewhere/.cache/tenfold"


def test_a_folder_that_cannot_be_made_is_a_warning(monkeypatch, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    monkeypatch.setenv("TENFOLD_CACHE_DIR", str(blocked / "cache"))
    with pytest.warns(CacheWarning, match="cannot write(?s:.*)results are unaffected; TENFOLD_CACHE_DIR"):
        cache.store("name", b"payload")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert cache.load("name") is None


@pytest.mark.parametrize("name", ["d" * 300, "circle"])
def test_a_folder_that_no_system_opens_is_no_cache(name, tmp_path, monkeypatch):
    (tmp_path / "circle").symlink_to("circle")
    monkeypatch.setenv("TENFOLD_CACHE_DIR", str(tmp_path / name))
    with pytest.warns(CacheWarning, match="is not used: (File name too long|Too many levels)"):
        assert cache.load("name") is None
    with pytest.warns(CacheWarning, match="cannot write to"):
        cache.store("name", b"payload")


def test_a_folder_that_cannot_be_opened_is_said_once_at_a_load(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("TENFOLD_CACHE_DIR", str(tmp_path / "file"))
    with pytest.warns(CacheWarning, match="is not used: Not a directory"):
        assert cache.load("name") is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cache.load("name") is None
        monkeypatch.setenv("TENFOLD_CACHE_DIR", str(tmp_path / "not there yet"))
        assert cache.load("name") is None
