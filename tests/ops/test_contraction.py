"""Products of matrices beyond the generated samples: how they are lowered, accuracy, einsum's grammar."""

import itertools
import random

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.flat import TensorType, Value
from tenfold.flat.structured import DotGeneral
from tenfold.ops import find


def products(name, shapes, *arguments):
    """The matrix products in the lowering of an op on float32 tensors of these shapes."""
    row = find(name)
    types = [TensorType(tn.float32, shape) for shape in shapes]
    values = [Value(each) for each in types]
    given = (*arguments, tuple(values), None) if name == "einsum" else (*values, *arguments)
    result = row.lowering(*given)
    found, stack, seen = [], [result], set()
    while stack:
        op = stack.pop().op
        if op is not None and op not in seen:
            seen.add(op)
            stack += op.operands
            found += [op] if isinstance(op, DotGeneral) else []
    return found


def close(ours, theirs, rtol=1e-5):
    assert tuple(ours.shape) == tuple(theirs.shape)
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol, 1e-5)


def test_a_batch_times_a_matrix_is_one_flat_product():
    (product,) = products("matmul", [(8, 128, 256), (256, 768)])
    assert product.x.shape == (1024, 256)
    assert product.y.shape == (256, 768)
    (product,) = products("linear", [(8, 128, 256), (768, 256)], None)
    assert product.x.shape == (1024, 256)
    assert product.y.shape == (768, 256)


def test_stretched_batches_are_not_copied():
    (product,) = products("matmul", [(6, 1, 3, 4), (5, 4, 2)])
    assert product.x.numel == 6 * 3 * 4
    assert product.y.numel == 5 * 4 * 2


def test_batches_of_equal_count_and_other_shape_do_not_pass():
    with pytest.raises(
        tn.ShapeError, match="batch dimensions 3 and 2 differ|batch dimensions 2 and 3 differ"
    ):
        tn.ones(2, 3, 4, 5) @ tn.ones(3, 2, 5, 4)


def test_attention_is_one_batched_product():
    (product,) = products("einsum", [(2, 4, 8, 16), (2, 4, 9, 16)], "bhqd,bhkd->bhqk")
    assert product.x.shape == (8, 8, 16)
    assert product.y.shape == (8, 9, 16)


def test_matmul_of_every_pair_of_ranks():
    rng = np.random.default_rng(0)
    lefts = [(4,), (3, 4), (2, 3, 4), (5, 1, 3, 4), (1, 3, 4), (5, 2, 3, 4)]
    rights = [(4,), (4, 2), (2, 4, 6), (1, 4, 6), (5, 2, 4, 3), (5, 1, 4, 3)]
    pairs = []
    for left, right in itertools.product(lefts, rights):
        a, b = rng.normal(size=left), rng.normal(size=right)
        pairs.append((tn.tensor(a) @ tn.tensor(b), torch.tensor(a) @ torch.tensor(b)))
    tn.eval([ours for ours, _ in pairs])
    for ours, theirs in pairs:
        close(ours, theirs)


def test_integers_wrap_and_bools_are_any():
    x = tn.full((2, 3), 100, dtype=tn.int8)
    assert (x @ x.t()).tolist() == [[48, 48], [48, 48]]
    b = tn.tensor([[True, False], [False, False]])
    assert (b @ b).tolist() == [[True, False], [False, False]]


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_half_products_are_summed_in_float32(name):
    x = tn.ones(1, 20_000, dtype=getattr(tn, name))
    assert (x @ x.t()).item() == torch.tensor(20_000.0).to(getattr(torch, name)).item()
    bias = tn.full((1,), 1.0, dtype=getattr(tn, name))
    assert tn.addmm(bias, x[:, :256], x[:, :256].t()).item() in (256.0, 257.0, 258.0)


def test_empty_sums_are_zero():
    assert (tn.ones(2, 0) @ tn.ones(0, 3)).tolist() == [[0.0] * 3] * 2
    assert tn.dot(tn.ones(0), tn.ones(0)).item() == 0
    assert tn.einsum("ij,jk->ik", tn.ones(2, 0), tn.ones(0, 3)).tolist() == [[0.0] * 3] * 2


EQUATIONS = [
    "ij,jk->ik", "ij,jk", "ij,ij->", "ij,ij->ij", "ii->i", "ii", "iij->ij", "iji->j", "ij->ji", "ba",
    "...ij,...jk->...ik", "...i,...i", "i...,i...->...", "...ij->ij", "b...->...b", "i,j,k->kji",
    "ij,jk,kl,lm->im", "ij,ik,il->jkl", "bn,anm,bm->ba", " i j , j k -> i k ", "bhqd,bhkd->bhqk",
    "ijkk,k->ij", ",ij", "aB,Bc->ca",
]  # fmt: skip


