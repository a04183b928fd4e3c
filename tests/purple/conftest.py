"""Running Purple from tests: a program's output, or the error that it ends with."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any

import pytest

from tenfold.purple.deep_stack import with_deep_stack
from tenfold.purple.errors import PurpleError
from tenfold.purple.interpret import Session
from tenfold.purple.printing import write_text


@pytest.fixture
def output() -> Callable[[str], str]:
    """What a program prints."""

    def run(text: str) -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            with_deep_stack(lambda: Session().run_text(text, "test.purple"))
        return printed.getvalue()

    return run


@pytest.fixture
def value() -> Callable[[str], str]:
    """The last value of a program, as `write` shows it."""

    def run(text: str) -> str:
        return with_deep_stack(lambda: write_text(Session().run_text(text, "test.purple")))

    return run


@pytest.fixture
def failure() -> Callable[[str], Any]:
    """The error that a program ends with."""

    def run(text: str) -> PurpleError:
        with pytest.raises(PurpleError) as caught:
            with_deep_stack(lambda: Session().run_text(text, "test.purple"))
        return caught.value

    return run
