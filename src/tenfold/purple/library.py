"""libpurple: what compiled Purple programs call, as a static and a shared library beside a built libtenfold.

The C that `purple -c` prints is compiled and linked with it by hand: `cc p.c $(purple flags) -o p`.
"""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

from tenfold.capi.build import Built
from tenfold.capi.install import Package
from tenfold.capi.sonames import link_names, soname
from tenfold.purple.build import RUNTIME, find_compiler, run, runtime_objects

__all__ = ["LIBPURPLE", "add_library", "flags"]

FLOATS = "-ffp-contract=off"  # a product and a sum stay two roundings, as the interpreter has them
LIBPURPLE = Package(
    "purple",
    "what compiled Purple programs call",
    headers="purple",
    needs=("tenfold",),
    system=("m", "pthread"),
    flags=(FLOATS,),
    static=True,
)


def flags(built: Built) -> list[str]:
    """What compiles and links the C of a Purple program."""
    add_library(built)
    compile_flags = [f"-I{built.include / 'purple'}", *built.compile_flags, FLOATS]
    return [*compile_flags, f"-L{built.lib}", "-lpurple", *built.link_flags, "-lm", "-lpthread"]


def add_library(built: Built) -> None:
    """Make libpurple.a and libpurple.so with their headers, unless these very objects are in them."""
    compiler = find_compiler()
    objects = runtime_objects(
        compiler, ("-std=c99", "-O2", "-fPIC", FLOATS, *built.compile_flags), tensors=True
    )
    headers = sorted(RUNTIME.glob("*.h"))
    made_from = hashlib.sha256(
        "\0".join(objects).encode()
    )  # whose folder is named after what they are made from
    for header in headers:
        made_from.update(header.read_bytes())
    stamp = built.lib / "libpurple.key"
    if stamp.exists() and stamp.read_text("utf-8") == made_from.hexdigest():
        return
    (built.include / "purple").mkdir(exist_ok=True)
    for header in headers:
        (built.include / "purple" / header.name).write_bytes(header.read_bytes())
    with tempfile.TemporaryDirectory(dir=built.lib) as folder:
        archive, shared = Path(folder, "libpurple.a"), Path(folder, soname("libpurple"))
        run(["ar", "rcs", str(archive), *objects], str(archive))
        links = [f"-L{built.lib}", "-ltenfold", "-Wl,-rpath,$ORIGIN", "-lm", "-lpthread"]
        command = [compiler, "-shared", f"-Wl,-soname,{shared.name}", *objects, *links, "-o", str(shared)]
        run(command, str(shared))
        for each in (archive, shared):
            each.rename(built.lib / each.name)
    link_names(built.lib / soname("libpurple"))
    stamp.write_text(made_from.hexdigest(), "utf-8")
