"""Products of matrices and vectors.

All of them end in `contract`, which writes a sum of products over labelled dimensions as one two-dimensional
(or batched) product: the form that XLA runs best. `einsum.py` and `addmm.py` build on it.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.dtypes import DType
from tenfold.base.errors import ArgumentError, DTypeError, ShapeError
from tenfold.flat import Value
from tenfold.ops.promote import common
from tenfold.ops.samples import S, T
from tenfold.ops.table import op

Labels = Sequence[int]

_NARROW = (dtypes.float16, dtypes.bfloat16, dtypes.float8_e4m3fn, dtypes.float8_e5m2)


def contract(x: Value, y: Value, xs: Labels, ys: Labels, out: Labels, dtype: DType | None = None) -> Value:
    """Sum of products: `xs` and `ys` label the dimensions; a label of both that is not in `out` is summed.

    Every label of one operand alone is in `out`. The result may be asked for in a wider dtype.
    """
    _multiplicable(x, y)
    if x.dtype is dtypes.bool_:
        counts = contract(flat.convert(x, dtypes.int32), flat.convert(y, dtypes.int32), xs, ys, out)
        return flat.ne(counts, 0)
    batch = [each for each in xs if each in ys and each in out]
    summed = [each for each in xs if each in ys and each not in out]
    x_free = [each for each in xs if each not in ys]
    y_free = [each for each in ys if each not in xs]
    if not summed:
        x, y = widened(x, dtype), widened(y, dtype)
        return _spread(x, xs, out) * _spread(y, ys, out)
    extents = dict(zip(xs, x.shape, strict=True))
    for label, extent in zip(ys, y.shape, strict=True):
        if extents.setdefault(label, extent) != extent:
            what = "batch" if label in out else "inner"
            raise ShapeError(
                f"cannot multiply {x.type} and {y.type}: {what} dimensions {extents[label]} and {extent} "
                "differ",
                help="transpose or reshape one operand so that they agree",
            )
    x, x_sum = _grouped(x, xs, batch, x_free, summed)
    y, y_sum = _grouped(y, ys, batch, y_free, summed)
    many = tuple(range(1 if batch else 0))
    product = flat.dot_general(x, y, ((x_sum,), (y_sum,)), (many, many), dtype)
    found = [*batch, *x_free, *y_free]
    product = flat.reshape(product, [extents[each] for each in found])
    return flat.transpose(product, [found.index(each) for each in out])


def _grouped(
    x: Value, labels: Labels, batch: list[int], free: list[int], summed: list[int]
) -> tuple[Value, int]:
    """x with each group of its dimensions made one (no batch, no dimension), and where the summed one is."""
    groups = [batch, summed, free] if list(labels) == batch + summed + free else [batch, free, summed]
    order = [each for group in groups for each in group]
    x = flat.transpose(x, [list(labels).index(each) for each in order])
    extents = dict(zip(order, x.shape, strict=True))
    sizes = []
    for group in groups[0 if batch else 1 :]:
        size = 1
        for each in group:
            size *= extents[each]
        sizes.append(size)
    place = groups.index(summed) if summed else 0
    return flat.reshape(x, sizes), place - (0 if batch else 1)


def _spread(x: Value, labels: Labels, out: Labels) -> Value:
    """x with its dimensions in the order of `out`, and 1 for each label it lacks."""
    order = [each for each in out if each in labels]
    x = flat.transpose(x, [list(labels).index(each) for each in order])
    extents = dict(zip(order, x.shape, strict=True))
    return flat.reshape(x, [extents.get(each, 1) for each in out])


def widened(x: Value, dtype: DType | None) -> Value:
    return x if dtype is None else flat.convert(x, dtype)


def _multiplicable(x: Value, y: Value) -> None:
    if x.dtype is not y.dtype:
        raise DTypeError(
            f"cannot multiply {x.type} and {y.type}: their dtypes differ", help="convert one with .to(dtype)"
        )


def same_dtype(x: Value, *others: Value) -> None:
    for other in others:
        if other.dtype is not x.dtype:
            raise DTypeError(f"{x.type} and {other.type} differ in dtype", help="convert one with .to(dtype)")


def accumulator(x: Value) -> DType | None:
    """The dtype in which a product stays while more is added to it, so that it is rounded once."""
    return dtypes.float32 if x.dtype in _NARROW else None


def check_ranks(name: str, *wanted: tuple[Value, int]) -> None:
    for x, rank in wanted:
        if x.rank != rank:
            kind = {1: "a vector", 2: "a matrix", 3: "a batch of matrices"}[rank]
            raise ShapeError(f"{name} takes {kind} here, not {x.type}")


# Products

# Where PyTorch rounds in another order than we do: nothing cancels in sums of positive numbers.
_P = lambda *shape: T(*shape, low=0.5, high=2)
_MM = lambda: [S(T(3, 4), T(4, 5)), S(T(2, 0), T(0, 3)), S(T(0, 4), T(4, 5))]
_BMM = lambda: [S(T(2, 3, 4), T(2, 4, 5)), S(T(0, 3, 4), T(0, 4, 5)), S(T(2, 3, 0), T(2, 0, 5))]
_VECTORS = lambda: [S(T(5), T(5)), S(T(0), T(0)), S(T(1), T(1))]


@op(
    "mm(Tensor self, Tensor mat2) -> Tensor",
    samples=_MM,
    autocast="lower",
    flops="mm",
    torch_dialect="product_of_bytes(mm, self, mat2)",
)
def mm(x, y, dtype=None):
    """The product of two matrices: Σ self[i, k] · mat2[k, j] over k."""
    check_ranks("mm", (x, 2), (y, 2))
    return contract(x, y, (0, 1), (1, 2), (0, 2), dtype)


@op(
    "bmm(Tensor self, Tensor mat2) -> Tensor",
    samples=_BMM,
    autocast="lower",
    flops="bmm",
    torch_dialect="product_of_bytes(bmm, self, mat2)",
)
def bmm(x, y, dtype=None):
    """self[b] @ mat2[b] for each b of the batch."""
    check_ranks("bmm", (x, 3), (y, 3))
    return contract(x, y, (0, 1, 2), (0, 2, 3), (0, 1, 3), dtype)


@op(
    "mv(Tensor self, Tensor vec) -> Tensor",
    samples=lambda: [S(T(3, 4), T(4)), S(T(3, 0), T(0)), S(T(0, 4), T(4))],
    autocast="cuda: lower",
    needs="out: rows_to_write",
)
def mv(x, vec, dtype=None):
    """The product of a matrix and a vector: Σ self[i, k] · vec[k] over k."""
    check_ranks("mv", (x, 2), (vec, 1))
    return contract(x, vec, (0, 1), (1,), (0,), dtype)


@op("dot(Tensor self, Tensor tensor) -> Tensor", samples=_VECTORS, autocast="cuda: widest")
def dot(x, y):
    """Σ self[i] · tensor[i] of two vectors, without a conjugate."""
    check_ranks("dot", (x, 1), (y, 1))
    return contract(x, y, (0,), (0,), ())


@op("vdot(Tensor self, Tensor other) -> Tensor", samples=_VECTORS, autocast="cuda: widest")
def vdot(x, y):
    """The dot product with the first vector's conjugate."""
    return dot(flat.conj(x), y)


