"""`torch.export.export` and `ExportedProgram`: a module recorded as a graph of ATen calls."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tenfold.base.dim import Dim as Dimension
from tenfold.base.errors import ArgumentError, TenfoldError, UnsupportedError, located
from tenfold.compat.export.dimensions import Wishes, said_of
from tenfold.compat.export.graphs import built
from tenfold.compat.export.signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from tenfold.compat.overloads import namespace
from tenfold.exporting.dimensions import SymbolicType, check
from tenfold.exporting.exported import members_of
from tenfold.exporting.recordings import Recordings
from tenfold.fx.graph import Graph
from tenfold.fx.graph_module import GraphModule
from tenfold.fx.interpreter import Interpreter
from tenfold.fx.node import Node
from tenfold.nn.module import Module
from tenfold.runtime.calls import record_call
from tenfold.tensor import Tensor
from tenfold.tensor.dynamic import call_dimensions
from tenfold.trace import tree
from tenfold.trace.context import context
from tenfold.trace.numbers import Numbers
from tenfold.trace.record import Recording

__all__ = ["ExportedModule", "ExportedProgram", "export"]


class ExportedProgram:
    """A module that was recorded on arguments: `module()` runs it, `graph_module.code` shows it.

    The graph takes the module's parameters and buffers, then the user's tensors, and is pure: what the module
    writes are its first results. `state_dict` are the module's own tensors, `constants` others that it used.
    """

    def __init__(
        self,
        graph_module: GraphModule,
        signature: ExportGraphSignature,
        state_dict: dict[str, Any],
        constants: dict[str, Tensor],
        types: Sequence[Any],
        dimensions: Mapping[str, Dimension],
        structures: tuple[Any, Any],
        example_inputs: Any,
    ):
        self.graph_module = graph_module
        self.graph_signature = signature
        self.state_dict = state_dict
        self.constants = self.tensor_constants = constants
        self.example_inputs = example_inputs
        self.types = tuple(types)  # of the user's tensors
        self.dimensions = dict(dimensions)
        self.structures = structures  # of the arguments and of what is returned
        self.dialect = "ATEN"

    @property
    def graph(self) -> Graph:
        return self.graph_module.graph

    @property
    def range_constraints(self) -> dict[str, str]:
        """What is demanded of each open size, in words."""
        return {name: dim.demands for name, dim in self.dimensions.items()}

    def named_parameters(self) -> Iterator[tuple[str, Any]]:
        for name in self.graph_signature.parameters:
            yield name, self.state_dict[name]

    def parameters(self) -> Iterator[Any]:
        for _, parameter in self.named_parameters():
            yield parameter

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        for name in self.graph_signature.buffers:
            yield name, self.state_dict[name] if name in self.state_dict else self.constants[name]

    def buffers(self) -> Iterator[Tensor]:
        for _, buffer in self.named_buffers():
            yield buffer

    def module(self, check_guards: bool = True) -> ExportedModule:
        """The program as a module with the same arguments and results. It refuses arguments of other sizes,
        dtypes or structure than it was exported for."""
        return ExportedModule(self)

    @located
    def run_decompositions(
        self, decomp_table: Mapping[Any, Callable[..., Any]] | None = None, **options: Any
    ) -> ExportedProgram:
        """The program with the functions of a table in the place of calls. Without a table it stays as it is:
        each op is one that Tenfold lowers by itself."""
        table = dict(decomp_table or {})
        if not table:
            return self
        module = self.module()

        class Replaced(Interpreter):
            def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
                return super().call_function(table.get(target, target), args, kwargs)

        args, kwargs = self.example_inputs
        again = _Replayed(module, Replaced(module, graph=module.graph))
        return _exported(again, args, kwargs, self._open_by_tensor(), members=module)

    def _open_by_tensor(self) -> dict[int, dict[int, Dimension]]:
        return {
            place: {
                axis: self.dimensions[size] for axis, size in enumerate(type.shape) if isinstance(size, str)
            }
            for place, type in enumerate(self.types)
            if isinstance(type, SymbolicType)
        }

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Unable to call ExportedProgram directly. You should use `exported_program.module()` instead."
        )

    def __str__(self) -> str:
        code = textwrap.indent(self.graph_module.print_readable(print_output=False), "    ")
        signature = textwrap.indent(str(self.graph_signature).strip(), "    ")
        ranges = "".join([f"\n    {name}: {words}" for name, words in self.range_constraints.items()])
        parts = (
            "ExportedProgram:",
            code,
            "Graph signature:",
            signature,
            f"Range constraints:{ranges or ' none'}",
        )
        return "\n".join([*parts, ""])


class ExportedModule(GraphModule):
    """A module that runs an exported program on the tensors that it was exported with."""

    def __init__(self, program: ExportedProgram):
        self.__dict__["_program"] = program
        graph, targets = _unlifted(program)
        super().__init__({name: _tensor_of(program, name) for name in targets}, graph)

    def recompile(self) -> Any:
        code = super().recompile()
        run = type(self).forward
        type(self).forward = lambda self, *args, **kwargs: _called(self, run, args, kwargs)  # type: ignore[method-assign]
        return code

    def train(self, mode: bool = True) -> Any:
        raise UnsupportedError(
            "an exported program is for training or not, as the module was when it was exported",
            help="export the module again, after train() or eval()",
        )

    def eval(self) -> Any:
        return self.train(False)


def _called(module: ExportedModule, run: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    program: ExportedProgram = module.__dict__["_program"]
    taken, given = program.structures
    names = list(program.example_inputs[1])
    if set(names) == set(kwargs):  # whose order is no matter
        kwargs = {name: kwargs[name] for name in names}
    tensors: list[Tensor] = []
    structure = tree.flatten((args, kwargs), lambda each: isinstance(each, Tensor), tensors)
    if structure != taken:
        path, was, now = tree.difference(taken, structure)
        place = "".join([f"[{each!r}]" for each in path[1:]])
        raise ArgumentError(
            f"the arguments{place} are {now}, and the program was exported for {was}",
            help="call it with arguments like those that it was exported with",
        )
    check(program.types, [tensor.current().type for tensor in tensors], program.dimensions)
    results = run(module, *tensors)
    return tree.unflatten(given, iter(results))


class _Replayed(Module):
    """An exported module whose calls go through an interpreter."""

    def __init__(self, module: ExportedModule, interpreter: Interpreter):
        super().__init__()
        self.__dict__["_held"], self.__dict__["_interpreter"] = module, interpreter

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        tensors: list[Tensor] = []
        tree.flatten((args, kwargs), lambda each: isinstance(each, Tensor), tensors)
        results = self.__dict__["_interpreter"].run(*tensors)
        return tree.unflatten(self.__dict__["_held"].__dict__["_program"].structures[1], iter(results))


def _tensor_of(program: ExportedProgram, name: str) -> Any:
    return program.state_dict[name] if name in program.state_dict else program.constants[name]


def _unlifted(program: ExportedProgram) -> tuple[Graph, list[str]]:
    """The graph with the module's tensors as attributes and writes as calls of `copy_`; the attributes."""
    graph, nodes = Graph(), {}
    targets: list[str] = []
    for node, spec in zip(program.graph.nodes, program.graph_signature.input_specs):
        if spec.kind is not InputKind.USER_INPUT:
            targets.append(str(spec.target))
            nodes[node] = graph.get_attr(str(spec.target))
    results = graph.graph_copy(program.graph, nodes)
    by_name = {old.name: new for old, new in nodes.items()}
    by_target = dict(zip(targets, nodes.values()))
    write = namespace("aten").copy_.default  # type: ignore[union-attr]
    returned = []
    for result, output in zip(results, program.graph_signature.output_specs, strict=True):
        target = str(output.target)
        if output.kind is OutputKind.USER_OUTPUT:
            returned.append(result)
        elif output.kind is OutputKind.USER_INPUT_MUTATION:
            graph.call_function(write, (by_name[target], result))
        else:
            graph.call_function(write, (by_target[target], result))
    graph.output(tuple(returned))
    return graph, targets


