"""Gather and scatter: random dimension numbers, by StableHLO's verifier and the specification's loops."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, DTypeError, IndexOutOfRange, ShapeError, TenfoldError
from tenfold.flat.indexed import Gather, GatherDimensions, Scatter, ScatterDimensions
from tenfold.flat.ir import TensorType, Value
from tests.flat.machine import Machine, check_inference, only_the_result_is_wrong, params, unchecked, verdict

F32, I64 = dtypes.float32, dtypes.int64
Case = tuple[tuple[int, ...], tuple[int, ...], GatherDimensions, tuple[int, ...]]


def random_case(random: np.random.Generator) -> Case:
    """The shapes of x and of the indices, dimension numbers and slice sizes of a gather that is right."""
    rank = int(random.integers(1, 5))
    shape = random.integers(1, 5, rank)
    order = random.permutation(rank)
    batching = int(random.integers(0, min(rank, 3)))
    x_batching = sorted(order[:batching].tolist())
    left = [d for d in range(rank) if d not in x_batching]
    collapsed = sorted(random.permutation(left)[: random.integers(0, len(left) + 1)].tolist())
    index_map = random.permutation(left)[: random.integers(0, len(left) + 1)].tolist()
    kept = [d for d in left if d not in collapsed]
    around = [int(n) for n in random.integers(1, 4, random.integers(0, 3))]
    places = list(range(len(around) + batching))
    batch_places = random.permutation(places)[:batching].tolist()
    for place, d in sorted(zip(batch_places, x_batching, strict=True)):
        around.insert(place, int(shape[d]))
    vector = int(random.integers(0, len(around) + 1))
    indices = [*around[:vector], len(index_map), *around[vector:]]
    index_batching = [place + (place >= vector) for place in batch_places]
    if len(index_map) == 1 and vector == len(around) and random.random() < 0.5:
        indices = around
    result_rank = len(kept) + len(around)
    offsets = sorted(random.permutation(result_rank)[: len(kept)].tolist())
    sizes = [int(random.integers(1, shape[d] + 1)) if d in kept else 1 for d in range(rank)]
    numbers = GatherDimensions(
        tuple(offsets), tuple(collapsed), tuple(index_map), vector, tuple(x_batching), tuple(index_batching)
    )
    return tuple(shape.tolist()), tuple(indices), numbers, tuple(sizes)


def places(case: Case, shape: tuple[int, ...], indices: np.ndarray):
    """For each index of the result: where its slice starts in x, and where in the slice it lies."""
    _, _, numbers, sizes = case
    dropped = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    kept = [d for d in range(len(sizes)) if d not in dropped]
    for place in np.ndindex(shape):
        batch = [i for d, i in enumerate(place) if d not in numbers.offset_dims]
        if numbers.index_vector_dim < indices.ndim:
            at = (*batch[: numbers.index_vector_dim], slice(None), *batch[numbers.index_vector_dim :])
        else:
            at = (*batch, None)
        start = [0] * len(sizes)
        for d, i in zip(numbers.start_index_map, np.atleast_1d(indices[at]), strict=True):
            start[d] = int(i)
        for d, b in zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True):
            start[d] = batch[b - (numbers.index_vector_dim < b)]
        inside = [0] * len(sizes)
        for d, o in zip(kept, numbers.offset_dims, strict=True):
            inside[d] = place[o]
        yield place, start, inside


def test_random_gathers_follow_the_specification():
    random, machine = np.random.default_rng(1), Machine()
    for number in range(40):
        case = random_case(random)
        shape, index_shape, numbers, sizes = case
        x = np.arange(1, np.prod(shape) + 1, dtype=np.float32).reshape(shape)
        indices = random.integers(-2, 6, index_shape)
        value = flat.gather(
            machine.input(x), machine.input(indices, I64 if number % 2 else dtypes.int32), numbers, sizes
        )
        check_inference(value.op)
        expected = np.zeros(value.shape, np.float32)
        for place, start, inside in places(case, value.shape, indices):
            clamped = [min(max(s, 0), n - size) for s, n, size in zip(start, shape, sizes, strict=True)]
            for d in numbers.operand_batching_dims:
                clamped[d] = start[d]
            expected[place] = x[tuple(c + i for c, i in zip(clamped, inside, strict=True))]
        machine.expect(f"{numbers} {sizes}", value, expected)
    machine.run()


def overhangs(start: list[int], shape: tuple[int, ...], sizes: tuple[int, ...]) -> bool:
    """Whether a window lies half inside: the specification writes that half, XLA nothing."""
    inside = all(0 <= s <= n - size for s, n, size in zip(start, shape, sizes, strict=True))
    return not inside and all(-size < s < n for s, n, size in zip(start, shape, sizes, strict=True))


@pytest.mark.parametrize("combine", ["set", "add", "mul", "max", "min"])
def test_random_scatters_follow_the_specification(combine):
    random, machine = np.random.default_rng(2), Machine()
    folds = {
        "set": lambda old, new: new,
        "add": np.add,
        "mul": np.multiply,
        "max": np.maximum,
        "min": np.minimum,
    }
    for _ in range(12):
        case = random_case(random)
        shape, index_shape, numbers, sizes = case
        x = random.integers(1, 9, shape).astype(np.float32)
        if combine == "set" and np.prod(index_shape) > max(len(numbers.start_index_map), 1):
            continue  # which of several writes to one place is the last is not said
        (pattern,) = params((F32, shape))
        gathered = Gather(pattern, *params((I64, index_shape)), numbers, sizes, False).result
        indices = random.integers(-1, 5, index_shape)
        while any(overhangs(start, shape, sizes) for _, start, _ in places(case, gathered.shape, indices)):
            indices = random.integers(-1, 5, index_shape)
        updates = random.integers(2, 5, gathered.shape).astype(np.float32)
        inverse = ScatterDimensions(*numbers)
        value = flat.scatter(
            machine.input(x), machine.input(indices), machine.input(updates), inverse, combine
        )
        check_inference(value.op)
        expected = x.copy()
        for place, start, inside in places(case, gathered.shape, indices):
            if all(0 <= s <= n - size for s, n, size in zip(start, shape, sizes, strict=True)):
                at = tuple(s + i for s, i in zip(start, inside, strict=True))
                expected[at] = folds[combine](expected[at], updates[place])
        machine.expect(f"{inverse}", value, expected)
    machine.run()


def test_several_tensors_are_scattered_together():
    machine = Machine()
    x, y = np.zeros(4, np.float32), np.ones(4, np.int64)
    scalars = [TensorType(F32, ()), TensorType(I64, ())]
    body = flat.function(lambda a, b, u, v: (flat.add(a, u), flat.mul(b, v)), scalars * 2)
    op = Scatter(
        (machine.input(x), machine.input(y)),
        machine.input(np.array([[1], [1], [3]])),
        (machine.input(np.float32([5, 6, 7])), machine.input(np.array([2, 3, 4]))),
        ScatterDimensions((), (0,), (0,), 1),
        False,
        False,
        body,
    )
    check_inference(op)
    machine.expect("sums", op.results[0], [0, 11, 0, 7])
    machine.expect("products", op.results[1], [1, 6, 1, 4])
    machine.run()


def mutated(case: Case, random: np.random.Generator) -> Case:
    """The case with one of its numbers changed."""
    shape, indices, numbers, sizes = case
    what = int(random.integers(0, 9))
    if what == 7:
        return shape, indices, numbers, tuple(n + int(random.integers(-1, 3)) for n in sizes)
    if what == 8:
        return shape, (*indices, 2), numbers, sizes
    field = numbers._fields[what % 6]
    value = getattr(numbers, field)
    if isinstance(value, int):
        changed: object = value + int(random.integers(-3, 4))
    else:
        numbers_in = list(value)
        if numbers_in and random.random() < 0.6:
            numbers_in[int(random.integers(len(numbers_in)))] += int(random.choice([-5, -1, 1, 2]))
        elif numbers_in and random.random() < 0.5:
            numbers_in.pop()
        else:
            numbers_in.append(int(random.integers(0, 4)))
        changed = tuple(numbers_in)
    return shape, indices, numbers._replace(**{field: changed}), sizes


def test_dimension_numbers_are_refused_just_where_stablehlo_refuses_them():
    random = np.random.default_rng(3)
    accepted = refused = 0
    for _ in range(250):
        shape, indices, numbers, sizes = mutated(random_case(random), random)
        x, i = params((F32, shape), (I64, indices))
        try:
            op = Gather(x, i, numbers, sizes, False)
        except TenfoldError:
            refused += 1
            complaint = verdict(unchecked(Gather, x, i, numbers, sizes, False, results=[x.type]))
            assert complaint and not only_the_result_is_wrong(complaint), (numbers, sizes)
        else:
            accepted += 1
            assert verdict(op) == "", (numbers, sizes)
        body = flat.monoid("add", F32)
        updates: Value = params((F32, tuple(random.integers(1, 4, random.integers(0, 4)).tolist())))[0]
        inverse = ScatterDimensions(*numbers)
        try:
            scatter = Scatter((x,), i, (updates,), inverse, False, False, body)
        except TenfoldError:
            assert verdict(
                unchecked(Scatter, (x,), i, (updates,), inverse, False, False, body, results=[x.type])
            )
        else:
            assert verdict(scatter) == "", (inverse, updates.type)
    assert min(accepted, refused) > 20


X, PLACES, U = params((F32, (3, 4)), (I64, (2,)), (F32, (2, 4)))
ROWS = ScatterDimensions((1,), (0,), (0,), 1)
ADD = flat.monoid("add", F32)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: flat.take(X, X, 0), DTypeError, "indices must be integers, not float32"),
        (
            lambda: Gather(X, PLACES, GatherDimensions((1,), (0,), (0,), 2), (1, 4), False),
            IndexOutOfRange,
            "index_vector_dim 2",
        ),
        (
            lambda: Gather(X, PLACES, GatherDimensions((1,), (0,), (0, 1), 1), (1, 4), False),
            ShapeError,
            "has 1 components",
        ),
        (
            lambda: Gather(X, PLACES, GatherDimensions((1,), (0,), (2,), 1), (1, 4), False),
            IndexOutOfRange,
            "not distinct",
        ),
        (
            lambda: Gather(X, PLACES, GatherDimensions((1,), (0,), (0,), 1), (2, 4), False),
            IndexOutOfRange,
            "slices of 2",
        ),
        (
            lambda: Gather(X, PLACES, GatherDimensions((1,), (0,), (0,), 1), (1, 5), False),
            IndexOutOfRange,
            "slices of 5",
        ),
        (
            lambda: Gather(X, PLACES, GatherDimensions((1,), (0,), (0,), 1), (1,), False),
            ShapeError,
            "1 numbers for the 2",
        ),
        (
            lambda: Gather(X, PLACES, GatherDimensions((), (0,), (0,), 1), (1, 4), False),
            ShapeError,
            "0 window dimensions",
        ),
        (
            lambda: Gather(X, PLACES, GatherDimensions((2,), (0,), (0,), 1), (1, 4), False),
            IndexOutOfRange,
            "exceed 2",
        ),
        (
            lambda: Gather(X, PLACES, GatherDimensions((1,), (), (), 1, (0,), (0,)), (1, 4), False),
            ShapeError,
            "an index has 1 components",
        ),
        (
            lambda: Gather(
                X, *params((I64, (2, 0))), GatherDimensions((1,), (), (), 1, (0,), (0,)), (1, 4), False
            ),
            ShapeError,
            r"batching dimensions \[0\] of f32\[3,4\] and \[0\] of i64\[2,0\] differ",
        ),
        (
            lambda: Scatter((X,), PLACES, (), ROWS, False, False, ADD),
            ArgumentError,
            "0 updates for 1 tensors",
        ),
        (lambda: Scatter((X,), X, (U,), ROWS, False, False, ADD), DTypeError, "indices must be integers"),
        (
            lambda: Scatter((X,), PLACES, (flat.convert(U, I64),), ROWS, False, False, ADD),
            DTypeError,
            "dtypes differ",
        ),
        (
            lambda: Scatter((X,), PLACES, (X,), ROWS, False, False, ADD),
            ShapeError,
            "one slice, no larger than",
        ),
        (lambda: Scatter((X,), PLACES, (PLACES,), ROWS, False, False, ADD), DTypeError, "dtypes differ"),
        (
            lambda: Scatter((X,), PLACES, params((F32, (2,))), ROWS, False, False, ADD),
            ShapeError,
            "not one dimension for each",
        ),
        (
            lambda: Scatter((X,), PLACES, params((F32, (2, 5))), ROWS, False, False, ADD),
            ShapeError,
            "does not fit",
        ),
        (lambda: Scatter((X, U), PLACES, (U, U), ROWS, False, False, ADD), ShapeError, "differ in shape"),
        (
            lambda: Scatter((X,), PLACES, (U,), ROWS, False, False, flat.monoid("add", I64)),
            ArgumentError,
            r"scatter: its body must turn \[f32\[\], f32\[\]\] into \[f32\[\]\], not \[i64\[\], i64\[\]\]",
        ),
    ],
)
def test_bad_dimension_numbers_say_what_is_wrong(make, error, message):
    with pytest.raises(error) as raised:
        make()
    text = f"{raised.value.message} {raised.value.help}"
    assert re.search(message, text), text
