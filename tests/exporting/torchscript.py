"""What tests of TorchScript share: PyTorch's own reading of an archive, and a matrix to run it on."""

from __future__ import annotations

import io

import numpy as np
import torch

import tenfold as tn

X = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)


def by_pytorch(traced: object) -> torch.jit.ScriptModule:
    file = io.BytesIO()
    tn.jit.save(traced, file)
    file.seek(0)
    return torch.jit.load(file)
