"""`tenfold.hub`: models that a folder's `hubconf.py` describes, and weights in PyTorch's cache of
downloads."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import re
import shutil
import sys
import tempfile
import urllib.request
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlparse

from tenfold.base.errors import ArgumentError, UnsupportedError, located, unknown_name
from tenfold.serialize import load as _load_file

__all__ = [
    "download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir",
]  # fmt: skip

DEFAULT_CACHE_DIR = "~/.cache"
ENV_GITHUB_TOKEN = "GITHUB_TOKEN"
ENV_TORCH_HOME = "TORCH_HOME"
ENV_XDG_CACHE_HOME = "XDG_CACHE_HOME"
MODULE_HUBCONF = "hubconf.py"
READ_DATA_CHUNK = 128 * 1024
VAR_DEPENDENCY = "dependencies"
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
_chosen: dict[str, str] = {}


def _get_torch_home() -> str:
    cache = os.getenv(ENV_XDG_CACHE_HOME, DEFAULT_CACHE_DIR)
    return os.path.expanduser(os.getenv(ENV_TORCH_HOME, os.path.join(cache, "torch")))


def get_dir() -> str:
    """The folder of the cache: what `set_dir` chose, or `hub` in $TORCH_HOME or ~/.cache/torch."""
    return _chosen.get("dir") or os.path.join(_get_torch_home(), "hub")


def set_dir(d: str | os.PathLike[str]) -> None:
    """Choose the folder of the cache."""
    _chosen["dir"] = os.path.expanduser(os.fspath(d))


def _entries(folder: str, source: str) -> ModuleType:
    if source != "local":
        raise UnsupportedError(
            f"{folder!r} would be fetched from {source}, which Tenfold does not do",
            help="clone the repository, and give its folder with source='local'",
        )
    path = Path(folder) / MODULE_HUBCONF
    if not path.is_file():
        raise ArgumentError(f"there is no {path}")
    spec = importlib.util.spec_from_file_location("hubconf", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, os.fspath(folder))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(os.fspath(folder))
    return module


def _entry(folder: str, model: str, source: str) -> Any:
    found = getattr(_entries(folder, source), model, None)
    if not callable(found):
        raise ArgumentError(f"{folder}/hubconf.py has no function {model!r}")
    return found


@located
def list(github: str, force_reload: bool = False, *, source: str = "local", **options: Any) -> Any:
    """The functions that a folder's `hubconf.py` offers."""
    found = _entries(github, source)
    return sorted(name for name, each in vars(found).items() if callable(each) and not name.startswith("_"))


@located
def help(github: str, model: str, *, source: str = "local", **options: Any) -> str | None:
    """The docstring of a function of a folder's `hubconf.py`."""
    return _entry(github, model, source).__doc__


@located
def load(repo_or_dir: str, model: str, *args: Any, source: str = "github", **kwargs: Any) -> Any:
    """Call a function of a folder's `hubconf.py`; a repository on GitHub must be cloned first."""
    for name in ("trust_repo", "force_reload", "verbose", "skip_validation"):
        kwargs.pop(name, None)
    return _entry(repo_or_dir, model, source)(*args, **kwargs)


@located
def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Download an address to a file, completely or not at all."""
    folder = os.path.dirname(os.path.expanduser(dst)) or "."
    digest = hashlib.sha256()
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as part:
        try:
            with urllib.request.urlopen(url) as answer:
                while chunk := answer.read(1 << 20):
                    digest.update(chunk)
                    part.write(chunk)
            part.close()
            if hash_prefix and not digest.hexdigest().startswith(hash_prefix):
                raise ArgumentError(f"{url}: its hash {digest.hexdigest()} does not start with {hash_prefix}")
            shutil.move(part.name, os.path.expanduser(dst))
        finally:
            if os.path.exists(part.name):
                os.remove(part.name)


@located
def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = True,
) -> Any:
    """Load the weights of a file from the cache; download it first if necessary."""
    folder = model_dir or os.path.join(get_dir(), "checkpoints")
    os.makedirs(folder, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        match = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, path, match.group(1) if match else None, progress)
    return _load_file(path, map_location=map_location, weights_only=weights_only)


load_url = load_state_dict_from_url


def __getattr__(name: str) -> Any:
    if name == "tqdm":  # PyTorch hands it on from here
        return importlib.import_module("tqdm").tqdm
    raise unknown_name("tenfold.hub", name, globals())