_PRODUCTS = lambda: [
    S(T(3, 4), T(4, 5)), S(T(4), T(4)), S(T(3, 4), T(4)), S(T(4), T(4, 5)), S(T(2, 3, 4), T(4, 5)),
    S(T(2, 3, 4), T(4)),
    S(T(4), T(2, 4, 5)), S(T(3, 4), T(2, 4, 5)), S(T(2, 3, 4), T(2, 4, 5)), S(T(2, 1, 3, 4), T(5, 4, 2)),
    S(T(1, 3, 4), T(2, 4, 5)), S(T(2, 3, 0), T(0, 4)), S(T(0, 3, 4), T(4, 2)),
]  # fmt: skip


def _matmul_node(ranks):
    return {(2, 2): "MmBackward0", (2, 1): "MvBackward0", (1, 1): "DotBackward0"}.get(
        tuple(ranks), "UnsafeViewBackward0"
    )


def _matmul_flops(types):
    x, y = (each.rank for each in types)
    if y == 1 or (x == 1 and y > 2):
        return ""  # products with a vector are not counted
    return "mm" if min(x, y) <= 2 else "bmm"


@op(
    "matmul(Tensor self, Tensor other) -> Tensor",
    samples=_PRODUCTS,
    autocast="lower",
    grad_fn=_matmul_node,
    flops=_matmul_flops,
    needs="out: rows_to_write",
    torch_dialect="product_of_bytes(matmul, self, other)",
)
@op(
    "linalg_matmul(Tensor self, Tensor other) -> Tensor",
    samples=_PRODUCTS,
    method=False,
    autocast="lower",
    grad_fn=_matmul_node,
    flops=_matmul_flops,
    torch_dialect="product_of_bytes(matmul, self, other)",
)
def matmul(x, y):
    """The product of the last two dimensions, the others stretched to each other."""
    if not x.rank or not y.rank:
        raise ShapeError(
            f"matmul takes at least one dimension, not {x.type} and {y.type}", help="multiply with *"
        )
    # The labels: rows 0, summed 1, columns 2, and below zero the batch, counted from its end.
    xs, ys = [0, 1][-x.rank :], [1, 2][: y.rank]
    x_batch, y_batch = x.shape[:-2], y.shape[:-2]
    out: list[int] = []
    for back in range(max(len(x_batch), len(y_batch)), 0, -1):
        in_x = len(x_batch) >= back and x_batch[-back] != 1
        in_y = len(y_batch) >= back and y_batch[-back] != 1
        if in_x:
            xs.insert(len(xs) - min(x.rank, 2), -back)
        if in_y:
            ys.insert(len(ys) - min(y.rank, 2), -back)
        out.append(-back)
    kept = [each for each in out if each in xs or each in ys]
    x = flat.reshape(x, [e for e in x_batch if e != 1] + list(x.shape[-2:]))
    y = flat.reshape(y, [e for e in y_batch if e != 1] + list(y.shape[-2:]))
    ends = [each for each in (0, 2) if each in xs or each in ys]
    product = contract(x, y, xs, ys, [*kept, *ends])
    extents = dict(zip([*kept, *ends], product.shape, strict=True))
    return flat.reshape(product, [extents.get(each, 1) for each in [*out, *ends]])


