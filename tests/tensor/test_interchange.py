"""Memory shared with NumPy and PyTorch: the same addresses both ways, alive as long as anyone looks at it."""

import gc

import numpy as np
import pytest
import torch

import tenfold as tn

DTYPES = ["float32", "float64", "float16", "bfloat16", "int8", "int64", "uint8", "bool", "complex64"]


@pytest.mark.parametrize("name", DTYPES)
def test_a_pytorch_tensor_is_read_where_it_lies(name):
    theirs = torch.arange(4096).reshape(64, 64).to(getattr(torch, name))
    ours = tn.from_dlpack(theirs)
    assert ours.data_ptr() == theirs.data_ptr()
    assert ours.dtype is getattr(tn, name)
    assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("name", DTYPES)
def test_pytorch_reads_ours_where_it_lies(name):
    ours = (tn.arange(4096) % 2).to(getattr(tn, name)).eval()
    theirs = torch.from_dlpack(ours)
    assert theirs.data_ptr() == ours.data_ptr()
    assert theirs.tolist() == ours.tolist()


def aligned(count):
    """An array whose address is a multiple of 64, which XLA asks for to compute on it in place."""
    memory = np.zeros(8 * count + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + 8 * count].view(np.float64)


def test_numpy_shares_both_ways():
    array = aligned(1000)
    array[:] = range(1000)
    ours = tn.from_numpy(array)
    assert ours.data_ptr() == array.ctypes.data
    assert np.from_dlpack(ours).ctypes.data == ours.numpy().ctypes.data == array.ctypes.data
    assert (ours * 2).tolist() == (array * 2).tolist()
    assert np.from_dlpack(ours * 2).tolist() == (array * 2).tolist()
    assert tn.from_dlpack(array).data_ptr() == array.ctypes.data


def test_a_result_is_numpy_s_without_a_copy():
    result = (tn.ones(1000) * 3).eval()
    assert result.numpy().ctypes.data == result.data_ptr()
    assert np.asarray(result).ctypes.data == result.data_ptr()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_transposed_tensor_arrives_in_order(dtype):
    theirs = torch.arange(6).reshape(2, 3).to(dtype).t()
    ours = tn.from_dlpack(theirs)
    assert ours.tolist() == theirs.tolist()
    assert (ours + ours).tolist() == (theirs + theirs).tolist()


@pytest.mark.usefixtures("collects_quickly")
def test_the_source_may_go_first():
    theirs = torch.full((100_000,), 7.0)
    ours = tn.from_dlpack(theirs)
    del theirs
    gc.collect()
    torch.zeros(100_000)  # would reuse the memory, had it been freed
    assert set(ours.tolist()) == {7.0}
    assert (ours + 1).sum().item() == 800_000


@pytest.mark.usefixtures("collects_quickly")
def test_numpy_arrays_live_as_long_as_their_tensors():
    array = np.full(100_000, 7.0)
    ours, twin = tn.from_numpy(array), tn.from_dlpack(array)
    del array
    gc.collect()
    np.zeros(100_000)
    assert set(ours.tolist()) == set(twin.tolist()) == {7.0}


@pytest.mark.usefixtures("collects_quickly")
def test_ours_lives_as_long_as_what_others_made_of_it():
    ours = (tn.ones(100_000) * 7).eval()
    theirs, array = torch.from_dlpack(ours), np.from_dlpack(ours)
    del ours
    gc.collect()
    (tn.ones(100_000) * 9).eval()
    assert theirs.min() == theirs.max() == 7
    assert array.min() == array.max() == 7


def both(program):
    """What a program gives here and in PyTorch."""
    return program(tn), program(torch)


def test_an_op_sees_what_an_array_holds_when_it_is_called():
    def program(t):
        array = np.ones(3, np.float32)
        x = t.from_numpy(array)
        results = [
            x * 2,
            x.clone(),
            x.double(),
            x.to(t.int64),
            t.as_tensor(array, dtype=t.float64),
            t.cat([t.from_numpy(array), x]),
            t.stack([x, x]).sum(0),
            x[1:] + 1,
        ]
        array[:] = 9
        return [result.tolist() for result in results]

    ours, theirs = both(program)
    assert ours == theirs


def test_an_array_may_be_filled_anew_for_each_round_of_a_loop():
    def program(t):
        array, shared = np.zeros(3), []
        once = t.from_numpy(array)
        for i in range(4):
            array[:] = i
            shared += [once + 1, t.from_numpy(array) * 2]
        return [each.tolist() for each in shared]

    ours, theirs = both(program)
    assert ours == theirs


def test_a_large_array_may_be_filled_anew_for_each_tensor():
    array, doubled = np.zeros(100_000), []
    for i in range(3):
        array[:] = i
        doubled.append(tn.from_numpy(array) * 2)
    assert [each[-1].item() for each in doubled] == [0, 2, 4]


