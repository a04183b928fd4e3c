"""IREE: every dialect and dtype through a .vmfb and back, files that are damaged, and the command line."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import tenfold as tn
from tenfold import nn
from tenfold.base import dtypes
from tenfold.base.package import install_command
from tenfold.command.cli import main
from tenfold.engines import iree
from tenfold.exporting import DIALECTS


@pytest.fixture(scope="module")
def model() -> nn.Module:
    tn.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)).eval()


@pytest.fixture(scope="module")
def x() -> tn.Tensor:
    return tn.rand(2, 4).eval()


@pytest.fixture(scope="module")
def built(model, x) -> bytes:
    return tn.export(model, (x,), parameters="literals").build(processor="generic")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_runs(model, x, dialect):
    exported = tn.export(model, (x,), dialect=dialect, parameters="literals")
    run = tn.load_vmfb(exported.build())
    np.testing.assert_allclose(run(x).numpy(), model(x).detach().numpy(), rtol=1e-5)
    assert repr(run) == "<BuiltModule: (f32[2,4]) -> (f32[2,3])>"


def test_parameters_may_be_arguments(model, x):
    exported = tn.export(model, (x,))
    run = tn.load_vmfb(exported.build())
    found = run(x, *exported.parameters.values())
    np.testing.assert_allclose(found.numpy(), model(x).detach().numpy(), rtol=1e-5)
    with pytest.raises(tn.ArgumentError, match="takes 5 tensors, not 1") as raised:
        run(x)
    assert "0.weight" in str(raised.value)


@pytest.mark.parametrize("dialect", ["torch", "stablehlo"])
def test_every_dtype_passes_through_unchanged(dialect):
    # All in one program: what a test costs is the compiler. The torch dialect's route has no complex numbers.
    kinds = [each for each in dtypes.ALL if not (dialect == "torch" and each.is_complex)]
    tensors = [tn.tensor([1, 0, 3]).to(each) for each in kinds]
    exported = tn.export(lambda *given: [tn.cat([each, each]) for each in given], tensors, dialect=dialect)
    results = tn.load_vmfb(exported.build())(*tensors)
    for given, found in zip(tensors, results, strict=True):
        assert found.dtype is given.dtype
        np.testing.assert_array_equal(found.numpy(), np.tile(given.numpy(), 2))


def test_no_inputs_several_results_scalars_and_empty_tensors():
    def function(x, empty):
        return {"sum": x.sum(), "same": x}, (empty + 1, tn.arange(3))

    x, empty = tn.tensor(2.5), tn.zeros(0, 3)
    run = tn.load_vmfb(tn.export(function, (x, empty), dialect="stablehlo").build())
    total, same, still_empty, count = run(x, empty)
    assert (total.item(), same.item(), still_empty.shape, count.tolist()) == (2.5, 2.5, (0, 3), [0, 1, 2])
    assert tn.load_vmfb(tn.export(lambda: tn.arange(3) * 2).build())().tolist() == [0, 2, 4]


def test_a_portable_bytecode_serves_every_processor(model, x):
    exported = tn.export(model, (x,), parameters="literals", dialect="linalg")
    run = tn.load_vmfb(exported.build(target="vmvx"))
    np.testing.assert_allclose(run(x).numpy(), model(x).detach().numpy(), rtol=1e-5)


# What is refused


def test_damaged_files_are_refused(built, tmp_path):
    for damaged in (b"", b"nothing", built[:64], b"\0" * len(built)):
        with pytest.raises(tn.FormatError, match="this is no .vmfb file"):
            tn.load_vmfb(damaged)
    with pytest.raises(tn.FormatError, match="the file is damaged: its digest is not the one"):
        tn.load_vmfb(built[: len(built) // 2])
    with pytest.raises(tn.FormatError, match="nowhere.vmfb cannot be read: No such file"):
        tn.load_vmfb(tmp_path / "nowhere.vmfb")


def test_arguments_are_checked(built, x):
    run = tn.load_vmfb(built)
    with pytest.raises(tn.ShapeError, match=r"argument 0 of the module is f32\[2,4\], not f32\[3,4\]"):
        run(tn.ones(3, 4))
    with pytest.raises(tn.ShapeError, match=r"is f32\[2,4\], not i64\[2,4\]"):
        run(tn.ones(2, 4, dtype=tn.int64))
    with pytest.raises(tn.ArgumentError, match="takes 1 tensors, not 2"):
        run(x, x)


def test_files_that_others_made_are_checked_by_iree(model, x):
    bytecode = tn.export(model, (x,), parameters="literals").bytecode()
    run = tn.load_vmfb(iree.compile(bytecode, "torch"))
    assert run.inputs is None and repr(run) == "<BuiltModule of unknown types>"
    np.testing.assert_allclose(run(x).numpy(), model(x).detach().numpy(), rtol=1e-5)
    with pytest.raises(tn.EngineError, match="IREE: ") as raised:
        run(x, x)
    assert "expected 1 arguments" in raised.value.message


@pytest.mark.parametrize("about", [{"inputs": ["f32[2,4]"]}, {"inputs": 3, "outputs": []}, [1]])
def test_files_that_tell_nonsense_of_themselves_are_refused(model, x, about):
    bytecode = tn.export(model, (x,), parameters="literals").bytecode()
    with pytest.raises(tn.FormatError, match="what the file tells of its function is damaged"):
        tn.load_vmfb(iree.compile(bytecode, "torch", about=about))


@pytest.mark.parametrize("outputs", [[], ["i64[2]"], ["f32[2]", "f32[2]"]])
def test_results_that_a_file_tells_otherwise_are_an_error(outputs):
    bytecode = tn.export(lambda x: x * 2, (tn.ones(2),), parameters="literals").bytecode()
    about = {"inputs": ["f32[2]"], "outputs": outputs, "parameters": [], "dimensions": {}}
    run = tn.load_vmfb(iree.compile(bytecode, "torch", about=about))
    with pytest.raises(tn.FormatError, match="other results than the file tells"):
        run(tn.ones(2))


def test_what_iree_cannot_compile_is_told():
    exported = tn.export(lambda x: tn.special.i0e(x), (tn.ones(2),))
    with pytest.raises(tn.UnsupportedError, match="it has no lowering of aten.special_i0e"):
        exported.build()
    with pytest.raises(tn.FormatError, match="IREE cannot read this module"):
        iree.compile(b"ML\xefRnothing", "torch")
    with pytest.raises(tn.ArgumentError, match="no target 'tpu'"):
        exported.build(target="tpu")
    with pytest.raises(tn.ArgumentError, match="no target 'tpu'"):
        tn.load_vmfb(b"", target="tpu")
    with pytest.raises(tn.ArgumentError, match="IREE does not read 'onnx'"):
        iree.compile(b"", "onnx")


@pytest.mark.parametrize(
    ("absent", "call"),
    [("iree.compiler", "tn.export(lambda: tn.ones(2)).build()"), ("iree.runtime", "tn.load_vmfb(b'')")],
)
def test_iree_missing_says_what_to_install(absent, call):
    code = f"import sys; sys.modules[{absent!r}] = None\nimport tenfold as tn\n{call}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "MissingEngine" in done.stderr and install_command("iree") in done.stderr


# The command line

MODEL = """
import tenfold as torch
from tenfold import nn

