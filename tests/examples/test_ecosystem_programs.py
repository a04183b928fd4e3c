"""Programs in the manner of PyTorch's example collection give the losses that PyTorch gives."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent.parent
PROGRAM = ROOT / "ecosystem" / "programs" / "pytorch_examples.py"


@pytest.mark.slow
def test_the_losses_of_every_step_are_pytorchs(tmp_path):
    found = []
    for engine, command in (("tenfold", ["-m", "tenfold", "run", "--as-torch"]), ("torch", [])):
        out = tmp_path / engine
        out.mkdir()
        paths = [str(ROOT / "ecosystem"), *([str(ROOT / "src")] if command else [])]
        environment = {**os.environ, "ECOSYSTEM_OUT": str(out), "PYTHONPATH": os.pathsep.join(paths)}
        environment.pop("TENFOLD_TIER", None)
        subprocess.run([sys.executable, *command, str(PROGRAM)], env=environment, check=True, timeout=500)
        found.append(np.load(out / "arrays.npz"))
    ours, theirs = found
    assert set(ours) == set(theirs)
    for name in theirs:
        scale = max(1.0, float(np.abs(theirs[name]).max()))
        assert np.abs(ours[name].astype(float) - theirs[name]).max() <= 1e-4 * scale, name
