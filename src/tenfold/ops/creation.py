"""Rows that make tensors from sizes and numbers."""

from tenfold import dtypes, flat
from tenfold.ops.table import op


@op(
    "full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=None) -> Tensor"
)
def full(size, fill_value, dtype):
    return flat.full(size, fill_value, dtype or dtypes.of_python(fill_value))


@op(
    "_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
    "bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor",
    function=False, method=False,
)
def _to_copy(x, dtype):
    return flat.convert(x, dtype or x.dtype)
