"""`eval`, `load` and environments: a running program expands and runs more of itself.

They need the expander and the interpreter, so a compiled program, which has neither, cannot use them:
`refuse_evaluation` says so when it is compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.purple import core
from tenfold.purple.captures import everything
from tenfold.purple.core import DATUM_FILE, NOWHERE, PRELUDE_FILE, Place
from tenfold.purple.errors import PurpleError
from tenfold.purple.libraries import import_sets
from tenfold.purple.prims.registry import want, want_string
from tenfold.purple.procedural import ValuesAsData
from tenfold.purple.reader import read, read_source
from tenfold.purple.values import UNSPECIFIED, Environment

if TYPE_CHECKING:
    from tenfold.purple.expand import Module
    from tenfold.purple.interpret import Session

EVALUATING = (
    "eval",
    "environment",
    "scheme-report-environment",
    "null-environment",
    "interaction-environment",
    "load",
)


class Evaluation:
    """The primitives of EVALUATING for one session."""

    def __init__(self, session: Session):
        self.session = session
        self.data = ValuesAsData(Place(DATUM_FILE, 1, 1), "eval", apart=True)
        methods = (
            self.eval,
            self.environment,
            lambda version: self.environment(),
            lambda version: self.environment(),
            self.interaction_environment,
            self.load,
        )
        self.primitives = {name: _named(name, method) for name, method in zip(EVALUATING, methods)}

    def eval(self, value: Any, environment: Any = None) -> Any:
        module = self._module("eval", environment)
        try:
            return self._run([self.data.datum(value)], module)
        except PurpleError as error:
            if error.place.file == DATUM_FILE:  # a place that nobody can look at: that of the call says more
                error.place, error.stack = NOWHERE, ()
            raise

    def environment(self, *sets: Any) -> Environment:
        module = self.session.expander.new_module("environment", self.session.expander.main.file)
        import_sets(self.session.expander, [self.data.datum(each) for each in sets], module)
        return Environment(module)

    def interaction_environment(self) -> Environment:
        return Environment(self.session.expander.main)

    def load(self, path: Any, environment: Any = None) -> Any:
        text = read_source(want_string("load", path))
        self.session.expander.sources[path] = text
        self._run(read(text, path), self._module("load", environment))
        return UNSPECIFIED

    def _module(self, name: str, environment: Any) -> Module:
        if environment is None:
            return self.session.expander.main
        return want(name, "environment", Environment, environment).module

    def _run(self, data: list[Any], module: Module) -> Any:
        expander = self.session.expander
        steps, value = expander.steps_of(data, module), UNSPECIFIED
        while True:
            before, depth = len(expander.forms), expander.depth
            expander.depth = 0
            try:
                forms = next(steps, None)
            finally:
                del expander.forms[before:]
                expander.depth = depth
            if forms is None:
                return value
            value = self.session.run_forms(forms)


def _named(name: str, method: Any) -> Any:
    def primitive(*arguments: Any) -> Any:
        return method(*arguments)

    primitive.purple_name = name  # type: ignore[attr-defined]
    return primitive


def first_evaluation(forms: list[core.Form]) -> core.Prim | core.PrimRef | None:
    """The first mention of one of EVALUATING."""
    for form in forms:
        if form.place.file == PRELUDE_FILE:
            continue
        for node in everything(form):
            if isinstance(node, core.Prim | core.PrimRef) and node.name in EVALUATING:
                return node
    return None


def refuse_evaluation(program: core.Program) -> None:
    """Refuse to compile a program that evaluates data or loads files while it runs."""
    found = first_evaluation(list(program.forms))
    if found is not None:
        what = "import or include the file" if found.name == "load" else "run it by `purple FILE`"
        raise PurpleError(
            f"{found.name}: a compiled program has no interpreter in it", "syntax", found.place, help=what
        )
