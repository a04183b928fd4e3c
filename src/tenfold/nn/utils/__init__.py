"""`tenfold.nn.utils`: what is done to modules and parameters as a whole."""

from tenfold.nn.utils import rnn

__all__ = ["rnn"]
