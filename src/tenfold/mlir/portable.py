"""StableHLO between programs: the portable artifact, whose meaning StableHLO promises to keep for years, and
modules read from it, from bytecode or from text. The bindings are `stablehlo.py`'s."""

from __future__ import annotations

import re
from typing import Any

from tenfold import dtypes
from tenfold.errors import EngineError, FormatError, UnsupportedError
from tenfold.flat.graph import TensorType
from tenfold.mlir import stablehlo
from tenfold.mlir.stablehlo import Module

BYTECODE = b"ML\xefR"  # how all MLIR bytecode starts; a portable artifact names its producer next
PRODUCER = b"StableHLO_v"
_DTYPES = {dtype.mlir: dtype for dtype in dtypes.ALL}


def serialize(module: Module) -> bytes:
    """The module as a portable artifact of StableHLO's current version. CHLO, which is not part of what is
    promised, is replaced by StableHLO."""
    with stablehlo._lock:
        b = stablehlo.bindings()
        b.dialect.register_stablehlo_passes()
        with b.context, b.unknown:
            plain = b.ir.Module.parse(module.bytecode())
            try:
                b.passmanager.PassManager.parse(stablehlo.WITHOUT_CHLO).run(plain.operation)
                return b.dialect.serialize_portable_artifact(plain, b.dialect.get_current_version())
            except Exception as error:
                raise EngineError(
                    f"StableHLO cannot make this module portable: {_first_line(error)}"
                ) from None


def read(data: bytes) -> Module:
    """A module from a portable artifact, from bytecode, or from text; damaged ones are refused."""
    with stablehlo._lock:
        b = stablehlo.bindings()
        with b.context, b.unknown:
            try:
                if data.startswith(BYTECODE) and PRODUCER in data[:64]:
                    module = b.dialect.deserialize_portable_artifact(b.context, data)
                else:
                    module = b.ir.Module.parse(data if data.startswith(BYTECODE) else data.decode())
                module.operation.verify()
            except Exception as error:
                raise FormatError(
                    f"this is no StableHLO module: {_first_line(error)}",
                    help="give a file that export(..., dialect='stablehlo') saved, or any StableHLO text",
                ) from None
    return Module(module, ())


def signature(module: Module) -> tuple[list[TensorType], list[TensorType]]:
    """The types that the module's `main` takes and gives."""
    with stablehlo._lock:
        mains = [each for each in module.module.body.operations if _name(each) == "main"]
        if not mains:
            raise FormatError("the module has no function @main")
        type = mains[0].attributes["function_type"].value
        return [_read(str(each)) for each in type.inputs], [_read(str(each)) for each in type.results]


def _name(op: Any) -> str:
    attributes = op.operation.attributes
    return attributes["sym_name"].value if "sym_name" in attributes else ""


def _read(text: str) -> TensorType:
    match = re.fullmatch(r"tensor<((?:\d+x)*)([^?]+)>", text)
    if match is None or match.group(2) not in _DTYPES:
        raise UnsupportedError(
            f"Tenfold cannot run a module with a {text}", help="export it with fixed sizes"
        )
    shape = tuple([int(extent) for extent in match.group(1).split("x")[:-1]])
    return TensorType(_DTYPES[match.group(2)], shape)


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip(" :")] or [type(error).__name__]
    return next((line for line in lines if not line.endswith(":")), lines[0])
