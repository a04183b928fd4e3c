"""Programs and arrays over the devices of a mesh: XLA partitions the program by Shardy, PJRT runs the parts
and carries the collectives. `xla/` comes here for what lies on a mesh."""

from __future__ import annotations

import functools
import math
import re
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold.base.devices import Device
from tenfold.base.digests import sha256
from tenfold.base.errors import DeviceError, EngineError
from tenfold.base.meshes import Mesh, Partitioned, Sharding, from_tiles
from tenfold.engines import xla
from tenfold.engines.agreement import Program
from tenfold.engines.xla import clients
from tenfold.flat.sharding import ShardingConstraint
from tenfold.mlir import stablehlo
from tenfold.mlir.interrupts import aside
from tenfold.ops import kernels
from tenfold.trace.collect import Trace


@functools.lru_cache(64)
def devices_of(mesh: Mesh) -> tuple[Any, ...]:
    """XLA's devices of a mesh, in order; those of other processes are among them."""
    known = xla.client(mesh.platform).client.devices()
    missing = [place for place in mesh.devices if not 0 <= place < len(known)]
    if missing:
        raise DeviceError(
            f"there is no {mesh.platform} device {missing[0]}: there are {len(known)}",
            help="TENFOLD_CPU_DEVICES=8 gives a process eight CPU devices; see also `tenfold launch`",
        )
    return tuple([known[place] for place in mesh.devices])


@functools.lru_cache(64)
def _local(mesh: Mesh) -> tuple[tuple[int, Any], ...]:
    """The positions in the mesh of this process's own devices, and these."""
    here = xla.client(mesh.platform).client.process_index()
    local = [(i, device) for i, device in enumerate(devices_of(mesh)) if device.process_index == here]
    if not local:
        raise DeviceError("this process has no device of the mesh", help="let every process take part in it")
    return tuple(local)


def local_positions(mesh: Mesh) -> tuple[int, ...]:
    return tuple([position for position, _ in _local(mesh)])


@functools.lru_cache(4096)
def _placed(sharding: Sharding) -> Any:
    """The sharding as jaxlib knows it."""
    xc = xla.jaxlib().xc
    counts, positions = sharding.tiles()
    if sharding.is_replicated:
        tiled = xc.HloSharding.replicate()
    else:
        proto = xc.OpSharding()
        proto.type = xc.OpSharding.Type.OTHER
        copies = counts[-1]
        proto.tile_assignment_dimensions = counts if copies > 1 else counts[:-1]
        proto.tile_assignment_devices = positions
        proto.replicate_on_last_tile_dim = copies > 1
        tiled = xc.HloSharding.from_proto(proto)

    class Placed(xc.GSPMDSharding):  # type: ignore[name-defined]
        memory_kind = None
        on_host = False

        def _to_xla_hlo_sharding(self, rank: int) -> Any:
            return tiled

    placed = Placed(xc.DeviceList(devices_of(sharding.mesh)), tiled)
    placed.sharding = sharding
    return placed


class _Aval:
    """What jaxlib asks about an array over several devices: its `shape` is with padding, `whole` without."""

    weak_type = False
    vma = frozenset[Any]()
    on_host = False
    sharded = True

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype, sharding: Any):
        self.whole, self.dtype, self.sharding = shape, dtype, sharding
        self.shape = sharding.sharding.padded(shape)
        self.ndim, self.size = len(shape), math.prod(self.shape)


def sharding_of(buffer: Any) -> Sharding:
    return buffer.aval.sharding.sharding


def shardings_of(buffers: Sequence[Any]) -> list[Sharding]:
    return [buffer.aval.sharding.sharding for buffer in buffers]


def is_sharded(buffer: Any) -> bool:
    return type(getattr(buffer, "aval", None)) is _Aval


def sharding_if_any(buffer: Any) -> Sharding | None:
    return sharding_of(buffer) if is_sharded(buffer) else None


# Arrays


def put(array: np.ndarray, sharding: Sharding) -> Any:
    """A host array over the devices of a mesh; each process gives its own devices their parts."""
    parts = [array[sharding.index(array.shape, position)] for position, _ in _local(sharding.mesh)]
    return assembled(parts, array.shape, sharding)


def assembled(parts: Sequence[np.ndarray], shape: tuple[int, ...], sharding: Sharding) -> Any:
    """An array of the parts that this process's devices have, in the order of the mesh."""
    j = xla.jaxlib()
    local, extents = [device for _, device in _local(sharding.mesh)], sharding.shard_shape(shape)
    buffers = [
        xla.put_on(_filled_up(np.asarray(part), extents), device)
        for part, device in zip(parts, local, strict=True)
    ]
    placed = _placed(sharding)
    dtype = np.asarray(parts[0]).dtype
    try:
        return j._jax.ArrayImpl(
            _Aval(tuple(shape), dtype, placed), placed, buffers, committed=True, _skip_checks=True
        )
    except Exception as error:
        raise xla.translate(error) from None


