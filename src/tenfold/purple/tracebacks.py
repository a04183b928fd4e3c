"""What Python's traceback says of a Purple program: the functions under way, and what each calls."""

from __future__ import annotations

import itertools
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

from tenfold.purple import core
from tenfold.purple.blame import Step
from tenfold.purple.core import NOWHERE, Place
from tenfold.purple.python_ast import Unit

STACK_KEPT = 200


class Frame(NamedTuple):
    """A function under way: its name, where it is, and the name of what it calls there, if that is known."""

    name: str
    place: Place
    called: str = ""


class Tracebacks:
    """Reads tracebacks of one session's code. `run` and `apply` are the code of what runs a tail call, and of
    the primitive `apply`."""

    def __init__(self, unit: Unit, namespace: dict[str, Any], run: types.CodeType, apply: types.CodeType):
        self.unit, self.namespace, self.run, self.apply = unit, namespace, run, apply

    def steps(self, traceback: types.TracebackType | None) -> Iterator[Step]:
        """What each call under way is of, innermost first: see blame.py."""
        under_way = []
        while traceback is not None:
            under_way.append((traceback.tb_frame, traceback.tb_lasti))
            traceback = traceback.tb_next
        for frame, at in reversed(under_way):
            if frame.f_globals is self.namespace:
                key = position(frame, at)
                operation = self.unit.operations.get(key)
                call = self.unit.calls.get(key)
                callee = self.library_name(self.callee(call.function, frame)) if call is not None else ""
                yield Step(core.is_unseen(key[0]), operation, call, callee)
            elif frame.f_code is self.run and frame.f_locals["tail"].place is not NOWHERE:
                tail = frame.f_locals["tail"]
                # What the library was given, and called in tail position, is called as the program would.
                in_library = core.is_unseen(tail.place.file) and tail.place not in self.unit.given
                yield Step(in_library, None, None, "" if in_library else self.library_name(tail.function))
            elif frame.f_code is self.apply:
                yield Step(False, None, None, self.library_name(frame.f_locals["function"]), applied=True)

    def library_name(self, function: Any) -> str:
        """The name of a procedure of the library that programs call; "" of any other."""
        known = self.unit.functions.get(getattr(function, "__name__", ""))
        if known is None or not core.is_unseen(known.place.file):
            return ""
        shown = self.unit.defined.get(known, "%")
        return "" if shown.startswith("%") else shown

    def frames(self, traceback: types.TracebackType | None) -> list[Frame]:
        """Purple's frames, outermost first."""
        found: list[tuple[types.FrameType, int]] = []
        last_tail: Place | None = None
        callers = 0  # of the last tail call
        while traceback is not None:
            frame = traceback.tb_frame
            if frame.f_globals is self.namespace:
                found.append((frame, traceback.tb_lasti))
                if not core.is_unseen(frame.f_code.co_filename):
                    last_tail = None
            elif frame.f_code is self.run and is_seen(frame.f_locals["tail"].place):
                last_tail, callers = frame.f_locals["tail"].place, len(found)
            traceback = traceback.tb_next
        if last_tail is not None:
            found = found[:callers]
        if len(found) > STACK_KEPT:
            found = found[:1] + found[-STACK_KEPT:]
        frames: list[Frame] = []
        for frame, at in found:
            key = position(frame, at)
            place = self.unit.places.get(key) or Place(key[0], key[1], key[2] + 1)
            name = frame.f_code.co_name
            function = self.unit.functions.get(name)
            derived = function.derived if function else name.startswith("let")
            if derived and frames:  # no one called it
                frames[-1] = Frame(frames[-1].name, place, self.called_at(frame, key))
            else:
                called = self.called_at(frame, key)
                frames.append(Frame(function.name if function else "", place, called))
        if last_tail is not None:
            # It failed before what was called in tail position had begun, or in the library.
            frames.append(Frame(frames[-1].called if frames else "", last_tail))
        return frames

    def called_at(self, frame: types.FrameType, key: tuple[str, int, int]) -> str:
        """The name of what a frame calls, which may have left by calls in tail position since."""
        call = self.unit.calls.get(key)
        callee = self.callee(call.function, frame) if call is not None else None
        known = self.unit.functions.get(getattr(callee, "__name__", ""))
        return known.name if known is not None else ""

    def callee(self, node: core.Expr, frame: types.FrameType) -> Any:
        if isinstance(node, core.Local):
            return frame.f_locals.get(self.unit.variable(node.var))
        if isinstance(node, core.Global):
            return self.namespace.get(self.unit.global_name(node.name))  # it may not be defined yet
        return frame.f_locals.get(self.unit.callees.get(node, ""))


def position(frame: types.FrameType, at: int) -> tuple[str, int, int]:
    """Where a frame is in a file, by the offset of its instruction."""
    line, _, column, _ = next(itertools.islice(frame.f_code.co_positions(), at // 2, None))
    return frame.f_code.co_filename, line or 1, column or 0


def calls(frames: list[Frame], own: list[int]) -> list[tuple[str, Place]]:
    """The calls that some frames make, innermost first: the name of what was called, and where."""
    names = [
        each.called or (after.name if after else "")
        for each, after in itertools.zip_longest(frames, frames[1:])
    ]
    return [(names[i], frames[i].place) for i in reversed(own) if names[i]]


def is_seen(place: Place) -> bool:
    """Whether a place means something to people."""
    return place is not NOWHERE and not core.is_unseen(place.file)
