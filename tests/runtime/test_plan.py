"""The plan of a compiled function: where its inputs come from, and where its results belong."""

import numpy as np
import pytest

import tenfold as tn
from tenfold.base.errors import TraceError
from tenfold.base.meshes import Mesh, MeshDevice, Sharding
from tenfold.engines import sharded, xla
from tenfold.flat.ir import TensorType
from tenfold.runtime.executables import counting_compiles
from tenfold.runtime.plan import Cleared
from tenfold.trace.graph import Origin, Value


def test_tensors_from_outside_are_read_at_every_call():
    weight = tn.tensor([2.0])
    f = tn.compile(lambda x: x * weight)
    assert f(tn.tensor([3.0])).tolist() == [6.0]
    weight.add_(1)
    assert f(tn.tensor([3.0])).tolist() == [9.0]
    with counting_compiles() as compiles:
        weight.fill_(5)
        weight.eval()
        f(tn.tensor([3.0]))
    assert compiles <= 1  # for fill_ alone


def test_a_tensor_from_outside_that_is_still_lazy_is_computed():
    lazy = tn.ones(2) + 1
    f = tn.compile(lambda x: x + lazy)
    assert f(tn.ones(2)).tolist() == [3.0, 3.0]
    assert f(tn.zeros(2)).tolist() == [2.0, 2.0]


def test_arguments_may_be_views_and_inputs_may_come_back():
    base = tn.arange(6.0).reshape(2, 3)
    f = tn.compile(lambda x, y: (x, y, x + y))
    x, y, total = f(base[0], base[1])
    np.testing.assert_array_equal(total.numpy(), [3.0, 5.0, 7.0])
    assert x.tolist() == [0.0, 1.0, 2.0] and y.tolist() == [3.0, 4.0, 5.0]
    base[0].fill_(100)
    assert f(base[0], base[1])[2].tolist() == [103.0, 104.0, 105.0]


def test_an_optional_argument_that_is_a_view_is_not_overlooked():
    f = tn.compile(lambda x, y=None: x * 2 if y is None else x * y)
    x, base, c = tn.tensor([1.0, 2.0]).eval(), tn.tensor([5.0, 5.0]).eval(), tn.tensor([7.0, 7.0]).eval()
    f(x), f(x)
    base[0]  # from now on it has a storage
    assert f(base, c).tolist() == [35.0, 35.0]


def test_a_tensor_given_twice_is_one_tensor():
    @tn.compile
    def f(x, y):
        x.add_(1)
        return y * 1

    x, y = tn.zeros(2), tn.zeros(2)
    assert f(x, x).tolist() == [1.0, 1.0]
    assert f(x, y).tolist() == [0.0, 0.0]
    assert x.tolist() == [2.0, 2.0]
    with pytest.raises(TraceError, match="shares memory"):
        f(x, x[0:2])


def test_what_is_returned_is_the_argument_itself():
    x, state = tn.zeros(2), tn.ones(2)
    f = tn.compile(lambda x: (x.add_(1), state.mul_(2), x + 1))
    first, second, third = f(x)
    assert first is x and second is state and third.tolist() == [2.0, 2.0]
    assert state.tolist() == [2.0, 2.0]


def test_a_tensor_that_is_returned_twice_is_one_tensor() -> None:
    first, second = tn.compile(lambda x: (x + 1,) * 2)(tn.ones(2))
    assert first is second


def cleared(gradient: tn.Tensor | None, sharding: Sharding | None = None) -> tuple[Cleared, Origin]:
    """A gradient of three zeros that a function clears and makes anew, and where it is collected."""
    origin = Origin()
    origin.collected = gradient
    device = tn.zeros(3).current().device if sharding is None else MeshDevice(sharding.mesh)
    return Cleared(origin, TensorType(tn.float32, (3,)), device, sharding), origin


def on_device(array: np.ndarray) -> tn.Tensor:
    """A tensor whose data XLA has."""
    device = tn.zeros(3).current().device
    dtype = tn.float64 if array.dtype == np.float64 else tn.float32
    return tn.Tensor(Value(TensorType(dtype, array.shape), device, None, 0, xla.put(array, device)))


ONES = np.ones(3, np.float32)


def test_a_cleared_gradient_that_nobody_else_reads_lends_its_memory():
    source, origin = cleared(on_device(ONES))
    assert source.current() is origin.collected._value


def gives_zeros(source: Cleared) -> bool:
    value = source.current()
    return value.type.shape == (3,) and np.asarray(value.buffer).tolist() == [0, 0, 0]


OTHERS = {
    "that is not computed": lambda: tn.ones(3) * 2,
    "of another shape": lambda: on_device(np.ones(4, np.float32)),
    "of another dtype": lambda: on_device(np.ones(3, np.float64)),
    "that is a view": lambda: on_device(ONES)[:],
    "on the host": lambda: tn.tensor(ONES),
    "that there is not": lambda: None,
}


@pytest.mark.parametrize("gradient", OTHERS)
def test_zeros_take_the_place_of_a_gradient(gradient):
    assert gives_zeros(cleared(OTHERS[gradient]())[0])


def test_zeros_take_the_place_of_a_gradient_that_somebody_else_holds():
    held = on_device(ONES)
    source, _ = cleared(held)
    assert gives_zeros(source)
    del held
    assert not gives_zeros(source)


def test_a_cleared_gradient_on_a_mesh_is_sharded_as_its_leaf():
    mesh = Mesh("cpu", (("rows", 1),), (0,))
    rows = Sharding(mesh, ((mesh.axis("rows"),),))
    other = Sharding.replicated(mesh, 1)
    for own, fits in ((rows, True), (other, False)):
        buffer = sharded.put(np.ones(3, np.float32), own)
        value = Value(TensorType(tn.float32, (3,)), MeshDevice(mesh), None, 0, buffer)
        source, _ = cleared(tn.Tensor(value), rows)
        found = source.current()
        assert (found is value) == fits
        assert sharded.sharding_of(found.buffer) is rows
        assert sharded.parts_of(found.buffer)[0].tolist() == [float(fits)] * 3
