"""`torch._utils`, as far as libraries use it: several tensors as one, for sending them at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tenfold.base.dtypes import DType
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten


def _flatten_dense_tensors(tensors: Iterable[Tensor]) -> Tensor:
    """One vector of all numbers of some tensors."""
    return aten("cat")([each.contiguous().reshape(-1) for each in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """Views of a vector in the shapes of some tensors, one after the other."""
    views, start = [], 0
    for each in tensors:
        size = each.numel()
        views.append(flat.narrow(0, start, size).view(each.shape))
        start += size
    return tuple(views)


def _take_tensors(tensors: Sequence[Tensor], size_limit: int) -> Iterator[list[Tensor]]:
    """Groups of tensors of one type, each of at most `size_limit` bytes unless a single tensor has more."""
    groups: dict[str, tuple[list[Tensor], int]] = {}
    for each in tensors:
        kind, size = str(each.type()), each.numel() * each.element_size()
        group, total = groups.get(kind, ([], 0))
        if group and total + size > size_limit:
            yield group
            group, total = [], 0
        groups[kind] = ([*group, each], total + size)
    for group, _ in groups.values():
        if group:
            yield group


def _reorder_tensors_as(tensors: Iterable[Tensor], ordered_tensors: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """Tensors that are ordered within each type, in the order in which others of these types stand."""
    queues: dict[str, list[Tensor]] = {}
    for each in tensors:
        queues.setdefault(str(each.type()), []).append(each)
    return tuple([queues[str(each.type())].pop(0) for each in ordered_tensors])


def _element_size(dtype: DType) -> int:
    """How many bytes a number of a dtype takes."""
    return dtype.itemsize
