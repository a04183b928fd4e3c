"""`export`: exports a model or a function, for example arguments, as a module of a chosen dialect."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

import numpy as np

from tenfold import flat
from tenfold.base.dim import Dim
from tenfold.base.dtypes import as_dtype
from tenfold.base.errors import ArgumentError, FormatError, did_you_mean, located
from tenfold.base.garbage import uncollected
from tenfold.compiler import uncompiled
from tenfold.exporting import untrusted
from tenfold.exporting.dimensions import SymbolicType
from tenfold.exporting.recordings import Record, Recordings
from tenfold.flat.ir import Function, TensorType, replay
from tenfold.flat.merging import merged_functions
from tenfold.flat.structured import Check
from tenfold.mlir import open_stablehlo, portable, stablehlo
from tenfold.runtime import evaluate
from tenfold.runtime.calls import record_call
from tenfold.runtime.plan import memory_of
from tenfold.serialize.atomic import replacing
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten
from tenfold.tensor.dynamic import call_dimensions
from tenfold.tensor.symbolic import Symbolic
from tenfold.trace import tree
from tenfold.trace.collect import Trace
from tenfold.trace.context import context
from tenfold.trace.graph import Value
from tenfold.trace.lower import lower
from tenfold.trace.numbers import Numbers
from tenfold.trace.record import Recording

DIALECTS = ("torch", "stablehlo", "linalg", "tosa")
PARAMETERS = ("arguments", "literals")
# What a file's name says of its form.
FORMS = {".mlir": "text", ".mlirbc": "bytecode", ".stablehlo": "portable", ".vmfb": "build"}


def form_of(name: str) -> str:
    """The form that the name of a file asks for."""
    form = FORMS.get(os.path.splitext(name)[1])
    if form is None:
        raise ArgumentError(
            f"the name of {name!r} does not say which form to write",
            help="end it in .mlir for text, .mlirbc for bytecode, .stablehlo for the portable artifact, "
            ".vmfb for a program compiled by IREE",
        )
    return form


class Exported:
    """A program as an MLIR module with a function `main`.

    `inputs` are the types of the arguments, in the order of the call, and `outputs` those of the results.
    After the inputs, `main` takes `parameters`, in order, unless they are literals of the module. After the
    results, it returns the tensors that the function changes, which `writes` names.
    """

    def __init__(
        self,
        module: Any,
        dialect: str,
        inputs: Sequence[TensorType | SymbolicType],
        outputs: Sequence[TensorType | SymbolicType],
        parameters: dict[str, Tensor],
        writes: Sequence[str],
        dimensions: dict[str, Dim],
    ):
        self.module = module
        self.dialect = dialect
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.parameters = parameters
        self.writes = tuple(writes)
        self.dimensions = dimensions

    def text(self, locations: bool = False, whole: bool = False) -> str:
        """The module as text. Long constants are shown only by their types, unless `whole` is set."""
        return self.module.text(locations=locations, whole=whole)

    def bytecode(self) -> bytes:
        """The module as MLIR bytecode, which is smaller; it can be read by the same version of MLIR."""
        if self.dialect != "stablehlo":
            return self.module.bytecode()
        data = portable.bytecode(self.module)
        untrusted.remember(data)
        return data

    @located
    def portable(self) -> bytes:
        """The module as StableHLO's portable artifact, which later versions can read."""
        if self.dialect != "stablehlo":
            raise ArgumentError(
                f"only StableHLO has a portable artifact, and this module is {self.dialect}",
                help="export(..., dialect='stablehlo'), or save the text or the bytecode",
            )
        data = portable.serialize(self.module)
        untrusted.remember(data)
        return data

    @located
    def build(self, *, target: str = "cpu", processor: str = "host") -> bytes:
        """Compile the program with IREE, and return a `.vmfb` for the target "cpu", "vmvx" (a portable
        bytecode) or "cuda". On a CPU, it may use all instructions of the `processor`, by default this
        machine's; "generic" runs on every processor."""
        from tenfold.engines import iree

        further = [parameter.current().type for parameter in self.parameters.values()]
        about = {
            "inputs": [str(type) for type in (*self.inputs, *further)],
            "outputs": [str(output) for output in self.outputs],
            "parameters": list(self.parameters),
            "dimensions": {name: dim.constraints for name, dim in self.dimensions.items()},
        }
        data = self.module.bytecode()
        built = iree.compile(data, self.dialect, target=target, processor=processor, about=about)
        untrusted.remember(built)
        return built

    @located
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file: text to `.mlir`, bytecode to `.mlirbc`, the portable artifact to `.stablehlo`, or a
        program that IREE compiled for this machine to `.vmfb`."""
        name = os.fspath(path)
        form = form_of(name)
        data = self.text(whole=True).encode() if form == "text" else getattr(self, form)()
        try:
            with replacing(name) as file:
                file.write(data)
        except OSError as error:
            raise FormatError(
                f"{name} cannot be written: {error.strerror}", help="name a file in a folder that is there"
            ) from None
        if self.dialect == "stablehlo" or form == "build":
            untrusted.remember(data, on_disk=True)

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        """What a notebook shows: the text of the module, folded."""
        from tenfold.base.notebooks import program_html

        return program_html(repr(self).strip("<>"), self.text())

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
    """Export a model or function, recorded on example arguments, as a module for other compilers.

    `dialect` is "torch" (which torch-mlir and IREE read), "stablehlo" (from Tenfold's own lowerings), or
    "linalg" or "tosa" (by torch-mlir's pipelines). Tensors that the function reads from outside, such as a
    model's parameters, become additional arguments, or literals with `parameters="literals"`. Tensors that it
    writes become additional results; numbers that it returns become tensors without dimensions. With
    `value_tensors=False`, the tensors of the torch dialect are `!torch.tensor`. Checks that Tenfold makes
    while a program runs, for example of indices, are left out, since these dialects have none.

    `dynamic` opens dimensions, by the position or the name of an argument: `{"x": {0: "batch"}}`. A `Dim`
    instead of a name also gives the range of sizes. The program is recorded at several sizes, and refused if
    it is not the same program at all of them. It is valid up to the largest of these sizes: the `max` of a
    `Dim`, or else some hundreds, as `dimensions` of the result says.

        exported = tenfold.export(model, (x,), dialect="stablehlo", parameters="literals")
        exported.save("model.stablehlo")
    """
    if not callable(function):
        raise ArgumentError(f"takes a model or a function, not {type(function).__name__}")
    _require("dialect", dialect, DIALECTS)
    _require("parameters", parameters, PARAMETERS)
    if not isinstance(kwargs or {}, Mapping):
        raise ArgumentError(f"kwargs holds arguments by name, and is no {type(kwargs).__name__}")
    arguments = args if isinstance(args, (tuple, list)) else (args,)
    function = uncompiled(function)
    stand_ins, record = recorder_of(function, (tuple(arguments), kwargs or {}))
    open = call_dimensions(dynamic, function, arguments, kwargs or {}) if dynamic else {}
    recordings = Recordings(
        record, stand_ins, open, lambda: members_of(function), dialect, sized=dialect != "stablehlo"
    )
    outside = recordings.program.leaves[len(stand_ins) :]
    literals = {
        leaf: evaluate.computed_array(leaf)
        for leaf, holder in zip(outside, recordings.holders, strict=True)
        if parameters == "literals" or holder is None
    }
    return _emitted(recordings, len(stand_ins), literals, dialect, value_tensors)


def _emitted(
    recordings: Recordings,
    arguments: int,
    literals: dict[Value, np.ndarray],
    dialect: str,
    value_tensors: bool,
) -> Exported:
    """The module of what was recorded on these arguments, with literals in place of some leaves."""
    program = recordings.program
    inputs, outside = program.leaves[:arguments], program.leaves[arguments:]
    outputs = recordings.outputs
    module: Any
    if dialect == "stablehlo":
        with uncollected():
            module, outputs, used = _stablehlo(recordings, [literals.get(leaf) for leaf in outside])
        taken = [leaf for leaf, is_used in zip(outside, used, strict=True) if is_used]
    else:
        from tenfold.mlir import torch_dialect

        emitted = torch_dialect.emit(
            program,
            literals=literals,
            value_tensors=value_tensors,
            kept=inputs,
            symbols=recordings.symbols(),
            numbers=len(recordings.numbers),
            annotated=dialect == "torch",
        )
        module = emitted if dialect == "torch" else emitted.lowered(dialect)
        taken = emitted.functions["main"][0]
    input_types = [recordings.named(input_type.type) for input_type in inputs]
    further = {
        name: Tensor(leaf).detach()
        for name, leaf in zip(names_of(recordings), outside, strict=True)
        if leaf in taken and leaf not in literals
    }
    if dialect == "stablehlo" and recordings.dims:
        takes = [*input_types, *[leaf.current().type for leaf in further.values()]]
        demands = {name: dim.constraints for name, dim in recordings.dims.items()}
        portable.describe(module, list(map(str, takes)), demands)
    types = [program.type_of(*output) for output in program.outputs]
    count, written = len(recordings.first.returned), _written(recordings)
    return Exported(
        module,
        dialect,
        input_types,
        [recordings.named(types[recordings.outputs.index(i)]) for i in outputs],
        further,
        [written[i - count] for i in outputs if i >= count],
        recordings.dims,
    )


def recorder_of(function: Callable[..., Any], call: tuple[Any, Any]) -> tuple[list[Tensor], Record]:
    """The tensors of a call, each another, and what records the function on others in their places."""
    arrays: list[Any] = []
    tree.flatten(call, lambda value: isinstance(value, np.ndarray), arrays)
    if arrays:
        raise ArgumentError(
            "an argument is an array of NumPy's, which would be a constant of the module",
            help="give a tensor: tenfold.from_numpy(x)",
        )
    originals: list[Tensor] = []
    structure = tree.flatten(call, lambda value: isinstance(value, Tensor), originals)

    def record(tensors: Sequence[Tensor], taken: Mapping[int, int] | None = None) -> Recording:
        args, kwargs = tree.unflatten(structure, iter(tensors))
        outer, context.exporting = context.exporting, True
        try:
            return record_call(
                lambda *a, **k: _of_tensors(function(*a, **k)), args, kwargs, Tensor, numbers=Numbers(taken)
            ).recording
        finally:
            context.exporting = outer

    return [_apart(tensor, originals[:i]) for i, tensor in enumerate(originals)], record


def names_of(recordings: Recordings) -> list[str]:
    """What each tensor from outside is called: as in the model, or by a number."""
    return [recordings.members.get(id(holder), f"outside{i}") for i, holder in enumerate(recordings.holders)]


def _written(recordings: Recordings) -> list[str]:
    """What each result after those that are returned is written to."""
    recorded = recordings.first
    return [
        *[recordings.members.get(id(root), "state") for root in recorded.outside_writes],
        *[f"argument {i}" for i in recorded.argument_writes],
        *["gradient"] * len(recorded.gradients.made),
    ]


def _stablehlo(
    recordings: Recordings, literals: Sequence[np.ndarray | None]
) -> tuple[stablehlo.Module, list[int], list[bool]]:
    """The program by Tenfold's own lowerings, merged anew where sizes are open; which outputs it gives, and
    which tensors from outside it takes. Written tensors that come out as they went in are left out: a
    generator that nothing was drawn from."""
    functions, outputs, used = [], recordings.outputs, [True] * len(literals)
    for program in recordings.programs[: recordings.common]:
        function = lower(program)
        same = set(function.params)
        results = dict(zip(recordings.outputs, function.results, strict=True))
        outputs = [i for i in outputs if i < len(recordings.first.returned) or results[i] not in same]
        kept = Function(function.params, [results[i] for i in outputs], function.name)
        count = len(program.leaves) - len(literals)
        read = {operand for op in kept.ops for operand in op.operands} | set(kept.results)
        used = [param in read for param in kept.params[count:]]
        data = dict(zip(program.leaves[count:], literals, strict=True))
        taken = [*program.leaves[:count], *itertools.compress(program.leaves[count:], used)]
        functions.append(_written_into(kept, program, data, taken))
    if not recordings.dims:
        return stablehlo.emit(functions[0]), outputs, used
    merged = merged_functions(functions, recordings.described)
    return open_stablehlo.emit(merged, list(recordings.symbols(common=True))), outputs, used


def _of_tensors(result: Any) -> Any:
    """What a function returns with tensors without dimensions in the place of numbers."""
    numbers: list[Any] = []
    structure = tree.flatten(
        result, lambda value: isinstance(value, (int, float, complex, np.generic)), numbers
    )
    plain = [number.item() if isinstance(number, np.generic) else number for number in numbers]
    tensors = [
        leaf.tensor if type(leaf) is Symbolic else aten("full")((), leaf, dtype=as_dtype(type(leaf)))
        for leaf in plain
    ]
    return tree.unflatten(structure, iter(tensors))


def _require(what: str, argument: object, known: Sequence[str]) -> None:
    if argument not in known:
        nearest = did_you_mean(argument, known) if isinstance(argument, str) else None
        raise ArgumentError(
            f"there is no {what} {argument!r}", help=nearest or f"it is one of {', '.join(known)}"
        )


def _apart(tensor: Tensor, before: Sequence[Tensor]) -> Tensor:
    """The tensor; if it was given before, another one with the same data: each argument is one of its own."""
    return Tensor(tensor.current()) if any(leaf is tensor for leaf in before) else tensor


def members_of(function: Any) -> dict[int, str]:
    """What a model calls the memory of its parameters and buffers, by identity."""
    members: list[tuple[str, Any]] = []
    for kind in ("named_parameters", "named_buffers"):
        members += getattr(function, kind)() if hasattr(function, kind) else []
    return {id(memory_of(tensor)): name for name, tensor in members}


def _written_into(
    function: Function,
    program: Trace,
    literals: Mapping[Value, np.ndarray | None],
    taken: Container[Value],
) -> Function:
    """The function with literals in the place of parameters, without run-time checks, and without parameters
    that are not `taken`."""
    params, values = [], {}
    for leaf, param in zip(program.leaves, function.params, strict=True):
        literal = literals.get(leaf)
        if literal is not None:
            values[param] = flat.constant(literal, param.dtype)
        elif leaf in taken:
            values[param] = flat.Value(param.type)
            params.append(values[param])
    for op in function.ops:
        if isinstance(op, Check):
            values[op.result] = values.get(op.x, op.x)
        else:
            replay([op], values)
    return Function(params, [values.get(result, result) for result in function.results], function.name)
