"""Arguments by which an op has no derivative that is known here: asking for one is an error, not a zero.

A lowering passes such an argument through `undifferentiable` and on to a `differentiated` function that gives
it a cotangent of zeros. That flows on to here only where someone wants it.
"""

from tenfold import flat
from tenfold.errors import UnsupportedError


def _refuse(cotangent, result, x, what):
    raise UnsupportedError(f"there is no derivative by {what}", help="detach it")


@flat.differentiated(_refuse)
def undifferentiable(x, what):
    """x itself; `what` it is, for the message."""
    return x
