"""Indexing: random expressions read and written beside PyTorch and NumPy, the gather and scatter families
beside PyTorch, and what is particular to lazy tensors: what evaluates, what compiles again, when errors come.
"""

import itertools
import operator
import warnings

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.runtime.executables import counting_compiles
from tenfold.tensor.indexing import one_hot

SHAPES = [(), (5,), (3, 4), (2, 3, 4), (2, 1, 3, 2), (0, 3), (4, 0)]


class AsTensor:
    """An array in an index that is to be a tensor of each library."""

    def __init__(self, array):
        self.array = np.asarray(array)

    def __repr__(self):
        return f"tensor({self.array.tolist()})"


def translated(index, make):
    if isinstance(index, tuple):
        return tuple(translated(each, make) for each in index)
    return make(index.array) if isinstance(index, AsTensor) else index


def for_tenfold(index):
    return translated(index, tn.tensor)


def for_torch(index):
    return translated(index, torch.from_numpy)


def for_numpy(index):
    return translated(index, lambda array: array)


# Random indices


def random_slice(rng, extent):
    bounds = [None, *range(-extent - 2, extent + 3)]
    start, stop = (bounds[rng.integers(len(bounds))] for _ in range(2))
    return slice(start, stop, [None, 1, 2, 3][rng.integers(4)])


def random_basic(rng, extent):
    kind = rng.integers(4)
    if kind == 0 and extent:
        return int(rng.integers(-extent, extent))
    if kind == 1 and extent:
        return AsTensor(rng.integers(-extent, extent))
    return random_slice(rng, extent) if kind < 3 else slice(None)


def random_indices(rng, extent, shape):
    """An index array as one of its spellings."""
    array = rng.integers(-extent, extent, shape) if extent else np.zeros((*shape[:-1], 0), np.int64)
    kind = rng.integers(4)
    if kind == 0 and array.ndim and array.size:
        return array.tolist()
    if kind == 1 and array.ndim:
        return array
    return AsTensor(array.astype(np.int32) if kind == 2 else array)


def random_mask(rng, shape):
    mask = rng.integers(0, 2, shape).astype(bool)
    kind = rng.integers(3)
    if kind == 0 and mask.ndim == 1 and mask.size:
        return mask.tolist()
    return mask if kind == 1 and mask.ndim else AsTensor(mask)


def random_index(rng, shape, advanced):
    """An index that fits a shape, and whether NumPy (to which integers are advanced) reads it as PyTorch."""
    items, dim, agrees = [], 0, True
    masked = None
    broadcast = tuple(rng.integers(1, 4, rng.integers(1, 3)))
    stop = int(rng.integers(0, len(shape) + 1))
    while dim < stop:
        kind = rng.integers(10)
        if kind == 0:
            items.append(None)
            continue
        if advanced and masked is None and kind == 1:
            rank = int(rng.integers(1, len(shape) - dim + 1))
            masked = random_mask(rng, shape[dim : dim + rank])
            items.append(masked)
            dim += rank
        elif advanced and masked is None and kind < 6:
            sub = tuple(
                1 if rng.integers(4) == 0 else n for n in broadcast[int(rng.integers(len(broadcast))) :]
            )
            items.append(random_indices(rng, shape[dim], sub))
            dim += 1
        else:
            items.append(random_basic(rng, shape[dim]))
            agrees = agrees and isinstance(items[-1], slice)
            dim += 1
    if rng.integers(3) == 0:
        # What follows it counts from the end, so it goes behind all, unless all dimensions are named.
        items.insert(int(rng.integers(len(items) + 1)) if dim == len(shape) else len(items), ...)
    if advanced and rng.integers(12) == 0 and masked is None:
        items.insert(int(rng.integers(len(items) + 1)), bool(rng.integers(2)))
    has_arrays = any(isinstance(each, (list, bool, np.ndarray, AsTensor)) for each in items)
    index = items[0] if len(items) == 1 and rng.integers(2) else tuple(items)
    if isinstance(index, list) and any(isinstance(each, list) for each in index):
        index = (index,)  # PyTorch takes a bare list of lists for a tuple, and warns
    return index, agrees or not has_arrays