def _linear_node(ranks):
    return "ViewBackward0" if ranks[0] > 2 else "AddmmBackward0" if len(ranks) > 2 else "MmBackward0"


def _linear_flops(types):
    if types[1].rank == 1:
        return ""
    return "addmm" if len(types) > 2 else "mm"


@op(
    "linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
    module="nn",
    samples=lambda: [
        S(T(3, 4), T(5, 4)),
        S(_P(2, 3, 4), _P(5, 4), _P(5)),
        S(_P(4), _P(5, 4), _P(5)),
        S(T(3, 4), T(4)),
    ],
    autocast="lower",
    grad_fn=_linear_node,
    flops=_linear_flops,
    saves_views=(1,),
)
def linear(x, weight, bias):
    """x @ weight.T + bias."""
    if not x.rank or weight.rank not in (1, 2) or (weight.rank == 1 and bias is not None):
        raise ShapeError(
            f"linear takes a weight matrix and at least a vector, not {weight.type} and {x.type}"
        )
    summed = x.rank - 1
    ys = (-1, summed) if weight.rank == 2 else (summed,)
    out = (*range(summed), *ys[:-1])
    if bias is None:
        return contract(x, weight, range(x.rank), ys, out)
    same_dtype(x, bias)
    wide = accumulator(x)
    product = contract(x, weight, range(x.rank), ys, out, wide)
    return flat.convert(product + widened(bias, wide), x.dtype)


