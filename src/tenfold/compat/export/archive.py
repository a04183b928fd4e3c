"""Exported programs in files: the graph as text, with the tensors that it uses, in a file of `tenfold.save`.

Nothing in a file is code: a call is named by its schema, and looked up when the file is read. But the graph
becomes Python code whose names come from the file: they are all checked, since others may have written it.
"""

from __future__ import annotations

import json
import keyword
import operator
import os
import re
from typing import Any

from tenfold.base.devices import Device
from tenfold.base.dim import Dim
from tenfold.base.dtypes import BY_NAME, DType
from tenfold.base.errors import FormatError, TenfoldError, UnsupportedError, located
from tenfold.compat.export.programs import ExportedProgram
from tenfold.compat.export.signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from tenfold.compat.overloads import namespace
from tenfold.compat.overloads.packets import Overload
from tenfold.exporting.dimensions import read_type
from tenfold.fx.graph import Graph
from tenfold.fx.graph_module import GraphModule
from tenfold.fx.node import Node
from tenfold.mlir.interrupts import pass_on
from tenfold.nn.module import Module
from tenfold.nn.parameter import Parameter
from tenfold.serialize import load as load_tensors, save as save_tensors
from tenfold.tensor import Tensor
from tenfold.trace import tree

__all__ = ["load", "save"]

FORMAT = "tenfold.export 1"
PLAIN = {name: getattr(operator, name) for name in ("add", "floordiv", "getitem", "mul", "pow", "truediv")}
PLAIN["float"] = float
CONTAINERS: dict[str, type] = {"tuple": tuple, "list": list, "dict": dict}
# What reading raises where a file does not say what it should.
_NONSENSE = (
    LookupError, ValueError, TypeError, AttributeError, SyntaxError, RecursionError, AssertionError,
)  # fmt: skip
_SCHEMA = re.compile(r"(\w+)::(\w+)(?:\.(\w+))?")


@located
def save(ep: ExportedProgram, f: Any, *, extra_files: dict[str, Any] | None = None, **options: Any) -> None:
    """Write a program to a file, by convention `.pt2`. PyTorch's own files of that name are in another
    format."""
    if not isinstance(ep, ExportedProgram):
        raise TypeError(
            f"The 'ep' parameter must be an instance of 'ExportedProgram', got {type(ep).__name__}"
        )
    signature = ep.graph_signature
    about = {
        "nodes": [_written_node(node) for node in ep.graph.nodes],
        "inputs": [
            [spec.kind.name, spec.arg.name, spec.target, spec.persistent] for spec in signature.input_specs
        ],
        "outputs": [[spec.kind.name, spec.arg.name, spec.target] for spec in signature.output_specs],
        "types": [str(each) for each in ep.types],
        "dimensions": {name: dim.constraints for name, dim in ep.dimensions.items()},
        "structures": [_written_structure(each) for each in ep.structures],
        "parameters": [name for name, each in ep.state_dict.items() if isinstance(each, Parameter)],
    }
    args, kwargs = ep.example_inputs
    held = {
        "format": FORMAT,
        "program": json.dumps(about),
        "state": {name: each.detach() for name, each in ep.state_dict.items()},
        "constants": dict(ep.constants),
        "example": tree_tensors((args, kwargs)),
        "extra": {name: str(each) for name, each in (extra_files or {}).items()},
    }
    save_tensors(held, f)


@located
def load(
    f: str | os.PathLike[str] | Any, *, extra_files: dict[str, Any] | None = None, **options: Any
) -> ExportedProgram:
    """Read a program that `save` wrote."""
    try:
        held = load_tensors(f)
    except FormatError as error:
        raise FormatError(f"this is no program of Tenfold's: {error.message}", help=_HELP) from None
    if not isinstance(held, dict) or held.get("format") != FORMAT:
        raise FormatError("this file holds no exported program of Tenfold's", help=_HELP)
    try:
        program = _read_program(held, json.loads(held["program"]))
        program.module()  # whose names and counts must fit each other
        if extra_files is not None:
            extra_files.update({name: held["extra"][name] for name in extra_files if name in held["extra"]})
    except TenfoldError:
        raise
    except _NONSENSE as error:
        pass_on(error)
        raise FormatError(f"the exported program in this file is damaged: {error}", help=_HELP) from None
    return program


def _read_program(held: dict[str, Any], about: dict[str, Any]) -> ExportedProgram:
    parameters = set(about["parameters"])
    state = {
        _member(name): Parameter(_tensor(each)) if name in parameters else _tensor(each)
        for name, each in held["state"].items()
    }
    constants = {_member(name): _tensor(each) for name, each in held["constants"].items()}
    signature = ExportGraphSignature(
        [
            InputSpec(InputKind[kind], TensorArgument(_name(name)), target, kept)
            for kind, name, target, kept in about["inputs"]
        ],
        [
            OutputSpec(OutputKind[kind], TensorArgument(_name(name)), target)
            for kind, name, target in about["outputs"]
        ],
    )
    taken, given = [_read_structure(each) for each in about["structures"]]
    example = [_tensor(each) for each in held["example"]]
    returned = [spec for spec in signature.output_specs if spec.kind is OutputKind.USER_OUTPUT]
    if not _leaves(taken) == len(example) == len(about["types"]) or _leaves(given) != len(returned):
        raise FormatError("the program in this file takes or gives another number of tensors than it says")
    args, kwargs = tree.unflatten(taken, iter(example))
    return ExportedProgram(
        GraphModule(Module(), _read_graph(about["nodes"])),
        signature,
        state,
        constants,
        [read_type(each) for each in about["types"]],
        {name: Dim(name, **constraints) for name, constraints in about["dimensions"].items()},
        (taken, given),
        (tuple(args), dict(kwargs)),
    )


