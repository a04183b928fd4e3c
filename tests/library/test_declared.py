"""Ops that a user's package declares by `op`: the same decorator, the same doors."""

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold import flat
from tenfold.ops.promote import to_float
from tenfold.ops.table import TABLE, op


@pytest.fixture
def cubed():
    @op("cubed(Tensor self) -> Tensor", promote=to_float, inplace=True)
    @flat.differentiated(lambda ct, result, x: (ct * 3 * x * x,))
    def cubed(x):
        """x³"""
        return x * x * x

    yield
    del TABLE["cubed"], tn.cubed, tn.Tensor.cubed, tn.Tensor.cubed_


def test_it_is_a_function_a_method_and_an_in_place_method(cubed):
    x = tn.tensor([1.0, 2.0])
    assert tn.cubed(x).tolist() == x.cubed().tolist() == tn.ops.aten.cubed(x).tolist() == [1, 8]
    assert x.cubed_() is x and x.tolist() == [1, 8]
    assert "x³" in tn.cubed.__doc__


def test_it_has_gradients_batches_and_compiles(cubed):
    x = tn.tensor([1.0, 2.0], requires_grad=True)
    tn.cubed(x).sum().backward()
    assert x.grad.tolist() == [3, 12]
    assert tn.vmap(tn.func.grad(tn.cubed))(tn.tensor([1.0, 2.0])).tolist() == [3, 12]
    assert tn.compile(lambda x: tn.cubed(x).sum())(tn.tensor([1.0, 2.0])).item() == 9


def test_it_is_exported(cubed):
    x = tn.tensor([1.0, 2.0])
    assert "stablehlo.multiply" in str(tn.export(tn.cubed, (x,), dialect="stablehlo"))
    assert '"torch.aten.cubed"' in str(tn.export(tn.cubed, (x,), dialect="torch"))


def test_a_second_overload_joins_the_first(cubed):
    @op("cubed.times(Tensor self, Scalar times) -> Tensor", promote=to_float)
    def cubed_times(x, times):
        return x * x * x * times

    assert tn.cubed(tn.tensor(2.0)).item() == 8
    assert tn.cubed(tn.tensor(2.0), 3).item() == tn.tensor(2.0).cubed(3).item() == 24


def test_a_name_of_pytorchs_keeps_its_function():
    before = tn.einsum
    try:

        @op("einsum.mine(Tensor self) -> Tensor")
        def mine(x):
            return x

        assert tn.einsum is before
    finally:
        TABLE["einsum"] = [row for row in TABLE["einsum"] if row.overload != "mine"]


def test_an_op_of_another_namespace_is_found_there():
    @op("mylib::twice(Tensor self) -> Tensor")
    def twice(x):
        return x + x

    assert tn.ops.mylib.twice(tn.ones(2)).tolist() == [2, 2]
    assert not hasattr(tn, "twice")
    np.testing.assert_array_equal(
        tn.func.grad(lambda x: tn.ops.mylib.twice(x).sum())(tn.ones(2)).numpy(), [2, 2]
    )


def test_a_library_declares_and_implements_ops():
    library = tn.library.Library("declared", "DEF")
    library.define("scaled(Tensor x, float by) -> Tensor")
    library.impl("scaled", lambda x, by: tn.empty_like(x), "Meta")
    library.impl("scaled", lambda x, by: x * by, "CPU")
    assert tn.ops.declared.scaled(tn.ones(1), 3.0).item() == 3.0
    with pytest.raises(tn.ArgumentError, match="was not declared"):
        library.impl("unknown", lambda x: x, "CPU")


def test_composite_functions_and_those_that_add_a_gradient_run_as_in_pytorch():
    def run(package):
        library = package.library.Library("composed", "DEF")
        library.define("norm(Tensor x, *, float by=1.0) -> Tensor")
        library.impl("norm", lambda x, *, by: (x * x).sum() * by, "CompositeImplicitAutograd")
        library.define("cube(Tensor x) -> Tensor")
        library.impl("cube", lambda x: package.tensor(x.numpy() ** 3), "CPU")

        class Cube(package.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                with package._C._AutoDispatchBelowAutograd():
                    return package.ops.composed.cube(x)

            @staticmethod
            def backward(ctx, gradient):
                (x,) = ctx.saved_tensors
                return gradient * 3 * x * x

        library.impl("cube", Cube.apply, "Autograd")
        x = package.tensor([1.0, 2.0], requires_grad=True)
        value = package.ops.composed.norm(x, by=2.0) + package.ops.composed.cube(x).sum()
        value.backward()
        return value.item(), x.grad.tolist()

    assert run(tn) == run(torch) == (19, [7, 20])


def test_what_results_look_like_may_be_said_before_the_op_is_defined():
    tn.library.register_fake("later::same", lambda x: tn.empty_like(x))

    @tn.library.custom_op("later::same", mutates_args=())
    def same(x: tn.Tensor) -> tn.Tensor:
        return x + 0

    assert tn.compile(lambda x: same(x) + 1)(tn.ones(2)).tolist() == [2.0, 2.0]


def test_libraries_of_compiled_operators_are_refused_as_import_errors():
    with pytest.raises(ImportError, match="compiled for PyTorch"):
        tn.ops.load_library("/some/where.so")
