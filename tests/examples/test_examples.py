"""The example scripts run, say how to be run, and learn; here at sizes that take seconds."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).parent.parent.parent / "examples" / "python").glob("*.py"))


@pytest.fixture
def run(monkeypatch):
    """Runs an example's main in this process, so that engines load once; gives the figure it ends with."""

    def run_main(name: str, *arguments: str) -> float:
        (path,) = [each for each in SCRIPTS if each.stem == name]
        specification = importlib.util.spec_from_file_location(f"example_{name}", path)
        module = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(module)
        monkeypatch.setattr(sys, "argv", [str(path), *arguments])
        return module.main()

    return run_main


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_every_example_has_help_with_an_example(path, run, capsys):
    with pytest.raises(SystemExit) as stopped:
        run(path.stem, "--help")
    assert stopped.value.code == 0
    assert f"example: python examples/python/{path.name} --" in " ".join(capsys.readouterr().out.split())


def test_an_example_runs_as_a_script(tmp_path):
    (path,) = [each for each in SCRIPTS if each.stem == "xor"]
    command = [sys.executable, str(path), "--steps", "1"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "0 xor 0 = " in done.stdout


def test_xor_is_learnt_and_twice_the_same(run, capsys):
    first = run("xor", "--steps", "150")
    assert first < 0.01
    assert "1 xor 1 = 0.0" in capsys.readouterr().out
    assert run("xor", "--steps", "150") == first


@pytest.mark.parametrize("model", ["mlp", "cnn"])
def test_digits_are_read_after_a_few_epochs(run, model, tmp_path):
    picture = tmp_path / "misread.png"
    assert run("digits", "--model", model, "--epochs", "4", "--picture", str(picture)) > 0.9
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.parametrize(("model", "accuracy"), [("mlp", 0.97), ("cnn", 0.98)])
def test_digits_reach_their_accuracy(run, model, accuracy, tmp_path):
    assert run("digits", "--model", model, "--picture", str(tmp_path / "misread.png")) >= accuracy


def test_the_character_gpt_learns_and_writes(run, capsys):
    small = ["--width", "32", "--layers", "1", "--context", "16", "--letters", "20"]
    loss = run("char_gpt", "--steps", "120", "--lr", "0.01", *small, "--prompt", "ten")
    assert loss < 3  # it begins at about 4.6, the logarithm of the size of the alphabet
    written = capsys.readouterr().out.split("steps/s\n")[1]
    assert written.startswith("ten") and len(written.split("\nloss")[0]) == len("ten") + 20


def test_the_lstm_learns_to_add(run):
    assert run("lstm", "--length", "4", "--steps", "400") < 0.05  # 0.167 without looking


def test_the_autoencoder_learns_and_draws(run, tmp_path):
    picture = tmp_path / "drawn.png"
    assert run("vae", "--epochs", "6", "--picture", str(picture)) < 32  # 45 untrained
    assert picture.read_bytes().startswith(b"\x89PNG")
