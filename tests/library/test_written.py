"""Ops that write to their arguments: what the tensors hold, their history, batches, compiled programs."""

import numpy as np
import pytest
import torch

import tenfold as tn


def added_to(package, name, kernel_on_arrays=False):
    """`x += y` as an op of either package, under a name of its own."""
    if kernel_on_arrays:

        def kernel(x: np.ndarray, y: np.ndarray) -> None:
            x += y

    else:

        def kernel(x, y):
            x.add_(y)

        kernel.__annotations__ = {"x": package.Tensor, "y": package.Tensor, "return": None}
    return package.library.custom_op(f"written::{name}", kernel, mutates_args={"x"})


@pytest.mark.parametrize("on_arrays", [True, False])
def test_a_kernel_writes_and_the_tensor_and_its_views_see_it(on_arrays):
    add_to = added_to(tn, "seen", on_arrays)
    whole = tn.zeros(2, 3)
    row, version = whole[0], whole._version
    assert add_to(row, tn.ones(3)) is None
    assert whole.tolist() == [[1, 1, 1], [0, 0, 0]] and row.tolist() == [1, 1, 1]
    assert whole._version > version
    assert str(tn.ops.written.seen.default._schema) == "written::seen(Tensor(a0!) x, Tensor y) -> ()"


def test_a_kernel_on_tensors_may_write_through_numpy_and_by_tensor_operations():
    @tn.library.custom_op("written::mixed", mutates_args={"x"})
    def mixed(x: tn.Tensor) -> tn.Tensor:
        array = x.numpy()
        np.sin(array, out=array)
        before = x * 2
        x.add_(1)
        array *= 10
        x[0] = 5
        return before

    x = tn.tensor([0.5, 1.0])
    result = mixed(x)
    np.testing.assert_allclose(result.numpy(), 2 * np.sin([0.5, 1.0]), rtol=1e-6)
    np.testing.assert_allclose(x.numpy(), [5, (np.sin(1.0) + 1) * 10], rtol=1e-6)


def test_lists_optional_tensors_and_results_are_as_in_pytorch():
    def run(package):
        def kernel(xs, y, k=1):
            for x in xs:
                x.mul_(k)
            if y is not None:
                y.add_(k)
            return xs[0] + 1

        kernel.__annotations__ = {
            "xs": list[package.Tensor], "y": package.Tensor | None, "k": int, "return": package.Tensor,
        }  # fmt: skip
        op = package.library.custom_op("written::several", kernel, mutates_args={"xs", "y"})
        xs, y = [package.ones(2), package.full((3,), 2.0)], package.zeros(1)
        results = [op(xs, None, 3), op(xs, y, k=2)]
        return [each.tolist() for each in (*results, *xs, y)]

    assert run(tn) == run(torch)


def test_the_history_of_what_is_written_stays_as_it_was():
    def run(package):
        add_to = added_to(package, "history")
        leaf = package.zeros(2, requires_grad=True)
        computed, y = leaf * 2, package.ones(2, requires_grad=True)
        plain = package.zeros(2)
        add_to(leaf, y), add_to(computed, y), add_to(plain, y)
        computed.sum().backward()
        values = [each.detach().tolist() for each in (leaf, computed, plain)]
        return values, leaf.grad.tolist(), y.grad, plain.requires_grad

    assert run(tn) == run(torch)


def test_a_gradient_is_refused_as_in_pytorch():
    for package in (tn, torch):
        add_to = added_to(package, "refused")
        with pytest.raises(RuntimeError, match=r"written::refused\(Tensor\(a0!\) x, Tensor y\) -> \(\)"):
            add_to.register_autograd(lambda ctx, gradient: gradient)


def test_a_result_of_an_op_that_writes_stops_a_derivative_with_an_error():
    @tn.library.custom_op("written::counted", mutates_args={"count"})
    def counted(x: tn.Tensor, count: tn.Tensor) -> tn.Tensor:
        count.add_(1)
        return x * 2

    counted.register_fake(lambda x, count: tn.empty_like(x))
    count, x = tn.zeros(()), tn.ones(2, requires_grad=True)
    result = counted(x, count)
    assert result.requires_grad and not count.requires_grad and count.item() == 1
    result.sum().backward()
    with pytest.raises(RuntimeError, match="the call of 'written::counted' has no gradient"):
        x.grad.eval()


