"""How the classes of this package report a wrong construction: by their name and the user's line."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from tenfold.errors import TenfoldError
from tenfold.source import capture

Init = TypeVar("Init", bound=Callable[..., None])


def constructor(init: Init) -> Init:
    """An `__init__` whose errors name the class."""

    @functools.wraps(init)
    def construct(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            init(self, *args, **kwargs)
        except TenfoldError as error:
            raise error.located(type(self).__name__, capture()) from None

    return cast("Init", construct)