@pytest.mark.parametrize(
    "taken",
    [lambda array: array, lambda array: array.T, lambda array: array[::2], lambda array: array[:, 1:]],
    ids=["whole", "transposed", "every second row", "columns"],
)
def test_a_tensor_and_its_views_show_later_changes_of_an_array(taken):
    def program(t):
        array = np.arange(12.0).reshape(4, 3)
        x = t.from_numpy(taken(array))
        views = [x, x[0], x[:, 1], x.t(), x.detach()]
        seen = [[view.tolist() for view in views]]
        for i in range(2):
            array[i, i + 1] = 50 + i
            results = [view.sum() for view in views]
            array[0, 2] = -i
            seen += [[result.item() for result in results], [view.tolist() for view in views]]
        return seen

    ours, theirs = both(program)
    assert ours == theirs


@pytest.mark.parametrize("dtype", [np.float16, np.bool_, np.complex128, np.uint8, np.float64])
def test_every_dtype_shows_later_changes(dtype):
    def program(t):
        array = np.array([0, 1, 1], dtype)
        x = t.from_numpy(array)
        before = x.clone()
        array[0] = 1
        return before.tolist(), x.tolist(), x.clone().tolist()

    ours, theirs = both(program)
    assert ours == theirs


def test_a_nan_and_a_negative_zero_are_changes_as_others():
    array = np.array([0.0, np.nan])
    x = tn.from_numpy(array)
    assert x.signbit().tolist() == [False, False]
    array[0] = -0.0
    assert x.signbit().tolist() == [True, False]
    array[1] = 1
    assert x.isnan().tolist() == [False, False]


def test_bytes_of_a_bytearray_are_read_when_an_op_is_called():
    def program(t):
        buffer = bytearray([1, 2, 3])
        x = t.frombuffer(buffer, dtype=t.uint8)
        before = x + 1
        buffer[0] = 7
        return before.tolist(), x.tolist()

    ours, theirs = both(program)
    assert ours == theirs


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_pytorch_tensor_is_read_when_an_op_is_called(dtype):
    theirs = torch.ones(3, dtype=dtype)
    ours = tn.from_dlpack(theirs)
    before = ours * 2
    theirs[0] = 5
    assert before.tolist() == [2, 2, 2]
    assert ours.tolist() == [5, 1, 1]


@pytest.mark.parametrize("passed", [True, False])
def test_a_compiled_function_reads_an_array_at_the_call(passed):
    def program(t):
        array = np.zeros(3, np.float32)
        x, ones = t.from_numpy(array), t.ones(3)
        function = (lambda y: y * 2 + 1) if passed else (lambda y: y + x)
        if t is tn:
            function = tn.compile(function)
        results = []
        for i in range(4):
            array[i % 3] = i
            results.append(function(x if passed else ones))
            array[0] = -1
        return [result.tolist() for result in results]

    ours, theirs = both(program)
    assert ours == theirs


def test_a_compiled_function_may_write_to_a_tensor_of_an_array():
    array = np.zeros(3, np.float32)
    x, ones = tn.from_numpy(array), tn.ones(3)

    @tn.compile
    def add(y):
        x.add_(y)
        return x * 2

    assert [add(ones).tolist() for _ in range(3)] == [[2] * 3, [4] * 3, [6] * 3]
    assert x.tolist() == [3] * 3 and array.tolist() == [0] * 3


def test_a_changed_array_keeps_the_gradients_of_its_tensor():
    def program(t):
        array = np.ones(3)
        x = t.from_numpy(array).requires_grad_()
        (x * x).sum().backward()
        array[0] = 5
        (x * x).sum().backward()
        return x.grad.tolist(), x.is_leaf, x.detach().tolist()

    ours, theirs = both(program)
    assert ours == theirs


def test_the_array_of_a_tensor_that_shares_one_is_that():
    def program(t):
        array = np.ones(3)
        x = t.from_numpy(array)
        x.numpy()[0] = 4
        return array.tolist(), x.tolist(), (x + 1).tolist(), np.shares_memory(x.numpy(), array)

    ours, theirs = both(program)
    assert ours == theirs


def test_an_array_that_nobody_else_holds_is_not_copied():
    array = np.ones(1000)
    address, x = array.ctypes.data, tn.from_numpy(array[10:])
    del array
    assert x[:1].tolist() == [1]
    assert x.data_ptr() == address + 80
    assert tn.frombuffer(b"abcd", dtype=tn.uint8)[1:].tolist() == [98, 99, 100]


def test_a_loader_gives_what_an_array_holds_when_a_batch_is_made():
    def program(t):
        array = np.zeros((4, 2))
        data = t.utils.data.TensorDataset(t.from_numpy(array))
        batches = []
        for (batch,) in t.utils.data.DataLoader(data, batch_size=2):
            array += 1
            batches.append(batch)
        return [batch.tolist() for batch in batches]

    ours, theirs = both(program)
    assert ours == theirs


def test_writing_to_the_tensor_leaves_the_array_alone():
    array = np.zeros(8)
    ours = tn.from_numpy(array)
    ours += 1
    assert ours.tolist() == [1.0] * 8
    assert array.tolist() == [0.0] * 8


