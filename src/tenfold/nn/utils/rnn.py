"""Sequences of different lengths: padded to one, packed without padding, and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tenfold.base import dtypes
from tenfold.base.devices import Device
from tenfold.base.errors import ArgumentError, ShapeError, located, unknown_name
from tenfold.tensor import Tensor, leaf
from tenfold.tensor.dispatch import aten


class _Packed(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Packed):
    """Sequences without padding: the first element of each, then the second of each that has one, and so on.

    batch_sizes are the numbers of sequences at each step. The sequences are sorted by length, and
    unsorted_indices restores their original order.
    """

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes.device.type != "cpu":
            raise ArgumentError("batch_sizes are on the CPU", help="use batch_sizes.cpu()")
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The same sequences in another dtype or on another device."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        moved = [None if each is None else each.to(data.device) for each in self[2:]]
        return PackedSequence(data, self.batch_sizes, *moved)

    def cpu(self) -> PackedSequence:
        return self.to("cpu")

    def cuda(self, device: Any = None) -> PackedSequence:
        return self.to(device or "cuda")

    def pin_memory(self) -> PackedSequence:
        order = [None if each is None else each.pin_memory() for each in self[2:]]
        return PackedSequence(self.data.pin_memory(), self.batch_sizes, *order)

    def is_pinned(self) -> bool:
        return self.data.is_pinned()

    def double(self) -> PackedSequence:
        return self.to(dtypes.float64)

    def float(self) -> PackedSequence:
        return self.to(dtypes.float32)

    def half(self) -> PackedSequence:
        return self.to(dtypes.float16)

    def long(self) -> PackedSequence:
        return self.to(dtypes.int64)

    def int(self) -> PackedSequence:
        return self.to(dtypes.int32)

    def short(self) -> PackedSequence:
        return self.to(dtypes.int16)

    def char(self) -> PackedSequence:
        return self.to(dtypes.int8)

    def byte(self) -> PackedSequence:
        return self.to(dtypes.uint8)

    @property
    def is_cuda(self) -> bool:
        return self.data.is_cuda


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The inverse of a permutation."""
    return None if permutation is None else _indices(np.argsort(permutation._host()), permutation.device)


def _indices(array: Any, device: Any) -> Tensor:
    return leaf(np.ascontiguousarray(array, np.int64), device)


@located
def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Packs padded sequences (T, N, *), or with batch_first (N, T, *).

    Unless enforce_sorted is False, the lengths must be in decreasing order.
    """
    host = np.array(lengths.tolist() if isinstance(lengths, Tensor) else list(lengths), np.int64)
    if batch_first:
        input = input.transpose(0, 1)
    if host.ndim != 1 or len(host) != input.shape[1]:
        raise ShapeError(f"a batch of {input.shape[1]} has as many lengths, not {host.shape}")
    if len(host) == 0 or host.min() <= 0:
        raise ArgumentError("every sequence has at least one element: lengths are positive")
    if host.max() > input.shape[0]:
        raise ShapeError(f"the input has {input.shape[0]} steps, and lengths go up to {host.max()}")
    order = None
    if not enforce_sorted:
        by_length = np.argsort(-host, kind="stable")
        order, host = _indices(by_length, input.device), host[by_length]
        input = input.index_select(1, order)
    elif (np.diff(host) > 0).any():
        raise ArgumentError("lengths are not in decreasing order", help="pass enforce_sorted=False")
    sizes = [int((host > step).sum()) for step in range(int(host.max()))]
    data = aten("cat")([input[step, :count] for step, count in enumerate(sizes)], 0)
    return PackedSequence(data, _indices(sizes, Device("cpu")), order)


@located
def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Returns packed sequences padded to one length, (T, N, *) or with batch_first (N, T, *), and lengths."""
    sizes = np.array(sequence.batch_sizes.tolist())
    if total_length is not None and total_length < len(sizes):
        raise ArgumentError(f"total_length {total_length} is less than the longest, {len(sizes)}")
    begins = np.concatenate([[0], np.cumsum(sizes)])
    steps = [
        _extended(sequence.data[int(begins[i]) : int(begins[i + 1])], int(sizes[0]), padding_value)
        for i in range(len(sizes))
    ]
    padded = aten("stack")(steps, 0)
    if total_length is not None:
        padded = _extended(padded, total_length, padding_value)
    lengths = (sizes[None, :] > np.arange(sizes[0])[:, None]).sum(1)
    if sequence.unsorted_indices is not None:
        padded = padded.index_select(1, sequence.unsorted_indices)
        lengths = lengths[sequence.unsorted_indices._host()]
    return (padded.transpose(0, 1) if batch_first else padded), _indices(lengths, Device("cpu"))


def _extended(tensor: Tensor, length: int, value: float, before: bool = False) -> Tensor:
    """The tensor with its first dimension padded to a length."""
    missing = length - tensor.shape[0]
    if not missing:
        return tensor
    size = (missing, *tuple(tensor.shape)[1:])
    rest = aten("full")(size, value, dtype=tensor.dtype, device=tensor.device)
    return aten("cat")([rest, tensor] if before else [tensor, rest], 0)


@located
def pad_sequence(
    sequences: Iterable[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Pad sequences (L, *) of several lengths into one tensor (T, N, *), or with batch_first (N, T, *)."""
    held = list(sequences)
    if not held:
        raise ArgumentError("at least one sequence is needed")
    if padding_side not in ("left", "right"):
        raise ArgumentError(f"padding_side is left or right, not {padding_side!r}")
    longest = max(each.shape[0] for each in held)
    padded = [_extended(each, longest, padding_value, padding_side == "left") for each in held]
    return aten("stack")(padded, 0 if batch_first else 1)


@located
def unpad_sequence(padded_sequences: Tensor, lengths: Any, batch_first: bool = False) -> list[Tensor]:
    """The sequences that pad_sequence padded, as a list."""
    counts = lengths.tolist() if isinstance(lengths, Tensor) else list(lengths)
    batch = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [batch[i, :count] for i, count in enumerate(counts)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Packs sequences (L, *) of several lengths."""
    lengths = [sequence.shape[0] for sequence in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


@located
def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences of a PackedSequence, as a list."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


def __getattr__(name: str) -> Any:
    raise unknown_name("tenfold.nn.utils.rnn", name, globals())