_HELP = "write it by torch.export.save on Tenfold; PyTorch's .pt2 files are read by PyTorch alone"


def tree_tensors(call: Any) -> list[Any]:
    tensors: list[Any] = []
    tree.flatten(call, lambda each: hasattr(each, "detach"), tensors)
    return [tensor.detach() for tensor in tensors]


def _written_node(node: Node) -> list[Any]:
    target = node.target
    if isinstance(target, Overload):
        target = target.name()
    elif callable(target):
        found = [name for name, each in PLAIN.items() if each is target]
        if not found:
            raise UnsupportedError(f"a graph that calls {target!r} cannot be saved", help="use ATen's ops")
        target = found[0]
    kwargs = {name: _written(each) for name, each in node.kwargs.items()}
    return [node.op, node.name, target, [_written(each) for each in node.args], kwargs]


def _read_graph(nodes: list[Any]) -> Graph:
    graph = Graph()
    by_name: dict[str, Node] = {}
    for op, name, target, args, kwargs in nodes:
        if op not in ("placeholder", "call_function", "output") or (op == "placeholder" and args):
            raise FormatError(f"the graph in this file has a node that no exported program has: {op!r}")
        if _name(name) in by_name or not name.isascii():
            raise FormatError(f"the graph in this file has a node with the name {name!r}")
        target = _callee(target) if op == "call_function" else _name(target)
        given = [_read(each, by_name) for each in args]
        named = {_name(key): _read(each, by_name) for key, each in kwargs.items()}
        by_name[name] = graph.create_node(op, target, tuple(given), named, name)
    return graph


def _name(text: Any) -> str:
    """A name in the code that a graph becomes."""
    if type(text) is not str or not text.isidentifier() or keyword.iskeyword(text):
        raise FormatError(f"the program in this file has {str(text)[:100]!r} for a name")
    return text


def _member(text: Any) -> str:
    """The dotted name of a module's tensor, which must not stand for what every module has."""
    if type(text) is not str or any(not part or hasattr(Module, part) for part in text.split(".")):
        raise FormatError(f"the program in this file has a tensor with the name {str(text)[:100]!r}")
    return text


def _tensor(each: Any) -> Tensor:
    if not isinstance(each, Tensor):
        raise FormatError("what the program in this file uses is no tensor")
    return each


def _callee(name: str) -> Any:
    """What a node calls: an overload by its schema's name, or a function of plain numbers."""
    if name in PLAIN:
        return PLAIN[name]
    match = _SCHEMA.fullmatch(name)
    if match is not None:
        space, short, kind = match.groups()
        found = getattr(getattr(namespace(space), short), kind or "default")
        if isinstance(found, Overload):
            return found
    raise FormatError(f"the program in this file calls {name[:100]!r}, which is no op")


def _written(argument: Any) -> Any:
    """An argument of a call as JSON: what JSON has no word for is an object with one key."""
    if isinstance(argument, Node):
        return {"node": argument.name}
    if isinstance(argument, tuple):
        return {"tuple": [_written(each) for each in argument]}
    if isinstance(argument, list):
        return [_written(each) for each in argument]
    if isinstance(argument, DType):
        return {"dtype": argument.name}
    if isinstance(argument, Device):
        return {"device": str(argument)}
    if isinstance(argument, complex):
        return {"complex": [argument.real, argument.imag]}
    if argument is None or isinstance(argument, (bool, int, float, str)):
        return argument
    raise UnsupportedError(f"a graph with the argument {argument!r} cannot be saved")


def _read(written: Any, nodes: dict[str, Node]) -> Any:
    if isinstance(written, list):
        return [_read(each, nodes) for each in written]
    if not isinstance(written, dict):
        return written
    ((kind, value),) = written.items()
    if kind == "tuple":
        return tuple([_read(each, nodes) for each in value])
    if kind == "complex":
        return complex(*value)
    if kind == "device":
        return Device(value)
    return nodes[value] if kind == "node" else {"dtype": BY_NAME}[kind][value]


def _written_structure(structure: Any) -> Any:
    """How tensors are nested in other values, as JSON."""
    if structure is tree.LEAF:
        return "*"
    kind, *rest = structure
    if len(rest) == 1:
        value = rest[0]
        if value is None or isinstance(value, (bool, int, float, str)):
            return {"value": value}
        raise UnsupportedError(f"a program with the argument or result {value!r} cannot be saved")
    keys, parts = rest
    name = next((name for name, each in CONTAINERS.items() if each is kind), None)
    if name is None or any(type(key) is not str for key in keys or ()):
        raise UnsupportedError(
            f"a program that takes or gives a {getattr(kind, '__name__', kind)} cannot be saved",
            help="use tuples, lists and dicts with texts for keys",
        )
    return {name: [keys, [_written_structure(part) for part in parts]]}


def _leaves(structure: Any) -> int:
    """How many tensors are in the values that have this structure."""
    return 1 if structure is tree.LEAF else sum(map(_leaves, structure[2])) if len(structure) == 3 else 0


def _read_structure(written: Any) -> Any:
    if written == "*":
        return tree.LEAF
    ((kind, rest),) = written.items()
    if kind == "value":
        if isinstance(rest, (list, dict)):
            raise FormatError("an argument of the program in this file is a container")
        return tree.flatten(rest, lambda each: False, [])
    keys, parts = rest
    return CONTAINERS[kind], None if keys is None else tuple(keys), tuple(map(_read_structure, parts))
