"""Sparse tensors take `out=` and keywords, keep their dtype in place, and refuse what does not fit."""

import numpy as np
import pytest
import torch

import tenfold as tn

INDICES, VALUES = [[0, 1, 1, 0], [2, 0, 2, 2]], [3, 4, 5, -1]  # one element in two parts


def matrix(t, dtype="float32"):
    return t.sparse_coo_tensor(
        t.tensor(INDICES), t.tensor(VALUES, dtype=getattr(t, dtype)), (2, 3), check_invariants=True
    )


def csr(t):
    return matrix(t).to_sparse_csr()


def outcome(function, t):
    """The elements, dtype and layout of a result; of an error, that there is one, and whether of an index."""
    try:
        found = function(t)
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        return "error", isinstance(error, IndexError)
    dense = found.detach() if found.layout == t.strided else found.detach().to_dense()
    return str(found.dtype).split(".")[-1], str(found.layout).split(".")[-1], dense.tolist()


def written(call):
    """What is in a tensor after it was given as `out=`."""

    def function(t):
        out = call[0](t)
        assert call[1](t, out) is out
        return out

    return function


OUT = {
    "mm": (lambda t: t.zeros(2, 2), lambda t, out: t.mm(matrix(t), t.ones(3, 2), out=out)),
    "another shape": (lambda t: t.zeros(0), lambda t, out: t.mm(matrix(t), t.ones(3, 2), out=out)),
    "addmm": (
        lambda t: t.zeros(2, 2),
        lambda t, out: t.addmm(t.ones(2, 2), matrix(t), t.ones(3, 2), out=out),
    ),
    "dense + sparse": (lambda t: t.zeros(2, 3), lambda t, out: t.add(t.ones(2, 3), matrix(t), out=out)),
    "add": (matrix, lambda t, out: t.add(matrix(t), matrix(t), out=out)),
    "sparse of another shape": (
        lambda t: t.sparse_coo_tensor(size=(4, 4)),
        lambda t, out: t.add(matrix(t), matrix(t), out=out),
    ),
    "another dtype": (lambda t: matrix(t, "float64"), lambda t, out: t.add(matrix(t), matrix(t), out=out)),
    "abs": (csr, lambda t, out: t.abs(csr(t), out=out)),
    "integers for floats": (
        lambda t: matrix(t, "int64"),
        lambda t, out: t.add(matrix(t), matrix(t), out=out),
    ),
    "dense for sparse": (lambda t: t.zeros(2, 3), lambda t, out: t.add(matrix(t), matrix(t), out=out)),
    "sparse for dense": (matrix, lambda t, out: t.add(t.ones(2, 3), matrix(t), out=out)),
    "sparse for dense operands": (matrix, lambda t, out: t.add(t.ones(2, 3), t.ones(2, 3), out=out)),
}

