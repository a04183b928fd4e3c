"""`DeviceMesh`: devices in an array whose dimensions have names, over which tensors are sharded."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold.base.devices import Device
from tenfold.base.errors import ArgumentError, DeviceError, located
from tenfold.base.meshes import Axis, Mesh, MeshDevice
from tenfold.tensor import Tensor, leaf

__all__ = ["DeviceMesh", "init_device_mesh"]

before_mesh: list[Callable[[], None]] = []  # called before the devices of a new mesh are counted


class DeviceMesh:
    """A mesh of devices, or some dimensions of one. `mesh["model"]` has only that dimension: a tensor that is
    sharded over it is replicated over the others."""

    def __init__(
        self,
        device_type: str,
        mesh: Any,
        *,
        mesh_dim_names: Sequence[str] | None = None,
        _root: Mesh | None = None,
        _names: tuple[str, ...] = (),
    ):
        if _root is None:
            places = np.asarray(mesh._host() if isinstance(mesh, Tensor) else mesh)
            _names = _checked_names(mesh_dim_names, places.ndim)
            if len(set(places.ravel().tolist())) < places.size:
                raise ArgumentError(f"a device is in the mesh twice: {places.tolist()}")
            axes = tuple(zip(_names, places.shape, strict=True))
            _root = Mesh(device_type, axes, tuple(places.ravel().tolist()), _are_own(device_type, places))
        self.device_type = device_type
        self.root = _root
        self._names = _names
        self._named = mesh_dim_names is not None

    @property
    def mesh_dim_names(self) -> tuple[str, ...] | None:
        return self._names if self._named else None

    @property
    def axes(self) -> tuple[Axis, ...]:
        return tuple([self.root.axis(name) for name in self._names])

    @property
    def whole(self) -> DeviceMesh:
        """The mesh with all its dimensions."""
        names = tuple([name for name, _ in self.root.axes])
        named = None if all(name == f"dim{i}" for i, name in enumerate(names)) else names
        return DeviceMesh(self.device_type, None, mesh_dim_names=named, _root=self.root, _names=names)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple([axis.size for axis in self.axes])

    @property
    def ndim(self) -> int:
        return len(self._names)

    @property
    def device(self) -> Device:
        """All its devices as the place where its tensors are."""
        return MeshDevice(self.root)

    @property
    def mesh(self) -> Tensor:
        """The indices of the devices among those of all processes. For some dimensions of a mesh, these are
        the devices beside this process."""
        places = np.array(self.root.devices, np.int64).reshape([size for _, size in self.root.axes])
        here = self._position()
        index = tuple(
            [
                slice(None) if name in self._names else self.root.coordinate(here, self.root.axis(name))
                for name, _ in self.root.axes
            ]
        )
        return leaf(np.ascontiguousarray(places[index]), Device("cpu"))

    def row(self) -> DeviceMesh:
        """The mesh of the devices at this process's coordinates along this one: over the other dimensions."""
        root, here = self.root, self._position()
        names = [name for name, _ in root.axes if name not in self._names]
        devices = [
            device
            for position, device in enumerate(root.devices)
            if all(root.coordinate(position, axis) == root.coordinate(here, axis) for axis in self.axes)
        ]
        shape = [root.axis(name).size for name in names]
        return DeviceMesh(self.device_type, np.array(devices).reshape(shape), mesh_dim_names=names)

    def size(self, mesh_dim: int | None = None) -> int:
        return math.prod(self.shape) if mesh_dim is None else self.shape[mesh_dim]

    def __len__(self) -> int:
        return self.size()

    @located
    def __getitem__(self, mesh_dim_names: str | Sequence[str]) -> DeviceMesh:
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        unknown = [name for name in names if name not in self._names]
        if unknown or not self._named:
            known = ", ".join(self._names) if self._named else "none: it was made without mesh_dim_names"
            raise ArgumentError(
                f"the mesh has no dimension {(unknown or names)[0]!r}", help=f"its names are {known}"
            )
        return self.dimensions(names)

    def dimensions(self, names: Sequence[str]) -> DeviceMesh:
        """The mesh with these of its dimensions alone."""
        named = names if self._named else None
        return DeviceMesh(self.device_type, None, mesh_dim_names=named, _root=self.root, _names=tuple(names))

    def get_coordinate(self) -> list[int]:
        """The coordinates of this process along each dimension; if it has several devices, those of the
        first."""
        here = self._position()
        return [self.root.coordinate(here, axis) for axis in self.axes]

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        if mesh_dim is None:
            if self.ndim > 1:
                raise ArgumentError(
                    "a mesh of several dimensions has a rank along each", help="give mesh_dim"
                )
            mesh_dim = 0
        place = self._names.index(mesh_dim) if isinstance(mesh_dim, str) else mesh_dim
        return self.get_coordinate()[place]

    def get_rank(self) -> int:
        """The rank of this process among all."""
        from tenfold.engines import xla

        rank: int = xla.client(self.device_type).client.process_index()
        return rank

    def _position(self) -> int:
        from tenfold.engines import sharded

        return sharded.local_positions(self.root)[0]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceMesh) and (self.root, self._names) == (other.root, other._names)

    def __hash__(self) -> int:
        return hash((self.root, self._names))

    def __repr__(self) -> str:
        axes = ", ".join(f"{name}={size}" for name, size in zip(self._names, self.shape, strict=True))
        return f"DeviceMesh(({axes}), {self.device_type!r})"


@located
def init_device_mesh(
    device_type: str, mesh_shape: Sequence[int], *, mesh_dim_names: Sequence[str] | None = None
) -> DeviceMesh:
    """Make a mesh of this shape over the devices of all processes, in order.

    `TENFOLD_CPU_DEVICES=8`, set before the first result, gives one process eight CPU devices.
    """
    shape = tuple(mesh_shape)
    if not shape or any(not isinstance(each, int) or each < 1 for each in shape):
        raise ArgumentError(f"a mesh's shape is of positive sizes, not {mesh_shape!r}")
    _checked_names(mesh_dim_names, len(shape))
    from tenfold.engines import xla

    for action in before_mesh:
        action()
    if device_type not in ("cpu", "cuda"):
        raise DeviceError(f"there is no mesh of {device_type!r} devices", help='use "cpu" or "cuda"')
    present = len(xla.client(device_type).client.devices())
    count = math.prod(shape)
    if count > present:
        name = "TENFOLD_CPU_DEVICES" if device_type == "cpu" else "CUDA_VISIBLE_DEVICES"
        raise DeviceError(
            f"a mesh of shape {list(shape)} takes {count} {device_type} devices; there are {present}",
            help=f"set {name} before the program starts, or start more processes with `tenfold launch`",
        )
    return DeviceMesh(device_type, np.arange(count).reshape(shape), mesh_dim_names=mesh_dim_names)


def _are_own(device_type: str, places: np.ndarray) -> bool:
    from tenfold.engines import xla

    client = xla.client(device_type).client
    here, devices = client.process_index(), client.devices()
    own = {place for place, device in enumerate(devices) if device.process_index == here}
    return own.issuperset(places.ravel().tolist())


def _checked_names(names: Sequence[str] | None, count: int) -> tuple[str, ...]:
    if names is None:
        return tuple([f"dim{i}" for i in range(count)])
    if len(names) != count or len(set(names)) != count:
        raise ArgumentError(f"{count} different mesh_dim_names are needed, not {list(names)}")
    return tuple(names)
