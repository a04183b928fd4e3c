"""Sizes that are symbols, by PyTorch's names. Sizes here are plain numbers, of which none is a symbol: a test
of its type answers no."""


class SymInt:
    """An int that is a symbol; there is none."""


class SymFloat:
    """A float that is a symbol; there is none."""


class SymBool:
    """A bool that is a symbol; there is none."""
