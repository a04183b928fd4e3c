"""Completions: what real shells offer after what was typed."""

import shutil
import subprocess

import pytest

from tenfold.command import cli, completion

DRIVE = """
source {script}
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_tenfold
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture
def offered(tmp_path, capsys):
    """What bash offers for the last of some words."""
    assert cli.main(["completion", "bash"]) == 0
    script = tmp_path / "tenfold.bash"
    script.write_text(capsys.readouterr().out)

    def ask(*words: str) -> list[str]:
        quoted = " ".join(f"'{word}'" for word in ("tenfold", *words))
        program = DRIVE.format(script=script, words=quoted)
        done = subprocess.run(["bash", "-c", program], capture_output=True, text=True)
        assert done.returncode == 0 and not done.stderr, done.stderr
        return done.stdout.split()

    return ask


def test_commands_are_completed(offered):
    assert offered("ex") == ["explain"]
    assert {"demo", "run", "show", "explain", "ops"} <= set(offered(""))


def test_options_follow_their_command_whatever_stands_between(offered):
    assert "--function" in offered("explain", "--")
    assert "--output" in offered("explain", "file.py", "--o")
    assert "--stage" in offered("show", "--")
    assert "--stage" not in offered("explain", "--")


def test_commands_inside_of_commands_are_completed(offered):
    assert {"build", "flags", "install"} <= set(offered("capi", ""))
    assert "--prefix" in offered("capi", "install", "--p")


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_every_shell_can_read_its_script(shell, tmp_path, capsys):
    assert cli.main(["completion", shell]) == 0
    text = capsys.readouterr().out
    assert "explain" in text and completion.INSTALL[shell] in text
    if shutil.which(shell) and shell != "zsh":
        path = tmp_path / "script"
        path.write_text(text)
        done = subprocess.run([shell, "-n", str(path)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
