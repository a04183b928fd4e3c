"""Gradients of plain parameters, which each process computes for its own batch, brought together once a
backward pass has accumulated them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold.autograd.grad_mode import no_grad
from tenfold.autograd.sweep import once_accumulated
from tenfold.base.devices import Device
from tenfold.base.errors import ShapeError, UnsupportedError
from tenfold.base.meshes import Sharding
from tenfold.distributed.device_mesh import DeviceMesh
from tenfold.distributed.tensor.edges import stacked
from tenfold.runtime import evaluate
from tenfold.tensor import Tensor, leaf, sharding
from tenfold.tensor.dispatch import aten
from tenfold.trace.context import context


def when_accumulated(
    parameters: Sequence[Tensor], key: object, action: Callable[[Sequence[Tensor]], None]
) -> None:
    """Call this at the end of each backward pass that has reached some of the parameters, with these."""
    reached: list[Tensor] = []

    def finish() -> None:
        found = list(reached)
        reached.clear()
        action(found)

    def notice(parameter: Tensor) -> None:
        reached.append(parameter)
        once_accumulated(key, finish)

    for each in parameters:
        if each.requires_grad:
            each.register_post_accumulate_grad_hook(notice)


def outside_of_compiled(what: str, help: str) -> None:
    """Raise where a function is being recorded: data of other processes comes between compiled functions."""
    if context.recorder is not None:
        raise UnsupportedError(f"{what} inside of a compiled function", help=help)


def averaged(gradients: Sequence[Tensor], mesh: DeviceMesh, placed: Sequence[Sharding]) -> list[Tensor]:
    """The mean over all processes of what each has, sharded over a mesh of one device of each: one program
    for all of them."""
    evaluate.evaluate([gradient.current() for gradient in gradients])
    results = []
    with no_grad():
        for gradient, target in zip(gradients, placed, strict=True):
            mean = aten("mean")(stacked(gradient, mesh), (0,))
            results.append(sharding.constrain(mean, target))
    evaluate.evaluate([result.current() for result in results])
    return results


def averaged_if_any(
    tensors: Sequence[Tensor],
    reached: Sequence[bool],
    mesh: DeviceMesh,
    placed: Sequence[Sharding],
    dtype: Any = None,
) -> list[Tensor | None]:
    """The means over all processes of the gradients of tensors, of which a backward pass has reached some
    here. A gradient that a process does not have counts as zero; one that no process has reached is None. So
    all run one program, whatever each has reached."""
    with no_grad():
        used = leaf(np.array(reached, np.float32), Device("cpu"))
        gradients = [aten("zeros_like")(tensor) if tensor.grad is None else tensor.grad for tensor in tensors]
        if dtype is not None:
            gradients = [gradient.to(dtype) for gradient in gradients]
        shares, *means = averaged([used, *gradients], mesh, [Sharding.replicated(mesh.root, 1), *placed])
        found = zip(means, shares.to_local().tolist(), strict=True)
        return [mean if share else None for mean, share in found]


def average_in_place(
    parameters: Sequence[Tensor], reached: Sequence[Tensor], mesh: DeviceMesh, scale: float = 1.0
) -> None:
    """Let the gradients of plain parameters be the means over all processes, scaled, after a backward pass
    that has reached these here. That of a parameter which no process has reached stays what it is."""
    trained = [each for each in parameters if each.requires_grad]
    here = {id(each) for each in reached}
    whole = [Sharding.replicated(mesh.root, each.ndim) for each in trained]
    means = averaged_if_any(trained, [id(each) in here for each in trained], mesh, whole)
    for parameter, mean in zip(trained, means, strict=True):
        if mean is not None:
            local: Tensor = mean.to_local() if scale == 1.0 else mean.to_local() * scale
            parameter.grad = local if local.device is parameter.device else local.to(parameter.device)


class GradBucket:
    """Gradients of one dtype, as a flat tensor that a communication hook combines."""

    def __init__(self, index: int, parameters: Sequence[Tensor], gradients: Sequence[Tensor], is_last: bool):
        self._index, self._parameters, self._is_last = index, list(parameters), is_last
        self._buffer = aten("cat")([gradient.reshape((-1,)) for gradient in gradients])

    def index(self) -> int:
        return self._index

    def buffer(self) -> Tensor:
        """All gradients, concatenated."""
        return self._buffer

    def set_buffer(self, buffer: Tensor) -> None:
        self._buffer = buffer

    def gradients(self) -> list[Tensor]:
        """The gradient of each parameter, as a view of the buffer."""
        return parts_of(self._buffer, self._parameters)

    def parameters(self) -> list[Tensor]:
        return list(self._parameters)

    def is_last(self) -> bool:
        """Whether no other bucket of this backward pass follows."""
        return self._is_last


def parts_of(flat: Tensor, parameters: Sequence[Tensor]) -> list[Tensor]:
    """A flat tensor in parts of the shapes of parameters."""
    sizes = [parameter.numel() for parameter in parameters]
    if sum(sizes) != flat.numel():
        raise ShapeError(f"a communication hook gives {flat.numel()} elements for {sum(sizes)}")
    return [
        part.reshape(parameter.shape) for part, parameter in zip(flat.split(sizes), parameters, strict=True)
    ]


def combine_by_hook(
    parameters: Sequence[Tensor],
    reached: Sequence[Tensor],
    total: Callable[[Tensor], Tensor],
    hook: Callable[[GradBucket], Any],
) -> None:
    """Let gradients be what a communication hook makes of those of all processes. `total` adds up a tensor
    over these: the gradient of a parameter which no process has reached stays what it is."""
    trained = [each for each in parameters if each.requires_grad]
    here = {id(each) for each in reached}
    with no_grad():
        used = total(leaf(np.array([id(each) in here for each in trained], np.float32), Device("cpu")))
        by_dtype: dict[Any, list[Tensor]] = {}
        counts = {id(each): count for each, count in zip(trained, used.tolist(), strict=True)}
        for each in trained:
            by_dtype.setdefault(each.dtype, []).append(each)
        for index, members in enumerate(by_dtype.values()):
            gradients = [aten("zeros_like")(each) if each.grad is None else each.grad for each in members]
            combined = hook(GradBucket(index, members, gradients, index == len(by_dtype) - 1)).wait()
            flat = combined[0] if isinstance(combined, (list, tuple)) else combined
            for parameter, gradient in zip(members, parts_of(flat, members), strict=True):
                if counts[id(parameter)]:
                    parameter.grad = gradient.to(parameter.dtype).clone()


def from_first(tensors: Sequence[Tensor], mesh: DeviceMesh, place: int = 0) -> None:
    """Let tensors be what the mesh's first process has, or another: one program for all of them."""
    with no_grad():
        chosen = []
        for tensor in tensors:
            whole = Sharding.replicated(mesh.root, tensor.ndim)
            chosen.append(sharding.constrain(stacked(tensor, mesh)[place], whole))
        evaluate.evaluate([each.current() for each in chosen])
        for tensor, first in zip(tensors, chosen, strict=True):
            local: Tensor = first.to_local()
            tensor.copy_(local)


def plain(tensor: Tensor) -> Tensor:
    """All of a tensor on a mesh as a plain one, on this process's own device."""
    whole = sharding.constrain(tensor.detach(), Sharding.replicated(tensor._value.device.mesh, tensor.ndim))
    return leaf(np.array(whole._host()), Device(tensor.device.type), tensor.dtype)