@located
def export(
    mod: Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    strict: bool = False,
    preserve_module_call_signature: Sequence[str] = (),
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:
    """A module, recorded on arguments like these, as a graph of ATen calls.

    `dynamic_shapes` says which dimensions may have other sizes, as `{"x": {0: Dim("batch")}}`. The program is
    recorded at several, and refused where it is another one for some. It is for no size beyond the largest of
    these: the `max` of a `Dim`, or else some hundreds, as `range_constraints` tells.
    """
    if not isinstance(mod, Module):
        raise ArgumentError(
            f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod).__name__}",
            help="put the function into a module's forward, or use tenfold.export, which takes functions",
        )
    if not isinstance(args, tuple):
        raise ArgumentError(f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}")
    kwargs = dict(kwargs or {})
    if not dynamic_shapes:
        return _exported(mod, args, kwargs, {})
    problem: TenfoldError | None = None
    # Dimensions without names are taken to be independent, then equal if they have one size; those of
    # `Dim.AUTO` may be fixed after all.
    for shared, auto in ((False, True), (True, True), (True, False)):
        wishes = Wishes(shared, auto)
        said = said_of(mod, dynamic_shapes, args, kwargs, wishes)
        try:
            return _exported(mod, args, kwargs, call_dimensions(said, mod, args, kwargs) if said else {})
        except TenfoldError as error:
            problem = problem or error
            if not wishes.has_hints:
                break
    assert problem is not None
    raise problem


