"""Exported programs in files: the graph as text, with the tensors that it uses, in a file of `tenfold.save`.
Nothing in it is code: a call is named by its schema, and looked up when the file is read."""

from __future__ import annotations

import json
import operator
import os
from typing import Any

from tenfold.base.devices import Device
from tenfold.base.dim import Dim
from tenfold.base.dtypes import BY_NAME, DType
from tenfold.base.errors import FormatError, UnsupportedError, located
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
from tenfold.nn.module import Module
from tenfold.nn.parameter import Parameter
from tenfold.serialize import load as load_tensors, save as save_tensors
from tenfold.trace import tree

__all__ = ["load", "save"]

FORMAT = "tenfold.export 1"
PLAIN = {name: getattr(operator, name) for name in ("add", "floordiv", "getitem", "mul", "pow", "truediv")}
PLAIN["float"] = float
CONTAINERS: dict[str, type] = {"tuple": tuple, "list": list, "dict": dict}


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
    about = json.loads(held["program"])
    signature = ExportGraphSignature(
        [InputSpec(InputKind[k], TensorArgument(n), target, kept) for k, n, target, kept in about["inputs"]],
        [OutputSpec(OutputKind[k], TensorArgument(n), target) for k, n, target in about["outputs"]],
    )
    state = {
        name: Parameter(each) if name in about["parameters"] else each for name, each in held["state"].items()
    }
    taken, given = [_read_structure(each) for each in about["structures"]]
    if extra_files is not None:
        extra_files.update({name: held["extra"][name] for name in extra_files if name in held["extra"]})
    return ExportedProgram(
        GraphModule(Module(), _read_graph(about["nodes"])),
        signature,
        state,
        held["constants"],
        [read_type(each) for each in about["types"]],
        {name: Dim(name, **constraints) for name, constraints in about["dimensions"].items()},
        (taken, given),
        tree.unflatten(taken, iter(held["example"])),
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
        if op == "call_function":
            target = PLAIN[target] if target in PLAIN else _overload(target)
        given = [_read(each, by_name) for each in args]
        named = {key: _read(each, by_name) for key, each in kwargs.items()}
        by_name[name] = graph.create_node(op, target, tuple(given), named, name)
    return graph


def _overload(name: str) -> Any:
    space, _, qualified = name.partition("::")
    short, _, kind = qualified.partition(".")
    return getattr(getattr(namespace(space), short), kind or "default")


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
    return nodes[value] if kind == "node" else BY_NAME[value]


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


def _read_structure(written: Any) -> Any:
    if written == "*":
        return tree.LEAF
    ((kind, rest),) = written.items()
    if kind == "value":
        return tree.flatten(rest, lambda each: False, [])
    keys, parts = rest
    return CONTAINERS[kind], None if keys is None else tuple(keys), tuple(map(_read_structure, parts))
