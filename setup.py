"""What `pip install` does besides what pyproject.toml says: it writes stubs beside the installed modules."""

import os
import subprocess
import sys

from setuptools import setup
from setuptools.command.build_py import build_py

WRITE = (
    "import sys; from pathlib import Path; from tenfold.command import stubs; stubs.write(Path(sys.argv[1]))"
)


class BuildWithStubs(build_py):
    """Copies the package, then has the copy write its own stubs. An editable install copies nothing, and gets
    none: `make stubs` writes them to build/stubs."""

    def run(self):
        super().run()
        if not self.editable_mode:
            # Before what is there: pip names by it the packages that it has fetched for the build.
            folders = [os.path.abspath(self.build_lib), *filter(None, [os.environ.get("PYTHONPATH")])]
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
            subprocess.run([sys.executable, "-B", "-c", WRITE, self.build_lib], check=True, env=environment)


# To write its stubs the package is imported, and these are all that it needs for that.
setup(
    cmdclass={"build_py": BuildWithStubs},
    setup_requires=["numpy>=2.0", "ml_dtypes>=0.5", "rich>=13"],
)