def _exported(
    mod: Module, args: tuple[Any, ...], kwargs: dict[str, Any], open: Any, members: Module | None = None
) -> ExportedProgram:
    tensors: list[Tensor] = []
    taken = tree.flatten((args, kwargs), lambda each: isinstance(each, Tensor), tensors)
    if len({id(tensor) for tensor in tensors}) < len(tensors):
        raise UnsupportedError("a tensor is given twice", help="give a clone of it")

    def record(stand_ins: Sequence[Tensor], numbers: Mapping[int, int] | None = None) -> Recording:
        a, k = tree.unflatten(taken, iter(stand_ins))
        outer, context.exporting = context.exporting, True
        try:
            return record_call(mod, a, k, Tensor, numbers=Numbers(numbers)).recording
        finally:
            context.exporting = outer

    model = members or mod
    recordings = Recordings(record, tensors, open, lambda: members_of(model), "fx")
    return _Lifted(model, recordings, len(tensors)).program(
        _input_names(mod, args, kwargs), (taken, recordings.first.structure), (args, kwargs)
    )


class _Lifted:
    """A recorded module on the way to a program whose graph takes the module's tensors as arguments."""

    def __init__(self, model: Module, recordings: Recordings, arguments: int):
        self.model, self.recordings, self.arguments = model, recordings, arguments
        program = recordings.program
        self.outside = program.leaves[arguments:]
        read = {value for node in program.nodes for value in node.inputs}
        read |= {program.leaves[-1 - place] for place, _ in program.outputs if place < 0}
        self.used = [leaf for leaf in self.outside if leaf in read]
        self.state = model.state_dict(keep_vars=True)
        self.parameters = dict(model.named_parameters())
        self.buffers = dict(model.named_buffers())

    def program(self, names: list[str], structures: tuple[Any, Any], example: Any) -> ExportedProgram:
        graph, recordings = Graph(), self.recordings
        constants: dict[str, Tensor] = {}
        specs: list[InputSpec] = []
        nodes: dict[Any, Node] = {}
        order = {name: i for i, name in enumerate([*self.parameters, *self.buffers])}
        lifted = [(self._name(leaf), leaf) for leaf in self.used]
        for name, leaf in sorted(lifted, key=lambda pair: order.get(pair[0] or "", len(order))):
            kind, target = InputKind.CONSTANT_TENSOR, name
            if name in self.parameters:
                kind = InputKind.PARAMETER
            elif name in self.buffers:
                kind = InputKind.BUFFER
                if name not in self.state:
                    constants[name] = self.buffers[name]
            else:
                target = f"lifted_tensor_{len(constants)}"
                constants[target] = Tensor(leaf).detach()
            prefix = {InputKind.PARAMETER: "p", InputKind.BUFFER: "b"}.get(kind, "c")
            node = graph.placeholder(f"{prefix}_{str(target).replace('.', '_')}")
            persistent = name in self.state if kind is InputKind.BUFFER else None
            specs.append(InputSpec(kind, TensorArgument(node.name), target, persistent))
            nodes[leaf] = node
        inputs = [graph.placeholder(name) for name in names]
        nodes |= dict(zip(recordings.program.leaves[: self.arguments], inputs))
        specs += [InputSpec(InputKind.USER_INPUT, TensorArgument(node.name)) for node in inputs]
        results = built(recordings, graph, nodes)
        written, returned = self._outputs(results, inputs)
        graph.output(tuple([node for _, node in written] + returned))
        graph.eliminate_dead_code()
        outputs = [spec for spec, _ in written]
        outputs += [OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(node.name)) for node in returned]
        types = [recordings.named(leaf.type) for leaf in recordings.program.leaves[: self.arguments]]
        return ExportedProgram(
            GraphModule(Module(), graph),
            ExportGraphSignature(specs, outputs),
            self.state,
            constants,
            types,
            recordings.dims,
            structures,
            example,
        )

    def _name(self, leaf: Any) -> str | None:
        holder = self.recordings.holders[self.outside.index(leaf)]
        return None if holder is None else self.recordings.members.get(id(holder))

    def _outputs(
        self, results: list[Node], inputs: list[Node]
    ) -> tuple[list[tuple[OutputSpec, Node]], list[Node]]:
        """What the program writes, and what it returns."""
        first = self.recordings.first
        if first.gradients.made:
            raise UnsupportedError(
                "the module computes gradients, which a graph of ATen calls has no word for",
                help="export its forward pass; tenfold.export(..., dialect='stablehlo') has gradients",
            )
        count = len(first.returned)
        written: list[tuple[OutputSpec, Node]] = []
        outside = first.outside_writes
        for place, node in zip(self.recordings.outputs, results, strict=True):
            if place < count:
                continue
            i = place - count
            if i < len(outside):
                target = self.recordings.members.get(id(outside[i]))
                if target is None:
                    raise UnsupportedError(
                        "the module writes to a tensor that is neither a parameter nor a buffer of it",
                        help="register it as a buffer",
                    )
                is_parameter = target in self.parameters
                kind = OutputKind.PARAMETER_MUTATION if is_parameter else OutputKind.BUFFER_MUTATION
            else:
                target = inputs[first.argument_writes[i - len(outside)]].name
                kind = OutputKind.USER_INPUT_MUTATION
            written.append((OutputSpec(kind, TensorArgument(node.name), target), node))
        pairs = zip(self.recordings.outputs, results, strict=True)
        return written, [node for place, node in pairs if place < count]


def _input_names(mod: Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[str]:
    """What the graph calls each tensor of the call: by its argument, and its place in that."""
    parameters = list(inspect.signature(mod.forward).parameters.values())
    variadic = [each.name for each in parameters if each.kind is each.VAR_POSITIONAL]
    plain = [
        each.name for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    named: list[str] = []

    def name(prefix: str, argument: Any) -> None:
        if isinstance(argument, Tensor):
            named.append(prefix)
        elif isinstance(argument, Mapping):
            for key, each in argument.items():
                name(f"{prefix}_{key}", each)
        elif isinstance(argument, (tuple, list)):
            for i, each in enumerate(argument):
                name(f"{prefix}_{i}", each)

    for i, argument in enumerate(args):
        name(
            plain[i] if i < len(plain) else f"{variadic[0] if variadic else 'args'}_{i - len(plain)}",
            argument,
        )
    for key, argument in kwargs.items():
        name(key, argument)
    return named
