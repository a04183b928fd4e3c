"""The command that installs an extra, from where the package came from."""

import json
from importlib import metadata
from types import SimpleNamespace

import pytest

from tenfold.base.package import install_command


@pytest.fixture
def installed_from(monkeypatch):
    def install(direct):
        text = None if direct is None else json.dumps(direct)
        distribution = SimpleNamespace(read_text=lambda name: text)
        monkeypatch.setattr(metadata, "distribution", lambda name: distribution)

    return install


def test_an_extra_is_installed_from_the_folder_that_the_package_came_from(tmp_path, installed_from):
    folder = tmp_path / "a clone"
    folder.mkdir()
    (folder / "pyproject.toml").touch()
    installed_from({"url": folder.as_uri(), "dir_info": {}})
    assert install_command("iree") == f"pip install '{folder}[iree]'"
    installed_from({"url": folder.as_uri(), "dir_info": {"editable": True}})
    assert install_command("iree") == f"pip install -e '{folder}[iree]'"


def test_an_extra_is_installed_by_name_without_such_a_folder(tmp_path, installed_from):
    gone = {"url": (tmp_path / "gone").as_uri(), "dir_info": {}}
    archive = {"url": "https://example.org/tenfold.whl", "archive_info": {}}
    for direct in (None, gone, archive):
        installed_from(direct)
        assert install_command("iree") == "pip install 'tenfold[iree]'"


def test_a_checkout_that_is_not_installed_names_the_package(monkeypatch):
    def absent(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", absent)
    assert install_command("demo") == "pip install 'tenfold[demo]'"
