"""Installing what was built into a prefix, as `make install` would: headers, libraries with sonames, and the
files by which pkg-config and CMake find them. Programs that link it need nothing of the cache."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tenfold.base.errors import ArgumentError, FileError
from tenfold.capi.build import Built
from tenfold.capi.sonames import link_names, soname
from tenfold.version import release

__all__ = ["LIBTENFOLD", "Package", "install"]


@dataclass(frozen=True)
class Package:
    """A library as pkg-config and CMake know it."""

    name: str
    about: str
    headers: str = ""  # the folder of its headers within include/
    needs: tuple[str, ...] = ()
    system: tuple[str, ...] = ()  # what it needs of the C library
    flags: tuple[str, ...] = ()
    static: bool = False  # whether there is a libNAME.a as well

    @property
    def pkg_config(self) -> str:
        requires = f"Requires: {' '.join(self.needs)}\n" if self.needs else ""
        include = "${includedir}" + (f"/{self.headers}" if self.headers else "")
        # Without quotes: pkgconf writes the spaces of its ${pcfiledir} with a backslash.
        return (
            "prefix=${pcfiledir}/../..\nlibdir=${prefix}/lib\nincludedir=${prefix}/include\n\n"
            f"Name: {self.name}\nDescription: {self.about}\nVersion: {release}\n{requires}"
            f"Libs: -L${{libdir}} -l{self.name} -Wl,-rpath,${{libdir}}"
            f"{''.join(f' -l{each}' for each in self.system)}\n"
            f"Cflags: {' '.join([f'-I{include}', *self.flags])}\n"
        )

    @property
    def cmake(self) -> str:
        """The imported target Tenfold::NAME."""
        target = f"Tenfold::{self.name}"
        links = ";".join([*(f"Tenfold::{need}" for need in self.needs), *self.system])
        include = "${_tenfold}/include" + (f"/{self.headers}" if self.headers else "")
        properties = {
            "IMPORTED_LOCATION": f"${{_tenfold}}/lib/lib{self.name}.so.{release}",
            "IMPORTED_SONAME": soname(f"lib{self.name}"),
            "INTERFACE_INCLUDE_DIRECTORIES": include,
            "INTERFACE_LINK_LIBRARIES": links,
            "INTERFACE_COMPILE_OPTIONS": ";".join(self.flags),
        }
        lines = "".join(f'  {name} "{value}"\n' for name, value in properties.items() if value)
        return (
            f"if(NOT TARGET {target})\n  add_library({target} SHARED IMPORTED)\n"
            f"  set_target_properties({target} PROPERTIES\n{lines}  )\nendif()\n"
        )


LIBTENFOLD = (
    Package("tenfold", "libtorch for any language, over a C ABI"),
    Package("tenfold_rt", "tensors for runtimes that pass 64-bit handles", needs=("tenfold",)),
)


def install(built: Built, packages: Sequence[Package], prefix: str, destdir: str = "") -> Path:
    """Copy a build to a prefix, below `destdir` where packages are made; the folder that was written."""
    if not os.path.isabs(prefix):
        raise ArgumentError(f"{prefix} is no absolute path", help=f"--prefix {os.path.abspath(prefix)}")
    root = Path(destdir + prefix) if destdir else Path(prefix)
    try:
        _fill(root, built, packages)
    except OSError as error:
        raise FileError(
            f"{error.filename2 or error.filename or root} cannot be written: {error.strerror}",
            help="install as a user who may, or with --prefix or --destdir of a folder of your own",
        ) from None
    return root


def _fill(root: Path, built: Built, packages: Sequence[Package]) -> None:
    include, lib = root / "include", root / "lib"
    for each in sorted(built.include.rglob("*.h")):
        _copy(each, include / each.relative_to(built.include))
    for package in packages:
        name = f"lib{package.name}"
        target = lib / f"{name}.so.{release}"
        _copy(built.lib / soname(name), target)
        link_names(target)
        if package.static:
            _copy(built.lib / f"{name}.a", lib / f"{name}.a")
        _write(lib / "pkgconfig" / f"{package.name}.pc", package.pkg_config)
    _copy(
        built.lib / "libtenfold_torch.so", lib / "libtenfold_torch.so"
    )  # libtenfold looks for it beside itself
    for name, text in _cmake(packages).items():
        _write(lib / "cmake" / "Tenfold" / name, text)


def _cmake(packages: Sequence[Package]) -> dict[str, str]:
    config = 'get_filename_component(_tenfold "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)\n'
    config += "".join(package.cmake for package in packages) + "unset(_tenfold)\n"
    version = f"""set(PACKAGE_VERSION "{release}")
if(PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
else()
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
  if(PACKAGE_FIND_VERSION STREQUAL PACKAGE_VERSION)
    set(PACKAGE_VERSION_EXACT TRUE)
  endif()
endif()
"""
    return {"TenfoldConfig.cmake": config, "TenfoldConfigVersion.cmake": version}


def _copy(source: Path, target: Path) -> None:
    """Put a file in the place of one that a running program may use."""
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f"{target.name}.{os.getpid()}")
    shutil.copyfile(source, unfinished)
    unfinished.chmod(0o755 if ".so" in target.name else 0o644)
    unfinished.rename(target)


def _write(target: Path, text: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