@op(
    "bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor",
    samples=lambda: [
        S(T(3, 4), T(3, 5), T(2, 4, 5)),
        S(T(2, 3, 4), T(2, 3, 5), T(6, 4, 5), T(6)),
        S(T(4), T(5), T(2, 4, 5)),
    ],
    autocast="cuda: widest",
)
def bilinear(x, y, weight, bias):
    """x · weight[o] · y for each output o, plus bias."""
    check_ranks("bilinear", (weight, 3))
    if x.shape[:-1] != y.shape[:-1]:
        raise ShapeError(f"bilinear: the batches of {x.type} and {y.type} differ")
    rows = tuple(range(3, x.rank + 2))
    left = contract(x, weight, (*rows, 1), (0, 1, 2), (*rows, 0, 2))
    result = contract(left, y, (*rows, 0, 2), (*rows, 2), (*rows, 0))
    if bias is None:
        return result
    if bias.shape != (weight.shape[0],):
        raise ShapeError(f"bilinear: the bias {bias.type} does not fit the weight {weight.type}")
    return result + bias


@op("outer(Tensor self, Tensor vec2) -> Tensor", "ger(Tensor self, Tensor vec2) -> Tensor", promote=common,
    samples=lambda: [S(T(3), T(4)), S(T(0), T(4))],
    autocast="cuda: lower", grad_fn="MulBackward0")  # fmt: skip
def outer(x, y):
    """x[i] · y[j]."""
    check_ranks("outer", (x, 1), (y, 1))
    return flat.unsqueeze(x, 1) * flat.unsqueeze(y, 0)


@op("inner(Tensor self, Tensor other) -> Tensor",
    samples=lambda: [S(T(4), T(4)), S(T(2, 4), T(3, 4)), S(T(2, 3, 4), T(4)), S(T(), T(3))],
    autocast="lower", flops=lambda types: "mm" if any(each.rank > 1 for each in types) else "")  # fmt: skip
def inner(x, y):
    """The sum of products over the last dimension of both."""
    if not x.rank or not y.rank:
        return x * y
    return tensordot(x, y, (-1,), (-1,))


@op(
    "tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor",
    method=False,
    samples=lambda: [
        S(T(2, 3, 4), T(4, 3, 5), (1, 2), (1, 0)), S(T(3, 4), T(5, 3), (0,), (1,)), S(T(2), T(3), (), ()),
        S(T(2, 1), T(3, 4), (1,), (0,)),
    ],
    autocast="cpu: lower, cuda: widest", flops="mm",)  # fmt: skip
def tensordot(x, y, dims_self, dims_other):
    """The sum of products over pairs of dimensions; one of size 1 is stretched."""
    if len(dims_self) != len(dims_other):
        raise ShapeError(f"{len(dims_self)} dimensions cannot be summed with {len(dims_other)}")
    left = [flat.axis(each, x.rank) for each in dims_self]
    right = [flat.axis(each, y.rank) for each in dims_other]
    if len(set(left)) < len(left) or len(set(right)) < len(right):
        raise ShapeError(f"a dimension appears twice in {list(dims_self)} and {list(dims_other)}")
    for i, j in zip(left, right, strict=True):
        if 1 in (x.shape[i], y.shape[j]) and x.shape[i] != y.shape[j]:
            x = flat.sum(x, (i,), keepdim=True) if y.shape[j] == 1 else x
            y = flat.sum(y, (j,), keepdim=True) if x.shape[i] == 1 else y
    xs = list(range(x.rank))
    ys = [left[right.index(j)] if j in right else x.rank + j for j in range(y.rank)]
    return contract(x, y, xs, ys, [*[e for e in xs if e not in left], *[e for e in ys if e >= x.rank]])


