"""`tenfold.storage`: the memory behind tensors, to be asked where it is and how large. It is not written to:
a tensor is read by `.numpy()` or DLPack."""

from __future__ import annotations

from typing import Any

from tenfold.base.absent import Absent, AbsentName, absent_name
from tenfold.base.errors import unknown_name
from tenfold.tensor.methods import UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]

_REASON = Absent(
    "the memory behind a tensor is not handed out as an object",
    "use .numpy(), .data_ptr() or DLPack; to copy bytes, tenfold.frombuffer",
    "torch.storage",
)


def _named(name: str) -> AbsentName:
    return absent_name("torch", name, _REASON)


_TYPES = "BFloat16 Bool Byte Char ComplexDouble ComplexFloat Double Float Half Int Long Short"
CLASSES = [*[f"{kind}Storage" for kind in _TYPES.split()], "TypedStorage"]
globals().update({name: _named(name) for name in CLASSES})
TypedStorage = globals()["TypedStorage"]
_LegacyStorage, _StorageBase = _named("_LegacyStorage"), _named("_StorageBase")


def __getattr__(name: str) -> Any:
    raise unknown_name("tenfold.storage", name, globals())