def cases(count, advanced, seed):
    """Random (array, index) pairs that PyTorch accepts, with what it reads and whether NumPy should agree."""
    rng = np.random.default_rng(seed)
    made = 0
    while made < count:
        shape = SHAPES[rng.integers(len(SHAPES))]
        array = rng.permutation(int(np.prod(shape))).reshape(shape).astype(np.float32)
        index, agrees = random_index(rng, shape, advanced)
        try:
            expected = torch.from_numpy(array)[for_torch(index)]
        except IndexError:  # shapes that do not broadcast, or an empty dimension
            continue
        made += 1
        yield rng, array, index, expected, agrees


@pytest.mark.parametrize("advanced,seed", [*itertools.product((False, True), range(4))])
def test_random_indices_read_as_in_pytorch_and_numpy(advanced, seed):
    found = []
    for _, array, index, expected, agrees in cases(250, advanced, seed):
        ours = tn.tensor(array)[for_tenfold(index)]
        found.append((ours, array, index, expected, agrees))
    tn.eval([each[0] for each in found])
    for ours, array, index, expected, agrees in found:
        assert tuple(ours.shape) == tuple(expected.shape), (array.shape, index)
        np.testing.assert_array_equal(ours.numpy(), expected.numpy(), err_msg=f"{array.shape} {index}")
        if agrees:
            np.testing.assert_array_equal(
                ours.numpy(), array[for_numpy(index)], err_msg=f"{array.shape} {index}"
            )


@pytest.mark.parametrize("advanced,seed", [*itertools.product((False, True), range(3))])
def test_random_indices_write_as_in_pytorch(advanced, seed):
    found = []
    for rng, array, index, read, _ in cases(100, advanced, 100 + seed):
        places = read.numpy().ravel()
        shape = tuple(read.shape)
        kinds = ["number", "zero-dimensional"]
        if len(set(places)) == len(places):  # otherwise it is open which value stays
            kinds += ["whole", "leading ones", "stretched", "augmented"]
        kind = kinds[rng.integers(len(kinds))]
        value = np.asarray(rng.normal(size=shape), np.float32)
        if kind == "zero-dimensional":
            value = np.array(-1.5, np.float32)
        elif kind == "leading ones":
            value = value.reshape(1, 1, *shape)
        elif kind == "stretched" and shape:
            value = value.max(axis=int(rng.integers(len(shape))), keepdims=True, initial=0)
        ours, theirs = tn.tensor(array), torch.from_numpy(array).clone()
        whole = ours[...]
        if kind == "number":
            ours[for_tenfold(index)] = theirs[for_torch(index)] = 2.5
        elif kind == "augmented":
            ours[for_tenfold(index)] += tn.tensor(value)
            theirs[for_torch(index)] += torch.from_numpy(value)
        else:
            ours[for_tenfold(index)] = tn.tensor(value)
            theirs[for_torch(index)] = torch.from_numpy(value)
        found.append((ours, whole, theirs, index, kind))
    tn.eval([each[:2] for each in found])
    for ours, whole, theirs, index, kind in found:
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy(), err_msg=f"{index} {kind}")
        np.testing.assert_array_equal(whole.numpy(), theirs.numpy(), err_msg=f"{index} {kind}, another view")


# Particular indices


@pytest.fixture
def x():
    return tn.tensor(np.arange(24, dtype=np.float32).reshape(2, 3, 4))


def test_advanced_indices_that_are_apart_put_their_dimensions_in_front(x):
    assert x[[0, 1], :, [1, 2]].shape == (2, 3)
    assert x[:, [0, 1], [1, 2]].shape == (2, 2)
    assert x[[0, 1], None, [1, 2]].shape == (2, 1, 4)


def test_an_integer_beside_an_index_array_selects_first(x):
    assert x[0, :, [1, 2]].shape == (3, 2)
    assert x[tn.tensor(0), :, [1, 2]].shape == (3, 2)


def test_conditions_add_a_dimension(x):
    assert x[True].shape == (1, 2, 3, 4)
    assert x[False].shape == (0, 2, 3, 4)
    assert x[x.sum() > 0].shape == (1, 2, 3, 4)
    assert x[0, np.bool_(True)].shape == (1, 3, 4)