CALLS = {
    "mm by keyword": lambda t: t.mm(t.ones(3, 2), mat2=csr(t)),
    "all by keyword": lambda t: t.mm(input=csr(t), mat2=t.ones(3, 2)),
    "add by keyword": lambda t: t.add(t.ones(2, 3), other=csr(t)),
    "add a number": lambda t: matrix(t) + 1,
    "div_ of integers": lambda t: matrix(t, "int64").div_(2),
    "div_ of integers, rounded": lambda t: matrix(t, "int64").div_(2, rounding_mode="floor"),
    "mul_ of integers": lambda t: matrix(t, "int64").mul_(2.5),
    "add_ of floats to integers": lambda t: matrix(t, "int64").add_(matrix(t)),
    "add_ of doubles to floats": lambda t: matrix(t).add_(matrix(t, "float64")),
    "add_ to dense integers": lambda t: t.zeros(2, 3, dtype=t.int64).add_(matrix(t)),
    "copy_": lambda t: t.eye(2).to_sparse().copy_(matrix(t, "float64")),
    "index_select": lambda t: matrix(t).index_select(0, t.tensor([-1, 0])),
    "index_select beyond the end": lambda t: matrix(t).index_select(0, t.tensor([7])),
    "index_select before the start": lambda t: matrix(t).index_select(0, t.tensor([-3])),
    "index_select of floats": lambda t: matrix(t).index_select(0, t.tensor([0.0])),
    "index_select of a mask": lambda t: matrix(t).index_select(0, t.tensor([True, False])),
    "index_select of a matrix": lambda t: matrix(t).index_select(0, t.tensor([[0]])),
    "cat of other shapes": lambda t: t.cat([matrix(t), matrix(t).t()]),
    "cat of other ranks": lambda t: t.cat([matrix(t), t.ones(2).to_sparse()]),
    "cat of other sparse ranks": lambda t: t.cat([matrix(t), t.ones(2, 3).to_sparse(1)]),
    "cat of dtypes": lambda t: t.cat([matrix(t), matrix(t, "float64")]),
    "stack of other shapes": lambda t: t.stack([matrix(t), matrix(t).t()]),
    "norm": lambda t: t.norm(matrix(t), 2, dim=(0, 1)),
    "norm of one dimension": lambda t: t.norm(matrix(t), 2, dim=0),
    "a column twice": lambda t: t.sparse_csr_tensor(
        [0, 2], [1, 1], [1.0, -2.0], (1, 3), check_invariants=True
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", list(OUT) + list(CALLS))
def test_a_call_gives_or_raises_what_pytorch_does(name):
    function = written(OUT[name]) if name in OUT else CALLS[name]
    assert outcome(function, tn) == outcome(function, torch)


def test_norm_takes_a_dtype_and_keeps_dimensions():
    dense = matrix(torch).to_dense()
    found = tn.norm(matrix(tn), 1, keepdim=True, dtype=tn.float64)
    expected = torch.norm(dense, 1, keepdim=True, dtype=torch.float64)
    assert found.shape == tuple(expected.shape)
    assert found.dtype is tn.float64
    np.testing.assert_allclose(found.numpy(), expected.numpy())
    assert tn.linalg.vector_norm(matrix(tn), ord=1).item() == 11


def test_a_mask_has_the_length_of_its_dimension():
    assert matrix(tn)[tn.tensor([False, True])].to_dense().tolist() == [[4, 0, 5]]
    with pytest.raises(tn.IndexOutOfRange, match="mask of 3"):
        matrix(tn)[tn.tensor([True, False, True])]


def test_columns_of_a_row_may_stand_in_any_order():
    turned = tn.sparse_csr_tensor([0, 2], [2, 0], [1.0, -2.0], (1, 3))
    other = tn.tensor([[3.0, 4.0, 5.0]]).to_sparse()
    assert (turned.to_sparse() * other).to_dense().tolist() == [[-6, 0, 5]]
    assert turned.abs().to_dense().tolist() == [[2, 0, 1]]


def test_a_compressed_operand_does_not_change_the_layout_of_a_target():
    target = matrix(tn)
    target.mul_(csr(tn))
    assert target.layout == tn.sparse_coo
    assert target.to_dense().tolist() == [[0, 0, 4], [16, 0, 25]]


@pytest.mark.filterwarnings("ignore")
def test_the_older_types_make_sparse_tensors_of_their_dtype():
    for t in (tn, torch):
        made = t.sparse.FloatTensor(t.tensor([[0, 1], [2, 0]]), t.tensor([3.0, 4.0]), t.Size([2, 3]))
        assert made.to_dense().tolist() == [[0, 0, 3], [4, 0, 0]] and made.dtype is t.float32
        assert t.sparse.LongTensor(2, 3).to_dense().tolist() == [[0, 0, 0], [0, 0, 0]]
    assert isinstance(tn.eye(2).to_sparse(), tn.sparse.FloatTensor)
    assert not isinstance(tn.eye(2), tn.sparse.FloatTensor)


def test_indices_go_from_coordinates_to_rows_and_back():
    for out_int32 in (False, True):
        results = []
        for t in (tn, torch):
            rows = t._convert_indices_from_coo_to_csr(t.tensor([0, 0, 1, 3]), 5, out_int32=out_int32)
            columns = t.tensor([1, 2, 0, 3]).to(rows.dtype)
            back = t._convert_indices_from_csr_to_coo(rows, columns, out_int32=out_int32, transpose=True)
            results.append((rows.tolist(), back.tolist(), str(back.dtype).rpartition(".")[2]))
        assert results[0] == results[1]


def test_one_number_without_dimensions_is_the_one_value():
    where = [[0], [2]]
    ours = tn.sparse_coo_tensor(where, tn.tensor(2.0), (3, 3))
    assert (
        ours.to_dense().tolist()
        == torch.sparse_coo_tensor(where, torch.tensor(2.0), (3, 3)).to_dense().tolist()
    )


def test_the_transpose_of_a_number_is_itself():
    assert tn.tensor(2.0).to_sparse().t().to_dense().item() == 2.0


@pytest.mark.parametrize("of", ["uint8", "int8", "float32", "bfloat16"])
@pytest.mark.parametrize("by", ["uint8", "int64", "int16", "float32"])
@pytest.mark.parametrize("op", ["add", "sub", "mul"])
def test_values_of_two_dtypes_are_promoted_before_they_are_computed_with(of, by, op):
    results = []
    for t in (tn, torch):
        pair = []
        for dtype, values in ((of, [3, 100, 60]), (by, [5, 90, 90])):
            values = t.tensor(values).to(getattr(t, dtype))
            pair.append(t.sparse_coo_tensor([[0, 2, 2]], values, (4,)))
        both = getattr(pair[0], op)(pair[1])
        beside = getattr(pair[0].to_dense(), op)(pair[1]).to_dense()
        results.append([str(both.dtype)[-5:], both.to_dense().tolist(), beside.tolist()])
    assert results[0] == results[1]


def test_a_difference_in_place_is_of_the_wider_dtype():
    parts = [[0, 2]], [200, 100]
    ours = tn.zeros(4).sub_(tn.sparse_coo_tensor(parts[0], tn.tensor(parts[1], dtype=tn.uint8), (4,)))
    assert ours.tolist() == [-200, 0, -100, 0]


def test_checking_of_invariants_is_a_block_and_a_decorator():
    @tn.sparse.check_sparse_tensor_invariants(enable=True)
    def build():
        return matrix(tn).to_dense().tolist()

    with tn.sparse.check_sparse_tensor_invariants():
        assert build() == matrix(torch).to_dense().tolist()


@pytest.mark.parametrize("dtype", ["int8", "int16", "bool", "float32"])
@pytest.mark.parametrize(
    "read",
    [
        lambda t, s: s[0, 2],
        lambda t, s: s[1, 1],
        lambda t, s: s.sum(0),
        lambda t, s: s.sum((0, 1)),
        lambda t, s: s.sum(1, keepdim=True),
        lambda t, s: t.sparse.sum(s, 0),
        lambda t, s: t.sparse.sum(s, (0, 1)),
        lambda t, s: t.sparse_coo_tensor((), dtype=s.dtype),
        lambda t, s: t.hstack([s, s]),
        lambda t, s: t.vstack([s, s]),
        lambda t, s: t.hstack([s[0], s[0]]),
        lambda t, s: t.zeros_like(s, layout=t.strided),
        lambda t, s: t.zeros_like(s, layout=t.sparse_csr),
    ],
)
def test_a_result_has_the_dtype_layout_and_values_that_pytorch_gives_it(dtype, read):
    results = []
    for t in (tn, torch):
        result = read(t, matrix(t, dtype))
        dense = result if result.layout is t.strided else result.to_dense()
        results.append([str(result.dtype).split(".")[-1], str(result.layout).split(".")[-1], dense.tolist()])
        results[-1].append(str(dense.dtype).split(".")[-1])
    assert results[0] == results[1]