def _filled_up(part: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """A part with zeros at its ends where it is smaller than the memory for it."""
    if part.shape == shape:
        return part
    return np.pad(part, [(0, extent - own) for extent, own in zip(shape, part.shape, strict=True)])


def around(buffer: Any, shape: tuple[int, ...], sharding: Sharding) -> Any:
    """An array of which this process's only device of the mesh has a buffer, which it shares."""
    placed = _placed(sharding)
    aval = _Aval(shape, buffer.aval.dtype, placed)
    return xla.jaxlib()._jax.ArrayImpl(aval, placed, [buffer], committed=True, _skip_checks=True)


def own_part(buffer: Any) -> Any:
    """What this process's only device of the mesh has of an array, as a buffer of that device, which shares
    its memory."""
    ((_, device),) = _local(sharding_of(buffer).mesh)
    shape = sharding_of(buffer).shard_shape(buffer.aval.whole)
    return xla.around(buffer._arrays[0], shape, buffer.aval.dtype, device)


def parts_of(buffer: Any) -> list[np.ndarray]:
    """What this process's devices have of an array, in the order of the mesh, without padding."""
    parts = [array._single_device_array_to_np_array_did_copy()[0] for array in buffer._arrays]
    sharding, shape = sharding_of(buffer), buffer.aval.whole
    if sharding.is_even(shape):
        return parts
    indices = [sharding.index(shape, position) for position in local_positions(sharding.mesh)]
    return [
        part[tuple([slice(bounds.stop - bounds.start) for bounds in index])]
        for part, index in zip(parts, indices, strict=True)
    ]


def fetch(buffer: Any) -> np.ndarray:
    """All of an array, from its parts."""
    sharding, shape = sharding_of(buffer), buffer.aval.whole
    try:
        parts = parts_of(buffer)
    except Exception as error:
        raise xla.translate(error) from None
    if sharding.is_replicated:
        return parts[0]
    positions = local_positions(sharding.mesh)
    if len(positions) < sharding.mesh.size:
        there = {str(sharding.index(sharding.parts, i)) for i in positions}
        if len(there) < math.prod(sharding.parts):
            raise EngineError(
                "part of this tensor lies in other processes",
                help="all of them call full_tensor() together; to_local() gives what lies here",
            )
    whole = np.empty(shape, parts[0].dtype)
    for position, part in zip(positions, parts, strict=True):
        whole[sharding.index(shape, position)] = part
    return whole


def copy(buffer: Any) -> Any:
    """The same data in memory of its own, sharded as it is."""
    return assembled(parts_of(buffer), buffer.aval.whole, sharding_of(buffer))


def bytes_here(buffer: Any) -> list[int]:
    """The bytes that each of this process's devices holds of an array, as PJRT counts them."""
    return [array.on_device_size_in_bytes() for array in buffer._arrays]


# Programs


class Executable(xla.Executable):
    """A program over a mesh. XLA says how its results are sharded."""

    __slots__ = ("exchange", "shardings")

    def __init__(self, loaded: Any, module: stablehlo.Module, place: Partitioned, exchange: Any = None):
        self.shardings = _result_shardings(loaded, module, place)
        handler, makers = xla.jaxlib().handler, []
        for type, sharding in zip(module.results, self.shardings, strict=True):
            placed = _placed(sharding)
            makers.append(handler(_Aval(type.shape, type.dtype.numpy, placed), placed, committed=True))
        super().__init__(loaded, makers)
        self.exchange = exchange

    def __call__(self, buffers: Sequence[Any], held: list[Any] | None = None) -> list[Any]:
        if self.exchange is None:
            return super().__call__(buffers, held)
        try:
            return clients.cluster.run(self.exchange, lambda: xla.Executable.__call__(self, buffers, held))
        except EngineError as error:
            raise clients.cluster.translate(error) from None


def _result_shardings(loaded: Any, module: stablehlo.Module, place: Partitioned) -> list[Sharding]:
    """How XLA shards the results: as it is told, where that is said in full. (Over an axis of one device, a
    tensor that is split and one that is replicated look alike to XLA.)"""
    xc, mesh, results = xla.jaxlib().xc, place.mesh, module.results
    protos = loaded.get_output_shardings() or [None] * len(results)
    shardings: list[Sharding] = []
    for i, (proto, type) in enumerate(zip(protos, results, strict=True)):
        told = module.placed[i]
        if told is not None and told.whole is None and None not in told.dims:
            shardings.append(told)
            continue
        if proto is None:
            shardings.append(Sharding.replicated(mesh, type.rank))
            continue
        tiled = xc.HloSharding.from_proto(proto)
        if tiled.is_replicated() or tiled.is_maximal():
            shardings.append(Sharding.replicated(mesh, type.rank))
            continue
        counts, positions = tiled.tile_assignment_dimensions(), tiled.tile_assignment_devices()
        sharding = from_tiles(mesh, type.rank, tuple(counts), tuple(positions))
        if sharding is None:
            raise EngineError(
                f"XLA shards a result as {tiled}, which is no order of the mesh's axes ({mesh})"
            )
        shardings.append(sharding)
    return shardings


# XLA ends a process whose devices wait for each other for 40 s, as they do while another process saves. Who
# waits too long is found out elsewhere: see `processes.py`.
LONG = 7 * 24 * 3600
PATIENCE = {"cpu": [("xla_cpu_collective_call_terminate_timeout_seconds", LONG)]}
COLLECTIVE = re.compile(r"= \S+ (all-|reduce-scatter|collective-|ragged-all)")


def exchange_of(loaded: Any, module: stablehlo.Module, mesh: Mesh) -> Any:
    """What processes compare of a program by which they exchange data; None for one that exchanges none."""
    if clients.cluster is None or not is_shared(mesh):
        return None
    if not any(COLLECTIVE.search(hlo_module.to_string()) for hlo_module in loaded.hlo_modules()):
        return None
    ranks = sorted({device.process_index for device in devices_of(mesh)} - {clients.cluster.rank})
    text = module.text(whole=True)
    main = re.search(r"func.func @main\((.*?)\) -> (.*?) \{\n", text)
    types = re.findall(r"tensor<([^>]*)>", main.group(1)) if main else []
    digest = sha256(text.encode()).hex()
    text = f"one on [{', '.join(types)}]"
    return Program(mesh.devices, ranks, digest, text, always=mesh.platform == "cpu")


def compile(module: stablehlo.Module, place: Partitioned) -> Executable:
    mesh = place.mesh
    client, devices = xla.client(mesh.platform).client, xla.jaxlib().xc.DeviceList(devices_of(mesh))
    options = _options(module, mesh)
    if xla.calls_python(module):
        run = lambda: client.compile_and_load(module.module, devices, options, [kernels.call_python])
    else:
        run = lambda: client.compile_and_load(module.bytecode(), devices, options)
    try:
        (loaded,) = aside(run)
    except Exception as error:
        raise xla.translate(error) from None
    return Executable(loaded, module, place, exchange_of(loaded, module, mesh))


def deserialize(data: bytes, module: stablehlo.Module, place: Partitioned) -> Executable:
    mesh = place.mesh
    devices = xla.jaxlib().xc.DeviceList(devices_of(mesh))
    options = _options(module, mesh)
    try:
        loaded = xla.client(mesh.platform).client.deserialize_executable(data, devices, options)
    except Exception as error:
        raise xla.translate(error) from None
    return Executable(loaded, module, place)


def _options(module: stablehlo.Module, mesh: Mesh) -> Any:
    xc = xla.jaxlib().xc
    options = xc.CompileOptions()
    options.num_partitions, options.num_replicas = mesh.size, 1
    build = options.executable_build_options
    build.use_spmd_partitioning = build.use_shardy_partitioner = True
    build.num_partitions = mesh.size
    build.allow_spmd_sharding_propagation_to_output = [True]
    ids = [device.id for device in devices_of(mesh)]
    assignment = xc.DeviceAssignment.create(np.array([ids], np.int32))
    options.device_assignment = build.device_assignment = assignment
    options.env_option_overrides = [*xla.overrides(mesh.platform, module), *PATIENCE.get(mesh.platform, ())]
    return options


def fingerprint(place: Partitioned) -> str:
    """What a program on this mesh depends on beside its text."""
    return f"{devices_of(place.mesh)} of {xla.client(place.mesh.platform).client.device_count()}"


def is_shared(mesh: Mesh) -> bool:
    """Whether other processes take part in the mesh."""
    return len(_local(mesh)) < mesh.size


def place_of(
    device: Device, trace: Trace, params: Sequence[Sharding], kept: dict[int, Sharding]
) -> Partitioned:
    """How a program on such parameters is sharded; `kept` says how results lie that replace something. What
    was redistributed lies as it was told."""
    results: list[Sharding | None] = []
    for i, (place, index) in enumerate(trace.outputs):
        node_results = (
            trace.nodes[place].callee.fragment.results[index:] if place >= 0 else ()
        )  # a gradient has none
        op = node_results[0].op if node_results else None
        told = op.sharding if isinstance(op, ShardingConstraint) else None
        results.append(kept[i] if i in kept else params[-1 - place] if place < 0 else told)
    return Partitioned(device.mesh, params, results)


clients.meshes = sys.modules[__name__]
