"""Programs as MLIR modules: StableHLO through jaxlib's bindings, the torch dialect through torch-mlir's."""

from collections.abc import Callable
from typing import Any

# What may be exact: that of which float32 factors are not rounded.
PRODUCTS, CONVOLUTIONS = "products", "convolutions"

module_context: Callable[..., Any]  # a block recorded as a module; set by the front door, which lies above
