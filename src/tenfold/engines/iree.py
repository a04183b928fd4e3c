"""The IREE engine: modules of the torch dialect, StableHLO, linalg or TOSA compiled to a `.vmfb` file, and
such files run on NumPy arrays. IREE's packages load on first use, compiler and runtime apart."""

from __future__ import annotations

import functools
import io
import json
import os
import re
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from tenfold.base import digests
from tenfold.base.errors import (
    ArgumentError,
    EngineError,
    FormatError,
    MissingEngine,
    OutOfMemory,
    UnsupportedError,
)
from tenfold.base.package import install_command
from tenfold.engines import iree_memory, iree_words
from tenfold.mlir.interrupts import is_from_handler, once, pass_on

EXTRA = "iree"  # of this package, which brings the compiler and the runtime
SUPPORTED = ((3, 13), (4, 0))  # from, and before
SINCE, BEFORE = (".".join(map(str, numbers)) for numbers in SUPPORTED)
# What IREE's compiler calls the dialects that it reads; linalg needs no conversion.
INPUT_TYPES = {"torch": "torch", "stablehlo": "stablehlo", "linalg": "none", "tosa": "tosa"}
# By the target's name: IREE's compiler backend, and the driver that runs what it makes.
TARGETS = {"cpu": ("llvm-cpu", "local-task"), "vmvx": ("vmvx", "local-task"), "cuda": ("cuda", "cuda")}
# What a file tells of its function, beside its code.
REFLECTION = "tenfold"
DIGEST = "tenfold.digest"
# Without it IREE narrows every f64 to f32.
KEEP_WIDE = "--iree-input-demote-f64-to-f32=false"


@once
def compiler() -> SimpleNamespace:
    """IREE's compiler: its MLIR bindings and its command."""
    _require_version("iree-base-compiler")
    try:
        from iree.compiler import ir
        from iree.compiler.tools import CompilerToolError, compile_file
    except ImportError as error:
        raise _missing("compiling for IREE needs its compiler", error) from None
    return SimpleNamespace(ir=ir, compile_file=compile_file, failure=CompilerToolError)


@once
def runtime() -> Any:
    """IREE's runtime."""
    _require_version("iree-base-runtime")
    try:
        from iree import runtime
    except ImportError as error:
        raise _missing("running a .vmfb file needs IREE's runtime", error) from None
    return runtime


@functools.cache
def version(package: str = "iree-base-runtime") -> str | None:
    """The version of an installed package of IREE's."""
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _require_version(package: str) -> None:
    installed = version(package)
    if installed is None:
        raise MissingEngine(f"IREE needs {package}, which is not installed", help=install_command(EXTRA))
    number = tuple(int(part) for part in re.findall(r"\d+", installed)[:2])
    if not SUPPORTED[0] <= number < SUPPORTED[1]:
        raise MissingEngine(
            f"{package} {installed} is not one that this Tenfold knows ({SINCE} and later, before {BEFORE})",
            help=f"{install_command(EXTRA)} --upgrade",
        )


def _missing(what: str, error: ImportError) -> MissingEngine:
    return MissingEngine(f"{what}, which cannot be imported ({error})", help=install_command(EXTRA))


def compile(
    bytecode: bytes,
    dialect: str,
    *,
    target: str = "cpu",
    processor: str = "host",
    about: Mapping[str, Any] | None = None,
) -> bytes:
    """The module as a `.vmfb`, for the target. `processor` is the CPU whose instructions it may use, as LLVM
    names it, or "host", this machine's. `about` goes into the file, for who loads it."""
    if dialect not in INPUT_TYPES:
        raise ArgumentError(f"IREE does not read {dialect!r}", help=f"it is one of {', '.join(INPUT_TYPES)}")
    if target not in TARGETS:
        raise ArgumentError(f"there is no target {target!r}", help=f"it is one of {', '.join(TARGETS)}")
    c = compiler()
    flags = [KEEP_WIDE, *([f"--iree-llvmcpu-target-cpu={processor}"] if target == "cpu" else [])]
    with tempfile.TemporaryDirectory(prefix="tenfold-iree-") as folder:
        source = os.path.join(folder, "module.mlirbc")
        with open(source, "wb") as file:
            file.write(_described(bytecode, about or {}))
        try:
            data = c.compile_file(
                source,
                target_backends=[TARGETS[target][0]],
                input_type=INPUT_TYPES[dialect],
                extra_args=flags,
            )
            return digests.filled_in(data)
        except c.failure as error:
            raise UnsupportedError(
                f"IREE cannot compile this module: {_reason(str(error))}",
                help="export it in another dialect: IREE reads torch, stablehlo, linalg and tosa",
            ) from None


def _described(bytecode: bytes, about: Mapping[str, Any]) -> bytes:
    """The module with what is told of its `main` as an attribute that IREE passes on to the file."""
    ir = compiler().ir
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        try:
            module = ir.Module.parse(bytecode)
        except Exception as error:
            pass_on(error)
            raise FormatError(f"IREE cannot read this module: {_reason(str(error))}") from None
        iree_words.rewrite(ir, module)
        for op in module.body.operations:
            attributes = op.operation.attributes
            if "sym_name" in attributes and attributes["sym_name"].value == "main":
                text = ir.StringAttr.get(json.dumps(about))
                digest = ir.StringAttr.get(digests.BLANK)
                attributes["iree.reflection"] = ir.DictAttr.get({REFLECTION: text, DIGEST: digest})
        stream = io.BytesIO()
        module.operation.write_bytecode(stream)
        return stream.getvalue()


