"""Devices: where a tensor lives, by PyTorch's names ("cpu", "cuda:1"), and the default one of each thread.
Whether a device is really there is the engine's business."""

from threading import local
from typing import Any, TypeGuard, Union

from tenfold.base.errors import DeviceError, did_you_mean, located
from tenfold.base.threads import handed_on

TYPES = ("cpu", "cuda", "meta")
# Kinds of PyTorch's that can be named and compared with; there are none of them here.
NAMED = ("hpu", "ipu", "maia", "mps", "mtia", "privateuseone", "vulkan", "xla", "xpu")

_FORMS = 'devices are written "cpu", "cuda" or "cuda:1"'
_interned: dict[tuple[str, int | None], "Device"] = {}


class Device:
    """A kind of hardware and, where there may be several, which one. Each is a single object, so devices
    compare by identity. In a `with` statement it is the default device of the block.

    `Device("cuda:1")`, `Device("cuda", 1)` and `Device(1)` are the same device.
    """

    __slots__ = ("index", "type")

    type: str
    index: int | None
    mesh: Any = None  # several devices as one place have one: see meshes.py

    def __new__(cls, type: Union[str, int, "Device"], index: int | None = None) -> "Device":
        if isinstance(type, Device) and index is None:
            return type
        if isinstance(type, str):
            name, index = _parse(type, index)
        elif _is_integer(type) and index is None:
            name, index = "cuda", type
        else:
            raise DeviceError(f"expected a device, not {type!r}", help=_FORMS)
        if index is not None and not (_is_integer(index) and index >= 0):
            raise DeviceError(f"a device's index counts from 0: {index!r} is not one", help=_FORMS)
        found = _interned.get((name, index))
        if found is None:
            device = super().__new__(cls)
            device.type, device.index = name, index
            found = _interned.setdefault((name, index), device)
        return found

    @property
    def resolved(self) -> "Device":
        """The device with nothing left to choose, for comparing: "cuda" is "cuda:0", and "cpu:0" is "cpu"."""
        if self.type == "cuda":
            return Device("cuda", 0) if self.index is None else self
        return Device(self.type) if self.index == 0 else self

    def __enter__(self) -> "Device":
        _thread.replaced.append(_thread.default)
        _thread.default = self
        return self

    def __exit__(self, *error: object) -> None:
        _thread.default = _thread.replaced.pop()

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type={self.type!r}{index})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Device, (self.type, self.index)


def get_default_device() -> Device:
    """The device of tensors that this thread makes without naming one."""
    return _thread.default


@located
def set_default_device(device: Device | str | int | None) -> None:
    """Choose this thread's default device; None means the CPU. Inside a `with device:` block the choice holds
    until the block ends."""
    _thread.default = Device("cpu") if device is None else Device(device)


def _parse(text: str, index: int | None) -> tuple[str, int | None]:
    name, colon, digits = text.partition(":")
    if name not in TYPES and name not in NAMED:
        # By spelling alone "gpu" is nearest to "cpu".
        meant = "cuda" if name.lower() == "gpu" else name.lower()
        suggestion = did_you_mean(meant, TYPES)
        raise DeviceError(f"unknown device {text!r}", help=f"{suggestion} {_FORMS}" if suggestion else _FORMS)
    if not colon:
        return name, index
    if index is not None:
        raise DeviceError(f"device {text!r} already has an index; {index!r} was given too", help=_FORMS)
    # As in PyTorch, "cuda:01" is a slip of the pen and not a device.
    if not (digits.isascii() and digits.isdigit()) or (digits[0] == "0" and digits != "0"):
        raise DeviceError(f"device {text!r} has no index that counts from 0", help=_FORMS)
    return name, int(digits)


def _is_integer(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


class _Thread(local):
    """The default device of one thread, and those that its open `with` blocks put aside."""

    def __init__(self) -> None:
        self.default = Device("cpu")
        self.replaced: list[Device] = []


_thread = handed_on(_Thread())
