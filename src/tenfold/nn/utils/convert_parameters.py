"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from tenfold.base.errors import DeviceError, ShapeError, located
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten


@located
def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Concatenate all elements of the parameters into one vector."""
    held = list(parameters)
    if len({each.device for each in held}) > 1:
        raise DeviceError("the parameters are on several devices", help="move the module to one first")
    return aten("cat")([each.reshape(-1) for each in held])


@located
def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Make parameters consecutive views of a vector, which share its memory."""
    held = list(parameters)
    wanted = sum(each.numel() for each in held)
    if vec.ndim != 1 or vec.numel() < wanted:
        raise ShapeError(f"the parameters need a vector of {wanted} elements, not {vec.current().type}")
    begin = 0
    for each in held:
        count = each.numel()
        each.data = vec.data[begin : begin + count].view(tuple(each.shape))
        begin += count
