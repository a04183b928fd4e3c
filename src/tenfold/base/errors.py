"""The errors Tenfold raises: one tree under TenfoldError, each class also the built-in Python would raise.

An error says what was wrong, shows the user's line with a caret and where each operand was made, and says
what to do.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from tenfold.base.source import Source, capture, short_name

if TYPE_CHECKING:
    from typing import Self


class Operand(NamedTuple):
    """What an error tells of one operand. The user's expression names it, or else the hint does."""

    name_hint: str | None
    type_text: str
    source: Source | None


class TenfoldError(RuntimeError):
    """The root of the tree. PyTorch raises RuntimeError for most things, so every one of ours is one too."""

    op: str = ""
    source: Source | None = None
    operands: tuple[Operand, ...] = ()
    _text: str | None = None

    def __init__(self, message: str, *, help: str | Callable[[], str | None] | None = None):
        super().__init__(message)
        self.message = message
        self.help = help

    def located(self, op: str, source: Source | None, operands: Sequence[Operand] = ()) -> Self:
        """Say which operator failed, where in the user's program and on what. The first place known stays."""
        if self.source is None and self._text is None and (source is not None or not self.op):
            self.op, self.source, self.operands = op, source, tuple(operands)
        return self

    def __str__(self) -> str:
        return _render(self) if self._text is None else self._text

    def _render_traceback_(self) -> list[str]:
        """What IPython and notebooks print: the user's frames, without Tenfold's own."""
        return [*user_frames(self), f"{type(self).__name__}: {self}"]

    def __reduce__(self) -> tuple[Any, ...]:
        state = dict(vars(self))
        if self.source or self.operands:
            # A code object does not pickle: what travels to another process is the text.
            state.update(source=None, operands=(), _text=str(self))
        return type(self), (self.message,), state


# Whose frames are not the user's.
RUNNERS = (
    "tenfold",
    "IPython",
    "ipykernel",
    "runpy",
    "importlib",
    "_frozen_importlib",
    "_frozen_importlib_external",
)


def user_frames(error: BaseException) -> list[str]:
    """The traceback of an error as lines of text, without the frames of Tenfold and of what ran the file."""
    import traceback  # which takes a while to load

    trace = error.__traceback__
    modules = [str(frame.f_globals.get("__name__", "")) for frame, _ in traceback.walk_tb(trace)]
    frames = [
        frame
        for frame, module in zip(traceback.extract_tb(trace, len(modules)), modules, strict=True)
        if module.partition(".")[0] not in RUNNERS
    ]
    for frame in frames:
        frame.filename = _shown(frame.filename)
    return "".join(traceback.format_list(frames)).splitlines()


def _shown(filename: str) -> str:
    """A file as a traceback names it: its path, but of a notebook's cell `In[4]`."""
    name = short_name(filename)
    return filename if filename.endswith(name) else name


class ShapeError(TenfoldError, ValueError):
    """Shapes that do not fit each other or the operator."""


class SizeOutOfRange(ShapeError, TypeError):
    """A size of over 64 bits, which is none at all."""


class DTypeError(TenfoldError, TypeError, NotImplementedError):
    """A dtype the operator does not take, for which PyTorch has "not implemented", or dtypes that do not go
    together."""


class NumberOutOfRange(DTypeError, ValueError, OverflowError):
    """A number that a dtype does not hold."""


class DeviceError(TenfoldError, ValueError):
    """A device that is not there, or operands on different devices."""


class NoData(DeviceError, NotImplementedError):
    """The data of a tensor on the meta device, of which there is none."""


class MissingDevice(DeviceError, AssertionError):
    """A kind of device that this installation has no plugin for."""


class ArgumentError(TenfoldError, TypeError, ValueError):
    """Arguments that match no overload of the operator, or a value that it does not take."""


class NotLent(DTypeError, BufferError):
    """A tensor whose memory another library cannot read as it is."""


class BadIndex(ArgumentError, IndexError):
    """Something that cannot be an index."""


class IndexOutOfRange(TenfoldError, IndexError):
    """A dimension or an index outside the tensor."""


class DivisionByZero(TenfoldError, ZeroDivisionError):
    """An integer divided by zero."""


class LinAlgError(TenfoldError, ValueError):
    """A matrix that has no such factors or inverse: singular, or not positive-definite."""


class UnknownName(TenfoldError, AttributeError):
    """A name that Tenfold does not have."""


class UnsupportedError(TenfoldError, NotImplementedError):
    """Something PyTorch does and Tenfold, or the chosen engine, does not."""


class MissingEngine(TenfoldError, ImportError):
    """An engine that is not installed."""


class TraceError(TenfoldError, TypeError):
    """A traced function that asked for a value, which is not known while it is traced."""


class ValueNeeded(TraceError):
    """A traced function that asked for a value of a tensor."""


class OutOfMemory(TenfoldError, MemoryError):
    """A device that has no room for the result."""


class GradientError(TenfoldError):
    """A gradient that cannot be taken: no graph, a graph already used, a value written in place since."""


class EngineError(TenfoldError):
    """A failure inside an engine."""


class DistributedError(TenfoldError):
    """Processes that do not work together: one died, hangs, never joined, or runs another program."""