torch.manual_seed(0)
model = nn.Linear(2, 3).eval()
inputs = torch.ones(4, 2)
other = nn.Linear(2, 1)
if __name__ == "__main__":
    raise SystemExit("build does not run the file as a program")
"""


@pytest.mark.parametrize("name", ["model.vmfb", "model.stablehlo"])
def test_a_file_is_built_and_run(name, tmp_path, capsys):
    (tmp_path / "model.py").write_text(MODEL)
    np.save(tmp_path / "x.npy", np.ones((4, 2), np.float32))
    path = str(tmp_path / name)
    assert main(["build", str(tmp_path / "model.py"), "-o", path]) == 0
    assert "(f32[4,2]) -> (f32[4,3])" in capsys.readouterr().out
    assert main(["run", path, "--input", str(tmp_path / "x.npy")]) == 0
    printed = capsys.readouterr().out
    assert main(["run", path, "--input", "[[1, 1], [1, 1], [1, 1], [1, 1]]"]) == 0
    assert capsys.readouterr().out == printed and printed.startswith("tensor([[")
    assert main(["run", path, "--input", str(tmp_path / "x.npy"), "--save", str(tmp_path / "y.npz")]) == 0
    assert np.load(tmp_path / "y.npz")["arr_0"].shape == (4, 3)


def test_a_file_with_open_sizes_is_built_once_for_all(tmp_path, capsys):
    (tmp_path / "model.py").write_text(MODEL + 'dynamic = {0: {0: "n"}}\n')
    path = str(tmp_path / "model.vmfb")
    assert main(["build", str(tmp_path / "model.py"), "-o", path]) == 0
    assert "(f32[n,2]) -> (f32[n,3])" in capsys.readouterr().out
    for rows in (1, 3):
        assert main(["run", path, "--input", str([[1, 1]] * rows)]) == 0
        assert capsys.readouterr().out.count("],") == rows - 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["build", "model.py", "-o", "m.vmfb", "--model", "net"], "defines no 'net'"),
        (["build", "model.py", "-o", "m.onnx"], "does not say which form to write"),
        (["build", "nothing.py", "-o", "m.vmfb"], "there is no file"),
        (["run", "nothing.vmfb"], "cannot be read"),
        (["run", "model.vmfb"], r"takes 1 tensors (f32[4,2]), not 0"),
        (["run", "model.vmfb", "--input", "[[1, 1]]"], "argument 0 of the module is f32[4,2], not f32[1,2]"),
        (["run", "model.vmfb", "--input", "one"], "is neither a .npy file nor numbers"),
        (["run", "model.vmfb", "--input", "x.npy"], "No such file"),
    ],
)
def test_mistakes_on_the_command_line_are_explained(arguments, message, tmp_path, monkeypatch, capsys, file):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "model.vmfb").write_bytes(file)
    assert main(arguments) == 1
    assert message in capsys.readouterr().err


@pytest.fixture(scope="module")
def file() -> bytes:
    return tn.export(nn.Linear(2, 3), tn.ones(4, 2), parameters="literals").build()
