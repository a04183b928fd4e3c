"""StableHLO between programs: the portable artifact, whose meaning StableHLO promises to keep for years, and
modules read from it, from bytecode or from text. The bindings are `stablehlo.py`'s."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from tenfold.base import digests, dtypes
from tenfold.base.errors import EngineError, FormatError, ShapeError, TenfoldError, UnsupportedError
from tenfold.flat.ir import TensorType
from tenfold.flat.sizes import Open, OpenType
from tenfold.mlir import checking, stablehlo
from tenfold.mlir.interrupts import pass_on
from tenfold.mlir.stablehlo import Module

BYTECODE = b"ML\xefR"  # how all MLIR bytecode starts; a portable artifact names its producer next
PRODUCER = b"StableHLO_v"
# Attributes of a module, by which it tells of its open sizes.
INPUTS, DIMENSIONS = "tenfold.inputs", "tenfold.dimensions"
DIGEST = "tenfold.digest"  # of the file that the module stands in
CONSTANTS = ("stablehlo.constant", "arith.constant")  # torch-mlir writes both
ELIDED = "__elided__"  # what is printed in the place of a long literal
RESOURCE = re.compile(r'dense_resource<"?([^">]+)"?>')
# From types for the arguments of main to a module without open sizes.
FIX_SIZES = (
    "builtin.module(stablehlo-refine-arguments{{types={}}},stablehlo-refine-shapes,"
    "func.func(stablehlo-canonicalize-dynamism))"
)
_DTYPES = {dtype.mlir: dtype for dtype in dtypes.ALL}


def serialize(module: Module) -> bytes:
    """The module as a portable artifact of StableHLO's current version. CHLO, which is not part of what is
    promised, is replaced by StableHLO."""
    with stablehlo._lock:
        b = _bindings()
        b.dialect.register_stablehlo_passes()
        with b.context, b.unknown:
            plain = b.ir.Module.parse(module.bytecode())
            try:
                b.passmanager.PassManager.parse(stablehlo.WITHOUT_CHLO).run(plain.operation)
                _without_shapes(b.ir, plain)
                plain.operation.attributes[DIGEST] = b.ir.StringAttr.get(digests.BLANK)
                data = b.dialect.serialize_portable_artifact(plain, b.dialect.get_current_version())
                return digests.filled_in(data)
            except Exception as error:
                pass_on(error)
                raise EngineError(
                    f"StableHLO cannot make this module portable: {_first_line(error)}"
                ) from None


def bytecode(module: Module) -> bytes:
    """The module as MLIR bytecode that carries its digest."""
    with stablehlo._lock:
        b = _bindings()
        attributes = module.module.operation.attributes
        with module.module.context, b.ir.Location.unknown():
            attributes[DIGEST] = b.ir.StringAttr.get(digests.BLANK)
            try:
                return digests.filled_in(module.bytecode())
            finally:
                del attributes[DIGEST]


def read(data: bytes) -> Module:
    """A module from a portable artifact, from bytecode, or from text; damaged ones are refused, and those
    that do more than compute."""
    digests.require_undamaged(data)
    with stablehlo._lock:
        b = _bindings()
        with b.context, b.unknown:
            try:
                module = _parsed(b, data)
                _inline_resources(b.ir, module)
                inputs, results = _signature(module)
                fixed = not any(isinstance(operand, OpenType) for operand in inputs)
                calls, slow_to_fold = checking.checked(module, fixed)
            except TenfoldError:
                raise
            except Exception as error:
                pass_on(error)
                raise FormatError(
                    f"this is no StableHLO module: {_first_line(error)}",
                    help="give a file that export(..., dialect='stablehlo') saved, or any StableHLO text",
                ) from None
        return Module(module, results, calls=calls, slow_to_fold=slow_to_fold)


def _parsed(b: Any, data: bytes) -> Any:
    if data.startswith(BYTECODE) and PRODUCER in data[:64]:
        module = b.dialect.deserialize_portable_artifact(b.context, data)
    elif data.startswith(BYTECODE):
        module = b.ir.Module.parse(data)
    else:
        checking.require_shallow(data)
        module = b.ir.Module.parse(data.decode())
    module.operation.verify()
    return module


def refined(module: Module, types: Sequence[TensorType]) -> Module:
    """The module for arguments of these types: sizes that were open are fixed, and what follows from them."""
    with stablehlo._lock:
        b = _bindings()
        b.dialect.register_stablehlo_passes()
        with b.context, b.unknown:
            fixed = b.ir.Module.parse(module.bytecode())
            takes = ",".join(
                f"tensor<{''.join(f'{e}x' for e in type.shape)}{type.dtype.mlir}>" for type in types
            )
            try:
                b.passmanager.PassManager.parse(FIX_SIZES.format(takes)).run(fixed.operation)
            except Exception as error:
                pass_on(error)
                raise ShapeError(f"these sizes do not fit the module: {_first_line(error)}") from None
            results = _signature(fixed)[1]
            if any(isinstance(result, OpenType) for result in results):
                raise UnsupportedError(
                    f"the sizes of the results, {results}, do not follow from those of the arguments"
                )
            calls, slow_to_fold = checking.checked(fixed, fixed=True)
            return Module(fixed, results, calls=calls, slow_to_fold=slow_to_fold)


def signature(module: Module) -> tuple[list[Any], list[Any]]:
    """The types that the module's `main` takes and gives; where sizes are open an OpenType."""
    with stablehlo._lock:
        _bindings()
        return _signature(module.module)


