"""Programs as MLIR modules: StableHLO through jaxlib's bindings, the torch dialect through torch-mlir's."""

from collections.abc import Callable
from typing import Any

module_context: Callable[..., Any]  # a block recorded as a module; set by the front door, which lies above
