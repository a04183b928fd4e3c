"""The command line, through its own entry point and in real processes."""

import os
import re
import subprocess
import sys

import pytest

import tenfold
from tenfold.capi import commands
from tenfold.command import cli, listing
from tenfold.command.doctor import Finding
from tenfold.engines import iree
from tenfold.mlir import torch_dialect
from tenfold.ops.table import TABLE, all_rows
from tools import pytorch_names


def run(*arguments: str, **options) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "tenfold.command.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        **options,
    )


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "program.py"

    def write(text: str) -> str:
        path.write_text(text)
        return str(path)

    return write


def test_a_program_written_for_pytorch_runs_with_its_arguments(script):
    program = "import sys, torch\nprint(torch.ones(2).sum().item(), torch.__version__, *sys.argv[1:])"
    done = run("run", "--as-torch", script(program), "--steps", "3")
    assert done.stdout == "2.0 2.13.0+tenfold --steps 3\n", done.stderr


def test_programs_written_for_pytorch_are_shown_and_explained(script, tmp_path):
    path = script("import torch\nprint(torch.ones(2).sum().item())")
    assert "aten.ones" in run("show", "--as-torch", "--stage", "trace", path).stdout
    page = tmp_path / "page.html"
    done = run("explain", "--as-torch", path, "-o", str(page))
    assert done.returncode == 0 and page.stat().st_size > 10_000, done.stderr


def test_a_program_that_wants_pytorch_hears_of_as_torch(script, tmp_path):
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')")
    done = run("run", script("import torch"))
    assert done.returncode == 1
    assert done.stderr.endswith("  help: with --as-torch, `import torch` means Tenfold\n")


def test_the_package_is_the_command():
    asked = [sys.executable, "-m", "tenfold", "--version"]
    assert (
        subprocess.run(asked, capture_output=True, text=True, timeout=300).stdout == run("--version").stdout
    )


