"""PyTorch's public functions and methods, by module: what `tenfold ops --missing` compares with.
`python -m tools.pytorch_names` writes the list anew from the installed PyTorch."""

from __future__ import annotations

import inspect
import textwrap
from pathlib import Path
from typing import Any

import torch

FILE = Path(__file__).parent.parent / "src" / "tenfold" / "ops" / "pytorch_names.txt"
MODULES: dict[str, Any] = {
    "torch": torch,
    "torch.Tensor": torch.Tensor,
    "torch.nn.functional": torch.nn.functional,
    "torch.linalg": torch.linalg,
    "torch.fft": torch.fft,
    "torch.special": torch.special,
}


def names(module: Any) -> list[str]:
    """The public functions of a module; of what it merely imports, nothing."""
    found = []
    for name in dir(module):
        each = getattr(module, name, None)
        if name.startswith("_") or not callable(each) or inspect.isclass(each):
            continue
        if str(getattr(each, "__module__", None) or "torch").split(".")[0] == "torch":
            found.append(name)
    return found


def text() -> str:
    sections = []
    for title, module in MODULES.items():
        lines = textwrap.wrap(" ".join(names(module)), 108, break_on_hyphens=False, break_long_words=False)
        sections.append("\n".join([f"[{title}]", *lines]))
    return "\n\n".join(sections) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
