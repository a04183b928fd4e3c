"""Long Purple programs, for timing builds: small programs again and again, each time under other names."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

from benchmarks.harness import ROOT
from benchmarks.purple_classics import CLASSICS

FILES = [f"tests/purple/programs/{name}.purple" for name in ("interpreter", "heap", "words", "generators")]
FILES += ["tests/purple/programs/nbody.purple", "examples/purple/json.purple"]
SMALL = ("deriv", "sort", "nqueens", "closures", "strings")
DEFINED = re.compile(r"^\(define \(?([^\s()]+)", re.MULTILINE)
TYPES = re.compile(r"^\(deftype (\S+)", re.MULTILINE)
WORD = re.compile(r"""("(?:[^"\\]|\\.)*"|\#\\.[^\s()]*|;.*)|[^\s()'"`,;]+""")  # the group is left as it is


def renamed(text: str, number: int) -> str:
    """The same program, with names that no other copy has."""
    own, types = set(DEFINED.findall(text)), TYPES.findall(text)

    def other(found: re.Match[str]) -> str:
        word = found[0]
        if found[1] is not None:
            return word
        if word in own:
            return f"{word}-{number}"
        for name in types:
            if word in (name, f"mk-{name}", f"{name}?") or word.startswith(f"{name}-"):
                return word.replace(name, f"{name}{number}")
        return word

    return WORD.sub(other, text)


def pieces(lines: int, first: int) -> list[str]:
    """Programs of about so many lines together, named by the numbers from `first` on."""
    small = [(ROOT / file).read_text(encoding="utf-8") for file in FILES] + [CLASSICS[name] for name in SMALL]
    found: list[str] = []
    for number in itertools.count(first):
        if sum(each.count("\n") for each in found) >= lines:
            return found
        found.append(renamed(small[number % len(small)], number) + "\n")
    raise AssertionError


def in_files(folder: Path, lines: int, count: int) -> tuple[Path, Path]:
    """Write a program of so many files and about so many lines; its main file, and one to change."""
    texts = pieces(lines, 0)
    for number in range(count):
        text = f"(define (mark x) (+ x {number}))\n" + "".join(texts[number::count])
        (folder / f"m{number}.purple").write_text(text, encoding="utf-8")
    main = "".join(f'(import "m{number}.purple" :as m{number})\n' for number in range(count))
    main += "".join(f"(print (m{number}/mark 1))\n" for number in range(count))
    (folder / "main.purple").write_text(main, encoding="utf-8")
    return folder / "main.purple", folder / f"m{count // 2}.purple"
