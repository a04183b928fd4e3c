"""A function or a model, recorded on example inputs, as TorchScript of libtorch's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.base.errors import ArgumentError, UnsupportedError
from tenfold.compiler import uncompiled
from tenfold.exporting.exported import members_of, names_of, recorder_of
from tenfold.exporting.recordings import Recordings
from tenfold.func.recorded import is_tensor
from tenfold.runtime import evaluate
from tenfold.tensor import Tensor
from tenfold.trace import tree

if TYPE_CHECKING:
    from tenfold.engines.libtorch_script import Script

__all__ = ["scripted"]


def scripted(function: Callable[..., Any], args: Sequence[Any]) -> Script:
    """The function as a TorchScript module whose `forward` takes such arguments. A model's parameters and
    buffers are the module's, by the same names."""
    from tenfold.engines import libtorch_script

    structures: list[Any] = []

    def noting(*arguments: Any) -> Any:
        result = function(*arguments)
        structures.append(tree.flatten(result, is_tensor, []))
        return result

    function = uncompiled(function)
    stand_ins, record = recorder_of(noting, (tuple(args), {}))
    _require_tensors(args)
    recordings = Recordings(record, stand_ins, {}, lambda: members_of(function), "torch")
    _require_no_writes(recordings)
    program = recordings.program
    trained = {name for name, _ in getattr(function, "named_parameters", list)()}
    outside = []
    for leaf, name, holder in zip(
        program.leaves[len(stand_ins) :], names_of(recordings), recordings.holders, strict=True
    ):
        known = None if holder is None or name.startswith("outside") else name
        outside.append(libtorch_script.Outside(known, evaluate.computed_array(leaf), name in trained))
    places = [recordings.outputs.index(i) for i in range(len(recordings.first.returned))]
    return libtorch_script.traced(
        program,
        [_arrays(arg) for arg in args],
        outside,
        lambda outputs: tree.unflatten(structures[0], iter([outputs[i] for i in places])),
    )


def _arrays(argument: Any) -> Any:
    """The argument with arrays in the place of its tensors."""
    tensors: list[Tensor] = []
    structure = tree.flatten(argument, is_tensor, tensors)
    return tree.unflatten(structure, iter([np.asarray(tensor.detach().numpy()) for tensor in tensors]))


def _require_tensors(args: Sequence[Any]) -> None:
    def check(value: Any) -> None:
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, (list, tuple)):
            for part in value:
                check(part)
        elif not isinstance(value, Tensor):
            raise ArgumentError(
                f"an example input is a {type(value).__name__}, and TorchScript traces tensors",
                help="make it a tensor, or bind it: trace(lambda x: f(x, 3), (x,))",
            )

    check(list(args))


def _require_no_writes(recordings: Recordings) -> None:
    recorded = recordings.first
    if recorded.outside_writes or recorded.argument_writes:
        names = [recordings.members.get(id(root), "a tensor") for root in recorded.outside_writes]
        raise UnsupportedError(
            f"the traced function writes to {', '.join(names) or 'its arguments'}, which no trace keeps",
            help="call eval() on the model first: layers such as batch norm write while they train",
        )
