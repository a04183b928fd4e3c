"""Compiling StableHLO modules, and running what XLA makes of them."""

from __future__ import annotations

import itertools
import operator
import weakref
from collections.abc import Sequence
from typing import Any

from tenfold.base.devices import Device
from tenfold.base.meshes import Partitioned
from tenfold.base.warning import warn
from tenfold.engines.xla import clients
from tenfold.engines.xla.buffers import Aval
from tenfold.engines.xla.clients import resolve
from tenfold.engines.xla.door import jaxlib
from tenfold.engines.xla.errors import translate
from tenfold.engines.xla.functions import provide
from tenfold.engines.xla.options import HASTY, OF_RESULTS, OPTIONS, compile_options
from tenfold.flat.ir import TensorType
from tenfold.flat.structured import PYTHON
from tenfold.mlir import stablehlo
from tenfold.mlir.interrupts import aside
from tenfold.ops import kernels

# Counts the calls of programs. jaxlib notes the Python frames of each, and lets go of them when it is told:
# JAX has a hook in the garbage collector for it, which runs too seldom here.
turn = itertools.count(1).__next__
TURNS = 0xFFF  # it is told after each 4,096 calls


def let_go() -> None:
    """Give back what jaxlib keeps of calls that have ended."""
    jaxlib()._jax.collect_garbage()


_alive: weakref.WeakSet[Executable] = weakref.WeakSet()


class Executable:
    """A compiled program: call it with buffers, get buffers. Inside, `start` gives all results in one piece,
    of which `makers` make the buffers."""

    __slots__ = ("__weakref__", "_made", "loaded", "makers", "restored", "start")

    def __init__(self, loaded: Any, makers: Sequence[Any]):
        _alive.add(self)
        self.loaded = loaded
        self.restored = False  # loaded from disk
        self.start = loaded.execute_sharded
        self.makers = makers
        self._made = operator.methodcaller("consume_with_handlers", self.makers)

    def __call__(self, buffers: Sequence[Any], held: list[Any] | None = None) -> list[Any]:
        """The results, which `held` has even if an interrupt keeps this from returning them: Python hears of
        one between its own steps, of which this is one."""
        if clients.forked:
            clients.refuse_fork()
        if not turn() & TURNS:
            let_go()
        held = [] if held is None else held
        try:
            held.extend(map(self._made, map(self.start, (buffers,))))
            return held[0]
        except Exception as error:
            raise translate(error) from None

    def memory(self) -> int:
        """The bytes that a run holds: what goes in, what comes out elsewhere, and what it needs meanwhile."""
        stats = self.loaded.get_compiled_memory_stats()
        results = stats.output_size_in_bytes - stats.alias_size_in_bytes
        return stats.argument_size_in_bytes + results + stats.temp_size_in_bytes

    def hlo(self) -> str:
        """What XLA made of the program."""
        return "\n".join(module.to_string() for module in self.loaded.hlo_modules())


def executables() -> list[Executable]:
    """All compiled programs that there are."""
    return list(_alive)


def _makers(results: Sequence[TensorType], xla_device: Any) -> list[Any]:
    """What makes a program's results. To be told what each is saves jaxlib from asking Python about every
    one, at every run."""
    j = jaxlib()
    sharding = j.sharding(xla_device)
    avals = [Aval(result.shape, result.dtype.numpy, sharding) for result in results]
    return [j.handler(aval, sharding, committed=True) for aval in avals]


def compile(module: stablehlo.Module, device: Device, optimised: bool = True) -> Executable:
    provide(module, device)
    if isinstance(device, Partitioned):
        return clients.meshes.compile(module, device)
    place, xla_device = resolve(device)
    devices = jaxlib().xc.DeviceList((xla_device,))
    try:
        options = compile_options(xla_device, module, optimised)
        if calls_python(module):  # which XLA is told in full, as a module
            callbacks = [kernels.call_python]
            compiled = lambda: place.client.compile_and_load(module.module, devices, options, callbacks)
        else:
            compiled = lambda: place.client.compile_and_load(module.bytecode(), devices, options)
        (loaded,) = aside(compiled)
    except Exception as error:
        refused = [name for name, _ in (*OPTIONS[device.type], *HASTY) if f"option: '{name}'" in str(error)]
        if not refused or "No such compile" not in str(error) or refused[0] in OF_RESULTS:
            raise translate(error) from None
        for options in (OPTIONS[device.type], HASTY):  # the others are about speed alone
            options[:] = [option for option in options if option[0] != refused[0]]
        warn(f"jaxlib {jaxlib().version}'s XLA has no option {refused[0]}: programs may be slower")
        return compile(module, device, optimised)
    return Executable(loaded, _makers(module.results, xla_device))


def calls_python(module: stablehlo.Module) -> bool:
    return any(call.call_target_name.startswith(PYTHON) for call in module.calls)


def serialize(executable: Executable) -> bytes:
    try:
        return executable.loaded.serialize()
    except Exception as error:
        raise translate(error) from None


def deserialize(data: bytes, module: stablehlo.Module, device: Device) -> Executable:
    """The executable of a module, from what was stored of it."""
    load = clients.meshes.deserialize if isinstance(device, Partitioned) else _deserialize
    executable: Executable = load(data, module, device)
    executable.restored = True
    return executable


def _deserialize(data: bytes, module: stablehlo.Module, device: Device) -> Executable:
    place, xla_device = resolve(device)
    xc = jaxlib().xc
    try:
        options = compile_options(xla_device, module)
        callbacks = [[kernels.call_python]] if calls_python(module) else []
        loaded = place.client.deserialize_executable(data, xc.DeviceList((xla_device,)), options, *callbacks)
    except Exception as error:
        raise translate(error) from None
    return Executable(loaded, _makers(module.results, xla_device))