def test_other_spellings_of_integers(x):
    for one in (np.int8(1), np.array(1), tn.tensor(1), np.uint16(1)):
        assert x[one].tolist() == x[1].tolist()
    assert x[:, range(2)].tolist() == x[:, :2].tolist()
    assert x[0][tn.tensor(1) : tn.tensor(3)].tolist() == x[0, 1:3].tolist()
    assert x[[]].shape == (0, 3, 4)
    assert x[np.array([1], np.int16)].tolist() == x[1:].tolist()


def test_uint8_is_a_mask_as_in_pytorch(x):
    with pytest.warns(DeprecationWarning, match="use bool"):
        assert x[tn.tensor(np.array([0, 1], np.uint8))].tolist() == x[1:].tolist()


def test_a_basic_index_is_a_view_and_an_array_is_a_copy(x):
    rows, copies = x[0], x[[0]]
    x[0, 0, 0] = -1.0
    assert rows[0, 0].item() == -1 and copies[0, 0, 0].item() == 0
    rows[1] = 7.0
    assert x[0, 1].tolist() == [7.0] * 4
    everything = x[...]
    everything[:] = 0.0
    assert x.sum().item() == 0 and everything is not x


def test_a_place_that_is_computed_is_a_view_and_stays_lazy(x):
    with counting_compiles() as compiles:
        place = (x[:, 0, 0] * -1).argmin()
        row = x[place]
        row[0] = 100.0
        x[place, 1] += 5.0
    assert compiles == 0
    assert x[1].tolist() == [[100.0] * 4, [21.0, 22.0, 23.0, 24.0], [20.0, 21.0, 22.0, 23.0]]


def test_values_of_other_kinds(x):
    x[0, 0] = [1, 2, 3, 4]
    x[0, 1] = np.arange(4)
    x[0, 2, 0] = np.float64(9)
    x[1, [0, 1], 0] = [5, 6]
    x[1, 2] = tn.tensor([1, 2, 3, 4])
    expected = [
        [[1, 2, 3, 4], [0, 1, 2, 3], [9, 9, 10, 11]],
        [[5, 13, 14, 15], [6, 17, 18, 19], [1, 2, 3, 4]],
    ]
    assert x.tolist() == expected


def test_numbers_are_converted_to_the_dtype_or_refused():
    x = tn.tensor([1, 2, 3])
    x[0], x[[1]], x[x == 3] = 1.9, -1.9, 2.9
    assert x.tolist() == [1, -1, 2]
    with pytest.raises(tn.DTypeError, match="300 does not fit uint8"):
        x.to(tn.uint8)[[0]] = 300
    with pytest.raises(tn.DTypeError, match="does not fit"):
        x[x > 0] = 1j


def test_lists_are_converted_to_the_dtype_as_numbers_are_or_refused():
    x = tn.tensor([1, 2, 3])
    x[:2] = [1.9, tn.tensor(-4)]
    assert x.tolist() == [1, -4, 3]
    for place in (0, [0], x == 1):
        with pytest.raises(tn.DTypeError, match="300 does not fit uint8"):
            x.to(tn.uint8)[place] = [300]
        for value in ([1j], np.array([1j])):
            with pytest.raises(tn.DTypeError, match=r"complex number.* (does|do) not fit float32"):
                x.float()[place] = value
    with pytest.raises(tn.DTypeError, match="nan does not fit int64"):
        x[0] = [float("nan")]


