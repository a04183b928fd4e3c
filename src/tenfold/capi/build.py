"""Building libtenfold against the installed libtorch, in the user's cache: once for each version, source and
compiler.

A build leaves lib/libtenfold.so (what programs link), lib/libtenfold_torch.so (what it loads), the headers
under include/, and lib/pkgconfig/tenfold.pc. Objects are kept by what they were made from, so a change
compiles little.
"""

from __future__ import annotations

import fnmatch
import functools
import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tenfold.base.errors import ArgumentError
from tenfold.capi import rt
from tenfold.capi.compilers import Running, compiler, version_of
from tenfold.capi.describe import HEADER, describe
from tenfold.capi.generate import generate
from tenfold.capi.kept import locked, tidy, unfinished
from tenfold.capi.locate import Libtorch, cache_folder, find_libtorch, require_own
from tenfold.capi.remembered import recall, remember, state_of
from tenfold.capi.sonames import link_names, soname
from tenfold.version import release

__all__ = ["Built", "Progress", "build"]

SHARDS = 12
# Sources that are compiled as one, so that what libtorch's headers cost is paid once for all of them.
TOGETHER = (
    "apart written",
    "autograd functions scopes",
    "archives compile modules script script_functions sources torch_objects training",
    "contents stacks values",
    "devices generators memory",
    "optimizers safetensors steps",
    "needs*",
)
WORTH_A_PREFIX = 5  # with more files than these to compile, precompiling headers saves time
SANITIZERS = ("address", "undefined", "thread")
Progress = Callable[[str, int, int], None]  # what was done, how many steps of how many

TORCH_HEADER = "tenfold/torch.h"  # for C++ that links libtorch itself
INSTALLED_HEADERS = ("tenfold.h", "tenfold_ops.h", TORCH_HEADER)

_SOURCES = Path(__file__).with_name("src")


