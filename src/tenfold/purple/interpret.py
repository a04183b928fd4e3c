"""The interpreter: runs the core language by way of Python's own compiler, and says where a program
failed.

A `Session` keeps the definitions of one program, or of one REPL. Errors of every sort that a program can
meet become a `PurpleError` with the place and the calls under way, both read off Python's traceback.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import tenfold
from tenfold.base import source
from tenfold.base.errors import TenfoldError, did_you_mean
from tenfold.purple import core, messages, names
from tenfold.purple.blame import blame
from tenfold.purple.core import LIBRARY, NOWHERE, UNSEEN, Form, Place
from tenfold.purple.errors import PurpleError
from tenfold.purple.evaluation import EVALUATING, Evaluation, first_evaluation
from tenfold.purple.expand import Expander
from tenfold.purple.generate import form_module
from tenfold.purple.prims import foreign
from tenfold.purple.prims.control import spread, want_procedure
from tenfold.purple.prims.records import RecordType, get_field, is_record, make_record, set_field
from tenfold.purple.prims.refused import told
from tenfold.purple.prims.registry import REGISTRY
from tenfold.purple.prims.rows import row_function
from tenfold.purple.prims.tensors import want_device
from tenfold.purple.prims.truth import is_true
from tenfold.purple.printing import brief
from tenfold.purple.python_ast import Unit
from tenfold.purple.reader import Datum
from tenfold.purple.tracebacks import Frame, Tracebacks, calls, is_seen, position
from tenfold.purple.usage import is_about_tensors
from tenfold.purple.values import NIL, UNSPECIFIED, Char, ErrorValue, Pair, Record, Symbol, list_of
from tenfold.tensor import Tensor

CATCHABLE = (TenfoldError, TypeError, NameError, RecursionError, MemoryError)
Result = TypeVar("Result")
for file in UNSEEN:  # an op that the library records belongs to the line that called the library
    source.internal(file)


class Tail:
    """A call that was in tail position, for the nearest caller to run."""

    __slots__ = ("arguments", "function", "place")

    def __init__(self, function: Any, arguments: tuple[Any, ...], place: Place):
        self.function, self.arguments, self.place = function, arguments, place


def run(tail: Tail) -> Any:
    while True:
        function, arguments = tail.function, tail.arguments
        # Calls with so many arguments written out cost Python no room on the machine's stack.
        match len(arguments):
            case 0:
                value = function()
            case 1:
                value = function(arguments[0])
            case 2:
                value = function(arguments[0], arguments[1])
            case 3:
                value = function(arguments[0], arguments[1], arguments[2])
            case 4:
                value = function(arguments[0], arguments[1], arguments[2], arguments[3])
            case _:
                value = function(*arguments)
        if type(value) is not Tail:
            return value
        tail = value


def call(function: Any, *arguments: Any) -> Any:
    """Call a procedure from Python."""
    return run(Tail(function, arguments, NOWHERE))


def invoke(function: Any, argument: Any, place: Place) -> Any:
    return run(Tail(function, (argument,), place))


def evaluate(datum: Datum) -> Callable[..., Any]:
    """The procedure that an expression gives, run by an interpreter of its own."""
    session = Session()
    procedure = session.run_forms(session.expander.run_data([datum]))

    def called(*arguments: Any) -> Any:
        try:
            return call(procedure, *arguments)
        except CATCHABLE as error:
            raise session.locate(error) from None

    return called


def expand_program(text: str, file: str) -> core.Program:
    """The whole program that a file's text is, with what it imports and what it needs of the prelude. One
    that evaluates data, which nobody can know whole before it runs, ends with the form that does."""
    expander = Expander(evaluate)
    next(expander.steps(text, file))
    return expander.program(file)


class Session:
    """Definitions, and the code that runs on them. `late`: names may be defined after they are mentioned."""

    def __init__(self, late: bool = False):
        self.expander = Expander(evaluate, late)
        self.redefined = late  # whether what runs later may define names anew
        self.objects: dict[Any, Any] = {}
        self.namespace: dict[str, Any] = {
            "NIL": NIL,
            "UNSPECIFIED": UNSPECIFIED,
            "MISSING": object(),
            "Pair": Pair,
            "Record": Record,
            "Symbol": Symbol,
            "Char": Char,
            "Tail": Tail,
            "CATCHABLE": CATCHABLE,
            "run": run,
            "invoke": invoke,
            "spread": spread,
            "list_of": list_of,
            "caught": self.locate,
            "within": within,
            "Tensor": Tensor,
            "is_true": is_true,
            "wrong_arity": wrong_arity,
            "wrong_keyword": wrong_keyword,
            "partial": functools.partial,
            "make_record": make_record,
            "is_record": is_record,
            "get_field": get_field,
            "set_field": set_field,
        }
        self.unit = Unit(self.namespace, self.runtime_object)
        self.tracebacks = Tracebacks(self.unit, self.namespace, run.__code__, _apply.__code__)
        self.primitive_functions: dict[int, str] = {}

    @property
    def sources(self) -> dict[str, str]:
        return self.expander.sources

    def run_text(self, text: str, file: str) -> Any:
        """Run a program's text; the value of its last form."""
        value: Any = UNSPECIFIED
        for forms in self.expander.steps(text, file):
            value = self.run_forms(forms)
        return value

    def run_forms(self, forms: Iterable[Form]) -> Any:
        forms = list(forms)
        self.redefined = self.redefined or first_evaluation(forms) is not None
        self.unit.flow.study(forms, self._stable)
        value: Any = UNSPECIFIED
        for form in forms:
            value = self._run_form(form)
        return value

    def _stable(self, name: str) -> bool:
        info = self.expander.globals.get(name)
        return info is not None and not info.assigned and (not self.redefined or name.startswith("prelude::"))

    def _run_form(self, form: Form) -> Any:
        if isinstance(form, core.DefType):
            self.runtime_object(form)
            return UNSPECIFIED
        if isinstance(form, core.Ffi):
            return UNSPECIFIED
        try:
            if isinstance(form, core.Define) and isinstance(form.value, core.Lambda):
                self.unit.defined[form.value] = core.shown(form.name)
            with warnings.catch_warnings():  # what Python would say of its own syntax is not about Purple's
                warnings.simplefilter("ignore", SyntaxWarning)
                code = compile(form_module(self.unit, form), form.place.file, "exec")
        except RecursionError:
            raise PurpleError("this form is nested too deeply", "syntax", form.place) from None
        except SyntaxError as error:  # "too many statically nested blocks"
            raise PurpleError(f"this form cannot be compiled: {error.msg}", "syntax", form.place) from None
        try:
            exec(code, self.namespace)
            value = self.namespace["top"]()
            return run(value) if type(value) is Tail else value
        except CATCHABLE as error:
            raise self.locate(error) from None
        except BrokenPipeError:
            raise
        except Exception as error:
            raise _internal(error, self.tracebacks.frames(error.__traceback__)) from error

    def runtime_object(self, wanted: str | core.DefType | core.Ffi) -> Any:
        """What the code finds under a primitive's name, or for a declaration."""
        found = self.objects.get(wanted)
        if found is None:
            if isinstance(wanted, core.DefType):
                found = RecordType(wanted)
            elif isinstance(wanted, core.Ffi):
                found = foreign.function(wanted)
            elif wanted == "apply":
                found = _apply
            elif wanted == "procedure-arity":
                found = self._arity
            elif wanted in EVALUATING:
                found = Evaluation(self).primitives[wanted]
            else:
                found = REGISTRY.get(wanted) or row_function(wanted)
                if wanted in REGISTRY and is_about_tensors(wanted):
                    found = told(wanted, found)
            self.objects[wanted] = found
        return found

    # Errors

    def locate(self, error: BaseException) -> PurpleError:
        """The error as Purple tells it, with its place and the calls that led there."""
        frames = self.tracebacks.frames(error.__traceback__)
        traceback = error.__traceback__
        if isinstance(error, PurpleError):
            found = error
        elif isinstance(error, TenfoldError):
            help = error.help() if callable(error.help) else error.help
            found = PurpleError(error.message, "tensor", help=help)
        elif isinstance(error, RecursionError):
            found = PurpleError(messages.TOO_DEEP, "memory")
        elif isinstance(error, MemoryError):
            found = PurpleError("out of memory", "memory")
        elif isinstance(error, NameError):
            found = self._unbound(error)
        else:
            found = self._bad_call(error) or _internal(error, frames)
        blame(found, self.tracebacks.steps(traceback))
        own = [i for i, frame in enumerate(frames) if not core.is_unseen(frame.place.file)]
        if found.again:
            found.stack = [*found.stack, *calls(frames, own)]
            found.again = False
        if found.place is NOWHERE:
            found.place = frames[own[-1]].place if own else NOWHERE
            # Each was called by the frame before it; what the innermost one called is where it failed.
            found.stack = calls(frames, own[:-1])
            if type(found.payload) is ErrorValue and is_seen(found.place):
                found.payload.place = str(found.place)
        return found

    def _unbound(self, error: NameError) -> PurpleError:
        python_name = error.name or _name_read(error)
        if python_name in self.unit.local_names:
            return PurpleError(messages.unbound(self.unit.local_names[python_name]), "unbound")
        name = next(each for each, known in self.unit.global_names.items() if known == python_name)
        shown = core.shown(name)
        if name in self.expander.globals:
            return PurpleError(messages.unbound(shown), "unbound")
        return self.expander.unknown(shown, NOWHERE, self.expander.main.scope)

    def _bad_call(self, error: BaseException) -> PurpleError | None:
        """What Python calls a TypeError: something that is no procedure was called, or with wrong
        arguments.
        """
        traceback = error.__traceback__
        while traceback is not None and traceback.tb_next is not None:
            traceback = traceback.tb_next
        if traceback is None:
            return None
        frame = traceback.tb_frame
        if frame.f_code is run.__code__:
            tail = frame.f_locals["tail"]
            return self.diagnose(tail.function, len(tail.arguments), ())
        if frame.f_globals is not self.namespace:
            return None
        node = self.unit.calls.get(position(frame, traceback.tb_lasti))
        if node is None:
            return None
        function = self.tracebacks.callee(node.function, frame)
        return self.diagnose(function, len(node.arguments), [keyword for keyword, _ in node.keywords])

    def diagnose(self, function: Any, count: int, keywords: Iterable[str]) -> PurpleError | None:
        if isinstance(function, functools.partial):  # a tail call with keywords
            keywords = [keyword.removeprefix("k_").replace("_", "-") for keyword in function.keywords]
            function = function.func
        if not callable(function):
            return PurpleError(messages.not_a_procedure(brief(function)), "type")
        known = self.unit.functions.get(getattr(function, "__name__", ""))
        if known is None:
            name = getattr(function, "purple_name", None)
            primitive = names.PRIMITIVES.get(name) if name else None
            if primitive is None:
                return None
            for keyword in keywords:
                return refusal(primitive, messages.unknown_keyword(primitive.name, keyword))
            return refusal(primitive, wrong_count(primitive, count))
        minimum = len(known.params)
        maximum = None if known.rest else minimum
        if count < minimum or (maximum is not None and count > maximum):
            found = PurpleError(messages.wrong_count(known.name, minimum, maximum, count), "arity")
        else:
            given = list(keywords)
            taken = [keyword for keyword, _, _ in known.keywords]
            unknown = [keyword for keyword in given if keyword not in taken]
            missing = [
                keyword for keyword, _, default in known.keywords if default is None and keyword not in given
            ]
            if unknown:
                found = PurpleError(
                    messages.unknown_keyword(known.name, unknown[0]),
                    "arity",
                    help=did_you_mean(unknown[0], taken),
                )
            elif missing:
                found = PurpleError(messages.missing_keyword(known.name, missing[0]), "arity")
            else:
                return None
        return found.defined(known.name, known.place, core.signature(known))

    def _arity(self, function: Any) -> int:
        want_procedure("procedure-arity", function)
        known = self.unit.functions.get(getattr(function, "__name__", ""))
        if known is not None:
            return len(known.params)
        primitive = names.PRIMITIVES.get(getattr(function, "purple_name", ""))
        return primitive.minimum if primitive else 1


