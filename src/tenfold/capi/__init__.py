"""libtenfold: libtorch for any language over a C ABI, generated from the op table and built where it is used.

`build()` compiles it against the libtorch that is installed, or finds it in the cache; `describe` tells what
is in it.
"""

from tenfold.capi.build import Built, build
from tenfold.capi.describe import Description, Function, Parameter, describe
from tenfold.capi.locate import Libtorch, find_libtorch

__all__ = ["Built", "Description", "Function", "Libtorch", "Parameter", "build", "describe", "find_libtorch"]
