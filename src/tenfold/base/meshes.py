"""Meshes and shardings: which devices a program runs on, and how each array is laid out over them.

A mesh is an array of devices whose dimensions, the axes, have names. A sharding names for each dimension of
an array the axes that split it; over the other axes the array is replicated. These are Shardy's notions, and
its notation.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from tenfold.base.devices import Device
from tenfold.base.errors import ShapeError


class Axis(NamedTuple):
    """An axis of a mesh, or a part of one: of size `size`, after a part of size `before`."""

    name: str
    before: int
    size: int


class Mesh(NamedTuple):
    """Devices of one platform along named axes: in row-major order, the place of each among the devices of
    all processes. Where each process has one, that is its rank."""

    platform: str
    axes: tuple[tuple[str, int], ...]
    devices: tuple[int, ...]
    own: bool = True  # whether they are all of this process

    @property
    def size(self) -> int:
        return len(self.devices)

    def axis(self, name: str) -> Axis:
        return Axis(name, 1, dict(self.axes)[name])

    def coordinate(self, position: int, axis: Axis) -> int:
        """Where along an axis the device at a position of the mesh is."""
        stride = 1
        for name, size in reversed(self.axes):
            if name == axis.name:
                place = position // stride % size
                return place // (size // (axis.before * axis.size)) % axis.size
            stride *= size
        raise KeyError(axis.name)

    @property
    def text(self) -> str:
        """The mesh as Shardy writes it."""
        axes = ", ".join(f'"{name}"={size}' for name, size in self.axes)
        return f"<[{axes}]>"

    def __str__(self) -> str:
        return ", ".join(f"{name}={size}" for name, size in self.axes)


Dimension = tuple[Axis, ...] | None  # None: left to the partitioner


class Sharding:
    """How an array lies on a mesh: for each dimension the axes that split it, the outermost first. Over the
    others it is replicated; or, where `whole` names axes, over those, and the rest is left to the
    partitioner. Equal shardings are one object."""

    __slots__ = ("dims", "mesh", "whole")
    _interned: ClassVar[dict[Any, Sharding]] = {}
    mesh: Mesh
    dims: tuple[Dimension, ...]
    whole: tuple[str, ...] | None

    def __new__(cls, mesh: Mesh, dims: Sequence[Dimension], whole: tuple[str, ...] | None = None) -> Sharding:
        key = (mesh, tuple(dims), whole)
        found = cls._interned.get(key)
        if found is None:
            found = object.__new__(cls)
            found.mesh, found.dims, found.whole = key
            found = cls._interned.setdefault(key, found)
        return found

    @classmethod
    def replicated(cls, mesh: Mesh, rank: int) -> Sharding:
        return cls(mesh, ((),) * rank)

    @property
    def is_replicated(self) -> bool:
        return all(not axes for axes in self.dims)

    @property
    def parts(self) -> tuple[int, ...]:
        """Into how many parts each dimension is split."""
        return tuple([math.prod([axis.size for axis in axes or ()]) for axes in self.dims])

    def is_even(self, shape: Sequence[int]) -> bool:
        """Whether all devices have parts of one shape."""
        return not any(extent % parts for extent, parts in zip(shape, self.parts, strict=True))

    def check_even(self, shape: Sequence[int]) -> None:
        for dim, (extent, parts) in enumerate(zip(shape, self.parts, strict=True)):
            if extent % parts:
                raise ShapeError(
                    f"dimension {dim} of size {extent} cannot be split evenly over {parts} devices",
                    help="shard another dimension, pad this one, or replicate the tensor",
                )

    def shard_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of the memory that each device has for its part. Where the devices do not divide a
        dimension, the first ones fill it, and the others have padding."""
        return tuple([-(-extent // parts) for extent, parts in zip(shape, self.parts, strict=True)])

    def padded(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of an array with the devices' padding."""
        return tuple([extent * n for extent, n in zip(self.shard_shape(shape), self.parts, strict=True)])

    def index(self, shape: Sequence[int], position: int) -> tuple[slice, ...]:
        """Which part of an array the device at a position of the mesh has, without padding: each axis splits
        what the one before it has left, as `torch.chunk` does. The last devices may have none."""
        bounds = []
        for axes, extent in zip(self.dims, shape, strict=True):
            start, stop = 0, extent
            for axis in axes or ():
                start, stop = _chunk(start, stop, axis.size, self.mesh.coordinate(position, axis))
            bounds.append(slice(start, stop))
        return tuple(bounds)

    def tiles(self) -> tuple[list[int], list[int]]:
        """XLA's form of it: the number of tiles in each dimension, with one more that counts replicas; and
        the positions of the devices, tile by tile."""
        parts = self.parts
        copies = self.mesh.size // math.prod(parts)
        tiles: dict[tuple[int, ...], list[int]] = {}
        for position in range(self.mesh.size):
            place = tuple([each.start for each in self.index(parts, position)])
            tiles.setdefault(place, []).append(position)
        return [*parts, copies], [position for place in sorted(tiles) for position in tiles[place]]

    def with_batch(self) -> Sharding:
        """The sharding of a stack of such arrays."""
        return Sharding(self.mesh, (None, *self.dims), self.whole)

    @property
    def text(self) -> str:
        """The dimensions as Shardy writes them."""
        sizes = dict(self.mesh.axes)
        dims = ", ".join([_dimension_text(axes, sizes, self.whole is not None) for axes in self.dims])
        whole = ", ".join([f'"{name}"' for name in self.whole or ()])
        return f"[{dims}]" + (f", replicated={{{whole}}}" if whole else "")

    def __repr__(self) -> str:
        return self.text.replace('"', "")


def _chunk(start: int, stop: int, count: int, place: int) -> tuple[int, int]:
    """The bounds of one of so many parts of a stretch, as `torch.chunk` splits it."""
    size = -(-(stop - start) // count)
    return min(start + place * size, stop), min(start + (place + 1) * size, stop)


def stretches(extent: int, axes: tuple[Axis, ...]) -> list[tuple[int, int, int]]:
    """Where a dimension that axes split lies in an array with padding: stretches without any, each by its
    start there, its start without padding, and its size."""
    parts = [(0, extent)]
    for axis in axes:
        parts = [_chunk(*part, axis.size, place) for part in parts for place in range(axis.size)]
    room = -(-extent // len(parts))
    found: list[tuple[int, int, int]] = []
    for i, (start, stop) in enumerate(parts):
        if found and sum(found[-1][::2]) == i * room:
            before, first, size = found.pop()
            found.append((before, first, size + stop - start))
        elif start < stop:
            found.append((i * room, start, stop - start))
    return found


def _dimension_text(axes: Dimension, sizes: dict[str, int], is_open: bool) -> str:
    named = [_axis_text(axis, sizes) for axis in axes or ()]
    return "{" + ", ".join(named + ["?"] * (is_open or axes is None)) + "}"


def _axis_text(axis: Axis, sizes: dict[str, int]) -> str:
    whole = axis.size == sizes[axis.name]
    return f'"{axis.name}"' if whole else f'"{axis.name}":({axis.before}){axis.size}'


class MeshDevice(Device):
    """All devices of a mesh as one place: what lies there is sharded over them, or replicated."""

    __slots__ = ("mesh",)
    _meshes: ClassVar[dict[Mesh, MeshDevice]] = {}
    mesh: Mesh

    def __new__(cls, mesh: Mesh) -> MeshDevice:
        found = cls._meshes.get(mesh)
        if found is None:
            found = object.__new__(cls)
            found.type, found.index, found.mesh = mesh.platform, None, mesh
            found = cls._meshes.setdefault(mesh, found)
        return found

    @property
    def resolved(self) -> Device:
        return self

    def __str__(self) -> str:
        return f"{self.type} mesh ({self.mesh})"

    def __repr__(self) -> str:
        return f"device(type={self.type!r}, mesh=({self.mesh}))"

    def __reduce__(self) -> tuple[Any, ...]:
        return Device, (self.type,)  # elsewhere there may be no such mesh: what is saved is whole


class Partitioned(Device):
    """A mesh, and how the arguments of one program lie on it, and the results where that is prescribed."""

    __slots__ = ("mesh", "params", "results")
    mesh: Mesh
    params: tuple[Sharding, ...]
    results: tuple[Sharding | None, ...]

    def __new__(
        cls, mesh: Mesh, params: Sequence[Sharding], results: Sequence[Sharding | None]
    ) -> Partitioned:
        made = object.__new__(cls)
        made.type, made.index, made.mesh = mesh.platform, None, mesh
        made.params, made.results = tuple(params), tuple(results)
        return made

    @property
    def resolved(self) -> Device:
        return MeshDevice(self.mesh)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Partitioned) and (self.mesh, self.params, self.results) == (
            other.mesh,
            other.params,
            other.results,
        )

    def __hash__(self) -> int:
        return hash((self.mesh, self.params, self.results))


@functools.lru_cache(4096)
def from_tiles(mesh: Mesh, rank: int, counts: tuple[int, ...], positions: tuple[int, ...]) -> Sharding | None:
    """The sharding that XLA describes by tiles; None where no order of axes or of their parts gives it."""
    factors = _factors(mesh)
    copies = math.prod(counts[rank:])
    place_of: dict[int, list[int]] = {}
    for i, position in enumerate(positions):
        tile, rest = i // copies, []
        for count in reversed(counts[:rank]):
            rest.append(tile % count)
            tile //= count
        place_of[position] = rest[::-1]
    dims: list[Dimension] = []
    for dim in range(rank):
        axes = _matching(mesh, factors, [place_of[p][dim] for p in range(mesh.size)], counts[dim])
        if axes is None:
            return None
        dims.append(axes)
    return Sharding(mesh, dims)


def _factors(mesh: Mesh) -> list[Axis]:
    """The smallest parts of the axes: of prime sizes."""
    found = []
    for name, size in mesh.axes:
        before, rest = 1, size
        while rest > 1:
            prime = next(each for each in range(2, rest + 1) if rest % each == 0)
            found.append(Axis(name, before, prime))
            before, rest = before * prime, rest // prime
    return found


def _matching(mesh: Mesh, factors: list[Axis], places: list[int], count: int) -> tuple[Axis, ...] | None:
    """The axes along which an array's parts follow one another: `places` has the part at each position."""
    axes: list[Axis] = []
    while count > 1:
        for axis in factors:
            if axis in axes or count % axis.size:
                continue
            block = count // axis.size
            if all(place // block % axis.size == mesh.coordinate(p, axis) for p, place in enumerate(places)):
                axes.append(axis)
                count = block
                break
        else:
            return None
    return _merged(mesh, axes)


def _merged(mesh: Mesh, axes: list[Axis]) -> tuple[Axis, ...]:
    """Neighbouring parts of one axis as one."""
    found: list[Axis] = []
    for axis in axes:
        last = found[-1] if found else None
        if last is not None and last.name == axis.name and last.before * last.size == axis.before:
            found[-1] = Axis(axis.name, last.before, last.size * axis.size)
        else:
            found.append(axis)
    return tuple(found)