@dataclass(frozen=True)
class Built:
    """The folder of a finished build, and what programs need of it."""

    folder: Path
    libtorch: Libtorch

    @property
    def include(self) -> Path:
        return self.folder / "include"

    @property
    def lib(self) -> Path:
        return self.folder / "lib"

    @property
    def library(self) -> Path:
        """libtenfold.so, to link or to load."""
        return self.lib / "libtenfold.so"

    @property
    def compile_flags(self) -> list[str]:
        return [f"-I{self.include}"]

    @property
    def link_flags(self) -> list[str]:
        return self.link_flags_for(None)

    def link_flags_for(self, rpath: str | None) -> list[str]:
        """Those of a program that looks for libtenfold in a folder when it starts; None is the build's."""
        return [f"-L{self.lib}", "-ltenfold", f"-Wl,-rpath,{rpath or self.lib}"]

    @property
    def rt_link_flags(self) -> list[str]:
        """Those of a program that calls libtenfold_rt, and perhaps libtenfold."""
        return [f"-L{self.lib}", "-ltenfold_rt", *self.link_flags[1:]]

    @property
    def torch_compile_flags(self) -> list[str]:
        """Those of C++ that includes tenfold/torch.h, and so libtorch's headers."""
        return ["-std=c++20", *(f"-isystem{each}" for each in self.libtorch.include)]

    @property
    def torch_link_flags(self) -> list[str]:
        lib = self.libtorch.lib
        return [f"-L{lib}", "-ltorch", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{lib}"]


def build(
    *,
    sanitize: Sequence[str] = (),
    jobs: int | None = None,
    progress: Progress = lambda done, step, steps: None,
) -> Built:
    """The library for the installed libtorch, built if the cache does not have it."""
    unknown = set(sanitize) - set(SANITIZERS)
    if unknown:
        raise ArgumentError(
            f"no sanitizer is called {', '.join(sorted(unknown))}", help=f"one of {', '.join(SANITIZERS)}"
        )
    if jobs is not None and jobs < 1:
        raise ArgumentError(f"there cannot be {jobs} compilers at a time", help="--jobs 1, or more")
    libtorch = find_libtorch()
    work = _Work(libtorch, tuple(sorted(set(sanitize))), jobs or os.cpu_count() or 1, progress)
    built = Built(work.folder, libtorch)
    require_own(cache_folder())
    require_own(built.folder)
    if not built.library.exists():
        with locked(built.folder):
            if not built.library.exists():  # another process may have made it meanwhile
                work.run()
        tidy(cache_folder())
    with suppress(OSError):  # of another user's build, or one on a disk that is only read
        os.utime(built.folder)  # used now: see kept.py
    rt.add(built.include, built.lib, work.compilers[".c"], work.sanitize)
    return built


class _Work:
    """One build: what it is made from, and its steps."""

    def __init__(self, libtorch: Libtorch, sanitize: tuple[str, ...], jobs: int, progress: Progress):
        self.libtorch, self.jobs, self.progress = libtorch, jobs, progress
        self.compilers = {".c": compiler("CC", "gcc", "cc"), ".cpp": compiler("CXX", "g++", "c++")}
        self.versions = [version_of(each) for each in self.compilers.values()]
        self.running = Running()
        self.optimize = {
            ".c": ["-O1", "-foptimize-sibling-calls", "-freorder-functions"],
            ".cpp": ["-O1" if sanitize else "-O2"],  # with sanitizers -O2 compiles for a quarter of an hour
        }
        # Threads and exit handlers come back to both libraries, so neither goes when a host closes it.
        self.shared = ["-shared", "-Wl,-z,nodelete"]
        self.common = [
            "-fPIC",
            "-fvisibility=hidden",
            f'-DTENFOLD_TORCH_VERSION="{libtorch.version.split("+")[0]}"',
            "-DAT_PER_OPERATOR_HEADERS",  # let libtorch's headers include of all operators those they need
        ]
        self.sanitize = (
            [f"-fsanitize={','.join(sanitize)}", "-g", "-fno-omit-frame-pointer"] if sanitize else []
        )
        # To look at an object's class needs the type information of libtorch's, of which it exports some.
        self.sanitize += ["-fno-sanitize=vptr"] if "undefined" in sanitize else []

    @functools.cached_property
    def folder(self) -> Path:
        """Where the build lies: its name says what it is made from."""
        cache = cache_folder()
        state = state_of(self.libtorch, *self._settings())
        name = recall(cache, state)
        if name is None:
            whole = "\n".join(f"{name}\n{text}" for name, text in sorted(self.files.items()))
            whole += soname("libtenfold")
            name = f"{self.libtorch.version}-{self._hash('build', whole)}"
            remember(cache, state, name)
        return cache / name

    @functools.cached_property
    def files(self) -> dict[str, str]:
        """The sources by their names: those that are generated, and those that are written by hand."""
        files = generate(describe(self.libtorch), self.libtorch, SHARDS)
        files[HEADER.name] = HEADER.read_text(encoding="utf-8")
        files[TORCH_HEADER] = (HEADER.parent / TORCH_HEADER).read_text(encoding="utf-8")
        for path in sorted(_SOURCES.iterdir()):
            if path.suffix in (".c", ".cpp", ".h"):
                files[path.name] = path.read_text(encoding="utf-8")
        for names in [_together(files, each) for each in TOGETHER]:
            files[f"unit_{names[0]}"] = "".join([f'#include "{name}"\n' for name in names])
        return files

    def _hash(self, *parts: str) -> str:
        return hashlib.sha256("\0".join([*parts, *self._settings()]).encode()).hexdigest()[:16]

    def _settings(self) -> list[str]:
        return [
            *self.common,
            *self.sanitize,
            *self.optimize[".cpp"],
            *self.optimize[".c"],
            *self.shared,
            str(self.libtorch.folder),
            *self.versions,
            release,
        ]

    def run(self) -> None:
        self.progress("libtenfold", 0, 1)
        partial = unfinished(self.folder)
        shutil.rmtree(partial, ignore_errors=True)  # of a build that was killed
        partial.mkdir()
        pool = ThreadPoolExecutor(self.jobs)  # signals interrupt the main thread, so others run the compilers
        try:
            for name, text in self.files.items():
                path = partial / ("include" if name in INSTALLED_HEADERS else "src") / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            (partial / "lib" / "pkgconfig").mkdir(parents=True)
            objects = self._compile_all(partial, pool)
            pool.submit(self._link, partial, objects).result()
            (partial / "lib/pkgconfig/tenfold.pc").write_text(self._pkg_config(), encoding="utf-8")
            shutil.rmtree(partial / "src")
            shutil.rmtree(self.folder, ignore_errors=True)
            partial.rename(self.folder)
        except BaseException:
            self.running.stop()  # or the pool would wait for them
            raise
        finally:
            pool.shutdown(cancel_futures=True)
            shutil.rmtree(partial, ignore_errors=True)

    def _compile_all(self, partial: Path, pool: ThreadPoolExecutor) -> dict[str, Path]:
        kept = cache_folder() / "objects"
        kept.mkdir(exist_ok=True)
        # The largest first: what is started last should be short.
        in_units = {name for each in TOGETHER for name in _together(self.files, each)}
        names = [name for name in self.files if not name.endswith(".h") and name not in in_units]
        slow = {name for name in names if any("torch/csrc" in text for text in self._made_from(name))}
        names.sort(key=lambda name: (name not in slow, -len(self.files[name])))
        objects = {name: kept / f"{self._hash(name, *self._made_from(name))}.o" for name in names}
        steps = len(names) + 2
        missing = [name for name in names if name.endswith(".cpp") and not objects[name].exists()]
        running: dict[Future[None], str] = {}

        def compile_each(some: Sequence[str], prefix: list[str]) -> None:
            for name in some:
                running[pool.submit(self._compile, partial, name, objects[name], prefix)] = name

        precompiled = pool.submit(self._precompile, partial) if len(missing) > WORTH_A_PREFIX else None
        # Meanwhile what needs no such headers, and one that takes as long as they do.
        without = [name for name in names if name.endswith(".c")]
        without += [name for name in missing if name in slow][:1]
        compile_each(without, [])
        prefix = precompiled.result() if precompiled else []
        compile_each([name for name in names if name not in without], prefix)
        for step, done in enumerate(as_completed(running), 1):
            done.result()
            self.progress(running[done], step, steps)
        return objects

    def _made_from(self, name: str) -> list[str]:
        """The text of a source and of the headers it includes, at any depth. What the header declares does
        not change the operators' code, so they are not compiled again for another function's sake."""
        texts, todo, seen = [], [name], {name}
        if name.endswith(".cpp") and '"tenfold_ops.h"' not in self.files[name]:
            seen.add("tenfold_ops.h")  # see TENFOLD_WITHOUT_OPS
        while todo:
            text = self.files[todo.pop()]
            texts.append(_DECLARATION.sub("", text) if name.startswith("typed_") else text)
            for each in _INCLUDE.findall(text):
                if each in self.files and each not in seen:
                    seen.add(each)
                    todo.append(each)
        recorded = [str(self.folder)] if "TENFOLD_RECORDED_LIBRARY" in self.files[name] else []
        return [*recorded, *(_COMMENT.sub("", text) for text in texts)]

    def _precompile(self, partial: Path) -> list[str]:
        """Flags that include libtorch's commonest headers, read beforehand."""
        prefix = partial / "src" / "prefix.h"
        command = [self.compilers[".cpp"], "-x", "c++-header", str(prefix), *self._cpp_flags(partial)]
        self.running.run([*command, "-o", f"{prefix}.gch"], "precompiling headers")
        self.progress("headers of libtorch", 0, 1)
        return ["-include", str(prefix)]

    def _cpp_flags(self, partial: Path) -> list[str]:
        own = [*self.common, *self.optimize[".cpp"], *self.sanitize, f"-I{partial / 'include'}", "-std=c++20"]
        return [*own, *(f"-isystem{each}" for each in self.libtorch.include)]

    def _compile(self, partial: Path, name: str, target: Path, prefix: list[str]) -> None:
        if target.exists():
            os.utime(target)
            return
        suffix = Path(name).suffix
        command = [self.compilers[suffix], "-c", str(partial / "src" / name)]
        if suffix == ".cpp":
            command += [*prefix, *self._cpp_flags(partial)]
        else:
            recorded = self.folder / "lib" / "libtenfold_torch.so"
            command += [
                *self.common,
                *self.optimize[".c"],
                *self.sanitize,
                f"-I{partial / 'include'}",
                "-std=c11",
            ]
            command += [f'-DTENFOLD_VERSION="{release}"', f'-DTENFOLD_RECORDED_LIBRARY="{recorded}"']
        partly = target.with_suffix(f".{os.getpid()}.{name}.o")
        try:
            self.running.run([*command, "-o", str(partly)], f"compiling {name}")
            partly.rename(target)
        finally:
            partly.unlink(missing_ok=True)

    def _link(self, partial: Path, objects: dict[str, Path]) -> None:
        steps = len(objects) + 2
        c_objects = [str(path) for name, path in objects.items() if name.endswith(".c")]
        shared = [*self.shared, *self.sanitize]
        library = partial / "lib" / soname("libtenfold")
        command = [self.compilers[".c"], *shared, *c_objects, f"-Wl,-soname,{library.name}"]
        command += ["-o", str(library), "-ldl", "-lpthread"]
        self.running.run(command, "linking libtenfold.so")
        link_names(library)
        self.progress("libtenfold.so", steps - 1, steps)
        cpp_objects = [str(path) for name, path in objects.items() if name.endswith(".cpp")]
        libraries = ["torch", "torch_cpu", "c10"]
        libraries += ["torch_cuda", "c10_cuda"] if self.libtorch.cuda else []
        command = [
            self.compilers[".cpp"],
            *shared,
            *cpp_objects,
            "-Wl,-soname,libtenfold_torch.so",
        ]
        command += [f"-L{self.libtorch.lib}", "-Wl,--no-as-needed", *(f"-l{each}" for each in libraries)]
        command += ["-Wl,--as-needed", f"-Wl,-rpath,{self.libtorch.lib}", "-ldl"]
        command += ["-l:libstdc++.so.6"]  # libtorch's own, of which a compiler may prefer to link a copy
        command += [] if self.sanitize else ["-Wl,-z,defs"]  # a sanitizer's own symbols come with the program
        command += ["-o", str(partial / "lib/libtenfold_torch.so")]
        self.running.run(command, "linking libtenfold_torch.so")
        self.progress("libtenfold_torch.so", steps, steps)

    def _pkg_config(self) -> str:
        return (
            f"prefix={self.folder}\nlibdir=${{prefix}}/lib\nincludedir=${{prefix}}/include\n\n"
            f"Name: tenfold\nDescription: libtorch for any language, over a C ABI\nVersion: {release}\n"
            'Libs: -L"${libdir}" -ltenfold -Wl,-rpath,"${libdir}"\nCflags: -I"${includedir}"\n'
        )


def _together(files: Iterable[str], patterns: str) -> list[str]:
    """The sources whose names fit patterns."""
    return [name for each in patterns.split() for name in fnmatch.filter(files, f"{each}.cpp")]


_INCLUDE = re.compile(r'^#include "([\w.]+)"', re.MULTILINE)
_DECLARATION = re.compile(r"^TN_API [^;]*;\n", re.MULTILINE)
_COMMENT = re.compile(r"/\*.*?\*/\s*", re.DOTALL)
