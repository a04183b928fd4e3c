"""`DTensor`: a Tensor on a mesh. It is recorded, differentiated and compiled like any other. Its sharding is
a property of its data; XLA decides the sharding of computed tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold.autograd.grad_mode import no_grad
from tenfold.base.devices import Device
from tenfold.base.errors import ArgumentError, UnknownName, located
from tenfold.base.meshes import Sharding
from tenfold.distributed.device_mesh import DeviceMesh
from tenfold.distributed.tensor.edges import data_at, from_parts, part_here
from tenfold.distributed.tensor.placements import Placement, Replicate, placements_of, sharding_by
from tenfold.tensor import Tensor, leaf, sharding
from tenfold.tensor.dispatch import aten

__all__ = [
    "DTensor", "distribute_module", "distribute_tensor", "empty", "full", "ones", "rand", "randn", "zeros",
]  # fmt: skip


class _OnMesh(type):
    """The type of DTensor: a Tensor is one if it is on a mesh."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and _is_on_mesh(instance)

    def __subclasscheck__(cls, other: type) -> bool:
        return other is cls or issubclass(other, Tensor)


class DTensor(metaclass=_OnMesh):
    """A tensor on a mesh, as a type for `isinstance`, and where PyTorch has `from_local`."""

    @staticmethod
    @located
    def from_local(
        local_tensor: Tensor,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        run_check: bool = False,
        shape: Any = None,
        stride: Any = None,
    ) -> Tensor:
        """Make a DTensor from the part `local_tensor` of each process. A process with several devices passes
        the parts of all of them together. If the parts differ in shape, `shape` is that of the whole."""
        if device_mesh is None:
            raise ArgumentError("a mesh is needed", help="give device_mesh")
        chosen = _chosen(device_mesh, placements)
        return from_parts(local_tensor, device_mesh, chosen, None if shape is None else tuple(shape))


def _is_on_mesh(tensor: Tensor) -> bool:
    """Whether a tensor is on a mesh; one without data, whether it will be."""
    device = tensor._value.device
    return device.mesh is not None or (device.type == "meta" and "_placed" in vars(tensor))


def _chosen(mesh: DeviceMesh, placements: Sequence[Placement] | None) -> list[Placement]:
    if placements is None:
        return [Replicate()] * mesh.ndim
    return [placements] if isinstance(placements, Placement) else list(placements)


