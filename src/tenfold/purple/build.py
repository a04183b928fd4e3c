"""Native programs: the C of a program is compiled with the runtime, whose object files are kept between
builds, and linked with
libtenfold where it uses tensors.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import unicodedata
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from tenfold.base import folders
from tenfold.base.garbage import uncollected
from tenfold.capi.build import build as build_libtenfold
from tenfold.capi.compilers import version_of
from tenfold.purple import core, unicode_tables
from tenfold.purple.emit_c import Warn, deep
from tenfold.purple.emit_units import CFile, compile_units
from tenfold.purple.errors import PurpleError
from tenfold.purple.foreign import libraries
from tenfold.purple.interpret import expand_program
from tenfold.purple.reader import read_source
from tenfold.purple.usage import uses_tensors
from tenfold.runtime import cache

RUNTIME = Path(__file__).parent / "runtime"
PLAIN = (
    "bytes",
    "calls",
    "characters",
    "equality",
    "errors",
    "exact",
    "excerpt",
    "lists",
    "labels",
    "limbs",
    "literals",
    "memory",
    "numbers",
    "numerals",
    "ports",
    "print",
    "random",
    "system",
    "tables",
    "text",
    "wholes",
)
WITH_TENSORS = (
    "liveness",
    "row_stack",
    "rows",
    "tensor_arithmetic",
    "tensor_files",
    "tensor_index",
    "tensor_make",
    "tensor_scopes",
    "tensor_text",
    "tensors",
)
STRICT = ("-std=c99", "-Wall", "-Wextra", "-ffp-contract=off")
# For programs of several C files, the passes of gcc's -O2 that matter to them, in two thirds of its time.
QUICK = (
    "-O1",
    "-fcaller-saves",
    "-fexpensive-optimizations",
    "-finline-small-functions",
    "-foptimize-sibling-calls",
    "-freorder-blocks-and-partition",
)


def build(
    path: str,
    output: str,
    debug: bool = False,
    warn: Warn = lambda cycle: None,
    rpath: str | None = None,
) -> None:
    """Compile a program's file to a native program. With `debug`, gdb shows the program's own lines; it
    looks for libtenfold in `rpath`, where one is installed, or in the cache."""
    with uncollected():
        program = deep(lambda: expand_program(read_source(path), path))
    build_program(program, output, debug=debug, warn=warn, rpath=rpath)


def build_program(
    program: core.Program,
    output: str,
    *,
    debug: bool = False,
    compiler: str | None = None,
    options: tuple[str, ...] = (),
    warn: Warn = lambda cycle: None,
    rpath: str | None = None,
) -> None:
    """`options` go to the C compiler, for the runtime too: sanitizers, -DPURPLE_INJECT for PURPLE_FAIL_AT, or
    -DPURPLE_CHECK_UNIQUE, which ends a program that releases what is shared as if it had one owner."""
    compiler = compiler or find_compiler()
    level = ("-g", "-O0") if debug else ("-O2",)
    tensors = uses_tensors(program)
    libtenfold = build_libtenfold() if tensors else None
    more = (*options, *(libtenfold.compile_flags if libtenfold else ()))
    flags = (*STRICT, *level, *more)
    objects = runtime_objects(compiler, flags, tensors)
    quick = not debug and "clang" not in version_of(compiler)
    part_flags = (*STRICT, *QUICK, *more) if quick else flags
    with tempfile.TemporaryDirectory() as folder:
        own = program_objects(program, compiler, (flags, part_flags), folder, debug, warn)
        links = libtenfold.link_flags_for(rpath) if libtenfold else []
        links += foreign_flags(program)
        command = [compiler, *flags, *own, *objects, "-o", output, *links, "-lm", "-lpthread"]
        try:
            run(command, program.file)
        except PurpleError as error:
            raise missing_function(program, error.message) or error from None


def program_objects(
    program: core.Program,
    compiler: str,
    flags: tuple[tuple[str, ...], tuple[str, ...]],
    folder: str,
    lines: bool,
    warn: Warn,
) -> list[str]:
    """The object files of a program's C files, put into a folder: each is compiled while the next ones are
    written. Those whose text was compiled before with the same flags, which are those of a whole program and
    those of a part, and with this compiler and runtime, come from the cache."""
    digests = [runtime_digest(compiler, each) for each in flags]

    def compiled(unit: CFile) -> str:
        source, target = Path(folder) / f"{unit.name}.c", Path(folder) / f"{unit.name}.o"
        is_part = not unit.is_whole
        key = cache.key("purple object", digests[is_part], unit.text)
        known = cache.load(key)
        if known is not None:
            target.write_bytes(known)
            return str(target)
        source.write_text(unit.text)
        run(
            [compiler, *flags[is_part], f"-I{RUNTIME}", "-c", str(source), "-o", str(target)],
            program.file,
        )
        cache.store(key, target.read_bytes())
        return str(target)

    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        objects: list[Future[str]] = []
        compile_units(
            program, lines=lines, warn=warn, ready=lambda c: objects.append(pool.submit(compiled, c))
        )
        return [each.result() for each in objects]


def missing_function(program: core.Program, complaint: str) -> PurpleError | None:
    """The error of a foreign function that the linker did not find, where that is what it complains of."""
    for form in program.forms:
        if isinstance(form, core.Ffi):
            library = form.library or "the C library"
            if form.library and f"cannot find {link_flag(form.library)}:" in complaint:
                return PurpleError(
                    f"{core.shown(form.name)}: there is no library {library}", "foreign", form.place
                )
            if f"undefined reference to `{form.symbol}'" in complaint:
                message = f"{core.shown(form.name)}: {library} has no function {form.symbol}"
                return PurpleError(message, "foreign", form.place, help="name its library by :library")
    return None


def foreign_flags(program: core.Program) -> list[str]:
    """What links the libraries that a program's declarations name."""
    return [flag for library in libraries(program) for flag in (link_flag(library), *run_path(library))]