def _name_read(error: BaseException) -> str:
    """The variable that the failing instruction reads: Python names only global ones in its error."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    assert traceback is not None
    code = traceback.tb_frame.f_code
    return next(
        str(instruction.argval)
        for instruction in dis.get_instructions(code)
        if instruction.offset == traceback.tb_lasti
    )


def _internal(error: BaseException, frames: list[Frame]) -> PurpleError:
    """An error that is the interpreter's fault, not the program's."""
    place = frames[-1].place if frames else NOWHERE
    return PurpleError(
        f"internal error: {type(error).__name__}: {error}", "internal", place, help="please report this"
    )


def _apply(function: Any, *arguments: Any) -> Any:
    if not arguments:
        raise PurpleError(messages.wrong_count("apply", 2, None, 1), "arity")
    return run(Tail(function, spread(*arguments), NOWHERE))


_apply.purple_name = "apply"  # type: ignore[attr-defined]


def wrong_arity(name: str, given: int, values: tuple[Any, ...]) -> Any:
    known = names.PRIMITIVES[name]
    raise refusal(known, wrong_count(known, given))


def wrong_keyword(name: str, keyword: str, values: tuple[Any, ...]) -> Any:
    raise refusal(names.PRIMITIVES[name], messages.unknown_keyword(name, keyword))


def wrong_count(known: names.Primitive, given: int) -> str:
    return messages.wrong_count(known.name, known.minimum, known.maximum, given)


def refusal(known: names.Primitive, message: str) -> PurpleError:
    return PurpleError(message, "arity").defined(known.name, LIBRARY, known.signature())


@contextlib.contextmanager
def within(kind: str, argument: Any = None) -> Iterator[None]:
    """The effect of `with-device`, `with-grad` and `no-grad` on what runs inside."""
    if kind == "device":
        before = tenfold.get_default_device()
        device = tenfold.device(want_device("with-device", argument))
        if device.type == "cuda" and tenfold.cuda.device_count() <= (device.index or 0):
            raise PurpleError(f'with-device: there is no device "{device}" here', "tensor")
        tenfold.set_default_device(device)
        try:
            yield
        finally:
            tenfold.set_default_device(before)
    else:
        with tenfold.enable_grad() if kind == "grad" else tenfold.no_grad():
            yield
