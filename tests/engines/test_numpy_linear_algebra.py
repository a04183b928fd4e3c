"""LAPACK on tier 0: found in SciPy without the import of all of it."""

from __future__ import annotations

import os
import subprocess
import sys


def output(code: str) -> list[str]:
    environment = {**os.environ, "TENFOLD_TIER": "numpy", "TENFOLD_CACHE_DIR": ""}
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert found.returncode == 0, found.stderr
    return found.stdout.split()


def test_a_factorisation_imports_lapack_alone_and_leaves_scipy_whole():
    code = """
import sys, tenfold as tn
print(*tn.linalg.svd(tn.eye(2) * 3)[1].tolist(), *tn.linalg.solve(tn.eye(1) * 2, tn.ones(1)).tolist())
print("scipy.linalg" in sys.modules)
import numpy, scipy.linalg
print(scipy.linalg.lapack.sgesdd is sys.modules["scipy.linalg._flapack"].sgesdd)
print(*scipy.linalg.svd(numpy.eye(2))[1])
"""
    assert output(code) == ["3.0", "3.0", "0.5", "False", "True", "1.0", "1.0"]


def test_a_factorisation_without_scipy_says_what_is_missing():
    code = """
import sys
sys.modules["scipy"] = None
import tenfold as tn
tn.set_engine("numpy")
try:
    tn.linalg.svd(tn.eye(2))[1].eval()
except ImportError as error:
    print("pip install scipy" in str(error))
"""
    assert output(code) == ["True"]