def test_values_go_where_a_mask_is_true_in_order():
    x = tn.tensor(np.zeros((2, 3), np.float32))
    mask = tn.tensor([[True, False, True], [False, True, False]])
    x[mask] = tn.tensor([1.0, 2.0, 3.0])
    assert x.tolist() == [[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]
    x[:, mask[0]] = tn.tensor([[7.0, 8.0], [9.0, 10.0]])
    assert x.tolist() == [[7.0, 0.0, 8.0], [9.0, 3.0, 10.0]]
    x[mask,] = 0.0
    assert x.tolist() == [[0.0, 0.0, 0.0], [9.0, 0.0, 10.0]]
    with pytest.raises(
        tn.ShapeError, match="there are 2 values, but the mask is true at another number of places"
    ):
        x[mask] = tn.tensor([1.0, 2.0])
        x.eval()


def test_containment_is_of_elements(x):
    assert 5.0 in x and 99.0 not in x
    with pytest.raises(TypeError, match="cannot be deleted"):
        del x[0]


# Laziness


def test_writing_by_a_mask_evaluates_nothing(x):
    with counting_compiles() as compiles:
        mask = x.tanh() > 0.5
        x[mask] = 0.0
        x[x < -1] = tn.tensor(3.0)
        x[~mask] = x[0, 0, 0]
    assert compiles == 0
    assert x.sum().item() == 0


@pytest.mark.usefixtures("on_xla")
def test_other_places_of_the_same_number_compile_nothing(x):
    read = lambda places: (x[tn.tensor(places)] * 1).numpy()[..., 0, 0].tolist()
    read([0, 1, 1]), read(0)
    with counting_compiles() as compiles:
        assert read([1, 0, 0]) == [12.0, 0.0, 0.0]
        assert read(1) == 12.0
    assert compiles == 0


@pytest.mark.parametrize(
    "index", [(..., ...), (..., 0, ...), (0, ..., ..., 1), (..., None, ...), (0, ..., ..., [1, 0])]
)
def test_an_ellipsis_after_all_dimensions_stands_for_none(index):
    ours, golden = tn.arange(6).reshape(2, 3), torch.arange(6).reshape(2, 3)
    assert ours[index].tolist() == golden[index].tolist()
    ours[index] = 9
    golden[index] = 9
    assert ours.tolist() == golden.tolist()


# Errors


@pytest.mark.parametrize(
    "index,error,text",
    [
        (2, IndexError, "index 2"),
        ((0, -4), IndexError, "index -4"),
        ((0, 0, 0, 0), IndexError, "an index of 4 dimensions into f32[2,3,4], which has 3"),
        ((..., ..., 0), IndexError, "dimension 4"),
        (slice(None, None, -1), TypeError, "the step of a slice must be positive, not -1"),
        (slice(0.5, None), TypeError, "not made of integers"),
        (0.5, TypeError, "a float cannot be an index"),
        ("a", TypeError, "a str cannot be an index"),
        ([0.5], TypeError, "not an array of integers or bools"),
        (([[0], [1, 2]],), TypeError, "not an array of integers or bools"),
        (np.array([True, False, True]), IndexError, "a mask of shape [3] at dimension 0"),
        (([0, 1], [0, 1, 2]), IndexError, "the indices do not go together"),
        (AsTensor(np.array([0.5])), IndexError, "must be int64, int32 or bool, not float64"),
        (AsTensor(np.array([1], np.int8)), IndexError, "must be int64, int32 or bool, not int8"),
    ],
)
def test_bad_indices_are_refused_at_once(x, index, error, text):
    for use in (lambda: x[for_tenfold(index)], lambda: operator.setitem(x, for_tenfold(index), 0.0)):
        with pytest.raises(error) as raised:
            use()
        assert isinstance(raised.value, tn.TenfoldError) and text in str(raised.value)


@pytest.mark.parametrize(
    "write",
    [
        lambda torch: [[0, 1], [1, 2]],
        lambda torch: [[0], [1, 2]],
        lambda torch: [0, slice(None, 2)],
        lambda torch: [torch.tensor(1), torch.tensor(2)],
        lambda torch: [range(2), np.array([1, 2])],
        lambda torch: [None, 1],
        lambda torch: [[0, 1]],
    ],
)
@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")
def test_a_short_list_of_more_than_numbers_is_a_tuple_of_indices_and_warns(write):
    ours, golden = tn.arange(9).reshape(3, 3), torch.arange(9).reshape(3, 3)
    with pytest.warns(UserWarning, match="use a tuple"):
        read = ours[write(tn)]
    assert read.tolist() == golden[write(torch)].tolist()
    with pytest.warns(UserWarning, match="use a tuple"):
        ours[write(tn)] = 7
    golden[write(torch)] = 7
    assert ours.tolist() == golden.tolist()


@pytest.mark.parametrize("L", [tn, torch], ids=["tenfold", "torch"])
def test_a_list_of_thirty_one_is_still_a_tuple(L):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert tuple(L.arange(3)[[[0], *[None] * 30]].shape) == (1,) * 31


def test_a_list_of_thirty_two_lists_is_an_array_of_indices():
    index = [[k % 3, k % 2] for k in range(32)]
    ours, golden = tn.arange(9).reshape(3, 3), torch.arange(9).reshape(3, 3)
    assert ours[index].tolist() == golden[index].tolist()


def test_nonzero_refuses_an_out_that_it_cannot_fill():
    mask = tn.ones(2, 2)
    with pytest.raises(TypeError, match="must be int64"):
        tn.nonzero(mask, out=tn.empty(0))
    with pytest.raises(RuntimeError, match="as_tuple"):
        tn.nonzero(mask, as_tuple=True, out=tn.empty(0, dtype=tn.int64))


def test_a_zero_dimensional_tensor_has_nothing_to_index():
    with pytest.raises(IndexError, match=r"use .item\(\)"):
        tn.tensor(1.0)[0, 0]
    for index in (0, slice(None), [0]):
        with pytest.raises(IndexError):
            tn.tensor(1.0)[index]


@pytest.mark.parametrize("place", [2, -3])
def test_an_index_out_of_range_in_a_tensor_is_an_error_when_evaluated(x, place):
    for use in (
        lambda i: x[i],
        lambda i: x[i[0]],
        lambda i: x.clone().index_put_((i,), tn.tensor(0.0)),
        lambda i: x.take_along_dim(i.reshape(1, 1, 1), 0),
    ):
        result = use(tn.tensor([place]))
        with pytest.raises(tn.IndexOutOfRange, match="out of range for dimension 0 of size 2"):
            result.eval()
    with pytest.raises(tn.IndexOutOfRange, match="out of range for dimension 0 of size 24"):
        x.take(tn.tensor([place * 12])).eval()


def test_values_that_do_not_fit_are_refused(x):
    with pytest.raises(tn.ShapeError):
        x[0] = tn.tensor(np.zeros((2, 4), np.float32))
    with pytest.raises(tn.ShapeError, match=r"does not broadcast to the \[2, 3, 4\]"):
        x[[0, 1]] = tn.tensor(np.zeros((3, 3, 4), np.float32))
    with pytest.raises(tn.DTypeError, match="the tensor is float32, but what goes into it is int64"):
        x[[0]] = tn.tensor([1, 2, 3, 4])
    for value in (None, "a"):
        with pytest.raises(tn.ArgumentError, match="cannot be assigned"):
            x[0] = value
    with pytest.raises(tn.ShapeError, match="the data is ragged"):
        x[0] = [[1], [2, 3]]
    with pytest.raises(tn.DTypeError, match="a tensor cannot hold a str"):
        x[0] = ["a"]


# Gather and scatter


def arrays(rng, shape, dim, dtype):
    """Something to scatter into and from, and indices that repeat, smaller than both in other dimensions."""
    index_shape = [int(rng.integers(1, n + 1)) for n in shape]
    index_shape[dim] = int(rng.integers(1, 7))
    index = rng.integers(0, shape[dim], index_shape)
    source_shape = [n + int(rng.integers(0, 2)) for n in index_shape]
    whole, source = (rng.integers(-4, 5, s).astype(dtype) for s in (shape, source_shape))
    return whole, index, source


ELEMENTS = {
    "gather": lambda x, dim, i, src: x.gather(dim, i),
    "scatter": lambda x, dim, i, src: x.scatter(dim, i, src),
    "scatter value": lambda x, dim, i, src: x.scatter(dim, i, 9),
    "scatter add": lambda x, dim, i, src: x.scatter(dim, i, src, reduce="add"),
    "scatter multiply": lambda x, dim, i, src: x.scatter(dim, i, 2, reduce="multiply"),
    "scatter_add": lambda x, dim, i, src: x.scatter_add(dim, i, src),
    "scatter_": lambda x, dim, i, src: x.clone().scatter_(dim, i, src),
} | {
    f"scatter_reduce {name} {own}": lambda x, dim, i, src, name=name, own=own: x.scatter_reduce(
        dim, i, src, name, include_self=own
    )
    for name, own in itertools.product(("sum", "prod", "mean", "amax", "amin"), (True, False))
}


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8])
@pytest.mark.filterwarnings("ignore:The reduce argument")
def test_elements_gather_and_scatter_as_in_pytorch(dtype):
    rng = np.random.default_rng(7)
    found = []
    for shape in [(6,), (3, 4), (2, 3, 4), (1, 5)]:
        for dim in range(-1, len(shape)):
            given = arrays(rng, shape, dim, dtype)
            for name, call in ELEMENTS.items():
                ours, theirs = (make(given[0]) for make in (tn.tensor, torch.from_numpy))
                index, source = ([make(each) for make in (tn.tensor, torch.from_numpy)] for each in given[1:])
                found.append(
                    (name, call(ours, dim, index[0], source[0]), call(theirs, dim, index[1], source[1]))
                )
    agree(found)


