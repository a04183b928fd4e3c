"""StableHLO files, run on XLA again."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tn


@pytest.mark.parametrize("name", ["model.stablehlo", "model.mlir", "model.mlirbc"])
def test_a_saved_stablehlo_file_runs_again(model, x, name, tmp_path):
    expected = model(x).detach().numpy()
    whole = tn.export(model, (x,), dialect="stablehlo", parameters="literals")
    whole.save(tmp_path / name)
    run = tn.load_stablehlo(tmp_path / name)
    np.testing.assert_allclose(run(x).numpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(run(x.numpy()).numpy(), expected, rtol=1e-6)
    open_to_others = tn.export(model, (x,), dialect="stablehlo")
    run = tn.load_stablehlo(open_to_others.portable())
    np.testing.assert_allclose(run(x, *open_to_others.parameters.values()).numpy(), expected, rtol=1e-6)


def test_a_file_with_complex_constants_runs_again():
    exported = tn.export(lambda x: x * 2j, tn.ones(3), dialect="stablehlo")
    assert tn.load_stablehlo(exported.portable())(tn.ones(3)).tolist() == [2j] * 3


def test_what_torch_mlir_lowers_is_a_file_that_runs(model, x):
    module = tn.export(model, (x,), parameters="literals").module.lowered("stablehlo")
    run = tn.load_stablehlo(module.bytecode())
    np.testing.assert_allclose(run(x).numpy(), model(x).detach().numpy(), rtol=1e-5)


@pytest.mark.parametrize("file", ["stablehlo", "vmfb"])
def test_a_loaded_module_refuses_to_lose_a_gradient(file):
    exported = tn.export(lambda x: x * 2, tn.ones(2), dialect="stablehlo")
    run = tn.load_vmfb(exported.build()) if file == "vmfb" else tn.load_stablehlo(exported.portable())
    x = tn.ones(2, requires_grad=True)
    with pytest.raises(tn.GradientError, match="argument 0 requires gradients") as raised:
        run(x)
    assert "tenfold.no_grad()" in str(raised.value)
    assert run(x.detach()).tolist() == [2, 2]
    with tn.no_grad():
        assert run(x).tolist() == [2, 2]


def test_damaged_artifacts_are_refused(model, x):
    data = tn.export(model, (x,), dialect="stablehlo").portable()
    for damaged in (data[:20], data[: len(data) // 2], data[:-1], b"ML\xefR" + b"\0" * 40):
        with pytest.raises(tn.FormatError):
            tn.load_stablehlo(damaged)


def test_a_loaded_module_checks_what_it_is_given(model, x):
    run = tn.load_stablehlo(tn.export(model, (x,), dialect="stablehlo", parameters="literals").portable())
    with pytest.raises(tn.ArgumentError, match="takes 1 tensors, not 2"):
        run(x, x)
    with pytest.raises(tn.ShapeError, match=r"argument 0 of the module is f32\[2,4\], not f32\[3\]"):
        run(tn.ones(3))
    assert repr(run) == "<LoadedModule: (f32[2,4]) -> (f32[2,3])>"


@pytest.mark.parametrize("name", ["inv", "det", "cholesky", "eigvals"])
@pytest.mark.parametrize("form", ["portable", "bytecode"])
def test_linear_algebra_is_loaded_again_from_every_form(name, form):
    x = tn.tensor([[4.0, 1.0], [1.0, 3.0]]).expand(2, 2, 2)
    compute = getattr(tn.linalg, name)
    exported = tn.export(compute, (x,), dialect="stablehlo")
    loaded = tn.load_stablehlo(getattr(exported, form)())
    assert tn.equal(loaded(x), compute(x))
