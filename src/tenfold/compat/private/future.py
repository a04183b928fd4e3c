"""`torch.__future__`: how `to`, `double` and their like convert a module's parameters. Here each stays the
same object and takes the converted value, as in PyTorch with swapping."""

from __future__ import annotations

from tenfold.base.errors import UnsupportedError, located

_swaps = [False]


def get_overwrite_module_params_on_conversion() -> bool:
    """Whether a conversion makes new parameters: it does not."""
    return False


@located
def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Parameters stay the same objects; that they should not is refused."""
    if value:
        raise UnsupportedError(
            "a converted module keeps its Parameter objects, which take new values",
            help="assign new parameters to the module yourself",
        )


def get_swap_module_params_on_conversion() -> bool:
    """What was set last."""
    return _swaps[0]


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Whether parameters are swapped with converted ones; either way they stay the same objects."""
    _swaps[0] = bool(value)