def test_it_compiles_and_what_it_wrote_is_in_the_argument():
    add_to = added_to(tn, "compiled", True)
    cache = tn.zeros(4)

    @tn.compile
    def step(cache, y):
        add_to(cache[1:3], y * 2)
        return cache.sum()

    assert step(cache, tn.ones(2)).item() == 4
    assert step(cache, tn.ones(2)).item() == 8
    assert cache.tolist() == [0, 4, 4, 0]


def test_vmap_writes_to_the_whole_batch_with_and_without_a_rule():
    add_to = added_to(tn, "mapped", True)

    def mapped(x, y):
        add_to(x, y)
        return x * 2

    x, y = tn.zeros(3, 2), tn.arange(6.0).reshape(3, 2)
    assert tn.vmap(mapped)(x, y).tolist() == (2 * y).tolist() and x.tolist() == y.tolist()
    seen = []

    @add_to.register_vmap
    def batched(info, in_dims, x, y):
        seen.append((info.batch_size, in_dims))
        add_to(x, y)
        return None, None

    x = tn.zeros(3, 2)
    assert tn.vmap(mapped)(x, y).tolist() == (2 * y).tolist() and x.tolist() == y.tolist()
    assert seen == [(3, (0, 0))]


def test_on_the_meta_device_only_types_are_computed():
    add_to = added_to(tn, "meta", True)
    x = tn.zeros(3, device="meta")
    add_to(x, tn.ones(3, device="meta"))
    assert x.shape == (3,) and x.device.type == "meta"


def test_schemas_are_inferred_as_pytorch_infers_them():
    def inferred(package, mutates):
        def kernel(xs, y, k=1): ...

        kernel.__annotations__ = {
            "xs": list[package.Tensor], "y": package.Tensor | None, "k": int, "return": None,
        }  # fmt: skip
        return package.library.infer_schema(kernel, mutates_args=mutates)

    for mutates in ((), {"xs"}, ["y"], {"xs", "y"}, "unknown"):
        assert inferred(tn, mutates) == inferred(torch, mutates)
    for mutates in ({"k"}, {"absent"}):
        with pytest.raises(ValueError, match="k|absent"):
            inferred(tn, mutates)
        with pytest.raises(ValueError, match="k|absent"):
            inferred(torch, mutates)


def test_a_kernel_may_not_give_back_what_it_writes_to():
    for package in (tn, torch):

        def kernel(x):
            return x.add_(1)

        kernel.__annotations__ = {"x": package.Tensor, "return": package.Tensor}
        op = package.library.custom_op("written::given_back", kernel, mutates_args={"x"})
        with pytest.raises(RuntimeError, match="given_back"):
            op(package.ones(2))


def test_a_declared_op_gives_back_the_argument_that_its_schema_names():
    for package in (tn, torch):
        library = package.library.Library("written_declared", "DEF")
        library.define("fill_(Tensor(a!) x, float value) -> Tensor(a!)")
        library.define("twice.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)")
        library.impl("fill_", lambda x, value: x.mul_(0).add_(value), "CPU")
        library.impl("twice.out", lambda x, *, out: out.copy_(x * 2), "CPU")
        x, out = package.zeros(2), package.zeros(2)
        assert package.ops.written_declared.fill_(x, 3.0) is x and x.tolist() == [3, 3]
        assert package.ops.written_declared.twice(x, out=out) is out and out.tolist() == [6, 6]
        assert package.ops.written_declared.twice.out(x, out=x) is x and x.tolist() == [6, 6]


def test_an_op_that_gives_nothing_runs_at_once():
    seen = []

    @tn.library.custom_op("written::nothing", mutates_args=())
    def nothing(x: np.ndarray) -> None:
        seen.append(x.sum())

    assert nothing(tn.ones(3)) is None and seen == [3]
