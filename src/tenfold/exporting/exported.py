"""`export`: a model or a function, on arguments like the given, as a module of a chosen dialect."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold import flat
from tenfold.errors import ArgumentError, UnsupportedError, did_you_mean, located
from tenfold.flat.graph import Function, TensorType, replay
from tenfold.flat.structured import Check
from tenfold.mlir import portable, stablehlo
from tenfold.runtime import evaluate, tree
from tenfold.runtime.compile import Recorded, trace
from tenfold.serialize.atomic import replacing
from tenfold.tensor import Tensor
from tenfold.trace.graph import Program, Value
from tenfold.trace.lower import lower

DIALECTS = ("torch", "stablehlo", "linalg", "tosa")
PARAMETERS = ("arguments", "literals")
# What a file's name says of its form.
FORMS = {".mlir": "text", ".mlirbc": "bytecode", ".stablehlo": "portable"}


class Exported:
    """A program as a module of MLIR, whose function is `main`.

    `inputs` are the types of the arguments, in the order of the call, and `outputs` those of the results.
    After the inputs `main` takes `parameters`, by name and in order, unless they were written into the
    module. After the results it gives what `writes` names: tensors that the function changes.
    """

    def __init__(
        self,
        module: Any,
        dialect: str,
        inputs: Sequence[TensorType],
        outputs: Sequence[TensorType],
        parameters: dict[str, Tensor],
        writes: Sequence[str],
    ):
        self.module = module
        self.dialect = dialect
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.parameters = parameters
        self.writes = tuple(writes)

    def text(self, locations: bool = False, whole: bool = False) -> str:
        """The module as text; of long constants only their types, unless `whole`."""
        return self.module.text(locations=locations, whole=whole)

    def bytecode(self) -> bytes:
        """The module as MLIR bytecode, which is smaller and read by the same version of MLIR."""
        return self.module.bytecode()

    @located
    def portable(self) -> bytes:
        """The module as StableHLO's portable artifact, which later versions read, too."""
        if self.dialect != "stablehlo":
            raise ArgumentError(
                f"only StableHLO has a portable artifact, and this module is {self.dialect}",
                help="export(..., dialect='stablehlo'), or save the text or the bytecode",
            )
        return portable.serialize(self.module)

    @located
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file: text to `.mlir`, bytecode to `.mlirbc`, the portable artifact to `.stablehlo`."""
        name = os.fspath(path)
        form = FORMS.get(os.path.splitext(name)[1])
        if form is None:
            raise ArgumentError(
                f"the name of {name!r} does not say which form to write",
                help="end it in .mlir for text, .mlirbc for bytecode, .stablehlo for the portable artifact",
            )
        data = self.text(whole=True).encode() if form == "text" else getattr(self, form)()
        with replacing(name) as file:
            file.write(data)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        takes = ", ".join(map(str, self.inputs))
        gives = ", ".join(map(str, self.outputs))
        return f"<Exported {self.dialect}: ({takes}) -> ({gives}), {len(self.parameters)} parameters>"


@located
def export(
    function: Callable[..., Any],
    args: Any = (),
    kwargs: dict[str, Any] | None = None,
    *,
    dialect: str = "torch",
    parameters: str = "arguments",
    value_tensors: bool = True,
    dynamic: Any = None,
) -> Exported:
    """A model or function, recorded on arguments like these, as a module for other compilers.

    `dialect` is "torch" (which torch-mlir and IREE read), "stablehlo" (from Tenfold's own lowerings), or
    "linalg" or "tosa" (by torch-mlir's pipelines). Tensors that the function reads from outside, such as a
    model's parameters, become further arguments or literals in the module. Tensors that it writes are further
    results. With `value_tensors=False` the torch dialect's tensors are `!torch.tensor`. Checks that Tenfold
    makes while a program runs, as of indices, are left out: these dialects have none.

        exported = tenfold.export(model, (x,), dialect="stablehlo", parameters="literals")
        exported.save("model.stablehlo")
    """
    if not callable(function):
        raise ArgumentError(f"takes a model or a function, not {type(function).__name__}")
    _require("dialect", dialect, DIALECTS)
    _require("parameters", parameters, PARAMETERS)
    if dynamic:
        raise UnsupportedError(
            "dynamic dimensions are not supported: a program is recorded for the sizes of its arguments",
            help="leave dynamic out, and export once for each size",
        )
    arguments = args if isinstance(args, (tuple, list)) else (args,)
    given: list[Tensor] = []
    structure = tree.flatten((tuple(arguments), kwargs or {}), lambda each: isinstance(each, Tensor), given)
    distinct = [_apart(each, given[:i]) for i, each in enumerate(given)]
    call_args, call_kwargs = tree.unflatten(structure, iter(distinct))
    inner = getattr(function, "function", function)  # of a compiled function, what it was made from
    recorded = trace(inner, call_args, call_kwargs, Tensor)
    program, inputs, outside = _arranged(recorded, distinct)
    names = _names(function, recorded, outside)
    literals = {leaf: evaluate.computed_array(leaf) for leaf in outside} if parameters == "literals" else {}
    taken, outputs = program.leaves, program.outputs
    if dialect == "stablehlo":
        with evaluate.uncollected():
            module: Any = stablehlo.emit(_written_into(lower(program), program, literals))
    else:
        from tenfold.mlir import torch_dialect

        emitted = torch_dialect.emit(program, literals=literals, value_tensors=value_tensors, kept=inputs)
        module = emitted if dialect == "torch" else emitted.lowered(dialect)
        taken, outputs = emitted.functions["main"]
    written = [names.get(id(root), "state") for root in recorded.writes]
    written += [f"argument {i}" for i in recorded.argument_writes]
    written += ["gradient"] * len(recorded.gradients.made)
    given_back = [i for i, each in enumerate(program.outputs) if each in outputs]
    return Exported(
        module,
        dialect,
        [each.type for each in inputs],
        [recorded.result_types[i] for i in given_back],
        {names[id(leaf)]: Tensor(leaf) for leaf in outside if leaf in taken and leaf not in literals},
        [written[i - recorded.count] for i in given_back if i >= recorded.count],
    )


def _require(what: str, given: object, known: Sequence[str]) -> None:
    if given not in known:
        nearest = did_you_mean(given, known) if isinstance(given, str) else None
        raise ArgumentError(
            f"there is no {what} {given!r}", help=nearest or f"it is one of {', '.join(known)}"
        )


def _apart(tensor: Tensor, before: Sequence[Tensor]) -> Tensor:
    """The tensor, or where it was given before, another that holds the same: each argument is its own."""
    return Tensor(tensor.current()) if any(each is tensor for each in before) else tensor


def _arranged(recorded: Recorded, given: Sequence[Tensor]) -> tuple[Program, list[Value], list[Value]]:
    """The program with its leaves in order: all arguments, used or not, then those from outside."""
    program = recorded.program
    used = {each: leaf for each, leaf in zip(recorded.inputs, program.leaves) if type(each) is int}
    arguments = [
        used[i] if i in used else Value(each.current().type, each.current().device)
        for i, each in enumerate(given)
    ]
    outside = [leaf for each, leaf in zip(recorded.inputs, program.leaves) if type(each) is not int]
    leaves = arguments + outside
    places = {leaf: i for i, leaf in enumerate(leaves)}
    outputs = [
        (place, index) if place >= 0 else (-1 - places[program.leaves[-1 - place]], 0)
        for place, index in program.outputs
    ]
    return Program(program.nodes, leaves, outputs, program.key, program.device), arguments, outside


def _names(function: Any, recorded: Recorded, outside: Sequence[Value]) -> dict[int, str]:
    """What to call each leaf from outside, and each memory, by identity: as the model does, or by number."""
    members: list[tuple[str, Any]] = []
    for kind in ("named_parameters", "named_buffers"):
        members += getattr(function, kind)() if hasattr(function, kind) else []
    known = {id(_memory(tensor)): name for name, tensor in members}
    names = dict(known)
    holders = [each for each in recorded.inputs if type(each) is not int]
    for i, (leaf, holder) in enumerate(zip(outside, holders, strict=True)):
        names[id(leaf)] = known.get(id(holder), f"outside{i}")
    return names


def _memory(tensor: Tensor) -> Any:
    """What a recorded program reads a tensor from: the memory that it is all of, or itself."""
    alias = tensor._alias
    return tensor if alias is None or alias.steps else alias.storage


def _written_into(function: Function, program: Program, literals: dict[Value, np.ndarray]) -> Function:
    """The function with literals in the place of parameters, and without run-time checks."""
    params, values = [], {}
    for leaf, param in zip(program.leaves, function.params, strict=True):
        if leaf in literals:
            values[param] = flat.constant(literals[leaf], param.dtype)
        else:
            values[param] = flat.Value(param.type)
            params.append(values[param])
    for op in function.ops:
        if isinstance(op, Check):
            values[op.result] = values.get(op.x, op.x)
        else:
            replay([op], values)
    return Function(params, [values.get(each, each) for each in function.results], function.name)