SLICES = {
    "index_select": lambda x, dim, i, src: x.index_select(dim, i),
    "index_add": lambda x, dim, i, src: x.index_add(dim, i, src, alpha=2),
    "index_copy": lambda x, dim, i, src: x.index_copy(dim, i, src),
    "index_fill": lambda x, dim, i, src: x.index_fill(dim, i - 1, 7),
    "index_add_": lambda x, dim, i, src: x.clone().index_add_(dim, i, src),
} | {
    f"index_reduce {name} {own}": lambda x, dim, i, src, name=name, own=own: x.index_reduce(
        dim, i, src, name, include_self=own
    )
    for name, own in itertools.product(("prod", "mean", "amax", "amin"), (True, False))
}


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
@pytest.mark.filterwarnings("ignore:index_reduce")
def test_slices_gather_and_scatter_as_in_pytorch(dtype):
    rng = np.random.default_rng(8)
    found = []
    for shape in [(6,), (3, 4), (2, 3, 4), (1, 5)]:
        for dim in range(-1, len(shape)):
            index = rng.integers(0, shape[dim], int(rng.integers(1, 7)))
            source_shape = list(shape)
            source_shape[dim] = len(index)
            whole, source = (rng.integers(-4, 5, s).astype(dtype) for s in (shape, source_shape))
            for name, call in SLICES.items():
                ours, theirs = (
                    call(make(whole), dim, make(index), make(source))
                    for make in (tn.tensor, torch.from_numpy)
                )
                found.append((name, ours, theirs))
    agree(found)