def require_undamaged(data: bytes) -> None:
    """Refuse a damaged file, since damaged machine code may run for a while. A file of Tenfold's carries a
    digest. A file that IREE wrote by itself is a zip archive, whose parts have checksums."""
    if digests.carried(data):
        digests.require_undamaged(data)
        return
    try:
        intact = not zipfile.is_zipfile(io.BytesIO(data)) or _matches_checksums(data)
    except Exception:  # of many types: zipfile trusts the numbers in an archive
        intact = False
    if not intact:
        raise FormatError(
            "the .vmfb file is damaged: its contents do not match their checksums",
            help="copy it again from where it was made, or compile it again",
        )


def _matches_checksums(data: bytes) -> bool:
    """Whether the parts of a file are as IREE wrote them: uncompressed, apart, each with its CRC-32."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = archive.infolist()
        if sum(part.file_size for part in parts) > len(data):
            return False
        return all(part.compress_type == zipfile.ZIP_STORED for part in parts) and archive.testzip() is None


class Executable:
    """A `.vmfb` that was loaded: call it with arrays, get arrays. `about` is what was told when it was made,
    empty for files that other programs made."""

    def __init__(self, data: bytes, target: str = "cpu", on_trial: bool = False):
        """Load a file; one that is on trial ends the process if it makes IREE read outside of it."""
        rt = runtime()
        if target not in TARGETS:
            raise ArgumentError(f"there is no target {target!r}", help=f"it is one of {', '.join(TARGETS)}")
        try:
            config = rt.Config(TARGETS[target][1])
        except Exception as error:
            pass_on(error)
            raise EngineError(
                f"IREE has no device to run this on: {_reason(str(error))}", help="use target='cpu'"
            ) from None
        if not data:
            raise FormatError("this is no .vmfb file: it is empty")
        try:
            memory = iree_memory.guarded(data) if on_trial else iree_memory.mapped(data)
            module = rt.VmModule.wrap_buffer(config.vm_instance, memory)
            self.names = list(module.function_names)
            context = rt.SystemContext(vm_modules=(module,), config=config)
        except Exception as error:
            pass_on(error)
            raise FormatError(
                f"this is no .vmfb file that IREE can load: {_reason(str(error))}",
                help="make one with `tenfold build`, with this version of IREE",
            ) from None
        if "main" not in self.names:
            raise FormatError("the file has no function @main")
        self._device = config.device
        self._invoke = context.vm_context.invoke
        self._function = module.lookup_function("main")
        self._context = context
        self.about: dict[str, Any] = _told(self._function.reflection.get(REFLECTION, "{}"))

    def __call__(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        rt = runtime()
        try:
            arguments = rt.VmVariantList(len(arrays))
            for array in arrays:
                arguments.push_ref(self._put(array))
            results = rt.VmVariantList(1)
            self._invoke(self._function, arguments, results)
            views = [results.get_as_object(i, rt.HalBufferView) for i in range(len(results))]
            return [np.array(rt.DeviceArray(self._device, view).to_host()) for view in views]
        except Exception as error:
            raise _translated(error) from None

    def _put(self, array: np.ndarray) -> Any:
        """A copy of the array in memory of the device."""
        rt = runtime()
        element = rt.array_interop.map_dtype_to_hal_element_type(array.dtype)
        if element is None:
            raise UnsupportedError(f"IREE has no arrays of {array.dtype}")
        whole = np.ascontiguousarray(array).reshape(array.shape)
        return self._device.allocator.allocate_buffer_copy(
            memory_type=rt.MemoryType.DEVICE_LOCAL,
            allowed_usage=rt.BufferUsage.DEFAULT | rt.BufferUsage.MAPPING,
            device=self._device,
            buffer=whole,
            element_type=element,
        )


def _told(text: str) -> dict[str, Any]:
    try:
        about = json.loads(text)
    except ValueError:
        about = None
    if not isinstance(about, dict):
        raise FormatError("what the file tells of its function is damaged", help="build it again")
    return about


def _translated(error: Exception) -> Exception:
    if is_from_handler(error):
        return error
    told = str(error)
    if "RESOURCE_EXHAUSTED" in told or isinstance(error, MemoryError):
        return OutOfMemory(f"out of memory: {_reason(told)}", help="use smaller tensors or batches")
    return error if isinstance(error, UnsupportedError) else EngineError(f"IREE: {_reason(told)}")


def _reason(told: str) -> str:
    """The first line of IREE's report that says something, without the place in its own sources."""
    lines = [line.strip() for line in told.splitlines() if line.strip()] or ["it does not say why"]
    passed = re.search(r'torch\.operator"?[^\n]*?"torch\.(\w+\.[\w.]+)"', told)
    if passed is not None:
        return f"it has no lowering of {passed.group(1)}"
    if re.search(r"^Error code: -", told, re.MULTILINE):
        return "its compiler crashed"
    if "Diagnostics:" in lines:  # what stands before is about how it was called
        lines = lines[lines.index("Diagnostics:") + 1 :] or lines
    errors = [line for line in lines if "error:" in line]
    if errors:
        return re.sub(r"^.*?error: ", "", errors[0]).partition(": %")[0]
    return re.sub(r"^.*?\S+\.(?:c|cc|cpp|h):\d+: [A-Z_]+; ", "", lines[0]).partition("; while")[0]