def link_flag(library: str) -> str:
    """How the linker knows a library: a path as it is, `libm.so.6` as a file, `m` by what it stands for."""
    if "/" in library:
        return library
    return f"-l:{library}" if ".so" in library else f"-l{library}"


def run_path(library: str) -> list[str]:
    """Where the program looks for a library that is named by its path, when it runs."""
    return [f"-Wl,-rpath,{Path(library).resolve().parent}"] if "/" in library else []


def find_compiler() -> str:
    """CC, gcc or clang, whichever is there."""
    for name in (os.environ.get("CC"), "gcc", "clang", "cc"):
        found = shutil.which(name) if name else None
        if found:
            return found
    raise PurpleError(
        "there is no C compiler: neither gcc nor clang was found",
        "file",
        help="install one (Debian: apt install gcc), or name one in the environment variable CC",
    )


def runtime_objects(compiler: str, flags: tuple[str, ...], tensors: bool) -> list[str]:
    """The runtime's object files for these flags, compiled unless they are there already."""
    folder = private_folder(runtime_digest(compiler, flags)[:20])
    tables = folder / "unicode_tables.h"
    if not tables.exists():
        unfinished = folder / f"unicode_tables.{os.getpid()}.h"
        unfinished.write_text(unicode_tables.header())
        unfinished.rename(tables)
    names = [*PLAIN, *(WITH_TENSORS if tensors else ())]
    for name in names:
        target = folder / f"{name}.o"
        if not target.exists():
            unfinished = folder / f"{name}.{os.getpid()}.o"
            source = RUNTIME / f"{name}.c"
            run(
                [compiler, *flags, "-D_GNU_SOURCE", f"-I{RUNTIME}", f"-I{folder}", "-c", str(source)]
                + ["-o", str(unfinished)],
                str(source),
            )
            unfinished.rename(target)
    return [str(folder / f"{name}.o") for name in names]


def runtime_digest(compiler: str, flags: tuple[str, ...]) -> str:
    """What object files depend on beside their own source: the runtime, the flags and the compiler."""
    found = os.stat(shutil.which(compiler) or compiler)
    digest = hashlib.sha256(repr((compiler, found.st_size, found.st_mtime_ns, flags)).encode())
    for source in sorted(RUNTIME.glob("*.[ch]")):
        digest.update(source.read_bytes())
    digest.update(Path(unicode_tables.__file__).read_bytes() + unicodedata.unidata_version.encode())
    return digest.hexdigest()


def private_folder(name: str) -> Path:
    """A folder for object files that nobody else may write to."""
    base = cache.folder() or os.path.join(tempfile.gettempdir(), f"tenfold-{os.geteuid()}")
    folder = Path(base) / "purple" / name
    folders.make(str(folder))
    for place in (Path(base), folder):
        why = folders.why_shared(place.stat())
        if why is not None:
            raise PurpleError(
                f"object files are not kept in {place}: {why}", "file", help=f"chmod go-w {place}"
            )
    return folder


def run(command: list[str], file: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        first = "\n".join(done.stderr.strip().splitlines()[:20])
        raise PurpleError(f"{file}: the C compiler failed\n{first}", "file")
