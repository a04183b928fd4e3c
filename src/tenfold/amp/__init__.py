"""`tenfold.amp`: automatic mixed precision, with PyTorch's names."""

from tenfold.amp.autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from tenfold.amp.scaler import GradScaler
from tenfold.base.errors import unknown_name

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]


def __getattr__(name: str):
    raise unknown_name("tenfold.amp", name, globals())