def test_a_reader_that_goes_away_is_no_error():
    asked = [sys.executable, "-m", "tenfold.command.cli", "ops"]
    with subprocess.Popen(asked, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(300) == 0


def test_a_file_to_run_is_all_that_is_required(capsys):
    with pytest.raises(SystemExit):
        cli.main(["run"])
    assert capsys.readouterr().err.endswith("required: file\n")


def test_a_build_says_that_it_builds_where_there_is_no_bar_to_see(monkeypatch, capsys):
    def build(progress, **options):
        progress("libtenfold", 0, 2)
        progress("rt.c", 1, 2)
        raise tenfold.EngineError("no space left")

    monkeypatch.setattr(commands, "build", build)
    assert cli.main(["capi", "flags"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("building libtenfold") == 1


def test_the_form_to_build_is_asked_before_the_file_runs(script, capsys):
    assert cli.main(["build", script("print('it ran')"), "-o", "model.foo"]) == 1
    said = capsys.readouterr()
    assert "which form to write" in said.err
    assert "-->" not in said.err
    assert said.out == ""


def all_commands(parser=None, before=()):
    """Every command of the command line, those inside of others too."""
    parser = parser or cli._parser()
    yield list(before)
    for action in parser._actions:
        for name, inner in (getattr(action, "choices", None) or {}).items() if action.nargs == "A..." else ():
            yield from all_commands(inner, (*before, name))


@pytest.mark.parametrize("command", list(all_commands()), ids=" ".join)
def test_every_command_has_help_with_an_example(command, capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main([*command, "--help"])
    printed = capsys.readouterr().out
    assert stopped.value.code == 0
    assert f"example:\n  {' '.join(['tenfold', *command])}" in printed


def test_the_demo_shows_every_stage_learns_to_read_and_times_it(tmp_path):
    picture = tmp_path / "made" / "digits.png"
    done = run("demo", "--picture", str(picture))
    assert done.returncode == 0, done.stderr
    for expected in (
        "==== Trace IR ====",
        "==== Flat IR ====",
        "==== StableHLO IR ====",
        "recorded lazily",
        "tenfold.compile",
        "on disk",
        str(picture),
        "tenfold explain FILE.py --open",
    ):
        assert expected in done.stdout
    (accuracy,) = re.findall(r"read (\S+)% of 360 digits", done.stdout)
    assert float(accuracy) > 97
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_demo_says_at_once_that_its_picture_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    done = run("demo", "--picture", str(tmp_path / "file" / "digits.png"))
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("ArgumentError: the picture cannot be written to ")


def test_run_hands_arguments_on(script):
    done = run(
        "run",
        script("import sys, tenfold as tn\nprint(sys.argv[1:], tn.ones(2).sum().item())"),
        "--steps",
        "3",
    )
    assert done.stdout == "['--steps', '3'] 2.0\n"


def test_run_prints_an_error_without_our_frames(script):
    done = run("run", script("import tenfold as tn\nx = tn.ones(2, 3)\ny = x + tn.ones(4)\n"))
    assert done.returncode == 1
    assert "ShapeError: add: cannot broadcast f32[2,3] with f32[4]" in done.stderr
    assert "program.py:3   y = x + tn.ones(4)" in done.stderr
    assert "dispatch.py" not in done.stderr


def test_run_lets_other_exceptions_and_exits_be(script):
    assert "ZeroDivisionError" in run("run", script("1 / 0")).stderr
    assert run("run", script("import sys; sys.exit(7)")).returncode == 7


def test_a_missing_file_is_a_plain_error():
    done = run("run", "no-such-file.py")
    assert (
        done.returncode == 1
        and "there is no file no-such-file.py" in done.stderr
        and "Traceback" not in done.stderr
    )


@pytest.mark.parametrize("stage", ["trace", "flat", "stablehlo", "hlo"])
def test_show_prints_what_a_file_evaluates(script, stage):
    done = run(
        "show",
        script("import tenfold as tn\nprint((tn.tensor([1.0, 1.0]) * 2).tanh().sum())"),
        "--stage",
        stage,
    )
    assert done.returncode == 0, done.stderr
    assert "tanh" in done.stdout.lower() and "tensor(1.9281)" in done.stdout


def test_show_explains_tensors_that_nobody_asked_for(script):
    done = run("show", script("import tenfold as tn\nx = tn.ones(2).tanh()"))
    assert "aten.tanh" in done.stdout and "program.py:2" in done.stdout


def test_show_of_a_file_without_tensors_says_so(script):
    done = run("show", script("print(1)"))
    assert done.returncode == 1 and "evaluates no tensor" in done.stderr


def test_ops_lists_the_whole_table(capsys):
    assert cli.main(["ops"]) == 0
    printed = capsys.readouterr().out
    assert f"{sum(map(len, TABLE.values()))} overloads" in printed
    assert all(name in printed for name in list(TABLE)[::25])


def test_ops_cuts_no_name_on_a_narrow_terminal():
    done = run("ops", env={**os.environ, "COLUMNS": "30"})
    assert set(TABLE) <= {line.split(" ", 1)[0] for line in done.stdout.splitlines()}


def test_ops_describes_one(capsys):
    assert cli.main(["ops", "add.Tensor"]) == 0
    printed = capsys.readouterr().out
    assert "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor" in printed
    assert "Tensor.add_" in printed and "xla" in printed and "add.Scalar" not in printed


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("prims.sqrt", "prims::sqrt"),
        ("prims::sqrt", "Python   tenfold.ops.prims.sqrt"),
        ("quantized_decomposed.quantize_per_tensor.tensor", "Tensor scale, Tensor zero_point"),
        ("choose_qparams", "quantized_decomposed::choose_qparams.tensor"),
        ("aten.add.int", "on Python's own values"),
        ("prim.min.int", "prim::min.int"),
        ("torch.nn.functional.gelu", "aten::gelu"),
        ("F.gelu", "aten::gelu"),
        ("nn.functional.multi_head_attention_forward", "a function that calls ops"),
        ("interpolate", "tenfold.nn.functional.interpolate\n  Python   interpolate(input: Tensor, size: Any"),
        ("linalg.inv", "aten::linalg_inv"),
        ("matrix_rank", "aten::linalg_matrix_rank"),
        ("symeig", "not supported"),
        ("Tensor.add_", "lowering src/tenfold/ops/pointwise.py"),
    ],
)
def test_ops_knows_an_op_by_any_of_its_names(name, said, capsys):
    assert cli.main(["ops", name]) == 0
    assert said in capsys.readouterr().out


def test_ops_names_what_exists(capsys):
    assert cli.main(["ops", "gelu"]) == 0
    assert "tenfold.nn.functional.gelu" in capsys.readouterr().out
    named = {name for row in all_rows() for name in listing.python_names(row)}
    assert len(named) > 800
    for name in named:
        found = tenfold.Tensor if name.startswith("Tensor.") else tenfold
        for part in name.split(".")[1:]:
            found = getattr(found, part, None)
        assert callable(found), name


def test_an_op_is_listed_with_the_engines_that_run_it(capsys):
    for name, engines in {
        "tanh": "xla (cpu, cuda), numpy, libtorch",
        "linalg_svd": "xla (cpu; cuda where no LAPACK is called), numpy, libtorch",
        "nonzero": "host",
    }.items():
        assert cli.main(["ops", name]) == 0
        assert f"engines  {engines}\n" in capsys.readouterr().out


def test_an_unknown_op_gets_a_suggestion(capsys):
    assert cli.main(["ops", "sofmax"]) == 1
    assert "did you mean softmax" in capsys.readouterr().err


def test_a_part_of_a_name_lists_the_ops_that_contain_it(capsys):
    assert cli.main(["ops", "soft"]) == 1
    printed = capsys.readouterr().err
    assert "did you mean" not in printed
    assert printed.index("softmax") < printed.index("softplus") < printed.index("log_softmax")
    assert cli.main(["ops", "e"]) == 1
    assert re.search(r"einsum, .* and \d+ more", capsys.readouterr().err)


def test_the_doctor_finds_what_this_machine_has(capsys):
    assert cli.main(["doctor"]) == 0
    printed = capsys.readouterr().out
    assert "jaxlib" in printed and "XLA on cpu" in printed and "works" in printed
    assert "iree-base-runtime" in printed and "libtorch" in printed


def test_the_doctor_breaks_no_command(monkeypatch, capsys):
    remedy = "pip install " + "'/a/long/path/to/a/clone[torch-dialect]' " * 3
    missing = Finding("torch-mlir", False, "it is not installed", remedy.strip(), True)
    monkeypatch.setattr(cli, "examine", lambda: [missing])
    assert cli.main(["doctor"]) == 0
    assert remedy.strip() in [line.strip() for line in capsys.readouterr().out.splitlines()]


def test_the_doctor_says_what_is_missing(monkeypatch, tmp_path):
    from importlib import metadata

    from tenfold.command import doctor

    def version(package: str) -> str:
        raise metadata.PackageNotFoundError(package)

    monkeypatch.setattr(metadata, "version", version)
    monkeypatch.setenv("TENFOLD_LIBTORCH", str(tmp_path))
    remembered = (torch_dialect.bindings, iree.compiler, iree.runtime, iree.version)
    for door in remembered:
        door.cache_clear()
    missing = {each.what: each for each in doctor.examine() if not each.works}
    for door in remembered:  # which other tests find
        door.cache_clear()
    assert missing.keys() >= {"torch-mlir", "torch", "iree-base-compiler", "iree-base-runtime"}
    assert "pip install" in missing["torch-mlir"].remedy and missing["torch-mlir"].optional
    assert "there is no libtorch in" in missing["torch"].found
    assert not missing["jaxlib"].optional


def test_a_wrong_command_line_is_refused(capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main(["show", "x.py", "--stage", "assembler"])
    assert stopped.value.code == 2
    assert "invalid choice" in capsys.readouterr().err


def test_ops_prints_what_pytorch_has_and_we_do_not(capsys):
    assert cli.main(["ops", "--missing"]) == 0
    printed = capsys.readouterr().out
    for title in ("torch:", "torch.Tensor:", "torch.nn.functional:", "torch.linalg:", "the torch dialect:"):
        assert title in printed
    assert "ops of the torch dialect are missing" in printed
    missing = printed.replace("\n", " ").replace(",", " ").split()
    assert "softmax" not in missing and "sparse_bsr_tensor" in missing


def test_the_list_of_pytorchs_names_is_that_of_the_installed_one():
    assert pytorch_names.FILE.read_text(encoding="utf-8") == pytorch_names.text()