class DistStoreError(DistributedError):
    """A store that does not have what was asked for in time."""


class QueueEmptyError(DistStoreError):
    """A queue of a store that has no value."""


class DistNetworkError(DistributedError):
    """A connection to a store that cannot be made, or is broken."""


class FormatError(TenfoldError, ValueError):
    """Damaged or hostile input: a file, a buffer, a serialized program."""


class UnsafePickle(FormatError, UnpicklingError):
    """A pickle that holds more than tensors, plain data and what was declared safe, or that is damaged."""


class FileError(TenfoldError, OSError):
    """A file that cannot be opened, read or written."""


class MissingFile(FileError, FileNotFoundError):
    """A file, or the folder for one, that is not there."""


class FolderGiven(FileError, IsADirectoryError):
    """A folder in the place of a file."""


class ForbiddenFile(FileError, PermissionError):
    """A file that this user may not read or write."""


class CacheWarning(TenfoldError, UserWarning):
    """A compilation cache that could not be read or written, and was done without."""


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """The help for an unknown name: "did you mean tanh?", or None when nothing is near it."""
    import difflib  # Costs more than this whole module, and is needed only after a mistake.

    nearest = difflib.get_close_matches(name, candidates, n=1, cutoff=0.66)
    return f"did you mean {nearest[0]}?" if nearest else None


def unknown_name(module: str, name: str, names: Iterable[str]) -> UnknownName:
    """The error for a name that a module of ours does not have."""
    public = [each for each in names if not each.startswith("_")]
    error = UnknownName(f"{module} has no {name!r}", help=lambda: did_you_mean(name, public))
    return error.located("", capture())


Declared = TypeVar("Declared", bound=Callable[..., Any])


def located(function: Declared) -> Declared:
    """A function of the package whose errors say where the user called it."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TenfoldError as error:
            raise error.located(function.__name__.strip("_"), capture()) from None

    return cast("Declared", call)


def constructor(init: Declared) -> Declared:
    """An `__init__` whose errors name the class, and say where the user made one."""

    @functools.wraps(init)
    def construct(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            init(self, *args, **kwargs)
        except TenfoldError as error:
            raise error.located(type(self).__name__, capture()) from None

    return cast("Declared", construct)


_NAME_LIMIT = 20  # A longer expression says less than "operand 0".
_LINE_LIMIT = 90


def _render(error: TenfoldError) -> str:
    named = error.op and not error.message.startswith(f"{error.op}: ")
    lines = [f"{error.op}: {error.message}" if named else error.message]
    sources = [error.source, *(operand.source for operand in error.operands)]
    width = max((_columns(source.short) for source in sources if source), default=0)
    if error.source:
        place = f"  --> {_pad(error.source.short, width)}   "
        text, carets = _excerpt(error.source)
        lines += [place + text, " " * _columns(place) + carets if carets else ""]
    lines += _operand_lines(error, width)
    help = error.help() if callable(error.help) else error.help
    if help:
        lines.append("  help: " + help.replace("\n", "\n        "))
    return "\n".join(line.rstrip() for line in lines if line)


def _operand_lines(error: TenfoldError, width: int) -> Iterable[str]:
    hints = [operand.name_hint for operand in error.operands]
    written = error.source.operand_names(error.op, hints) if error.source else [None] * len(hints)
    names = [
        name if name and len(name) <= _NAME_LIMIT and "\n" not in name else hint or f"operand {i}"
        for i, (name, hint) in enumerate(zip(written, hints, strict=True))
    ]
    name_width = max(map(_columns, names), default=0)
    type_width = max((_columns(operand.type_text) for operand in error.operands), default=0)
    rows = []
    for name, operand in zip(names, error.operands, strict=True):
        row = f"      {_pad(name + ':', name_width + 1)} {_pad(operand.type_text, type_width)}"
        if operand.source:
            row += f" made at {_pad(operand.source.short, width)}   {_excerpt(operand.source)[0]}"
        rows.append(row)
    return dict.fromkeys(rows)  # `x + x` needs one line.


def _excerpt(source: Source) -> tuple[str, str]:
    """The user's line, as much of it as fits, and the carets under it ("" where the columns are unknown)."""
    text = "".join(character if character.isprintable() else " " for character in source.text)
    start, end = source.span() or (0, 0)
    if end > _LINE_LIMIT and start > _LINE_LIMIT // 2:
        text = "…" + text[start:]
        start, end = 1, end - start + 1
    if len(text) > _LINE_LIMIT:
        text = text[: _LINE_LIMIT - 1] + "…"
        end = min(end, _LINE_LIMIT)
    return text, " " * _columns(text[:start]) + "^" * _columns(text[start:end])


def _pad(text: str, width: int) -> str:
    return text + " " * (width - _columns(text))


def _columns(text: str) -> int:
    """How many columns of a terminal the text takes: two for a wide character, none for a combining one."""
    if text.isascii():
        return len(text)
    import unicodedata  # An extension module, loaded only for names that need it.

    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    combining = sum(unicodedata.category(character) in ("Mn", "Me") for character in text)
    return len(text) + wide - combining
