"""`torch.__config__`: how PyTorch was built, as libraries ask for it. Tenfold is not built in that sense."""

from __future__ import annotations

import os

from tenfold import version


def show() -> str:
    """The build in words, as PyTorch tells it."""
    return f"Tenfold {version.release}, as PyTorch {version.pytorch}\n  - Build settings: USE_MKL=OFF"


def parallel_info() -> str:
    """How many threads compute."""
    return f"at::get_num_threads() : {os.cpu_count()}"
