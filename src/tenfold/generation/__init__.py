"""`tenfold.generation`: text from a language model, one token after another.

A model that keeps its attention's keys and values has two more abilities than `model(tokens)`:

- `model.make_cache(count, length)`: a list of tuples of tensors, with room for so many tokens of each row;
- `model(tokens, cache, positions, last)`: the scores of the token that follows the one at place `last` of
  each row, (count, 1, vocabulary). It writes the keys and values of `tokens` (count, n) into the cache at
  `positions` (count, n), and each token attends to all positions up to its own.

Any other model is called as `model(tokens)` on the whole text for every token: padded to one size if it has
an attribute `causal` that is true, which says that no score depends on later tokens, else at its own length.
"""

from tenfold.generation.generate import generate
from tenfold.generation.sampling import Sampling, sample

__all__ = ["Sampling", "generate", "sample"]
