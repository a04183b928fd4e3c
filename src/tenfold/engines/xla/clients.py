"""Platforms with their devices, and whether this process may use them."""

from __future__ import annotations

import contextlib
import functools
import glob
import os
import threading
from typing import Any, NoReturn

from tenfold.base.devices import Device
from tenfold.base.errors import DeviceError, EngineError, MissingDevice, NoData
from tenfold.base.forking import forkable
from tenfold.base.heap import keep_memory
from tenfold.engines.xla.door import jaxlib
from tenfold.engines.xla.errors import first_line
from tenfold.mlir.interrupts import pass_on, uninterrupted

lock = forkable(threading.RLock())
started: dict[str, Client] = {}
meshes: Any = None  # `sharded.py`, which does the same over several devices and sets this when it is imported
cluster: Any = None  # the other processes, if there are any: see `processes.py`
in_use: list[Any] = []  # the devices of all platforms that were asked for
unprofiled: list[Any] = []  # plugins whose profilers are not registered yet
forked = False


class Client:
    """A platform (cpu or cuda) of XLA's, with its devices."""

    def __init__(self, platform: str):
        self.platform = platform
        self.client = _make_client(platform)
        self.devices = self.client.local_devices()
        if not in_use:
            os.register_at_fork(after_in_child=_leave_behind)
        in_use.extend(self.devices)

    def device(self, index: int) -> Any:
        if index >= len(self.devices):
            raise DeviceError(
                f"there is no {self.platform}:{index}: "
                f"this machine has {len(self.devices)} {self.platform} device(s)",
                help="see `tenfold doctor`",
            )
        return self.devices[index]


def client(platform: str) -> Client:
    known = started.get(platform)
    if known is None:
        with lock, uninterrupted():
            known = started.get(platform) or started.setdefault(platform, Client(platform))
    return known


def require_unforked() -> None:
    """Raise in a process that was forked from one that has used XLA."""
    if forked:
        refuse_fork()


def _leave_behind() -> None:
    """In a child of this process nothing runs: XLA's threads stayed behind, and it would wait forever."""
    global forked
    forked = True
    started.clear()
    in_use.append(None)  # there is no short way either


def refuse_fork() -> NoReturn:
    raise EngineError(
        "a process forked from one that has used XLA cannot compute",
        help="start it by multiprocessing's 'spawn', or fork before the first result",
    )


def _make_client(platform: str) -> Any:
    require_unforked()
    xc = jaxlib().xc
    if platform == "cpu":
        # A thread of XLA's own for each run would cost small programs more than they take; and large ones use
        # all cores whoever waits for them.
        keep_memory()
        count = int(os.environ.get("TENFOLD_CPU_DEVICES", "1"))
        if cluster is not None:
            return cluster.cpu_client(xc, count)
        return xc.make_cpu_client(asynchronous=False, num_devices=count)
    if platform != "cuda":
        raise MissingDevice(f"there is no device {platform!r} here", help="use the CPU or CUDA")
    plugin = find_cuda_plugin()
    if plugin is None:
        raise MissingDevice(
            "device 'cuda' needs XLA's CUDA plugin, which is not installed",
            help="pip install jax-cuda13-plugin jax-cuda13-pjrt, of jaxlib's version, or use device='cpu'",
        )
    try:
        if not xc.pjrt_plugin_loaded("cuda"):
            unprofiled.append(xc.load_pjrt_plugin_dynamically("cuda", plugin))
            _let_plugin_hear_of_calls(unprofiled[-1])
        if not xc.pjrt_plugin_initialized("cuda"):
            xc.initialize_pjrt_plugin("cuda")
        options, further = xc.generate_pjrt_gpu_plugin_options(), []
        if cluster is not None:
            options |= {"node_id": cluster.rank, "num_nodes": cluster.world}
            further = [cluster.runtime]
        return xc.make_c_api_client("cuda", options, *further)
    except Exception as error:
        pass_on(error)
        raise DeviceError(
            f"the CUDA plugin does not start: {first_line(error)}", help="see `tenfold doctor`"
        ) from None


def _let_plugin_hear_of_calls(plugin: Any) -> None:
    """Let functions that are registered for CUDA be known to the plugin, which has a table of its own."""
    try:
        from jax_cuda13_plugin import cuda_plugin_extension  # type: ignore[import-not-found]
    except ImportError:
        return  # without it there is no linear algebra, which says so when it is asked for
    tell = functools.partial(cuda_plugin_extension.register_custom_call_target, plugin)
    jaxlib().xc.register_custom_call_handler("CUDA", tell)


def find_cuda_plugin() -> str | None:
    """The path of an installed PJRT plugin for CUDA."""
    try:
        import jax_plugins  # type: ignore[import-not-found]
    except ImportError:
        return None
    for folder in jax_plugins.__path__:
        plugins = sorted(glob.glob(os.path.join(folder, "xla_cuda*", "xla_cuda_plugin.so")))
        if plugins:
            return plugins[-1]
    return None


def resolve(device: Device) -> tuple[Client, Any]:
    place = client(device.type)
    return place, place.device(device.index or 0)


def require(device: Device) -> None:
    """Raise if the device is not there. Meta always is: nothing is computed there."""
    if device.type != "meta" and device.mesh is None:
        resolve(device)


def require_data(device: Device) -> None:
    """Raise if tensors there have no data: on the meta device none has."""
    if device.type == "meta":
        raise NoData(
            "a tensor on the meta device has a shape and a dtype, but no data",
            help="give it data first: module.to_empty(device=...), or load_state_dict(..., assign=True)",
        )


def synchronize() -> None:
    """Wait until the devices in use have done all that they were given. The CPU's programs have run when
    the call that starts them returns."""
    for place in [client for client in list(started.values()) if client.platform != "cpu"]:
        for array in place.client.live_arrays():
            with contextlib.suppress(RuntimeError):  # given away meanwhile
                array.block_until_ready()


def device_kind(platform: str) -> str:
    """What a platform's first device calls itself."""
    return client(platform).device(0).device_kind