def agree(found):
    tn.eval([ours for _, ours, _ in found])
    for name, ours, theirs in found:
        assert tuple(ours.shape) == tuple(theirs.shape), name
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy(), err_msg=name)


def test_indices_beyond_a_dimension_are_errors_in_every_scatter():
    x, index, source = tn.tensor([1.0, 2.0]), tn.tensor([0, 5]), tn.tensor([3.0, 4.0])
    calls = [lambda i, call=call: call(x, 0, i, source) for call in (*ELEMENTS.values(), *SLICES.values())]
    for call in [*calls, lambda i: x.put(i, source), lambda i: tn.embedding(x[:, None], i)]:
        result = call(index)
        with pytest.raises(tn.IndexOutOfRange, match="out of range for dimension 0 of size 2"):
            result.eval()


def test_negative_indices_are_errors_where_pytorch_says_so():
    x, source = tn.tensor([1.0, 2.0]), tn.tensor([3.0])
    for name in ("gather", "scatter", "scatter_add", "index_select", "index_add", "index_copy"):
        with pytest.raises(tn.IndexOutOfRange):
            (ELEMENTS | SLICES)[name](x, 0, tn.tensor([-1]), source).eval()
    assert x.put(tn.tensor([-1]), source).tolist() == [1.0, 3.0]


def test_nothing_can_be_indexed_in_an_empty_dimension():
    for name in ("index_select", "index_copy", "index_fill", "gather", "scatter"):
        with pytest.raises(tn.IndexOutOfRange, match="which is empty"):
            (ELEMENTS | SLICES)[name](tn.zeros(0), 0, tn.tensor([1]), tn.ones(1))
    assert tn.zeros(3, 0).index_fill(0, tn.tensor([2]), 7).shape == (3, 0)