@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum_agrees_with_pytorch(equation):
    rng = np.random.default_rng(1)
    extents = {letter: 2 + i % 4 for i, letter in enumerate("abcdefghijklmnopqrstuvwxyzB")}
    arrays = []
    for i, part in enumerate(equation.split("->")[0].replace(" ", "").split(",")):
        before, dots, after = part.partition("...")
        middle = [3, 2][i % 2 :] if dots else []
        arrays.append(rng.normal(size=[*[extents[c] for c in before], *middle, *[extents[c] for c in after]]))
    ours = tn.einsum(equation, *map(tn.tensor, arrays))
    close(ours, torch.einsum(equation, *map(torch.tensor, arrays)))


def test_random_equations_agree_with_numpy():
    rng = random.Random(5)
    values = np.random.default_rng(5)
    results = []
    for _ in range(60):
        letters = "abcde"
        extents = {letter: rng.choice([1, 2, 3]) for letter in letters}
        inputs = ["".join(rng.choices(letters, k=rng.randint(0, 4))) for _ in range(rng.randint(1, 4))]
        used = sorted(set("".join(inputs)))
        output = "".join(rng.sample(used, rng.randint(0, len(used))))
        equation = f"{','.join(inputs)}->{output}"
        arrays = [values.normal(size=[extents[c] for c in part]) for part in inputs]
        results.append((equation, tn.einsum(equation, *map(tn.tensor, arrays)), np.einsum(equation, *arrays)))
    tn.eval([ours for _, ours, _ in results])
    for equation, ours, expected in results:
        np.testing.assert_allclose(ours.numpy(), expected, 1e-10, 1e-10, err_msg=equation)


def test_einsum_by_lists_of_dimensions():
    a, b = tn.rand(3, 4), tn.rand(4, 5)
    assert tn.einsum(a, [0, 1], b, [1, 2], [0, 2]).tolist() == (a @ b).tolist()
    assert tn.einsum(a, [..., 1], b, [1, 2]).shape == (3, 5)


def test_a_chain_is_multiplied_in_the_cheapest_order():
    shapes = [(2, 100), (100, 3), (3, 100), (100, 4)]
    for steps in (products("einsum", shapes, "ab,bc,cd,de->ae"),):
        assert sum(each.result.numel * each.x.shape[-1] for each in steps) < 5000


@pytest.mark.parametrize(
    ("equation", "shapes", "message"),
    [
        ("ij->ijk", [(2, 2)], "'k' is in the result but in no operand"),
        ("ij->ii", [(2, 2)], "'i' appears twice"),
        ("ij", [(2,)], "does not name the 1 dimensions"),
        ("ij,jk", [(2, 2)], "2 operands, not 1"),
        ("i1", [(2, 2)], "unexpected '1'"),
        ("..i", [(2,)], "unexpected '\\.'"),
        ("ij->ji->", [(2, 2)], "unexpected '-'"),
        ("ij,jk", [(2, 3), (4, 2)], "'j' is 3 and 4"),
        ("ii", [(2, 3)], "'i' is 2 and 3"),
    ],
)
def test_wrong_equations_are_explained(equation, shapes, message):
    with pytest.raises(tn.TenfoldError, match=message):
        tn.einsum(equation, *[tn.ones(*shape) for shape in shapes])


def test_shapes_that_do_not_fit_are_explained():
    with pytest.raises(tn.ShapeError, match=r"f32\[2,3\] and f32\[2,3\]: inner dimensions 3 and 2 differ"):
        tn.ones(2, 3) @ tn.ones(2, 3)
    with pytest.raises(tn.DTypeError, match="dtypes differ"):
        tn.ones(2, 2) @ tn.ones(2, 2, dtype=tn.float64)
    with pytest.raises(tn.ShapeError, match="at least one dimension"):
        tn.ones(2, 2) @ tn.tensor(1.0)
    with pytest.raises(tn.ShapeError, match="mm takes a matrix"):
        tn.mm(tn.ones(2), tn.ones(2, 2))


def test_tensordot_takes_a_count_or_lists():
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(2, 3, 4)), rng.normal(size=(3, 4, 5))
    ours, theirs = (tn.tensor(a), tn.tensor(b)), (torch.tensor(a), torch.tensor(b))
    for dims in (2, ([1, 2], [0, 1]), 0):
        close(tn.tensordot(*ours, dims), torch.tensordot(*theirs, dims))
    with pytest.raises(tn.ArgumentError, match="4 dimensions cannot be summed"):
        tn.tensordot(*ours, 4)


def test_cdist_by_product_and_directly_agree():
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(40, 7)), rng.normal(size=(30, 7))
    expected = torch.cdist(torch.tensor(a), torch.tensor(b))
    for mode in ("use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"):
        close(tn.cdist(tn.tensor(a), tn.tensor(b), compute_mode=mode), expected)
    with pytest.raises(tn.ArgumentError, match="compute_mode"):
        tn.cdist(tn.tensor(a), tn.tensor(b), compute_mode="fast")