def test_a_copy_on_request():
    array = aligned(1000)
    assert tn.from_dlpack(array, copy=True).eval().data_ptr() != array.ctypes.data
    assert tn.tensor(array).data_ptr() != array.ctypes.data
    lent = tn.from_numpy(array)
    assert np.from_dlpack(lent).ctypes.data == array.ctypes.data
    copied = torch.from_dlpack(lent.__dlpack__(copy=True))
    assert copied.data_ptr() != array.ctypes.data and copied.shape == (1000,)


def test_memory_elsewhere_is_not_lent():
    x = tn.ones(2)
    assert torch.from_dlpack(x.__dlpack__(dl_device=(1, 0))).tolist() == [1, 1]
    with pytest.raises(BufferError, match="cannot be lent"):
        x.__dlpack__(dl_device=(2, 0))


def test_an_array_of_another_dtype_needs_a_copy():
    x = tn.ones(2)
    assert np.asarray(x, np.float64).dtype == np.float64
    assert x.__array__(copy=False).ctypes.data == x.data_ptr()
    with pytest.raises(ValueError, match="without a copy"):
        x.__array__(np.float64, copy=False)


def test_what_is_no_array_is_refused():
    with pytest.raises(tn.ArgumentError, match="list has no __dlpack__"):
        tn.from_dlpack([1, 2])


def test_a_device_of_another_kind_is_refused():
    class Elsewhere:
        def __dlpack__(self):
            raise AssertionError("not to be asked")

        def __dlpack_device__(self):
            return (8, 0)

    with pytest.raises(tn.UnsupportedError, match="device type 8"):
        tn.from_dlpack(Elsewhere())


def test_where_gradients_are_not_followed_a_parameter_has_an_array():
    x = tn.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(tn.GradientError):
        x.numpy()
    with tn.no_grad():
        assert x.numpy().tolist() == np.asarray(x).tolist() == [1, 2]


@pytest.mark.parametrize("requires_grad", [None, True, False])
@pytest.mark.parametrize("more", [{}, {"copy": True}, {"dtype": "float64"}], ids=str)
def test_gradients_flow_through_asarray_unless_they_are_not_wanted(more, requires_grad):
    seen = []
    for t in (tn, torch):
        given = {name: getattr(t, value) if name == "dtype" else value for name, value in more.items()}
        if requires_grad is not None:
            given["requires_grad"] = requires_grad
        x = t.ones(3, requires_grad=True)
        y = t.asarray(x * 2, **given)
        if y.requires_grad:
            y.sum().backward()
        seen.append([y.requires_grad, y.grad_fn is None, None if x.grad is None else x.grad.tolist()])
    assert seen[0] == seen[1]


def test_an_object_with_a_length_and_elements_is_a_sequence():
    class Numbers:
        def __init__(self, numbers):
            self.numbers = numbers

        def __len__(self):
            return len(self.numbers)

        def __getitem__(self, index):
            return self.numbers[index]

    rows = Numbers([Numbers([1, 2]), [3, 4.5]])
    assert tn.tensor(rows).tolist() == torch.tensor(rows).tolist() == [[1, 2], [3, 4.5]]
    with pytest.raises(TypeError):
        tn.tensor({0: 1, 1: 2})


def test_a_number_of_another_package_has_no_length():
    with pytest.raises(tn.DTypeError):
        tn.tensor([torch.tensor(1.0)])


def test_a_capsule_of_dlpack_is_a_tensor():
    for other in (torch, tn):
        x = other.arange(6.0).reshape(2, 3)[:, 1:]
        assert tn.from_dlpack(x.__dlpack__()).tolist() == [[1, 2], [4, 5]]
    versioned = np.arange(3.0).__dlpack__(max_version=(1, 0))
    assert tn.from_dlpack(versioned).tolist() == [0, 1, 2]
    capsule = tn.ones(2).__dlpack__()
    assert tn.asarray(capsule).tolist() == [1, 1]
    with pytest.raises(tn.ArgumentError, match="used already"):
        tn.from_dlpack(capsule)


@pytest.mark.parametrize("package", [tn, torch])
def test_a_tensor_that_another_library_could_not_read_is_not_lent(package):
    for tensor in (package.ones(2, requires_grad=True), package.eye(2).to_sparse()):
        with pytest.raises(BufferError):
            tensor.__dlpack__()
    with pytest.raises(TypeError):
        package.ones(2).__dlpack__(stream="0")


class _Lender:
    """An array of another library: it speaks DLPack and nothing else."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_a_tensor_of_a_foreign_array_is_a_copy_that_dlpack_brings():
    array = np.arange(3.0)
    ours = tn.tensor(_Lender(array), dtype=tn.float32)
    array[0] = 9
    assert ours.dtype is tn.float32 and ours.tolist() == [0, 1, 2]


@pytest.mark.parametrize("read", [tn.tensor, tn.from_dlpack, tn.asarray])
def test_views_of_pytorchs_that_negate_their_memory_are_read_as_they_look(read):
    theirs = torch.tensor([1 + 2j, 3 - 4j]).conj().imag
    assert theirs.is_neg()
    assert read(theirs).tolist() == theirs.tolist() == [-2.0, 4.0]