@located
def distribute_tensor(
    tensor: Tensor,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> Tensor:
    """Shard a tensor over a mesh. The result is a leaf, which requires gradients if the tensor does.

    If there are several processes, the data are those of the one at index `src_data_rank` along each
    dimension of the mesh. With None, each process gives its devices their parts of its own data."""
    if device_mesh is None:
        raise ArgumentError("a mesh is needed", help="give device_mesh, from init_device_mesh")
    chosen = _chosen(device_mesh, placements)
    if isinstance(tensor, DTensor):
        if tensor.device is not device_mesh.device:
            raise ArgumentError("the tensor is on another mesh", help="distribute tensor.full_tensor()")
        return _redistribute(tensor)(device_mesh, chosen)
    if tensor.requires_grad and not tensor.is_leaf:
        raise ArgumentError(
            "only a leaf is distributed, and this tensor was computed from others that require gradients",
            help="use DTensor.from_local, through which gradients flow, or distribute tensor.detach()",
        )
    placed = sharding_by(device_mesh, chosen, tensor.ndim)
    data = tensor
    if src_data_rank is not None and not device_mesh.root.own:
        data = data_at(tensor, device_mesh.root, _position(device_mesh, src_data_rank))
    made = sharding.put(data._host(), tensor.current().type, placed)
    return made.requires_grad_(tensor.requires_grad)


def _position(mesh: DeviceMesh, place: int) -> int:
    """The position in the whole mesh of the device at a place along each of these dimensions, and at the
    first along the others."""
    if not all(0 <= place < size for size in mesh.shape):
        raise ArgumentError(f"src_data_rank {place} is not a place along each dimension of {mesh}")
    position, names = 0, [axis.name for axis in mesh.axes]
    for name, size in mesh.root.axes:
        position = position * size + (place if name in names else 0)
    return position


def distribute_module(
    module: Any,
    device_mesh: DeviceMesh | None = None,
    partition_fn: Callable[[str, Any, DeviceMesh], None] | None = None,
    input_fn: Callable[..., Any] | None = None,
    output_fn: Callable[..., Any] | None = None,
) -> Any:
    """Move the parameters and buffers of a module to a mesh. Those that `partition_fn(name, module, mesh)`
    does not place are replicated."""
    if device_mesh is None:
        raise ArgumentError("a mesh is needed", help="give device_mesh")
    for name, each in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, each, device_mesh)
    move_to_mesh(module, device_mesh, lambda name, tensor: [Replicate()] * device_mesh.ndim)
    if input_fn is not None:
        module.register_forward_pre_hook(lambda owner, inputs: input_fn(owner, inputs, device_mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda owner, inputs, outputs: output_fn(owner, outputs, device_mesh))
    return module


def move_to_mesh(module: Any, mesh: DeviceMesh, choose: Callable[[str, Tensor], Sequence[Placement]]) -> None:
    """Give all parameters and buffers of a module that are on no mesh yet the placements that `choose` says.
    They stay the same objects: an optimizer that has them goes on with them."""
    for name, each in [*module.named_parameters(), *module.named_buffers()]:
        if not isinstance(each, DTensor):
            place(each, sharding_by(mesh, choose(name, each), each.ndim))


def place(tensor: Tensor, placed: Sharding) -> None:
    """Move a leaf's data onto a mesh, or over a mesh that it is on, in place. One without data, on the meta
    device, is to lie so when it gets some."""
    if tensor._value.device.type == "meta":
        vars(tensor)["_placed"] = placed
        return
    moved = _moved(tensor, placed)
    gradient, tensor.grad = tensor.grad, None
    tensor.become(moved.current(), None)
    vars(tensor)["_placed"] = placed
    if gradient is not None:
        tensor.grad = _moved(gradient, placed)


def _moved(tensor: Tensor, placed: Sharding) -> Tensor:
    if tensor._value.device.mesh != placed.mesh:
        return sharding.put(tensor._host(), tensor.current().type, placed)
    with no_grad():
        return sharding.constrain(tensor.detach(), placed).eval()


def _created(name: str) -> Callable[..., Tensor]:
    def create(
        *size: Any, device_mesh: DeviceMesh, placements: Any = None, dtype: Any = None, **more: Any
    ) -> Any:
        value = more.pop("fill_value", None)
        arguments = size if value is None else (*size, value)
        plain = aten(name)(*arguments, **({} if dtype is None else {"dtype": dtype}))
        made = distribute_tensor(plain, device_mesh, placements)
        return made.requires_grad_(bool(more.get("requires_grad")))

    create.__name__ = name
    create.__doc__ = f"`tenfold.{name}` on a mesh."
    return create


zeros, ones, full, empty = (_created(name) for name in ("zeros", "ones", "full", "empty"))
rand, randn = _created("rand"), _created("randn")


# What a Tensor has on a mesh


def _known(tensor: Tensor) -> Sharding:
    """How a tensor is sharded; one that is yet to be computed is computed."""
    if tensor._value.device.type == "meta":
        return vars(tensor)["_placed"]
    found = sharding.sharding_of(tensor._computed())
    assert found is not None
    return found


def mesh_of(tensor: Tensor) -> DeviceMesh:
    root = tensor._value.device.mesh or vars(tensor)["_placed"].mesh
    return DeviceMesh(root.platform, None, _root=root).whole


def _placements(tensor: Tensor) -> tuple[Placement, ...]:
    """What each dimension of the mesh does with the tensor."""
    return placements_of(_known(tensor), mesh_of(tensor))


def _redistribute(tensor: Tensor) -> Callable[..., Tensor]:
    @located
    def redistribute(
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        async_op: bool = False,
        forward_dtype: Any = None,
        backward_dtype: Any = None,
    ) -> Tensor:
        """The same tensor with other placements: XLA moves what has to move."""
        mesh = mesh_of(tensor) if device_mesh is None else device_mesh
        chosen = _chosen(mesh, placements)
        if mesh.root != tensor._value.device.mesh:
            raise ArgumentError("the tensor is on another mesh", help="distribute tensor.full_tensor()")
        before = sharding.sharding_of(tensor._value)
        return sharding.constrain(tensor, sharding_by(mesh, chosen, tensor.ndim), before)

    return redistribute


def _full_tensor(tensor: Tensor) -> Callable[..., Tensor]:
    @located
    def full_tensor(*, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """All of the tensor, as a plain one. All processes of the mesh call this together."""
        mesh = mesh_of(tensor)
        placed = Sharding.replicated(mesh.root, tensor.ndim)
        before = _known(tensor)
        whole = tensor if before.is_replicated else sharding.constrain(tensor, placed, before)
        return part_here(whole, placed, grad_placements, mesh)

    return full_tensor


def _to_local(tensor: Tensor) -> Callable[..., Tensor]:
    @located
    def to_local(*, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """What this process has of the tensor, as a plain one: of several devices' parts, what they are
        together."""
        return part_here(tensor, _known(tensor), grad_placements, mesh_of(tensor))

    return to_local


def _local_shards(tensor: Tensor) -> Callable[[], list[Tensor]]:
    def local_shards() -> list[Tensor]:
        """What each of this process's devices has of the tensor."""
        from tenfold.engines import sharded

        _known(tensor)
        return [
            leaf(np.array(each), Device("cpu"), tensor.dtype) for each in sharded.parts_of(tensor._buffer())
        ]

    return local_shards


def _only_on_mesh(read: Callable[[Tensor], Any], name: str) -> property:
    def get(tensor: Tensor) -> Any:
        if not _is_on_mesh(tensor):
            raise UnknownName(
                f"a tensor that is not on a mesh has no {name}",
                help="distributed.tensor.distribute_tensor puts it on one",
            )
        return read(tensor)

    return property(get, doc=read.__doc__)


for _name, _read in {
    "device_mesh": mesh_of,
    "placements": _placements,
    "redistribute": _redistribute,
    "full_tensor": _full_tensor,
    "to_local": _to_local,
    "local_shards": _local_shards,
}.items():
    setattr(Tensor, _name, _only_on_mesh(_read, _name))
