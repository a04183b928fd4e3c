"""The package's names: its own, and that under which it shows itself, "torch" while it stands in for PyTorch,
as programs compare such words: `str(dtype) == "torch.float32"`."""

NAME = __name__.partition(".")[0]
shown = "tenfold"


def is_ours(kind: type) -> bool:
    """Whether it is one of this package's classes, or derived from one: those say what they depend on."""
    return any(base.__module__.partition(".")[0] == NAME for base in kind.__mro__)
