"""Which values stand for an argument of each type, as PyTorch's parser decides it.

Python's resolver reads this, and the description of the C ABI carries it to the other languages. A number
is a bool, an int, a float or a complex number. How a language tells these apart is its own business: in Lua
and JavaScript, a number without a fraction is an int and a float.
"""

from __future__ import annotations

__all__ = ["STANDS_FOR"]

# By an argument's type, the kinds of numbers that it takes. A tensor without dimensions, of such a dtype,
# stands for one too.
STANDS_FOR: dict[str, tuple[str, ...]] = {
    "bool": ("bool",),
    "int": ("int",),
    "float": ("bool", "int", "float"),
    "complex": ("bool", "int", "float", "complex"),
    "Scalar": ("bool", "int", "float", "complex"),
}
