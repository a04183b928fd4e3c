"""`torch.torch_version`: the class of `torch.__version__`, a string that compares as a version."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from typing import Any

from tenfold import version

__all__ = ["TorchVersion"]

# The parts of a version as PEP 440 writes them, epochs aside.
_VERSION = re.compile(
    r"\s*v?(?P<release>\d+(?:\.\d+)*)"
    r"(?:[-_.]?(?P<phase>alpha|beta|preview|pre|a|b|c|rc)[-_.]?(?P<number>\d*))?"
    r"(?:-(?P<implicit>\d+)|[-_.]?(?:post|rev|r)[-_.]?(?P<post>\d*))?"
    r"(?P<isdev>[-_.]?dev[-_.]?(?P<dev>\d*))?"
    r"(?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?\s*",
    re.IGNORECASE,
)
_PHASES = {"alpha": "a", "beta": "b", "preview": "rc", "pre": "rc", "c": "rc"}


def _key(text: str) -> tuple[Any, ...] | None:
    """What versions are ordered by; None of a string that is no version."""
    found = _VERSION.fullmatch(text)
    if found is None:
        return None
    release = [int(part) for part in found["release"].split(".")]
    while len(release) > 1 and release[-1] == 0:
        release.pop()
    phase = found["phase"].lower() if found["phase"] else ""
    after = found["implicit"] or found["post"]
    has_post = after is not None
    # A development release comes before all others of its number, then the phases, then the release.
    if phase:
        stage = (_PHASES.get(phase, phase), int(found["number"] or 0))
    else:
        stage = ("", 0) if found["isdev"] and not has_post else ("release", 0)
    post = int(after or 0) if has_post else -1
    dev = int(found["dev"] or 0) if found["isdev"] else float("inf")
    local = [
        (1, int(part), "") if part.isdigit() else (0, 0, part.lower())
        for part in re.split(r"[-_.]", found["local"] or "")
        if part
    ]
    return tuple(release), ("", "a", "b", "rc", "release").index(stage[0]), stage[1], post, dev, tuple(local)


def _compared(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def method(self: TorchVersion, other: Any) -> bool:
        if not isinstance(other, str):
            if isinstance(other, Iterable):
                other = ".".join([str(part) for part in other])
            elif type(other).__name__ == "Version":  # of the package `packaging`
                other = str(other)
            else:
                return NotImplemented
        mine, theirs = _key(str(self)), _key(str(other))
        if mine is None or theirs is None:
            return compare(str(self), str(other))
        return compare(mine, theirs)

    return method


class TorchVersion(str):
    """A string that compares as a version does with strings, tuples of numbers and `packaging`'s versions:
    `TorchVersion("2.13.0") > "2.9"`, and so with `(2, 9)`."""

    __slots__ = ()
    __hash__ = str.__hash__
    __lt__ = _compared(operator.lt)
    __le__ = _compared(operator.le)
    __eq__ = _compared(operator.eq)
    __ne__ = _compared(operator.ne)
    __gt__ = _compared(operator.gt)
    __ge__ = _compared(operator.ge)


__version__ = TorchVersion(version.pytorch)
