"""FlatIR: a value graph that speaks StableHLO, one op for one op. Lowerings say `flat.tanh(x)`."""

from tenfold.flat import operators as _operators  # noqa: F401
from tenfold.flat.build import *  # noqa: F403
from tenfold.flat.composite import Composite, beside, differentiated, stop_gradient, stopped, untracked
from tenfold.flat.contracting import *  # noqa: F403
from tenfold.flat.data_builders import *  # noqa: F403
from tenfold.flat.folding import *  # noqa: F403
from tenfold.flat.indexed import GatherDimensions, ScatterDimensions
from tenfold.flat.ir import Function, LateNumber, Op, TensorType, Value
from tenfold.flat.structured import DotDimensions
from tenfold.flat.windows import ConvDimensions, Convolution, SelectAndScatter

__all__ = [
    "Composite",
    "ConvDimensions",
    "Convolution",
    "DotDimensions",
    "Function",
    "GatherDimensions",
    "LateNumber",
    "Op",
    "ScatterDimensions",
    "SelectAndScatter",
    "TensorType",
    "Value",
    "beside",
    "differentiated",
    "stop_gradient",
    "stopped",
    "untracked",
]