def describe(
    module: Module, inputs: Sequence[str], dimensions: Mapping[str, Mapping[str, int | None]]
) -> None:
    """Write into a module which sizes of its arguments are open, `f32[n,3]`, and what is demanded of them."""
    with stablehlo._lock:
        b = _bindings()
        with module.module.context, b.ir.Location.unknown():
            named = [b.ir.StringAttr.get(operand) for operand in inputs]
            module.module.operation.attributes[INPUTS] = b.ir.ArrayAttr.get(named)
            demands = {
                name: b.ir.DictAttr.get(
                    {
                        what: b.ir.Attribute.parse(f"{number} : i64")
                        for what, number in demanded.items()
                        if number is not None
                    }
                )
                for name, demanded in dimensions.items()
            }
            module.module.operation.attributes[DIMENSIONS] = b.ir.DictAttr.get(demands)


def description(module: Module) -> tuple[list[str], dict[str, dict[str, int]]] | None:
    """What `describe` wrote into a module; None of one that it did not."""
    with stablehlo._lock:
        _bindings()
        attributes = module.module.operation.attributes
        if INPUTS not in attributes or DIMENSIONS not in attributes:
            return None
        try:
            inputs = [text.value for text in attributes[INPUTS]]
            dimensions = attributes[DIMENSIONS]
            return inputs, {
                dimensions[i].name: {each.name: each.attr.value for each in dimensions[i].attr}
                for i in range(len(dimensions))
            }
        except (AttributeError, TypeError) as error:
            raise FormatError(
                f"what the module tells of its sizes is damaged: {error}", help="export it again"
            ) from None


def _bindings() -> SimpleNamespace:
    stablehlo.generated()
    return stablehlo.bindings()


def _signature(module: Any) -> tuple[list[Any], list[Any]]:
    mains = [operation for operation in module.body.operations if _name(operation) == "main"]
    if not mains:
        raise FormatError("the module has no function @main")
    if mains[0].operation.name != "func.func":
        raise FormatError(f"@main is a {mains[0].operation.name}, and no function")
    type = mains[0].attributes["function_type"].value
    return [_read(str(operand)) for operand in type.inputs], [_read(str(result)) for result in type.results]


def _without_shapes(ir: Any, module: Any) -> None:
    """Replace MLIR's questions for shapes, which CHLO's ops leave where sizes are open, by StableHLO's."""
    asking: list[Any] = []

    def look(op: Any) -> Any:
        if op.name == "shape.shape_of":
            asking.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(look)
    for op in asking:
        value = op.operands[0]
        rank = len(value.type.shape)
        scalar, one, all = (ir.Type.parse(f"tensor<{each}i32>") for each in ("", "1x", f"{rank}x"))
        with ir.InsertionPoint(op), op.location:
            rows = []
            for axis in range(rank):
                dimension = {"dimension": ir.Attribute.parse(f"{axis} : i64")}
                size = ir.Operation.create("stablehlo.get_dimension_size", [scalar], [value], dimension)
                rows.append(ir.Operation.create("stablehlo.reshape", [one], [size.result]).result)
            first = {"dimension": ir.Attribute.parse("0 : i64")}
            shape = ir.Operation.create("stablehlo.concatenate", [all], rows, first).result
        op.results[0].replace_all_uses_with(shape)
        op.erase()


def _inline_resources(ir: Any, module: Any) -> None:
    """Write literals that stand beside the module as resources into it: XLA does not read those. MLIR's
    bindings give their data in the text alone."""
    resources: list[tuple[Any, str]] = []

    def look(op: Any) -> Any:
        if op.name in CONSTANTS:
            match = RESOURCE.search(_literal(ir, op))
            if match is not None and match.group(1) != ELIDED:
                resources.append((op, match.group(1)))
        return ir.WalkResult.ADVANCE

    module.operation.walk(look)
    if not resources:
        return
    text = module.operation.get_asm()
    beside = text[text.rindex("{-#") :]
    # The data of each starts with four bytes that tell how it is aligned.
    data = {name: bytes.fromhex(digits)[4:] for name, digits in re.findall(r'(\w+): "0x(\w*)"', beside)}
    for op, name in resources:
        type = op.results[0].type
        dtype = _DTYPES[str(type.element_type)]
        array = np.frombuffer(data[name], dtype.numpy).reshape(type.shape)
        op.attributes["value"] = ir.DenseElementsAttr.get(array, type=type.element_type, shape=array.shape)


def _literal(ir: Any, constant: Any) -> str:
    """The value of a constant as text; nothing if it is dense. The op itself is not printed: MLIR would
    number all values of the function for it."""
    try:
        value = constant.attributes["value"]
    except TypeError:  # the bindings do not give dense complex numbers
        return ""
    return "" if isinstance(value, ir.DenseElementsAttr) else str(value)


def _name(op: Any) -> str:
    attributes = op.operation.attributes
    return attributes["sym_name"].value if "sym_name" in attributes else ""


def _read(text: str) -> TensorType | OpenType:
    match = re.fullmatch(r"tensor<((?:(?:\d+|\?)x)*)([^?]+)>", text)
    if match is None or match.group(2) not in _DTYPES:
        raise UnsupportedError(f"Tenfold cannot run a module with a {text}")
    extents = match.group(1).split("x")[:-1]
    dtype = _DTYPES[match.group(2)]
    if "?" in extents:
        return OpenType(dtype, [Open(()) if extent == "?" else int(extent) for extent in extents])
    return TensorType(dtype, tuple([int(extent) for extent in extents]))


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip(" :")] or [type(error).__name__]
    return next((line for line in lines if not line.endswith(":")), lines[0])
