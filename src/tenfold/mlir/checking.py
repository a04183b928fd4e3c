"""The check of a StableHLO module that was read: it may do what a module built here may do, and nothing else.

It calls no function of the host but LAPACK's routines, each with the shapes and dtypes it is made for. It has
no recursion, talks to no other device and gives no argument's memory away. What it asks of the compiler is
bounded: depth, the number of ops once all calls are inlined, and the bytes of a tensor.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from tenfold.base import dtypes
from tenfold.base.errors import FormatError, UnsupportedError
from tenfold.flat.ir import TensorType
from tenfold.flat.structured import CustomCall
from tenfold.mlir import folding, stablehlo
from tenfold.ops import lapack

MAX_DEPTH = 500  # of regions and calls within each other
MAX_OPS = 10_000_000  # after inlining
MAX_BYTES = 1 << 44  # of one tensor
# The dialects of computations: StableHLO, and what CHLO and torch-mlir leave beside it.
DIALECTS = ("stablehlo", "chlo", "arith", "shape", "tensor")
FUNCTIONS = ("func.func", "func.return", "func.call")
SHAPE_OPERANDS = "indices_of_shape_operands"
CALLEES = {"func.call": "callee", "stablehlo.composite": "decomposition"}
HOST = ("infeed", "outfeed", "send", "recv")
DEVICES = (
    "all_gather",
    "all_reduce",
    "all_to_all",
    "async_done",
    "async_start",
    "collective_broadcast",
    "collective_permute",
    "cross-replica-sum",
    "partition_id",
    "reduce_scatter",
    "replica_id",
)
REFUSED = {
    **{f"stablehlo.{name}": "exchanges data with the host while it runs" for name in HOST},
    **{f"stablehlo.{name}": "speaks to other devices" for name in DEVICES},
    # XLA neither checks the size against the buffer nor gives results of such a size back whole.
    "stablehlo.set_dimension_size": "changes how much of a tensor's memory counts",
}
# Composites are hints by name for compilers that know more; what they mean is the function that they call.
WITHOUT_COMPOSITES = "builtin.module(func.func(stablehlo-legalize-composite-to-call))"
_BRACKETS = re.compile(rb"""[^"'{}\[\]()<>]+|"(?:[^"\\]|\\.)*"|->|>=""")
_DTYPES = {dtype.mlir: dtype for dtype in dtypes.ALL}


def require_shallow(text: bytes) -> None:
    """Refuse text whose brackets nest deep: MLIR's parser calls itself for each, and would crash."""
    depth = 0
    for bracket in _BRACKETS.sub(b"", text):
        depth += 1 if bracket in b"{[(<" else -1 if bracket in b"}])>" else 0
        if depth > MAX_DEPTH:
            raise FormatError(f"the module's brackets nest over {MAX_DEPTH} deep")


def checked(module: Any, fixed: bool) -> tuple[list[CustomCall], bool]:
    """Check a module, and remove the attributes that StableHLO's meaning does not depend on: hints to
    compilers, some of which give memory away. Returns the calls of functions that the engine must know by
    name, and whether XLA would fold the constants for long. Unless the sizes are `fixed`, the module is
    checked again when they are."""
    b = stablehlo.bindings()
    b.dialect.register_stablehlo_passes()
    with b.context, b.unknown:
        _require_module(module)
        functions = _functions(module)
        graph = _Graph(functions)
        graph.check()
        b.passmanager.PassManager.parse(WITHOUT_COMPOSITES).run(module.operation)
        calls: list[CustomCall] = []
        for function in functions.values():
            for op, _ in _inside(function):
                if op.name == "stablehlo.custom_call":
                    calls.extend(_checked_call(b, op, fixed))
                if op.name == "stablehlo.sort":  # else XLA follows what is no order out of the array
                    op.attributes["is_stable"] = b.ir.BoolAttr.get(True)
                _remove_hints(op)
            _remove_hints(function)
        callers_first = [functions[name] for name in reversed(graph.costs)]
        return calls, fixed and folding.is_slow(callers_first)


def _require_module(module: Any) -> None:
    operation = module.operation
    for name in _names(operation.attributes):
        if name not in ("sym_name", "sym_visibility") and not name.startswith(
            ("tenfold.inputs", "tenfold.dim")
        ):
            del operation.attributes[name]
    for op in module.body.operations:
        if op.operation.name != "func.func":
            raise UnsupportedError(f"a module holds functions, and this one holds {op.operation.name}")


def _functions(module: Any) -> dict[str, Any]:
    functions: dict[str, Any] = {}
    for operation in module.body.operations:
        name = operation.operation.attributes["sym_name"].value
        if not len(operation.operation.regions[0].blocks):
            raise FormatError(f"the function @{name} is declared, and is not in the file")
        functions[name] = operation.operation
    if "main" not in functions:
        raise FormatError("the module has no function @main")
    return functions


class _Graph:
    """Which function calls which."""

    def __init__(self, functions: dict[str, Any]):
        self.functions = functions
        self.costs: dict[str, tuple[int, int]] = {}  # ops and depth, everything inlined
        self.facts = {name: self.look(function) for name, function in functions.items()}

    def look(self, function: Any) -> tuple[int, int, list[str]]:
        """How many ops a function has, how deep they are nested, and what it calls."""
        count, deepest, called = 0, 0, []
        for op, depth in _inside(function):
            count, deepest = count + 1, max(deepest, depth)
            _require_known(op)
            called += _called(op)
        for name in called:
            if name not in self.functions:
                raise FormatError(f"it calls @{name}, which is not in the file")
        return count, deepest, called

    def check(self) -> None:
        """Callees before callers, without calling oneself: there may be a hundred thousand."""
        state: dict[
            str, bool
        ] = {}  # whether a function is done; False while those that it calls are looked at
        for start in self.functions:
            stack = [start]
            while stack:
                name = stack[-1]
                if name not in state:
                    state[name] = False
                    for callee in self.facts[name][2]:
                        if state.get(callee) is False:
                            raise FormatError(f"the function @{callee} calls itself")
                        if callee not in state:
                            stack.append(callee)
                    continue
                if not state[name]:
                    self.add_up(name)
                    state[name] = True
                stack.pop()

    def add_up(self, name: str) -> None:
        count, depth, called = self.facts[name]
        ops = count + sum(self.costs[callee][0] for callee in called)
        deepest = depth + 1 + max((self.costs[callee][1] for callee in called), default=0)
        if ops > MAX_OPS:
            raise FormatError(f"the module has over {MAX_OPS:,} ops once its calls are inlined")
        if deepest > MAX_DEPTH:
            raise FormatError(f"the module's calls and regions nest over {MAX_DEPTH} deep")
        self.costs[name] = (ops, deepest)


def _inside(whole: Any) -> list[tuple[Any, int]]:
    """Every op of a function, or of another op's regions, and how deep it lies."""
    ops, left = [], [(whole, 0)]
    while left:
        outer, depth = left.pop()
        if depth > MAX_DEPTH:
            raise FormatError(f"the module's regions nest over {MAX_DEPTH} deep")
        for region in outer.regions:
            for block in region.blocks:
                for value in block.arguments:
                    _require_size(value.type)
                for operation in block.operations:
                    op = operation.operation
                    ops.append((op, depth))
                    if len(op.regions):
                        left.append((op, depth + 1))
    return ops


def _require_known(op: Any) -> None:
    dialect = op.name.partition(".")[0]
    if op.name in REFUSED:
        raise UnsupportedError(f"{op.name} {REFUSED[op.name]}: a loaded module only computes")
    if op.name == "func.func" or (op.name not in FUNCTIONS and dialect not in DIALECTS):
        raise UnsupportedError(f"{op.name} is no op that a StableHLO module computes with")
    for value in op.results:
        _require_size(value.type)
    if op.name == "stablehlo.sort":
        _require_comparison(op)
    if op.name == "stablehlo.fft":
        _require_length(op)


def _require_length(fft: Any) -> None:
    """Refuse a transform whose length is not that of its dimensions, at which XLA's library aborts."""
    whole = (fft.results if "IRFFT" in str(fft.attributes["fft_type"]) else fft.operands)[0].type
    lengths = list(fft.attributes["fft_length"])
    extents = [None if whole.is_dynamic_dim(axis) else whole.get_dim_size(axis) for axis in range(whole.rank)]
    ends = extents[-len(lengths) :]
    if any(extent not in (None, length) for extent, length in zip(ends, lengths, strict=True)):
        raise FormatError(f"a Fourier transform of length {lengths} on a {whole} is none")


def _require_comparison(sort: Any) -> None:
    """Refuse a comparison that may say one thing now and another later: XLA sorts with it outside of the
    array."""
    for op, _ in _inside(sort):
        if op.name == "stablehlo.rng" or op.name in CALLEES:
            raise UnsupportedError(f"the comparison of a sort has a {op.name}, and may only compare")


def _require_size(type: Any) -> None:
    ir = stablehlo.bindings().ir
    if isinstance(type, ir.RankedTensorType):
        extents = [extent for axis, extent in enumerate(type.shape) if not type.is_dynamic_dim(axis)]
        if math.prod(extents) > MAX_BYTES // 16:
            raise FormatError(f"a {type} is larger than any memory")
        if type.encoding is not None:
            raise UnsupportedError(
                f"a {type} has an encoding, such as a bound of its size: a loaded module computes with "
                "plain tensors"
            )


def _called(op: Any) -> list[str]:
    """The functions that an op calls."""
    if op.name == "stablehlo.custom_call":
        computations = "called_computations" in op.attributes and op.attributes["called_computations"]
        return [each.value for each in computations or ()]
    return [op.attributes[CALLEES[op.name]].value] if op.name in CALLEES else []


def _names(attributes: Any) -> list[str]:
    return [attribute if isinstance(attribute, str) else attribute.name for attribute in attributes]


def _remove_hints(op: Any) -> None:
    """Attributes with another dialect's prefix, and those of arguments and results, are hints: aliasing and
    donation, shardings, layouts, places in memory."""
    for name in _names(op.attributes):
        if "." in name or (op.name == "func.func" and name in ("arg_attrs", "res_attrs")):
            del op.attributes[name]


def _checked_call(b: Any, op: Any, fixed: bool) -> Sequence[CustomCall]:
    """The call, after its attributes were replaced by those that are built here; nothing while a size is
    open."""
    target = op.attributes["call_target_name"].value
    if not target.startswith("lapack_"):
        raise UnsupportedError(
            f"the module calls {target!r}, a function that is not part of it",
            help="a loaded module may call LAPACK's routines; export it without other custom calls",
        )
    shapes = [
        element for name in (SHAPE_OPERANDS,) if name in op.attributes for element in op.attributes[name]
    ]
    operands = [value.type for value in op.operands][: len(op.operands) - len(shapes)]
    types = [tensor_type(operand) for operand in operands]
    results = [tensor_type(result.type) for result in op.results]
    known = [type for type in types if type is not None]
    if not fixed and any(_is_open(b.ir, each.type) for each in (*op.operands, *op.results)):
        return []
    emitter = stablehlo._Emitter(b)
    for call in lapack.built_calls(target, known) if len(known) == len(types) else ():
        attributes = stablehlo.ATTRIBUTES[CustomCall](emitter, call)
        if list(call.result_types) == results and _is_alike(op.attributes, attributes, len(shapes)):
            if not len(shapes):
                _replace(op, attributes)
            return [call]
    raise UnsupportedError(
        f"LAPACK's {target} is not made for a call on {_listed(op.operands)} that gives {_listed(op.results)}"
    )


def _is_alike(actual: Any, built: dict[str, Any], shapes: int) -> bool:
    """Whether a call's options and layouts are those of a call that is built here."""
    configs = [
        actual[name] for name in ("mhlo.backend_config", "backend_config") if name in actual
    ]  # JAX's first
    config = built["backend_config"]
    if configs[:1] != [config] and (configs or len(config)):  # the portable form leaves out an empty one
        return False
    layouts = [
        list(actual[name]) if name in actual else None for name in ("operand_layouts", "result_layouts")
    ]
    if layouts[0] is not None and shapes:
        layouts[0] = layouts[0][:-shapes]
    return layouts == [list(built["operand_layouts"]), list(built["result_layouts"])]


def _replace(op: Any, attributes: dict[str, Any]) -> None:
    for name in _names(op.attributes):
        if name not in attributes:
            del op.attributes[name]
    for name, value in attributes.items():
        op.attributes[name] = value


def _is_open(ir: Any, type: Any) -> bool:
    return isinstance(type, ir.RankedTensorType) and not type.has_static_shape


def tensor_type(type: Any) -> TensorType | None:
    """A tensor type of MLIR's as one of ours; None of anything else, or while a size is open."""
    ir = stablehlo.bindings().ir
    if not isinstance(type, ir.RankedTensorType) or not type.has_static_shape:
        return None
    dtype = _DTYPES.get(str(type.element_type))
    return None if dtype is None else TensorType(dtype, tuple(type.shape))


def _listed(values: Sequence[Any]) -> str:
    return ", ".join(str(value.type) for value in values) or "nothing"
