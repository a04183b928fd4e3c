"""Rows whose results share memory with their argument."""

from tenfold import flat
from tenfold.errors import IndexOutOfRange
from tenfold.ops.table import op


@op(
    "select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)",
    write=lambda call, base, new, dim, index: call("select_scatter", base, new, dim, index),
)
def select(x, dim, index):
    dim = flat.axis(dim, x.rank)
    extent = x.shape[dim]
    if not -extent <= index < extent:
        raise IndexOutOfRange(f"index {index} is out of range for dimension {dim} of {x.type}")
    start = index % extent
    return flat.squeeze(flat.slice_dim(x, dim, start, start + 1), dim)


@op("select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor")
def select_scatter(x, src, dim, index):
    dim = flat.axis(dim, x.rank)
    starts = [0] * x.rank
    starts[dim] = index % x.shape[dim]
    return flat.dynamic_update_slice(x, flat.unsqueeze(src, dim), starts)
