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


def test_values_of_an_option_are_completed(offered):
    assert offered("show", "--stage", "fl") == ["flat"]
    assert "trace" in offered("show", "--stage", "") and "torch" in offered("build", "--dialect", "")


def test_files_are_left_to_bash_where_no_word_fits(offered):
    assert offered("explain", "") == []


DRIVE_ZSH = """
compdef() {{ : }}
_describe() {{ print -rl -- "${{(P@)@[-1]}}" }}
_files() {{ print FILES }}
source {script}
words=({words}) CURRENT=${{#words}}
_tenfold
"""


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["ex"], "explain:Write a page"),
        (["explain", "file.py", "--"], "--function:explain only this function"),
        (["capi", ""], "flags:Print the flags"),
        (["capi", "install", "--"], "--prefix"),
        (["show", "--stage", ""], "stablehlo"),
        (["explain", ""], "FILES"),
    ],
)
def test_zsh_is_offered_what_follows(words, wanted, tmp_path, capsys):
    if not shutil.which("zsh"):
        pytest.skip("needs zsh")
    assert cli.main(["completion", "zsh"]) == 0
    script = tmp_path / "tenfold.zsh"
    script.write_text(capsys.readouterr().out)
    quoted = " ".join(f"'{word}'" for word in ("tenfold", *words))
    program = DRIVE_ZSH.format(script=script, words=quoted)
    done = subprocess.run(["zsh", "-f", "-c", program], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    lines = done.stdout.splitlines()
    assert any(line.startswith(wanted) for line in lines), lines
    assert len(set(lines)) == len(lines)


@pytest.mark.parametrize(
    ("line", "wanted", "unwanted"),
    [
        ("tenfold ex", "explain", "show"),
        ("tenfold explain --f", "--function", "--stage"),
        ("tenfold capi build --", "--sanitize", "--dialect"),
        ("tenfold capi ", "flags", "explain"),
        ("tenfold build --", "--dialect", "--sanitize"),
        ("tenfold show --stage ", "stablehlo", "--lines"),
    ],
)
def test_fish_is_offered_what_follows(line, wanted, unwanted, tmp_path, capsys):
    if not shutil.which("fish"):
        pytest.skip("needs fish")
    assert cli.main(["completion", "fish"]) == 0
    script = tmp_path / "tenfold.fish"
    script.write_text(capsys.readouterr().out)
    command = f"source {script}; complete -C '{line}'"
    done = subprocess.run(["fish", "--no-config", "-c", command], capture_output=True, text=True)
    offered = {each.split("\t")[0] for each in done.stdout.splitlines()}
    assert wanted in offered and unwanted not in offered, done.stdout + done.stderr


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_every_shell_can_read_its_script(shell, tmp_path, capsys):
    assert cli.main(["completion", shell]) == 0
    text = capsys.readouterr().out
    assert "explain" in text and completion.INSTALL[shell] in text
    if shutil.which(shell):
        path = tmp_path / "script"
        path.write_text(text)
        done = subprocess.run([shell, "-n", str(path)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
