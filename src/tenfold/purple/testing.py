"""`purple test`: runs files of checks (`check-equal?`, `check-true`, `check-error`) and counts them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tenfold.purple.deep_stack import with_deep_stack
from tenfold.purple.errors import PurpleError, report
from tenfold.purple.interpret import Session
from tenfold.purple.prims import control
from tenfold.purple.reader import read_source

CHECKS = "prelude::%checks"


def run_tests(paths: Sequence[str], tell: Callable[[str], object]) -> int:
    """Run each file; the exit status is 1 when a check failed or a file did not run to its end."""
    return 1 if [path for path in paths if not _passes(path, tell)] else 0


def _passes(path: str, tell: Callable[[str], object]) -> bool:
    session, stopped = Session(), ""
    try:
        text = read_source(path)
        with_deep_stack(lambda: session.run_text(text, path))
    except control.Exit:
        pass
    except PurpleError as error:
        stopped = report(error, session.sources)
    passed, failed = session.namespace.get(session.unit.global_name(CHECKS), [0, 0])
    if stopped:
        tell(stopped)
        tell(f"{path}: stopped after {passed + failed} checks, {failed} of them failed")
    elif failed:
        tell(f"{path}: {failed} of {passed + failed} checks failed")
    else:
        tell(f"{path}: {passed} checks passed")
    return not failed and not stopped
