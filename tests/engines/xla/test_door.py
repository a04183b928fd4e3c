"""The door to jaxlib."""

import subprocess
import sys


def test_jaxlib_reports_nothing_whatever_is_asked_of_it_first():
    code = "from tenfold.engines import xla; xla.headers(); xla.client('cpu')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""
