"""Arguments of whose derivative the FlatIR ops do not tell.

By one there is none that is known here: asking for it is an error, not a zero. A lowering passes such an
argument through `undifferentiable` and on to a `differentiated` function that gives it a cotangent of zeros.
That flows on to here only where someone wants it. By another the derivative is zero, because it only chooses:
the result is to require gradients with it, as in PyTorch, though no floats lead from one to the other.
"""

from tenfold import flat
from tenfold.base.errors import UnsupportedError


def _refuse(cotangent, result, x, what):
    raise UnsupportedError(f"there is no derivative by {what}", help="detach it")


@flat.differentiated(_refuse)
def undifferentiable(x, what):
    """x itself; `what` it is, for the message."""
    return x


@flat.differentiated(lambda cotangent, result, x, chooser: (cotangent, None))
def chosen_by(x, chooser):
    """x itself, whose derivative by what chose it is zero."""
    return x