@op(
    "kron(Tensor self, Tensor other) -> Tensor",
    samples=lambda: [
        S(T(3, 4), T(2, 2)),
        S(T(3), T(2, 4)),
        S(T(), T(3)),
        S(T(2, 3, 2), T(2, 1, 2)),
        S(T(0, 2), T(3, 2)),
    ],
    casts_out=True,
)
def kron(x, y):
    """The Kronecker product: each element of x times all of y."""
    # A zero-dimensional factor counts for its dtype as any other does.
    dtype = dtypes.promote_types(x.dtype, y.dtype)
    wide = dtypes.float32 if dtype in _NARROW else dtype
    x, y = flat.convert(x, wide), flat.convert(y, wide)
    rank = max(x.rank, y.rank)
    xs, ys = ((1,) * (rank - v.rank) + v.shape for v in (x, y))
    x = flat.reshape(x, [extent for pair in zip(xs, (1,) * rank, strict=True) for extent in pair])
    y = flat.reshape(y, [extent for pair in zip((1,) * rank, ys, strict=True) for extent in pair])
    return flat.convert(flat.reshape(x * y, [a * b for a, b in zip(xs, ys, strict=True)]), dtype)


@op("linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor",
    samples=lambda: [S(T(3, 4), T(3, 4)), S(T(3, 4), T(4)), S(T(3, 4), T(3, 1), dim=0)],
    autocast="lower")  # fmt: skip
def linalg_vecdot(x, y, dim):
    """The sum of conj(x) · y along a dimension."""
    if x.dtype.kind not in ("float", "complex"):
        raise DTypeError(f"vecdot takes floating-point or complex tensors, not {x.dtype.name}")
    same_dtype(x, y)
    x, y = flat.broadcast(flat.conj(x), y)
    dim = flat.axis(dim, x.rank)
    rows = [each for each in range(x.rank) if each != dim]
    return contract(x, y, range(x.rank), range(x.rank), rows)


@op("linalg_multi_dot(Tensor[] tensors) -> Tensor",
    samples=lambda: [S([_P(3, 4), _P(4, 5), _P(5, 2)]), S([_P(4), _P(4, 5), _P(5)])],
    autocast="lower", flops="mm")  # fmt: skip
def linalg_multi_dot(tensors):
    """The product of matrices in the order that costs least; the first and the last may be vectors."""
    if len(tensors) < 2:
        raise ArgumentError(f"multi_dot takes at least 2 tensors, not {len(tensors)}")
    first, last = tensors[0].rank == 1, tensors[-1].rank == 1
    row = (flat.unsqueeze(tensors[0], 0),) if first else tensors[:1]
    column = (flat.unsqueeze(tensors[-1], 1),) if last else tensors[-1:]
    product = chain_matmul((*row, *tensors[1:-1], *column))
    return flat.reshape(product, product.shape[first : 2 - last])


@op(
    "chain_matmul(Tensor[] matrices) -> Tensor",
    samples=lambda: [S([_P(3, 4), _P(4, 5), _P(5, 2), _P(2, 6)]), S([T(3, 4)])],
    autocast="lower",
    flops="mm",
)
def chain_matmul(matrices):
    """The product of matrices in the order of multiplications that costs least."""
    check_ranks("chain_matmul", *[(matrix, 2) for matrix in matrices])
    extents = [matrices[0].shape[0], *[matrix.shape[1] for matrix in matrices]]
    splits: dict[tuple[int, int], int] = {}
    costs = {(i, i): 0 for i in range(len(matrices))}
    for length in range(1, len(matrices)):
        for i in range(len(matrices) - length):
            j = i + length
            options = [
                (costs[i, k] + costs[k + 1, j] + extents[i] * extents[k + 1] * extents[j + 1], k)
                for k in range(i, j)
            ]
            costs[i, j], splits[i, j] = min(options)

    def product(i: int, j: int) -> Value:
        return matrices[i] if i == j else mm(product(i, splits[i, j]), product(splits[i, j] + 1, j))

    return product(0, len(matrices) - 1)
