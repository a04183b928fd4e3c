"""The package's names: its own, and that under which it shows itself, "torch" while it stands in for PyTorch,
as programs compare such words: `str(dtype) == "torch.float32"`. And the command that installs more of it."""

NAME = __name__.partition(".")[0]
shown = "tenfold"


def is_ours(kind: type) -> bool:
    """Whether it is one of this package's classes, or derived from one: those say what they depend on."""
    return any(base.__module__.partition(".")[0] == NAME for base in kind.__mro__)


def install_command(extra: str) -> str:
    """The command that installs an extra of this package: from the folder that the package was installed
    from, if it was and the folder is still there."""
    import json  # these take a while to load, and are needed only if something is missing
    import shlex
    from importlib import metadata
    from pathlib import Path
    from urllib.parse import unquote, urlsplit

    try:
        direct = json.loads(metadata.distribution(NAME).read_text("direct_url.json") or "{}")
    except metadata.PackageNotFoundError:  # a checkout on the path
        direct = {}
    folder = Path(unquote(urlsplit(direct.get("url", "")).path))
    if "dir_info" not in direct or not (folder / "pyproject.toml").is_file():
        return f"pip install '{NAME}[{extra}]'"
    editable = "-e " if direct["dir_info"].get("editable") else ""
    return f"pip install {editable}{shlex.quote(f'{folder}[{extra}]')}"
