"""Random state: generators whose state is a tensor, so that programs take it in and give it back."""

from __future__ import annotations

import operator
import os
import threading
from collections.abc import Iterable
from typing import Any

import numpy as np

from tenfold.base import dtypes
from tenfold.base.devices import Device
from tenfold.base.errors import ArgumentError, FormatError, TenfoldError, located
from tenfold.base.forking import forkable
from tenfold.base.source import capture
from tenfold.tensor import Tensor, leaf

_MASK = (1 << 64) - 1


class Generator:
    """A generator of random numbers: XLA's Philox, keyed by the seed. The same seed gives the same numbers in
    every run."""

    def __init__(self, device: Device | str = "cpu"):
        try:
            self.device = Device(device).resolved
        except TenfoldError as error:
            raise error.located("Generator", capture()) from None
        self._begin(67280421310721)

    @classmethod
    def on(cls, state: Tensor) -> Generator:
        """A generator that draws from this state and advances it: so a program can be given its state."""
        generator = cls.__new__(cls)
        generator.device, generator._seed, generator.state = state.device, 0, state
        return generator

    def _begin(self, seed: int) -> None:
        self._seed = seed & _MASK
        self.state: Tensor = leaf(np.array([self._seed, 0], np.uint64), self.device)

    @located
    def manual_seed(self, seed: int) -> Generator:
        self._seed = _checked(seed) & _MASK
        self.state.assign(leaf(np.array([self._seed, 0], np.uint64), self.device).current())
        return self

    def seed(self) -> int:
        """Seed the generator from the operating system, and return the seed."""
        self.manual_seed(int.from_bytes(os.urandom(8), "little"))
        return self._seed

    def initial_seed(self) -> int:
        return self._seed

    def get_state(self) -> Tensor:
        """The state as bytes: the seed and the position in its stream of numbers."""
        return Tensor(self.state.current()).view(dtypes.uint8)

    def set_state(self, new_state: Tensor) -> Generator:
        state = new_state
        if state.dtype is dtypes.uint8 and tuple(state.shape) == (16,):
            state = state.contiguous().view(dtypes.uint64)
        if state.dtype is not dtypes.uint64 or tuple(state.shape) != (2,):
            raise FormatError(
                f"a generator's state is u8[16], not {state.current().type}",
                help="give what get_state() or get_rng_state() of Tenfold returned, not one of PyTorch's",
            )
        self.state.assign(state.to(self.device).current())
        return self

    def clone_state(self) -> Generator:
        twin = Generator(self.device)
        twin._seed = self._seed
        twin.state.assign(self.state.current())
        return twin

    def __repr__(self) -> str:
        return f"<tenfold.Generator on {self.device}, seed {self._seed}>"


def _checked(seed: Any) -> int:
    try:
        number = operator.index(seed)
    except TypeError:
        raise ArgumentError(f"the seed is an int, not {type(seed).__name__}") from None
    if not -(1 << 63) <= number <= _MASK:
        raise ArgumentError(
            f"the seed {number} does not fit 64 bits", help="use a seed between -2**63 and 2**64 - 1"
        )
    return number


_generators: dict[Device, Generator] = {}
lock = forkable(threading.RLock())
_seed: list[int] = []


def default_generator(device: Device) -> Generator:
    """The default generator of a device."""
    device = device.resolved
    generator = _generators.get(device)
    if generator is None:
        with lock:
            made = Generator(device)
            if _seed:  # not by writing to its state: a function that is recorded now would do so at each call
                made._begin(_seed[0])
            generator = _generators.setdefault(device, made)
    return generator


@located
def manual_seed(seed: int) -> Generator:
    """Seed the default generators of all devices. The seed is converted by `int`."""
    try:
        seed = int(seed)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"the seed is an int: {error}") from None
    _seed[:] = [_checked(seed)]
    for generator in _generators.values():
        generator.manual_seed(seed)
    return default_generator(Device("cpu"))


def seed() -> int:
    """Seed all generators from the system's source of randomness, and return the seed."""
    drawn = int.from_bytes(os.urandom(8), "little")
    manual_seed(drawn)
    return drawn


def initial_seed() -> int:
    """The seed of the CPU's generator."""
    return default_generator(Device("cpu")).initial_seed()


def get_rng_state() -> Tensor:
    """The state of the CPU's generator, as a tensor of bytes."""
    return default_generator(Device("cpu")).get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Set the state of the CPU's generator to one that `get_rng_state` returned."""
    default_generator(Device("cpu")).set_state(new_state)


def _on(device_type: str, device: Any) -> Device:
    return Device(device_type, device) if isinstance(device, int) else Device(device)


class fork_rng:
    """A `with` block that restores the default generators at its end: that of the CPU and those of `devices`,
    by default all. With `enabled=False`, it has no effect."""

    def __init__(
        self,
        devices: Iterable[Any] | None = None,
        enabled: bool = True,
        _caller: str = "fork_rng",
        _devices_kw: str = "devices",
        device_type: str = "cuda",
    ):
        chosen = None if devices is None else [_on(device_type, device) for device in devices]
        self._devices = chosen if chosen is None else [Device("cpu"), *chosen]
        self._enabled = enabled

    def __enter__(self) -> None:
        kept = [] if not self._enabled else _generators if self._devices is None else self._devices
        self._saved = {device: default_generator(device).state.current() for device in list(kept)}

    def __exit__(self, *error: Any) -> None:
        for device, state in self._saved.items():
            default_generator(device).state.assign(state)