def test_index_copy_puts_a_number_into_a_vector():
    for t in (tn, torch):
        for index in (t.tensor([1]), t.tensor(1)):
            assert t.zeros(5).index_copy(0, index, t.tensor(3.0)).tolist() == [0, 3, 0, 0, 0]


@pytest.mark.parametrize(
    "call,text",
    [
        (lambda x, i: x.gather(0, i[:, None]), "the index has 2 dimensions, the tensor 1"),
        (lambda x, i: x[None].gather(0, tn.tensor([[0, 0, 0]])), "is larger than f32[1,2] in dimension 1"),
        (lambda x, i: x.scatter(0, i, x.double()), "the tensor is float32, but what goes into it is float64"),
        (lambda x, i: x.scatter(0, i, x[:1]), "is larger than the source f32[1]"),
        (lambda x, i: x.scatter(0, i, x, reduce="sum"), 'use "add" or "multiply"'),
        (lambda x, i: x.scatter_reduce(0, i, x, "median"), "use one of sum, mean, prod, amax, amin"),
        (lambda x, i: x.index_add(0, i, x[:1]), "the source must be [2] for 2 indices"),
        (lambda x, i: x.index_select(0, i[None]), "the index must have one dimension, not 2"),
        (lambda x, i: x.index_select(1, i), "dimension 1 is out of range"),
        (lambda x, i: x.take(i.int()), "indices must be int64, not int32"),
        (lambda x, i: x.gather(0, x), "indices must be int64 or int32, not float32"),
        (lambda x, i: x.masked_fill(i, 0), "the mask must be bool, not int64"),
        (lambda x, i: x.masked_fill(x > 0, x), "must be a number or have no dimensions"),
        (lambda x, i: tn.where(i, x, x), "the condition must be bool, not int64"),
        (lambda x, i: x.put(i, x[:1]), "2 indices, but 1 elements"),
        (lambda x, i: tn.nonzero_static(x, size=-1), "size must not be negative"),
    ],
)
def test_bad_arguments_are_refused_at_once(call, text):
    with pytest.raises(tn.TenfoldError) as raised:
        call(tn.tensor([1.0, 2.0]), tn.tensor([0, 1]))
    assert text in str(raised.value)


# Places that are not zero


def test_nonzero_in_its_two_forms():
    x = tn.tensor([[0.0, 1.5], [2.0, 0.0]])
    assert x.nonzero().tolist() == tn.nonzero(x).tolist() == [[0, 1], [1, 0]]
    assert [each.tolist() for each in tn.nonzero(x, as_tuple=True)] == [[0, 1], [1, 0]]
    assert [each.tolist() for each in tn.where(x)] == [[0, 1], [1, 0]]
    assert tn.tensor(3).nonzero().shape == (1, 0)


def test_masked_scatter_needs_enough_elements():
    x = tn.tensor([1.0, 2.0, 3.0])
    assert x.masked_scatter(x > 1, tn.tensor([8.0, 9.0, 10.0])).tolist() == [1.0, 8.0, 9.0]
    with pytest.raises(tn.ShapeError, match="source has 1 elements, fewer than"):
        x.masked_scatter(x > 1, tn.tensor([8.0])).eval()


def test_a_slice_that_is_named_twice_is_filled_once():
    x, value = tn.zeros(2, 3).requires_grad_(), tn.tensor(5.0, requires_grad=True)
    filled = x.index_fill(1, tn.tensor([2, -1, 0]), value)
    assert filled.tolist() == [[5, 0, 5], [5, 0, 5]]
    filled.sum().backward()
    assert x.grad.tolist() == [[0, 1, 0], [0, 1, 0]]
    assert value.grad.item() == 4


def test_one_hot_finds_the_number_of_classes():
    assert one_hot(tn.tensor([0, 2])).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert one_hot(tn.tensor(1), 4).tolist() == [0, 1, 0, 0]
    with pytest.raises(tn.ArgumentError, match="does not tell the number of classes"):
        one_hot(tn.tensor([], dtype=tn.int64))
    with pytest.raises(tn.IndexOutOfRange):
        one_hot(tn.tensor([3]), 3).eval()
