"""What the engine refuses, told in Purple's words: the procedure that was called and what it was given. The
engine's own words become the help beside it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from tenfold.base.errors import TenfoldError
from tenfold.purple import messages
from tenfold.purple.errors import PurpleError
from tenfold.purple.printing import brief
from tenfold.purple.values import Pair, is_list
from tenfold.tensor import Tensor


def told(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose errors are told as those of the primitive `name`."""

    def primitive(*arguments: Any, **keywords: Any) -> Any:
        try:
            return function(*arguments, **keywords)
        except TenfoldError as error:
            raise refusal(name, error, arguments, keywords) from None

    primitive.purple_name = name  # type: ignore[attr-defined]
    return primitive


def refusal(
    name: str, error: TenfoldError, arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> PurpleError:
    if isinstance(error, PurpleError):
        return error
    given = [described(argument) for argument in arguments]
    given += [f":{word.replace('_', '-')} {described(value)}" for word, value in keywords.items()]
    return PurpleError(messages.refused(name, given), "tensor", help=error.message)


LISTED = 8  # elements of a list that a message describes


def described(value: Any) -> str:
    """A tensor by its dtype and shape, any other value as messages show it."""
    if type(value) is Pair and is_list(value):
        items = [described(each) for each in itertools.islice(value, LISTED + 1)]
        return f"({' '.join(items[:LISTED])}{' …' * (len(items) > LISTED)})"
    if not isinstance(value, Tensor):
        return brief(value)
    return f"{value.dtype.name} ({' '.join(map(str, value.shape))})"
