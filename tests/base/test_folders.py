"""Folders that hold code: the user's own, and writable by nobody else."""

import os

import pytest

import tenfold as tn
from tenfold.base import folders
from tenfold.capi.locate import require_own
from tenfold.purple import build
from tenfold.purple.errors import PurpleError


def test_a_folder_is_made_for_the_user_alone_with_what_it_lies_in(tmp_path):
    before = os.umask(0)
    try:
        folders.make(str(tmp_path / "a" / "b"))
    finally:
        os.umask(before)
    assert [each.stat().st_mode & 0o777 for each in (tmp_path / "a", tmp_path / "a" / "b")] == [0o700] * 2


def test_a_file_in_the_way_of_a_folder_is_an_error(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(NotADirectoryError):
        folders.make(str(tmp_path / "file" / "folder"))


def test_libraries_are_not_loaded_from_a_folder_that_others_may_write_to(tmp_path):
    tmp_path.chmod(0o755)
    require_own(tmp_path)
    tmp_path.chmod(0o777)
    with pytest.raises(tn.TenfoldError, match="others may write to it(?s:.*)chmod go-w"):
        require_own(tmp_path)


def test_object_files_are_not_kept_in_a_folder_that_others_may_write_to(tmp_path, monkeypatch):
    monkeypatch.setenv("TENFOLD_CACHE_DIR", str(tmp_path))
    tmp_path.chmod(0o777)
    with pytest.raises(PurpleError, match="others may write to it"):
        build.private_folder("objects")
    tmp_path.chmod(0o700)
    assert build.private_folder("objects").is_dir()
